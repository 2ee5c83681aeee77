//! The header `x-deduplication-header`: which messages are the same.

use crate::properties::Properties;
use crate::table::raw::{Entries, RawValue};
use sha2::{Digest, Sha256};

/// The header's name.
pub const X_DEDUPLICATION_HEADER: &str = "x-deduplication-header";

/// What two messages have in common that are the same: a digest of the header's value, so that it costs 16 bytes to
/// remember one and nobody can make another value with the same digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeduplicationKey(pub u128);

impl DeduplicationKey {
    /// The key of a message; `None` if it has no such header, or one without a value: then it is like no other.
    pub fn of(properties: Properties<'_>) -> Option<Self> {
        let headers = properties.headers()?;
        let value = Entries::new(&headers).find(X_DEDUPLICATION_HEADER.as_bytes())?;
        let integer = |it: i64| Self::digest(b'i', &it.to_be_bytes());
        Some(match value {
            RawValue::Void => return None,
            RawValue::LongStr(bytes) | RawValue::Binary(bytes) => Self::digest(b's', bytes),
            RawValue::Bool(it) => Self::digest(b'b', &[u8::from(it)]),
            // Clients choose the width of an integer as they like.
            RawValue::Byte(it) => integer(it.into()),
            RawValue::UnsignedByte(it) => integer(it.into()),
            RawValue::Short(it) => integer(it.into()),
            RawValue::UnsignedShort(it) => integer(it.into()),
            RawValue::SignedInt(it) => integer(it.into()),
            RawValue::UnsignedInt(it) => integer(it.into()),
            RawValue::Long(it) => integer(it),
            RawValue::Float(it) => Self::digest(b'd', &f64::from(it).to_be_bytes()),
            RawValue::Double(it) => Self::digest(b'd', &it.to_be_bytes()),
            RawValue::Decimal { scale, value } => {
                let number = u64::from(scale) << 32 | u64::from(value);
                Self::digest(b'm', &number.to_be_bytes())
            }
            RawValue::Timestamp(it) => Self::digest(b't', &it.to_be_bytes()),
            RawValue::Array(bytes) => Self::digest(b'a', bytes),
            RawValue::Table(bytes) => Self::digest(b'f', bytes),
        })
    }

    /// True if the message has one; costs less than to find it out.
    pub fn is_in(properties: Properties<'_>) -> bool {
        let Some(headers) = properties.headers() else {
            return false;
        };
        let value = Entries::new(&headers).find(X_DEDUPLICATION_HEADER.as_bytes());
        value.is_some_and(|it| !matches!(it, RawValue::Void))
    }

    fn digest(kind: u8, bytes: &[u8]) -> Self {
        let digest = Sha256::new().chain_update([kind]).chain_update(bytes).finalize();
        let head = digest.iter().take(16);
        Self(head.fold(0, |key, byte| key << 8 | u128::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::PropertiesBuilder;
    use crate::table::{Table, Value};

    fn key(value: impl Into<Value>) -> Option<DeduplicationKey> {
        let headers = Table::new().with("a", "b").with(X_DEDUPLICATION_HEADER, value);
        let message = PropertiesBuilder::new().headers(&headers).encode();
        DeduplicationKey::of(Properties::amqp091(&message))
    }

    #[test]
    fn a_message_without_the_header_is_like_no_other() {
        let plain = PropertiesBuilder::new().encode();
        assert_eq!(DeduplicationKey::of(Properties::amqp091(&plain)), None);
        assert_eq!(key(Value::Void), None);
        assert!(!DeduplicationKey::is_in(Properties::amqp091(&plain)));
    }

    #[test]
    fn equal_values_have_equal_keys_and_a_number_is_no_text() {
        assert!(key("5").is_some());
        assert_eq!(key("5"), key("5"));
        assert_eq!(key(5_i32), key(5_i64));
        assert_ne!(key("5"), key(5_i32));
        assert_ne!(key("5"), key("6"));
    }
}
