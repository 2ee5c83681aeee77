//! Comma-separated values, all of them in quotes.

use super::Rows;
use super::table::cell;
use serde_json::Value;

/// Writes rows, the names of the columns above them even if there are none.
pub fn render(rows: &Rows, headers: bool) -> String {
    let mut text = String::new();
    if headers {
        let names: Vec<String> = rows.columns.iter().map(|name| quoted(name)).collect();
        text.push_str(&names.join(","));
        text.push('\n');
    }
    for row in &rows.rows {
        let values: Vec<String> = rows
            .columns
            .iter()
            .zip(row)
            .map(|(column, value)| match value {
                Value::String(text) => quoted(text),
                other => quoted(&cell(column, other)),
            })
            .collect();
        text.push_str(&values.join(","));
        text.push('\n');
    }
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quotes_are_doubled() {
        let rows = Rows {
            columns: vec!["name".into(), "messages".into()],
            rows: vec![vec![json!("a \"b\",c"), json!(1)]],
            ..Rows::default()
        };
        assert_eq!(
            render(&rows, true),
            "\"name\",\"messages\"\n\"a \"\"b\"\",c\",\"1\"\n"
        );
    }
}
