//! Members of JSON bodies as the broker wants them.

use crate::refusal::Refusal;
use model::Limits;
use model::table::{Table, Value as Field};
use serde_json::{Map, Value, json};

/// A member that is true or false, also as a word; false if it is missing.
///
/// # Errors
/// It is something else.
pub fn boolean(body: &Map<String, Value>, name: &str) -> Result<bool, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(it)) => Ok(*it),
        Some(Value::String(it)) if it == "true" => Ok(true),
        Some(Value::String(it)) if it == "false" => Ok(false),
        Some(other) => Err(Refusal::BadRequest(json!(["not_boolean", other]))),
    }
}

/// A member that is text; `None` if it is missing.
///
/// # Errors
/// It is something else.
pub fn text<'a>(body: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::bad_request(format!("{name} is not text"))),
    }
}

/// A member that is an object, as a field table; empty if it is missing.
///
/// # Errors
/// It is something else, or beyond the limits of tables.
pub fn table(body: &Map<String, Value>, name: &str, limits: &Limits) -> Result<Table, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(Table::new()),
        Some(Value::Object(map)) => {
            let table = fields(map);
            let mut bytes = Vec::new();
            table.encode(&mut bytes);
            // What clients could not send over AMQP does not come in here either.
            Table::decode(&bytes, limits).map_err(|error| Refusal::bad_request(format!("{name}: {error}")))
        }
        // RabbitMQ writes an empty object as an empty list in places.
        Some(Value::Array(items)) if items.is_empty() => Ok(Table::new()),
        Some(_) => Err(Refusal::bad_request(format!("{name} is not an object"))),
    }
}

fn fields(map: &Map<String, Value>) -> Table {
    let mut table = Table::new();
    for (name, value) in map {
        table.push(name.as_bytes(), field(value));
    }
    table
}

/// JSON as the broker's values.
pub fn field(value: &Value) -> Field {
    match value {
        Value::Null => Field::Void,
        Value::Bool(it) => Field::Bool(*it),
        Value::Number(it) => match it.as_i64() {
            Some(whole) => Field::Long(whole),
            None => Field::Double(it.as_f64().unwrap_or_default()),
        },
        Value::String(it) => Field::LongStr(it.as_bytes().to_vec()),
        Value::Array(items) => Field::Array(items.iter().map(field).collect()),
        Value::Object(map) => Field::Table(fields(map)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn json_becomes_the_types_that_rabbitmq_makes_of_it() {
        let body = body(
            json!({"arguments": {"n": 5, "f": 1.5, "b": true, "s": "x", "a": [1, null], "t": {"k": "v"}}}),
        );
        let found = table(&body, "arguments", &Limits::default()).unwrap();
        assert_eq!(found.get("n"), Some(&Field::Long(5)));
        assert_eq!(found.get("f"), Some(&Field::Double(1.5)));
        assert_eq!(
            found.get("a"),
            Some(&Field::Array(vec![Field::Long(1), Field::Void]))
        );
        assert_eq!(found.get("t").and_then(Field::as_table).map(Table::len), Some(1));
        assert_eq!(table(&body, "missing", &Limits::default()), Ok(Table::new()));
    }

    #[test]
    fn what_amqp_could_not_carry_is_refused() {
        let mut deep = json!({});
        for _ in 0..60 {
            deep = json!({ "k": deep });
        }
        assert!(
            table(
                &body(json!({ "arguments": deep })),
                "arguments",
                &Limits::default()
            )
            .is_err()
        );
        assert!(table(&body(json!({"arguments": 3})), "arguments", &Limits::default()).is_err());
        assert_eq!(
            boolean(&body(json!({"durable": "yes"})), "durable")
                .unwrap_err()
                .body(),
            Some(json!({"error": "bad_request", "reason": ["not_boolean", "yes"]}))
        );
        assert_eq!(boolean(&body(json!({"durable": "true"})), "durable"), Ok(true));
    }
}
