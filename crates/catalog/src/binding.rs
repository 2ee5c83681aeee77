//! A binding: from an exchange to a queue or to another exchange.

use crate::Name;
use model::QueueId;
use model::table::Table;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Where a binding leads, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// A queue.
    Queue(Name),
    /// An exchange.
    Exchange(Name),
}

impl Destination {
    /// The name alone.
    pub fn name(&self) -> &Name {
        match self {
            Self::Queue(name) | Self::Exchange(name) => name,
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) => write!(f, "queue '{name}'"),
            Self::Exchange(name) => write!(f, "exchange '{name}'"),
        }
    }
}

/// A binding as it is asked for and written down: by the names of its ends, which need not exist.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedBinding {
    /// The virtual host.
    pub vhost: Name,
    /// The exchange that messages come from.
    pub source: Name,
    /// Where they go.
    pub destination: Destination,
    /// The binding key.
    pub routing_key: Box<[u8]>,
    /// In any order.
    pub arguments: Table,
    /// Survives a restart.
    pub durable: bool,
}

/// Where a binding leads, for routing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Queue(QueueId),
    Exchange(Name),
}

/// A binding. Its identity is source, destination, routing key and arguments (in any order).
#[derive(Debug)]
pub struct Binding {
    /// The exchange that messages come from.
    pub source: Name,
    /// Where they go.
    pub destination: Destination,
    /// The binding key; what it means depends on the source's kind.
    pub routing_key: Box<[u8]>,
    /// Ordered by name, as RabbitMQ keeps them.
    pub arguments: Table,
    /// Survives a restart, since both ends do.
    pub durable: bool,
    /// The arguments' encoded form: comparable.
    arguments_key: Box<[u8]>,
    pub(crate) target: Target,
}

impl Binding {
    pub(crate) fn new(
        source: Name,
        destination: Destination,
        target: Target,
        routing_key: &[u8],
        arguments: &Table,
        durable: bool,
    ) -> Self {
        let arguments = if arguments.len() > 1 {
            arguments.clone().sorted()
        } else {
            arguments.clone()
        };
        let mut key = Vec::new();
        arguments.encode(&mut key);
        Self {
            source,
            destination,
            routing_key: routing_key.into(),
            arguments,
            durable,
            arguments_key: key.into(),
            target,
        }
    }

    /// The names that this one goes by.
    pub(crate) fn named(&self, vhost: &Name) -> NamedBinding {
        NamedBinding {
            vhost: vhost.clone(),
            source: self.source.clone(),
            destination: self.destination.clone(),
            routing_key: self.routing_key.clone(),
            arguments: self.arguments.clone(),
            durable: self.durable,
        }
    }

    fn compare_destination(&self, other: &Self) -> Ordering {
        match (&self.destination, &other.destination) {
            (Destination::Queue(a), Destination::Queue(b))
            | (Destination::Exchange(a), Destination::Exchange(b)) => compare_names(a, b),
            (a, b) => a.cmp(b),
        }
    }
}

/// Names are mostly shared; equal pointers spare a visit to memory.
fn compare_names(a: &Name, b: &Name) -> Ordering {
    if Arc::ptr_eq(a, b) {
        Ordering::Equal
    } else {
        a.cmp(b)
    }
}

/// A binding among those of a virtual host: those to one destination side by side, and of them those from one source.
#[derive(Clone, Debug)]
pub(crate) struct ByDestination(pub(crate) Arc<Binding>);

impl ByDestination {
    /// Not above any binding from `source` to `destination`, and above all that stand before those.
    pub(crate) fn least(source: Name, destination: Destination) -> Self {
        let target = Target::Queue(QueueId(0));
        let least = Binding::new(source, destination, target, b"", &Table::new(), false);
        Self(Arc::new(least))
    }
}

impl Ord for ByDestination {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (&*self.0, &*other.0);
        a.compare_destination(b)
            .then_with(|| compare_names(&a.source, &b.source))
            .then_with(|| a.routing_key.cmp(&b.routing_key))
            .then_with(|| a.arguments_key.cmp(&b.arguments_key))
    }
}

impl PartialOrd for ByDestination {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByDestination {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ByDestination {}
