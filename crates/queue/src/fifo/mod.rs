//! The classic queue as a machine: first in, first out.
//!
//! The store keeps the messages that exist, and `contents` what else the journal can rebuild; `dispatch` knows who gets them and is
//! forgotten at a restart. Everything else in this folder is one kind of request each: it looks at all three, decides, and
//! changes them.
//!
//! A durable queue's persistent messages are *journaled*: whatever befalls them is recorded. All others live in the same
//! store and leave no record.

mod admit;
mod checkpoint;
mod codec;
mod consumers;
mod contents;
mod deliver;
mod discard;
mod dispatch;
mod end;
mod enqueue;
mod expire;
mod lanes;
mod look;
mod losses;
mod once;
mod overflow;
pub mod record;
mod retry;
mod settle;
mod storing;
mod take;

pub use crate::effect::{Answer, Delivery, Effect};
pub use crate::losses::{DropReason, LOSSES, Loss, Losses};
pub use crate::request::{ConsumerSettings, Disposal, Ends, Request};
pub use crate::status::Status;
pub use checkpoint::{Checkpoint, LocalRecord};
pub use lanes::{Classic, Lanes};
pub use look::{Glance, Glimpse, Standing};
pub use model::{DeadLetterTo, DeliveryLimit, Overflow, QueueSettings, Sorting};
pub use record::{Expiry, Record, Snapshot};

use crate::store::{LogPlace, Place, Store, Table};
use contents::Contents;
use discard::Leaving;
use dispatch::Dispatch;
use model::{Index, Machine, Outcome, Ranges, Seq, Timestamp};

/// The outcome of the classic queue.
pub type FifoOutcome<E> = Outcome<Record, Effect<E>>;

/// A classic queue.
pub struct Fifo<E: Ends> {
    settings: QueueSettings,
    store: Store,
    contents: Contents,
    dispatch: Dispatch<E>,
    leaving: Leaving,
    losses: Losses,
    /// When the queue ends if nobody uses it, in milliseconds since the Unix epoch; `u64::MAX` for never.
    unused_at_ms: u64,
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
            store: Store::default(),
            contents: Contents::default(),
            leaving: Leaving::default(),
            losses: Losses::default(),
            unused_at_ms: u64::MAX,
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
        self.follow();
        self.dispatch.cursor = 1;
        self.unsaid = !closed && self.contents.suspect_all(&self.store);
        self.dispatch.suspect_below = self.contents.settled_high();
        self.dispatch.ready = self.store.live();
        self.dispatch.ready_bytes = self.store.sums().bytes;
        self.recover_retries();
    }

    /// Ends replay for a queue that goes on applying what is decided elsewhere: from now on its store pages out, and frees what is
    /// gone.
    pub fn follow(&mut self) {
        self.store.replayed();
    }

    /// The record that brought messages `first..` was appended to the log, and stands there.
    #[inline]
    pub fn appended(&mut self, first: Seq, at: LogPlace) {
        self.store.appended(first, at, self.dispatch.demand());
    }

    /// Everything that the journal knows of, and where it lies.
    fn checkpoint(&self) -> (Snapshot, Table) {
        (self.contents.snapshot(&self.store), self.store.table())
    }

    /// Becomes what a checkpoint says.
    fn restore(&mut self, snapshot: Snapshot, table: &Table) {
        self.store.restore(table, &snapshot.live, snapshot.next.max(1));
        self.contents.restore(&self.store, snapshot);
    }

    /// The queue's numbers.
    pub fn status(&self) -> Status {
        let sums = self.store.sums();
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
            memory: self.store.memory() + self.leaving.refused_bytes,
            paged: sums.paged,
            next_seq: self.store.next(),
            oldest_ms: self.oldest_ms(),
            active: self.dispatch.ring.active(),
        }
    }

    fn oldest_ms(&self) -> u64 {
        if self.dispatch.ready == 0 {
            return 0;
        }
        let first = self.first_ready();
        let memory = first.and_then(|(slot, _)| self.store.run(slot)?.memory.as_ref());
        memory.map_or(0, |memory| memory.block.received().0)
    }

    /// The slot and the number of the first ready message, of a queue that has some.
    fn first_ready(&self) -> Option<(usize, Seq)> {
        let (from, last) = self
            .dispatch
            .returned
            .first()
            .unwrap_or((self.dispatch.cursor, Seq::MAX));
        let (slot, seq, _) = self.store.first_live(from, last)?;
        Some((slot, seq))
    }

    /// All places in the queue's segments that hold messages, each once. After replay, what lies elsewhere in them is garbage.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.store.places()
    }

    /// True if it holds nothing and expects nothing.
    fn is_idle(&self) -> bool {
        self.store.is_idle() && self.leaving.is_empty()
    }

    /// Records that journaled messages were settled.
    fn record_settled(&mut self, journaled: Ranges, outcome: &mut FifoOutcome<E>) {
        if !journaled.is_empty() {
            self.contents.note_settled(&journaled);
            outcome.records.push(Record::Settled { seqs: journaled });
        }
    }

    /// Records that all messages of an earlier life may have been delivered in it; otherwise the next start, after a clean stop,
    /// would not know. The record settles a number that no message has yet, so it changes nothing else.
    fn record_suspicion(&mut self, outcome: &mut FifoOutcome<E>) {
        if std::mem::take(&mut self.unsaid) {
            let seqs = Ranges::one(self.dispatch.suspect_below);
            outcome.records.push(Record::Settled { seqs });
        }
    }

    /// Records that journaled messages were dropped.
    fn record_dropped(&mut self, journaled: Ranges, reason: DropReason, outcome: &mut FifoOutcome<E>) {
        if !journaled.is_empty() {
            outcome.records.push(Record::Dropped {
                seqs: journaled,
                reason,
            });
        }
    }

    /// Passes the store's orders on to the host.
    #[inline]
    fn pass_on(&mut self, outcome: &mut FifoOutcome<E>) {
        if let Some(orders) = self.store.take_orders() {
            outcome
                .effects
                .extend(orders.effects.into_iter().map(Effect::Store));
            outcome
                .promises
                .extend(orders.promises.into_iter().map(Effect::Store));
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
            Request::Pause { consumer, reply } => {
                self.change(consumer, outcome, |it| it.paused = true);
                let paused = |reply| Effect::Reply(reply, Answer::Paused);
                outcome.effects.extend(reply.map(paused));
            }
            Request::Resume { consumer } => self.change(consumer, outcome, |it| it.paused = false),
            Request::Purge { reply } => self.purge(reply, outcome),
            Request::Retire {
                if_unused,
                if_empty,
                reply,
            } => self.retire(if_unused, if_empty, reply, outcome),
            Request::Configure { settings } => self.configure(*settings, now, outcome),
            Request::Use { reply } => {
                self.used(now);
                let stands = Answer::Stands {
                    ready: self.dispatch.ready + self.dispatch.elsewhere,
                    consumers: self.dispatch.ring.len() as u64,
                };
                let answered = reply.map(|reply| Effect::Reply(reply, stands));
                outcome.effects.extend(answered);
            }
            Request::Tick => {}
            Request::DeadLettered {
                ticket,
                unread,
                failed,
            } => self.dead_lettered(ticket, &unread, &failed, now, outcome),
            Request::GiveUp { seqs } => self.give_up(&seqs, outcome),
            Request::Store(request) => self.handle_store(request, now, outcome),
        }
        self.pass_on(outcome);
    }

    fn apply(&mut self, _: Index, record: Record, outcome: &mut FifoOutcome<E>) {
        let (store, contents) = (&mut self.store, &mut self.contents);
        let mut journaled = Ranges::new();
        match record {
            Record::Enqueued {
                first,
                block,
                from,
                expiries,
                keyed,
            } => {
                if store.enqueue(first, block.clone(), from, true) {
                    if keyed {
                        self.note_keys(&block, from, first);
                    }
                    self.contents.expire_at(&self.store, &expiries);
                }
            }
            Record::Settled { seqs } => {
                for (first, last) in seqs.spans() {
                    contents.remove(store, first, last, &mut journaled);
                }
                contents.note_settled(&seqs);
            }
            Record::Dropped { seqs, .. } => {
                for (first, last) in seqs.spans() {
                    contents.remove(store, first, last, &mut journaled);
                }
            }
            Record::Returned { seqs } => {
                for (first, last) in seqs.spans() {
                    contents.mark_returned(store, first, last, &mut journaled);
                    contents.retries.remove(first, last);
                }
            }
            Record::Retried { until } => {
                for expiry in &until {
                    let (first, last) = (expiry.first, expiry.last);
                    contents.mark_returned(store, first, last, &mut journaled);
                }
                contents.retry_at(store, &until);
            }
        }
        self.pass_on(outcome);
    }
}
