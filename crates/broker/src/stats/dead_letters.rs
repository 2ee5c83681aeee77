//! How many messages were dead-lettered, and why.

use queue::DropReason;
use std::sync::atomic::{AtomicU64, Ordering};

/// Dead letters since the start of the node, whether or not any queue took them.
#[derive(Debug, Default)]
pub struct DeadLetterCounts {
    by_reason: [AtomicU64; 4],
    confirmed: AtomicU64,
}

/// RabbitMQ's names of the reasons.
const REASONS: [&str; 4] = ["maxlen", "rejected", "expired", "delivery_limit"];

impl DeadLetterCounts {
    /// So many died for this reason and have a dead-letter exchange.
    pub(crate) fn died(&self, reason: DropReason, count: u64) {
        let place = match reason {
            DropReason::MaxLength => 0,
            DropReason::Rejected => 1,
            DropReason::Expired => 2,
            DropReason::DeliveryLimit => 3,
            // They have no dead-letter exchange whatever is configured.
            DropReason::Purged | DropReason::Unreadable => return,
        };
        self.by_reason[place].fetch_add(count, Ordering::Relaxed);
    }

    /// So many have arrived in all queues that take them.
    pub(crate) fn arrived(&self, count: u64) {
        self.confirmed.fetch_add(count, Ordering::Relaxed);
    }

    /// RabbitMQ's names and the numbers.
    pub fn named(&self) -> [(&'static str, u64); 4] {
        std::array::from_fn(|at| (REASONS[at], self.by_reason[at].load(Ordering::Relaxed)))
    }

    /// How many have arrived safely.
    pub fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }
}
