//! What existed when something was asked for: all pieces of a long answer tell of this, however much comes and goes meanwhile.

use broker::View;
use broker::stats::{Channel, Connection, Consumer, StreamConsumer, StreamPublisher};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

/// A channel and the connection that it is on.
pub type OnConnection = (Arc<Connection>, Arc<Channel>);

/// A consumer of the stream protocol and the connection that it is on.
pub type ReadsStream = (Arc<Connection>, Arc<StreamConsumer>);

/// Somebody who consumes.
#[derive(Clone, Debug)]
pub enum Consumes {
    /// Messages, over AMQP.
    Messages(Arc<Consumer>),
    /// Chunks, by the stream protocol.
    Chunks {
        /// What it is called among all consumers.
        tag: String,
        /// Its connection.
        on: Arc<Connection>,
        /// The subscription.
        consumer: Arc<StreamConsumer>,
    },
}

/// A publisher of the stream protocol and the connection that it is on.
pub type WritesStream = (Arc<Connection>, Arc<StreamPublisher>);

/// What tells an object from all others of its kind and node.
pub type Id = [u64; 2];

/// The names of a virtual host and of an exchange there.
pub type ExchangeKey = (String, String);

/// What other nodes know of exchanges.
pub type ExchangeStats = BTreeMap<ExchangeKey, ExchangeFigures>;

/// What other nodes know of an exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExchangeFigures {
    /// What was counted, as `message_stats`, if anything was.
    pub stats: Option<Value>,
    /// How many deduplication keys it remembers, if one of these nodes does that for it.
    pub cache_entries: Option<u64>,
}

/// By the number of a queue, the consumer that alone is served, as all nodes call it: the start of its node, and which of its
/// consumers it is.
pub type Actives = BTreeMap<u64, (u64, u64)>;

/// The objects of a list that other nodes have.
#[derive(Debug, Default)]
pub struct Elsewhere {
    /// The nodes that were asked.
    pub nodes: Vec<String>,
    /// What each of them has; `None` if it said nothing.
    pub shares: Vec<Option<Share>>,
}

/// What one node has of a list.
#[derive(Debug, Default)]
pub struct Share {
    /// So many objects the asker may see.
    pub total: usize,
    /// So many of them pass the filter.
    pub filtered: usize,
    /// Those that were asked for, in their order, and what they are sorted by.
    pub entries: Vec<(Id, Value)>,
}

impl Elsewhere {
    fn bytes(&self) -> usize {
        let entries = self.shares.iter().flatten().map(|share| share.entries.capacity());
        entries.sum::<usize>() * size_of::<(Id, Value)>()
    }
}

/// What is kept of one exchange takes so many bytes, nearly enough.
const STATS: usize = 1024;

/// What exists, and of those who come and go what the asker may see, from when it is first looked for.
#[derive(Debug)]
pub struct Snapshot {
    /// What is declared.
    pub view: Arc<View>,
    /// Who is connected.
    pub connections: OnceLock<Vec<Arc<Connection>>>,
    /// Their channels.
    pub channels: OnceLock<Vec<OnConnection>>,
    /// Who consumes.
    pub consumers: OnceLock<Vec<Consumes>>,
    /// Who consumes by the stream protocol.
    pub stream_consumers: OnceLock<Vec<ReadsStream>>,
    /// Who publishes by it.
    pub stream_publishers: OnceLock<Vec<WritesStream>>,
    /// Who alone is served, of queues that serve one consumer at a time.
    pub actives: OnceLock<Actives>,
    /// What other nodes have of the list that is asked for.
    pub elsewhere: OnceLock<Elsewhere>,
    /// What other nodes know of exchanges.
    pub exchange_stats: OnceLock<ExchangeStats>,
    /// Those that said nothing when they were asked for rows of that list: they are not waited for again.
    pub silent: Mutex<BTreeSet<String>>,
    /// An earlier piece of that list had a row.
    pub begun: AtomicBool,
}

impl Snapshot {
    /// Of this moment.
    pub fn of(view: Arc<View>) -> Self {
        Self {
            view,
            connections: OnceLock::new(),
            channels: OnceLock::new(),
            consumers: OnceLock::new(),
            stream_consumers: OnceLock::new(),
            stream_publishers: OnceLock::new(),
            actives: OnceLock::new(),
            elsewhere: OnceLock::new(),
            exchange_stats: OnceLock::new(),
            silent: Mutex::default(),
            begun: AtomicBool::new(false),
        }
    }

    /// What its lists take, in bytes.
    pub fn bytes(&self) -> usize {
        fn bytes<T>(list: &OnceLock<Vec<T>>) -> usize {
            list.get().map_or(0, |list| list.capacity() * size_of::<T>())
        }
        let elsewhere = self.elsewhere.get().map_or(0, Elsewhere::bytes);
        let actives = self.actives.get().map_or(0, |actives| actives.len() * 32);
        let exchanges = self.exchange_stats.get().map_or(0, |stats| stats.len() * STATS);
        bytes(&self.connections)
            + bytes(&self.channels)
            + bytes(&self.consumers)
            + bytes(&self.stream_consumers)
            + bytes(&self.stream_publishers)
            + elsewhere
            + actives
            + exchanges
    }
}
