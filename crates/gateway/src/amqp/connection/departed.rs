//! Consumers that ended, while somebody else may still be delivering to them.

use crate::amqp::channel::Departed;
use broker::{Delivery, QueueQuestion};
use model::ConsumerId;
use std::collections::VecDeque;

/// Where to give late deliveries back to, until the queues have answered that there come no more.
#[derive(Debug, Default)]
pub struct Departures {
    /// In the order of departure.
    consumers: VecDeque<Departed>,
}

impl Departures {
    /// These consumers end.
    pub fn add(&mut self, departed: impl IntoIterator<Item = Departed>) {
        self.consumers.extend(departed);
    }

    /// Gives back a delivery that came too late: nobody has seen it.
    pub fn give_back(&self, consumer: ConsumerId, delivery: Delivery) {
        if let Some(departed) = self.consumers.iter().rev().find(|it| it.consumer == consumer) {
            departed.queue.give_back(Some(consumer), delivery.seqs, false);
        }
    }

    /// A queue has answered: if it is one that was asked to end a consumer, nothing more comes to that.
    pub fn answered(&mut self, question: QueueQuestion) {
        if let Some(at) = self.consumers.iter().position(|it| it.question == question) {
            self.consumers.remove(at);
        }
    }

    /// True if nothing can come any more.
    pub fn is_empty(&self) -> bool {
        self.consumers.is_empty()
    }
}
