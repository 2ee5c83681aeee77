//! What a message says of itself beside its body, in the format of the protocol that it came in.
//!
//! A message is stored as it came, and says in which [`Format`] its properties are. The broker, the queues and routing
//! read them through [`Properties`] alone and so know no format; a front end that delivers asks for its own format, and
//! gets the bytes as they lie if the message came in it. What is rewritten on the way (headers of dead letters, removed
//! headers) is AMQP 0-9-1 afterwards, which can express all that the broker adds.
//!
//! A further protocol adds a variant to [`Format`], a module beside [`amqp091`] that reads what is asked often, and the
//! conversion into AMQP 0-9-1; the compiler names the places, which are all in this file.

pub mod amqp091;
pub mod amqp10;
#[cfg(test)]
mod lines;

pub use amqp091::{BasicProperties, PropertiesBuilder, PropertiesError};

use crate::expiration::{ExpirationError, expiration_ms};
use crate::limits::Limits;
use crate::table::{Table, TableError};
use std::borrow::Cow;

/// How a message's properties are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Property flags and property list of a content header of AMQP 0-9-1.
    #[default]
    Amqp091,
    /// A line of text for each property: a second format, so that tests show that nothing else knows the first.
    #[cfg(test)]
    Lines,
}

impl Format {
    /// The byte by which a stored message names its format. It never changes.
    #[inline]
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Amqp091 => 0,
            #[cfg(test)]
            Self::Lines => 255,
        }
    }

    /// The format of this byte; `None` if it is none, or one that only a newer version knows.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Amqp091),
            #[cfg(test)]
            255 => Some(Self::Lines),
            _ => None,
        }
    }
}

/// The properties of one message where they lie. Strings are given as the client sent them, not necessarily UTF-8.
///
/// The getters never fail: what lies behind a defect is absent. Front ends check what comes in
/// ([`BasicProperties::check`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties<'a> {
    format: Format,
    bytes: &'a [u8],
}

impl<'a> Properties<'a> {
    /// Looks at nothing yet.
    #[inline]
    pub fn new(format: Format, bytes: &'a [u8]) -> Self {
        Self { format, bytes }
    }

    /// Property flags and property list of AMQP 0-9-1.
    #[inline]
    pub fn amqp091(bytes: &'a [u8]) -> Self {
        Self::new(Format::Amqp091, bytes)
    }

    /// How the bytes are to be understood.
    #[inline]
    pub fn format(self) -> Format {
        self.format
    }

    /// The bytes as they came.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The length of the bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.bytes.len()
    }

    /// True if there is not even a byte.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// The same as flags and list of AMQP 0-9-1: copied only if they are in another format.
    #[inline]
    pub fn to_amqp091(self) -> Cow<'a, [u8]> {
        match self.format {
            Format::Amqp091 => Cow::Borrowed(self.bytes),
            #[cfg(test)]
            Format::Lines => Cow::Owned(lines::to_amqp091(self.bytes)),
        }
    }

    /// True if the message is to survive a restart of the node.
    #[inline]
    pub fn persistent(self) -> bool {
        match self.format {
            Format::Amqp091 => self.basic().persistent(),
            #[cfg(test)]
            Format::Lines => lines::value(self.bytes, "durable").is_some(),
        }
    }

    /// True if the message may have a time to live of its own; costs less than to find it out.
    #[inline]
    pub fn may_expire(self) -> bool {
        match self.format {
            Format::Amqp091 => self.basic().has_expiration(),
            #[cfg(test)]
            Format::Lines => lines::value(self.bytes, "ttl").is_some(),
        }
    }

    /// The time to live in milliseconds, if there is one.
    ///
    /// # Errors
    /// If what stands there is none: it is ignored where a message is already stored, and refused where it is published.
    pub fn expiration_ms(self) -> Option<Result<u64, InvalidExpiration<'a>>> {
        let text = match self.format {
            Format::Amqp091 => self.basic().expiration()?,
            #[cfg(test)]
            Format::Lines => lines::value(self.bytes, "ttl")?,
        };
        Some(expiration_ms(text).map_err(|error| InvalidExpiration { text, error }))
    }

    /// True if there may be headers, an expiration or a user id, which a publisher's message is checked for and routed by.
    #[inline]
    pub fn has_what_is_checked(self) -> bool {
        match self.format {
            Format::Amqp091 => self.basic().has_what_is_checked(),
            #[cfg(test)]
            Format::Lines => !self.bytes.is_empty(),
        }
    }

    /// 0 to 255; the queue cuts it at its maximum.
    pub fn priority(self) -> Option<u8> {
        match self.format {
            Format::Amqp091 => self.basic().priority(),
            #[cfg(test)]
            Format::Lines => lines::number(self.bytes, "priority"),
        }
    }

    /// When the publisher says that it made the message, in seconds since the Unix epoch.
    pub fn timestamp(self) -> Option<u64> {
        match self.format {
            Format::Amqp091 => self.basic().timestamp(),
            #[cfg(test)]
            Format::Lines => lines::number(self.bytes, "created"),
        }
    }

    /// Who published it; RabbitMQ insists that it is the connection's user.
    pub fn user_id(self) -> Option<&'a [u8]> {
        match self.format {
            Format::Amqp091 => self.basic().user_id(),
            #[cfg(test)]
            Format::Lines => lines::value(self.bytes, "user"),
        }
    }

    /// The application's identifier.
    pub fn message_id(self) -> Option<&'a [u8]> {
        match self.format {
            Format::Amqp091 => self.basic().message_id(),
            #[cfg(test)]
            Format::Lines => lines::value(self.bytes, "id"),
        }
    }

    /// What an answer refers to.
    pub fn correlation_id(self) -> Option<&'a [u8]> {
        match self.format {
            Format::Amqp091 => self.basic().correlation_id(),
            #[cfg(test)]
            Format::Lines => lines::value(self.bytes, "correlation"),
        }
    }

    /// The headers as an encoded table without the length before it, for [`crate::table::raw::Entries`]: copied only if
    /// they are written differently.
    pub fn headers(self) -> Option<Cow<'a, [u8]>> {
        match self.to_amqp091() {
            Cow::Borrowed(bytes) => BasicProperties::new(bytes).headers().map(Cow::Borrowed),
            Cow::Owned(bytes) => {
                let headers = BasicProperties::new(&bytes).headers()?;
                Some(Cow::Owned(headers.to_vec()))
            }
        }
    }

    /// The decoded headers; empty if there are none.
    ///
    /// # Errors
    /// As [`Table::decode`].
    pub fn headers_table(self, limits: &Limits) -> Result<Table, TableError> {
        BasicProperties::new(&self.to_amqp091()).headers_table(limits)
    }

    /// The same with these headers instead of its own (none if the table is empty). `None` if they cannot be read.
    pub fn with_headers(self, headers: &Table) -> Option<PropertiesBuf> {
        self.rewritten(|basic| basic.with_headers(headers))
    }

    /// The same without one header. `None` if there is no such header, or if they cannot be read.
    pub fn without_header(self, name: &[u8], limits: &Limits) -> Option<PropertiesBuf> {
        self.rewritten(|basic| basic.without_header(name, limits))
    }

    /// The same without their time to live. `None` if they cannot be read.
    pub fn without_expiration(self) -> Option<PropertiesBuf> {
        self.rewritten(|basic| basic.without_expiration())
    }

    fn rewritten(
        self,
        rewrite: impl FnOnce(BasicProperties<'_>) -> Option<Vec<u8>>,
    ) -> Option<PropertiesBuf> {
        rewrite(BasicProperties::new(&self.to_amqp091())).map(PropertiesBuf::amqp091)
    }

    /// What they were rewritten as, if they were, or these.
    #[inline]
    pub fn replaced_by<'b>(self, rewritten: Option<&'b PropertiesBuf>) -> Properties<'b>
    where
        'a: 'b,
    {
        rewritten.map_or(self, PropertiesBuf::as_properties)
    }

    /// The bytes, if they are flags and list of AMQP 0-9-1.
    #[inline]
    fn basic(self) -> BasicProperties<'a> {
        BasicProperties::new(self.bytes)
    }
}

/// Properties of a message that does not lie anywhere else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertiesBuf {
    format: Format,
    bytes: Vec<u8>,
}

impl PropertiesBuf {
    /// Property flags and property list of AMQP 0-9-1, for example from a [`PropertiesBuilder`].
    pub fn amqp091(bytes: Vec<u8>) -> Self {
        Self {
            format: Format::Amqp091,
            bytes,
        }
    }

    /// To be read.
    #[inline]
    pub fn as_properties(&self) -> Properties<'_> {
        Properties::new(self.format, &self.bytes)
    }

    /// Becomes a copy of these, in the memory that it has.
    pub fn copy_from(&mut self, properties: Properties<'_>) {
        self.format = properties.format;
        self.bytes.clear();
        self.bytes.extend_from_slice(properties.bytes);
    }
}

impl From<Properties<'_>> for PropertiesBuf {
    fn from(properties: Properties<'_>) -> Self {
        Self {
            format: properties.format,
            bytes: properties.bytes.to_vec(),
        }
    }
}

/// A time to live that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidExpiration<'a> {
    /// As the publisher wrote it.
    pub text: &'a [u8],
    /// What is wrong with it.
    pub error: ExpirationError,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Block, BlockBuilder, Message};
    use crate::machine::Timestamp;
    use crate::route::RouteBuf;
    use crate::{DeduplicationKey, delay_ms};

    const LINES: &[u8] =
        b"durable\nttl 250\npriority 7\ncreated 9\nuser alice\nid m1\ncorrelation c1\nheader x-delay 5000\nheader a b\n";

    fn lines() -> Properties<'static> {
        Properties::new(Format::Lines, LINES)
    }

    #[test]
    fn a_message_of_another_format_is_read_like_one_of_amqp() {
        let headers = Table::new().with("x-delay", 5000_i64).with("a", "b");
        let amqp = PropertiesBuilder::new()
            .delivery_mode(2)
            .expiration("250")
            .priority(7)
            .timestamp(9)
            .user_id("alice")
            .message_id("m1")
            .correlation_id("c1")
            .headers(&headers)
            .encode();
        let read = |it: Properties<'_>| {
            (
                it.persistent(),
                it.may_expire(),
                it.expiration_ms().map(|ms| ms.map_err(|invalid| invalid.error)),
                it.has_what_is_checked(),
                (it.priority(), it.timestamp()),
                [it.user_id(), it.message_id(), it.correlation_id()].map(|id| id.map(<[u8]>::to_vec)),
                it.headers_table(&Limits::default()),
                delay_ms(it),
                DeduplicationKey::of(it),
            )
        };
        assert_eq!(read(lines()), read(Properties::amqp091(&amqp)));
        assert_eq!(*lines().to_amqp091(), *amqp);
        let nothing = Properties::new(Format::Lines, b"");
        assert_eq!(read(nothing), read(Properties::amqp091(&[0, 0])));
    }

    #[test]
    fn what_the_broker_rewrites_is_amqp_whatever_it_was() {
        let headers = Table::new().with("x-death", 1);
        let rewritten = lines().without_expiration().unwrap();
        let rewritten = rewritten.as_properties().with_headers(&headers).unwrap();
        let rewritten = rewritten.as_properties();
        assert_eq!(rewritten.format(), Format::Amqp091);
        assert_eq!(rewritten.headers_table(&Limits::default()), Ok(headers));
        assert_eq!((rewritten.expiration_ms(), rewritten.priority()), (None, Some(7)));
        assert_eq!(lines().without_header(b"no such", &Limits::default()), None);
    }

    #[test]
    fn a_block_keeps_messages_of_several_formats_and_refuses_one_that_it_does_not_know() {
        let route = RouteBuf::new(b"x", b"k");
        let mut builder = BlockBuilder::new();
        builder.push_message(&Message::new(
            route.as_route(),
            Properties::amqp091(&[0, 0]),
            b"1",
        ));
        assert!(!builder.finish(false, Timestamp(0)).may_expire());
        builder.push_message(&Message::new(
            route.as_route(),
            Properties::amqp091(&[0, 0]),
            b"1",
        ));
        builder.push_message(&Message::new(route.as_route(), lines(), b"2"));
        let block = builder.finish(false, Timestamp(0));
        let again = Block::from_bytes(block.bytes().to_vec(), false, Timestamp(0)).unwrap();
        assert_eq!(again, block);
        assert!(again.may_expire());
        assert_eq!(again.message(0).properties, Properties::amqp091(&[0, 0]));
        assert_eq!(again.message(1).properties, lines());
        let mut newer = block.bytes().to_vec();
        newer[11] = 254;
        assert_eq!(Block::from_bytes(newer, false, Timestamp(0)), None);
    }
}
