//! What the catalog orders its host to do. Imperative.

use crate::{Name, Queue, QueueSettings, Refusal, View};
use model::QueueId;
use std::sync::Arc;

/// An order to the host.
#[derive(Clone, Debug)]
pub enum Effect<R> {
    /// Answer a request.
    Reply(R, Result<Answer, Refusal>),
    /// Start a queue machine with these settings.
    QueueCreated(Arc<Queue>, Box<QueueSettings>),
    /// Stop a queue machine and forget its messages; cancel its consumers.
    QueueDeleted { id: QueueId, vhost: Name, name: Name },
    /// An exchange is gone, by request or with its last binding.
    ExchangeDeleted { vhost: Name, name: Name },
}

/// The answer to a request that was not refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is so.
    Done,
    /// The queue that was declared, new or not.
    Queue(Arc<Queue>),
    /// So many bindings and exclusive queues were taken away; fewer than asked for means that none is left.
    Cleared(usize),
    /// What the snapshot that was started is of.
    Snapshot(View),
}
