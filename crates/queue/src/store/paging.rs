//! Keeping bodies within the queue's budget of memory.
//!
//! What was delivered and waits for its acknowledgement goes first, then what was published last: the head of the queue
//! stays, because it is wanted next. Two marks that only move forward see to it that every run is looked at once, so that
//! a deep queue costs its publishers nothing.

use super::checkpoint::Checkpoint;
use super::loading::Loads;
use super::pieces::{PIECE_BYTES, Pieces};
use super::{Effect, Home, Piece, Record, Run, Store, Stored};
use crate::seq_set::SeqSet;
use model::{Ranges, Seq};
use std::collections::VecDeque;

/// Memory for bodies of one queue unless the host says otherwise, in bytes.
const BUDGET: usize = 16 * 1024 * 1024;
/// Transient messages are stored once so many bytes of them have come together, or an eighth of the budget.
const STORE_BYTES: u64 = 256 * 1024;

/// A journaled run is small below so many bytes: what is remembered of it is not worth it.
const SMALL_RUN: u64 = 4096;

/// What the machine will want next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand<'a> {
    /// No message from here on was handed out.
    pub cursor: Seq,
    /// Messages before the cursor that came back: they are wanted first.
    pub returned: &'a SeqSet,
}

/// What is on its way between memory and disk.
#[derive(Debug)]
pub(super) struct Paging {
    /// Bodies may take so many bytes of memory.
    pub budget: usize,
    /// Delivered runs that end at or before this message were looked at.
    pub shed: Seq,
    /// Ready runs that begin before this message were looked at, or belong to the head that stays.
    paged_to: Seq,
    /// What is read.
    pub loads: Loads,
    /// Stores under way, in order.
    stores: VecDeque<Batch>,
    /// Transient runs on their way out, not enough for a `Store` yet.
    pending: Pieces,
    /// Small journaled runs on their way out, not enough for a `Store` yet.
    scattered: Pieces,
    /// Something transient could not be stored; it is tried again once a store succeeds.
    retry: bool,
    /// The checkpoint under way.
    pub checkpoint: Option<Checkpoint>,
}

/// A store under way.
#[derive(Debug)]
struct Batch {
    /// First message and number of messages of each piece.
    pieces: Vec<(Seq, u32)>,
    purpose: Purpose,
    durable: bool,
}

/// Why something is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To win memory.
    Paging,
    /// To let the log forget.
    Checkpoint,
    /// To let the queue have another journal.
    Handover,
    /// To empty a segment.
    Compaction,
}

impl Default for Paging {
    fn default() -> Self {
        Self::with_budget(BUDGET)
    }
}

impl Paging {
    /// Nothing is on its way.
    pub(super) fn with_budget(budget: usize) -> Self {
        Self {
            budget,
            shed: 0,
            paged_to: 0,
            loads: Loads::default(),
            stores: VecDeque::new(),
            pending: Pieces::default(),
            scattered: Pieces::default(),
            retry: false,
            checkpoint: None,
        }
    }

    /// Replay is over; `next` is the number of the next message.
    pub(super) fn replayed(&mut self, next: Seq) {
        self.paged_to = next;
    }

    /// True if nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.loads.is_empty()
            && self.stores.is_empty()
            && self.pending.is_empty()
            && self.checkpoint.is_none()
    }
}

impl Store {
    /// True if something is on its way between memory and disk that somebody waits for.
    pub(crate) fn is_moving(&self) -> bool {
        let paging = &self.paging;
        !(paging.stores.is_empty() && paging.loads.is_empty() && paging.checkpoint.is_none())
    }

    /// How many stores are under way.
    pub(crate) fn stores(&self) -> usize {
        self.paging.stores.len()
    }

    /// True if a checkpoint is.
    pub(crate) fn is_checkpointing(&self) -> bool {
        self.paging.checkpoint.is_some()
    }

    /// How much memory bodies may take, in bytes.
    pub(crate) fn budget(&self) -> usize {
        self.paging.budget
    }

    /// The same, for a store that holds nothing yet.
    pub(crate) fn set_budget(&mut self, memory: usize) {
        self.paging.budget = memory;
    }

    /// Bodies may take so much memory from now on.
    pub(crate) fn shrink(&mut self, memory: usize, demand: Demand<'_>) {
        self.paging.budget = memory;
        self.paging.shed = 0;
        self.paging.paged_to = 0;
        self.paging.loads.look_again();
        self.relieve(demand);
    }

    /// Pages out if bodies take more memory than they may.
    #[inline]
    pub(crate) fn relieve(&mut self, demand: Demand<'_>) {
        if self.memory > self.paging.budget {
            self.page_out_most(demand);
        }
    }

    fn page_out_most(&mut self, demand: Demand<'_>) {
        self.shed_delivered(demand);
        if self.memory <= self.paging.budget {
            return;
        }
        let from = if self.paging.paged_to > demand.cursor {
            self.paging.paged_to
        } else {
            self.head_end(demand.cursor)
        };
        let mut slot = self.find(from);
        while let Some(run) = self.runs.get(slot) {
            if run.is_unwritten() {
                // Of what came in this turn nobody knows yet where to read it again.
                self.paging.paged_to = run.first;
                return;
            }
            self.page_out(slot);
            slot += 1;
        }
        self.paging.paged_to = self.next;
    }

    /// While the log is replayed the bytes of messages are kept only as far as the head of the queue goes.
    pub(super) fn relieve_replaying(&mut self) {
        let last = self.runs.len().saturating_sub(1);
        let brought = self.runs.get(last).map_or(0, Run::memory_bytes);
        if self.memory > (self.paging.budget / 2).max(brought) {
            self.unload(last);
        }
    }

    fn shed_delivered(&mut self, demand: Demand<'_>) {
        let mut slot = self.find(self.paging.shed);
        while self.memory > self.paging.budget
            && let Some(run) = self.runs.get(slot)
            && run.end <= demand.cursor
            && !run.is_unwritten()
        {
            let (first, end) = (run.first, run.end);
            self.paging.shed = end;
            // What came back will be delivered next.
            if demand.returned.overlap(first, end - 1).is_none() {
                self.page_out(slot);
            }
            slot += 1;
        }
    }

    /// Where the head of the queue ends that stays in memory: half of the budget from the cursor on.
    fn head_end(&self, cursor: Seq) -> Seq {
        let mut slot = self.find(cursor);
        let mut bytes = 0;
        while let Some(run) = self.runs.get(slot) {
            bytes += run.memory_bytes();
            if bytes > self.paging.budget / 2 {
                // The run that the cursor stands in is not paged out: it may be the only one, and huge.
                return if run.first > cursor { run.first } else { run.end };
            }
            slot += 1;
        }
        self.next
    }

    fn page_out(&mut self, slot: usize) {
        let Some(run) = self.runs.get(slot) else {
            return;
        };
        if run.memory.is_none() || run.storing || run.live == 0 {
            return;
        }
        if run.home != Home::None && !self.is_scattered(run) {
            self.unload(slot);
            return;
        }
        let durable = run.home != Home::None;
        let (pieces, enough) = match durable {
            true => (&mut self.paging.scattered, PIECE_BYTES),
            false => (&mut self.paging.pending, STORE_BYTES),
        };
        pieces.add(run, run.first, run.end);
        let ready = pieces.bytes >= enough.min(self.paging.budget as u64 / 8);
        let pieces = if ready { pieces.take() } else { Vec::new() };
        self.set_storing(slot, true);
        if ready {
            self.store(pieces, Purpose::Paging, durable);
        }
    }

    /// True for one of very many small publishes. It could be read again from the log, but each of them takes more than
    /// a hundred bytes of memory to know where. So they are put together in segments, which the next checkpoint would
    /// do anyway; a queue that is not that deep writes nothing twice.
    fn is_scattered(&self, run: &Run) -> bool {
        let many = (self.paging.budget / 1024).max(8);
        run.weight < SMALL_RUN && run.in_log().is_some() && self.run_count() > many
    }

    /// Takes back what waits for more of its kind before it is stored, since a checkpoint sees to it: of what is journaled, or
    /// of `all`.
    pub(super) fn gather(&mut self, all: bool) {
        let mut waiting = self.paging.scattered.take();
        if all {
            waiting.extend(self.paging.pending.take());
        }
        for piece in waiting {
            self.not_stored(piece.first, piece.count);
        }
    }

    pub(super) fn store(&mut self, pieces: Vec<Piece>, purpose: Purpose, durable: bool) {
        let named = pieces.iter().map(|piece| (piece.first, piece.count)).collect();
        self.paging.stores.push_back(Batch {
            pieces: named,
            purpose,
            durable,
        });
        self.orders.effects.push(Effect::Store { pieces, durable });
    }

    /// The host has stored these pieces of what it was ordered to store.
    pub(crate) fn stored(&mut self, pieces: &[Stored], unreadable: &Ranges) {
        let Some(batch) = self.paging.stores.pop_front() else {
            return;
        };
        let mut moved = Vec::new();
        let mut written = pieces.iter().peekable();
        let mut complete = true;
        for (first, count) in &batch.pieces {
            let Some(piece) = written.next_if(|piece| piece.first == *first && piece.count == *count) else {
                complete &= !self.not_stored(*first, *count);
                continue;
            };
            let keep = batch.purpose != Purpose::Paging && self.memory <= self.paging.budget;
            let journaled = batch.purpose == Purpose::Handover;
            if !self.relocate(*piece, keep, journaled) {
                self.free(piece.place);
            } else if batch.durable {
                moved.push(*piece);
            }
        }
        if !moved.is_empty() {
            let moved = Record::Moved { pieces: moved };
            self.orders.promises.push(Effect::Remember(moved));
        }
        self.lose(unreadable, false);
        match batch.purpose {
            Purpose::Checkpoint | Purpose::Handover => self.go_on_with_checkpoint(complete),
            Purpose::Paging => self.try_again(complete),
            Purpose::Compaction => {}
        }
    }

    /// What the store had remembered: these pieces lie there.
    pub(crate) fn apply(&mut self, record: Record) {
        let Record::Moved { pieces } = record;
        for piece in pieces {
            self.relocate(piece, false, false);
        }
    }

    /// After a failure the marks have passed runs that are still in memory. Looking at them again waits for a store that
    /// succeeds: a broken disk is not asked over and over.
    fn try_again(&mut self, complete: bool) {
        if !complete {
            self.paging.retry = true;
        } else if std::mem::take(&mut self.paging.retry) {
            self.paging.shed = 0;
            self.paging.paged_to = 0;
        }
    }

    /// A piece could not be written. True if somebody still needs it.
    fn not_stored(&mut self, first: Seq, count: u32) -> bool {
        let last = first + u64::from(count) - 1;
        let mut slot = self.find(first);
        while self.runs.get(slot).is_some_and(|run| run.first <= last) {
            self.set_storing(slot, false);
            slot += 1;
        }
        self.first_live(first, last).is_some()
    }
}
