//! How much comes and goes.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is created, declared and ended on a node, since its start; RabbitMQ's churn.
#[derive(Debug, Default)]
pub struct Churn {
    /// Connections that were opened.
    pub(crate) connections_opened: AtomicU64,
    /// Connections that ended.
    pub(crate) connections_closed: AtomicU64,
    /// Channels that were opened.
    pub(crate) channels_opened: AtomicU64,
    /// Channels that ended.
    pub(crate) channels_closed: AtomicU64,
    /// Queues that were declared, whether they were there or not.
    pub(crate) queues_declared: AtomicU64,
    /// Queues that were made.
    pub(crate) queues_created: AtomicU64,
    /// Queues that were deleted.
    pub(crate) queues_deleted: AtomicU64,
}

impl Churn {
    /// RabbitMQ's names and the numbers.
    pub fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("connection_created", &self.connections_opened),
            ("connection_closed", &self.connections_closed),
            ("channel_created", &self.channels_opened),
            ("channel_closed", &self.channels_closed),
            ("queue_declared", &self.queues_declared),
            ("queue_created", &self.queues_created),
            ("queue_deleted", &self.queues_deleted),
        ]
        .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    pub(crate) fn more(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}
