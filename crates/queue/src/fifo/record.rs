//! What is now so. Past tense; journaled, replayed, versioned.

use super::Place;
use model::{Block, DeduplicationKey, Index, Ranges, Seq};
use std::sync::Arc;

/// A fact about the queue's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Messages `from..` of the block became `first`, `first + 1`, … (what stood before `from` was delivered straight
    /// through or dropped at once and needed no record). Only messages `from..` are encoded, so a decoded record has
    /// `from` 0 and the first message of its block is `first`.
    Enqueued {
        first: Seq,
        block: Arc<Block>,
        from: u32,
        /// When some of them expire, by rising numbers.
        expiries: Vec<Expiry>,
        /// Their deduplication keys count.
        keyed: bool,
    },
    /// Consumers are done with these.
    Settled { seqs: Ranges },
    /// These came back and will be delivered again.
    Returned { seqs: Ranges },
    /// These came back and will be delivered again, each once its time has come; by rising numbers.
    Retried { until: Vec<Expiry> },
    /// These are gone without a consumer.
    Dropped { seqs: Ranges, reason: DropReason },
    /// These now lie in the queue's segments.
    Moved { pieces: Vec<Stored> },
    /// Everything that exists: what replay met before is forgotten. All bodies lie in segments or in records from
    /// `Snapshot::since` on.
    Snapshot(Snapshot),
}

/// Messages that have one deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The first of them.
    pub first: Seq,
    /// The last.
    pub last: Seq,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl Record {
    /// The lowest message that it is about, or of a snapshot the next one; 0 if it is about none. All are of one lane.
    pub(crate) fn first(&self) -> Seq {
        let first = match self {
            Self::Enqueued { first, .. } => Some(*first),
            Self::Settled { seqs } | Self::Returned { seqs } | Self::Dropped { seqs, .. } => seqs.first(),
            Self::Retried { until } => until.first().map(|until| until.first),
            Self::Moved { pieces } => pieces.first().map(|piece| piece.first),
            Self::Snapshot(snapshot) => Some(snapshot.next),
        };
        first.unwrap_or(0)
    }
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
    /// `x-message-ttl` or the message's own `expiration`.
    Expired,
    /// Returned more often than `x-delivery-limit` permits.
    DeliveryLimit,
    /// `queue.purge`, or an operator removed or moved them.
    Purged,
    /// The stored bytes are damaged.
    Unreadable,
}

/// The queue's contents at one point of its journal: all of them that the journal knows of, so replay may forget whatever
/// it met before. Records before `since` are not needed any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The lowest record that bodies still lie in; the snapshot's own number if none do.
    pub since: Index,
    /// The next message gets this number.
    pub next: Seq,
    /// The highest message that a consumer settled; lower ones are suspected of having been delivered.
    pub settled_high: Seq,
    /// What holds live messages, ascending.
    pub kept: Vec<Kept>,
    /// Live messages that were returned, and how often.
    pub returned: Vec<(Seq, u32)>,
    /// When messages expire, by rising first numbers; some of them may be gone.
    pub expiries: Vec<Expiry>,
    /// Until when messages wait that were returned, by rising numbers.
    pub retries: Vec<Expiry>,
    /// The deduplication keys of messages, by rising numbers.
    pub keys: Vec<(Seq, DeduplicationKey)>,
}

/// Messages that lie together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The first of them.
    pub first: Seq,
    /// How many numbers they span.
    pub count: u32,
    /// Where their bytes are.
    pub rest: Rest,
    /// The number of the first message that is found there.
    pub base: Seq,
    /// Which of the numbers are gone.
    pub gone: Ranges,
    /// The sum of their body lengths, gone ones included, in bytes.
    pub body_bytes: u64,
    /// How much there is to read, in bytes, roughly.
    pub weight: u64,
}

/// Where bytes rest that survive a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// In the `Enqueued` record of this number.
    Journal(Index),
    /// In the queue's segments.
    Segment(Place),
}
