//! When a repeated declaration asks for the same thing, and what the refusal says if it does not.
//!
//! RabbitMQ compares one argument at a time (`rabbit_misc:assert_args_equivalence`): values are the same if
//! they print the same Erlang term, whatever the integer's width or the string's type. Inside arrays and tables
//! the types are part of the term, so there they count.

use super::Value;
use std::fmt::{self, Display};

/// True if RabbitMQ takes the two for the same argument.
pub fn equivalent(a: &Value, b: &Value) -> bool {
    if a == b {
        return true;
    }
    match (number(a), number(b)) {
        (Some(a), Some(b)) => return a == b,
        (None, None) => {}
        _ => return false,
    }
    match (float(a), float(b)) {
        // Erlang's `==` on floats: the two zeros are the same.
        (Some(a), Some(b)) => return a == b,
        (None, None) => {}
        _ => return false,
    }
    match (a, b) {
        (Value::LongStr(a), Value::Binary(b)) | (Value::Binary(a), Value::LongStr(b)) => a == b,
        _ => false,
    }
}

/// What integers and timestamps are to Erlang: a number without a width.
fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Timestamp(seconds) => Some((*seconds).into()),
        other => other.as_integer().map(i128::from),
    }
}

fn float(value: &Value) -> Option<f64> {
    match *value {
        Value::Float(it) => Some(it.into()),
        Value::Double(it) => Some(it),
        _ => None,
    }
}

/// The text of RabbitMQ's 406 for an argument that a repeated declaration changes, or `None` if it does not.
///
/// `resource` is what it is about, as in `queue 'q' in vhost '/'`. A missing `x-queue-type` is the same as
/// `classic`, as in RabbitMQ.
pub fn inequivalent_arg(
    resource: &dyn Display,
    key: &str,
    received: Option<&Value>,
    current: Option<&Value>,
) -> Option<String> {
    let same = match (received, current) {
        (None, None) => true,
        (Some(received), Some(current)) => equivalent(received, current),
        (Some(only), None) | (None, Some(only)) => {
            key == "x-queue-type" && only.as_bytes() == Some(b"classic")
        }
    };
    if same {
        return None;
    }
    // With a value on both sides RabbitMQ shows just the values; with one missing it shows the type too.
    Some(match (received, current) {
        (Some(received), Some(current)) => inequivalent(resource, key, &Quoted(received), &Quoted(current)),
        (received, current) => inequivalent(resource, key, &Typed(received), &Typed(current)),
    })
}

/// The text of RabbitMQ's 406 for a field (`durable`, `auto_delete`, `type`, …) that differs.
pub fn inequivalent_field(
    resource: &dyn Display,
    field: &str,
    received: &dyn Display,
    current: &dyn Display,
) -> String {
    inequivalent(resource, field, &Quoted(received), &Quoted(current))
}

fn inequivalent(resource: &dyn Display, key: &str, received: &dyn Display, current: &dyn Display) -> String {
    format!("inequivalent arg '{key}' for {resource}: received {received} but current is {current}")
}

struct Quoted<T>(T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0)
    }
}

struct Typed<'a>(Option<&'a Value>);

impl Display for Typed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "the value '{value}' of type '{}'", value.type_name()),
            None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    const QUEUE: &str = "queue 'q' in vhost '/'";

    #[test]
    fn a_value_against_none_names_the_type() {
        let text = inequivalent_arg(&QUEUE, "x-max-length", Some(&Value::SignedInt(10)), None).unwrap();
        assert_eq!(
            text,
            "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': \
             received the value '10' of type 'signedint' but current is none"
        );
    }

    #[test]
    fn two_values_are_shown_bare() {
        let text = inequivalent_arg(&QUEUE, "x-overflow", Some(&"a".into()), Some(&"b".into())).unwrap();
        assert_eq!(
            text,
            "inequivalent arg 'x-overflow' for queue 'q' in vhost '/': received 'a' but current is 'b'"
        );
    }

    #[test]
    fn fields_are_shown_bare() {
        assert_eq!(
            inequivalent_field(&QUEUE, "durable", &true, &false),
            "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'"
        );
    }

    #[test]
    fn widths_do_not_count_but_classes_do() {
        assert!(equivalent(&Value::SignedInt(10), &Value::Long(10)));
        assert!(equivalent(&Value::Timestamp(10), &Value::Byte(10)));
        assert!(equivalent(
            &Value::LongStr(b"a".to_vec()),
            &Value::Binary(b"a".to_vec())
        ));
        assert!(equivalent(&Value::Float(0.5), &Value::Double(0.5)));
        assert!(!equivalent(&Value::Long(1), &Value::Double(1.0)));
        assert!(!equivalent(&Value::Long(1), &Value::Bool(true)));
        let narrow = Value::Table(Table::new().with("a", 1));
        let wide = Value::Table(Table::new().with("a", 1i64));
        assert!(!equivalent(&narrow, &wide));
    }

    #[test]
    fn no_queue_type_is_classic() {
        assert_eq!(
            inequivalent_arg(&QUEUE, "x-queue-type", Some(&"classic".into()), None),
            None
        );
        assert_eq!(
            inequivalent_arg(&QUEUE, "x-queue-type", None, Some(&"classic".into())),
            None
        );
        assert!(inequivalent_arg(&QUEUE, "x-queue-type", Some(&"quorum".into()), None).is_some());
    }
}
