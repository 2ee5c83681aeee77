//! Headers that are times: `x-delay`, how long a message waits in a delayed exchange, and `x-cache-ttl`, how long a deduplication
//! exchange remembers it.

use crate::LONGEST_MS;
use crate::properties::Properties;
use crate::table::raw::{Entries, RawValue};

/// The header's name.
pub const X_DELAY: &str = "x-delay";

/// The name of the other one; also an argument of the exchange.
pub const X_CACHE_TTL: &str = "x-cache-ttl";

/// How long the message wants to wait, in milliseconds; 0 if not at all. What is no positive integer is no delay, as in
/// RabbitMQ's plugin; what has waited carries its delay as a negative number and so waits nowhere again.
pub fn delay_ms(properties: Properties<'_>) -> u64 {
    let delay = integer(properties, X_DELAY).unwrap_or(0);
    u64::try_from(delay).unwrap_or(0).min(LONGEST_MS)
}

/// How long the message wants its deduplication key to be remembered, in milliseconds; `None` if it does not say, or
/// says nothing that is an integer from 0 on.
pub fn cache_ttl_ms(properties: Properties<'_>) -> Option<u64> {
    u64::try_from(integer(properties, X_CACHE_TTL)?).ok()
}

fn integer(properties: Properties<'_>, header: &str) -> Option<i64> {
    Some(
        match Entries::new(&properties.headers()?).find(header.as_bytes())? {
            RawValue::Byte(it) => i64::from(it),
            RawValue::UnsignedByte(it) => i64::from(it),
            RawValue::Short(it) => i64::from(it),
            RawValue::UnsignedShort(it) => i64::from(it),
            RawValue::SignedInt(it) => i64::from(it),
            RawValue::UnsignedInt(it) => i64::from(it),
            RawValue::Long(it) => it,
            _ => return None,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::PropertiesBuilder;
    use crate::table::{Table, Value};

    fn delay(value: Value) -> u64 {
        let headers = Table::new().with("a", "b").with(X_DELAY, value);
        let message = PropertiesBuilder::new().headers(&headers).encode();
        delay_ms(Properties::amqp091(&message))
    }

    #[test]
    fn integers_of_all_widths_delay_and_nothing_else_does() {
        assert_eq!(delay(Value::Long(5000)), 5000);
        assert_eq!(delay(Value::from(7)), 7);
        assert_eq!(delay(Value::Long(i64::MAX)), LONGEST_MS);
        assert_eq!(delay(Value::Long(-5000)), 0);
        assert_eq!(delay(Value::from("5000")), 0);
        assert_eq!(delay(Value::from(true)), 0);
        assert_eq!(
            delay_ms(Properties::amqp091(&PropertiesBuilder::new().encode())),
            0
        );
    }

    #[test]
    fn a_time_to_be_remembered_is_an_integer_from_zero_on() {
        let time = |value: Value| {
            let headers = Table::new().with(X_CACHE_TTL, value);
            let message = PropertiesBuilder::new().headers(&headers).encode();
            cache_ttl_ms(Properties::amqp091(&message))
        };
        assert_eq!(time(Value::from(0)), Some(0));
        assert_eq!(time(Value::Long(5000)), Some(5000));
        assert_eq!(time(Value::from(-1)), None);
        assert_eq!(time(Value::from("5")), None);
    }
}
