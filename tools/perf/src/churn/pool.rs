//! Channels that tasks borrow, as applications do that have more tasks than channels.

use super::publisher::Publisher;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a waiting task looks whether it should stop.
const GLANCE: Duration = Duration::from_millis(50);

/// Free channels, and places whose channel was lost.
pub struct Pool<T = Publisher> {
    free: Mutex<VecDeque<Option<T>>>,
    came: Condvar,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self {
            free: Mutex::default(),
            came: Condvar::new(),
        }
    }
}

impl<T> Pool<T> {
    /// Waits for a channel; `None` if it should stop.
    pub fn acquire(&self, stops: impl Fn() -> bool) -> Option<Option<T>> {
        let mut free = self.free();
        loop {
            if let Some(channel) = free.pop_front() {
                return Some(channel);
            }
            if stops() {
                return None;
            }
            free = self
                .came
                .wait_timeout(free, GLANCE)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Gives one back, or a new one in its place.
    pub fn release(&self, channel: Option<T>) {
        self.free().push_back(channel);
        self.came.notify_one();
    }

    /// Takes all that are free.
    pub fn drain(&self) -> Vec<T> {
        self.free().drain(..).flatten().collect()
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<Option<T>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn who_waits_gets_the_channel_that_comes_back() {
        let pool = Arc::new(Pool::<u32>::default());
        pool.release(Some(7));
        assert_eq!(pool.acquire(|| false), Some(Some(7)));
        let waiting = std::thread::spawn({
            let pool = pool.clone();
            move || pool.acquire(|| false)
        });
        pool.release(Some(8));
        assert_eq!(waiting.join().unwrap(), Some(Some(8)));
        assert_eq!(pool.acquire(|| true), None);
    }

    #[test]
    fn a_place_whose_channel_was_lost_stays_a_place() {
        let pool = Pool::<u32>::default();
        pool.release(None);
        assert_eq!(pool.acquire(|| false), Some(None));
    }
}
