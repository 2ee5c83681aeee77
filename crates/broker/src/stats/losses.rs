//! How many messages queues lost, and how: for operators, who else see a queue that takes 800 messages a second and gives 100.

use queue::LOSSES;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start, of a queue or of all queues of the node. Those of exchanges' own queues are left out.
#[derive(Debug, Default)]
pub struct LossCounts([AtomicU64; LOSSES]);

impl LossCounts {
    /// How many kinds there are.
    pub const KINDS: usize = LOSSES;

    /// What they are called, in the order of the numbers. What was dropped is gone; what was dead-lettered went to the
    /// dead-letter exchange; what was refused or is a duplicate never came in.
    pub const NAMES: [&'static str; LOSSES] = [
        "dropped_maxlen",
        "dropped_expired",
        "dropped_rejected",
        "dropped_delivery_limit",
        "dropped_purged",
        "dropped_unreadable",
        "dead_lettered_maxlen",
        "dead_lettered_expired",
        "dead_lettered_rejected",
        "dead_lettered_delivery_limit",
        "refused_maxlen",
        "refused_duplicate",
    ];

    /// The numbers.
    pub fn numbers(&self) -> [u64; LOSSES] {
        std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }

    /// The numbers are these now. Returns what they gained.
    pub(crate) fn set(&self, now: [u64; LOSSES]) -> [u64; LOSSES] {
        std::array::from_fn(|at| now[at].saturating_sub(self.0[at].swap(now[at], Ordering::Relaxed)))
    }

    /// Adds what a queue gained.
    pub(crate) fn add(&self, gained: [u64; LOSSES]) {
        for (sum, more) in self.0.iter().zip(gained).filter(|(_, more)| *more > 0) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queue::{DropReason, Loss};

    #[test]
    fn names_stand_where_the_queues_numbers_stand() {
        let name = |loss| {
            let at = Loss::ALL.iter().position(|known| *known == loss).unwrap();
            LossCounts::NAMES[at]
        };
        assert_eq!(name(Loss::Dropped(DropReason::MaxLength)), "dropped_maxlen");
        assert_eq!(
            name(Loss::DeadLettered(DropReason::DeliveryLimit)),
            "dead_lettered_delivery_limit"
        );
        assert_eq!(name(Loss::Refused), "refused_maxlen");
    }

    #[test]
    fn the_node_gains_what_a_queue_gained() {
        let (queue, node) = (LossCounts::default(), LossCounts::default());
        let mut numbers = [0; LOSSES];
        for more in [5, 0, 2] {
            numbers[0] += more;
            node.add(queue.set(numbers));
        }
        assert_eq!((queue.numbers()[0], node.numbers()[0]), (7, 7));
    }
}
