//! Journals remember. One interface; here *local*; for queues that are not durable there is *none*, and a *replicated*
//! one is in `groups`.

use crate::node::pager::segment_owner;
use crate::node::promise::{Promise, Promises};
use model::{Index, Journaled, Machine, QueueId};
use std::ops::Deref;
use std::sync::Arc;
use storage::{Batch, JournalId, Log, Position};

/// What a machine's host writes to.
pub trait Journal<M: Machine> {
    /// Appends `records` as one batch and empties it; tells the machine what it wants to know of where they stand. Takes out of
    /// `promises` those that must wait until the batch is durable; what is left is due at once.
    fn append(&mut self, machine: &mut M, records: &mut Vec<M::Record>, promises: &mut Vec<M::Effect>);

    /// The turn is over; `leaves` says whether anything of it is to leave. Returns what the journal has to have
    /// [reached](Self::reached) before it may: a number that does not fall from turn to turn. `None` if that is at
    /// once, since nobody else can decide otherwise.
    #[inline]
    fn end_turn(&mut self, _leaves: bool) -> Option<u64> {
        None
    }

    /// Whether an effect of a turn waits for what [`Self::end_turn`] has said. What concerns nobody beyond this node need not.
    #[inline]
    fn holds(&self, _effect: &M::Effect) -> bool {
        true
    }

    /// How far it has come: all that waits for a number up to this may leave.
    fn reached(&self) -> u64 {
        u64::MAX
    }
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

/// A machine's part of this node's log: durable once synced to disk. It numbers the machine's records; what this node alone
/// remembers beside them has no number.
pub struct LocalJournal {
    log: Arc<NodeLog>,
    id: JournalId,
    next: Index,
    /// What it says of itself before each checkpoint.
    note: Vec<u8>,
    /// Whose name the segments bear that bodies lie in.
    segments: JournalId,
}

impl LocalJournal {
    /// A journal whose next record gets number `next`.
    pub fn new(log: Arc<NodeLog>, id: JournalId, next: Index) -> Self {
        let (note, segments) = (Vec::new(), segment_owner(QueueId(id.number)));
        Self {
            log,
            id,
            next,
            note,
            segments,
        }
    }

    /// The same of one that has begun with what another journal had: the segments bear that one's name, and it says so
    /// before each checkpoint.
    pub fn continuing(self, segments: JournalId, note: Vec<u8>) -> Self {
        Self {
            segments,
            note,
            ..self
        }
    }

    /// Whose name the segments bear that bodies lie in.
    pub fn segments(&self) -> JournalId {
        self.segments
    }

    /// This journal's name in the log.
    pub fn id(&self) -> JournalId {
        self.id
    }

    /// The number of the next record.
    pub fn next_index(&self) -> Index {
        self.next
    }

    /// Appends what `write` puts into the batch, with the promises that wait for it.
    pub fn append(
        &mut self,
        promises: impl Iterator<Item = Promise>,
        write: impl FnOnce(&mut JournalBatch<'_, '_>),
    ) {
        let Self {
            log, id, next, note, ..
        } = self;
        let id = *id;
        log.append_with(promises, |batch| {
            write(&mut JournalBatch {
                batch,
                id,
                next,
                note,
            });
        });
    }
}

/// A batch of one journal under construction.
pub struct JournalBatch<'a, 'b> {
    batch: &'a mut Batch<'b>,
    id: JournalId,
    next: &'a mut Index,
    note: &'a [u8],
}

impl JournalBatch<'_, '_> {
    /// Appends a record of the machine. Returns where it stands.
    pub fn record(&mut self, record: &impl Journaled) -> Position {
        let index = *self.next;
        *self.next += 1;
        self.entry(index, record)
    }

    /// Appends what this node alone remembers. Returns where it stands.
    pub fn local(&mut self, record: &impl Journaled) -> Position {
        self.entry(LOCAL, record)
    }

    /// The same for a checkpoint, behind which nothing older is needed. Returns where that begins.
    pub fn checkpoint(&mut self, record: &impl Journaled) -> Position {
        let noted = match self.note {
            [] => None,
            note => Some(append_note(self.batch, self.id, note)),
        };
        let own = self.local(record);
        noted.unwrap_or(own)
    }

    fn entry(&mut self, index: Index, record: &impl Journaled) -> Position {
        self.batch.record(self.id, |out| {
            out.extend_from_slice(&index.to_le_bytes());
            record.encode(out);
        })
    }

    /// What stands before this position is needed no more, once everything appended so far is durable.
    pub fn release(&mut self, before: Position) {
        self.batch.release(self.id, before);
    }
}

/// Stands where a record's number would for what this node alone remembers; records are numbered from 1.
const LOCAL: Index = 0;

/// Stands there for what a journal says of itself.
const NOTE: Index = Index::MAX;

/// Appends what a journal says of itself. Returns where it stands.
pub fn append_note(batch: &mut Batch<'_>, journal: JournalId, note: &[u8]) -> Position {
    append_plain(batch, journal, NOTE, note)
}

/// Appends what this node alone remembers, in bytes.
pub fn append_local(batch: &mut Batch<'_>, journal: JournalId, record: &[u8]) -> Position {
    append_plain(batch, journal, LOCAL, record)
}

fn append_plain(batch: &mut Batch<'_>, journal: JournalId, index: Index, bytes: &[u8]) -> Position {
    batch.record(journal, |out| {
        out.extend_from_slice(&index.to_le_bytes());
        out.extend_from_slice(bytes);
    })
}

/// What a log entry holds.
pub enum Entry<'a> {
    /// A record of the machine with this number.
    Record(Index, &'a [u8]),
    /// What this node alone remembers.
    Local(&'a [u8]),
    /// What the journal says of itself.
    Note(&'a [u8]),
}

/// Takes a log entry apart; `None` if it is too short to be one.
pub fn entry(payload: &[u8]) -> Option<Entry<'_>> {
    let (index, record) = payload.split_first_chunk::<8>()?;
    Some(match Index::from_le_bytes(*index) {
        LOCAL => Entry::Local(record),
        NOTE => Entry::Note(record),
        index => Entry::Record(index, record),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_records_has_the_numbers_that_it_always_had() {
        let told = |head: [u8; 8]| {
            let bytes = [&head[..], b"x"].concat();
            match entry(&bytes) {
                Some(Entry::Record(index, b"x")) => index.to_string(),
                Some(Entry::Local(b"x")) => "local".to_owned(),
                Some(Entry::Note(b"x")) => "note".to_owned(),
                _ => "nothing".to_owned(),
            }
        };
        let heads = [[0; 8], [0xff; 8], [1, 1, 0, 0, 0, 0, 0, 0]];
        assert_eq!(heads.map(told), ["local", "note", "257"]);
        assert!(entry(&[0; 7]).is_none());
    }
}
