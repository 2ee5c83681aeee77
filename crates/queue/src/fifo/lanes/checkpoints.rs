//! Checkpoints of all lanes: written once every lane has moved what it needed of old records.

use super::{Classic, LaneId, Lanes, lane_of};
use crate::fifo::{Checkpoint, Effect, Ends, FifoOutcome, LocalRecord, Snapshot};
use crate::store;
use model::Index;
use std::collections::BTreeSet;

impl<E: Ends> Classic<E> {
    /// Everything that the journal knows of, and where it lies, before the record `next`.
    pub fn checkpoint(&self, next: Index) -> Checkpoint {
        let lanes = match self {
            Self::Plain(fifo) => vec![fifo.checkpoint()],
            Self::Sorted(lanes) => lanes.lanes.values().map(|lane| lane.checkpoint()).collect(),
        };
        Checkpoint { next, lanes }
    }

    /// Takes over what this node remembered.
    pub fn apply_local(&mut self, record: LocalRecord) {
        match record {
            LocalRecord::Store(record) => {
                let store::Record::Moved { pieces } = &record;
                let lane = pieces.first().map_or(0, |piece| lane_of(piece.first));
                match self {
                    Self::Plain(fifo) if lane == 0 => fifo.store.apply(record),
                    Self::Plain(_) => {}
                    Self::Sorted(lanes) => {
                        if let Some(lane) = lanes.lanes.get_mut(&lane) {
                            lane.store.apply(record);
                        }
                    }
                }
            }
            LocalRecord::Checkpoint(checkpoint) => self.restore(checkpoint),
        }
    }

    fn restore(&mut self, checkpoint: Checkpoint) {
        if let Self::Sorted(lanes) = self {
            for lane in lanes.lanes.values_mut() {
                let empty = Snapshot {
                    next: lane.store.next(),
                    ..Snapshot::default()
                };
                lane.restore(empty, &store::Table::default());
            }
        }
        for (snapshot, table) in checkpoint.lanes {
            let lane = lane_of(snapshot.next);
            match self {
                Self::Plain(fifo) if lane == 0 => fifo.restore(snapshot, &table),
                _ => self.sort().restore(lane, snapshot, &table),
            }
        }
    }
}

impl<E: Ends> Lanes<E> {
    pub(super) fn begin_checkpoint(&mut self) {
        // A lane that is still busy with an earlier checkpoint answers for both.
        self.unwritten = self.lanes.keys().copied().collect();
    }

    /// Takes a lane's word that it is ready for a checkpoint out of the promises from number `from` on; once all have spoken, it
    /// is written.
    pub(super) fn collect_checkpoints(&mut self, id: LaneId, from: usize, outcome: &mut FifoOutcome<E>) {
        if outcome.promises.len() == from {
            return;
        }
        let is_checkpoint = |effect: &Effect<E>| matches!(effect, Effect::Store(store::Effect::Checkpoint));
        let Some(at) = outcome.promises[from..].iter().position(is_checkpoint) else {
            return;
        };
        let spoken = outcome.promises.remove(from + at);
        if self.unwritten.remove(&id) && self.unwritten.is_empty() {
            outcome.promises.push(spoken);
        }
    }
}

/// Lanes whose part of a checkpoint is not ready yet.
pub(super) type Unwritten = BTreeSet<LaneId>;
