//! What may be asked of a queue, of whatever kind. Imperative.

use crate::store;
use crate::stream::StreamRequest;
use crate::{ConsumerSettings, Ends};
use model::{Block, ConsumerId, Incarnation, QueueSettings, Ranges};
use std::sync::Arc;

/// A request to the queue.
#[derive(Debug)]
pub enum Request<E: Ends> {
    /// Take these messages, in order. The receipt comes back as `Confirm` when they are safe: at once if nothing
    /// needs the journal (transient, or already handed to a consumer that does not acknowledge), else as a promise.
    Enqueue {
        block: Arc<Block>,
        receipt: Option<E::Receipt>,
    },
    /// The same, from a node that sends again what it has no answer to. What was taken or refused before is answered as
    /// it was then, and nothing is taken twice; if something is missing before the block, `Effect::Expects` says so. It
    /// is boxed for the same reason as the settings below.
    EnqueueFrom {
        origin: Box<Origin>,
        block: Arc<Block>,
        receipt: Option<E::Receipt>,
    },
    /// What became of what this node sent, from number `from` on? Answered with `Answer::Recalled`; by then everything
    /// that was decided before is on record, whatever it was.
    Recall {
        sender: Incarnation,
        from: u64,
        reply: E::Reply,
    },
    /// Another machine has decided here before, and of these nodes consumers may hold what it delivered: nothing is
    /// delivered before each of them has said what they hold, or counts as down.
    AwaitNodes { nodes: Vec<Incarnation> },
    /// What consumers of this node hold; with `more` a part of it. What does not count is in the answer, `Answer::Discard`.
    Holds {
        node: Incarnation,
        held: Vec<Held>,
        more: bool,
        reply: E::Reply,
    },
    /// This node says nothing: what its consumers held when another machine decided is delivered again, and whatever it
    /// says of that later does not count, whoever decides then, until it knows that. What they were given since is the
    /// host's to return.
    CountAsDown { node: Incarnation },
    /// This node has been told what does not count of all that it has said in `Holds`: what it says from now on counts.
    Knows { node: Incarnation },
    /// Somebody on this node asks for messages, and may hold some from now on: whoever decides next waits for its word. Comes
    /// before a [`Request::Get`]; who adds a consumer says so by that. `None`: it may be any node, whatever is on record. Comes
    /// before [`Request::AwaitNodes`] then.
    MayHold { node: Option<Incarnation> },
    /// Nobody on this node has anything of the queue, or waits for something.
    HoldsNothing { node: Incarnation },
    /// This incarnation of a node sends nothing more, and holds nothing: what was kept to recognise it is forgotten.
    IncarnationEnded { incarnation: Incarnation },
    /// Add a consumer. Answered with `Answer::Consuming`, or `Answer::InExclusiveUse`.
    Consume {
        consumer: ConsumerId,
        outlet: E::Outlet,
        settings: ConsumerSettings,
        reply: E::Reply,
    },
    /// The same, of a consumer that another machine may have known. Which one is the active one of a queue that has a single
    /// one is on record by that name, and whoever decides next goes on with it. It is boxed for the same reason as the settings
    /// below.
    ConsumeFrom {
        of: Box<NodeConsumer>,
        consumer: ConsumerId,
        outlet: E::Outlet,
        settings: ConsumerSettings,
        reply: E::Reply,
    },
    /// Remove a consumer. What it holds unacknowledged stays its channel's business. Answered with `Answer::Cancelled`.
    Cancel {
        consumer: ConsumerId,
        reply: Option<E::Reply>,
    },
    /// Hand out one message (`basic.get`). Answered with `Answer::Got` or `Answer::Empty`, perhaps after a load.
    Get { no_ack: bool, reply: E::Reply },
    /// These delivered messages are done with. `consumer` is who held them, `None` after a get.
    Settle {
        consumer: Option<ConsumerId>,
        seqs: Ranges,
        disposal: Disposal,
    },
    /// These delivered messages go back to where they stood. `failed` is false if nobody can have seen them.
    Return {
        consumer: Option<ConsumerId>,
        seqs: Ranges,
        failed: bool,
    },
    /// The consumer gave these back (`basic.nack`, `basic.recover`), or held them for too long: they go back to where they stood.
    Requeue {
        consumer: Option<ConsumerId>,
        seqs: Ranges,
    },
    /// Hand these, as far as they are ready, to an operator. Answered with `Answer::Taken`.
    TakeOut { seqs: Ranges, reply: E::Reply },
    /// The operator gives these back to where they stood.
    PutBack { seqs: Ranges },
    /// These, which the operator has, are to be gone.
    Remove { seqs: Ranges },
    /// The consumer's front end has written so many bytes to its socket (counted as [`crate::Delivery::bytes`] does): as many
    /// more may be delivered to it.
    Flow { consumer: ConsumerId, bytes: u32 },
    /// From now on this consumer may hold so many unacknowledged messages; 0 is no limit.
    Limit { consumer: ConsumerId, prefetch: u32 },
    /// Deliver nothing to this consumer until `Resume` (its channel's global prefetch is used up, by itself or by
    /// others). Answered with `Answer::Paused`.
    Pause {
        consumer: ConsumerId,
        reply: Option<E::Reply>,
    },
    /// Undo `Pause`.
    Resume { consumer: ConsumerId },
    /// Drop everything that is ready. Answered with `Answer::Purged`.
    Purge { reply: E::Reply },
    /// May the queue be deleted? Answered with `Answer::MayRetire`, `InUse` or `NotEmpty`. Nothing changes: who deletes it is the
    /// catalog.
    MayRetire {
        if_unused: bool,
        if_empty: bool,
        reply: E::Reply,
    },
    /// The queue is deleted: consumers are cancelled and everything later is ignored (receipts are confirmed: the message went
    /// nowhere, as in RabbitMQ).
    Retire,
    /// Somebody uses the queue other than by consuming or getting (a repeated declaration): see `QueueSettings::expires_ms`.
    /// Answered with `Answer::Stands`.
    Use { reply: Option<E::Reply> },
    /// Do what is due: the time that `Classic::wakes_at_ms` named has come.
    Wake,
    /// Let these dead letters go, in answer to `Effect::DeadLetter`: all queues that the messages went to have them
    /// safely, or they went nowhere. `unread` could not be read where the effect said: they were moved meanwhile, or
    /// are damaged. `failed` could not be read just now, which says nothing about what is there.
    FinishDeadLetters {
        ticket: u64,
        unread: Ranges,
        failed: Ranges,
    },
    /// Hand dead letters over again that have `failed`, without a pause: a reason for that is over.
    HandOverAgain,
    /// New settings (limits) are in force. They are boxed because a request is as large as its largest kind.
    Configure { settings: Box<QueueSettings> },
    /// Nobody can read these messages any more, on whatever node. Those that no consumer holds are dropped with
    /// `DropReason::Unreadable`.
    GiveUp { seqs: Ranges },
    /// Something is asked of the message store, or an order of it was carried out.
    Store(store::Request),
    /// What only streams are asked; no other kind is. It is boxed for the same reason as the settings above.
    Stream(Box<StreamRequest<E>>),
}

/// Where a block comes from. Each incarnation of a node numbers what it sends to a queue, from 1 and without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Who sends.
    pub sender: Incarnation,
    /// The number of the block's first message.
    pub first: u64,
}

impl Origin {
    /// Where the block's messages from number `at` on come from.
    #[must_use]
    pub fn after(self, at: usize) -> Self {
        let first = self.first + at as u64;
        Self { first, ..self }
    }
}

/// A consumer as its node calls it, whoever decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeConsumer {
    /// The node, as the one it is since its last start.
    pub node: Incarnation,
    /// What it calls the consumer. It gives no name twice.
    pub consumer: ConsumerId,
}

/// What was delivered, and is neither settled nor back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Who has it, as this machine knows the consumer; `None` after a get, or if there is no such consumer any more.
    pub consumer: Option<ConsumerId>,
    pub seqs: Ranges,
    /// How often they had come back when they were delivered (`Delivery::returns`).
    pub returns: u32,
}

/// How a consumer settled messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposal {
    /// `basic.ack`.
    Accepted,
    /// `basic.reject` or `basic.nack` without requeue.
    Rejected,
}
