//! The properties of AMQP 0-9-1's basic class, read lazily from the bytes of a content header.
//!
//! These are two bytes of flags and the list of what the flags announce (AMQP 0-9-1 section 4.2.6.1). Nothing is decoded
//! until somebody asks, and then only up to what was asked for; most messages are asked for their delivery mode and
//! nothing else. [`BasicProperties`] reads, [`PropertiesBuilder`] (in [`builder`]) writes.

pub mod builder;

pub use builder::PropertiesBuilder;

use crate::limits::Limits;
use crate::table::{Table, TableError, raw};
use std::fmt;

/// Each property's bit, from the first in the list to the last.
mod flag {
    pub const CONTENT_TYPE: u16 = 1 << 15;
    pub const CONTENT_ENCODING: u16 = 1 << 14;
    pub const HEADERS: u16 = 1 << 13;
    pub const DELIVERY_MODE: u16 = 1 << 12;
    pub const PRIORITY: u16 = 1 << 11;
    pub const CORRELATION_ID: u16 = 1 << 10;
    pub const REPLY_TO: u16 = 1 << 9;
    pub const EXPIRATION: u16 = 1 << 8;
    pub const MESSAGE_ID: u16 = 1 << 7;
    pub const TIMESTAMP: u16 = 1 << 6;
    pub const TYPE: u16 = 1 << 5;
    pub const USER_ID: u16 = 1 << 4;
    pub const APP_ID: u16 = 1 << 3;
    pub const CLUSTER_ID: u16 = 1 << 2;
    /// Bit 0 would announce a second word of flags and bit 1 is free; the basic class has neither. RabbitMQ
    /// passes over both; a consumer that believed bit 0 would lose its place, so here they are refused.
    pub const UNUSED: u16 = 0b11;
}

/// Why bytes are not the properties of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertiesError {
    /// They end before everything that the flags announce was read.
    Truncated,
    /// Something follows what the flags announce.
    TrailingBytes,
    /// A flag is set that the basic class does not have.
    UnknownFlag,
    /// The headers are not an acceptable table.
    Headers(TableError),
}

impl fmt::Display for PropertiesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("properties end within the list"),
            Self::TrailingBytes => f.write_str("properties are longer than their flags announce"),
            Self::UnknownFlag => f.write_str("unknown property flag"),
            Self::Headers(error) => write!(f, "headers: {error}"),
        }
    }
}

impl std::error::Error for PropertiesError {}

/// The properties of one message where they lie: flags and list of a content header.
///
/// The getters never fail: of bytes that [`BasicProperties::check`] would refuse, what lies behind the defect is
/// absent. Strings are given as the client sent them, not necessarily UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BasicProperties<'a> {
    bytes: &'a [u8],
}

impl<'a> BasicProperties<'a> {
    /// Looks at nothing yet. For bytes that were checked when they came in.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Makes sure that flags, list and headers are well-formed and end with the last byte; allocates nothing.
    ///
    /// # Errors
    /// If they are not, or if the headers exceed the table limits. RabbitMQ answers with a connection error.
    pub fn check(bytes: &'a [u8], limits: &Limits) -> Result<Self, PropertiesError> {
        // The two commonest lists, none and delivery mode only, need no walk.
        if matches!(bytes, [0, 0] | [0x10, 0, _]) {
            return Ok(Self { bytes });
        }
        let flags = flags(bytes).ok_or(PropertiesError::Truncated)?;
        if flags & flag::UNUSED != 0 {
            return Err(PropertiesError::UnknownFlag);
        }
        let headers = position(bytes, flags, flag::HEADERS).ok_or(PropertiesError::Truncated)?;
        if flags & flag::HEADERS != 0 {
            let table = long(bytes, headers).ok_or(PropertiesError::Truncated)?;
            raw::check(table, limits).map_err(PropertiesError::Headers)?;
        }
        match position(bytes, flags, 0) {
            Some(end) if end == bytes.len() => Ok(Self { bytes }),
            Some(_) => Err(PropertiesError::TrailingBytes),
            None => Err(PropertiesError::Truncated),
        }
    }

    /// Flags and list as they came.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// 1 is transient, 2 persistent; RabbitMQ takes everything but 2 for transient.
    #[inline]
    pub fn delivery_mode(&self) -> Option<u8> {
        match *self.bytes {
            // No properties, or nothing before the delivery mode: no walk.
            [0, 0] => None,
            [first, _, mode, ..] if first & 0xf0 == 0x10 => Some(mode),
            [first, ..] if first & 0x10 == 0 => None,
            _ => self.octet(flag::DELIVERY_MODE),
        }
    }

    /// True for delivery mode 2.
    #[inline]
    pub fn persistent(&self) -> bool {
        self.delivery_mode() == Some(2)
    }

    /// MIME type of the body.
    pub fn content_type(&self) -> Option<&'a [u8]> {
        self.string(flag::CONTENT_TYPE)
    }

    /// MIME encoding of the body.
    pub fn content_encoding(&self) -> Option<&'a [u8]> {
        self.string(flag::CONTENT_ENCODING)
    }

    /// The encoded headers without the length before them, for [`raw::Entries`] or [`Table::decode`].
    pub fn headers(&self) -> Option<&'a [u8]> {
        long(self.bytes, self.find(flag::HEADERS)?)
    }

    /// The decoded headers; empty if there are none.
    ///
    /// # Errors
    /// As [`Table::decode`].
    pub fn headers_table(&self, limits: &Limits) -> Result<Table, TableError> {
        self.headers()
            .map_or_else(|| Ok(Table::new()), |bytes| Table::decode(bytes, limits))
    }

    /// 0 to 9 by the specification; RabbitMQ takes any octet and cuts it at the queue's maximum.
    pub fn priority(&self) -> Option<u8> {
        self.octet(flag::PRIORITY)
    }

    /// What an answer refers to.
    pub fn correlation_id(&self) -> Option<&'a [u8]> {
        self.string(flag::CORRELATION_ID)
    }

    /// The queue that an answer goes to.
    pub fn reply_to(&self) -> Option<&'a [u8]> {
        self.string(flag::REPLY_TO)
    }

    /// Time to live as decimal digits, in milliseconds.
    pub fn expiration(&self) -> Option<&'a [u8]> {
        self.string(flag::EXPIRATION)
    }

    /// The application's identifier.
    pub fn message_id(&self) -> Option<&'a [u8]> {
        self.string(flag::MESSAGE_ID)
    }

    /// Seconds since the Unix epoch.
    pub fn timestamp(&self) -> Option<u64> {
        let at = self.find(flag::TIMESTAMP)?;
        Some(u64::from_be_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// The application's name of the kind of message (AMQP's `type`).
    pub fn kind(&self) -> Option<&'a [u8]> {
        self.string(flag::TYPE)
    }

    /// Who published it; RabbitMQ insists that it is the connection's user.
    pub fn user_id(&self) -> Option<&'a [u8]> {
        self.string(flag::USER_ID)
    }

    /// The application that published it.
    pub fn app_id(&self) -> Option<&'a [u8]> {
        self.string(flag::APP_ID)
    }

    /// Deprecated, and passed through.
    pub fn cluster_id(&self) -> Option<&'a [u8]> {
        self.string(flag::CLUSTER_ID)
    }

    /// Where the property of this flag begins, if it is there.
    fn find(&self, flag: u16) -> Option<usize> {
        let flags = flags(self.bytes)?;
        if flags & flag == 0 {
            None
        } else {
            position(self.bytes, flags, flag)
        }
    }

    fn octet(&self, flag: u16) -> Option<u8> {
        self.bytes.get(self.find(flag)?).copied()
    }

    fn string(&self, flag: u16) -> Option<&'a [u8]> {
        let at = self.find(flag)?;
        let length = *self.bytes.get(at)? as usize;
        self.bytes.get(at + 1..at + 1 + length)
    }

    /// True if there may be an `expiration`. Only the flag is looked at.
    #[inline]
    pub fn has_expiration(&self) -> bool {
        self.has(flag::EXPIRATION)
    }

    /// True if there may be a `reply-to`. Only the flag is looked at.
    #[inline]
    pub fn has_reply_to(&self) -> bool {
        self.has(flag::REPLY_TO)
    }

    /// True if there may be headers, an expiration or a user id. Only the flags are looked at.
    #[inline]
    pub fn has_what_is_checked(&self) -> bool {
        self.has(flag::HEADERS | flag::EXPIRATION | flag::USER_ID)
    }

    /// The properties without one header, everything else as it was; a table that is empty then stays. `None` if there
    /// is no such header, or if these are not properties.
    pub fn without_header(&self, name: &[u8], limits: &Limits) -> Option<Vec<u8>> {
        let mut headers = self.headers_table(limits).ok()?;
        headers.remove(name)?;
        let (flags, before, after) = self.around_headers()?;
        let mut out = Vec::with_capacity(self.bytes.len());
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(before);
        headers.encode_field(&mut out);
        out.extend_from_slice(after);
        Some(out)
    }

    /// The properties with another `reply-to`. `None` if they have none, or if these are not properties.
    pub fn with_reply_to(&self, reply_to: &str) -> Option<Vec<u8>> {
        let (at, old) = (self.find(flag::REPLY_TO)?, self.reply_to()?);
        let mut out = Vec::with_capacity(self.bytes.len() + reply_to.len());
        out.extend_from_slice(&self.bytes[..at]);
        out.push(u8::try_from(reply_to.len()).ok()?);
        out.extend_from_slice(reply_to.as_bytes());
        out.extend_from_slice(&self.bytes[at + 1 + old.len()..]);
        Some(out)
    }

    /// The properties with these headers instead of the ones they had (none if the table is empty), everything
    /// else byte for byte as it was. `None` if these are not properties.
    pub fn with_headers(&self, headers: &Table) -> Option<Vec<u8>> {
        let (flags, before, after) = self.around_headers()?;
        let flags = if headers.is_empty() {
            flags & !flag::HEADERS
        } else {
            flags | flag::HEADERS
        };
        let mut out = Vec::with_capacity(self.bytes.len() + 64);
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(before);
        if !headers.is_empty() {
            headers.encode_field(&mut out);
        }
        out.extend_from_slice(after);
        Some(out)
    }

    /// The properties without their expiration, everything else byte for byte as it was. `None` if these are not
    /// properties.
    pub fn without_expiration(&self) -> Option<Vec<u8>> {
        let flags = flags(self.bytes)?;
        if flags & flag::EXPIRATION == 0 {
            return Some(self.bytes.to_vec());
        }
        let at = position(self.bytes, flags, flag::EXPIRATION)?;
        let after = at + 1 + *self.bytes.get(at)? as usize;
        let mut out = Vec::with_capacity(self.bytes.len());
        out.extend_from_slice(&(flags & !flag::EXPIRATION).to_be_bytes());
        out.extend_from_slice(self.bytes.get(2..at)?);
        out.extend_from_slice(self.bytes.get(after..)?);
        Some(out)
    }

    #[inline]
    fn has(&self, any_of: u16) -> bool {
        flags(self.bytes).is_some_and(|flags| flags & any_of != 0)
    }

    /// The bytes before the headers' place in the list, and those after the headers.
    fn around_headers(&self) -> Option<(u16, &'a [u8], &'a [u8])> {
        let flags = flags(self.bytes)?;
        let at = position(self.bytes, flags, flag::HEADERS)?;
        let mut after = at;
        if flags & flag::HEADERS != 0 {
            after += 4 + long(self.bytes, at)?.len();
        }
        Some((flags, self.bytes.get(2..at)?, self.bytes.get(after..)?))
    }
}

fn flags(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|flags| u16::from_be_bytes(*flags))
}

/// Where in the list the property of `until` begins, or would begin; with 0, where the list ends.
/// `None` if the bytes end before.
fn position(bytes: &[u8], flags: u16, until: u16) -> Option<usize> {
    // Flags fall in the order of the list, so what stands before `until` are the set flags above it.
    let mut before = flags & !flag::UNUSED & !(until | until.wrapping_sub(1));
    if until == 0 {
        before = flags & !flag::UNUSED;
    }
    let mut at = 2;
    while before != 0 {
        let flag = 1 << (15 - before.leading_zeros());
        before &= !flag;
        at += match flag {
            flag::DELIVERY_MODE | flag::PRIORITY => 1,
            flag::TIMESTAMP => 8,
            flag::HEADERS => 4 + u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?) as usize,
            _ => 1 + *bytes.get(at)? as usize,
        };
        if at > bytes.len() {
            return None;
        }
    }
    Some(at)
}

fn long(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length = u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?) as usize;
    bytes.get(at + 4..)?.get(..length)
}

#[cfg(test)]
mod tests;
