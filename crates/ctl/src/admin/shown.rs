//! The forms of lists.

use super::options::Options;
use serde_json::Value;

/// How wide the line between two objects of the form `long` is.
const RULE: usize = 80;

/// Objects as a text, in the form that the options ask for.
pub fn list(options: &Options, objects: &[Value], columns: &[String]) -> Result<String, String> {
    let form = options.value("format").unwrap_or("table");
    match form {
        "raw_json" => return Ok(format!("{}\n", Value::from(objects))),
        "pretty_json" => {
            let text = serde_json::to_string_pretty(objects).map_err(|error| error.to_string())?;
            return Ok(format!("{text}\n"));
        }
        _ => {}
    }
    let depth = match options.value("depth") {
        None => 1,
        Some(text) => text
            .parse()
            .map_err(|_| "ERROR: --depth takes a number".to_owned())?,
    };
    let columns = match columns.is_empty() {
        true => all_columns(objects, depth),
        false => columns.to_vec(),
    };
    let mut rows: Vec<Vec<String>> = objects
        .iter()
        .map(|object| columns.iter().map(|column| cell(object, column)).collect())
        .collect();
    if let Some(column) = options.value("sort") {
        let at = columns.iter().position(|known| known == column);
        rows.sort_by(|a, b| {
            at.and_then(|at| Some(a.get(at)?.cmp(b.get(at)?)))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        if options.has("sort-reverse") {
            rows.reverse();
        }
    }
    match form {
        "table" if rows.is_empty() => Ok("No items\n".into()),
        "table" => Ok(table(&columns, &rows)),
        "tsv" => Ok(std::iter::once(&columns)
            .chain(&rows)
            .map(|row| format!("{}\n", row.join("\t")))
            .collect()),
        "long" => Ok(long(&columns, &rows)),
        "kvp" => {
            let pair = |(column, value): (&String, &String)| format!("{column}=\"{value}\"");
            let line = |row: &Vec<String>| columns.iter().zip(row).map(pair).collect::<Vec<_>>().join(" ");
            Ok(rows.iter().map(|row| format!("{}\n", line(row))).collect())
        }
        "bash" => {
            let at = columns.iter().position(|column| column == "name").unwrap_or(0);
            let names: Vec<&str> = rows
                .iter()
                .filter_map(|row| row.get(at))
                .map(String::as_str)
                .collect();
            Ok(format!("{}\n", names.join(" ")))
        }
        other => Err(format!(
            "ERROR: format {other} is not one of table, tsv, long, kvp, bash, raw_json, pretty_json"
        )),
    }
}

/// Every column that an object has, down to a depth; names and virtual hosts first.
fn all_columns(objects: &[Value], depth: usize) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for object in objects {
        gather(object, "", depth, &mut columns);
    }
    columns.sort_by_key(|name| match name.as_str() {
        "name" => 0,
        "vhost" => 1,
        _ => 2,
    });
    columns
}

fn gather(object: &Value, before: &str, depth: usize, columns: &mut Vec<String>) {
    for (name, value) in object.as_object().into_iter().flatten() {
        let path = format!("{before}{name}");
        match value {
            Value::Object(_) if depth > 1 => gather(value, &format!("{path}."), depth - 1, columns),
            Value::Object(_) => {}
            _ if columns.contains(&path) => {}
            _ => columns.push(path),
        }
    }
}

/// A value as a text; the client that this stands in for is a script of Python's, so truth has its words.
fn cell(object: &Value, column: &str) -> String {
    let mut found = Some(object);
    for name in column.split('.') {
        found = found.and_then(|object| object.get(name));
    }
    text(found.unwrap_or(&Value::Null))
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn table(columns: &[String], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let texts = rows.iter().filter_map(|row| row.get(at)).chain(columns.get(at));
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let bar: String = widths
        .iter()
        .map(|width| format!("+{}", "-".repeat(width + 2)))
        .collect();
    let heads = columns
        .iter()
        .zip(&widths)
        .map(|(name, width)| format!("| {name:^width$} "));
    let mut shown = format!("{bar}+\n{}|\n{bar}+\n", heads.collect::<String>());
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(text, width)| format!("| {text:<width$} "));
        shown.push_str(&format!("{}|\n", cells.collect::<String>()));
    }
    shown.push_str(&format!("{bar}+\n"));
    shown
}

fn long(columns: &[String], rows: &[Vec<String>]) -> String {
    let width = columns.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let rule = format!("\n{}\n\n", "-".repeat(RULE));
    let mut shown = rule.clone();
    for row in rows {
        for (name, value) in columns.iter().zip(row) {
            shown.push_str(&format!("{name:>width$}: {value}\n"));
        }
        shown.push_str(&rule);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(options: &[&str], columns: &[&str]) -> String {
        let given: Vec<String> = options.iter().map(|it| (*it).to_owned()).collect();
        let options = Options::read(&given, None).unwrap();
        let objects = [
            json!({"name": "q", "durable": true, "messages": 10, "garbage": {"x": 1}}),
            json!({"name": "longer", "durable": false, "messages": 9, "garbage": {"x": 2}}),
        ];
        let columns: Vec<String> = columns.iter().map(|it| (*it).to_owned()).collect();
        list(&options, &objects, &columns).unwrap()
    }

    #[test]
    fn lists_have_the_forms_of_rabbitmqs_script() {
        assert_eq!(
            shown(&[], &["name", "durable"]),
            "+--------+---------+\n|  name  | durable |\n+--------+---------+\n| q      | True    |\n| longer | False   |\n+--------+---------+\n"
        );
        assert_eq!(
            shown(&["-f", "tsv"], &["name", "messages"]),
            "name\tmessages\nq\t10\nlonger\t9\n"
        );
        assert_eq!(shown(&["-f", "bash"], &["name"]), "q longer\n");
        assert_eq!(
            shown(&["-f", "kvp", "-S", "name"], &["name"]),
            "name=\"longer\"\nname=\"q\"\n"
        );
        assert!(shown(&["-d", "2"], &[]).contains("garbage.x") && !shown(&[], &[]).contains("garbage"));
    }
}
