//! Back-pressure: a publisher to a full or slow place is slowed through its own socket. What it published is taken; it
//! is just not read from again until there is relief.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use std::task::Waker;
use std::time::Duration;

/// What is short when a publisher waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Memory for the bodies of a queue: they are being paged out.
    Memory,
    /// Consumers: the queue's publishers are held to their pace.
    Consumers,
    /// The disk: what is to be synced has piled up.
    Sync,
    /// Room in the log: it waits for checkpoints.
    LogSize,
    /// The catalog: a queue is being deleted in parts.
    Catalog,
    /// The node is low on memory or disk, and the connection published.
    Alarm,
    /// A limit on the rate of its user or its virtual host.
    RateLimit,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Memory,
        Self::Consumers,
        Self::Sync,
        Self::LogSize,
        Self::Catalog,
        Self::Alarm,
        Self::RateLimit,
    ];

    /// As labels name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Consumers => "consumers",
            Self::Sync => "sync",
            Self::LogSize => "log_size",
            Self::Catalog => "catalog",
            Self::Alarm => "alarm",
            Self::RateLimit => "rate_limit",
        }
    }
}

/// A publisher's reason to wait.
#[derive(Clone, Debug)]
pub struct Pressure {
    reason: Reason,
    relief: Arc<Relief>,
    patience: Option<Duration>,
}

impl Pressure {
    /// Something is full: the publisher waits for as long as it takes.
    pub(crate) fn until_relief(reason: Reason, relief: Arc<Relief>) -> Self {
        Self {
            reason,
            relief,
            patience: None,
        }
    }

    /// The publisher waits for its turn, but no longer than `patience`.
    pub(crate) fn with_patience(reason: Reason, relief: Arc<Relief>, patience: Duration) -> Self {
        Self {
            reason,
            relief,
            patience: Some(patience),
        }
    }

    /// A limit on its rate holds the publisher for this long, whether it consumes or not.
    pub(crate) fn by_rate(relief: Arc<Relief>, wait: Duration) -> Self {
        Self::with_patience(Reason::RateLimit, relief, wait)
    }

    /// What is short.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// True once the publisher may go on; else `waker` is woken when it may.
    pub fn poll(&self, waker: &Waker) -> bool {
        self.relief.poll(waker)
    }

    /// After this time the publisher goes on without relief. `None` if it must not: something is full. With a patience it is
    /// held to the pace of its queue's consumers, which is pointless for a connection that consumes itself: who does not
    /// read its acknowledgements slows the very consumers that it waits for.
    pub fn patience(&self) -> Option<Duration> {
        self.patience
    }
}

/// What waiting publishers wait for. It comes once and stays.
#[derive(Debug, Default)]
pub struct Relief {
    relieved: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Relief {
    /// Lets everyone go on who waits or will wait.
    pub fn relieve(&self) {
        self.relieved.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for waker in waiting {
            waker.wake();
        }
    }

    fn poll(&self, waker: &Waker) -> bool {
        if self.relieved.load(Ordering::Acquire) {
            return true;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.relieved.load(Ordering::Acquire) {
            return true;
        }
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relief_comes_once_and_stays() {
        let relief = Arc::new(Relief::default());
        let pressure = Pressure::until_relief(Reason::Memory, relief.clone());
        assert!(!pressure.poll(Waker::noop()));
        relief.relieve();
        assert!(pressure.poll(Waker::noop()));
        assert!(pressure.poll(Waker::noop()));
    }
}
