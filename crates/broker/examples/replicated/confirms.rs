//! Confirms on their way to who publishes: one wake-up for many, as a connection has it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

pub struct Confirms {
    last: AtomicU64,
    /// From this number on whoever waits is woken.
    wanted: AtomicU64,
    waiting: Mutex<Option<Thread>>,
}

impl Default for Confirms {
    fn default() -> Self {
        Self {
            last: AtomicU64::new(0),
            wanted: AtomicU64::new(u64::MAX),
            waiting: Mutex::default(),
        }
    }
}

impl Confirms {
    /// Everything up to this publish is confirmed.
    pub fn reached(&self, number: u64) {
        self.last.store(number, Ordering::SeqCst);
        if number >= self.wanted.load(Ordering::SeqCst) {
            self.wanted.store(u64::MAX, Ordering::SeqCst);
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.as_ref().inspect(|thread| thread.unpark());
        }
    }

    /// The last publish that is confirmed.
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::SeqCst)
    }

    /// Somebody else publishes from now on, and begins with number 1.
    pub fn begin(&self) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
        self.last.store(0, Ordering::SeqCst);
    }

    /// Waits until this publish is confirmed, for a while. Whether it is.
    pub fn wait(&self, number: u64) -> bool {
        self.wanted.store(number, Ordering::SeqCst);
        if self.last() < number {
            thread::park_timeout(Duration::from_millis(100));
        }
        self.last() >= number
    }
}
