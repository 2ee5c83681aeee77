//! A machine under replay: what its journal has of it, and what is missing there.

use crate::node::journal::{LocalJournal, NodeLog};
use model::{Index, Journaled, Machine, Outcome};
use std::sync::Arc;
use storage::{JournalId, Position};

/// A machine under replay.
pub struct Replayed<M> {
    /// What has become of it so far.
    pub machine: M,
    next: Index,
    /// The number and the position of the first record.
    first: Option<(Index, Position)>,
    /// How many records are missing between those that were found.
    missing: u64,
}

impl<M: Machine> Replayed<M> {
    /// An empty machine, to which its journal comes now.
    pub fn new(machine: M) -> Self {
        Self {
            machine,
            next: 1,
            first: None,
            missing: 0,
        }
    }

    /// Applies a record of the journal; `None` if the bytes are none. Nothing is ordered before the replay is over.
    pub fn record(&mut self, index: Index, position: Position, bytes: &[u8]) -> Option<()> {
        self.apply(index, position, M::Record::decode(bytes)?);
        Some(())
    }

    /// The same for a record that was read already.
    pub fn apply(&mut self, index: Index, position: Position, record: M::Record) {
        self.missing += self.gap(index);
        self.machine.apply(index, record, &mut Outcome::default());
        self.next = index + 1;
        self.first.get_or_insert((index, position));
    }

    /// Everything before the record `next` stands at this position once more.
    pub fn restated(&mut self, next: Index, position: Position) {
        self.missing += self.gap(next);
        self.next = next;
        self.first.get_or_insert((next, position));
    }

    /// How many records are missing before this one. What lies before the first one was released, or the first one is
    /// the journal's very first.
    pub fn gap(&self, index: Index) -> u64 {
        match self.first {
            Some(_) => index.saturating_sub(self.next),
            None => 0,
        }
    }

    /// Where the first record lies, and its number; a checkpoint counts as the first that it does not contain.
    pub fn first(&self) -> Option<(Index, Position)> {
        self.first
    }

    /// How many records are missing between those that were found.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// The machine, and its journal in this node's log, which goes on behind what was found.
    pub fn into_parts(self, log: &Arc<NodeLog>, id: JournalId) -> (M, LocalJournal) {
        (self.machine, LocalJournal::new(log.clone(), id, self.next))
    }
}
