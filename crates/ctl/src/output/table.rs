//! Lines with tabs between the columns, RabbitMQ's default.

use super::Rows;
use super::term::{arguments, map, term};
use serde_json::{Map, Value};

/// Writes rows; the names of the columns stand above them if there are any rows.
pub fn render(rows: &Rows, headers: bool) -> String {
    let mut text = String::new();
    if headers && !rows.rows.is_empty() && rows.columns.len() > 1 {
        text.push_str(&rows.columns.join("\t"));
        text.push('\n');
    } else if headers && !rows.rows.is_empty() {
        text.push_str(rows.columns.first().map_or("", String::as_str));
        text.push('\n');
    }
    for row in &rows.rows {
        for (at, value) in row.iter().enumerate() {
            if at > 0 {
                text.push('\t');
            }
            text.push_str(&cell(rows.columns.get(at).map_or("", String::as_str), value));
        }
        text.push('\n');
    }
    text
}

/// A value as people read it. What could move a terminal's cursor is written as an octal number.
pub fn cell(column: &str, value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if column.ends_with("arguments") || column == "client_properties" => {
            arguments(members)
        }
        Value::Object(members) if column == "effective_policy_definition" && !members.is_empty() => {
            policy(members)
        }
        Value::Object(members) => map(members),
        other => term(other),
    };
    match text.chars().any(char::is_control) {
        false => text,
        true => text.chars().map(visible).collect(),
    }
}

/// What policies say of a queue: pairs, in which only the keys are written as terms.
fn policy(members: &Map<String, Value>) -> String {
    let pairs: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("{{{}, {}}}", term(&key.as_str().into()), cell(key, value)))
        .collect();
    format!("[{}]", pairs.join(", "))
}

fn visible(c: char) -> String {
    match c.is_control() {
        true => format!("\\{:03o}", u32::from(c)),
        false => c.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_shown_as_rabbitmq_shows_them() {
        let of = |column: &str, value: Value| cell(column, &value);
        assert_eq!(of("tags", json!(["a", "b"])), "[a, b]");
        assert_eq!(of("tags", json!([])), "[]");
        assert_eq!(of("durable", json!(true)), "true");
        assert_eq!(of("policy", Value::Null), "");
        assert_eq!(of("arguments", json!({})), "[]");
        assert_eq!(
            of("arguments", json!({"x-max-length": 5, "x-overflow": "drop"})),
            r#"[{"x-max-length",5},{"x-overflow","drop"}]"#
        );
        assert_eq!(of("effective_policy_definition", json!({})), "#{}");
        assert_eq!(
            of(
                "effective_policy_definition",
                json!({"max-length": 1, "queue-leader-locator": "balanced"})
            ),
            r#"[{<<"max-length">>, 1}, {<<"queue-leader-locator">>, balanced}]"#
        );
        assert_eq!(of("name", json!("a\u{1b}[2Jb")), "a\\033[2Jb");
    }

    #[test]
    fn an_empty_list_has_no_header() {
        let mut rows = Rows {
            columns: vec!["name".into(), "messages".into()],
            ..Rows::default()
        };
        assert_eq!(render(&rows, true), "");
        rows.rows.push(vec![json!("q"), json!(1)]);
        assert_eq!(render(&rows, true), "name\tmessages\nq\t1\n");
        assert_eq!(render(&rows, false), "q\t1\n");
    }
}
