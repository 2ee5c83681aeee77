//! A lane: messages in the order in which they came, and what became of each. A plain queue has one, a queue that sorts
//! its messages several. A lane knows nothing of consumers, of limits, or of other lanes: what is decided for the queue
//! as a whole is decided above.

use super::contents::Contents;
use super::discard::Leaving;
use super::dispatch::Dispatch;
use super::{DropReason, Effect, Ends, FifoOutcome, Loss, Losses, QueueSettings, Record, Snapshot, Status};
use crate::store::{Store, Table};
use model::{Mutant, Ranges, Seq};
use std::sync::Arc;

/// Messages in their order.
pub(super) struct Lane {
    /// The queue's.
    pub settings: Arc<QueueSettings>,
    pub store: Store,
    pub contents: Contents,
    pub dispatch: Dispatch,
    pub leaving: Leaving,
    /// Once it has lost something.
    losses: Option<Box<Losses>>,
    /// Messages below may have been handed out, in a queue that has that on record; 0 in others.
    pub handed_below: Seq,
    /// And below this number whoever decides next knows. `Seq::MAX` where nothing of that is on record.
    pub reserved_below: Seq,
    /// Messages are suspected since a crash, which the journal doesn't know yet.
    unsaid: bool,
}

impl Lane {
    /// An empty lane. To bring one back, `apply` its records and then call [`Lane::recovered`].
    pub(super) fn new(settings: Arc<QueueSettings>) -> Self {
        Self {
            handed_below: 0,
            reserved_below: if settings.replicated { 0 } else { Seq::MAX },
            settings,
            store: Store::default(),
            contents: Contents::default(),
            dispatch: Dispatch::default(),
            leaving: Leaving::default(),
            losses: None,
            unsaid: false,
        }
    }

    /// Ends replay: see [`super::Classic::recovered`].
    pub(super) fn recovered(&mut self, closed: bool) {
        if self.settings.replicated {
            self.reserved_below = self.handed_below;
            if !closed {
                return self.take_over();
            }
        } else {
            // Another journal may have handed that over; a queue of this node goes on without it.
            self.handed_below = 0;
        }
        self.store.replayed();
        self.dispatch.cursor = 1;
        self.unsaid = !closed && self.contents.suspect_all(&self.store);
        self.dispatch.suspect_below = self.contents.settled_high();
        self.dispatch.ready = self.store.live();
        self.dispatch.ready_bytes = self.store.sums().bytes;
        self.recover_retries();
    }

    /// Everything that the journal knows of, and where it lies.
    pub(super) fn checkpoint(&self) -> (Snapshot, Table) {
        let snapshot = Snapshot {
            handed_below: match Mutant::ChecksNoHandedOut.is_on() {
                true => 0,
                false => self.handed_below,
            },
            ..self.contents.snapshot(&self.store)
        };
        (snapshot, self.store.table())
    }

    /// Becomes what a checkpoint says.
    pub(super) fn restore(&mut self, snapshot: Snapshot, table: &Table) {
        self.store.restore(table, &snapshot.live, snapshot.next.max(1));
        self.handed_below = snapshot.handed_below;
        self.contents.restore(&self.store, snapshot);
    }

    /// The lane's numbers; of consumers it knows nothing.
    pub(super) fn status(&self) -> Status {
        let sums = self.store.sums();
        let unacked =
            sums.live - self.dispatch.ready - self.dispatch.leaving.count() + self.dispatch.taken.count();
        Status {
            keeps: false,
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
            consumers: 0,
            ready_bytes: self.dispatch.ready_bytes,
            handed: self.dispatch.handed,
            memory: self.store.memory() + self.leaving.refused_bytes,
            paged: sums.paged,
            next_seq: self.store.next(),
            oldest_ms: self.oldest_ms(),
            active: None,
        }
    }

    pub(super) fn oldest_ms(&self) -> u64 {
        if self.dispatch.ready == 0 {
            return 0;
        }
        let first = self.first_ready();
        let memory = first.and_then(|(slot, _)| self.store.run(slot)?.memory.as_ref());
        memory.map_or(0, |memory| memory.block.received().0)
    }

    /// The slot and the number of the first ready message, of a queue that has some.
    pub(super) fn first_ready(&self) -> Option<(usize, Seq)> {
        let (from, last) = self
            .dispatch
            .returned
            .first()
            .unwrap_or((self.dispatch.cursor, Seq::MAX));
        let (slot, seq, _) = self.store.first_live(from, last)?;
        Some((slot, seq))
    }

    /// True if it holds nothing and expects nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.store.is_idle() && self.leaving.is_empty()
    }

    /// What it lost since the start.
    pub(super) fn losses(&self) -> Losses {
        self.losses.as_deref().copied().unwrap_or_default()
    }

    /// The sum of that.
    #[inline]
    pub(super) fn lost_sum(&self) -> u64 {
        self.losses.as_deref().map_or(0, Losses::sum)
    }

    /// So many messages left, or did not come in.
    pub(super) fn lost(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            self.losses.get_or_insert_default().add(loss, count);
        }
    }

    /// Records that journaled messages were settled.
    pub(super) fn record_settled<E: Ends>(&mut self, journaled: Ranges, outcome: &mut FifoOutcome<E>) {
        if !journaled.is_empty() {
            self.contents.note_settled(&journaled);
            if !Mutant::ForgetsSettled.is_on() {
                outcome.records.push(Record::Settled { seqs: journaled });
            }
        }
    }

    /// Records that all messages of an earlier life may have been delivered in it; otherwise the next start, after a clean stop,
    /// would not know. The record settles a number that no message has yet, so it changes nothing else.
    pub(super) fn record_suspicion<E: Ends>(&mut self, outcome: &mut FifoOutcome<E>) {
        if std::mem::take(&mut self.unsaid) {
            let seqs = Ranges::one(self.dispatch.suspect_below);
            outcome.records.push(Record::Settled { seqs });
        }
    }

    /// Records that journaled messages were dropped.
    pub(super) fn record_dropped<E: Ends>(
        &mut self,
        journaled: Ranges,
        reason: DropReason,
        outcome: &mut FifoOutcome<E>,
    ) {
        if !journaled.is_empty() && !Mutant::ForgetsDropped.is_on() {
            outcome.records.push(Record::Dropped {
                seqs: journaled,
                reason,
            });
        }
    }

    /// Passes the store's orders on to the host.
    #[inline]
    pub(super) fn pass_on<E: Ends>(&mut self, outcome: &mut FifoOutcome<E>) {
        if let Some(orders) = self.store.take_orders() {
            outcome
                .effects
                .extend(orders.effects.into_iter().map(Effect::Store));
            outcome
                .promises
                .extend(orders.promises.into_iter().map(Effect::Store));
        }
    }

    /// Makes a record's change.
    pub(super) fn apply<E: Ends>(&mut self, record: Record, outcome: &mut FifoOutcome<E>) {
        let (store, contents) = (&mut self.store, &mut self.contents);
        let mut journaled = Ranges::new();
        match record {
            Record::Enqueued {
                first,
                block,
                from,
                expiries,
                keyed,
                sent: _,
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
            Record::Returned { seqs, given_back } => {
                for (first, last) in seqs.spans() {
                    contents.mark_returned(store, first, last, &mut journaled);
                    contents.retries.remove(first, last);
                    if given_back {
                        contents.give_back(store, first, last);
                    }
                }
            }
            Record::Retried { until, given_back } => {
                for expiry in &until {
                    let (first, last) = (expiry.first, expiry.last);
                    contents.mark_returned(store, first, last, &mut journaled);
                    if given_back {
                        contents.give_back(store, first, last);
                    }
                }
                contents.retry_at(store, &until);
            }
            Record::GivenBack { seqs } => {
                for (first, last) in seqs.spans() {
                    contents.give_back(store, first, last);
                }
            }
            Record::HandedOut { below } => self.handed_below = self.handed_below.max(below),
            // They are about the queue as a whole.
            Record::Declined { .. }
            | Record::Barred { .. }
            | Record::MayHold { .. }
            | Record::Activated { .. }
            | Record::IncarnationEnded { .. } => {}
        }
        self.pass_on(outcome);
    }
    /// Nothing is here any more, and nobody is told.
    pub(super) fn clear(&mut self) {
        self.contents.clear();
        self.store.clear();
        self.dispatch.clear();
        self.leaving = Leaving::default();
    }
}
