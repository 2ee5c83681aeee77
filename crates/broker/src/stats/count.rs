//! A number with one writer.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread at a time writes and any thread reads. A change is a load and a store, with no lock on the bus;
/// readers may be behind by a moment.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// So many more.
    #[inline]
    pub fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    /// It is this now.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The number.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl From<u64> for Count {
    fn from(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
}
