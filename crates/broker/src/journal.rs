//! Journals remember. One interface; here *local* (and, for queues that are not durable, *none*); later *replicated*
//! and *simulated*.

use crate::promise::{Promise, Promises};
use model::{Index, Machine};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use storage::{Batch, JournalId, Log, Position};

/// What a machine's host writes to.
pub trait Journal<M: Machine> {
    /// Appends `records` as one batch and empties it. Takes out of `promises` those that must wait until the batch is
    /// durable; what is left is due at once.
    fn append(&mut self, records: &mut Vec<M::Record>, promises: &mut Vec<M::Effect>);
}

/// A record as the local journal sees it.
pub trait Journaled {
    /// Appends the record's bytes.
    fn encode(&self, out: &mut Vec<u8>);
    /// True if it must be known where this record lies: it carries bodies that are read again, or the log is cut at it.
    fn place_is_kept(&self) -> bool;
}

/// The node's log, and what waits until it is durable.
pub struct NodeLog {
    log: Log,
    promises: Arc<Promises>,
}

impl NodeLog {
    /// `promises` are those that the log's callbacks keep.
    pub fn new(log: Log, promises: Arc<Promises>) -> Self {
        Self { log, promises }
    }

    /// Appends one batch, and `promises` that wait until it and everything before is durable.
    pub fn append_with(
        &self,
        mut promises: impl Iterator<Item = Promise>,
        write: impl FnOnce(&mut Batch<'_>),
    ) {
        self.log.append(|batch| {
            write(batch);
            if batch.is_stopped() {
                return;
            }
            if let Some(first) = promises.next() {
                let up_to = batch.await_sync();
                let all = std::iter::once(first).chain(&mut promises);
                self.promises.add(up_to.0, all);
            }
        });
        // A log that has stopped keeps none of them.
        promises.for_each(drop);
    }

    /// Has this wait until everything appended so far is durable.
    pub fn promise(&self, promise: Promise) {
        self.append_with(std::iter::once(promise), |_| {});
    }
}

impl Deref for NodeLog {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

/// A machine's part of this node's log: durable once synced to disk.
pub struct LocalJournal {
    log: Arc<NodeLog>,
    id: JournalId,
    next: Index,
    /// Where records lie that may be read again, and some others: ascending.
    positions: VecDeque<(Index, Position)>,
}

/// How often the position of a record is kept that nobody reads again: it bounds how precisely a checkpoint can tell the
/// log what it needs no longer.
const POSITION_EVERY: u64 = 64;

impl LocalJournal {
    /// A journal whose next record gets number `next`; `positions` are known from replay.
    pub fn new(
        log: Arc<NodeLog>,
        id: JournalId,
        next: Index,
        positions: VecDeque<(Index, Position)>,
    ) -> Self {
        Self {
            log,
            id,
            next,
            positions,
        }
    }

    /// This journal's name in the log.
    pub fn id(&self) -> JournalId {
        self.id
    }

    /// The number of the next record.
    pub fn next_index(&self) -> Index {
        self.next
    }

    /// Where a record lies that said it may be read again.
    pub fn position(&self, index: Index) -> Option<Position> {
        let at = self
            .positions
            .binary_search_by_key(&index, |entry| entry.0)
            .ok()?;
        Some(self.positions[at].1)
    }

    /// A position at or before that of record `index`, as near as is known.
    pub fn floor(&self, index: Index) -> Option<Position> {
        let after = self.positions.partition_point(|entry| entry.0 <= index);
        Some(self.positions[after.checked_sub(1)?].1)
    }

    /// The number of a record such that every record before `position` has a lower one, as near as is known.
    pub fn index_at(&self, position: Position) -> Index {
        let at = self.positions.partition_point(|entry| entry.1 < position);
        self.positions.get(at).map_or(self.next, |entry| entry.0)
    }

    /// Appends one batch with the promises that wait for it.
    pub fn append<R: Journaled>(
        &mut self,
        records: impl Iterator<Item = R>,
        promises: impl Iterator<Item = Promise>,
    ) {
        let log = self.log.clone();
        log.append_with(promises, |batch| {
            for record in records {
                let index = self.next;
                let position = batch.record(self.id, |out| {
                    out.extend_from_slice(&index.to_le_bytes());
                    record.encode(out);
                });
                if record.place_is_kept() || index.is_multiple_of(POSITION_EVERY) || self.positions.is_empty()
                {
                    self.positions.push_back((index, position));
                }
                self.next += 1;
            }
        });
    }

    /// Records before `index` are needed no more, once everything appended so far is durable.
    pub fn release(&mut self, index: Index) {
        if let Some(before) = self.floor(index) {
            self.log.release(self.id, before);
        }
        let keep = self
            .positions
            .partition_point(|entry| entry.0 <= index)
            .saturating_sub(1);
        self.positions.drain(..keep);
    }
}

/// Splits a log entry into its record's number and bytes; `None` if it is too short to be one.
pub fn entry(payload: &[u8]) -> Option<(Index, &[u8])> {
    let (index, record) = payload.split_first_chunk::<8>()?;
    Some((Index::from_le_bytes(*index), record))
}
