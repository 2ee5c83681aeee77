//! What of a message an `x-consistent-hash` exchange hashes.

use super::Envelope;
use super::headers::comparable;
use model::table::{Table, Value};

/// What is hashed. A message without it is like every other one without it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HashOn {
    RoutingKey,
    Header(Box<[u8]>),
    MessageId,
    CorrelationId,
    Timestamp,
}

impl HashOn {
    /// Understands an exchange's arguments.
    ///
    /// # Errors
    /// RabbitMQ's text if they ask for what can't be hashed, or for two things.
    pub(crate) fn new(arguments: &Table) -> Result<Self, String> {
        match (text(arguments, "hash-header")?, text(arguments, "hash-property")?) {
            (None, None) => Ok(Self::RoutingKey),
            (Some(name), None) => Ok(Self::Header(name.into())),
            (None, Some(b"message_id")) => Ok(Self::MessageId),
            (None, Some(b"correlation_id")) => Ok(Self::CorrelationId),
            (None, Some(b"timestamp")) => Ok(Self::Timestamp),
            (None, Some(other)) => Err(format!(
                "Unsupported property: {}",
                String::from_utf8_lossy(other)
            )),
            (Some(_), Some(_)) => Err("hash-header and hash-property are mutually exclusive".into()),
        }
    }

    pub(super) fn hash(&self, envelope: &mut Envelope<'_>) -> u64 {
        match self {
            Self::RoutingKey => hash(envelope.routing_key()),
            Self::Header(name) => hash(&comparable(name, &envelope.headers())),
            Self::MessageId => hash(envelope.properties().message_id().unwrap_or_default()),
            Self::CorrelationId => hash(envelope.properties().correlation_id().unwrap_or_default()),
            Self::Timestamp => {
                let seconds = envelope.properties().timestamp();
                hash(&seconds.map_or(Vec::new(), |seconds| seconds.to_be_bytes().to_vec()))
            }
        }
    }
}

/// RabbitMQ's plugin fails on an argument of another type; here it is refused.
fn text<'a>(arguments: &'a Table, name: &str) -> Result<Option<&'a [u8]>, String> {
    match arguments.get(name) {
        None => Ok(None),
        Some(Value::LongStr(bytes)) => Ok(Some(bytes)),
        Some(other) => Err(format!(
            "Invalid {name} field type {}; expected longstr",
            other.type_name()
        )),
    }
}

/// FNV-1a with a finish that spreads it over all bits. It must never change: after an upgrade a key must lead where it led
/// before.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    mix(model::fnv(bytes))
}

/// The finish of SplitMix64: every bit of the input moves every bit of the result.
pub(super) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_never_change() {
        assert_eq!(hash(b""), 17_665_956_581_633_026_203);
        assert_eq!(hash(b"orders.7"), 3_097_420_611_868_608_729);
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused_in_rabbitmqs_words() {
        let wrong = |arguments: Table| HashOn::new(&arguments).unwrap_err();
        assert_eq!(
            wrong(Table::new().with("hash-property", "app_id")),
            "Unsupported property: app_id"
        );
        assert_eq!(
            wrong(
                Table::new()
                    .with("hash-property", "message_id")
                    .with("hash-header", "k")
            ),
            "hash-header and hash-property are mutually exclusive"
        );
        assert!(wrong(Table::new().with("hash-header", 5)).contains("signedint"));
    }
}
