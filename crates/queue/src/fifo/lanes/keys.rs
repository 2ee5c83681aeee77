//! Deduplication keys in a queue with several lanes: the message that is there may stand in another lane.

use super::{LaneId, Sorted};
use crate::fifo::once::key_of;
use model::{Block, DeduplicationKey};

/// So many keys are kept before anybody looks for those that are of no use.
const FEW: usize = 64;

impl Sorted {
    /// True if a message with this key is there.
    pub(super) fn has(&self, key: DeduplicationKey) -> bool {
        let lane = self.keys.get(&key).and_then(|id| self.lanes.get(id));
        lane.is_some_and(|lane| lane.has(key))
    }

    /// The lane has taken the block.
    pub(super) fn note_keys(&mut self, id: LaneId, block: &Block) {
        for key in (0..block.len()).filter_map(|at| key_of(block, at)) {
            self.keys.insert(key, id);
        }
        let live: u64 = self.lanes.values().map(|lane| lane.store.live()).sum();
        if self.keys.len() as u64 > FEW as u64 + 2 * live {
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
