//! A queue's journal becomes another one: one that several nodes have, or that of this node again. Messages stay where they
//! lie. Consumers belong to the machine that handed them theirs; the next one is told what they hold, as after any
//! other change of who decides.

use super::{Checkpoint, Classic, Ends, Holders, Lane};
use crate::HandOver;
use model::{Index, Seq};

impl<E: Ends> Classic<E> {
    /// Everything that is there before the record `next`, if it is all in segments and nothing is on its way.
    pub(super) fn hand_over(&self, next: Index) -> HandOver<Checkpoint> {
        if self.lanes.iter().any(Lane::is_moving) {
            return HandOver::Waits;
        }
        if !self.lanes.iter().all(|lane| lane.store.is_moved_out()) {
            return HandOver::Elsewhere;
        }
        let mut checkpoint = self.checkpoint(next);
        for (lane, (snapshot, _)) in self.lanes.iter().zip(&mut checkpoint.lanes) {
            snapshot.handed_below = lane.handed_out();
        }
        if !self.settings.replicated {
            // Consumers of any node have what they were given, and nothing of that is on record.
            checkpoint.holders = Holders::of(None);
        }
        HandOver::Contents(checkpoint)
    }

    /// Everything is here that another journal has handed over.
    pub(super) fn taken_over(&mut self) {
        self.lanes.taken_over();
        self.begin_reattaching();
    }
}

impl Lane {
    /// Whether messages are on their way to or from the disk, to a dead-letter exchange or to an operator.
    fn is_moving(&self) -> bool {
        let (leaving, dispatch) = (&self.leaving, &self.dispatch);
        self.store.is_moving() || !leaving.is_empty() || dispatch.leaving.count() + dispatch.taken.count() > 0
    }

    /// Messages below may have been handed out: by this machine, or in an earlier life of the process.
    fn handed_out(&self) -> Seq {
        self.dispatch.cursor.max(self.dispatch.suspect_below)
    }

    /// Ends replay of what another journal has handed over: this one has no need to say what is handed out.
    pub(super) fn taken_over(&mut self) {
        self.take_over();
        if !self.settings.replicated {
            self.handed_below = 0;
        }
    }
}
