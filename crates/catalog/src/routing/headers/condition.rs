//! Conditions on headers as byte strings that are equal exactly if RabbitMQ 4.3 takes the headers for the same.
//!
//! It takes integers of every width for the same if they are the same number, so also both kinds of floating point and both
//! kinds of string, but a number is never a text, and integers never equal floats. A void value asks only that the header
//! is there. A binding's timestamp is fulfilled by an integer, too; a binding's integer is not fulfilled by a timestamp.

use crate::routing::Key;
use model::Limits;
use model::table::{Entries, RawValue, Value};

/// What kind of condition it is: the byte behind the name.
mod kind {
    pub const EXISTS: u8 = b'V';
    pub const INTEGER: u8 = b'l';
    pub const TIMESTAMP: u8 = b'T';
    pub const FLOAT: u8 = b'd';
    pub const TEXT: u8 = b'S';
    /// Anything else, in its encoded form.
    pub const SAME: u8 = b'=';
}

/// A condition on a header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its value is the wanted one.
    Value,
    /// It is there.
    Exists,
    /// A timestamp is wanted, so that an integer does as well.
    Timestamp,
}

/// What a binding's argument asks for.
pub(super) fn wanted(name: &[u8], value: &Value) -> Key {
    let mut out = Vec::new();
    begin(name, &mut out);
    match value {
        Value::Void => out.push(kind::EXISTS),
        Value::LongStr(bytes) | Value::Binary(bytes) => text(bytes, &mut out),
        other => plain(other, &mut out),
    }
    Key::new(&out)
}

/// The header's name.
pub(super) fn name(condition: &Key) -> &[u8] {
    let bytes = condition.bytes();
    &bytes[1..=usize::from(bytes[0])]
}

/// What kind of condition it is.
pub(super) fn kind_of(condition: &Key) -> Kind {
    let bytes = condition.bytes();
    match bytes[1 + usize::from(bytes[0])] {
        kind::EXISTS => Kind::Exists,
        kind::TIMESTAMP => Kind::Timestamp,
        _ => Kind::Value,
    }
}

/// Appends the condition of this kind that a message's header fulfils, if there is one.
pub(super) fn fulfilled(kind: Kind, name: &[u8], value: RawValue<'_>, out: &mut Vec<u8>) -> bool {
    begin(name, out);
    match (kind, value) {
        (Kind::Exists, _) => out.push(kind::EXISTS),
        (Kind::Value, RawValue::LongStr(bytes) | RawValue::Binary(bytes)) => text(bytes, out),
        (Kind::Value, value) => match built(value) {
            Some(value) => plain(&value, out),
            None => return false,
        },
        (Kind::Timestamp, value) => match built(value)
            .and_then(|value| value.as_integer())
            .map(u64::try_from)
        {
            Some(Ok(seconds)) => timestamp(seconds, out),
            _ => return false,
        },
    }
    true
}

/// A header's value as bytes that are equal for equal values; empty if the message has no such header.
pub(crate) fn comparable(name: &[u8], headers: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match Entries::new(headers).find(name) {
        Some(value) if fulfilled(Kind::Value, b"", value, &mut bytes) => bytes,
        _ => Vec::new(),
    }
}

fn begin(name: &[u8], out: &mut Vec<u8>) {
    // Names are short strings on the wire; the encoder of tables cuts those that are not.
    let name = &name[..name.len().min(255)];
    out.push(name.len() as u8);
    out.extend_from_slice(name);
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind::TEXT);
    out.extend_from_slice(bytes);
}

fn timestamp(seconds: u64, out: &mut Vec<u8>) {
    out.push(kind::TIMESTAMP);
    out.extend_from_slice(&seconds.to_be_bytes());
}

/// Everything but texts.
fn plain(value: &Value, out: &mut Vec<u8>) {
    let float = match value {
        Value::Timestamp(seconds) => return timestamp(*seconds, out),
        Value::Float(number) => f64::from(*number),
        Value::Double(number) => *number,
        // No number: never equal to any but itself, bit by bit.
        _ => f64::NAN,
    };
    if let Some(number) = value.as_integer() {
        out.push(kind::INTEGER);
        out.extend_from_slice(&number.to_be_bytes());
    } else if float.is_nan() {
        out.push(kind::SAME);
        value.encode(out);
    } else {
        out.push(kind::FLOAT);
        // Both zeros are the same number.
        let bits = if float == 0.0 { 0 } else { float.to_bits() };
        out.extend_from_slice(&bits.to_be_bytes());
    }
}

/// A message's value, built. Texts are compared where they lie; what nests was checked when it came in.
fn built(value: RawValue<'_>) -> Option<Value> {
    value.decode(&Limits::STORED).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::table::Table;

    fn is_as_wanted(wanted_value: Value, found: Value) -> bool {
        let condition = wanted(b"name", &wanted_value);
        assert_eq!(name(&condition), b"name");
        let mut table = Vec::new();
        Table::new().with("name", found).encode(&mut table);
        let (_, raw) = model::table::Entries::new(&table).next().unwrap().unwrap();
        [Kind::Value, Kind::Exists, Kind::Timestamp]
            .into_iter()
            .any(|kind| {
                let mut out = Vec::new();
                fulfilled(kind, b"name", raw, &mut out) && out == condition.bytes()
            })
    }

    #[test]
    fn numbers_and_texts_are_compared_as_rabbitmq_does() {
        assert!(is_as_wanted(Value::Byte(7), Value::Long(7)));
        assert!(!is_as_wanted(Value::Byte(7), Value::LongStr(b"7".to_vec())));
        assert!(!is_as_wanted(Value::Long(1), Value::Double(1.0)));
        assert!(is_as_wanted(Value::Float(0.5), Value::Double(0.5)));
        assert!(is_as_wanted(Value::Float(0.0), Value::Double(-0.0)));
        assert!(is_as_wanted(
            Value::LongStr(b"a".to_vec()),
            Value::Binary(b"a".to_vec())
        ));
        assert!(!is_as_wanted(Value::Bool(true), Value::Byte(1)));
        let nested = |number: Value| Value::Array(vec![number]);
        assert!(!is_as_wanted(nested(Value::Byte(1)), nested(Value::Long(1))));
        assert!(is_as_wanted(nested(Value::Long(1)), nested(Value::Long(1))));
    }

    #[test]
    fn an_integer_does_where_a_timestamp_is_wanted_but_not_the_other_way_round() {
        assert!(is_as_wanted(Value::Timestamp(9), Value::Timestamp(9)));
        assert!(is_as_wanted(Value::Timestamp(9), Value::SignedInt(9)));
        assert!(!is_as_wanted(Value::Timestamp(9), Value::SignedInt(-9)));
        assert!(!is_as_wanted(Value::Long(9), Value::Timestamp(9)));
    }

    #[test]
    fn a_void_value_asks_for_the_header_only() {
        assert!(is_as_wanted(Value::Void, Value::LongStr(b"anything".to_vec())));
        assert!(is_as_wanted(Value::Void, Value::Void));
        assert!(!is_as_wanted(Value::Bool(true), Value::Void));
    }
}
