//! What clients ask of streams alone.

use super::{ReadRequest, Request};
use crate::ends::{ConsumerSettings, Ends};
use model::ConsumerId;
use model::chunk::Matcher;
use std::fmt;
use std::sync::Arc;

/// With which message somebody begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the first one that is there.
    First,
    /// With the last chunk.
    Last,
    /// With what comes next.
    Next,
    /// With this one, or as near to it as there is something.
    Offset(u64),
    /// With the first chunk that was made at this time or later, in milliseconds since the Unix epoch.
    Time(u64),
}

/// What nodes say to each other of readers in groups, which have the names that their own node gave them: see
/// [`SharedGroups`](super::SharedGroups).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupWord {
    /// From the node that leads in this term: does anybody read by the word of an earlier one?
    Leads { term: u64 },
    /// To it: nobody does.
    Follows { term: u64 },
    /// To it: these are in the group here, all of them, each with whether it reads, or has not heard yet that it must not.
    /// `number` rises with each change; `heard` is that of the last word about the group that was heard in this term.
    Members {
        term: u64,
        group: Arc<[u8]>,
        partition: Option<u32>,
        number: u64,
        heard: u64,
        readers: Vec<(ConsumerId, bool)>,
    },
    /// From it: this one of the node's is the group's active one, or none is. `number` rises with each change; `heard` is that
    /// of the last word of the node.
    Active {
        term: u64,
        group: Arc<[u8]>,
        number: u64,
        heard: u64,
        reader: Option<ConsumerId>,
    },
    /// By nobody: the node cannot be spoken to any more, or has started again.
    Lost,
}

/// What only streams are asked.
pub enum StreamRequest<E: Ends> {
    /// Something for the machine.
    Machine(Request<E>),
    /// Something for the readers of this node. Who detaches leaves its group, too.
    Read(ReadRequest<E>),
    /// Have somebody who reads or watches belong to this group, of which one at a time is active. `partition` is the stream's
    /// place among those of a super stream.
    Join {
        reader: ConsumerId,
        group: Arc<[u8]>,
        partition: Option<u32>,
    },
    /// It has heard that it is active no more.
    SteppedDown { reader: ConsumerId },
    /// Another node says something of a group's reader: of a stream that several nodes have, the node that leads knows the
    /// groups.
    OfNode { node: u32, said: GroupWord },
    /// Add a consumer of messages. Answered with `Answer::Consuming`.
    Consume {
        consumer: ConsumerId,
        outlet: E::Outlet,
        settings: ConsumerSettings,
        from: Start,
        filter: Option<Matcher>,
        reply: E::Reply,
    },
}

impl<E: Ends> fmt::Debug for StreamRequest<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(_) => f.write_str("a request to a stream's machine"),
            Self::Read(_) => f.write_str("a request of a stream's reader"),
            Self::Join { reader, .. } => write!(f, "{} joins a group", reader.0),
            Self::SteppedDown { reader } => write!(f, "{} has stepped down", reader.0),
            Self::OfNode { node, said } => write!(f, "node {node} says {said:?}"),
            Self::Consume { consumer, from, .. } => write!(f, "consumer {} from {from:?}", consumer.0),
        }
    }
}
