//! What the catalog orders its host to do. Imperative.

use crate::node::{Incarnation, NodeId};
use crate::{Name, Queue, Refusal, View};
use std::sync::Arc;

/// An order to the host. All but answers follow from records, whoever decided these.
#[derive(Clone, Debug)]
pub enum Effect<R> {
    /// Answer a request.
    Reply(R, Result<Answer, Refusal>),
    /// A queue exists: start what holds its messages, or its keys, with its settings at the end of this turn.
    StartQueue(Arc<Queue>),
    /// A queue is gone: stop that, forget its messages, cancel its consumers.
    StopQueue(Arc<Queue>),
    /// Other nodes have copies of this queue than before.
    FollowMembers(Arc<Queue>),
    /// The policies of this virtual host have changed: set the queues for which others apply than before.
    FollowPolicies(Name),
}

/// The answer to a request that was not refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is so.
    Done,
    /// The queue that was declared, new or not.
    Queue(Arc<Queue>),
    /// So many of what was to end are gone; fewer than asked for means that none is left.
    Cleared(usize),
    /// The run of a node that has begun.
    Started(Incarnation),
    /// The number of the node that is a member.
    Joined(NodeId),
    /// What exists is of another generation than was said: nothing was done.
    Outdated,
    /// What the snapshot that was started is of.
    Snapshot(View),
}
