//! What one thread counted.

use crate::measure::Recorder;

/// Messages and latencies as of any load, and what only streams have.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    pub recorder: Recorder,
    /// Chunks that came, and the entries in them.
    pub chunks: u64,
    pub entries: u64,
    /// Frames of messages that were sent, and the messages in them.
    pub batches: u64,
    pub batched: u64,
    /// Bytes.
    pub written: u64,
    pub read: u64,
}

impl Counted {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was counted so far to another one; counting goes on from nothing. Allocates nothing.
    pub fn drain_into(&mut self, total: &mut Self) {
        self.recorder.drain_into(&mut total.recorder);
        total.add_counts(self);
        (self.chunks, self.entries, self.batches, self.batched) = (0, 0, 0, 0);
        (self.written, self.read) = (0, 0);
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Self) {
        self.recorder.merge(&other.recorder);
        self.add_counts(other);
    }

    fn add_counts(&mut self, other: &Self) {
        self.chunks += other.chunks;
        self.entries += other.entries;
        self.batches += other.batches;
        self.batched += other.batched;
        self.written += other.written;
        self.read += other.read;
    }
}

/// The mean, or 0 of nothing.
pub fn mean(sum: u64, count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        sum as f64 / count as f64
    }
}
