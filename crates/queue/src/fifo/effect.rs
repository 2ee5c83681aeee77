//! What the machine orders its host to do. Imperative.

use super::{Ends, Place};
use model::{Block, ConsumerId, Index, Ranges, Seq};
use std::sync::Arc;

/// An order to the host.
#[derive(Debug)]
pub enum Effect<E: Ends> {
    /// Give these messages to a consumer.
    Deliver {
        outlet: E::Outlet,
        consumer: ConsumerId,
        delivery: Delivery,
    },
    /// The queue has taken responsibility (as a promise: once durable).
    Confirm(E::Receipt),
    /// Answer a question.
    Reply(E::Reply, Answer),
    /// Tell a consumer that it is one no longer (the queue is gone).
    CancelConsumer { outlet: E::Outlet, consumer: ConsumerId },
    /// Read message `first` onwards back to memory; answered by `Request::Loaded`.
    Load { first: Seq, source: Source },
    /// Write these pieces to the queue's segments, in order; answered by `Request::Stored`. `durable` pieces must be
    /// synced before the answer.
    Store { pieces: Vec<Piece>, durable: bool },
    /// Nothing in these entries is needed any more.
    Release { places: Vec<Place> },
    /// The queue's last consumer is gone and it was declared auto-delete: have it deleted.
    Unused,
}

/// Messages on their way to a consumer. Message `seq` is number `seq - base` of the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Which messages.
    pub seqs: Ranges,
    /// The block that holds them.
    pub block: Arc<Block>,
    /// The number that the block's first message has, or would have.
    pub base: Seq,
    /// They may have been delivered before.
    pub redelivered: bool,
}

/// Where bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The block of an `Enqueued` record: this record of the queue's journal.
    Journal(Index),
    /// An entry of the queue's segments.
    Segment(Place),
}

/// A contiguous piece of the queue that is to be stored.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its first message.
    pub first: Seq,
    /// How many messages, without gaps.
    pub count: u32,
    /// Its block if in memory, and which of the block's messages is the first.
    pub memory: Option<(Arc<Block>, u32)>,
    /// Else where it is read, and which message of the block found there is the first.
    pub source: Option<(Source, u32)>,
}

/// The answer to a question.
#[derive(Debug)]
pub enum Answer {
    /// Deliveries may come from now on.
    Consuming,
    /// Refused: an exclusive consumer is there, or exclusiveness was asked for and others are there.
    InExclusiveUse,
    /// The consumer is gone.
    Cancelled,
    /// One message, and how many ready ones are left.
    Got { delivery: Delivery, remaining: u64 },
    /// Nothing is ready.
    Empty,
    /// So many ready messages were dropped.
    Purged(u64),
    /// The queue is ready to be deleted; so many ready messages go with it.
    Retired(u64),
    /// Not retired: there are consumers.
    InUse,
    /// Not retired: there are messages.
    NotEmpty,
}
