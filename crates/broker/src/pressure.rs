//! Back-pressure: a publisher to a full or slow place is slowed through its own socket. What it published is taken; it
//! is just not read from again until there is relief.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use std::task::Waker;

/// A publisher's reason to wait.
#[derive(Clone, Debug)]
pub struct Pressure(pub(crate) Arc<Relief>);

impl Pressure {
    /// True once the publisher may go on; else `waker` is woken when it may.
    pub fn poll(&self, waker: &Waker) -> bool {
        self.0.poll(waker)
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
        let pressure = Pressure(relief.clone());
        assert!(!pressure.poll(Waker::noop()));
        relief.relieve();
        assert!(pressure.poll(Waker::noop()));
        assert!(pressure.poll(Waker::noop()));
    }
}
