//! Letting the journal forget: each lane writes a snapshot of its own, and what is older than all of them may go.

use super::{LaneId, Lanes};
use crate::fifo::{Effect, Ends, FifoOutcome};
use model::Index;
use std::collections::BTreeSet;

/// A checkpoint of all lanes under way.
#[derive(Debug)]
pub(super) struct Forgetting {
    /// Lanes whose snapshot is not written yet.
    waiting: BTreeSet<LaneId>,
    /// The lowest record that is still needed. Lanes that are made meanwhile have later ones only.
    before: Index,
}

impl<E: Ends> Lanes<E> {
    pub(super) fn begin_checkpoint(&mut self) {
        // A lane that is still busy with an earlier checkpoint answers for both.
        self.forgetting = Some(Forgetting {
            waiting: self.lanes.keys().copied().collect(),
            before: self.next_index,
        });
    }

    /// Takes what a lane wants to be forgotten out of the promises from number `from` on; once all have spoken, promises it.
    pub(super) fn collect_forgets(&mut self, id: LaneId, from: usize, outcome: &mut FifoOutcome<E>) {
        let mut at = from;
        while at < outcome.promises.len() {
            let Effect::Forget { before } = outcome.promises[at] else {
                at += 1;
                continue;
            };
            outcome.promises.remove(at);
            let Some(forgetting) = &mut self.forgetting else {
                continue;
            };
            forgetting.waiting.remove(&id);
            forgetting.before = forgetting.before.min(before);
            if forgetting.waiting.is_empty() {
                let before = forgetting.before;
                outcome.promises.push(Effect::Forget { before });
                self.forgetting = None;
                return;
            }
        }
    }
}
