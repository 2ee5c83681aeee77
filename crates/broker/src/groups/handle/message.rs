//! What a node and the leader of a replicated queue say to each other.

use model::{Block, ConsumerId, Incarnation, Ranges};
use queue::{Answer, ConsumerSettings, Delivery, Disposal, Held};
use std::sync::Arc;

/// What one end of a session sends at once. See [`super::session`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<T> {
    /// Which session of the node, counted by the node. Later ones have higher numbers, whoever leads.
    pub session: u64,
    /// The term of the leader; 0 while the node does not know it.
    pub term: u64,
    /// The frame's number in its session and direction, from 1. One that brings nothing has none of its own: it bears
    /// the number of the last one before it.
    pub number: u64,
    /// The number of the last frame that came from the other end.
    pub seen: u64,
    /// The other end is to answer at once, whether it has something to say or not.
    pub asks: bool,
    /// What is said, in order.
    pub messages: Vec<T>,
}

impl<T> Frame<T> {
    /// A word outside of a session, about one.
    pub(super) fn aside(session: u64, term: u64, message: T) -> Self {
        Self {
            session,
            term,
            number: 0,
            seen: 0,
            asks: false,
            messages: vec![message],
        }
    }
}

/// What a node says to the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToLeader {
    /// A session begins. `sent` is the lowest number of a message without an answer.
    Open { node: Incarnation, sent: u64 },
    /// Messages, of which the first has this number. Numbers rise without gaps.
    Publish { first: u64, block: Arc<Block> },
    /// A consumer, new or known to an earlier session. So many bytes of its deliveries have not left for its client.
    Consume {
        question: u64,
        consumer: ConsumerId,
        settings: ConsumerSettings,
        outstanding: u64,
    },
    /// What its consumers and gets have. The last part says `more: false`, and then all consumers have been named.
    Holds { held: Vec<Held>, more: bool },
    /// A consumer is done with messages, or gives them back. `number` rises by one from each of these to the next, as
    /// long as the node lives.
    Resolve { number: u64, resolved: Resolved },
    /// Something that is answered.
    Ask { question: u64, about: Question },
    /// Something that is not.
    Tell(Notice),
    /// It could send more than it may.
    Wants,
    /// In answer to [`ToNode::Speak`] or [`ToNode::Closed`]: this node has nobody who holds anything.
    Nothing { node: Incarnation },
}

/// What became of messages that consumers had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Who had them; `None` after a get.
    pub consumer: Option<ConsumerId>,
    /// Which ones.
    pub seqs: Ranges,
    /// What became of them.
    pub way: Way,
}

/// The ways in which messages leave a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is done with them.
    Settled(Disposal),
    /// They go back; `failed` as in [`queue::Request::Return`].
    Returned { failed: bool },
    /// It gave them back: [`queue::Request::Requeue`].
    Requeued,
}

/// Questions that the queue answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    Get { no_ack: bool },
    Cancel { consumer: ConsumerId },
    Pause { consumer: ConsumerId },
    TakeOut { seqs: Ranges },
    Purge,
    MayRetire { if_unused: bool, if_empty: bool },
    Use,
}

/// What the queue is told and does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Flow { consumer: ConsumerId, bytes: u32 },
    Limit { consumer: ConsumerId, prefetch: u32 },
    Pause { consumer: ConsumerId },
    Resume { consumer: ConsumerId },
    PutBack { seqs: Ranges },
    Remove { seqs: Ranges },
    Use,
}

/// What the leader says to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToNode {
    /// The session has begun.
    Opened {
        /// What the node sent was taken or refused below this number; 0 if the queue hears no more senders.
        below: u64,
        /// What of that was refused, from where the node had asked on.
        refused: Ranges,
        /// What consumers were done with or gave back is known up to this number of [`ToLeader::Resolve`], in this term.
        resolved: u64,
        /// So many bytes may be sent and not answered.
        credit: u64,
    },
    /// There is no such session here, or no longer.
    Closed,
    /// Whoever has something of this queue is to open a session, and who has not is to say that. The frame names the last session
    /// of the node in this term, which is over; 0 if there was none.
    Speak,
    /// The queue has taken responsibility for these.
    Confirmed(Ranges),
    /// It has refused these.
    Rejected(Ranges),
    /// For a consumer.
    Deliver {
        consumer: ConsumerId,
        delivery: Delivery,
    },
    /// The answer to a question. [`Answer::Discard`] has no question: parts of what is held are answered in order.
    Answer { question: u64, answer: Answer },
    /// The consumer is one no longer.
    Cancelled { consumer: ConsumerId },
    /// What was resolved up to this number is so for good.
    Resolved { number: u64 },
    /// So many bytes may be sent and not answered from now on.
    Credit { bytes: u64 },
}
