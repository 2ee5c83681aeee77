//! Who watches what happens on the node as it happens, besides the event exchange (RabbitMQ's `consume_event_stream`).
//!
//! What a watcher has not taken yet waits in a queue of its own, which is bounded: the oldest goes when there is too much.

use model::table::Table;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How many events wait for a watcher.
const WAITING: usize = 2_000;

/// Something that happened, as a watcher is told.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// The routing key that it would have, such as `queue.created`.
    pub key: &'static str,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What about it.
    pub headers: Arc<Table>,
}

/// A watcher; it ends when it is dropped.
#[derive(Debug, Default)]
pub struct Watcher {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    seen: VecDeque<Occurrence>,
    lost: u64,
}

impl Watcher {
    /// What happened since the last time, the oldest first, and how much more was dropped.
    pub fn take(&self) -> (Vec<Occurrence>, u64) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        (
            waiting.seen.drain(..).collect(),
            std::mem::take(&mut waiting.lost),
        )
    }

    fn tell(&self, seen: Occurrence) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.seen.len() == WAITING {
            waiting.seen.pop_front();
            waiting.lost += 1;
        }
        waiting.seen.push_back(seen);
    }
}

/// All watchers.
#[derive(Debug, Default)]
pub struct Watchers {
    /// There may be some: it costs one load to find that there are none.
    any: AtomicBool,
    list: Mutex<Vec<Weak<Watcher>>>,
}

impl Watchers {
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// One more.
    pub(crate) fn add(&self) -> Arc<Watcher> {
        let watcher = Arc::new(Watcher::default());
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        // Where nothing happens nobody else notices that watchers have gone.
        list.retain(|watcher| watcher.strong_count() > 0);
        list.push(Arc::downgrade(&watcher));
        self.any.store(true, Ordering::Relaxed);
        watcher
    }

    pub(crate) fn tell(&self, seen: &Occurrence) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|watcher| {
            watcher
                .upgrade()
                .map(|watcher| watcher.tell(seen.clone()))
                .is_some()
        });
        self.any.store(!list.is_empty(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Happening;
    use crate::{Broker, Options};

    #[test]
    fn a_watcher_sees_what_happens_until_it_goes() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        broker.happened(|| unreachable!("nobody watches"));
        let watcher = broker.watch();
        broker.happened(|| Happening::new("queue.created").with("name", "q"));
        let (seen, lost) = watcher.take();
        assert_eq!((seen.len(), seen[0].key, lost), (1, "queue.created", 0));
        assert!(seen[0].headers.get("name").is_some());
        assert!(watcher.take().0.is_empty());
        drop(watcher);
        // The first one after a watcher has gone finds that nobody is left.
        broker.happened(|| Happening::new("queue.deleted"));
        broker.happened(|| unreachable!("nobody watches"));
        broker.close();
    }

    #[test]
    fn watchers_that_come_and_go_while_nothing_happens_leave_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        (0..5).for_each(|_| drop(broker.watch()));
        let last = broker.watch();
        assert_eq!(broker.events().watchers.list.lock().unwrap().len(), 1);
        drop(last);
        broker.close();
    }

    #[test]
    fn what_a_slow_watcher_does_not_take_is_dropped_and_counted() {
        let watcher = Watcher::default();
        for at_ms in 0..WAITING as u64 + 3 {
            watcher.tell(Occurrence {
                key: "queue.created",
                at_ms,
                headers: Arc::default(),
            });
        }
        let (seen, lost) = watcher.take();
        assert_eq!((seen.len(), seen[0].at_ms, lost), (WAITING, 3, 3));
    }
}
