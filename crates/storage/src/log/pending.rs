//! What has been appended and is not yet written; and the meeting point of appenders, readers and the writer.

use super::carry::{self, CARRIED};
use super::format::{
    BLOCK_HEADER, MAX_RECORD, RECORD_HEADER, begin_block, begin_record, end_record, journal_of,
    unsealed_payload,
};
use super::groups::GroupIndex;
use super::mark::{MARKS, Mark};
use super::stretch::{Written, take_entries};
use super::{JournalId, Kind, Position};
use crate::error::StorageError;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A block is closed for appends above this size, so that one write stays short.
pub(crate) const BLOCK_TARGET: usize = 1 << 20;
/// Above this much the writer is woken even if nobody waits for a sync.
pub(crate) const WRITE_SOON: usize = 1 << 20;
/// Empty buffers kept for reuse.
const SPARE_BUFFERS: usize = 8;

/// What the writer is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// Working: it looks for more by itself.
    No,
    /// Waiting until the lazy sync is due: only somebody who waits or much data is worth waking it.
    UntilDeadline,
    /// Nothing to do at all: anything wakes it.
    Sound,
}

/// Everything behind the log's mutex.
pub(crate) struct Pending {
    /// Closed blocks, oldest first.
    pub full: VecDeque<Vec<u8>>,
    /// The block that appends go to. Empty, or begins with room for its header.
    pub block: Vec<u8>,
    /// Position of the block's first byte.
    pub base: u64,
    /// Bytes in `full` and `block`.
    pub bytes: usize,
    /// Somebody waits to be told of the next sync.
    pub awaited: bool,
    /// Everything before is in the files.
    pub written: u64,
    /// Everything before is synced.
    pub durable: u64,
    /// Somebody waits until everything before is synced.
    pub sync_to: u64,
    /// Whoever needs the oldest file is to be asked for it, as if nobody had been.
    pub wants_space: bool,
    /// How many threads wait for `progress`: telling nobody would be a system call all the same.
    pub onlookers: usize,
    pub sleep: Sleep,
    pub closing: bool,
    /// It will be soon: a next file that cannot be made is not waited for.
    pub closing_soon: bool,
    /// Why nothing is written any more: a failure, or the log was closed.
    pub stopped: Option<StorageError>,
    /// Something was appended that must not be written.
    pub refused: Option<StorageError>,
    /// Where the entries of groups are that were appended until now.
    pub groups: GroupIndex,
    spare: Vec<Vec<u8>>,
}

/// Shared by all users of a log and its writer.
pub(crate) struct Shared {
    pending: Mutex<Pending>,
    /// Readers and `sync` wait here for `written`, `durable` or `failed` to change.
    progress: Condvar,
    pub pending_bytes: AtomicUsize,
    /// [`Pending::written`], for readers who need not take the lock.
    pub written: AtomicU64,
    pub size: AtomicU64,
    /// Syncs of the log's data so far.
    pub syncs: AtomicU64,
    pub failed: AtomicBool,
    /// Since when the writer has been at what it took last, in nanoseconds of the world's time; 0 if it is at nothing.
    pub busy_since: AtomicU64,
}

impl Shared {
    pub(crate) fn new(base: u64, groups: GroupIndex) -> Self {
        let pending = Pending {
            full: VecDeque::new(),
            block: Vec::new(),
            base,
            bytes: 0,
            awaited: false,
            written: base,
            durable: base,
            sync_to: 0,
            wants_space: false,
            onlookers: 0,
            sleep: Sleep::No,
            closing: false,
            closing_soon: false,
            stopped: None,
            refused: None,
            groups,
            spare: Vec::new(),
        };
        Self {
            pending: Mutex::new(pending),
            progress: Condvar::new(),
            pending_bytes: AtomicUsize::new(0),
            written: AtomicU64::new(base),
            size: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            busy_since: AtomicU64::new(0),
        }
    }

    /// The state. A panic of somebody's encoder leaves it sound, so poison is ignored.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the writer has got on.
    pub(crate) fn wait_for_progress<'a>(
        &self,
        mut pending: MutexGuard<'a, Pending>,
    ) -> MutexGuard<'a, Pending> {
        pending.onlookers += 1;
        let mut pending = self
            .progress
            .wait(pending)
            .unwrap_or_else(PoisonError::into_inner);
        pending.onlookers -= 1;
        pending
    }

    /// Tells those who wait for it that the writer got on, and lets go of the state.
    pub(crate) fn show_progress(&self, pending: MutexGuard<'_, Pending>) {
        let watched = pending.onlookers > 0;
        drop(pending);
        if watched {
            self.progress.notify_all();
        }
    }

    /// Publishes how much is pending, for those who ask without the lock.
    pub(crate) fn publish(&self, pending: &Pending) {
        self.pending_bytes.store(pending.bytes, Ordering::Relaxed);
    }
}

impl Pending {
    /// Position of the next byte.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.block.len() as u64
    }

    /// Closes a block that has grown large. Called between appends only: an append stays in one block.
    pub(crate) fn make_room(&mut self) {
        if self.block.len() >= BLOCK_TARGET {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        let next = self.spare.pop().unwrap_or_default();
        let closed = std::mem::replace(&mut self.block, next);
        self.base += closed.len() as u64;
        self.full.push_back(closed);
    }

    /// Appends one record to the open block. If `encode` panics, the record was never there.
    pub(crate) fn record(&mut self, journal: JournalId, encode: impl FnOnce(&mut Vec<u8>)) -> Position {
        let before = self.block.len();
        if before == 0 {
            begin_block(&mut self.block);
        }
        let at = begin_record(&mut self.block, journal);
        let mut writing = Writing {
            block: &mut self.block,
            keep: before,
        };
        encode(writing.block);
        writing.keep = usize::MAX;
        drop(writing);
        match self.block.len().checked_sub(at + RECORD_HEADER) {
            Some(length) if length <= MAX_RECORD => end_record(&mut self.block, at),
            Some(length) => {
                self.refused = Some(StorageError::TooLarge {
                    bytes: length as u64,
                    limit: MAX_RECORD as u64,
                });
            }
            // What others appended is lost; nothing of this block may be taken for the truth.
            None => {
                self.refused = Some(StorageError::Misuse {
                    what: "a record's encoder removed what others had appended",
                });
                self.block.resize(at + RECORD_HEADER, 0);
            }
        }
        self.bytes += self.block.len() - before;
        let position = Position(self.base + at as u64);
        if journal.kind >= Kind::GROUP && self.stopped.is_none() {
            let payload = self.block.get(at + RECORD_HEADER..).unwrap_or_default();
            self.groups.note(journal, position, payload);
        }
        position
    }

    /// Says that `journal` needs nothing before `before`.
    pub(crate) fn release(&mut self, journal: JournalId, before: Position) {
        if journal.kind >= Kind::GROUP {
            self.groups.forget(journal, before, Position(self.end()));
        }
        self.record(MARKS, |out| Mark { journal, before }.encode(out));
    }

    /// Writes a group's entries again, so that nothing is needed of what stands before.
    pub(crate) fn carry(&mut self, group: u64, entries: &[Vec<u8>]) {
        let at = self.record(CARRIED, |out| carry::encode(group, entries, out));
        self.groups.carried(group, at, entries.iter().map(Vec::as_slice));
        self.release(JournalId::new(Kind::GROUP, group), at);
    }

    /// Hands all blocks to the writer.
    pub(crate) fn take(&mut self, blocks: &mut VecDeque<Vec<u8>>) {
        if !self.block.is_empty() {
            self.close_block();
        }
        std::mem::swap(&mut self.full, blocks);
    }

    /// Keeps an emptied buffer for reuse.
    pub(crate) fn give_back(&mut self, mut block: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS && block.capacity() <= 4 * BLOCK_TARGET {
            block.clear();
            self.spare.push(block);
        }
    }

    /// Whether the writer must be woken for what was just appended. True only once per sleep: the next appender need not
    /// do it again.
    pub(crate) fn must_wake(&mut self) -> bool {
        let must = match self.sleep {
            Sleep::No => false,
            Sleep::Sound => self.bytes > 0 || self.urgent(),
            Sleep::UntilDeadline => self.urgent() || self.bytes >= WRITE_SOON,
        };
        if must {
            self.sleep = Sleep::No;
        }
        must
    }

    /// Somebody waits for a sync.
    pub(crate) fn urgent(&self) -> bool {
        self.awaited || self.sync_to > self.durable || self.closing || self.wants_space
    }

    /// The record at `at`, if it still waits to be written.
    pub(crate) fn find(&self, at: Position) -> Option<&[u8]> {
        let mut end = self.end();
        for block in std::iter::once(&self.block).chain(self.full.iter().rev()) {
            let base = end - block.len() as u64;
            if at.0 >= base && at.0 < end {
                let offset = (at.0 - base) as usize;
                return if offset >= BLOCK_HEADER {
                    unsealed_payload(block, offset)
                } else {
                    None
                };
            }
            end = base;
        }
        None
    }

    /// Position of the first byte that still waits to be taken by the writer.
    pub(crate) fn begin(&self) -> u64 {
        self.base - self.full.iter().map(|block| block.len() as u64).sum::<u64>()
    }

    /// The entries of a group that still wait to be taken by the writer and begin between these positions. No record begins at
    /// `from`, or one of them does.
    pub(crate) fn entries_between(&self, group: JournalId, from: u64, until: u64) -> Written {
        let mut written = Written::new();
        let mut base = self.begin();
        for block in self.full.iter().chain(std::iter::once(&self.block)) {
            let mut at = (from.saturating_sub(base) as usize).max(BLOCK_HEADER);
            while base + (at as u64) < until
                && let Some(header) = block.get(at..at + RECORD_HEADER)
                && let Some(payload) = unsealed_payload(block, at)
            {
                take_entries(journal_of(header), payload, group, &mut written);
                at += RECORD_HEADER + payload.len();
            }
            base += block.len() as u64;
        }
        written
    }

    /// The log has stopped: what was and is appended will never be written. Positions go on rising.
    pub(crate) fn discard(&mut self) {
        self.base = self.end();
        self.full.clear();
        self.block.clear();
        self.bytes = 0;
        self.awaited = false;
    }
}

/// Takes a half-written record back if its encoder panics.
struct Writing<'a> {
    block: &'a mut Vec<u8>,
    keep: usize,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.block.truncate(self.keep);
    }
}

/// An append under construction, inside [`Log::append`](super::Log::append). Its records stay together and in order.
pub struct Batch<'a> {
    pub(crate) pending: &'a mut Pending,
}

impl Batch<'_> {
    /// Appends one record, which `encode` writes straight into the log's buffer. `encode` must only append, and should
    /// be quick: everybody who appends waits for it. A record above 1 GiB fails the log.
    pub fn record(&mut self, journal: JournalId, encode: impl FnOnce(&mut Vec<u8>)) -> Position {
        debug_assert!(journal.kind != MARKS.kind, "the log's own kind");
        self.pending.record(journal, encode)
    }

    /// Somebody waits until everything appended so far, in this batch and before, is synced:
    /// [`Callbacks::durable`](super::Callbacks::durable) is called then, with at least the position that this returns. Nothing is
    /// told if the log has stopped.
    pub fn await_sync(&mut self) -> Position {
        self.pending.awaited = true;
        self.end()
    }

    /// Nothing becomes durable any more: the log has failed, or is closed.
    pub fn is_stopped(&self) -> bool {
        self.pending.stopped.is_some()
    }

    /// Like [`Log::release`](super::Log::release), as part of this batch.
    pub fn release(&mut self, journal: JournalId, before: Position) {
        self.pending.release(journal, before);
    }

    /// A group's entries below this index are needed no more: they are in a checkpoint. Like [`release`](Self::release)
    /// otherwise.
    pub fn release_group(&mut self, group: u64, below: u64) {
        let end = self.end();
        let before = self.pending.groups.release(group, below, end);
        self.release(JournalId::new(Kind::GROUP, group), before);
    }

    /// A group has no member here any more: neither its entries, nor its promises, nor its contents are needed. What its tail has
    /// is not concerned, see [`Log::forget_group`](super::Log::forget_group).
    pub fn forget_group(&mut self, group: u64) {
        for kind in [Kind::GROUP, Kind::HARD_STATE, Kind::MEMBER] {
            self.forget(JournalId::new(kind, group));
        }
    }

    /// Like [`Log::forget`](super::Log::forget), as part of this batch.
    pub fn forget(&mut self, journal: JournalId) {
        self.release(journal, Position(u64::MAX));
    }

    /// A position behind everything appended so far and before everything appended later.
    pub fn end(&self) -> Position {
        Position(self.pending.end())
    }
}
