//! What is now so. Past tense; journaled, replayed, versioned. Records are outcomes: they say what became of messages,
//! never where bytes are, so every node that holds the queue can apply them.

use crate::{DropReason, NodeConsumer};
use model::{Block, DeduplicationKey, Incarnation, Ranges, Seq};
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
        /// Which messages of their sender they were, in the same order, if a node sent them that numbers what it sends.
        sent: Option<Box<Sent>>,
    },
    /// Messages below this number may have been handed out.
    HandedOut { below: Seq },
    /// These messages of a sender did not come in: refused, or else there already.
    Declined { sent: Box<Sent>, refused: bool },
    /// This node counts as down, or no more: as long as it does, nothing that its consumers hold counts.
    Barred { node: Incarnation, barred: bool },
    /// These nodes, and no others, may hold messages that were handed out; `None`: it may be any node.
    MayHold { nodes: Option<Vec<Incarnation>> },
    /// This consumer is the active one.
    Activated { consumer: NodeConsumer },
    /// This sender sends nothing more.
    IncarnationEnded { incarnation: Incarnation },
    /// Consumers are done with these.
    Settled { seqs: Ranges },
    /// These came back and will be delivered again. `given_back`: their consumer gave them back, which the queue counts apart.
    Returned { seqs: Ranges, given_back: bool },
    /// These came back and will be delivered again, each once its time has come; by rising numbers.
    Retried { until: Vec<Expiry>, given_back: bool },
    /// Of the last returns of these one was a consumer's giving back, as builds said that had a record of its own for it.
    GivenBack { seqs: Ranges },
    /// These are gone without a consumer.
    Dropped { seqs: Ranges, reason: DropReason },
}

/// Messages by the numbers that their sender has for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The sender.
    pub by: Incarnation,
    /// Everything below was taken or declined before.
    pub first: u64,
    /// The messages.
    pub numbers: Ranges,
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
    /// The lowest message of the queue that it is about; 0 if it is about none. All are of one lane.
    pub(crate) fn first(&self) -> Seq {
        let first = match self {
            Self::Enqueued { first, .. } => Some(*first),
            Self::Settled { seqs }
            | Self::Returned { seqs, .. }
            | Self::GivenBack { seqs }
            | Self::Dropped { seqs, .. } => seqs.first(),
            Self::Retried { until, .. } => until.first().map(|until| until.first),
            Self::HandedOut { below } => Some(*below),
            Self::Declined { .. }
            | Self::Barred { .. }
            | Self::MayHold { .. }
            | Self::Activated { .. }
            | Self::IncarnationEnded { .. } => None,
        };
        first.unwrap_or(0)
    }
}

/// A queue's contents after one of its records, as far as the journal knows of them; of a queue that sorts its messages
/// those of one lane. They are the same on every node that has applied the same records, but for deadlines that have
/// passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The next message gets this number.
    pub next: Seq,
    /// Messages below may have been handed out, in a queue that has that on record; 0 in others.
    pub handed_below: Seq,
    /// The highest message that a consumer settled; lower ones are suspected of having been delivered.
    pub settled_high: Seq,
    /// The messages that exist.
    pub live: Ranges,
    /// Those that were returned, and how often.
    pub returned: Vec<(Seq, u32)>,
    /// How often of these consumers gave them back, in queues that count that apart.
    pub given_back: Vec<(Seq, u32)>,
    /// When messages expire, by rising numbers.
    pub expiries: Vec<Expiry>,
    /// Until when messages wait that were returned, by rising numbers.
    pub retries: Vec<Expiry>,
    /// The deduplication keys of messages, by rising numbers.
    pub keys: Vec<(Seq, DeduplicationKey)>,
}
