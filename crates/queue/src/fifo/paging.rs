//! Keeping bodies within the queue's budget of memory.
//!
//! What was delivered and waits for its acknowledgement goes first, then what was published last: the head of the queue
//! stays, because it is wanted next. Two marks that only move forward see to it that every run is looked at once, so that
//! a deep queue costs its publishers nothing.

use super::checkpoint::Checkpoint;
use super::contents::{Contents, Home, Run};
use super::{Bytes, Effect, Ends, Fifo, FifoOutcome, Part, Piece, Record, Source, Stored};
use model::{Index, Seq};
use smallvec::smallvec;
use std::collections::{BTreeMap, VecDeque};

/// Memory for bodies of one queue unless the host says otherwise, in bytes.
const BUDGET: usize = 16 * 1024 * 1024;
/// A stored piece is not made larger than this by putting runs together, in bytes.
const PIECE_BYTES: u64 = 1024 * 1024;
/// Transient messages are stored once so many bytes of them have come together, or an eighth of the budget.
const STORE_BYTES: u64 = 256 * 1024;

/// A journaled run is small below so many bytes: what is remembered of it is not worth it.
const SMALL_RUN: u64 = 4096;

/// What is on its way between memory and disk.
#[derive(Debug)]
pub(crate) struct Paging {
    /// Bodies may take so many bytes of memory.
    pub(super) budget: usize,
    /// Delivered runs that end at or before this message were looked at.
    pub(super) shed: Seq,
    /// Ready runs that begin before this message were looked at, or belong to the head that stays.
    paged_to: Seq,
    /// Ready runs that begin before this message are in memory or asked for.
    pub(super) ahead: Seq,
    /// The weight of those between the cursor and `ahead`, in bytes.
    pub(super) ahead_bytes: u64,
    /// Loads under way by the message that the host was told.
    pub(super) loads: BTreeMap<Seq, Ticket>,
    /// Their weight, in bytes.
    pub(super) loading_bytes: u64,
    /// Stores under way, in order.
    pub(super) stores: VecDeque<Batch>,
    /// Transient runs on their way out, not enough for a `Store` yet.
    pending: Pieces,
    /// Small journaled runs on their way out, not enough for a `Store` yet.
    scattered: Pieces,
    /// Something transient could not be stored; it is tried again once a store succeeds.
    retry: bool,
    /// The checkpoint under way.
    pub(super) checkpoint: Option<Checkpoint>,
}

/// A load under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub source: Source,
    pub base: Seq,
    pub weight: u64,
}

/// A store under way.
#[derive(Debug)]
pub(crate) struct Batch {
    /// First message and number of messages of each piece.
    pub pieces: Vec<(Seq, u32)>,
    pub purpose: Purpose,
    pub durable: bool,
}

/// Why something is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To win memory.
    Paging,
    /// To let the journal forget.
    Checkpoint,
    /// To empty a segment.
    Compaction,
}

impl Default for Paging {
    fn default() -> Self {
        Self {
            budget: BUDGET,
            shed: 0,
            paged_to: 0,
            ahead: 0,
            ahead_bytes: 0,
            loads: BTreeMap::new(),
            loading_bytes: 0,
            stores: VecDeque::new(),
            pending: Pieces::default(),
            scattered: Pieces::default(),
            retry: false,
            checkpoint: None,
        }
    }
}

impl Paging {
    /// A replayed record brought `memory` bytes: keep them only as far as the head of the queue goes.
    pub(crate) fn replayed(&mut self, contents: &mut Contents, memory: usize) {
        if contents.memory() > (self.budget / 2).max(memory) {
            let last = contents.find(contents.next() - 1);
            contents.unload(last);
        }
    }

    /// Replay is over; `next` is the number of the next message.
    pub(crate) fn recovered(&mut self, next: Seq) {
        self.paged_to = next;
    }

    /// True if nothing is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.loads.is_empty()
            && self.stores.is_empty()
            && self.pending.is_empty()
            && self.checkpoint.is_none()
    }

    /// Nothing is expected any more.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            budget: self.budget,
            ..Self::default()
        };
    }
}

impl<E: Ends> Fifo<E> {
    pub(super) fn shrink(&mut self, memory: usize, outcome: &mut FifoOutcome<E>) {
        self.paging.budget = memory;
        self.paging.shed = 0;
        self.paging.paged_to = 0;
        self.paging.ahead = 0;
        self.paging.ahead_bytes = 0;
        self.relieve(outcome);
    }

    /// Pages out if bodies take more memory than they may.
    pub(super) fn relieve(&mut self, outcome: &mut FifoOutcome<E>) {
        if self.contents.memory() <= self.paging.budget {
            return;
        }
        self.shed_delivered(outcome);
        if self.contents.memory() <= self.paging.budget {
            return;
        }
        let cursor = self.dispatch.cursor;
        let from = if self.paging.paged_to > cursor {
            self.paging.paged_to
        } else {
            self.head_end()
        };
        let mut slot = self.contents.find(from);
        while self.contents.run(slot).is_some() {
            self.page_out(slot, outcome);
            slot += 1;
        }
        self.paging.paged_to = self.contents.next();
    }

    fn shed_delivered(&mut self, outcome: &mut FifoOutcome<E>) {
        let mut slot = self.contents.find(self.paging.shed);
        while self.contents.memory() > self.paging.budget
            && let Some(run) = self.contents.run(slot)
            && run.end <= self.dispatch.cursor
        {
            let (first, end) = (run.first, run.end);
            self.paging.shed = end;
            // What came back will be delivered next.
            if self.dispatch.returned.overlap(first, end - 1).is_none() {
                self.page_out(slot, outcome);
            }
            slot += 1;
        }
    }

    /// Where the head of the queue ends that stays in memory: half of the budget from the cursor on.
    fn head_end(&self) -> Seq {
        let mut slot = self.contents.find(self.dispatch.cursor);
        let mut bytes = 0;
        while let Some(run) = self.contents.run(slot) {
            bytes += run.memory_bytes();
            if bytes > self.paging.budget / 2 {
                // The run that the cursor stands in is not paged out: it may be the only one, and huge.
                return if run.first > self.dispatch.cursor {
                    run.first
                } else {
                    run.end
                };
            }
            slot += 1;
        }
        self.contents.next()
    }

    fn page_out(&mut self, slot: usize, outcome: &mut FifoOutcome<E>) {
        let Some(run) = self.contents.run(slot) else {
            return;
        };
        if run.memory.is_none() || run.storing || run.live == 0 {
            return;
        }
        if run.home != Home::None && !self.is_scattered(run) {
            self.contents.unload(slot);
            return;
        }
        if run.home != Home::None {
            self.paging.scattered.add(run, run.first, run.end);
            self.contents.set_storing(slot, true);
            if self.paging.scattered.bytes >= PIECE_BYTES.min(self.paging.budget as u64 / 8) {
                let pieces = self.paging.scattered.take();
                self.store(pieces, Purpose::Paging, true, outcome);
            }
            return;
        }
        self.paging.pending.add(run, run.first, run.end);
        self.contents.set_storing(slot, true);
        if self.paging.pending.bytes >= STORE_BYTES.min(self.paging.budget as u64 / 8) {
            let pieces = self.paging.pending.take();
            self.store(pieces, Purpose::Paging, false, outcome);
        }
    }

    /// True for one of very many small publishes. It could be read again from the journal, but each of them takes more than
    /// a hundred bytes of memory to know where. So they are put together in segments, which the next checkpoint would
    /// do anyway; a queue that is not that deep writes nothing twice.
    fn is_scattered(&self, run: &Run) -> bool {
        let many = (self.paging.budget / 1024).max(8);
        run.weight < SMALL_RUN && journal_index(run).is_some() && self.contents.run_count() > many
    }

    /// Takes back what waits for more of its kind before it is stored: a checkpoint sees to it.
    pub(super) fn gather(&mut self) {
        for piece in self.paging.scattered.take() {
            self.not_stored(piece.first, piece.count);
        }
    }

    pub(super) fn store(
        &mut self,
        pieces: Vec<Piece>,
        purpose: Purpose,
        durable: bool,
        outcome: &mut FifoOutcome<E>,
    ) {
        let named = pieces.iter().map(|piece| (piece.first, piece.count)).collect();
        self.paging.stores.push_back(Batch {
            pieces: named,
            purpose,
            durable,
        });
        outcome.effects.push(Effect::Store { pieces, durable });
    }

    pub(super) fn stored(&mut self, pieces: &[Stored], outcome: &mut FifoOutcome<E>) {
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
            let keep = batch.purpose != Purpose::Paging && self.contents.memory() <= self.paging.budget;
            if !self.contents.relocate(*piece, keep) {
                self.contents.free(piece.place);
            } else if batch.durable {
                moved.push(*piece);
            }
        }
        if !moved.is_empty() {
            self.record(Record::Moved { pieces: moved }, outcome);
        }
        match batch.purpose {
            Purpose::Checkpoint => self.go_on_with_checkpoint(complete, outcome),
            Purpose::Paging => self.try_again(complete),
            Purpose::Compaction => {}
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
        let mut slot = self.contents.find(first);
        while self.contents.run(slot).is_some_and(|run| run.first <= last) {
            self.contents.set_storing(slot, false);
            slot += 1;
        }
        self.contents.first_live(first, last).is_some()
    }
}

/// Collects runs into pieces to be stored.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pieces: Vec<Piece>,
    /// What they weigh in all, in bytes.
    pub(crate) bytes: u64,
    /// What the last one weighs.
    last_bytes: u64,
    last_kind: Option<(bool, Option<bool>)>,
}

impl Pieces {
    /// Adds messages `first..end` of a run. They join the last piece if they follow it without a gap, are of the same
    /// kind, and do not make it too large.
    pub(crate) fn add(&mut self, run: &Run, first: Seq, end: Seq) {
        let count = (end - first) as u32;
        let (bytes, base) = match (&run.memory, run.home.source()) {
            (Some(memory), _) => (Bytes::Memory(memory.block.clone()), memory.base),
            (None, Some((source, base))) => (Bytes::Source(source), base),
            (None, None) => return,
        };
        let part = Part {
            bytes,
            from: (first - base) as u32,
            count,
        };
        let weight = run.weight * u64::from(count) / run.length().max(1) as u64;
        let kind = (
            run.journaled,
            run.memory.as_ref().map(|memory| memory.block.persistent()),
        );
        self.bytes += weight;
        // What is journaled is persistent; of what is not, a piece must not mix both kinds.
        let alike =
            self.last_kind == Some(kind) || (run.journaled && self.last_kind.is_some_and(|last| last.0));
        if let Some(last) = self.pieces.last_mut()
            && last.first + u64::from(last.count) == first
            && self.last_bytes + weight <= PIECE_BYTES
            && alike
            && (run.journaled || kind.1.is_some())
        {
            last.count += count;
            last.parts.push(part);
            self.last_bytes += weight;
            return;
        }
        self.pieces.push(Piece {
            first,
            count,
            parts: smallvec![part],
        });
        self.last_bytes = weight;
        self.last_kind = Some(kind);
    }

    /// The pieces so far.
    pub(crate) fn take(&mut self) -> Vec<Piece> {
        std::mem::take(self).pieces
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// The record number that a journal home has, if it is one.
pub(super) fn journal_index(run: &Run) -> Option<Index> {
    match run.home {
        Home::Journal { index, .. } => Some(index),
        _ => None,
    }
}
