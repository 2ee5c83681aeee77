//! Who takes a message: at once, or when a transaction is committed.

use crate::broker::replies::Requester;
use model::QueueId;
use model::properties::PropertiesBuf;
use smallvec::SmallVec;
use std::sync::Arc;

/// Who takes a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How many queues, each of which will confirm it.
    pub queues: u32,
    /// How many channels that wait for direct replies; they have it already.
    pub replies: u32,
}

impl Taken {
    /// True if nobody takes it.
    pub fn is_lost(self) -> bool {
        self == Self::default()
    }
}

/// Where a message goes that is published later: what a transaction keeps of it. RabbitMQ routes when the message comes.
#[derive(Debug)]
pub struct Prepared {
    pub(super) queues: SmallVec<[QueueId; 8]>,
    pub(super) askers: SmallVec<[Arc<Requester>; 1]>,
    /// The properties without what nobody else may see, if they had such.
    pub properties: Option<PropertiesBuf>,
}

impl Prepared {
    /// True if there is nobody to take it.
    pub fn is_lost(&self) -> bool {
        self.queues.is_empty() && self.askers.is_empty()
    }
}
