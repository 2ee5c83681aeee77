//! Letting go of old records and of half-empty segments by moving what is left of them.

use super::paging::Purpose;
use super::pieces::Pieces;
use super::{Effect, Home, LogPlace, Store};
use model::Seq;

/// How much is given to the host at once, in bytes.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;

/// A checkpoint under way: first everything that lies in old records is moved, then everything is written down.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// What stands before this in the log is to be forgotten.
    before: LogPlace,
    /// Messages below were seen to.
    next: Seq,
}

impl Store {
    /// What stands before `before` in the log shall not be needed any more.
    pub(crate) fn checkpoint(&mut self, before: LogPlace) {
        if let Some(checkpoint) = &mut self.paging.checkpoint {
            // Places in the log ascend with the messages, so the one under way has not come to the additional ones yet.
            checkpoint.before = checkpoint.before.max(before);
            return;
        }
        self.gather();
        self.paging.checkpoint = Some(Checkpoint { before, next: 0 });
        self.go_on_with_checkpoint(true);
    }

    /// Moves the next batch; has everything written down if nothing is left to be moved. Gives up if something could not be
    /// stored: the host will ask again.
    pub(super) fn go_on_with_checkpoint(&mut self, complete: bool) {
        let Some(Checkpoint { before, next }) = self.paging.checkpoint.take().filter(|_| complete) else {
            return;
        };
        let mut pieces = Pieces::default();
        let mut slot = self.find(next);
        let mut reached = next;
        while pieces.bytes < BATCH_BYTES
            && let Some(run) = self.runs.get(slot)
        {
            let at = run.in_log().filter(|_| run.live > 0);
            if at.is_some_and(|at| at >= before) {
                break;
            }
            reached = run.end;
            if at.is_some() && !run.storing {
                pieces.add_live(run);
                self.set_storing(slot, true);
            }
            slot += 1;
        }
        if pieces.is_empty() {
            self.orders.promises.push(Effect::Checkpoint);
        } else {
            self.paging.checkpoint = Some(Checkpoint {
                before,
                next: reached,
            });
            self.store(pieces.take(), Purpose::Checkpoint, true);
        }
    }

    /// Moves what is alive in a segment to another. The old places are released once it is remembered that it moved.
    pub(crate) fn compact(&mut self, segment: u32) {
        for journaled in [true, false] {
            let mut pieces = Pieces::default();
            for slot in 0..self.runs.len() {
                let run = &self.runs[slot];
                let there = matches!(run.home, Home::Segment { place, .. } if place.segment == segment);
                if there && run.live > 0 && run.journaled == journaled && !run.storing && !run.lost {
                    pieces.add_live(run);
                    self.set_storing(slot, true);
                }
                if pieces.bytes >= BATCH_BYTES {
                    self.store(pieces.take(), Purpose::Compaction, journaled);
                }
            }
            if !pieces.is_empty() {
                self.store(pieces.take(), Purpose::Compaction, journaled);
            }
        }
    }
}
