//! AMQP's values as JSON, as RabbitMQ's API writes them.

use model::table::{Table, Value as Field};
use serde_json::{Map, Value};

/// A table as an object. What JSON has no form for is text.
pub fn table(table: &Table) -> Value {
    let mut map = Map::new();
    for (name, value) in table.iter() {
        // The first of a name counts, as in RabbitMQ.
        map.entry(text(name)).or_insert_with(|| field(value));
    }
    Value::Object(map)
}

/// Bytes as text: not every name and key is UTF-8.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn field(value: &Field) -> Value {
    match value {
        Field::Bool(it) => (*it).into(),
        Field::Float(it) => f64::from(*it).into(),
        Field::Double(it) => (*it).into(),
        Field::Decimal { scale, value } => (f64::from(*value) / 10f64.powi(i32::from(*scale))).into(),
        Field::LongStr(bytes) | Field::Binary(bytes) => text(bytes).into(),
        Field::Array(items) => items.iter().map(field).collect(),
        Field::Timestamp(it) => (*it).into(),
        Field::UnsignedInt(it) => (*it).into(),
        Field::Table(it) => table(it),
        Field::Void => Value::Null,
        integer => integer.as_integer().into(),
    }
}

/// Adds a member with a rate beside it, as statistics have them: a number and `NAME_details`.
pub fn counted(map: &mut Map<String, Value>, name: &str, value: u64, rate: f64) {
    map.insert(name.into(), value.into());
    map.insert(format!("{name}_details"), serde_json::json!({ "rate": rate }));
}

/// What RabbitMQ tells of publishers, and of consumers: if there was something of a kind, all of it is told.
const KINDS: [&[&str]; 2] = [
    &["publish", "confirm", "return_unroutable", "drop_unroutable"],
    &[
        "deliver",
        "deliver_no_ack",
        "get",
        "get_no_ack",
        "get_empty",
        "ack",
        "redeliver",
    ],
];

/// RabbitMQ's `message_stats` of these numbers; `None` if nothing happened.
pub fn message_stats(counts: &[(&str, u64)]) -> Option<Value> {
    let of = |name: &&str| {
        counts
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, count)| *count)
    };
    let mut map = Map::new();
    for kind in KINDS {
        let numbers = || kind.iter().filter_map(|name| Some((*name, of(name)?)));
        if numbers().all(|(_, count)| count == 0) {
            continue;
        }
        numbers().for_each(|(name, count)| counted(&mut map, name, count, 0.0));
        let handed = ["deliver", "deliver_no_ack", "get", "get_no_ack"];
        if kind.contains(&"deliver") {
            counted(&mut map, "deliver_get", handed.iter().filter_map(of).sum(), 0.0);
        }
    }
    (!map.is_empty()).then_some(Value::Object(map))
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
