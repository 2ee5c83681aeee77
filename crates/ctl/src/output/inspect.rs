//! Values as Elixir's terms, which RabbitMQ's tools are written in.

use super::Rows;
use serde_json::Value;

/// Rows as keyword lists.
pub fn rows(rows: &Rows) -> String {
    let lists = rows.rows.iter().map(|row| {
        let pairs = rows.columns.iter().zip(row);
        let pairs: Vec<String> = pairs.map(|(name, it)| format!("{name}: {}", value(it))).collect();
        format!("[{}]", pairs.join(", "))
    });
    format!("[{}]\n", lists.collect::<Vec<_>>().join(",\n "))
}

/// One value.
pub fn value(it: &Value) -> String {
    match it {
        Value::Null => "nil".into(),
        // The escapes of JSON are Elixir's, too.
        Value::String(_) | Value::Bool(_) | Value::Number(_) => it.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let pairs = members
                .iter()
                .map(|(name, it)| format!("{} => {}", Value::from(name.as_str()), value(it)));
            format!("%{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_as_elixir_does() {
        assert_eq!(
            value(&json!({"a": [1, true, null, "x\"y"]})),
            r#"%{"a" => [1, true, nil, "x\"y"]}"#
        );
        let list = Rows {
            columns: vec!["name".into(), "messages".into()],
            rows: vec![vec![json!("q"), json!(0)]],
            ..Rows::default()
        };
        assert_eq!(rows(&list), "[[name: \"q\", messages: 0]]\n");
    }
}
