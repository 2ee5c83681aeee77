//! What the machine orders its host to do. Imperative.

use super::{DeadLetterTo, DropReason, Ends, Place};
use model::{Block, ConsumerId, Index, Ranges, Seq};
use smallvec::SmallVec;
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
    /// The queue has refused these messages because it is full.
    Reject(E::Receipt),
    /// Publish these messages to the dead-letter exchange; answered by `Request::DeadLettered` with the same ticket. The
    /// pieces' first numbers mean something to the machine only.
    DeadLetter {
        ticket: u64,
        to: Arc<DeadLetterTo>,
        reason: DropReason,
        pieces: Vec<Piece>,
    },
    /// Answer a question.
    Reply(E::Reply, Answer),
    /// Tell a consumer that it is one no longer (the queue is gone).
    CancelConsumer { outlet: E::Outlet, consumer: ConsumerId },
    /// Read back the block at `source`, which message `first` lies in; answered by `Request::Loaded` with the same `first`
    /// and the whole block found there.
    Load { first: Seq, source: Source },
    /// Write these pieces to the queue's segments, in order; answered by `Request::Stored`, one answer for each `Store`
    /// and in the order of the `Store`s. `durable` pieces must be synced before the answer.
    Store { pieces: Vec<Piece>, durable: bool },
    /// Nothing in these entries is needed any more.
    Release { places: Vec<Place> },
    /// Always a promise, with the snapshot that made it so: records with lower numbers than `before` are not needed any
    /// more, neither for replay nor to be read.
    Forget { before: Index },
    /// The queue's last consumer is gone and it was declared auto-delete, or nobody used it for as long as it was told to wait:
    /// have it deleted.
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
    /// How often they came back; 0 also if the queue does not tell.
    pub returns: u32,
}

/// What a message costs of a consumer's window beyond its bytes in the block (12 of which are lengths): roughly its frames.
const DELIVERY_OVERHEAD: usize = 28;

/// What messages `from..from + count` of a block cost of a consumer's window, in bytes.
pub(crate) fn delivery_bytes(block: &Block, from: usize, count: usize) -> u64 {
    (block.slice(from, count).len() + count * DELIVERY_OVERHEAD) as u64
}

impl Delivery {
    /// What the delivery cost of its consumer's window, in bytes: what `Request::Flow` is to give back once it is written.
    /// Additive over messages, so that it may be given back in parts (see [`Delivery::bytes_of`]).
    pub fn bytes(&self) -> u64 {
        self.seqs
            .spans()
            .map(|(first, last)| self.bytes_of(first, last))
            .sum()
    }

    /// What messages `first..=last` of the delivery cost of the window, in bytes.
    pub fn bytes_of(&self, first: Seq, last: Seq) -> u64 {
        delivery_bytes(
            &self.block,
            (first - self.base) as usize,
            (last + 1 - first) as usize,
        )
    }
}

/// Where bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The block of an `Enqueued` record: this record of the queue's journal.
    Journal(Index),
    /// An entry of the queue's segments.
    Segment(Place),
}

/// A contiguous piece of the queue that is to be stored as one entry: the messages of its parts one behind the other.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its first message.
    pub first: Seq,
    /// How many messages, without gaps; the sum over its parts.
    pub count: u32,
    /// What it is made of, in order; at least one. The entry's persistence and time of receipt are those of the first.
    pub parts: SmallVec<[Part; 1]>,
}

/// Messages of one block.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where the block is.
    pub bytes: Bytes,
    /// Which of the block's messages is the first.
    pub from: u32,
    /// How many messages.
    pub count: u32,
}

/// Where a block is.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Here.
    Memory(Arc<Block>),
    /// To be read.
    Source(Source),
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
    /// The operator has these.
    Taken(Ranges),
    /// So many ready messages were dropped.
    Purged(u64),
    /// The queue is ready to be deleted; so many ready messages go with it.
    Retired(u64),
    /// Not retired: there are consumers.
    InUse,
    /// Not retired: there are messages.
    NotEmpty,
}
