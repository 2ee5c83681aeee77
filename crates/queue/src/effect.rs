//! What a queue's machine, of whatever kind, orders its host to do. Imperative.

use crate::store::{self, Piece};
use crate::{DropReason, Ends};
use model::{Block, ConsumerId, DeadLetterTo, Incarnation, Ranges, Seq};
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
    /// Nothing was taken of a block that this node sent, because what it sent before is missing: the queue expects
    /// number `number` next. 0 if there are too many senders for another one.
    Expects {
        receipt: Option<E::Receipt>,
        sender: Incarnation,
        number: u64,
    },
    /// Publish these messages to the dead-letter exchange; answered by `Request::FinishDeadLetters` with the same ticket. The
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
    /// An order of the message store.
    Store(store::Effect),
    /// Tell the reader of a stream that there is something to read.
    Readable { outlet: E::Outlet, consumer: ConsumerId },
    /// Tell the reader of a stream that it is its group's active one, or is it no longer.
    Active {
        outlet: E::Outlet,
        consumer: ConsumerId,
        active: bool,
    },
    /// Have the queue deleted: its last consumer is gone and it was declared auto-delete, or nobody used it for as long
    /// as it was told to wait.
    DeleteQueue,
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
    /// How many of these count for a delivery limit, in a queue that counts them apart.
    pub failures: Option<u32>,
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

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Deliveries may come from now on.
    Consuming,
    /// Refused: an exclusive consumer is there, or exclusiveness was asked for and others are there.
    InExclusiveUse,
    /// The consumer is gone.
    Cancelled,
    /// No delivery follows until the consumer is resumed.
    Paused,
    /// So many messages are ready, and so many consumers are there.
    Stands { ready: u64, consumers: u64 },
    /// One message, and how many ready ones are left.
    Got { delivery: Delivery, remaining: u64 },
    /// Nothing is ready.
    Empty,
    /// The operator has these.
    Taken(Ranges),
    /// Of what a node's consumers hold these do not count: the node is to forget them.
    Discard(Ranges),
    /// What the node sent was taken or refused below this number; of what it asked for these were refused. 0 if there are
    /// too many senders for another one.
    Recalled { below: u64, refused: Ranges },
    /// A number that a stream keeps under a reference, or where a reader begins; `None` if there is none.
    Number(Option<u64>),
    /// So many ready messages were dropped.
    Purged(u64),
    /// The queue may be deleted; so many ready messages go with it.
    MayRetire(u64),
    /// It may not: there are consumers.
    InUse,
    /// It may not: there are messages.
    NotEmpty,
}
