//! The sections of a message where they lie.

use super::descriptor;
use super::raw::{Amqp10Error, Raw, Values};
use std::borrow::Cow;

/// What a message is made of. Sections that are missing are empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sections<'a> {
    /// `durable`, `priority`, `ttl`, `first-acquirer`, `delivery-count`.
    pub header: Values<'a>,
    /// A map.
    pub annotations: Raw<'a>,
    /// The thirteen properties, from `message-id` to `reply-to-group-id`.
    pub properties: Values<'a>,
    /// A map.
    pub application: Raw<'a>,
    /// The body.
    pub body: Body<'a>,
}

/// A message's body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// Bytes.
    Data(&'a [u8]),
    /// Several data sections, one behind the other, as they are encoded; perhaps a footer behind them.
    Pieces(&'a [u8]),
    /// Sequences or a value, and perhaps a footer, as they are encoded.
    Encoded(&'a [u8]),
}

impl<'a> Body<'a> {
    /// The bytes as the body of a message of AMQP 0-9-1.
    pub fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Self::Data(bytes) | Self::Encoded(bytes) => Cow::Borrowed(bytes),
            Self::Pieces(mut rest) => {
                let mut bytes = Vec::new();
                while let Ok((descriptor::DATA, Raw::Binary(piece), after)) = section(rest) {
                    bytes.extend_from_slice(piece);
                    rest = after;
                }
                Cow::Owned(bytes)
            }
        }
    }
}

impl<'a> Sections<'a> {
    /// Reads the sections of a message. That they are in the right order, and none stands twice, is not asked for: the last one
    /// counts.
    ///
    /// # Errors
    /// The bytes are no message of AMQP 1.0. A client of the stream protocol may have published anything.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Amqp10Error> {
        let mut sections = Self {
            header: Values::EMPTY,
            annotations: Raw::Null,
            properties: Values::EMPTY,
            application: Raw::Null,
            body: Body::Data(&[]),
        };
        let mut rest = bytes;
        loop {
            let (descriptor, value, after) = section(rest)?;
            match (descriptor, value) {
                (descriptor::HEADER, Raw::List(values)) => sections.header = values,
                (descriptor::DELIVERY_ANNOTATIONS, Raw::Map(_)) => {}
                (descriptor::MESSAGE_ANNOTATIONS, Raw::Map(_)) => sections.annotations = value,
                (descriptor::PROPERTIES, Raw::List(values)) => sections.properties = values,
                (descriptor::APPLICATION_PROPERTIES, Raw::Map(_)) => sections.application = value,
                _ => {
                    sections.body = body(rest)?;
                    return Ok(sections);
                }
            }
            if after.is_empty() {
                return Ok(sections);
            }
            rest = after;
        }
    }
}

/// The body that these bytes are, with a footer or without.
///
/// # Errors
/// They are none.
pub(super) fn body(bytes: &[u8]) -> Result<Body<'_>, Amqp10Error> {
    let (first, value, mut rest) = section(bytes)?;
    let mut pieces = 1;
    while !rest.is_empty() {
        let (next, _, after) = section(rest)?;
        if next == descriptor::FOOTER {
            if !after.is_empty() {
                return Err(Amqp10Error::Section);
            }
        } else if next == first && first != descriptor::VALUE {
            pieces += 1;
        } else {
            return Err(Amqp10Error::Section);
        }
        rest = after;
    }
    match (first, value) {
        (descriptor::DATA, Raw::Binary(data)) if pieces == 1 => Ok(Body::Data(data)),
        (descriptor::DATA, Raw::Binary(_)) => Ok(Body::Pieces(bytes)),
        (descriptor::SEQUENCE, Raw::List(_)) | (descriptor::VALUE, _) => Ok(Body::Encoded(bytes)),
        // A message without a body; nobody should send one.
        (descriptor::FOOTER, _) => Ok(Body::Data(&[])),
        _ => Err(Amqp10Error::Section),
    }
}

/// The section at the beginning of these bytes, and what follows it.
fn section(bytes: &[u8]) -> Result<(u64, Raw<'_>, &[u8]), Amqp10Error> {
    match Raw::read(bytes)? {
        (Raw::Described(described), rest) => {
            let descriptor = match described.descriptor() {
                Raw::Ulong(descriptor) => descriptor,
                Raw::Symbol(name) => of_name(name).ok_or(Amqp10Error::Section)?,
                _ => return Err(Amqp10Error::Section),
            };
            Ok((descriptor, described.value(), rest))
        }
        _ => Err(Amqp10Error::Section),
    }
}

/// A section's number by its other name.
fn of_name(name: &[u8]) -> Option<u64> {
    Some(match name {
        b"amqp:header:list" => descriptor::HEADER,
        b"amqp:delivery-annotations:map" => descriptor::DELIVERY_ANNOTATIONS,
        b"amqp:message-annotations:map" => descriptor::MESSAGE_ANNOTATIONS,
        b"amqp:properties:list" => descriptor::PROPERTIES,
        b"amqp:application-properties:map" => descriptor::APPLICATION_PROPERTIES,
        b"amqp:data:binary" => descriptor::DATA,
        b"amqp:amqp-sequence:list" => descriptor::SEQUENCE,
        b"amqp:amqp-value:*" => descriptor::VALUE,
        b"amqp:footer:map" => descriptor::FOOTER,
        _ => return None,
    })
}
