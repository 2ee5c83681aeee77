//! The host of a stream: what AMQP asks of every queue becomes what a stream's machine knows, and what that orders is done:
//! chunks go to the writing thread, and what waits for them leaves when they are safe.
//! Those who read are beside the machine.

use super::deciding::{Deciding, answered, effect_of, stream_settings};
use super::log::StreamLog;
use super::opening::{Open, Opening};
use super::reads::Reads;
use crate::node::Node;
use crate::node::ends::Ends;
use crate::queues::Queue;
use crate::queues::host::{QueueHost, Turned};
use model::chunk::Tracking;
use model::{Incarnation, Machine, QueueSettings, Seq, Timestamp};
use queue::stream::{Effect as Order, Request as Ask, Stream, StreamRequest};
use queue::{Answer, DropReason, Effect, HandOver, Inspect, Loss, Losses, OwnConsumer, Request};
use std::collections::VecDeque;
use std::sync::Arc;
use storage::JournalId;

/// A stream and what it needs.
pub struct StreamHost {
    deciding: Deciding,
    /// Those who read. Without files nothing is taken, either.
    reads: Reads,
    /// They may be, in a while.
    opening: Option<Opening<Stream<Ends>>>,
    /// What leaves once so many records are safe, in order.
    waiting: VecDeque<(u64, Effect<Ends>)>,
    /// Records that were made since the start.
    made: u64,
    now: Timestamp,
    retired: bool,
    /// The disk is full, and those who wait for an answer were told.
    is_stalled: bool,
}

impl StreamHost {
    /// The stream as its files have it, or empty.
    pub fn open(known: &catalog::Queue, settings: &QueueSettings, node: &Arc<Node>) -> Self {
        let (settings, is_new) = (stream_settings(settings), node.streams.opens_new_ones());
        match Stream::open(known, settings.clone(), node, is_new) {
            Ok((machine, log)) => Self::of(&known.name, machine, Some(log)),
            Err(error) => Self {
                opening: Opening::after(&error, known, settings.clone(), node, is_new),
                ..Self::of(&known.name, Stream::new(settings), None)
            },
        }
    }

    /// A stream that takes nothing and gives nothing.
    pub fn without_files(name: &str, settings: &QueueSettings) -> Self {
        Self::of(name, Stream::new(stream_settings(settings)), None)
    }

    fn of(name: &str, machine: Stream<Ends>, log: Option<Arc<StreamLog>>) -> Self {
        // What the machine was made of is safe.
        let reads = Reads::new(name, log, machine.status().next_offset);
        Self {
            deciding: Deciding::new(machine),
            reads,
            opening: None,
            waiting: VecDeque::new(),
            made: 0,
            now: Timestamp(0),
            retired: false,
            is_stalled: false,
        }
    }

    /// If the files could not be opened, and now they can, the stream begins with what they have. Nobody has got anything of
    /// the one without files.
    fn open_again(&mut self) {
        let result = self.opening.as_mut().and_then(|it| it.go_on(self.now.0));
        let Some((result, opening)) = result.and_then(|it| Some((it, self.opening.take()?))) else {
            return;
        };
        match result {
            Ok((machine, log)) => {
                self.refuse_waiting();
                // As at any start: what the machine was made of is safe.
                self.reads.commit(machine.status().next_offset);
                (self.deciding.machine, self.made) = (machine, 0);
                self.reads.opened(log, opening.queue());
                let settings = opening.settings;
                self.ask(Ask::Configure { settings });
            }
            Err(error) => opening.is_over(&error),
        }
    }

    fn ask(&mut self, request: Ask<Ends>) {
        self.tell_pinned();
        self.deciding.ask(self.now, request);
        self.carry_out();
    }

    /// The machine may drop segments, and knows nothing of those who read.
    fn tell_pinned(&mut self) {
        let lowest = self.reads.readers.lowest();
        self.deciding.ask(self.now, Ask::Pinned { lowest });
    }

    /// Something leaves once all that is on record now is safe. Nothing is, once the stream is deleted.
    fn promise(&mut self, effect: Effect<Ends>) {
        match self.retired {
            true => self.reads.effects.push(effect),
            false => self.waiting.push_back((self.made, effect)),
        }
    }

    /// Does what the machine ordered.
    fn carry_out(&mut self) {
        let outcome = &mut self.deciding.outcome;
        if !outcome.records.is_empty() {
            self.made += outcome.records.len() as u64;
            match &self.reads.log {
                Some(log) => log.write(&mut outcome.records),
                None => outcome.records.clear(),
            }
        }
        let (promises, effects) = (
            std::mem::take(&mut outcome.promises),
            std::mem::take(&mut outcome.effects),
        );
        for order in promises {
            if let Some(effect) = self.effect(order) {
                self.promise(effect);
            }
        }
        for order in effects {
            // Nobody hears of a number before it is safe.
            let waits = matches!(order, Order::Reply(..));
            match self.effect(order) {
                Some(effect) if waits => self.promise(effect),
                effect => self.reads.effects.extend(effect),
            }
        }
    }

    fn effect(&mut self, order: Order<Ends>) -> Option<Effect<Ends>> {
        effect_of(order)
            .inspect_err(|offset| {
                if let Some(log) = &self.reads.log {
                    log.drop_below(*offset);
                }
            })
            .ok()
    }

    /// What has happened to the files since the last turn.
    fn look_at_files(&mut self) {
        let Some(log) = self.reads.log.clone() else {
            // Nothing becomes safe.
            return self.refuse_waiting();
        };
        let written = log.written();
        self.reads.commit(written.below);
        while let Some((_, effect)) = self.waiting.pop_front_if(|(made, _)| *made <= written.records) {
            self.reads.effects.push(effect);
        }
        if written.has_failed {
            self.refuse_waiting();
        }
        if written.is_stalled && !self.is_stalled {
            self.answer_waiting();
        }
        self.is_stalled = written.is_stalled;
        self.reads.take_loaded();
    }

    /// What waits for the files never leaves: publishers are told that it was not taken. It may have been.
    fn refuse_waiting(&mut self) {
        for (_, effect) in self.waiting.drain(..) {
            match effect {
                Effect::Confirm(receipt) => self.reads.effects.push(Effect::Reject(receipt)),
                // A node that has no answer asks again.
                Effect::Reply(_, Answer::Recalled { .. }) => {}
                // What is known is not safe.
                Effect::Reply(reply, Answer::Number(_)) => {
                    self.reads.effects.push(Effect::Reply(reply, Answer::Empty));
                }
                effect => self.reads.effects.push(effect),
            }
        }
    }

    /// Who asked for a number is not left without an answer until the disk has room. What is known is not safe.
    fn answer_waiting(&mut self) {
        for (made, effect) in std::mem::take(&mut self.waiting) {
            match effect {
                Effect::Reply(reply, Answer::Number(_)) => {
                    self.reads.effects.push(Effect::Reply(reply, Answer::Empty));
                }
                effect => self.waiting.push_back((made, effect)),
            }
        }
    }

    fn retire(&mut self) {
        self.retired = true;
        // As of any queue that is deleted: the messages went nowhere.
        let waiting = self.waiting.drain(..).map(|(_, effect)| effect);
        self.reads.effects.extend(waiting);
        self.ask(Ask::Retire);
        self.reads.readers.end(&mut self.reads.effects);
        if let Some(log) = &self.reads.log {
            log.remove();
        }
    }

    /// Something for the machine.
    fn asked(&mut self, request: Ask<Ends>) {
        match &request {
            Ask::Publish { .. } if self.is_broken() => {
                if let Ask::Publish {
                    receipt: Some(receipt),
                    ..
                } = request
                {
                    self.waiting.push_back((u64::MAX, Effect::Reject(receipt)));
                }
                return;
            }
            Ask::Sequence { .. } | Ask::Offset { .. } if self.is_stalled => {
                if let Ask::Sequence { reply, .. } | Ask::Offset { reply, .. } = request {
                    self.reads.reply(Some(reply), Answer::Empty);
                }
                return;
            }
            // What is answered is on record by then.
            Ask::Sequence { .. } | Ask::Offset { .. } => self.ask(Ask::EndTurn),
            _ => {}
        }
        self.ask(request);
    }

    /// How many messages may be read.
    fn messages(&self) -> u64 {
        self.reads.messages(self.deciding.machine.status().first_offset)
    }

    /// Nothing can be written.
    fn is_broken(&self) -> bool {
        !self.retired && self.reads.log.as_ref().is_none_or(|log| log.written().has_failed)
    }
}

impl QueueHost for StreamHost {
    fn handle(&mut self, now: Timestamp, request: Request<Ends>) {
        self.now = now;
        let Err(request) = self.reads.handle(request, self.retired) else {
            return;
        };
        match request {
            Request::Enqueue { receipt, .. } | Request::EnqueueFrom { receipt, .. } if self.is_broken() => {
                // Behind what came before.
                let refused = receipt.map(|receipt| (u64::MAX, Effect::Reject(receipt)));
                self.waiting.extend(refused);
            }
            Request::Enqueue { receipt, .. } | Request::EnqueueFrom { receipt, .. } if self.retired => {
                // The message went nowhere, as in RabbitMQ.
                self.reads.effects.extend(receipt.map(Effect::Confirm));
            }
            Request::Enqueue { block, receipt } => {
                self.tell_pinned();
                self.deciding.enqueue(now, &block, receipt);
                self.carry_out();
            }
            Request::EnqueueFrom {
                origin,
                block,
                receipt,
            } => {
                self.tell_pinned();
                let told = self.deciding.enqueue_from(now, *origin, &block, receipt);
                self.reads.effects.extend(told);
                self.carry_out();
            }
            Request::Recall { sender, from, reply } => {
                self.tell_pinned();
                let answer = self.deciding.recall(now, sender, from);
                self.carry_out();
                self.promise(Effect::Reply(reply, answer));
            }
            Request::IncarnationEnded { incarnation } => self.deciding.ended(incarnation),
            Request::Retire => self.retire(),
            Request::Use { reply } => {
                let (ready, consumers) = (self.messages(), self.reads.readers.len() as u64);
                self.reads.reply(reply, Answer::Stands { ready, consumers });
            }
            Request::Wake => self.ask(Ask::Wake),
            Request::Configure { settings } => {
                let settings = stream_settings(&settings);
                if let Some(opening) = &mut self.opening {
                    opening.settings = settings.clone();
                }
                self.ask(Ask::Configure { settings });
            }
            Request::Stream(request) => {
                if let StreamRequest::Machine(request) = *request {
                    self.asked(request);
                }
            }
            request => self.reads.effects.extend(answered(request).ok()),
        }
    }

    fn commit(&mut self, act: &mut dyn FnMut(Effect<Ends>)) -> Turned {
        if !self.retired {
            self.open_again();
            if let Some(log) = &self.reads.log {
                log.try_again(self.now.0);
            }
            // What comes while something is written is written together, afterwards.
            if !self.reads.log.as_ref().is_some_and(|log| log.is_busy()) {
                self.ask(Ask::EndTurn);
            }
            self.look_at_files();
            self.reads.serve();
        }
        self.reads.effects.drain(..).for_each(act);
        self.turned()
    }

    fn turned(&self) -> Turned {
        let status = self.deciding.machine.status();
        let tries = self.reads.log.as_ref().filter(|_| !self.retired);
        let tries_at_ms = tries.map_or(u64::MAX, |log| log.wakes_at_ms());
        let opening = self.opening.as_ref().filter(|_| !self.retired);
        let opens_at_ms = opening.map_or(u64::MAX, Opening::wakes_at_ms);
        let messages = self.messages();
        let status = self.reads.status(messages, status.bytes, status.next_offset);
        Turned {
            status,
            lost: self.lost(),
            wakes_at_ms: self
                .deciding
                .machine
                .wakes_at_ms()
                .min(tries_at_ms)
                .min(opens_at_ms),
        }
    }

    fn inspect(&self) -> &dyn Inspect {
        self
    }

    fn hand_over(&self) -> HandOver<Vec<u8>> {
        HandOver::Waits
    }

    fn segments(&self) -> Option<JournalId> {
        None
    }

    fn own_consumers(&self) -> Vec<OwnConsumer<Ends>> {
        Vec::new()
    }

    fn plain(self: Box<Self>) -> Box<dyn QueueHost> {
        self
    }

    fn belongs_to(&self, queue: &Arc<Queue>) {
        if let Some(log) = &self.reads.log {
            log.belongs_to(queue);
        }
        if let Some(opening) = &self.opening {
            opening.belongs_to(queue);
        }
    }

    fn stream_log(&self) -> Option<&Arc<StreamLog>> {
        self.reads.log.as_ref()
    }
}

impl Inspect for StreamHost {
    fn losses(&self) -> Losses {
        Losses::of(Loss::Dropped(DropReason::Unreadable), self.lost())
    }

    fn lost(&self) -> u64 {
        self.reads.log.as_ref().map_or(0, |log| log.lost())
    }

    fn senders(&self) -> Vec<Incarnation> {
        self.deciding.senders()
    }

    fn bounds(&self) -> Option<(Seq, Seq)> {
        let status = self.deciding.machine.status();
        Some((status.first_offset, status.next_offset))
    }

    fn tracking(&self) -> Option<Tracking> {
        Some(self.deciding.machine.tracking().clone())
    }
}
