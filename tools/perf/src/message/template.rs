//! Frames that are written once and copied for each message.

use super::body::Body;
use super::{seal, stamp};
use crate::plan::{BodyPlan, Plan};
use crate::topology::Route;
use model::properties::PropertiesBuilder;
use model::table::{Table, Value};
use protocol::amqp::encode;
use protocol::amqp::frame::{HEAD, OVERHEAD};
use protocol::amqp::method::BasicPublish;

/// The frames of a message, and where what changes lies in them.
pub struct Template {
    pub bytes: Vec<u8>,
    /// Where the body begins in `bytes`; its first frame holds at least the stamp and the seal.
    pub body: usize,
    /// Of the body, in bytes.
    pub size: usize,
    /// Where the header's stamp is, if the stamp is not in the body.
    pub header_stamp: Option<usize>,
    /// With `--verify`: the checksum of the body behind the seal.
    pub filler_crc: u32,
}

/// What all templates of a producer have in common.
pub struct Writing<'a> {
    pub plan: &'a Plan,
    pub channel: u16,
    pub route: &'a Route,
    pub frame_max: u32,
}

impl Writing<'_> {
    /// The method frame for a key.
    fn method(&self, key: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        encode::method(
            &mut frame,
            self.channel,
            &BasicPublish {
                exchange: self.route.exchange.as_bytes(),
                routing_key: key,
                mandatory: self.plan.producing.mandatory,
                immediate: false,
            },
        );
        frame
    }

    /// The frames of a message with this body; without the method frame unless the key is `fixed`.
    pub fn template(&self, body: &Body, fixed: bool) -> Template {
        let stamped = |stamp| self.frames(body, &self.properties(body, stamp), fixed);
        let mut template = stamped(0);
        if !body.stamped {
            // The stamp is where two templates with different stamps begin to differ.
            let other = stamped(u64::MAX >> 1);
            let first = template.bytes.iter().zip(&other.bytes).position(|(a, b)| a != b);
            template.header_stamp = first;
        }
        template
    }

    fn frames(&self, body: &Body, properties: &[u8], fixed: bool) -> Template {
        let key = self.route.routing_key.as_deref().unwrap_or_default();
        let mut bytes = Vec::new();
        let method = self.method(key.as_bytes());
        let publish = BasicPublish::default();
        encode::content(
            &mut bytes,
            self.channel,
            &publish,
            properties,
            &body.bytes,
            self.frame_max,
        );
        // The content's own method frame, with empty names, gives way to the one of the fixed key, or to none.
        let plain = OVERHEAD + 4 + 2 + 1 + 1 + 1;
        bytes.splice(..plain, if fixed { method } else { Vec::new() });
        let header = self.header_at(&bytes, fixed);
        let body_at = header + HEAD + 12 + properties.len() + 1 + HEAD;
        Template {
            bytes,
            body: body_at,
            size: body.bytes.len(),
            header_stamp: None,
            filler_crc: seal::filler_crc(&body.bytes),
        }
    }

    fn header_at(&self, bytes: &[u8], fixed: bool) -> usize {
        let size = bytes.get(3..HEAD).and_then(|it| it.first_chunk::<4>());
        match size {
            Some(size) if fixed => u32::from_be_bytes(*size) as usize + OVERHEAD,
            _ => 0,
        }
    }

    /// As PerfTest makes them: the mode from the persistent flag unless it is given, the stamp as a header if the body
    /// is not ours.
    fn properties(&self, body: &Body, stamp: u64) -> Vec<u8> {
        let given = &self.plan.message.properties;
        let mut builder = PropertiesBuilder::new();
        let json =
            matches!(self.plan.message.body, BodyPlan::Json { .. }).then(|| "application/json".to_owned());
        if let Some(it) = given.content_type.clone().or(json) {
            builder = builder.content_type(it);
        }
        // Not all setters have one type, so a list of them would not do.
        macro_rules! given {
            ($($name:ident),*) => {
                $(if let Some(it) = &given.$name {
                    builder = builder.$name(it.clone());
                })*
            };
        }
        given!(
            content_encoding,
            correlation_id,
            reply_to,
            expiration,
            message_id,
            timestamp
        );
        given!(kind, user_id, app_id, cluster_id, priority);
        if let Some(mode) = given
            .delivery_mode
            .or(self.plan.producing.persistent.then_some(2))
        {
            builder = builder.delivery_mode(mode);
        }
        let headers = self.headers(body, stamp);
        if !headers.is_empty() {
            builder = builder.headers(&headers);
        }
        builder.encode()
    }

    fn headers(&self, body: &Body, stamp: u64) -> Table {
        let mut headers = Table::new();
        if !body.stamped {
            headers.push(stamp::HEADER, Value::Long(stamp as i64));
        }
        for (name, value) in self.plan.message.properties.headers.iter() {
            headers.push(name, value.clone());
        }
        headers
    }
}

/// Writes over a piece of a message. Where it lies was found when the template was written.
#[inline]
pub fn put(message: &mut [u8], at: usize, piece: &[u8]) {
    if let Some(place) = message.get_mut(at..at + piece.len()) {
        place.copy_from_slice(piece);
    }
}

/// Where routing keys come from.
pub enum Keys {
    /// One key for all: its method frame is in the templates.
    Fixed,
    /// Method frames made in advance, used in turn.
    Cached { frames: Vec<Vec<u8>>, next: usize },
    /// A new key each time: the method frame of some key, and where its key lies.
    Random { frame: Vec<u8>, key_at: usize },
}

/// A UUID's length as text.
const UUID: usize = 36;

impl Keys {
    /// The keys of a producer: its route's one, or random ones.
    pub fn new(writing: &Writing<'_>) -> Self {
        let routing = &writing.plan.routing;
        if routing.cache > 0 {
            let frames = (0..routing.cache).map(|_| writing.method(&uuid())).collect();
            return Self::Cached { frames, next: 0 };
        }
        if writing.route.routing_key.is_some() && !routing.random {
            return Self::Fixed;
        }
        let frame = writing.method(&uuid());
        // Behind the key come the flags and the frame's end.
        let key_at = frame.len() - 2 - UUID;
        Self::Random { frame, key_at }
    }

    /// True if the templates have the method frame.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed)
    }

    /// Appends the method frame, if it is not in the templates.
    #[inline]
    pub fn append(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Fixed => {}
            Self::Cached { frames, next } => {
                if let Some(frame) = frames.get(*next) {
                    out.extend_from_slice(frame);
                }
                *next = (*next + 1) % frames.len().max(1);
            }
            Self::Random { frame, key_at } => {
                put(frame, *key_at, &uuid());
                out.extend_from_slice(frame);
            }
        }
    }
}

/// Where each byte of a UUID stands in its text; hyphens are in between.
const BYTES_AT: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// A random UUID (version 4) as text, which is what PerfTest's random keys are.
fn uuid() -> [u8; UUID] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bits = (fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let mut text = [b'-'; UUID];
    for (byte, at) in bits.to_be_bytes().into_iter().zip(BYTES_AT) {
        text[at] = DIGITS[usize::from(byte >> 4)];
        text[at + 1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        for _ in 0..100 {
            let it = String::from_utf8(uuid().to_vec()).unwrap();
            let parts: Vec<&str> = it.split('-').collect();
            assert_eq!(
                parts.iter().map(|part| part.len()).collect::<Vec<_>>(),
                [8, 4, 4, 4, 12]
            );
            assert!(
                parts.concat().bytes().all(|digit| digit.is_ascii_hexdigit()),
                "{it}"
            );
            assert!(
                parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']),
                "{it}"
            );
        }
    }
}
