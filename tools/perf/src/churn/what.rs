//! The kinds of churn and the operations each of them times.

use clap::ValueEnum;

/// What comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// A binding of a queue: bind, then unbind.
    Bind,
    /// A queue: declare, then delete; with --preload it has that many bindings when it is deleted.
    Queue,
    /// A connection: connect (with the whole handshake), then close.
    Connection,
    /// A channel: open, then close.
    Channel,
    /// A consumer: consume, then cancel.
    Consumer,
    /// A channel of a pool (--pool): wait for one that is free, dispatch on it, give it back.
    Acquire,
    /// An event: publish it with two routing keys, wait until the broker has confirmed both.
    Dispatch,
}

/// The place of [`What::Queue`]'s third operation.
pub const BIND_ALL: usize = 2;

impl What {
    /// The names of the operations in the order in which a turn does them. `filled`: queues get bindings.
    pub fn operations(self, filled: bool) -> &'static [&'static str] {
        match self {
            Self::Bind => &["bind", "unbind"],
            Self::Queue if filled => &["declare", "delete", "bind-all"],
            Self::Queue => &["declare", "delete"],
            Self::Connection => &["connect", "close"],
            Self::Channel => &["open", "close"],
            Self::Consumer => &["consume", "cancel"],
            Self::Acquire => &["acquire", "dispatch"],
            Self::Dispatch => &["dispatch"],
        }
    }

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bind => "bind",
            Self::Queue => "queue",
            Self::Connection => "connection",
            Self::Channel => "channel",
            Self::Consumer => "consumer",
            Self::Acquire => "acquire",
            Self::Dispatch => "dispatch",
        }
    }

    /// Whether messages are published.
    pub fn publishes(self) -> bool {
        matches!(self, Self::Acquire | Self::Dispatch)
    }

    /// Whether each worker has a queue of its own that stays.
    pub fn needs_queue(self) -> bool {
        matches!(self, Self::Bind | Self::Consumer) || self.publishes()
    }

    /// Whether something is bound.
    pub fn needs_exchange(self) -> bool {
        self == Self::Bind || self.publishes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_named_as_the_command_line_has_it() {
        for what in What::value_variants() {
            let value = what.to_possible_value().unwrap();
            assert_eq!(value.get_name(), what.name());
            assert!(!what.operations(false).is_empty());
        }
    }

    #[test]
    fn binding_a_whole_queue_is_an_operation_only_where_there_are_bindings() {
        assert_eq!(What::Queue.operations(true)[BIND_ALL], "bind-all");
        assert_eq!(What::Queue.operations(false).len(), 2);
    }
}
