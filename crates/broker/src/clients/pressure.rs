//! Back-pressure: a publisher to a full or slow place is slowed through its own socket. What it published is taken; it
//! is just not read from again until it is released.

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
    /// Another node: so much of what was sent to its queue has no answer.
    Node,
    /// The node is low on memory or disk, and the connection published; or another node is, and it published to a queue there.
    Alarm,
    /// A limit on the rate of its user or its virtual host.
    RateLimit,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Memory,
        Self::Consumers,
        Self::Sync,
        Self::LogSize,
        Self::Catalog,
        Self::Node,
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
            Self::Node => "node",
            Self::Alarm => "alarm",
            Self::RateLimit => "rate_limit",
        }
    }
}

/// A publisher's reason to wait.
#[derive(Clone, Debug)]
pub struct Pressure {
    reason: Reason,
    release: Arc<Release>,
    timeout: Option<Duration>,
    /// What its client is told, if an alarm of another node is the reason.
    alarm: Option<Arc<str>>,
}

impl Pressure {
    /// Something is full: the publisher waits for as long as it takes.
    pub(crate) fn until_release(reason: Reason, release: Arc<Release>) -> Self {
        Self {
            reason,
            release,
            timeout: None,
            alarm: None,
        }
    }

    /// Another node has an alarm, of which its client is told by this text: the publisher waits for its end.
    pub(crate) fn by_alarm(text: Arc<str>, release: Arc<Release>) -> Self {
        Self {
            alarm: Some(text),
            ..Self::until_release(Reason::Alarm, release)
        }
    }

    /// The publisher waits for its turn, but no longer than `timeout`.
    pub(crate) fn with_timeout(reason: Reason, release: Arc<Release>, timeout: Duration) -> Self {
        Self {
            reason,
            release,
            timeout: Some(timeout),
            alarm: None,
        }
    }

    /// A limit on its rate holds the publisher for this long, whether it consumes or not.
    pub(crate) fn by_rate(release: Arc<Release>, wait: Duration) -> Self {
        Self::with_timeout(Reason::RateLimit, release, wait)
    }

    /// What is short.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The alarm of another node for whose end it waits, in the words in which its client is told.
    pub fn alarm(&self) -> Option<&Arc<str>> {
        self.alarm.as_ref()
    }

    /// True once the publisher may go on; else `waker` is woken when it may.
    pub fn poll(&self, waker: &Waker) -> bool {
        self.release.poll(waker)
    }

    /// After this time the publisher goes on without a release. `None` if it must not: something is full. With a timeout it is
    /// held to the pace of its queue's consumers, which is pointless for a connection that consumes itself: who does not
    /// read its acknowledgements slows the very consumers that it waits for.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

/// What waiting publishers wait for. It comes once and stays.
#[derive(Debug, Default)]
pub struct Release {
    released: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Release {
    /// Lets everyone go on who waits or will wait.
    pub fn release(&self) {
        self.released.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for waker in waiting {
            waker.wake();
        }
    }

    fn poll(&self, waker: &Waker) -> bool {
        if self.released.load(Ordering::Acquire) {
            return true;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.released.load(Ordering::Acquire) {
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
    fn pressure_is_released_once_and_for_good() {
        let release = Arc::new(Release::default());
        let pressure = Pressure::until_release(Reason::Memory, release.clone());
        assert!(!pressure.poll(Waker::noop()));
        release.release();
        assert!(pressure.poll(Waker::noop()));
        assert!(pressure.poll(Waker::noop()));
    }
}
