//! Duplicates in a queue with lanes: the message that is there may stand in another lane.

use super::Lanes;
use super::sorting::lanes_of;
use crate::fifo::once::{cut, key_of, stretch};
use crate::fifo::{Ends, FifoOutcome, Loss};
use model::{Block, DeduplicationKey, Timestamp};
use std::sync::Arc;

/// So many keys are kept before anybody looks for those that are of no use.
const FEW: usize = 64;

impl<E: Ends> Lanes<E> {
    /// Takes those of the block's messages that are not there yet, in order.
    #[cold]
    pub(super) fn enqueue_once(
        &mut self,
        now: Timestamp,
        block: &Arc<Block>,
        mut receipt: Option<E::Receipt>,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut at = 0;
        while at < block.len() {
            let stretch = stretch(block, at, |key| self.has(key));
            let (piece, part) = cut::<E>(block, stretch, &mut receipt);
            match piece {
                Some(piece) => {
                    self.note_keys(&piece);
                    self.enqueue_new(now, piece, part, outcome);
                    // What a consumer takes at once is not there any more when the next message comes.
                    self.serve(outcome);
                }
                None => self.in_lane(self.hand, outcome, |lane, outcome| {
                    lane.lost(Loss::Duplicate, stretch.count as u64);
                    lane.confirm_duplicates(block, part, outcome);
                }),
            }
            at += stretch.count;
        }
    }

    fn has(&self, key: DeduplicationKey) -> bool {
        let lane = self.keys.get(&key).and_then(|id| self.lanes.get(id));
        lane.is_some_and(|lane| lane.has(key))
    }

    fn note_keys(&mut self, block: &Block) {
        for (at, lane) in lanes_of(&self.settings.sorting, block).into_iter().enumerate() {
            if let Some(key) = key_of(block, at) {
                self.keys.insert(key, lane);
            }
        }
        let live: u64 = self.lanes.values().map(|lane| lane.store.live()).sum();
        if self.keys.len() as u64 > (FEW + 2 * block.len()) as u64 + 2 * live {
            self.collect_keys();
        }
    }

    /// Asks the lanes for the keys that they have.
    pub(super) fn collect_keys(&mut self) {
        let lanes = self.lanes.iter();
        let keys = lanes.flat_map(|(id, lane)| lane.contents.keys.list().map(|(_, key)| (key, *id)));
        let found: Vec<_> = keys.collect();
        self.keys.clear();
        for (key, id) in found {
            let there = self.lanes.get(&id).is_some_and(|lane| lane.has(key));
            if there {
                self.keys.insert(key, id);
            }
        }
    }
}
