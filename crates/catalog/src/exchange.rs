//! An exchange and the bindings that lead away from it.

use crate::Name;
use crate::binding::{Binding, Destination};
use crate::exchange_kinds::ExchangeKind;
use crate::node::{Lifetime, NodeId};
use crate::routing::Routes;
use imbl::OrdMap;
use model::QueueId;
use model::table::{Table, Value};
use std::sync::Arc;

/// An exchange as it was declared.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredExchange {
    /// The virtual host.
    pub vhost: Name,
    /// Its name; empty for the default exchange.
    pub name: Name,
    /// How it chooses.
    pub kind: ExchangeKind,
    /// With what it ends if nobody deletes it.
    pub lifetime: Lifetime,
    /// Is deleted with the last binding that leads away from it.
    pub auto_delete: bool,
    /// Clients may not publish to it.
    pub internal: bool,
    /// What else was said.
    pub arguments: Arc<Table>,
}

/// An exchange. Cloning shares everything.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The virtual host.
    pub vhost: Name,
    /// Its name; empty for the default exchange.
    pub name: Name,
    /// How it chooses.
    pub kind: ExchangeKind,
    /// With what it ends if nobody deletes it.
    pub lifetime: Lifetime,
    /// Is deleted with the last binding that leads away from it.
    pub auto_delete: bool,
    /// Clients may not publish to it.
    pub internal: bool,
    /// What it was declared with.
    pub arguments: Arc<Table>,
    /// Takes what finds no way from here (`alternate-exchange`); it need not exist.
    pub alternate: Option<Name>,
    /// What it keeps, if it keeps anything.
    pub(crate) own: Option<Own>,
    /// Bindings for routing, in the form that suits the kind.
    pub(crate) routes: Routes,
    /// Where its bindings lead, and how many there. The bindings themselves are the virtual host's: binding costs more with each
    /// set that has them.
    destinations: OrdMap<Destination, usize>,
    bindings: usize,
}

/// What an exchange keeps for itself, under the id of a queue of its own (see [`crate::QueueKind::is_of_clients`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// The messages that wait for their time.
    Delays(QueueId),
    /// The deduplication keys that have passed, which the node of this number remembers.
    Seen(QueueId, NodeId),
}

impl Own {
    pub(crate) fn id(self) -> QueueId {
        let (Self::Delays(id) | Self::Seen(id, _)) = self;
        id
    }
}

impl Exchange {
    /// An exchange without bindings.
    pub(crate) fn new(declared: DeclaredExchange) -> Self {
        let DeclaredExchange {
            vhost,
            name,
            kind,
            lifetime,
            auto_delete,
            internal,
            arguments,
        } = declared;
        let alternate = arguments.get("alternate-exchange").and_then(Value::as_str);
        Self {
            vhost,
            name,
            kind,
            lifetime,
            auto_delete,
            internal,
            own: None,
            routes: kind.routes(&arguments),
            alternate: alternate.map(Name::from),
            arguments,
            destinations: OrdMap::new(),
            bindings: 0,
        }
    }

    /// As it was declared.
    pub(crate) fn declared(&self) -> DeclaredExchange {
        DeclaredExchange {
            vhost: self.vhost.clone(),
            name: self.name.clone(),
            kind: self.kind,
            lifetime: self.lifetime,
            auto_delete: self.auto_delete,
            internal: self.internal,
            arguments: self.arguments.clone(),
        }
    }

    /// True if it survives a restart.
    pub fn is_durable(&self) -> bool {
        self.lifetime.is_durable()
    }

    /// Where it keeps the deduplication keys that have passed, if it does.
    pub fn seen(&self) -> Option<QueueId> {
        match self.own {
            Some(Own::Seen(id, _)) => Some(id),
            _ => None,
        }
    }

    /// How it chooses, once there is nothing to wait for: a delayed exchange has another kind's bindings.
    pub fn choice(&self) -> ExchangeKind {
        self.kind.choice(&self.arguments).unwrap_or_default()
    }

    /// How many bindings lead away from it.
    pub fn binding_count(&self) -> usize {
        self.bindings
    }

    /// Where its bindings lead.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = &Destination> {
        self.destinations.keys()
    }

    /// Takes a binding that was not there.
    pub(crate) fn bind(&mut self, binding: &Binding) {
        self.routes.add(binding);
        self.bindings += 1;
        match self.destinations.get_mut(&binding.destination) {
            Some(count) => *count += 1,
            None => {
                self.destinations.insert(binding.destination.clone(), 1);
            }
        }
    }

    /// Gives up a binding that was there.
    pub(crate) fn unbind(&mut self, binding: &Binding) {
        self.routes.remove(binding);
        self.bindings -= 1;
        if let Some(count) = self.destinations.get_mut(&binding.destination) {
            *count -= 1;
            if *count == 0 {
                self.destinations.remove(&binding.destination);
            }
        }
    }

    /// True for the exchange with the empty name, which routes to the queue named by the routing key.
    pub fn is_default(&self) -> bool {
        self.name.is_empty()
    }
}

/// True for names that only the server may give: RabbitMQ reserves the prefix `amq.`.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with("amq.")
}

/// True for the exchanges that a node declares for itself if it is asked to: what happens on it, and what it logs.
pub(crate) fn is_of_node(name: &str) -> bool {
    matches!(name, "amq.rabbitmq.event" | "amq.rabbitmq.log")
}

/// The exchanges that every virtual host has from the beginning; the last one is internal.
pub(crate) const PREDECLARED: [(&str, ExchangeKind, bool); 7] = [
    ("", ExchangeKind::Direct, false),
    ("amq.direct", ExchangeKind::Direct, false),
    ("amq.fanout", ExchangeKind::Fanout, false),
    ("amq.headers", ExchangeKind::Headers, false),
    ("amq.match", ExchangeKind::Headers, false),
    ("amq.rabbitmq.trace", ExchangeKind::Topic, true),
    ("amq.topic", ExchangeKind::Topic, false),
];

/// True for the exchanges that come with the virtual host and so need no record.
pub(crate) fn is_predeclared(name: &str) -> bool {
    PREDECLARED.iter().any(|(known, ..)| *known == name)
}
