//! Values as Erlang's terms, for scripts that read them.

use super::Rows;
use serde_json::{Map, Value};

/// Rows as a list of lists of pairs.
pub fn rows(rows: &Rows) -> String {
    let lists: Vec<String> = rows
        .rows
        .iter()
        .map(|row| {
            let pairs = rows.columns.iter().zip(row);
            let pairs: Vec<String> = pairs
                .map(|(name, value)| format!("{{{name},{}}}", term(value)))
                .collect();
            format!("[{}]", pairs.join(","))
        })
        .collect();
    format!("[{}]\n", lists.join(",\n "))
}

/// One value.
pub fn term(value: &Value) -> String {
    match value {
        Value::Null => "undefined".into(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => binary(text),
        Value::Array(items) => format!("[{}]", items.iter().map(term).collect::<Vec<_>>().join(",")),
        Value::Object(members) => map(members),
    }
}

/// A map.
pub fn map(members: &Map<String, Value>) -> String {
    let pairs: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("{} => {}", binary(name), term(value)))
        .collect();
    format!("#{{{}}}", pairs.join(","))
}

/// Arguments as tables of RabbitMQ's tools show them: pairs, text in plain quotes.
pub fn arguments(members: &Map<String, Value>) -> String {
    let value = |value: &Value| match value {
        Value::String(text) => format!("\"{}\"", escaped(text)),
        other => term(other),
    };
    let pairs: Vec<String> = members
        .iter()
        .map(|(name, found)| format!("{{\"{}\",{}}}", escaped(name), value(found)))
        .collect();
    format!("[{}]", pairs.join(","))
}

fn binary(text: &str) -> String {
    match text.is_ascii() {
        true => format!("<<\"{}\">>", escaped(text)),
        false => format!("<<\"{}\"/utf8>>", escaped(text)),
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn terms_can_be_read_by_erlang() {
        assert_eq!(
            term(&json!({"a": [1, true, null, "x\"y"], "ü": 1.5})),
            "#{<<\"a\">> => [1,true,undefined,<<\"x\\\"y\">>],<<\"ü\"/utf8>> => 1.5}"
        );
        let listed = Rows {
            columns: vec!["name".into()],
            rows: vec![vec![json!("a")], vec![json!("b")]],
            ..Rows::default()
        };
        assert_eq!(rows(&listed), "[[{name,<<\"a\">>}],\n [{name,<<\"b\">>}]]\n");
    }
}
