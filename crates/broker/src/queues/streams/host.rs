//! The host of a stream: what AMQP asks of every queue becomes what a stream's machine knows, and what that orders is done:
//! chunks go to the writing thread, and what waits for them leaves when they are safe.
//! Those who read are beside the machine.

use super::log::{StreamLog, name_of};
use super::messages;
use super::opening::{self, Opening};
use super::readers::Readers;
use super::senders::Senders;
use crate::node::Node;
use crate::node::ends::{Ends, Outlet, Receipt, Reply};
use crate::queues::Queue;
use crate::queues::host::{QueueHost, Turned};
use model::chunk::{Matcher, Tracking};
use model::{Block, ConsumerId, Incarnation, Machine, Outcome, QueueSettings, Ranges, Seq, Timestamp};
use queue::stream::senders::{reference_of, sender_of};
use queue::stream::{
    Answer as Said, Effect as Order, Record, Request as Ask, Start, Stream, StreamRequest, StreamSettings,
};
use queue::{
    Answer, ConsumerSettings, DropReason, Effect, Glance, HandOver, Inspect, Loss, Losses, Origin,
    OwnConsumer, Request, Status,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use storage::{JournalId, StorageError};

/// A stream and what it needs.
pub struct StreamHost {
    name: Box<str>,
    machine: Stream<Ends>,
    /// Nothing, if the files cannot be read: then nothing is taken and nothing read.
    log: Option<Arc<StreamLog>>,
    /// They may be, in a while.
    opening: Option<Opening>,
    outcome: Outcome<Record, Order<Ends>>,
    /// What leaves with the end of this turn.
    effects: Vec<Effect<Ends>>,
    /// What leaves once so many records are safe, in order.
    waiting: VecDeque<(u64, Effect<Ends>)>,
    /// Records that were made since the start.
    made: u64,
    readers: Readers,
    /// Other nodes that send what their clients publish.
    senders: Senders,
    now: Timestamp,
    retired: bool,
    /// The disk is full, and those who wait for an answer were told.
    is_stalled: bool,
}

impl StreamHost {
    /// The stream as its files have it, or empty.
    pub fn open(known: &catalog::Queue, settings: &QueueSettings, node: &Arc<Node>) -> Self {
        let (settings, is_new) = (stream_settings(settings), node.streams.opens_new_ones());
        match opening::open(known, settings.clone(), node, is_new) {
            Ok((machine, log)) => Self::of(&known.name, machine, Some(log)),
            Err(error) => {
                let name = name_of(known);
                let opening = error.may_pass().then(|| {
                    tracing::error!(
                        area = "storage",
                        "{name} cannot be opened: {error}; it takes and gives nothing until it can be, which is tried by itself"
                    );
                    Opening::new(known, settings.clone(), node, is_new)
                });
                if opening.is_none() {
                    cannot_be_opened(&name, &error);
                }
                Self {
                    opening,
                    ..Self::of(&known.name, Stream::new(settings), None)
                }
            }
        }
    }

    /// A stream that takes nothing and gives nothing.
    pub fn without_files(name: &str, settings: &QueueSettings) -> Self {
        Self::of(name, Stream::new(stream_settings(settings)), None)
    }

    fn of(name: &str, machine: Stream<Ends>, log: Option<Arc<StreamLog>>) -> Self {
        // What the machine was made of is safe.
        let readers = Readers::new(machine.status().next_offset);
        Self {
            name: name.into(),
            machine,
            log,
            opening: None,
            outcome: Outcome::default(),
            effects: Vec::new(),
            waiting: VecDeque::new(),
            made: 0,
            readers,
            senders: Senders::default(),
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
                (self.machine, self.made) = (machine, 0);
                // As at any start: what the machine was made of is safe.
                self.readers
                    .commit(self.machine.status().next_offset, &mut self.effects);
                tracing::warn!(area = "storage", "{} could be opened", log.name);
                if let Some(queue) = opening.queue() {
                    log.belongs_to(&queue);
                    queue.is_opened(log.clone());
                }
                self.log = Some(log);
                let settings = opening.settings;
                self.ask(Ask::Configure { settings });
            }
            Err(error) => cannot_be_opened(&opening.name(), &error),
        }
    }

    fn ask(&mut self, request: Ask<Ends>) {
        // It may drop segments, and knows nothing of those who read.
        let lowest = self.readers.lowest();
        let pinned = Ask::Pinned { lowest };
        self.machine.handle(self.now, pinned, &mut self.outcome);
        self.machine.handle(self.now, request, &mut self.outcome);
        self.carry_out();
    }

    fn reply(&mut self, reply: Option<Reply>, answer: Answer) {
        let answered = reply.map(|reply| Effect::Reply(reply, answer));
        self.effects.extend(answered);
    }

    /// Something leaves once all that is on record now is safe. Nothing is, once the stream is deleted.
    fn promise(&mut self, effect: Effect<Ends>) {
        match self.retired {
            true => self.effects.push(effect),
            false => self.waiting.push_back((self.made, effect)),
        }
    }

    /// Does what the machine ordered.
    fn carry_out(&mut self) {
        if !self.outcome.records.is_empty() {
            self.made += self.outcome.records.len() as u64;
            match &self.log {
                Some(log) => log.write(&mut self.outcome.records),
                None => self.outcome.records.clear(),
            }
        }
        for order in std::mem::take(&mut self.outcome.promises) {
            if let Some(effect) = self.effect(order) {
                self.promise(effect);
            }
        }
        for order in std::mem::take(&mut self.outcome.effects) {
            // Nobody hears of a number before it is safe.
            let waits = matches!(order, Order::Reply(..));
            match self.effect(order) {
                Some(effect) if waits => self.promise(effect),
                effect => self.effects.extend(effect),
            }
        }
    }

    fn effect(&mut self, order: Order<Ends>) -> Option<Effect<Ends>> {
        match order {
            Order::Confirm(receipt) => Some(Effect::Confirm(receipt)),
            Order::Reject(receipt) => Some(Effect::Reject(receipt)),
            Order::Reply(reply, Said::Number(number)) => {
                Some(Effect::Reply(reply, Answer::Number(Some(number))))
            }
            Order::Reply(reply, Said::Unknown) => Some(Effect::Reply(reply, Answer::Number(None))),
            Order::DropBelow { offset } => {
                self.log.as_ref()?.drop_below(offset);
                None
            }
        }
    }

    /// What has happened to the files since the last turn.
    fn look_at_files(&mut self) {
        let Some(log) = self.log.clone() else {
            // Nothing becomes safe.
            return self.refuse_waiting();
        };
        let written = log.written();
        self.readers.commit(written.below, &mut self.effects);
        while let Some((_, effect)) = self.waiting.pop_front_if(|(made, _)| *made <= written.records) {
            self.effects.push(effect);
        }
        if written.has_failed {
            self.refuse_waiting();
        }
        if written.is_stalled && !self.is_stalled {
            self.answer_waiting();
        }
        self.is_stalled = written.is_stalled;
        for loaded in log.take_loaded() {
            let consumer = loaded.consumer;
            if let Some(outlet) = self.readers.loaded(loaded) {
                self.cancel(consumer);
                self.effects.push(Effect::CancelConsumer { outlet, consumer });
            }
        }
    }

    /// What waits for the files never leaves: publishers are told that it was not taken. It may have been.
    fn refuse_waiting(&mut self) {
        for (_, effect) in self.waiting.drain(..) {
            match effect {
                Effect::Confirm(receipt) => self.effects.push(Effect::Reject(receipt)),
                // A node that has no answer asks again.
                Effect::Reply(_, Answer::Recalled { .. }) => {}
                // What is known is not safe.
                Effect::Reply(reply, Answer::Number(_)) => {
                    self.effects.push(Effect::Reply(reply, Answer::Empty));
                }
                effect => self.effects.push(effect),
            }
        }
    }

    /// Who asked for a number is not left without an answer until the disk has room. What is known is not safe.
    fn answer_waiting(&mut self) {
        for (made, effect) in std::mem::take(&mut self.waiting) {
            match effect {
                Effect::Reply(reply, Answer::Number(_)) => {
                    self.effects.push(Effect::Reply(reply, Answer::Empty));
                }
                effect => self.waiting.push_back((made, effect)),
            }
        }
    }

    fn consume(
        &mut self,
        (consumer, outlet): (ConsumerId, Outlet),
        settings: ConsumerSettings,
        from: Start,
        filter: Option<Matcher>,
    ) {
        let Some(log) = self.log.clone() else {
            return self.effects.push(Effect::CancelConsumer { outlet, consumer });
        };
        let at = log.begin(from);
        // Who asks for a message that is not there yet waits for it.
        let first = if let Start::Offset(offset) = from {
            offset.max(at)
        } else {
            at
        };
        log.attach();
        let consumer = (consumer, outlet);
        self.readers
            .consume(consumer, settings, (at, first), filter, &mut self.effects);
    }

    fn cancel(&mut self, consumer: ConsumerId) {
        if self.readers.cancel(consumer, &mut self.effects)
            && let Some(log) = &self.log
        {
            log.detach();
        }
    }

    /// Takes what another node sends, whose numbers say what is missing and what is there already.
    fn enqueue_from(&mut self, origin: Origin, block: &Block, receipt: Option<Receipt>) {
        let Origin { sender, first } = origin;
        let (reference, count) = (reference_of(sender), block.len() as u64);
        let last = self.machine.sequence(&reference);
        if let Err(number) = self.senders.hear(origin, count, last) {
            return self.effects.push(Effect::Expects {
                receipt,
                sender,
                number,
            });
        }
        let batch = messages::batch(block, first);
        if batch.len() < block.len() {
            self.senders.refuse(origin, count);
            return self.refuse_too_large(receipt);
        }
        self.ask(Ask::Publish {
            reference: Some(reference),
            batch,
            receipt,
        });
    }

    /// Some of a block are too large for a stream.
    fn refuse_too_large(&mut self, receipt: Option<Receipt>) {
        if let Some(receipt) = receipt {
            self.promise(Effect::Reject(receipt));
        }
    }

    /// A node asks what became of what it sent.
    fn recall(&mut self, sender: Incarnation, from: u64, reply: Reply) {
        self.ask(Ask::EndTurn);
        let last = self.machine.sequence(&reference_of(sender));
        let (below, refused) = self.senders.recall(sender, from, last);
        self.promise(Effect::Reply(reply, Answer::Recalled { below, refused }));
    }

    fn retire(&mut self) {
        self.retired = true;
        // As of any queue that is deleted: the messages went nowhere.
        let waiting = self.waiting.drain(..).map(|(_, effect)| effect);
        self.effects.extend(waiting);
        self.ask(Ask::Retire);
        self.readers.end(&mut self.effects);
        if let Some(log) = &self.log {
            log.remove();
        }
    }

    fn stream(&mut self, request: StreamRequest<Ends>) {
        match request {
            StreamRequest::Consume {
                consumer,
                outlet,
                settings,
                from,
                filter,
                reply,
            } => {
                self.reply(Some(reply), Answer::Consuming);
                self.consume((consumer, outlet), settings, from, filter);
            }
            StreamRequest::Machine(request) => {
                match &request {
                    Ask::Publish { receipt, .. } if self.is_broken() => {
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
                            self.reply(Some(reply), Answer::Empty);
                        }
                        return;
                    }
                    // What is answered is on record by then.
                    Ask::Sequence { .. } | Ask::Offset { .. } => self.ask(Ask::EndTurn),
                    _ => {}
                }
                self.ask(request);
            }
            StreamRequest::Read(request) => self.readers.ask(request, &mut self.effects),
            // In a stream that is gone nobody is active.
            StreamRequest::Join { .. } if self.retired => {}
            StreamRequest::Join {
                reader,
                group,
                partition,
            } => self.readers.join(reader, &group, partition, &mut self.effects),
            StreamRequest::SteppedDown { reader } => {
                self.readers.stepped_down(reader, &mut self.effects);
            }
        }
    }

    /// How many messages may be read.
    fn messages(&self) -> u64 {
        let first = self.machine.status().first_offset;
        self.readers.committed().saturating_sub(first)
    }

    /// Nothing can be written.
    fn is_broken(&self) -> bool {
        !self.retired && self.log.as_ref().is_none_or(|log| log.written().has_failed)
    }
}

impl QueueHost for StreamHost {
    fn handle(&mut self, now: Timestamp, request: Request<Ends>) {
        self.now = now;
        match request {
            Request::Enqueue { receipt, .. } | Request::EnqueueFrom { receipt, .. } if self.is_broken() => {
                // Behind what came before.
                let refused = receipt.map(|receipt| (u64::MAX, Effect::Reject(receipt)));
                self.waiting.extend(refused);
            }
            Request::Enqueue { receipt, .. } | Request::EnqueueFrom { receipt, .. } if self.retired => {
                // The message went nowhere, as in RabbitMQ.
                self.effects.extend(receipt.map(Effect::Confirm));
            }
            Request::Enqueue { block, receipt } => {
                let batch = messages::batch(&block, 0);
                if batch.len() < block.len() {
                    return self.refuse_too_large(receipt);
                }
                self.ask(Ask::Publish {
                    reference: None,
                    batch,
                    receipt,
                });
            }
            Request::EnqueueFrom {
                origin,
                block,
                receipt,
            } => self.enqueue_from(*origin, &block, receipt),
            Request::Recall { sender, from, reply } => self.recall(sender, from, reply),
            // What is on record of it stays until there are too many: that is known by itself once a later start has sent
            // something.
            Request::IncarnationEnded { incarnation } => self.senders.end(incarnation),
            // What it delivered is nobody's but the consumer's: nothing comes back.
            Request::Holds { held, reply, .. } => {
                let mut all = Ranges::new();
                held.iter().for_each(|held| all.extend(&held.seqs));
                self.reply(Some(reply), Answer::Discard(all));
            }
            Request::Consume {
                consumer,
                outlet,
                settings,
                reply,
            }
            | Request::ConsumeFrom {
                consumer,
                outlet,
                settings,
                reply,
                of: _,
            } => {
                self.reply(Some(reply), Answer::Consuming);
                self.consume((consumer, outlet), settings, Start::Next, None);
            }
            Request::Cancel { consumer, reply } => {
                self.cancel(consumer);
                self.reply(reply, Answer::Cancelled);
            }
            Request::Get { reply, .. } => self.reply(Some(reply), Answer::Empty),
            Request::Settle { consumer, seqs, .. }
            | Request::Return { consumer, seqs, .. }
            | Request::Requeue { consumer, seqs } => {
                if let Some(consumer) = consumer {
                    self.readers.change(consumer, |it| it.settle(seqs.count()));
                }
            }
            Request::TakeOut { reply, .. } => self.reply(Some(reply), Answer::Taken(Ranges::new())),
            Request::Flow { consumer, bytes } => self.readers.change(consumer, |it| it.flow(bytes)),
            Request::Limit { consumer, prefetch } => self.readers.change(consumer, |it| it.limit(prefetch)),
            Request::Pause { consumer, reply } => {
                self.readers.change(consumer, |it| it.pause(true));
                self.reply(reply, Answer::Paused);
            }
            Request::Resume { consumer } => self.readers.change(consumer, |it| it.pause(false)),
            Request::Purge { reply } => self.reply(Some(reply), Answer::Purged(0)),
            // Whatever is in it and whoever reads it, and nobody is told how much it was: as in RabbitMQ.
            Request::MayRetire { reply, .. } => self.reply(Some(reply), Answer::MayRetire(0)),
            Request::Retire => self.retire(),
            Request::Use { reply } => {
                let (ready, consumers) = (self.messages(), self.readers.len() as u64);
                self.reply(reply, Answer::Stands { ready, consumers });
            }
            Request::Wake => self.ask(Ask::Wake),
            Request::Configure { settings } => {
                let settings = stream_settings(&settings);
                if let Some(opening) = &mut self.opening {
                    opening.settings = settings.clone();
                }
                self.ask(Ask::Configure { settings });
            }
            Request::Stream(request) => self.stream(*request),
            Request::AwaitNodes { .. }
            | Request::CountAsDown { .. }
            | Request::Knows { .. }
            | Request::MayHold { .. }
            | Request::HoldsNothing { .. }
            | Request::PutBack { .. }
            | Request::Remove { .. }
            | Request::FinishDeadLetters { .. }
            | Request::HandOverAgain
            | Request::GiveUp { .. }
            | Request::Store(_) => {}
        }
    }

    fn commit(&mut self, act: &mut dyn FnMut(Effect<Ends>)) -> Turned {
        if !self.retired {
            self.open_again();
            if let Some(log) = &self.log {
                log.try_again(self.now.0);
            }
            // What comes while something is written is written together, afterwards.
            if !self.log.as_ref().is_some_and(|log| log.is_busy()) {
                self.ask(Ask::EndTurn);
            }
            self.look_at_files();
            if let Some(log) = &self.log {
                self.readers.serve(log, &self.name, &mut self.effects);
            }
        }
        self.effects.drain(..).for_each(act);
        self.turned()
    }

    fn turned(&self) -> Turned {
        let status = self.machine.status();
        let memory = self.log.as_ref().map_or(0, |log| log.memory());
        let tries = self.log.as_ref().filter(|_| !self.retired);
        let tries_at_ms = tries.map_or(u64::MAX, |log| log.wakes_at_ms());
        let opening = self.opening.as_ref().filter(|_| !self.retired);
        let opens_at_ms = opening.map_or(u64::MAX, Opening::wakes_at_ms);
        let messages = self.messages();
        let status = Status {
            ready: messages,
            unacked: self.readers.unacked(),
            consumers: self.readers.len(),
            ready_bytes: status.bytes,
            persistent: messages,
            persistent_bytes: status.bytes,
            memory,
            paged: messages,
            paged_bytes: status.bytes,
            next_seq: status.next_offset,
            keeps: true,
            ..Status::default()
        };
        Turned {
            status,
            lost: self.lost(),
            wakes_at_ms: self.machine.wakes_at_ms().min(tries_at_ms).min(opens_at_ms),
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
        if let Some(log) = &self.log {
            log.belongs_to(queue);
        }
        if let Some(opening) = &self.opening {
            opening.belongs_to(queue);
        }
    }

    fn stream_log(&self) -> Option<&Arc<StreamLog>> {
        self.log.as_ref()
    }
}

impl Inspect for StreamHost {
    fn losses(&self) -> Losses {
        Losses::of(Loss::Dropped(DropReason::Unreadable), self.lost())
    }

    fn lost(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.lost())
    }

    fn is_sorted(&self) -> bool {
        false
    }

    fn head_timestamp(&self) -> Option<u64> {
        None
    }

    fn look(&self, _: Option<Seq>, _: u64, _: u64) -> Glance {
        Glance {
            spans: Vec::new(),
            next: None,
            skipped: 0,
        }
    }

    fn back(&self, _: Option<Seq>, _: u64) -> Option<Seq> {
        None
    }

    fn senders(&self) -> Vec<Incarnation> {
        let references = self.machine.tracking().sequences();
        let on_record = references.filter_map(|(reference, _)| sender_of(reference));
        let all: BTreeSet<Incarnation> = on_record.chain(self.senders.all()).collect();
        all.into_iter().collect()
    }

    fn bounds(&self) -> Option<(Seq, Seq)> {
        let status = self.machine.status();
        Some((status.first_offset, status.next_offset))
    }

    fn tracking(&self) -> Option<Tracking> {
        Some(self.machine.tracking().clone())
    }
}

/// Until an operator has done something about that.
fn cannot_be_opened(name: &str, error: &StorageError) {
    tracing::error!(
        area = "storage",
        "{name} cannot be opened, and takes and gives nothing until it is mended or deleted: {error}"
    );
}

/// What a stream's machine is told of a queue's settings.
fn stream_settings(settings: &QueueSettings) -> StreamSettings {
    let usual = StreamSettings::default();
    StreamSettings {
        max_bytes: settings.max_length_bytes,
        max_age_ms: settings.max_age_ms,
        segment_bytes: settings
            .segment_bytes
            .filter(|it| *it > 0)
            .unwrap_or(usual.segment_bytes),
        filter_bytes: settings.filter_bytes.unwrap_or(usual.filter_bytes),
    }
}
