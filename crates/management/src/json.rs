//! AMQP's values as JSON, as RabbitMQ's API writes them.

use broker::Destination;
use model::table::{Table, Value as Field};
use serde_json::{Map, Value};

/// A table as an object. What JSON has no form for is text.
pub fn table(table: &Table) -> Value {
    let mut map = Map::new();
    for (name, value) in table.iter() {
        // The first of a name counts, as in RabbitMQ.
        map.entry(text(name)).or_insert_with(|| self::value(value));
    }
    Value::Object(map)
}

/// Bytes as text: not every name and key is UTF-8.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a destination is called.
pub fn destination_type(destination: &Destination) -> &'static str {
    match destination {
        Destination::Queue(_) => "queue",
        Destination::Exchange(_) => "exchange",
    }
}

/// A value as text: strings without their quotation marks.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value. What JSON has no form for is text.
pub fn value(field: &Field) -> Value {
    match field {
        Field::Bool(it) => (*it).into(),
        Field::Float(it) => f64::from(*it).into(),
        Field::Double(it) => (*it).into(),
        Field::Decimal { scale, value } => (f64::from(*value) / 10f64.powi(i32::from(*scale))).into(),
        Field::LongStr(bytes) | Field::Binary(bytes) => text(bytes).into(),
        Field::Array(items) => items.iter().map(value).collect(),
        Field::Timestamp(it) => (*it).into(),
        Field::UnsignedInt(it) => (*it).into(),
        Field::Table(it) => table(it),
        Field::Void => Value::Null,
        integer => integer.as_integer().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_keep_their_types_as_far_as_json_has_them() {
        let inner = Table::new().with("deep", Field::Void);
        let arguments = Table::new()
            .with("n", 5i32)
            .with("s", "text")
            .with("b", true)
            .with("t", inner)
            .with(
                "a",
                Field::Array(vec![Field::Double(1.5), Field::Decimal { scale: 2, value: 150 }]),
            );
        assert_eq!(
            table(&arguments),
            json!({"n": 5, "s": "text", "b": true, "t": {"deep": null}, "a": [1.5, 1.5]})
        );
    }
}
