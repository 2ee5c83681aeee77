//! An argument of a declaration that cannot be.

use super::ObjectKind;
use crate::kinds::QueueKind;
use std::fmt;

/// Which argument it is, and what is wrong with it. `Display` gives RabbitMQ's explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidArgument {
    /// Its name.
    pub argument: String,
    /// What was to be declared with it.
    pub kind: ObjectKind,
    /// The name of that.
    pub name: String,
    /// The virtual host.
    pub vhost: String,
    /// What is wrong.
    pub fault: ArgumentFault,
}

/// What is wrong with an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentFault {
    /// Its value is impossible, for this reason.
    Value(String),
    /// Its type is one that RabbitMQ refuses before it looks at arguments one by one.
    Type(&'static str),
    /// Its value is impossible, and RabbitMQ says so in these words alone.
    Words(String),
    /// It belongs to queues of other kinds than this one.
    Foreign(QueueKind),
}

impl fmt::Display for InvalidArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            argument,
            kind,
            name,
            vhost,
            fault,
        } = self;
        match fault {
            ArgumentFault::Value(reason) => write!(
                f,
                "invalid arg '{argument}' for {kind} '{name}' in vhost '{vhost}': {reason}"
            ),
            ArgumentFault::Words(words) => f.write_str(words),
            ArgumentFault::Type(given) => write!(
                f,
                "invalid type '{given}' for arg '{argument}' in {kind} '{name}' in vhost '{vhost}'"
            ),
            ArgumentFault::Foreign(of) => write!(
                f,
                "invalid arg '{argument}' for {kind} '{name}' in vhost '{vhost}' of queue type {}",
                of.module()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_rabbitmqs_text() {
        let told = |argument: &str, kind, fault| {
            let invalid = InvalidArgument {
                argument: argument.into(),
                kind,
                name: "n".into(),
                vhost: "/".into(),
                fault,
            };
            invalid.to_string()
        };
        assert_eq!(
            told(
                "x-max-length",
                ObjectKind::Queue,
                ArgumentFault::Value("{value_negative,-1}".into())
            ),
            "invalid arg 'x-max-length' for queue 'n' in vhost '/': {value_negative,-1}"
        );
        assert_eq!(
            told(
                "alternate-exchange",
                ObjectKind::Exchange,
                ArgumentFault::Type("long")
            ),
            "invalid type 'long' for arg 'alternate-exchange' in exchange 'n' in vhost '/'"
        );
        assert_eq!(
            told(
                "x-max-age",
                ObjectKind::Queue,
                ArgumentFault::Foreign(QueueKind::Classic)
            ),
            "invalid arg 'x-max-age' for queue 'n' in vhost '/' of queue type rabbit_classic_queue"
        );
    }
}
