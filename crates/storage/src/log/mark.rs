//! The log's own records: a journal released its past, or is deleted.
//!
//! They travel in the log like any record, so they are durable exactly when what was appended before them is: a release
//! can never outrun the snapshot it relies on. Replay leaves out what they cover. They need no keeping: a mark lies behind
//! everything it covers, and files go oldest first.

use super::format::u64_at;
use super::{JournalId, Kind, Position};
use std::collections::HashMap;

/// The journal in which marks are stored; no caller's.
pub(crate) const MARKS: JournalId = JournalId::new(Kind::LOG, 0);

/// `journal` needs nothing before `before`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub journal: JournalId,
    pub before: Position,
}

impl Mark {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.journal.number.to_le_bytes());
        out.extend_from_slice(&self.before.0.to_le_bytes());
        out.push(self.journal.kind.0);
    }

    /// The mark stored at `position`. It never covers what lies behind it.
    pub(crate) fn decode(payload: &[u8], position: Position) -> Option<Self> {
        let journal = JournalId::new(Kind(*payload.get(16)?), u64_at(payload, 0)?);
        let before = Position(u64_at(payload, 8)?).min(position);
        Some(Self { journal, before })
    }
}

/// Up to where each journal has released its past; built while a log is replayed.
#[derive(Debug, Default)]
pub(crate) struct Released(HashMap<JournalId, Position>);

impl Released {
    pub(crate) fn add(&mut self, mark: Mark) {
        let before = self.0.entry(mark.journal).or_insert(mark.before);
        *before = mark.before.max(*before);
    }

    /// True if nobody needs the record of `journal` at `position`.
    pub(crate) fn covers(&self, journal: JournalId, position: Position) -> bool {
        self.0.get(&journal).is_some_and(|before| position < *before)
    }
}
