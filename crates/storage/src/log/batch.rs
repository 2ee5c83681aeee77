//! One append: records and the promises that wait for them.

use super::mark::{MARKS, Mark};
use super::pending::Pending;
use super::{JournalId, Position};

/// An append under construction, inside [`Log::append`](super::Log::append). Its records stay together and in order.
pub struct Batch<'a, P> {
    pub(crate) pending: &'a mut Pending<P>,
}

impl<P> Batch<'_, P> {
    /// Appends one record, which `encode` writes straight into the log's buffer. `encode` must only append, and should
    /// be quick: everybody who appends waits for it. A record above 1 GiB fails the log.
    pub fn record(&mut self, journal: JournalId, encode: impl FnOnce(&mut Vec<u8>)) -> Position {
        debug_assert!(journal != MARKS, "the highest journal number is the log's own");
        self.pending.record(journal, encode)
    }

    /// `promise` is handed to [`Callbacks::durable`](super::Callbacks::durable) once everything appended so far, in this
    /// batch and before, is synced.
    pub fn promise(&mut self, promise: P) {
        self.pending.promises.push(promise);
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
