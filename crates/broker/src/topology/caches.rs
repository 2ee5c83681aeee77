//! What deduplication exchanges remember whose home this node is: a machine for each, on this node's log if the exchange wants
//! that.
//!
//! Whoever routes a message asks here whether one like it has passed. Keys go to the log with the monitor's looks, not
//! with the message: two looks later at the latest, when the message itself has long been in the log. So a crash may
//! let a message of the last seconds pass a second time, and never has one taken for a duplicate that was lost.

use crate::node::Node;
use crate::node::host::Host;
use crate::node::journal::{Journal, LocalJournal};
use catalog::DeduplicationFilter;
use model::{DeduplicationKey, QueueId};
use queue::seen::{Bearer, Effect, Record, Request, Seen, SeenSettings};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The machine's settings from an exchange's arguments, and whether it is journaled.
pub fn settings(known: &catalog::Queue) -> (SeenSettings, bool) {
    // What was declared was checked.
    let cache = catalog::Cache::new(&known.arguments).unwrap_or(catalog::Cache {
        size: 1,
        lifetime_ms: None,
        on_disk: false,
    });
    let settings = SeenSettings {
        size: cache.size,
        lifetime_ms: cache.lifetime_ms,
    };
    (settings, cache.on_disk && known.is_durable())
}

/// A cache's journal: none, or this node's log.
pub struct CacheJournal(pub Option<LocalJournal>);

type CacheHost = Host<Seen, CacheJournal>;

/// All caches of this node, by the ids of their exchanges.
pub struct Caches {
    node: Arc<Node>,
    caches: RwLock<HashMap<QueueId, Arc<Mutex<CacheHost>>>>,
}

impl Caches {
    /// None yet.
    pub fn new(node: Arc<Node>) -> Self {
        let caches = RwLock::default();
        Self { node, caches }
    }

    /// Adds a cache around a new or replayed machine.
    pub fn insert(&self, id: QueueId, machine: Seen, journal: CacheJournal) {
        let host = Arc::new(Mutex::new(Host::new(machine, journal)));
        let mut caches = self.caches.write().unwrap_or_else(PoisonError::into_inner);
        caches.insert(id, host);
    }

    /// Takes a cache out; true if there was one.
    pub fn remove(&self, id: QueueId) -> bool {
        let mut caches = self.caches.write().unwrap_or_else(PoisonError::into_inner);
        caches.remove(&id).is_some()
    }

    /// The filter for one message. `by` is the message if it lies in a queue of this node and may be sent on again.
    pub fn passing(&self, by: Option<Bearer>) -> Passing<'_> {
        Passing {
            caches: self,
            by,
            passed: RefCell::default(),
        }
    }

    /// The bearer of a key has arrived.
    pub fn arrived(&self, seen: QueueId, key: DeduplicationKey, by: Bearer) {
        self.with(seen, |host| turn(host, &self.node, Request::Arrived { key, by }));
    }

    /// How many keys a cache holds.
    pub fn count(&self, id: QueueId) -> Option<u64> {
        self.with(id, |host| host.machine.len())
    }

    /// Puts on record what passed before the last call, or everything that passed.
    pub fn write(&self, everything: bool) {
        let caches = self.caches.read().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<_> = caches.values().cloned().collect();
        drop(caches);
        for cache in all {
            let mut host = cache.lock().unwrap_or_else(PoisonError::into_inner);
            if host.journal.0.is_some() && host.machine.has_news() {
                let request = if everything {
                    Request::WriteAll
                } else {
                    Request::Write
                };
                turn(&mut host, &self.node, request);
            }
        }
    }

    /// Writes a cache down again, so that the log needs nothing older of it. False if there is no such cache.
    pub fn restate(&self, id: QueueId) -> bool {
        self.with(id, |host| turn(host, &self.node, Request::Restate))
            .is_some()
    }

    /// Writes all caches down again that are journaled.
    pub fn restate_all(&self) {
        let caches = self.caches.read().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<_> = caches.values().cloned().collect();
        drop(caches);
        for cache in all {
            let mut host = cache.lock().unwrap_or_else(PoisonError::into_inner);
            if host.journal.0.is_some() {
                turn(&mut host, &self.node, Request::Restate);
            }
        }
    }

    fn with<T>(&self, id: QueueId, act: impl FnOnce(&mut CacheHost) -> T) -> Option<T> {
        let caches = self.caches.read().unwrap_or_else(PoisonError::into_inner);
        let cache = caches.get(&id).cloned()?;
        drop(caches);
        let mut host = cache.lock().unwrap_or_else(PoisonError::into_inner);
        Some(act(&mut host))
    }
}

/// Makes one turn; returns the answer, if there is one.
fn turn(host: &mut CacheHost, node: &Node, request: Request) -> Option<bool> {
    let mut answer = None;
    host.handle(node.now(), request);
    host.commit(|Effect::Answer { new }, _| answer = Some(new));
    answer
}

impl Journal<Seen> for CacheJournal {
    fn append(&mut self, _: &mut Seen, records: &mut Vec<Record>, _promises: &mut Vec<Effect>) {
        let Self(Some(journal)) = self else {
            records.clear();
            return;
        };
        if records.is_empty() {
            return;
        }
        journal.append(std::iter::empty(), |batch| {
            let mut restated = None;
            for record in records.drain(..) {
                let at = batch.record(&record);
                if matches!(record, Record::Restated(_)) {
                    restated = Some(at);
                }
            }
            // The log is cut where everything is said again.
            if let Some(before) = restated {
                batch.release(before);
            }
        });
    }
}

/// What deduplication exchanges are asked on one message's way, and where it passed.
#[derive(Debug)]
pub struct Passing<'a> {
    caches: &'a Caches,
    by: Option<Bearer>,
    passed: RefCell<Passed>,
}

/// What deduplication exchanges remember of one message: whose memories, and the key.
pub type Passed = SmallVec<[(QueueId, DeduplicationKey); 1]>;

impl Passing<'_> {
    /// Where the message passed; nothing the next time.
    pub fn passed(&self) -> Passed {
        self.passed.take()
    }

    /// True if a deduplication exchange let it pass.
    pub fn has_passed_any(&self) -> bool {
        !self.passed.borrow().is_empty()
    }

    /// Nobody can take the message, and its publisher is told so: the next one like it is the first.
    #[cold]
    pub fn refused(&self) {
        let caches = self.caches;
        for (seen, key) in self.passed() {
            caches.with(seen, |host| turn(host, &caches.node, Request::Refused { key }));
        }
    }
}

impl DeduplicationFilter for Passing<'_> {
    fn has_passed(&self, seen: QueueId, key: DeduplicationKey, lifetime_ms: Option<u64>) -> bool {
        let by = self.by;
        let request = Request::See { key, lifetime_ms, by };
        let new = self
            .caches
            .with(seen, |host| turn(host, &self.caches.node, request));
        if new.flatten() == Some(false) {
            return true;
        }
        self.passed.borrow_mut().push((seen, key));
        false
    }
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("caches")
    }
}

#[cfg(test)]
mod tests {
    use crate::broker::Broker;
    use crate::clients::outbox::{ChannelId, Outbox};
    use crate::{DeclareExchange, Options};
    use model::properties::{Properties, PropertiesBuilder};
    use model::table::Table;
    use model::{Message, RouteBuf};
    use std::path::Path;
    use std::sync::Arc;

    const CHANNEL: ChannelId = ChannelId(1);

    fn open(dir: &Path) -> Arc<Broker> {
        Broker::open(Options::new(dir)).unwrap()
    }

    fn declare(broker: &Arc<Broker>, name: &str, persistence: &str) {
        let declare = DeclareExchange {
            name: name.into(),
            kind: "x-message-deduplication".into(),
            durable: true,
            arguments: Table::new()
                .with("x-cache-size", 1_000)
                .with("x-cache-persistence", persistence),
            ..DeclareExchange::default()
        };
        let session = session(broker);
        session.declare_exchange(CHANNEL, declare).unwrap();
        session.close();
    }

    fn session(broker: &Arc<Broker>) -> Arc<crate::Session> {
        let local = "127.0.0.1".parse().unwrap();
        let user = broker.authenticate("guest", b"guest", local).unwrap();
        broker.connect(user, "/", Arc::new(Outbox::new())).unwrap()
    }

    fn publish(broker: &Arc<Broker>, exchange: &str, keys: std::ops::Range<i32>) {
        let session = session(broker);
        let mut publisher = session.publisher(CHANNEL, 1);
        for key in keys {
            let headers = Table::new().with(model::X_DEDUPLICATION_HEADER, key);
            let properties = PropertiesBuilder::new().headers(&headers).encode();
            let route = RouteBuf::new(exchange.as_bytes(), b"");
            let message = Message::new(route.as_route(), Properties::amqp091(&properties), b"");
            publisher.publish(&message, None).unwrap();
        }
        publisher.flush();
        session.close();
    }

    fn entries(broker: &Broker, exchange: &str) -> u64 {
        let view = broker.view();
        let seen = view.exchange("/", exchange).unwrap().seen().unwrap();
        broker.cache_entries(seen).unwrap()
    }

    #[test]
    fn what_is_remembered_on_disk_is_known_after_a_restart_and_after_a_restatement() {
        let dir = tempfile::tempdir().unwrap();
        let broker = open(dir.path());
        declare(&broker, "disk", "disk");
        declare(&broker, "memory", "memory");
        publish(&broker, "disk", 0..10);
        publish(&broker, "memory", 0..10);
        broker.close();
        drop(broker);
        let broker = open(dir.path());
        assert_eq!((entries(&broker, "disk"), entries(&broker, "memory")), (10, 0));
        let seen = broker.view().exchange("/", "disk").unwrap().seen().unwrap();
        broker.restate_cache(seen);
        publish(&broker, "disk", 5..12);
        broker.close();
        drop(broker);
        let broker = open(dir.path());
        assert_eq!(entries(&broker, "disk"), 12);
        broker.close();
    }

    #[test]
    fn an_exchange_of_the_name_of_one_that_was_deleted_remembers_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let broker = open(dir.path());
        declare(&broker, "disk", "disk");
        publish(&broker, "disk", 0..10);
        let session = session(&broker);
        session.delete_exchange(CHANNEL, "disk", false).unwrap();
        session.close();
        drop(session);
        declare(&broker, "disk", "disk");
        assert_eq!(entries(&broker, "disk"), 0);
        broker.close();
        drop(broker);
        let broker = open(dir.path());
        assert_eq!(entries(&broker, "disk"), 0);
        broker.close();
    }
}
