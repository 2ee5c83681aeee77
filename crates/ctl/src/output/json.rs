//! JSON as RabbitMQ's tools write it: an element a line.

use super::Rows;
use serde_json::{Map, Value, json};

/// Writes one document.
pub fn render(rows: &Rows) -> String {
    let lines: Vec<String> = objects(rows).map(|object| format!("{object}\n")).collect();
    format!("[\n{}]\n", lines.join(","))
}

/// Writes a document a row.
pub fn stream(rows: &Rows) -> String {
    objects(rows).map(|object| format!("{object}\n")).collect()
}

fn objects(rows: &Rows) -> impl Iterator<Item = Value> {
    rows.rows.iter().map(|row| {
        let members = rows.columns.iter().zip(row);
        let members = members.map(|(column, value)| (column.clone(), shown(column, value)));
        Value::Object(members.collect::<Map<_, _>>())
    })
}

/// Arguments are a list of names, types and values; what is not there is an empty text.
fn shown(column: &str, value: &Value) -> Value {
    match value {
        Value::Object(members) if column.ends_with("arguments") || column == "client_properties" => members
            .iter()
            .map(|(name, value)| json!([name, kind(value), value]))
            .collect(),
        Value::Null => Value::String(String::new()),
        other => other.clone(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "void",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "double",
        Value::Number(_) => "long",
        Value::String(_) => "longstr",
        Value::Array(_) => "array",
        Value::Object(_) => "table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_a_line_and_types_with_arguments() {
        let rows = Rows {
            columns: vec!["name".into(), "arguments".into()],
            rows: vec![vec![json!("a"), json!({"x": 1})], vec![Value::Null, json!({})]],
            ..Rows::default()
        };
        let expected =
            "[\n{\"arguments\":[[\"x\",\"long\",1]],\"name\":\"a\"}\n,{\"arguments\":[],\"name\":\"\"}\n]\n";
        assert_eq!(render(&rows), expected);
        assert_eq!(render(&Rows::default()), "[\n]\n");
        assert_eq!(stream(&rows).lines().count(), 2);
    }
}
