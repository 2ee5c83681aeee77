//! What all connections of the node together hold of messages that are still coming in.
//!
//! Each connection counts what it holds itself, frame by frame, and its part here in large steps, so that small
//! messages cost nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A connection's part is counted in whole steps of so many bytes.
const STEP: usize = 64 * 1024;

/// Who holds less than this is never the one to go, in bytes.
const LARGE: usize = 1024 * 1024;

/// All parts.
#[derive(Debug, Default)]
pub struct Incomplete {
    bytes: AtomicU64,
}

impl Incomplete {
    /// What all hold together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// One connection's part. What it holds is given back when it is dropped.
#[derive(Debug)]
pub struct Part {
    all: Arc<Incomplete>,
    /// In whole steps.
    counted: usize,
}

impl Part {
    /// Of a connection that holds nothing yet.
    pub fn new(all: Arc<Incomplete>) -> Self {
        Self { all, counted: 0 }
    }

    /// The connection holds so many bytes now.
    #[inline]
    pub fn count(&mut self, held: usize) {
        if held / STEP != self.counted / STEP {
            self.recount(held / STEP * STEP);
        }
    }

    fn recount(&mut self, held: usize) {
        let total = &self.all.bytes;
        match held.checked_sub(self.counted) {
            Some(more) => total.fetch_add(more as u64, Ordering::Relaxed),
            None => total.fetch_sub((self.counted - held) as u64, Ordering::Relaxed),
        };
        self.counted = held;
    }

    /// True if it is large enough to count when memory is short.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.counted >= LARGE
    }

    /// What all hold together, in bytes.
    pub fn of_all(&self) -> u64 {
        self.all.bytes()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.recount(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_in_steps_and_are_given_back() {
        let all = Arc::new(Incomplete::default());
        let (mut one, mut two) = (Part::new(all.clone()), Part::new(all.clone()));
        one.count(STEP - 1);
        assert_eq!(all.bytes(), 0);
        one.count(3 * STEP + 7);
        two.count(LARGE);
        assert_eq!(one.of_all(), (3 * STEP + LARGE) as u64);
        assert_eq!((one.is_large(), two.is_large()), (false, true));
        one.count(STEP);
        two.count(0);
        assert_eq!(all.bytes(), STEP as u64);
        two.count(5 * STEP);
        drop(two);
        drop(one);
        assert_eq!(all.bytes(), 0);
    }
}
