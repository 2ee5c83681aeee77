//! The one generic host: it turns a machine on a journal.
//!
//! A host has no thread. Whoever brings it a request turns it; what others bring meanwhile waits in a mailbox and is
//! handled in the same or the next turn (see `queues::handle`).

use crate::journal::Journal;
use model::{Machine, Outcome, Timestamp};

/// A machine, its journal, and the outcome of the turn under way.
pub struct Host<M: Machine, J> {
    /// Decides.
    pub machine: M,
    /// Remembers.
    pub journal: J,
    outcome: Outcome<M::Record, M::Effect>,
}

impl<M: Machine, J: Journal<M>> Host<M, J> {
    /// A host for a machine that was made new or replayed from `journal`.
    pub fn new(machine: M, journal: J) -> Self {
        Self {
            machine,
            journal,
            outcome: Outcome::default(),
        }
    }

    /// Lets the machine decide one request. Nothing leaves before [`Host::commit`].
    pub fn handle(&mut self, now: Timestamp, request: M::Request) {
        self.machine.handle(now, request, &mut self.outcome);
    }

    /// Ends the turn: appends its records as one batch, then calls `act` for every effect that need not wait. Promises go
    /// with the batch and are carried out when it is durable; if the turn put nothing on record they are due at once.
    pub fn commit(&mut self, mut act: impl FnMut(M::Effect, &mut J)) {
        let Outcome {
            records,
            effects,
            promises,
        } = &mut self.outcome;
        if !records.is_empty() || !promises.is_empty() {
            self.journal.append(&mut self.machine, records, promises);
            records.clear();
        }
        for effect in effects.drain(..).chain(promises.drain(..)) {
            act(effect, &mut self.journal);
        }
    }
}
