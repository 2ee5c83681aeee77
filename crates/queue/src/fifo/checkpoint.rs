//! Letting go of old records and of half-empty segments by moving what is left of them.

use super::contents::{Home, Run};
use super::paging::{Pieces, Purpose, journal_index};
use super::{Effect, Ends, Fifo, FifoOutcome, Record};
use model::{Index, Seq};

/// How much is given to the host at once, in bytes.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;
/// So many messages in a row that are gone are left out of what is moved; fewer are moved with it, because every piece
/// costs an entry.
const GAP: u64 = 16;

/// A checkpoint under way: first everything that lies in old records is moved, then a snapshot is written.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// Records below are to be forgotten.
    before: Index,
    /// Messages below were seen to.
    next: Seq,
}

impl<E: Ends> Fifo<E> {
    pub(super) fn checkpoint(&mut self, before: Index, outcome: &mut FifoOutcome<E>) {
        if !self.settings.durable {
            return;
        }
        if let Some(checkpoint) = &mut self.paging.checkpoint {
            // Journal homes ascend with the messages, so the one under way has not come to the additional ones yet.
            checkpoint.before = checkpoint.before.max(before);
            return;
        }
        self.gather();
        self.paging.checkpoint = Some(Checkpoint { before, next: 0 });
        self.go_on_with_checkpoint(true, outcome);
    }

    /// Moves the next batch; writes the snapshot if nothing is left to be moved. Gives up if something could not be
    /// stored: the host will ask again.
    pub(super) fn go_on_with_checkpoint(&mut self, complete: bool, outcome: &mut FifoOutcome<E>) {
        let Some(Checkpoint { before, next }) = self.paging.checkpoint.take().filter(|_| complete) else {
            return;
        };
        let mut pieces = Pieces::default();
        let mut slot = self.contents.find(next);
        let mut reached = next;
        while pieces.bytes < BATCH_BYTES
            && let Some(run) = self.contents.run(slot)
        {
            let index = journal_index(run).filter(|_| run.live > 0);
            if index.is_some_and(|index| index >= before) {
                break;
            }
            reached = run.end;
            if index.is_some() && !run.storing {
                add_live(&mut pieces, run);
                self.contents.set_storing(slot, true);
            }
            slot += 1;
        }
        if pieces.is_empty() {
            self.write_snapshot(outcome);
        } else {
            self.paging.checkpoint = Some(Checkpoint {
                before,
                next: reached,
            });
            self.store(pieces.take(), Purpose::Checkpoint, true, outcome);
        }
    }

    fn write_snapshot(&mut self, outcome: &mut FifoOutcome<E>) {
        let snapshot = self.contents.snapshot(self.next_index);
        let before = snapshot.since;
        self.record(Record::Snapshot(snapshot), outcome);
        outcome.promises.push(Effect::Forget { before });
    }

    /// Moves what is alive in a segment to another. The old places are released with the record of the move.
    pub(super) fn compact(&mut self, segment: u32, outcome: &mut FifoOutcome<E>) {
        for journaled in [true, false] {
            let mut pieces = Pieces::default();
            let mut slot = 0;
            while let Some(run) = self.contents.run(slot) {
                let there = matches!(run.home, Home::Segment { place, .. } if place.segment == segment);
                if there && run.live > 0 && run.journaled == journaled && !run.storing {
                    add_live(&mut pieces, run);
                    self.contents.set_storing(slot, true);
                }
                if pieces.bytes >= BATCH_BYTES {
                    self.store(pieces.take(), Purpose::Compaction, journaled, outcome);
                }
                slot += 1;
            }
            if !pieces.is_empty() {
                self.store(pieces.take(), Purpose::Compaction, journaled, outcome);
            }
        }
    }
}

/// Adds the live messages of a run, without long gaps.
fn add_live(pieces: &mut Pieces, run: &Run) {
    let Some((mut first, mut last)) = run.live_span(0, Seq::MAX) else {
        return;
    };
    while let Some((from, to)) = run.live_span(last + 1, Seq::MAX) {
        if from - last > GAP {
            pieces.add(run, first, last + 1);
            first = from;
        }
        last = to;
    }
    pieces.add(run, first, last + 1);
}
