//! Consumers come, go, and get more or less credit.

use super::dispatch::Consumer;
use super::{Answer, ConsumerSettings, Effect, Ends, Fifo, FifoOutcome};
use model::ConsumerId;

impl<E: Ends> Fifo<E> {
    pub(super) fn consume(
        &mut self,
        id: ConsumerId,
        outlet: E::Outlet,
        settings: ConsumerSettings,
        reply: E::Reply,
        outcome: &mut FifoOutcome<E>,
    ) {
        let ring = &mut self.dispatch.ring;
        // RabbitMQ has the same words for an exclusive consumer of a queue with a single active one.
        if ring.is_exclusive() || (settings.exclusive && (ring.len() > 0 || ring.is_single())) {
            outcome.effects.push(Effect::Reply(reply, Answer::InExclusiveUse));
            return;
        }
        // Ids are never used twice; a host that does so gets one consumer, not two.
        ring.remove(id);
        ring.add(id, outlet, settings);
        outcome.effects.push(Effect::Reply(reply, Answer::Consuming));
        self.deliver(outcome);
    }

    pub(super) fn cancel(&mut self, id: ConsumerId, reply: Option<E::Reply>, outcome: &mut FifoOutcome<E>) {
        let removed = self.dispatch.ring.remove(id).is_some();
        if let Some(reply) = reply {
            outcome.effects.push(Effect::Reply(reply, Answer::Cancelled));
        }
        // Another one may be active now.
        if removed && self.dispatch.ring.is_single() && self.dispatch.ready > 0 {
            self.deliver(outcome);
        }
        // Like RabbitMQ, a queue that never had a consumer is not deleted.
        if removed && self.dispatch.ring.len() == 0 && self.settings.auto_delete {
            outcome.effects.push(Effect::Unused);
        }
    }

    pub(super) fn change(
        &mut self,
        id: ConsumerId,
        outcome: &mut FifoOutcome<E>,
        change: impl FnOnce(&mut Consumer<E>),
    ) {
        if self.dispatch.ring.change(id, change) && self.dispatch.ready > 0 {
            self.deliver(outcome);
        }
    }
}
