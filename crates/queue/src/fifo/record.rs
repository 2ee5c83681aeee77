//! What is now so. Past tense; journaled, replayed, versioned.

use super::Place;
use model::{Block, Ranges, Seq};
use std::sync::Arc;

/// A fact about the queue's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Messages `from..` of the block became `first`, `first + 1`, … (what stood before `from` was delivered straight
    /// through and needed no record).
    Enqueued {
        first: Seq,
        block: Arc<Block>,
        from: u32,
    },
    /// Consumers are done with these.
    Settled { seqs: Ranges },
    /// These came back and will be delivered again.
    Returned { seqs: Ranges },
    /// These are gone without a consumer.
    Dropped { seqs: Ranges, reason: DropReason },
    /// These now lie in the queue's segments.
    Moved { pieces: Vec<Stored> },
    /// Everything that exists: replay may start here. All bodies lie in segments or in records from `Index` on.
    Snapshot(Snapshot),
}

/// A contiguous piece of the queue in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its first message.
    pub first: Seq,
    /// How many messages, without gaps.
    pub count: u32,
    /// Where.
    pub place: Place,
}

/// Why messages were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// `x-max-length` or `x-max-length-bytes`.
    MaxLength,
    /// Rejected by a consumer without requeue.
    Rejected,
    /// `queue.purge`.
    Purged,
    /// The stored bytes are damaged.
    Unreadable,
}

/// The queue's contents at one point of its journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The next message gets this number.
    pub next: Seq,
    /// The pieces that hold live messages, ascending, with the numbers in each that are already gone.
    pub pieces: Vec<(Stored, Ranges)>,
    /// Live messages that were returned at least once.
    pub returned: Ranges,
}
