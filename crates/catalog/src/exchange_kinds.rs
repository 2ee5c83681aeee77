//! Kinds of exchange: the one table that says what each is called, how it routes, what it asks of declarations and bindings, and
//! what operators are told of it.
//!
//! A kind is a line here and the file of [`crate::routing`] that routes for it. Front ends, management and the command line ask
//! this table and know no kind by name.

use crate::binding::NamedBinding;
use crate::cache::Cache;
use crate::kinds::QueueKind;
use crate::routing::{HashOn, Routes, Spread, headers, spread, topic};
use model::table::{Table, Value};
use std::fmt;

/// How an exchange chooses destinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExchangeKind {
    /// By equal routing key.
    #[default]
    Direct,
    /// All.
    Fanout,
    /// By headers.
    Headers,
    /// By pattern of words.
    Topic,
    /// One by a consistent hash.
    ConsistentHash,
    /// As another kind does, once a message's delay is over.
    Delayed,
    /// All, of what has not passed before.
    Deduplication,
    /// One queue of this node by chance.
    LocalRandom,
    /// One by the routing key's hash modulo the number of destinations.
    ModulusHash,
    /// One by chance.
    Random,
}

/// What checks say: RabbitMQ's text if something is wrong.
type Checked = Result<(), String>;

/// A line of the table.
struct Row {
    kind: ExchangeKind,
    /// The type that clients name.
    name: &'static str,
    /// The plugin that brings it to RabbitMQ, and what that is for operators.
    plugin: Option<(&'static str, &'static str)>,
    /// For operators.
    description: &'static str,
    /// An exchange without bindings, by its arguments.
    routes: fn(&Table) -> Routes,
    /// What is wrong with a declaration's arguments.
    check_arguments: fn(&Table) -> Checked,
    /// What is wrong with a binding that leads away from it.
    check_binding: fn(&NamedBinding) -> Checked,
    /// The argument that names the kind that chooses in its place.
    chosen_by: Option<&'static str>,
    /// What it keeps for itself.
    keeps: Option<QueueKind>,
    /// Topic permissions are asked for its keys.
    has_topic_permissions: bool,
}

/// What is the same for most of them.
const MOST: Row = Row {
    kind: ExchangeKind::Direct,
    name: "",
    plugin: None,
    description: "",
    routes: |_| Routes::direct(),
    check_arguments: |_| Ok(()),
    check_binding: |_| Ok(()),
    chosen_by: None,
    keeps: None,
    has_topic_permissions: false,
};

const ROWS: [Row; 10] = [
    Row {
        kind: ExchangeKind::Direct,
        name: "direct",
        description: "AMQP direct exchange, as per the AMQP specification",
        ..MOST
    },
    Row {
        kind: ExchangeKind::Fanout,
        name: "fanout",
        description: "AMQP fanout exchange, as per the AMQP specification",
        routes: |_| Routes::fanout(),
        ..MOST
    },
    Row {
        kind: ExchangeKind::Headers,
        name: "headers",
        description: "AMQP headers exchange, as per the AMQP specification",
        routes: |_| Routes::headers(),
        check_binding: headers::check_binding,
        ..MOST
    },
    Row {
        kind: ExchangeKind::Topic,
        name: "topic",
        description: "AMQP topic exchange, as per the AMQP specification",
        routes: |_| Routes::topic(),
        check_binding: topic::check_binding,
        has_topic_permissions: true,
        ..MOST
    },
    Row {
        kind: ExchangeKind::ConsistentHash,
        name: "x-consistent-hash",
        plugin: Some((
            "rabbitmq_consistent_hash_exchange",
            "The exchange type x-consistent-hash",
        )),
        description: "one destination by a consistent hash",
        routes: |arguments| Routes::Spread(Spread::consistent(arguments)),
        check_arguments: |arguments| HashOn::new(arguments).map(drop),
        check_binding: spread::check_weight,
        ..MOST
    },
    Row {
        kind: ExchangeKind::Delayed,
        name: "x-delayed-message",
        plugin: Some((
            "rabbitmq_delayed_message_exchange",
            "The exchange type x-delayed-message",
        )),
        description: "another type's bindings, once a message's delay is over",
        chosen_by: Some("x-delayed-type"),
        keeps: Some(QueueKind::Delayed),
        ..MOST
    },
    Row {
        kind: ExchangeKind::Deduplication,
        name: "x-message-deduplication",
        plugin: Some((
            "rabbitmq_message_deduplication",
            "Queues and exchanges that take a message once",
        )),
        description: "all destinations, of what has not passed before",
        routes: |_| Routes::fanout(),
        check_arguments: |arguments| Cache::new(arguments).map(drop),
        keeps: Some(QueueKind::Deduplication),
        ..MOST
    },
    Row {
        kind: ExchangeKind::LocalRandom,
        name: "x-local-random",
        description: "one queue of this node by chance",
        routes: |_| Routes::Spread(Spread::by_chance()),
        check_binding: spread::check_local,
        ..MOST
    },
    Row {
        kind: ExchangeKind::ModulusHash,
        name: "x-modulus-hash",
        description: "one destination by a hash",
        routes: |_| Routes::Spread(Spread::modulus()),
        ..MOST
    },
    Row {
        kind: ExchangeKind::Random,
        name: "x-random",
        plugin: Some(("rabbitmq_random_exchange", "The exchange type x-random")),
        description: "one destination by chance",
        routes: |_| Routes::Spread(Spread::by_chance()),
        ..MOST
    },
];

impl ExchangeKind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.kind)
    }

    /// The kind of this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name() == name)
    }

    /// The name that clients use.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The plugin that brings it to RabbitMQ, and what that is for operators; `None` if it needs none there.
    pub fn plugin(self) -> Option<(&'static str, &'static str)> {
        self.row().plugin
    }

    /// What operators are told of it.
    pub fn description(self) -> &'static str {
        self.row().description
    }

    /// True if topic permissions are asked for the keys that messages and bindings have there.
    pub fn has_topic_permissions(self) -> bool {
        self.row().has_topic_permissions
    }

    /// What an exchange of this kind keeps for itself.
    pub fn keeps(self) -> Option<QueueKind> {
        self.row().keeps
    }

    /// The kind that chooses destinations for an exchange with these arguments, mostly itself; none if they name no
    /// kind, or one that keeps something: one kind below another, and no more.
    pub(crate) fn choice(self, arguments: &Table) -> Option<Self> {
        let Some(argument) = self.row().chosen_by else {
            return Some(self);
        };
        let named = arguments.get(argument).and_then(Value::as_str);
        named
            .and_then(Self::from_name)
            .filter(|kind| kind.keeps().is_none())
    }

    /// No bindings yet, in the form that suits the kind; the arguments were checked when the exchange was declared.
    pub(crate) fn routes(self, arguments: &Table) -> Routes {
        let chooses = self.choice(arguments).unwrap_or_default();
        (chooses.row().routes)(arguments)
    }

    /// Refuses a kind that its arguments do not complete.
    ///
    /// # Errors
    /// What is wrong: RabbitMQ's text.
    pub(crate) fn check_arguments(self, arguments: &Table) -> Result<(), String> {
        (self.row().check_arguments)(arguments)?;
        match (self.choice(arguments), self.row().chosen_by) {
            (Some(chooses), _) if chooses != self => chooses.check_arguments(arguments),
            (None, Some(argument)) => Err(format!(
                "Invalid argument, '{argument}' must be an existing exchange type"
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a binding that leads away from an exchange where this kind chooses, and means nothing there.
    ///
    /// # Errors
    /// What is wrong: RabbitMQ's text.
    pub(crate) fn check_binding(self, binding: &NamedBinding) -> Result<(), String> {
        (self.row().check_binding)(binding)
    }

    fn row(self) -> &'static Row {
        // The table is in the order of the kinds; a test says so.
        &ROWS[self as usize]
    }
}

impl fmt::Display for ExchangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_kind_in_its_place_and_under_one_name() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(row.kind as usize, at);
            assert_eq!(ExchangeKind::from_name(row.name), Some(row.kind));
            assert!(!row.description.is_empty());
        }
        assert_eq!(ExchangeKind::from_name(""), None);
    }

    #[test]
    fn one_kind_chooses_for_another_but_none_that_keeps_something() {
        let delayed = |kind: &str| Table::new().with("x-delayed-type", kind);
        let chosen = |kind: &str| ExchangeKind::Delayed.choice(&delayed(kind));
        assert_eq!(chosen("topic"), Some(ExchangeKind::Topic));
        for none in ["x-delayed-message", "x-message-deduplication", "nonsense"] {
            assert_eq!(chosen(none), None);
            assert!(ExchangeKind::Delayed.check_arguments(&delayed(none)).is_err());
        }
        let both = delayed("x-consistent-hash").with("hash-property", "nonsense");
        assert_eq!(
            ExchangeKind::Delayed.check_arguments(&both).unwrap_err(),
            "Unsupported property: nonsense"
        );
    }
}
