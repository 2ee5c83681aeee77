//! The columns of lists: which there are, and where the API has them.

use crate::ask::Ask;
use crate::failure::{Failure, USAGE};
use crate::output::Rows;
use serde_json::Value;

/// A column that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The member of the API's object, as a path with dots; none if only Erlang has such a thing.
    pub member: &'static str,
}

impl Column {
    /// A column that the API names alike.
    pub const fn same(name: &'static str) -> Self {
        Self { name, member: name }
    }

    /// A column that the API has elsewhere.
    pub const fn of(name: &'static str, member: &'static str) -> Self {
        Self { name, member }
    }
}

/// The columns that the words of the command line name, or the usual ones.
///
/// # Errors
/// Some are not known; all of these are named, and the nearest to the first of them.
pub fn chosen(ask: &Ask<'_>, known: &'static [Column], usual: &[&str]) -> Result<Vec<Column>, Failure> {
    // RabbitMQ takes several names in one word, with commas or spaces between them.
    let words = ask.line.words.iter();
    let named: Vec<&str> = words
        .flat_map(|word| word.split([',', ' ']))
        .filter(|name| !name.is_empty())
        .collect();
    let names = if named.is_empty() { usual } else { &named };
    let mut chosen: Vec<Column> = Vec::new();
    let mut unknown = Vec::new();
    for name in names {
        match known.iter().find(|column| column.name == *name) {
            Some(column) if chosen.contains(column) => {}
            Some(column) => chosen.push(*column),
            None => unknown.push(*name),
        }
    }
    let Some(first) = unknown.first() else {
        return Ok(chosen);
    };
    let near = known
        .iter()
        .map(|column| (strsim::damerau_levenshtein(column.name, first), column.name))
        .min()
        .filter(|(distance, _)| *distance <= 3);
    let hint = near
        .map(|(_, name)| format!("; did you mean {name}?"))
        .unwrap_or_default();
    let text = format!("Info key(s) {} are not supported{hint}", unknown.join(","));
    Err(Failure::argument(USAGE, text))
}

/// What the API is to send for these columns, and nothing else.
pub fn wanted(chosen: &[Column]) -> String {
    let members: Vec<&str> = chosen
        .iter()
        .map(|column| column.member)
        .filter(|member| !member.is_empty())
        .collect();
    match members.is_empty() {
        true => "name".into(),
        false => members.join(","),
    }
}

/// The API's objects as rows.
pub fn rows(chosen: &[Column], list: &Value) -> Rows {
    let objects = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let value = |object: &Value, column: &Column| {
        let mut found = Some(object);
        for name in column.member.split('.') {
            found = found.and_then(|object| object.get(name));
        }
        found.cloned().unwrap_or(Value::Null)
    };
    Rows {
        columns: chosen.iter().map(|column| column.name.to_owned()).collect(),
        rows: objects
            .iter()
            .map(|object| chosen.iter().map(|column| value(object, column)).collect())
            .collect(),
        ..Rows::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_found_by_paths_and_what_is_missing_is_null() {
        let columns = [
            Column::of("queue_name", "queue.name"),
            Column::of("pid", ""),
            Column::same("durable"),
        ];
        let list = rows(&columns, &json!([{"queue": {"name": "q"}, "durable": true}]));
        assert_eq!(list.rows, [[json!("q"), Value::Null, json!(true)]]);
        assert_eq!(wanted(&columns), "queue.name,durable");
    }
}
