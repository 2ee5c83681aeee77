//! The classic queue as a machine: first in, first out.
//!
//! `contents` knows which messages exist and is what the journal can rebuild; `dispatch` knows who gets them and is
//! forgotten at a restart. Everything else in this folder is one kind of request each: it looks at both, decides, and
//! changes them.
//!
//! A durable queue's persistent messages are *journaled*: whatever befalls them is recorded. All others live in the same
//! contents and leave no record.

mod admit;
mod checkpoint;
mod codec;
mod consumers;
mod contents;
mod deliver;
mod discard;
mod dispatch;
pub mod effect;
mod end;
mod enqueue;
mod expire;
mod lanes;
mod loading;
mod look;
mod losses;
mod once;
mod overflow;
mod paging;
pub mod record;
pub mod request;
mod retry;
mod settle;
mod take;

pub use effect::{Answer, Bytes, Delivery, Effect, Part, Piece, Source};
pub use lanes::{Classic, Lanes, Sorting};
pub use look::{Glance, Glimpse, Standing};
pub use losses::{LOSSES, Loss, Losses};
pub use record::{DropReason, Expiry, Kept, Record, Rest, Snapshot, Stored};
pub use request::{
    ConsumerSettings, DeadLetterTo, DeliveryLimit, Disposal, Overflow, QueueSettings, Request,
};

use contents::Contents;
use discard::Leaving;
use dispatch::Dispatch;
use model::{ConsumerId, Index, Machine, Outcome, Ranges, Seq, Timestamp};
use paging::Paging;

/// What the host ties to requests and finds again in effects. The machine carries these and never looks into
/// them; tests use plain numbers.
pub trait Ends {
    /// Handed in with published messages, handed back when the queue has taken responsibility for them.
    type Receipt;
    /// Handed in with a question, handed back with its answer.
    type Reply;
    /// Where a consumer's deliveries go. Cloned once per delivered batch.
    type Outlet: Clone;

    /// Splits a receipt for `count` messages: takes out the part for those at `positions` (from 0).
    fn split(receipt: &mut Self::Receipt, positions: &Ranges, count: usize) -> Self::Receipt;
}

/// Where an entry lies in the queue's own segments (the storage room's words, carried as plain numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the segment file.
    pub segment: u32,
    /// Byte offset in it.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}

/// A queue's numbers. All are kept as they change; asking costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Messages that may be delivered.
    pub ready: u64,
    /// Messages delivered and not settled. What is on its way to a dead-letter exchange is neither ready nor unacked.
    pub unacked: u64,
    /// Consumers.
    pub consumers: usize,
    /// The sum of the lengths of ready bodies, in bytes. After a restart from a snapshot it is right for the queue as a
    /// whole and estimated for parts of it, until they are read back.
    pub ready_bytes: u64,
    /// The same of unacked messages.
    pub unacked_bytes: u64,
    /// Messages that the journal knows, wherever they stand: RabbitMQ calls those persistent, and in a transient queue none is.
    pub persistent: u64,
    /// Their bodies, in bytes.
    pub persistent_bytes: u64,
    /// How many messages went to consumers since the start, less those that came back.
    pub handed: u64,
    /// Memory held by message blocks, in bytes.
    pub memory: usize,
    /// Messages whose bytes are not in memory.
    pub paged: u64,
    /// Their bodies, in bytes.
    pub paged_bytes: u64,
    /// The number of the next message; of a queue that sorts its messages, one more than how many came since the start.
    pub next_seq: Seq,
    /// When the first ready message came, in milliseconds since the Unix epoch; 0 if there is none, or it is not in memory.
    pub oldest_ms: u64,
    /// The only consumer that is served, where one at a time is.
    pub active: Option<ConsumerId>,
}

/// The outcome of the classic queue.
pub type FifoOutcome<E> = Outcome<Record, Effect<E>>;

/// A classic queue.
pub struct Fifo<E: Ends> {
    settings: QueueSettings,
    contents: Contents,
    dispatch: Dispatch<E>,
    paging: Paging,
    leaving: Leaving,
    losses: Losses,
    /// When the queue ends if nobody uses it, in milliseconds since the Unix epoch; `u64::MAX` for never.
    unused_at_ms: u64,
    /// The number of the next record.
    next_index: Index,
    /// Messages are suspected since a crash, which the journal doesn't know yet.
    unsaid: bool,
    /// The queue is deleted; nothing happens here any more.
    retired: bool,
}

impl<E: Ends> Fifo<E> {
    /// An empty queue. To bring one back, `apply` its records and then call [`Fifo::recovered`].
    pub fn new(settings: QueueSettings) -> Self {
        Self {
            dispatch: Dispatch::new(settings.single_active),
            settings,
            contents: Contents::default(),
            paging: Paging::default(),
            leaving: Leaving::default(),
            losses: Losses::default(),
            unused_at_ms: u64::MAX,
            next_index: 1,
            unsaid: false,
            retired: false,
        }
    }

    /// Ends replay: everything that exists is ready. Limits are enforced by the next request that looks at them (a publish,
    /// a return, `Configure`).
    ///
    /// Deliveries leave no record, so who was given a message before the restart is not known. If the log was closed in
    /// good order (`closed`), a message is marked as perhaps delivered before if it was returned once, as what consumers
    /// held is when their connections end, or if a later message was settled. After a crash every message is: as in
    /// RabbitMQ, a message that is not marked was never delivered.
    pub fn recovered(&mut self, closed: bool) {
        let _ = self.contents.take_freed();
        self.dispatch.cursor = 1;
        self.unsaid = !closed && self.contents.suspect_all();
        self.dispatch.suspect_below = self.contents.settled_high();
        self.dispatch.ready = self.contents.live();
        self.dispatch.ready_bytes = self.contents.sums().bytes;
        self.recover_retries();
        self.paging.recovered(self.contents.next());
    }

    /// The queue's numbers.
    pub fn status(&self) -> Status {
        let sums = self.contents.sums();
        let unacked =
            sums.live - self.dispatch.ready - self.dispatch.leaving.count() + self.dispatch.taken.count();
        Status {
            ready: self.dispatch.ready,
            unacked,
            unacked_bytes: match unacked {
                0 => 0,
                _ => (sums.bytes + self.dispatch.taken_bytes)
                    .saturating_sub(self.dispatch.ready_bytes + self.dispatch.leaving_bytes),
            },
            persistent: sums.journaled,
            persistent_bytes: sums.journaled_bytes,
            paged_bytes: sums.paged_bytes,
            consumers: self.dispatch.ring.len(),
            ready_bytes: self.dispatch.ready_bytes,
            handed: self.dispatch.handed,
            memory: self.contents.memory() + self.leaving.refused_bytes,
            paged: sums.paged,
            next_seq: self.contents.next(),
            oldest_ms: self.oldest_ms(),
            active: self.dispatch.ring.active(),
        }
    }

    fn oldest_ms(&self) -> u64 {
        if self.dispatch.ready == 0 {
            return 0;
        }
        let first = self.first_ready();
        let memory = first.and_then(|(slot, _)| self.contents.run(slot)?.memory.as_ref());
        memory.map_or(0, |memory| memory.block.received().0)
    }

    /// The slot and the number of the first ready message, of a queue that has some.
    fn first_ready(&self) -> Option<(usize, Seq)> {
        let (from, last) = self
            .dispatch
            .returned
            .first()
            .unwrap_or((self.dispatch.cursor, Seq::MAX));
        let (slot, seq, _) = self.contents.first_live(from, last)?;
        Some((slot, seq))
    }

    /// The number that its next record will have.
    pub fn next_index(&self) -> Index {
        self.next_index
    }

    /// All places in the queue's segments that hold messages, each once. After replay, what lies elsewhere in them is garbage.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.contents.places()
    }

    /// True if it holds nothing and expects nothing.
    fn is_idle(&self) -> bool {
        self.contents.live() == 0 && self.paging.is_idle() && self.leaving.is_empty()
    }

    fn record(&mut self, record: Record, outcome: &mut FifoOutcome<E>) {
        outcome.records.push(record);
        self.next_index += 1;
    }

    /// Records that journaled messages were settled.
    fn record_settled(&mut self, journaled: Ranges, outcome: &mut FifoOutcome<E>) {
        if !journaled.is_empty() {
            self.contents.note_settled(&journaled);
            self.record(Record::Settled { seqs: journaled }, outcome);
        }
    }

    /// Records that all messages of an earlier life may have been delivered in it; else the next start, after a stop in good
    /// order, would not know. What is settled is a number that no message has yet.
    fn record_suspicion(&mut self, outcome: &mut FifoOutcome<E>) {
        if std::mem::take(&mut self.unsaid) {
            let seqs = Ranges::one(self.dispatch.suspect_below);
            self.record(Record::Settled { seqs }, outcome);
        }
    }

    /// Records that journaled messages were dropped.
    fn record_dropped(&mut self, journaled: Ranges, reason: DropReason, outcome: &mut FifoOutcome<E>) {
        if !journaled.is_empty() {
            self.record(
                Record::Dropped {
                    seqs: journaled,
                    reason,
                },
                outcome,
            );
        }
    }

    /// Gives back places that became free. Those the journal knows of must stand until it knows that they are free.
    fn give_back(&mut self, outcome: &mut FifoOutcome<E>) {
        let Some((journaled, others)) = self.contents.take_freed() else {
            return;
        };
        if !journaled.is_empty() {
            outcome.promises.push(Effect::Release { places: journaled });
        }
        if !others.is_empty() {
            outcome.effects.push(Effect::Release { places: others });
        }
    }
}

impl<E: Ends> std::fmt::Debug for Fifo<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fifo")
            .field("settings", &self.settings)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl<E: Ends> Machine for Fifo<E> {
    type Request = Request<E>;
    type Record = Record;
    type Effect = Effect<E>;

    fn handle(&mut self, now: Timestamp, request: Request<E>, outcome: &mut FifoOutcome<E>) {
        if self.retired {
            return self.handle_retired(request, outcome);
        }
        if self.wakes_at_ms() <= now.0 && !matches!(request, Request::Configure { .. }) {
            self.due(now, outcome);
        }
        match request {
            Request::Enqueue { block, receipt } => self.publish(block, receipt, now, outcome),
            Request::Consume {
                consumer,
                outlet,
                settings,
                reply,
            } => {
                self.consume(consumer, outlet, settings, reply, outcome);
                self.used(now);
            }
            Request::Cancel { consumer, reply } => {
                self.cancel(consumer, reply, outcome);
                self.used(now);
            }
            Request::Get { no_ack, reply } => {
                self.get(no_ack, reply, outcome);
                self.used(now);
            }
            Request::Settle {
                consumer,
                seqs,
                disposal,
            } => self.settle(consumer, &seqs, disposal, outcome),
            Request::Return {
                consumer,
                seqs,
                failed,
            } => self.take_back(consumer, &seqs, failed, now, outcome),
            Request::TakeOut { seqs, reply } => {
                let mut taken = Ranges::new();
                self.take_away(&seqs, &mut taken);
                outcome.effects.push(Effect::Reply(reply, Answer::Taken(taken)));
                self.deliver(outcome);
            }
            Request::PutBack { seqs } => self.put_back(&seqs, outcome),
            Request::Remove { seqs } => self.remove_taken(&seqs, outcome),
            Request::Flow { consumer, bytes } => self.change(consumer, outcome, |it| it.refill(bytes)),
            Request::Limit { consumer, prefetch } => {
                self.change(consumer, outcome, |it| it.settings.prefetch = prefetch);
            }
            Request::Pause { consumer } => self.change(consumer, outcome, |it| it.paused = true),
            Request::Resume { consumer } => self.change(consumer, outcome, |it| it.paused = false),
            Request::Purge { reply } => self.purge(reply, outcome),
            Request::Retire {
                if_unused,
                if_empty,
                reply,
            } => self.retire(if_unused, if_empty, reply, outcome),
            Request::Configure { settings } => self.configure(*settings, now, outcome),
            Request::Use => self.used(now),
            Request::Tick => {}
            Request::DeadLettered { ticket, unread } => self.dead_lettered(ticket, &unread, outcome),
            Request::Shrink { memory } => self.shrink(memory, outcome),
            Request::Loaded { first, block } => self.loaded(first, block, outcome),
            Request::Stored { pieces } => self.stored(&pieces, outcome),
            Request::Checkpoint { before } => self.checkpoint(before, outcome),
            Request::Compact { segment } => self.compact(segment, outcome),
        }
        self.give_back(outcome);
    }

    fn apply(&mut self, index: Index, record: Record) {
        self.next_index = index.saturating_add(1);
        let mut journaled = Ranges::new();
        match record {
            Record::Enqueued {
                first,
                block,
                from,
                expiries,
                keyed,
            } => {
                let memory = block.memory();
                if self.contents.enqueue(first, block.clone(), from, Some(index)) {
                    if keyed {
                        self.note_keys(&block, from, first);
                    }
                    self.contents.expire_at(&expiries);
                    self.paging.replayed(&mut self.contents, memory);
                }
            }
            Record::Settled { seqs } => {
                for (first, last) in seqs.spans() {
                    self.contents.remove(first, last, &mut journaled);
                }
                self.contents.note_settled(&seqs);
            }
            Record::Dropped { seqs, .. } => {
                for (first, last) in seqs.spans() {
                    self.contents.remove(first, last, &mut journaled);
                }
            }
            Record::Returned { seqs } => {
                for (first, last) in seqs.spans() {
                    self.contents.mark_returned(first, last, &mut journaled);
                    self.contents.retries.remove(first, last);
                }
            }
            Record::Retried { until } => {
                for expiry in &until {
                    let (first, last) = (expiry.first, expiry.last);
                    self.contents.mark_returned(first, last, &mut journaled);
                }
                self.contents.retry_at(&until);
            }
            Record::Moved { pieces } => {
                for piece in pieces {
                    self.contents.relocate(piece, false);
                }
            }
            Record::Snapshot(snapshot) => self.contents.restore(snapshot),
        }
    }
}
