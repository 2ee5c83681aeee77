//! Back-pressure: a publisher to a full or slow place is slowed through its own socket. What it published is taken; it
//! is just not read from again until there is relief.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use std::task::Waker;
use std::time::Duration;

/// A publisher's reason to wait.
#[derive(Clone, Debug)]
pub struct Pressure {
    relief: Arc<Relief>,
    patience: Option<Duration>,
}

impl Pressure {
    /// Something is full: the publisher waits for as long as it takes.
    pub(crate) fn until_relief(relief: Arc<Relief>) -> Self {
        Self {
            relief,
            patience: None,
        }
    }

    /// The publisher waits for its turn, but no longer than `patience`.
    pub(crate) fn with_patience(relief: Arc<Relief>, patience: Duration) -> Self {
        Self {
            relief,
            patience: Some(patience),
        }
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
        let pressure = Pressure::until_relief(relief.clone());
        assert!(!pressure.poll(Waker::noop()));
        relief.relieve();
        assert!(pressure.poll(Waker::noop()));
        assert!(pressure.poll(Waker::noop()));
    }
}
