//! Who wants messages: consumers, who come, go, and get more or less credit, and gets that wait for an answer.

use super::dispatch::{Consumer, Ring, Span};
use super::{Answer, Classic, Delivery, Effect, Ends, FifoOutcome, QueueSettings, Record};
use model::{ConsumerId, Mutant, Ranges, Timestamp};
use std::collections::VecDeque;

/// Who wants messages.
pub(super) struct Consumers<E: Ends> {
    pub ring: Ring<E>,
    /// Gets that wait for a load, in order. They come first.
    pub gets: VecDeque<PendingGet<E>>,
}

/// A `basic.get` that is not answered yet.
pub(super) struct PendingGet<E: Ends> {
    pub no_ack: bool,
    pub reply: E::Reply,
}

impl<E: Ends> PendingGet<E> {
    /// Its answer is the first message of the span; so many are ready after it.
    pub(super) fn answer(self, span: Span<'_>, remaining: u64) -> Effect<E> {
        let delivery = Delivery {
            seqs: Ranges::one(span.first),
            block: span.block.clone(),
            base: span.base,
            redelivered: span.redelivered && !Mutant::MarksNothing.is_on(),
            returns: span.returns,
            failures: span.failures,
        };
        Effect::Reply(self.reply, Answer::Got { delivery, remaining })
    }
}

impl<E: Ends> Consumers<E> {
    /// Nobody.
    pub(super) fn new(settings: &QueueSettings) -> Self {
        let mut ring = Ring::default();
        ring.set_single(settings.single_active, settings.active_by_priority);
        let gets = VecDeque::new();
        Self { ring, gets }
    }

    /// True if somebody would take a message.
    #[inline]
    pub(super) fn want(&mut self) -> bool {
        !self.gets.is_empty() || self.ring.is_hungry()
    }

    /// The consumer holds `count` messages fewer.
    pub(super) fn hold_fewer(&mut self, consumer: Option<ConsumerId>, count: u64) {
        if let Some(id) = consumer
            && count > 0
        {
            self.ring
                .change(id, |it| it.in_flight = it.in_flight.saturating_sub(count));
        }
    }
}

impl<E: Ends> Classic<E> {
    /// Adds a consumer.
    pub(super) fn consume(
        &mut self,
        consumer: Consumer<E>,
        reply: E::Reply,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        let ring = &mut self.consumers.ring;
        // RabbitMQ has the same words for an exclusive consumer of a queue with a single active one.
        if ring.is_exclusive() || (consumer.settings.exclusive && (ring.len() > 0 || ring.is_single())) {
            outcome.effects.push(Effect::Reply(reply, Answer::InExclusiveUse));
            return self.used(now);
        }
        // Ids are never used twice; a host that does so gets one consumer, not two.
        ring.remove(consumer.id);
        let node = consumer.of.map(|of| of.node);
        ring.add(consumer);
        self.may_hold(node, outcome);
        outcome.effects.push(Effect::Reply(reply, Answer::Consuming));
        self.activate(outcome);
        self.deliver(outcome);
        self.used(now);
    }

    /// Removes a consumer.
    pub(super) fn cancel(
        &mut self,
        id: ConsumerId,
        reply: Option<E::Reply>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        let removed = self.consumers.ring.remove(id).is_some();
        // Like RabbitMQ, a queue that never had a consumer is not deleted. The order comes first: whoever cancels the last one
        // is answered once the queue is gone.
        if removed && self.consumers.ring.len() == 0 && self.settings.auto_delete {
            outcome.effects.push(Effect::DeleteQueue);
        }
        if let Some(reply) = reply {
            outcome.effects.push(Effect::Reply(reply, Answer::Cancelled));
        }
        if removed {
            let is_new = self.activate(outcome);
            // The active one may have been about to make room for the one that goes.
            if (is_new || self.settings.active_by_priority) && self.lanes.ready() > 0 {
                self.deliver(outcome);
            }
        }
        self.used(now);
    }

    /// If a queue with a single active consumer has none, somebody becomes it. True if so.
    ///
    /// Who that was when another machine decided goes on, unless it is gone: whether it is, its node says, and until then
    /// nobody is active. Otherwise two consumers could be busy with messages whose order only one keeps. What others are given
    /// follows the record of who is active, so it leaves only if whoever decides next knows.
    pub(super) fn activate(&mut self, outcome: &mut FifoOutcome<E>) -> bool {
        let ring = &mut self.consumers.ring;
        if !ring.is_single() || self.reattaching.is_some() {
            return false;
        }
        let was_active = ring.active().is_some();
        if !ring.make_room() {
            return false;
        }
        let last = self.senders.active().filter(|_| !Mutant::ForgetsActive.is_on());
        let Some(active) = ring.activate(last.filter(|_| !was_active)) else {
            return false;
        };
        if let Some(consumer) = active
            .of
            .filter(|of| self.settings.replicated && last != Some(*of))
        {
            self.senders.activate(consumer);
            outcome.records.push(Record::Activated { consumer });
        }
        true
    }

    /// A `basic.get`.
    pub(super) fn get(
        &mut self,
        no_ack: bool,
        reply: E::Reply,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        self.may_be_held(outcome);
        self.consumers.gets.push_back(PendingGet { no_ack, reply });
        self.deliver(outcome);
        self.used(now);
    }

    /// Delivers nothing to a consumer for a while.
    pub(super) fn pause(&mut self, id: ConsumerId, reply: Option<E::Reply>, outcome: &mut FifoOutcome<E>) {
        self.change(id, outcome, |it| it.paused = true);
        let paused = |reply| Effect::Reply(reply, Answer::Paused);
        outcome.effects.extend(reply.map(paused));
    }

    /// Somebody declares the queue again.
    pub(super) fn declared(&mut self, reply: Option<E::Reply>, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        self.used(now);
        let stands = Answer::Stands {
            ready: self.lanes.ready(),
            consumers: self.consumers.ring.len() as u64,
        };
        let answered = reply.map(|reply| Effect::Reply(reply, stands));
        outcome.effects.extend(answered);
    }

    /// Changes a consumer, who may get messages now.
    pub(super) fn change(
        &mut self,
        id: ConsumerId,
        outcome: &mut FifoOutcome<E>,
        change: impl FnOnce(&mut Consumer<E>),
    ) {
        if self.consumers.ring.change(id, change) && self.lanes.ready() > 0 {
            self.deliver(outcome);
        }
    }

    /// Somebody uses the queue: the time after which it ends unused (`x-expires`) begins again. It stands still while there are
    /// consumers, or nodes may have some that are not known here yet.
    #[inline]
    pub(super) fn used(&mut self, now: Timestamp) {
        if let Some(ms) = self.settings.expires_ms {
            let is_unused = self.consumers.ring.len() == 0 && self.unheard.is_none();
            self.unused_at_ms = match is_unused {
                true => now.0.saturating_add(ms),
                false => u64::MAX,
            };
        }
    }
}
