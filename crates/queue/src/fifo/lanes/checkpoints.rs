//! Checkpoints of all lanes: written once every lane has moved what it needed of old records.

use super::{LaneId, Lanes, Sorted, lane_of};
use crate::fifo::senders::Senders;
use crate::fifo::{Checkpoint, Classic, Effect, Ends, FifoOutcome, Holders, LocalRecord};
use crate::store;
use model::{Index, Mutant};
use std::collections::BTreeSet;

impl<E: Ends> Classic<E> {
    /// Everything that the journal knows of, and where it lies, before the record `next`.
    pub fn checkpoint(&self, next: Index) -> Checkpoint {
        let lanes = self.lanes.iter().map(|lane| lane.checkpoint()).collect();
        Checkpoint {
            next,
            floor: self.lanes.floor(),
            senders: match Mutant::ChecksNoSenders.is_on() {
                true => Vec::new(),
                false => self.senders.marks(),
            },
            holders: match self.settings.replicated {
                true => self.holders.clone(),
                false => Holders::default(),
            },
            lanes,
        }
    }

    /// Takes over what this node remembered.
    pub fn apply_local(&mut self, record: LocalRecord) {
        match record {
            LocalRecord::Store(record) => {
                let store::Record::Moved { pieces } = record;
                for pieces in pieces.chunk_by(|one, next| lane_of(one.first) == lane_of(next.first)) {
                    let id = pieces.first().map_or(0, |piece| lane_of(piece.first));
                    if let Some(lane) = self.lanes.get_mut(id) {
                        let pieces = pieces.to_vec();
                        lane.store.apply(store::Record::Moved { pieces });
                    }
                }
            }
            LocalRecord::Checkpoint(checkpoint) => self.restore(checkpoint),
        }
    }

    fn restore(&mut self, checkpoint: Checkpoint) {
        let there = checkpoint
            .lanes
            .iter()
            .map(|(lane, _)| lane_of(lane.next))
            .collect();
        for (snapshot, table) in checkpoint.lanes {
            self.lanes.restore(snapshot, &table);
        }
        self.lanes.raise_floor(checkpoint.floor);
        if let Lanes::Sorted(lanes) = &mut self.lanes {
            lanes.keep(&there);
        }
        self.senders = Senders::of(checkpoint.senders);
        self.holders = checkpoint.holders;
    }
}

impl Sorted {
    /// Only these lanes are there, of which at least one is; others were gone when the contents were written down. The one that
    /// every queue begins with is no exception: it would give out numbers again that were its own before.
    fn keep(&mut self, there: &BTreeSet<LaneId>) {
        if let Some(any) = there.first() {
            let gone = self.lanes.keys().filter(|id| !there.contains(id));
            let gone: Vec<LaneId> = gone.copied().collect();
            gone.into_iter().for_each(|id| self.forget(id));
            self.last = *any;
        }
    }

    /// From now on each lane is to say when it is ready.
    pub(in crate::fifo) fn begin_checkpoint(&mut self) {
        // A lane that is still busy with an earlier checkpoint answers for both.
        self.unwritten = self.lanes.keys().copied().collect();
    }

    /// Takes a lane's word that it is ready for a checkpoint out of the promises from number `from` on; once all have spoken, it
    /// is written.
    pub(super) fn collect_checkpoints<E: Ends>(
        &mut self,
        id: LaneId,
        from: usize,
        outcome: &mut FifoOutcome<E>,
    ) {
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
