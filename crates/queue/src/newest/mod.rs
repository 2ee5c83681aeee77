//! A second kind of queue, for tests only: it keeps its newest message and no other. That hosts turn it, journals keep
//! it and clients declare it shows that they know no kind of queue.
//!
//! It has no message store and heeds no settings, limits or windows; a message that a consumer holds is gone when a
//! newer one comes.

mod codec;

use crate::Ends;
use crate::request::{Disposal, Request};
use crate::store::{self, Bytes, LogPlace, Place, Stored, Whereabouts};
use crate::{
    Answer, ConsumerSettings, Delivery, DropReason, Effect, Glance, Glimpse, HandOver, Inspect, Loss, Losses,
    OwnConsumer, QueueMachine, Standing, Status,
};
use model::{
    Block, BlockBuilder, ConsumerId, Incarnation, Index, Machine, Outcome, QueueSettings, Ranges, Seq,
    Timestamp,
};
use std::sync::Arc;

/// What is now so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// This message is the newest one: a block of one.
    Came { seq: Seq, block: Arc<Block> },
    /// It is gone.
    Went { seq: Seq },
}

/// What a node remembers beside the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// It has no message store, so nothing moves.
    Moved,
    /// All that is there before a record.
    Checkpoint { next: Index, contents: Contents },
}

/// What the journal knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The number of the newest message that ever came.
    pub last: Seq,
    /// Its block, as long as it is there.
    pub block: Option<Arc<Block>>,
}

struct Consumer<O> {
    id: ConsumerId,
    outlet: O,
    no_ack: bool,
    paused: bool,
}

/// See the [module](self).
pub struct Newest<E: Ends> {
    contents: Contents,
    /// Somebody has the message and did not settle it.
    is_held: bool,
    redelivered: bool,
    consumers: Vec<Consumer<E::Outlet>>,
    handed: u64,
    losses: Losses,
    retired: bool,
}

type NewestOutcome<E> = Outcome<Record, Effect<E>>;

impl<E: Ends> Newest<E> {
    /// What the journal knows.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    fn ready(&self) -> u64 {
        u64::from(self.contents.block.is_some() && !self.is_held)
    }

    fn enqueue(&mut self, block: &Block, receipt: Option<E::Receipt>, outcome: &mut NewestOutcome<E>) {
        if !(self.retired || block.is_empty()) {
            let older = block.len() as u64 - 1 + u64::from(self.contents.block.is_some());
            self.losses.add(Loss::Dropped(DropReason::MaxLength), older);
            let mut newest = BlockBuilder::new();
            newest.push_message(&block.message(block.len() - 1));
            let block = Arc::new(newest.finish(block.persistent(), block.received()));
            let seq = self.contents.last + 1;
            self.record(Record::Came { seq, block }, outcome);
        }
        outcome.promises.extend(receipt.map(Effect::Confirm));
        self.deliver(outcome);
    }

    fn record(&mut self, record: Record, outcome: &mut NewestOutcome<E>) {
        self.take(&record);
        outcome.records.push(record);
    }

    fn take(&mut self, record: &Record) {
        match record {
            Record::Came { seq, block } => {
                self.contents.last = *seq;
                self.contents.block = Some(block.clone());
            }
            Record::Went { seq } if *seq == self.contents.last => self.contents.block = None,
            Record::Went { .. } => {}
        }
        (self.is_held, self.redelivered) = (false, false);
    }

    /// Hands the message out, if it is ready.
    fn hand_out(&mut self, no_ack: bool, outcome: &mut NewestOutcome<E>) -> Option<Delivery> {
        let block = self.contents.block.clone().filter(|_| !self.is_held)?;
        let seq = self.contents.last;
        let redelivered = self.redelivered;
        match no_ack {
            true => self.record(Record::Went { seq }, outcome),
            false => self.is_held = true,
        }
        self.handed += 1;
        Some(Delivery {
            seqs: Ranges::one(seq),
            block,
            base: seq,
            redelivered,
            returns: 0,
            failures: None,
        })
    }

    fn deliver(&mut self, outcome: &mut NewestOutcome<E>) {
        let mut consumers = self.consumers.iter();
        let Some(consumer) = consumers.find(|consumer| !consumer.paused) else {
            return;
        };
        let (id, outlet, no_ack) = (consumer.id, consumer.outlet.clone(), consumer.no_ack);
        if let Some(delivery) = self.hand_out(no_ack, outcome) {
            outcome.effects.push(Effect::Deliver {
                outlet,
                consumer: id,
                delivery,
            });
        }
    }

    fn get(&mut self, no_ack: bool, outcome: &mut NewestOutcome<E>) -> Answer {
        match self.hand_out(no_ack, outcome) {
            Some(delivery) => Answer::Got {
                delivery,
                remaining: 0,
            },
            None => Answer::Empty,
        }
    }

    fn settle(&mut self, seqs: &Ranges, disposal: Disposal, outcome: &mut NewestOutcome<E>) {
        let seq = self.contents.last;
        if self.is_held && seqs.contains(seq) {
            self.record(Record::Went { seq }, outcome);
            if disposal == Disposal::Rejected {
                self.losses.add(Loss::Dropped(DropReason::Rejected), 1);
            }
        }
    }

    fn purge(&mut self, outcome: &mut NewestOutcome<E>) -> u64 {
        let purged = self.ready();
        if purged > 0 {
            let seq = self.contents.last;
            self.record(Record::Went { seq }, outcome);
            self.losses.add(Loss::Dropped(DropReason::Purged), purged);
        }
        purged
    }

    fn may_retire(&self, if_unused: bool, if_empty: bool) -> Answer {
        match () {
            () if if_unused && !self.consumers.is_empty() => Answer::InUse,
            () if if_empty && self.ready() > 0 => Answer::NotEmpty,
            () => Answer::MayRetire(self.ready()),
        }
    }

    fn retire(&mut self, outcome: &mut NewestOutcome<E>) {
        self.retired = true;
        self.contents.block = None;
        for Consumer { id, outlet, .. } in self.consumers.drain(..) {
            let consumer = id;
            outcome.effects.push(Effect::CancelConsumer { outlet, consumer });
        }
    }

    fn pause(&mut self, consumer: ConsumerId, paused: bool) {
        let mut consumers = self.consumers.iter_mut();
        if let Some(found) = consumers.find(|it| it.id == consumer) {
            found.paused = paused;
        }
    }
}

impl<E: Ends> Machine for Newest<E> {
    type Request = Request<E>;
    type Record = Record;
    type Effect = Effect<E>;
    type Status = Status;

    fn handle(&mut self, _now: Timestamp, request: Request<E>, outcome: &mut NewestOutcome<E>) {
        let (reply, answer) = match request {
            Request::Enqueue { block, receipt } | Request::EnqueueFrom { block, receipt, .. } => {
                return self.enqueue(&block, receipt, outcome);
            }
            Request::Consume {
                consumer: id,
                outlet,
                settings,
                reply,
            }
            | Request::ConsumeFrom {
                consumer: id,
                outlet,
                settings,
                reply,
                of: _,
            } => {
                let (no_ack, paused) = (settings.no_ack, settings.paused);
                self.consumers.push(Consumer {
                    id,
                    outlet,
                    no_ack,
                    paused,
                });
                (Some(reply), Answer::Consuming)
            }
            Request::Cancel { consumer, reply } => {
                self.consumers.retain(|it| it.id != consumer);
                (reply, Answer::Cancelled)
            }
            Request::Get { no_ack, reply } => (Some(reply), self.get(no_ack, outcome)),
            Request::Settle { seqs, disposal, .. } => return self.settle(&seqs, disposal, outcome),
            Request::Return { seqs, .. } | Request::Requeue { seqs, .. } => {
                if self.is_held && seqs.contains(self.contents.last) {
                    (self.is_held, self.redelivered) = (false, true);
                }
                return self.deliver(outcome);
            }
            Request::TakeOut { reply, .. } => (Some(reply), Answer::Taken(Ranges::new())),
            Request::Pause { consumer, reply } => {
                self.pause(consumer, true);
                (reply, Answer::Paused)
            }
            Request::Resume { consumer } => {
                self.pause(consumer, false);
                return self.deliver(outcome);
            }
            Request::Purge { reply } => (Some(reply), Answer::Purged(self.purge(outcome))),
            Request::MayRetire {
                if_unused,
                if_empty,
                reply,
            } => (Some(reply), self.may_retire(if_unused, if_empty)),
            Request::Retire => return self.retire(outcome),
            Request::Use { reply } => {
                let (ready, consumers) = (self.ready(), self.consumers.len() as u64);
                (reply, Answer::Stands { ready, consumers })
            }
            // It recognises nothing that comes again.
            Request::Recall { reply, .. } => {
                let (below, refused) = (1, Ranges::new());
                (Some(reply), Answer::Recalled { below, refused })
            }
            Request::Holds { held, reply, .. } => {
                let mut all = Ranges::new();
                held.iter().for_each(|held| all.extend(&held.seqs));
                (Some(reply), Answer::Discard(all))
            }
            Request::Store(store::Request::Checkpoint { .. }) => {
                return outcome.promises.push(Effect::Store(store::Effect::Checkpoint));
            }
            _ => return,
        };
        let answered = reply.map(|reply| Effect::Reply(reply, answer));
        outcome.effects.extend(answered);
        self.deliver(outcome);
    }

    fn apply(&mut self, _: Index, record: Record, _: &mut NewestOutcome<E>) {
        self.take(&record);
    }

    fn recovered(&mut self, _closed: bool) {
        self.redelivered = self.contents.block.is_some();
    }

    fn follow(&mut self) {}

    fn wakes_at_ms(&self) -> u64 {
        u64::MAX
    }

    fn status(&self) -> Status {
        let (block, ready) = (self.contents.block.as_ref(), self.ready());
        let bytes = block.map_or(0, |block| block.body_bytes());
        let unacked = u64::from(block.is_some()) - ready;
        Status {
            ready,
            ready_bytes: bytes * ready,
            unacked,
            unacked_bytes: bytes * unacked,
            persistent: ready + unacked,
            persistent_bytes: bytes,
            memory: block.map_or(0, |block| block.memory()),
            consumers: self.consumers.len(),
            handed: self.handed,
            next_seq: self.contents.last + 1,
            ..Status::default()
        }
    }
}

impl<E: Ends> Inspect for Newest<E> {
    fn losses(&self) -> Losses {
        self.losses
    }

    fn lost(&self) -> u64 {
        self.losses.sum()
    }

    fn is_sorted(&self) -> bool {
        false
    }

    fn head_timestamp(&self) -> Option<u64> {
        self.contents.block.as_ref()?.message(0).properties.timestamp()
    }

    fn look(&self, from: Option<Seq>, skip: u64, count: u64) -> Glance {
        let seq = self.contents.last;
        let block = self.contents.block.as_ref();
        let block = block.filter(|_| count > 0 && from.is_none_or(|from| from <= seq));
        let span = |block: &Arc<Block>| Glimpse {
            first: seq,
            last: seq,
            standing: if self.is_held {
                Standing::Held
            } else {
                Standing::Ready
            },
            redelivered: self.redelivered,
            returns: 0,
            bytes: Some(Bytes::Memory(block.clone())),
            base: seq,
        };
        let skipped = skip.min(block.map_or(0, |_| 1));
        Glance {
            spans: block.filter(|_| skip == 0).map(span).into_iter().collect(),
            next: None,
            skipped,
        }
    }

    fn back(&self, _before: Option<Seq>, _count: u64) -> Option<Seq> {
        Some(self.contents.last)
    }

    fn senders(&self) -> Vec<Incarnation> {
        Vec::new()
    }

    fn bounds(&self) -> Option<(Seq, Seq)> {
        Some((self.contents.last, self.contents.last + 1))
    }
}

impl<E: Ends> QueueMachine<E> for Newest<E> {
    type Local = Local;

    fn new(_: QueueSettings) -> Self {
        Self {
            contents: Contents::default(),
            is_held: false,
            redelivered: false,
            consumers: Vec::new(),
            handed: 0,
            losses: Losses::default(),
            retired: false,
        }
    }

    fn replay(&mut self) {}

    fn brings(record: &Record) -> Option<(Seq, &Arc<Block>)> {
        match record {
            Record::Came { seq, block } => Some((*seq, block)),
            Record::Went { .. } => None,
        }
    }

    fn appended(&mut self, _: Seq, _: LogPlace) {}

    fn checkpoint(&self, next: Index) -> (Local, Option<LogPlace>) {
        let contents = self.contents.clone();
        (Local::Checkpoint { next, contents }, None)
    }

    fn complete(checkpoint: &mut Local, before: Index, _: &[(Seq, LogPlace)]) -> Option<LogPlace> {
        if let Local::Checkpoint { next, .. } = checkpoint {
            *next = before;
        }
        None
    }

    fn hand_over(&self, next: Index) -> HandOver<Local> {
        let contents = self.contents.clone();
        HandOver::Contents(Local::Checkpoint { next, contents })
    }

    fn own_consumers(&self) -> Vec<OwnConsumer<E>> {
        let own = self.consumers.iter().map(|it| OwnConsumer {
            consumer: it.id,
            outlet: it.outlet.clone(),
            settings: ConsumerSettings {
                no_ack: it.no_ack,
                paused: it.paused,
                exclusive: false,
                prefetch: 0,
                priority: 0,
                window: u32::MAX,
            },
            outstanding: 0,
        });
        own.collect()
    }

    fn taken_over(&mut self) {
        self.recovered(false);
    }

    fn apply_local(&mut self, record: Local) -> Option<Index> {
        let Local::Checkpoint { next, contents } = record else {
            return None;
        };
        self.contents = contents;
        Some(next)
    }

    fn places(&self) -> Vec<Place> {
        Vec::new()
    }

    fn stored(&self) -> Vec<Stored> {
        Vec::new()
    }

    fn find(&self, seqs: &Ranges, _: u64) -> Whereabouts {
        // Its message is a part of its contents.
        Whereabouts {
            gone: seqs.clone(),
            ..Whereabouts::default()
        }
    }

    fn unreadable(&self) -> Ranges {
        Ranges::new()
    }

    fn without_places(record: Local) -> Option<Local> {
        matches!(record, Local::Checkpoint { .. }).then_some(record)
    }
}
