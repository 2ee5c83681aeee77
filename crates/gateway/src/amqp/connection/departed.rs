//! Consumers that ended, while another thread may still be delivering to them.

use crate::connection::Millis;
use broker::{Delivery, QueueRef};
use model::ConsumerId;
use std::collections::VecDeque;

/// How long a late delivery is waited for. A queue's turn takes microseconds; the rest is for an overloaded machine.
const LATEST: Millis = 2_000;

/// Where to give late deliveries back to.
#[derive(Debug, Default)]
pub struct Departures {
    /// In the order of departure.
    consumers: VecDeque<(Millis, ConsumerId, QueueRef)>,
}

impl Departures {
    /// These consumers ended at `now`.
    pub fn add(&mut self, now: Millis, departed: impl IntoIterator<Item = (ConsumerId, QueueRef)>) {
        self.forget(now);
        self.consumers.extend(
            departed
                .into_iter()
                .map(|(consumer, queue)| (now, consumer, queue)),
        );
    }

    /// Gives back a delivery that came too late: nobody has seen it.
    pub fn give_back(&self, consumer: ConsumerId, delivery: Delivery) {
        if let Some((_, _, queue)) = self
            .consumers
            .iter()
            .rev()
            .find(|(_, known, _)| *known == consumer)
        {
            queue.give_back(Some(consumer), delivery.seqs, false);
        }
    }

    /// Forgets those to whom nothing can come any more.
    pub fn forget(&mut self, now: Millis) {
        let late = self
            .consumers
            .partition_point(|(since, _, _)| since + LATEST <= now);
        self.consumers.drain(..late);
    }

    /// When the last one is forgotten; `None` if all are.
    pub fn until(&self) -> Option<Millis> {
        self.consumers.back().map(|(since, _, _)| since + LATEST)
    }
}
