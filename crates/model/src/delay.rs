//! The header `x-delay`: how long a message waits in a delayed exchange.

use crate::LONGEST_MS;
use crate::properties::Properties;
use crate::table::raw::{Entries, RawValue};

/// The header's name.
pub const X_DELAY: &str = "x-delay";

/// How long the message wants to wait, in milliseconds; 0 if not at all. What is no positive integer is no delay, as in
/// RabbitMQ's plugin; what has waited carries its delay as a negative number and so waits nowhere again.
pub fn delay_ms(properties: Properties<'_>) -> u64 {
    let Some(headers) = properties.headers() else {
        return 0;
    };
    let delay = match Entries::new(headers).find(X_DELAY.as_bytes()) {
        Some(RawValue::Byte(it)) => i64::from(it),
        Some(RawValue::UnsignedByte(it)) => i64::from(it),
        Some(RawValue::Short(it)) => i64::from(it),
        Some(RawValue::UnsignedShort(it)) => i64::from(it),
        Some(RawValue::SignedInt(it)) => i64::from(it),
        Some(RawValue::UnsignedInt(it)) => i64::from(it),
        Some(RawValue::Long(it)) => it,
        _ => 0,
    };
    u64::try_from(delay).unwrap_or(0).min(LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::PropertiesBuilder;
    use crate::table::{Table, Value};

    fn delay(value: Value) -> u64 {
        let headers = Table::new().with("a", "b").with(X_DELAY, value);
        let message = PropertiesBuilder::new().headers(&headers).encode();
        delay_ms(Properties::new(&message))
    }

    #[test]
    fn integers_of_all_widths_delay_and_nothing_else_does() {
        assert_eq!(delay(Value::Long(5000)), 5000);
        assert_eq!(delay(Value::from(7)), 7);
        assert_eq!(delay(Value::Long(i64::MAX)), LONGEST_MS);
        assert_eq!(delay(Value::Long(-5000)), 0);
        assert_eq!(delay(Value::from("5000")), 0);
        assert_eq!(delay(Value::from(true)), 0);
        assert_eq!(delay_ms(Properties::new(&PropertiesBuilder::new().encode())), 0);
    }
}
