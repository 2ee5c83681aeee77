//! What a policy's definition may say, and what two of them say together. Texts are RabbitMQ 4.3's.

use super::mirrors;
use crate::arguments::policy_key::{KeyRule, PolicyKey, key};
use crate::arguments::settings::lower_limit;
use crate::arguments::table::ARGUMENTS;
use crate::{PolicyKind, Refusal};
use model::table::{Table, Value};

/// The keys that say nothing of queues' arguments; those that do stand in the table of arguments.
const KEYS: &[PolicyKey] = &[
    key("alternate-exchange", KeyRule::Text, "alternate exchange name"),
    // Checked together, by `mirrors::check`.
    key("ha-mode", KeyRule::Anything, ""),
    key("ha-params", KeyRule::Anything, ""),
    key("ha-sync-mode", KeyRule::Anything, ""),
    key("ha-sync-batch-size", KeyRule::Anything, ""),
    key("ha-promote-on-shutdown", KeyRule::Anything, ""),
    key("ha-promote-on-failure", KeyRule::Anything, ""),
];

/// The keys that say the same as arguments.
fn keys_of_arguments() -> impl Iterator<Item = &'static PolicyKey> {
    let arguments = ARGUMENTS.iter();
    arguments.filter_map(|argument| argument.policy.as_ref())
}

/// True for keys that are kept and take effect in a cluster only: mirrored queues of RabbitMQ before 4.0.
pub fn is_for_clusters(key: &[u8]) -> bool {
    key.starts_with(b"ha-")
}

/// Checks a definition; returns it by rising key.
///
/// # Errors
/// [`Refusal::InvalidPolicy`] with RabbitMQ's text.
pub fn check(definition: Table, kind: PolicyKind) -> Result<Table, Refusal> {
    let wrong = |text: String| Err(Refusal::InvalidPolicy { text });
    if definition.is_empty() {
        return wrong("no policy provided".into());
    }
    let definition = definition.sorted();
    let known = |name: &[u8]| {
        let mut keys = KEYS.iter().chain(keys_of_arguments());
        keys.find(|key| key.name.as_bytes() == name && (key.operators || kind == PolicyKind::User))
    };
    let strange = |name: &[u8]| known(name).is_none() && name != b"queue-master-locator";
    let unknown: Vec<String> = definition
        .iter()
        .filter(|(name, _)| strange(name))
        .map(|(name, value)| format!("{{{},{}}}", text(name), term(value)))
        .collect();
    if !unknown.is_empty() {
        return wrong(format!(
            "[{}] are not recognised policy settings",
            unknown.join(",")
        ));
    }
    for (name, value) in definition.iter() {
        match known(name) {
            Some(key) if !key.rule.allows(value) => {
                return wrong(format!("{} is not a valid {}", term(value), key.wanted));
            }
            Some(_) => {}
            // Of RabbitMQ 3, without effect; 4.3 permits it no more.
            None if mirrors::is_locator(value) => {}
            None => return wrong(format!("{} invalid queue-master-locator value", term(value))),
        }
    }
    match mirrors::check(&definition).and_then(|()| check_retries(&definition)) {
        Ok(()) => Ok(definition),
        Err(text) => wrong(text),
    }
}

/// What the keys of delayed retries ask of each other.
fn check_retries(definition: &Table) -> Result<(), String> {
    let number = |name: &str| definition.get(name).and_then(Value::as_integer);
    let kind = definition.get("delayed-retry-type").and_then(Value::as_str);
    match (number("delayed-retry-min"), number("delayed-retry-max")) {
        (None, _) if kind.is_some_and(|kind| kind != "disabled") => Err(format!(
            "delayed-retry-min is required when delayed-retry-type is {}",
            kind.unwrap_or_default()
        )),
        (Some(min), Some(max)) if max < min => Err(format!(
            "delayed-retry-max ({max}) must not be smaller than delayed-retry-min ({min})"
        )),
        _ => Ok(()),
    }
}

/// What a user's and an operator's definition say together: of numbers the lower, else the operator's (RabbitMQ). `None` if
/// there is neither.
pub fn merge(user: Option<&Table>, operator: Option<&Table>) -> Option<Table> {
    let (user, operator) = match (user, operator) {
        (Some(user), Some(operator)) => (user, operator),
        (one, other) => return one.or(other).cloned(),
    };
    let mut merged = user.clone();
    for (name, bound) in operator.iter() {
        let value = match merged.get(name) {
            Some(value) => lower(name, value, bound),
            None => bound.clone(),
        };
        merged.insert(name, value);
    }
    Some(merged.sorted())
}

fn lower(name: &[u8], value: &Value, bound: &Value) -> Value {
    let (Some(a), Some(b)) = (value.as_integer(), bound.as_integer()) else {
        return bound.clone();
    };
    let mut keys = keys_of_arguments();
    match keys.find(|key| key.name.as_bytes() == name).map(|key| &key.rule) {
        Some(KeyRule::Version) => bound.clone(),
        Some(KeyRule::AtLeast(_)) => a.max(b).into(),
        Some(KeyRule::Limit) => lower_limit(a, b).into(),
        _ => a.min(b).into(),
    }
}

/// A value as Erlang prints it.
pub fn term(value: &Value) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    match value {
        Value::Bool(it) => it.to_string(),
        Value::Float(it) => format!("{it:?}"),
        Value::Double(it) => format!("{it:?}"),
        Value::LongStr(bytes) | Value::Binary(bytes) => text(bytes),
        Value::Array(items) => list(items.iter().map(term).collect()),
        Value::Table(table) => {
            let members = table.iter();
            list(
                members
                    .map(|(name, value)| format!("{{{},{}}}", text(name), term(value)))
                    .collect(),
            )
        }
        Value::Void => "null".into(),
        other => other.as_integer().unwrap_or_default().to_string(),
    }
}

fn text(bytes: &[u8]) -> String {
    format!("<<{:?}>>", String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(definition: Table, kind: PolicyKind) -> String {
        check(definition, kind).unwrap_err().to_string()
    }

    #[test]
    fn complaints_are_rabbitmqs() {
        let user = PolicyKind::User;
        let begin = "Validation failed\n\n";
        let two = Table::new().with("zork", 1i64).with("foo", "bar");
        assert_eq!(
            said(two, user),
            format!(
                "{begin}[{{<<\"foo\">>,<<\"bar\">>}},{{<<\"zork\">>,1}}] are not recognised policy settings\n"
            )
        );
        let wrong = Table::new().with("message-ttl", 1.5f64);
        assert_eq!(
            said(wrong, user),
            format!("{begin}1.5 is not a valid message TTL\n")
        );
        assert_eq!(said(Table::new(), user), format!("{begin}no policy provided\n"));
        let not_theirs = Table::new().with("queue-mode", "lazy");
        assert_eq!(
            said(not_theirs.clone(), PolicyKind::Operator),
            format!("{begin}[{{<<\"queue-mode\">>,<<\"lazy\">>}}] are not recognised policy settings\n")
        );
        assert!(check(not_theirs, user).is_ok());
        assert!(check(Table::new().with("max-age", "1D"), user).is_ok());
        assert_eq!(
            said(Table::new().with("max-age", "soon"), user),
            format!("{begin}<<\"soon\">> is not a valid max age\n")
        );
    }

    #[test]
    fn an_operator_bounds_numbers_and_decides_about_the_rest() {
        let user = Table::new()
            .with("max-length", 10i64)
            .with("expires", 5i64)
            .with("delivery-limit", -1i64)
            .with("overflow", "reject-publish");
        let operator = Table::new()
            .with("max-length", 7i64)
            .with("expires", 9i64)
            .with("delivery-limit", 3i64)
            .with("message-ttl", 1i64)
            .with("overflow", "drop-head");
        let both = merge(Some(&user), Some(&operator)).unwrap();
        let number = |name: &str| both.get(name).and_then(Value::as_integer);
        assert_eq!(
            ["max-length", "expires", "delivery-limit", "message-ttl"].map(number),
            [Some(7), Some(5), Some(3), Some(1)]
        );
        assert_eq!(both.get("overflow").and_then(Value::as_str), Some("drop-head"));
        assert_eq!(merge(None, Some(&operator)), Some(operator));
        assert_eq!(merge(None, None), None);
    }
}
