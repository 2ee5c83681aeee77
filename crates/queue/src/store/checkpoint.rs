//! Letting go of old records and of half-empty segments by moving what is left of them.

use super::paging::Purpose;
use super::pieces::Pieces;
use super::{Effect, Home, LogPlace, Run, Store};
use model::Seq;

/// How much is given to the host at once, in bytes.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;

/// A checkpoint under way: first everything that lies in old records is moved, then everything is written down.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// What stands before this in the log is to be forgotten; `None` if nobody has asked for that.
    before: Option<LogPlace>,
    /// Whatever does not lie in segments, synced, is to be moved there.
    all: bool,
    /// Messages below were seen to.
    next: Seq,
}

impl Checkpoint {
    /// Whether the run is to be moved. `None` if neither it is nor any behind it.
    fn moves(&self, run: &Run) -> Option<bool> {
        if self.all {
            return Some(run.live > 0 && run.is_elsewhere());
        }
        match run.in_log().filter(|_| run.live > 0) {
            Some(at) if self.before.is_none_or(|before| at >= before) => None,
            at => Some(at.is_some()),
        }
    }
}

impl Store {
    /// What stands before `before` in the log shall not be needed any more.
    pub(crate) fn checkpoint(&mut self, before: LogPlace) {
        if let Some(checkpoint) = &mut self.paging.checkpoint {
            // Places in the log ascend with the messages, so the one under way has not come to the additional ones yet.
            checkpoint.before = checkpoint.before.max(Some(before));
            return;
        }
        self.begin_checkpoint(Some(before));
    }

    /// Everything shall lie in segments, synced.
    pub(crate) fn move_out(&mut self) {
        match &mut self.paging.checkpoint {
            // What it has passed by is moved when this is asked for again.
            Some(checkpoint) => checkpoint.all = true,
            None => self.begin_checkpoint(None),
        }
    }

    /// Without an end of the log that is to be forgotten, everything is moved.
    fn begin_checkpoint(&mut self, before: Option<LogPlace>) {
        let (all, next) = (before.is_none(), 0);
        self.gather(all);
        self.paging.checkpoint = Some(Checkpoint { before, all, next });
        self.go_on_with_checkpoint(true);
    }

    /// Whether all messages lie in segments, synced, as far as their bytes are there at all.
    pub(crate) fn is_moved_out(&self) -> bool {
        !self.runs.iter().any(|run| run.live > 0 && run.is_elsewhere())
    }

    /// Moves the next batch; has everything written down if nothing is left to be moved. Gives up if something could not be
    /// stored: the host will ask again.
    pub(super) fn go_on_with_checkpoint(&mut self, complete: bool) {
        let Some(mut checkpoint) = self.paging.checkpoint.take().filter(|_| complete) else {
            return;
        };
        let mut pieces = Pieces::default();
        let mut slot = self.find(checkpoint.next);
        while pieces.bytes < BATCH_BYTES
            && let Some(run) = self.runs.get(slot)
            && let Some(moves) = checkpoint.moves(run)
        {
            checkpoint.next = run.end;
            if moves && !run.storing {
                pieces.add_live(run);
                self.set_storing(slot, true);
            }
            slot += 1;
        }
        if !pieces.is_empty() {
            let purpose = match checkpoint.all {
                true => Purpose::Handover,
                false => Purpose::Checkpoint,
            };
            self.paging.checkpoint = Some(checkpoint);
            self.store(pieces.take(), purpose, true);
        } else if checkpoint.before.is_some() {
            self.orders.promises.push(Effect::Checkpoint);
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
