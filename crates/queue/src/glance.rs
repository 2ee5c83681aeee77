//! What a look at a queue has found.

use crate::store::Bytes;
use model::Seq;

/// Whose a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may be delivered.
    Ready,
    /// It was delivered and is not settled.
    Held,
    /// It came back and waits for its next try.
    Waiting,
    /// It is on its way to a dead-letter exchange.
    Leaving,
}

/// Messages that lie together and are told apart by nothing.
#[derive(Clone, Debug)]
pub struct Glimpse {
    /// The first of them.
    pub first: Seq,
    /// The last.
    pub last: Seq,
    /// Whose they are.
    pub standing: Standing,
    /// They may have been delivered before.
    pub redelivered: bool,
    /// How often they came back.
    pub returns: u32,
    /// Where their block is; `None` if nobody can read it here. Places on disk stand until the queue's next turn: what cannot be
    /// read there was moved, or is gone, and is to be looked at again.
    pub bytes: Option<Bytes>,
    /// The number that the block's first message has, or would have.
    pub base: Seq,
}

/// What a look has found.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// The messages, in the queue's order.
    pub spans: Vec<Glimpse>,
    /// Where the next look goes on; `None` at the end of the queue.
    pub next: Option<Seq>,
    /// How many messages were passed over, of those that were to be.
    pub skipped: u64,
}
