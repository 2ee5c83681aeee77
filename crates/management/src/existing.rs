//! What definitions name and exists already: it stays as it is, and where it differs that is said.

use crate::arguments::boolean;
use crate::import_options::CONVERTED_FROM;
use crate::import_report::{Cause, Outcome, Remark};
use crate::json;
use broker::{Exchange, QueueView};
use serde_json::{Map, Value};

/// A remark on an object whose field has another value.
pub fn kept(field: &str) -> Remark {
    Remark::new(
        Outcome::Kept,
        Cause::Different,
        "it exists with another value and stays as it is",
    )
    .at(field)
}

/// The first setting in which an exchange differs; empty if there is none.
pub fn of_exchange(known: &Exchange, object: &Map<String, Value>) -> String {
    let flag = |name: &str| boolean(object, name).unwrap_or_default();
    let flags = [
        ("durable", known.is_durable()),
        ("auto_delete", known.auto_delete),
        ("internal", known.internal),
    ];
    if object.get("type").and_then(Value::as_str) != Some(known.kind.name()) {
        return "type".into();
    }
    let mut flags = flags.into_iter();
    match flags.find(|(name, known)| flag(name) != *known) {
        Some((name, _)) => name.into(),
        None => difference_of_arguments(&json::table(&known.arguments), object),
    }
}

/// The first setting in which a queue differs; empty if there is none.
pub fn of_queue(known: &QueueView, object: &Map<String, Value>) -> String {
    let flag = |name: &str| boolean(object, name).unwrap_or_default();
    let kind = object
        .get("arguments")
        .and_then(|arguments| arguments.get("x-queue-type"));
    let kind = kind.or_else(|| object.get("type")).and_then(Value::as_str);
    if kind.is_some_and(|kind| kind != known.kind.name()) {
        return "type".into();
    }
    let flags = [
        ("durable", known.is_durable()),
        ("auto_delete", known.auto_delete),
    ];
    let mut flags = flags.into_iter();
    if let Some((name, _)) = flags.find(|(name, known)| flag(name) != *known) {
        return name.into();
    }
    let differs = difference_of_arguments(&json::table(&known.arguments), object);
    match object.get(CONVERTED_FROM).and_then(Value::as_object) {
        // Who declares it so is not let in.
        Some(form) if differs.is_empty() => difference_of_forms(known, form),
        _ => differs,
    }
}

fn difference_of_forms(known: &QueueView, form: &Map<String, Value>) -> String {
    let Some(before) = &known.other_arguments else {
        return CONVERTED_FROM.into();
    };
    match difference_of_arguments(&json::table(before), form) {
        same if same.is_empty() => same,
        field => format!("{CONVERTED_FROM}.{field}"),
    }
}

/// The first argument that is another one; the type of a queue is looked at before.
fn difference_of_arguments(known: &Value, object: &Map<String, Value>) -> String {
    let nothing = Map::new();
    let known = known.as_object().unwrap_or(&nothing);
    let wanted = object
        .get("arguments")
        .and_then(Value::as_object)
        .unwrap_or(&nothing);
    let mut names = known
        .keys()
        .chain(wanted.keys())
        .filter(|name| *name != "x-queue-type");
    let different = names.find(|name| known.get(*name) != wanted.get(*name));
    different
        .map(|name| format!("arguments.{name}"))
        .unwrap_or_default()
}
