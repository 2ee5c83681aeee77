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

/// What nodes say to each other of readers in groups, which have the names that their own node gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupWord {
    /// To the node that leads: it joins this group.
    Join {
        reader: ConsumerId,
        group: Arc<[u8]>,
        partition: Option<u32>,
    },
    /// To it: it reads no more.
    Leave { reader: ConsumerId },
    /// To it: it has heard that it is active no more.
    SteppedDown { reader: ConsumerId },
    /// From it: whether it is its group's active one.
    Active { reader: ConsumerId, active: bool },
    /// From a node that does not lead: it is in no group.
    Gone { reader: ConsumerId },
    /// By nobody: the node cannot be spoken to any more.
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
