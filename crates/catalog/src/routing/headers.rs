//! How a headers exchange finds destinations: what a binding asks for ([`HeaderMatch`]), and an index of all bindings
//! ([`HeaderIndex`]), so that a message's cost does not grow with bindings that it has nothing to do with.
//!
//! Both sides are broken down into [`condition`]s, such as "the header `type` is the text `report`", which a message either
//! fulfils or not.

mod condition;
mod index;
mod paths;

pub(crate) use condition::comparable;
pub(crate) use index::HeaderIndex;

use super::Key;
use crate::binding::{Binding, NamedBinding};
use model::table::{Table, Value};
use std::fmt::Write;

/// A binding's arguments, understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeaderMatch {
    /// One condition is enough.
    any: bool,
    /// In order, each once.
    conditions: Vec<Key>,
}

impl HeaderMatch {
    /// What this binding asks for. Its arguments were checked when it was bound; others would accept no message.
    pub(crate) fn of(binding: &Binding) -> Self {
        let nothing = Self {
            any: true,
            conditions: Vec::new(),
        };
        Self::new(&binding.arguments).unwrap_or(nothing)
    }

    /// Understands a binding's arguments: `x-match` is `all` (default), `any`, `all-with-x` or `any-with-x`; all
    /// others are headers to be compared, those that begin with `x-` only in the latter two. Nothing to compare is fulfilled by
    /// every message for `all`, by none for `any`.
    ///
    /// # Errors
    /// RabbitMQ's text if `x-match` is something else.
    pub(crate) fn new(arguments: &Table) -> Result<Self, String> {
        let mode = match arguments.get("x-match") {
            None => &b"all"[..],
            Some(Value::LongStr(mode)) => mode,
            Some(other) => {
                let kind = other.type_name();
                return Err(format!(
                    "Invalid x-match field type {kind} (value {other}); expected longstr"
                ));
            }
        };
        let (any, with_x) = match mode {
            b"all" => (false, false),
            b"any" => (true, false),
            b"all-with-x" => (false, true),
            b"any-with-x" => (true, true),
            _ => return Err(invalid_mode(mode)),
        };
        let mut conditions: Vec<Key> = arguments
            .iter()
            .filter(|(name, _)| *name != b"x-match" && (with_x || !name.starts_with(b"x-")))
            .map(|(name, value)| condition::wanted(name, value))
            .collect();
        conditions.sort();
        conditions.dedup();
        Ok(Self { any, conditions })
    }
}

/// # Errors
/// See [`HeaderMatch::new`].
pub(crate) fn check_binding(binding: &NamedBinding) -> Result<(), String> {
    HeaderMatch::new(&binding.arguments).map(drop)
}

fn invalid_mode(mode: &[u8]) -> String {
    let mut shown = String::new();
    if mode.iter().all(|byte| (0x20..0x7f).contains(byte)) {
        let _ = write!(shown, "<<\"{}\">>", String::from_utf8_lossy(mode));
    } else {
        let numbers: Vec<String> = mode.iter().map(ToString::to_string).collect();
        let _ = write!(shown, "<<{}>>", numbers.join(","));
    }
    format!("Invalid x-match field value {shown}; expected all, any, all-with-x, or any-with-x")
}

#[cfg(test)]
mod tests;
