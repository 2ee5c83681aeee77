//! One append: records, and whether somebody waits for them.

use super::mark::{MARKS, Mark};
use super::pending::Pending;
use super::{JournalId, Position};

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
        self.pending
            .record(MARKS, |out| Mark { journal, before }.encode(out));
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
