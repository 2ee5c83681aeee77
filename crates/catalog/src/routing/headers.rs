//! What a binding to a headers exchange asks for.
//!
//! Values are compared as RabbitMQ 4.3 does: integers of every width are the same if they are the same number, so are
//! both kinds of floating point and both kinds of string, but a number is never a text. Integers never equal floats.

use model::table::{Table, Value, equivalent};
use std::fmt::Write;

/// A binding's arguments, understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeaderMatch {
    any: bool,
    wanted: Vec<(Vec<u8>, Value)>,
}

impl HeaderMatch {
    /// Accepts no message.
    pub(crate) fn nothing() -> Self {
        Self {
            any: true,
            wanted: Vec::new(),
        }
    }

    /// Understands a binding's arguments: `x-match` is `all` (default), `any`, `all-with-x` or `any-with-x`; all
    /// others are headers to be compared, those that begin with `x-` only in the latter two.
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
        let wanted = arguments
            .iter()
            .filter(|(name, _)| *name != b"x-match" && (with_x || !name.starts_with(b"x-")))
            .map(|(name, value)| (name.to_vec(), value.clone()))
            .collect();
        Ok(Self { any, wanted })
    }

    /// True if a message with these headers, ordered by name, goes through. Nothing wanted is fulfilled by every
    /// message for `all`, by none for `any`.
    pub(crate) fn accepts(&self, headers: &[(&[u8], &Value)]) -> bool {
        let mut hits = self.wanted.iter().map(|(name, value)| {
            let at = headers.partition_point(|(known, _)| *known < name.as_slice());
            headers
                .get(at)
                .is_some_and(|(known, found)| *known == *name && is_as_wanted(value, found))
        });
        if self.any {
            hits.any(|hit| hit)
        } else {
            hits.all(|hit| hit)
        }
    }
}

fn is_as_wanted(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        // A void value asks for the header's presence only.
        (Value::Void, _) => true,
        // A message's timestamp is no number to RabbitMQ.
        (wanted, Value::Timestamp(_)) => wanted == found,
        (wanted, found) => equivalent(wanted, found),
    }
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

/// A message's headers, fetched when first asked for.
pub(crate) struct Headers<'a> {
    fetch: Option<&'a mut dyn FnMut() -> Option<Table>>,
    table: Table,
}

impl<'a> Headers<'a> {
    pub(crate) fn new(fetch: &'a mut dyn FnMut() -> Option<Table>) -> Self {
        Self {
            fetch: Some(fetch),
            table: Table::new(),
        }
    }

    /// The headers ordered by name; of a name that comes twice the first one stands first, and counts.
    pub(crate) fn sorted(&mut self) -> Vec<(&[u8], &Value)> {
        if let Some(fetch) = self.fetch.take() {
            self.table = fetch().unwrap_or_default();
        }
        let mut entries: Vec<_> = self.table.iter().collect();
        entries.sort_by_key(|(name, _)| *name);
        entries
    }
}

#[cfg(test)]
mod tests;
