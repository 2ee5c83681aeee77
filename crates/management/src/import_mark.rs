//! The mark of the definitions that were imported last at a start: a digest of them, kept as a global parameter of
//! RabbitMQ's name, so that it is as durable as what was imported and goes with it. Definitions neither have it nor set
//! it.

use crate::json;
use crate::parameters::make_global;
use broker::{Administrator, View};
use serde_json::Value;

/// The global parameter's name, RabbitMQ's own.
const NAME: &str = "imported_definition_hash_value";

/// True for the name of the parameter that holds the mark.
pub fn is_mark(name: &str) -> bool {
    name == NAME
}

/// The mark of the last import that left one.
pub fn imported_mark(view: &View) -> Option<String> {
    match json::value(view.global(NAME)?) {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Keeps a mark, as durably as whoever asks makes other changes.
///
/// # Errors
/// It is refused; the text says why.
pub fn put_mark(by: &Administrator<'_>, mark: &str) -> Result<(), String> {
    make_global(by, NAME, &mark.into()).map_err(|refusal| match refusal.body() {
        Some(body) => body["reason"].to_string(),
        None => "the mark of the import is refused".to_owned(),
    })
}
