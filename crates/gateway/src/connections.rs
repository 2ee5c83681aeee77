//! Who is connected: so that a stop can reach everyone and wait for them.

use broker::{CloseReason, Event, Outbox};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// All connections of a gateway.
#[derive(Debug, Default)]
pub struct Connections {
    inner: Mutex<Inner>,
    fewer: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    stopping: bool,
    outboxes: HashMap<u64, Arc<Outbox>>,
}

/// A connection's entry; removed when dropped.
#[derive(Debug)]
pub struct Entry {
    connections: Arc<Connections>,
    number: u64,
}

impl Connections {
    /// Enters a connection. `None` if the gateway is stopping.
    pub fn enter(self: &Arc<Self>, outbox: Arc<Outbox>) -> Option<Entry> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.stopping {
            return None;
        }
        inner.next += 1;
        let number = inner.next;
        inner.outboxes.insert(number, outbox);
        Some(Entry {
            connections: self.clone(),
            number,
        })
    }

    /// Asks everyone to go, lets nobody in any more, and waits until all are gone or `timeout` is over. False in the
    /// latter case.
    pub fn close(&self, reason: &CloseReason, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.stopping = true;
        for outbox in inner.outboxes.values() {
            outbox.send(Event::Close(reason.clone()));
        }
        while !inner.outboxes.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inner = self
                .fewer
                .wait_timeout(inner, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut inner = self
            .connections
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        inner.outboxes.remove(&self.number);
        self.connections.fewer.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_reaches_everyone_and_lets_nobody_in() {
        let connections = Arc::new(Connections::default());
        let outbox = Arc::new(Outbox::new());
        let entry = connections.enter(outbox.clone()).unwrap();
        assert!(!connections.close(&CloseReason::Shutdown, Duration::ZERO));
        let mut events = Vec::new();
        outbox.take_now(&mut events);
        assert!(matches!(&events[..], [Event::Close(CloseReason::Shutdown)]));
        assert!(connections.enter(outbox).is_none());
        drop(entry);
        assert!(connections.close(&CloseReason::Shutdown, Duration::ZERO));
    }
}
