//! What lies between the publishers and the consumers of one queue.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a waiting publisher sleeps at most before it looks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(50);

/// Lets publishers run ahead of consumers by at most `limit` messages, so that the broker stores no backlog.
pub struct Gate {
    limit: u64,
    published: AtomicU64,
    consumed: AtomicU64,
    /// Publishers that wait. A consumer takes the lock only if there are any.
    waiting: AtomicUsize,
    lock: Mutex<()>,
    room: Condvar,
}

impl Gate {
    /// A limit of 0 is none.
    pub fn new(limit: u64) -> Self {
        Self {
            limit: if limit == 0 { u64::MAX } else { limit },
            published: AtomicU64::new(0),
            consumed: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            lock: Mutex::new(()),
            room: Condvar::new(),
        }
    }

    /// Messages that publishers have written or are about to write.
    pub fn published(&self) -> u64 {
        self.published.load(SeqCst)
    }

    /// Messages that consumers have received.
    pub fn consumed(&self) -> u64 {
        self.consumed.load(SeqCst)
    }

    /// Counts `messages` as published once there is room for them; `false` if the run is over before.
    ///
    /// A publisher that had to wait goes on only at half the limit, so that it is woken once a batch and not
    /// once a message.
    pub fn enter(&self, messages: u64, stop: &AtomicBool) -> bool {
        loop {
            if stop.load(SeqCst) {
                return false;
            }
            let published = self.published();
            if published + messages - self.consumed() <= self.limit.max(messages) {
                if self
                    .published
                    .compare_exchange(published, published + messages, SeqCst, SeqCst)
                    .is_ok()
                {
                    return true;
                }
                continue;
            }
            self.wait(stop);
        }
    }

    /// Counts `messages` as consumed.
    pub fn leave(&self, messages: u64) {
        self.consumed.fetch_add(messages, SeqCst);
        if self.waiting.load(SeqCst) > 0 && self.half_empty() {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.room.notify_all();
        }
    }

    fn wait(&self, stop: &AtomicBool) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_add(1, SeqCst);
        while !self.half_empty() && !stop.load(SeqCst) {
            guard = self
                .room
                .wait_timeout(guard, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        self.waiting.fetch_sub(1, SeqCst);
    }

    fn half_empty(&self) -> bool {
        self.published().saturating_sub(self.consumed()) <= self.limit / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn publishers_wait_for_consumers() {
        let (gate, stop) = (Gate::new(10), AtomicBool::new(false));
        thread::scope(|scope| {
            let publisher = scope.spawn(|| (0..10_000).filter(|_| gate.enter(3, &stop)).count());
            let mut consumed = 0;
            while consumed < 30_000 {
                let there = gate.published() - consumed;
                assert!(there <= 10);
                gate.leave(there);
                consumed += there;
            }
            assert_eq!(publisher.join().unwrap(), 10_000);
        });
        assert_eq!((gate.published(), gate.consumed()), (30_000, 30_000));
    }

    #[test]
    fn the_end_of_the_run_wakes_who_waits() {
        let (gate, stop) = (Gate::new(1), AtomicBool::new(false));
        assert!(gate.enter(1, &stop));
        thread::scope(|scope| {
            let publisher = scope.spawn(|| gate.enter(1, &stop));
            stop.store(true, SeqCst);
            assert!(!publisher.join().unwrap());
        });
    }
}
