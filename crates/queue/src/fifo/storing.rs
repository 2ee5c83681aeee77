//! What the message store is asked and answered, and what becomes of messages that nobody can read.

use super::lanes::{Lanes, lane_of};
use super::{Classic, DropReason, Ends, FifoOutcome, Lane, Loss};
use crate::store::{Read, Request, Stored};
use model::{Ranges, Seq, Timestamp};

impl<E: Ends> Classic<E> {
    /// Passes on what is asked of the store, which is each lane's own.
    pub(super) fn handle_store(&mut self, request: Request, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        match request {
            Request::Shrink { memory } => self.lanes.shrink(memory, outcome),
            Request::FinishLoad { first, read } => {
                let id = lane_of(first);
                self.lanes
                    .at(id, outcome, |lane, _| lane.loaded(first, read, now));
                self.deliver(outcome);
                self.lanes.at(id, outcome, |lane, _| lane.relieve());
            }
            Request::FinishStore { pieces, unreadable } => {
                self.lanes
                    .stored(outcome, |lane| lane.store.stored(&pieces, &unreadable));
            }
            Request::Checkpoint { before } if self.settings.durable => {
                if let Lanes::Sorted(lanes) = &mut self.lanes {
                    lanes.begin_checkpoint();
                }
                self.lanes.each(outcome, |lane, _| lane.store.checkpoint(before));
            }
            Request::Checkpoint { .. } => {}
            Request::Found { pieces } => {
                for pieces in pieces.chunk_by(|one, next| lane_of(one.first) == lane_of(next.first)) {
                    let id = pieces.first().map_or(0, |piece| lane_of(piece.first));
                    self.lanes
                        .at(id, outcome, |lane, outcome| lane.found(pieces, outcome));
                }
                self.deliver(outcome);
            }
            Request::MoveOut => self.lanes.each(outcome, |lane, _| lane.store.move_out()),
            Request::Compact { segment } => self.lanes.each(outcome, |lane, _| lane.store.compact(segment)),
        }
    }

    /// Drops those of the messages that are ready, wherever they stand, or on their way to a dead-letter exchange, or
    /// wait for their next try. What consumers or an operator hold stays until they are done with it.
    pub(super) fn give_up(&mut self, seqs: &Ranges, outcome: &mut FifoOutcome<E>) {
        self.lanes
            .each_part(seqs, outcome, |lane, seqs, outcome| lane.give_up(seqs, outcome));
        self.deliver(outcome);
    }
}

impl Lane {
    /// A block was read back, which says how large its messages are if that was only estimated.
    fn loaded(&mut self, first: Seq, read: Read, now: Timestamp) {
        let estimated = self.store.estimated(first);
        let before = estimated.map(|(from, last)| self.bytes_by_standing(from, last));
        self.store.loaded(first, read, now);
        if let (Some((from, last)), Some(before)) = (estimated, before) {
            let after = self.bytes_by_standing(from, last);
            let dispatch = &mut self.dispatch;
            let sums = [
                &mut dispatch.ready_bytes,
                &mut dispatch.leaving_bytes,
                &mut dispatch.taken_bytes,
            ];
            for (sum, (before, after)) in sums.into_iter().zip(before.into_iter().zip(after)) {
                *sum = (*sum + after).saturating_sub(before);
            }
        }
    }

    /// Bodies that could not be read here were brought.
    fn found<E: Ends>(&mut self, pieces: &[Stored], outcome: &mut FifoOutcome<E>) {
        self.store.found(pieces.to_vec());
        self.hand_over_found(&Stored::seqs(pieces), outcome);
    }

    /// The bytes of bodies in `first..=last`: of what is ready, of what leaves, and of what of that an operator has.
    fn bytes_by_standing(&self, first: Seq, last: Seq) -> [u64; 3] {
        let (mut ready, mut leaving, mut taken) = (0, 0, 0);
        let bytes = |from, to| self.store.bytes_of(from, to);
        self.dispatch
            .ready_within(first, last, |from, to| ready += bytes(from, to));
        self.dispatch
            .leaving_within(first, last, |from, to| leaving += bytes(from, to));
        let mut at = first;
        while let Some((from, to)) = self.dispatch.taken.overlap(at, last) {
            taken += bytes(from, to);
            at = to + 1;
        }
        [ready, leaving, taken]
    }

    fn give_up<E: Ends>(&mut self, seqs: &Ranges, outcome: &mut FifoOutcome<E>) {
        let (mut ready, mut leaving) = (Vec::new(), Vec::new());
        for (first, last) in seqs.spans() {
            let dispatch = &self.dispatch;
            self.store.live_spans(first, last, |_, from, to| {
                dispatch.ready_within(from, to, |from, to| ready.push((from, to)));
                dispatch.leaving_within(from, to, |from, to| {
                    dispatch
                        .taken
                        .others(from, to, |from, to| leaving.push((from, to)));
                });
            });
        }
        self.hand_over_no_more(seqs);
        leaving.iter().for_each(|(first, last)| self.left(*first, *last));
        ready
            .iter()
            .for_each(|(first, last)| self.take_out(*first, *last));
        let mut journaled = Ranges::new();
        for (first, last) in ready.into_iter().chain(leaving) {
            let count = self.contents.remove(&mut self.store, first, last, &mut journaled);
            self.lost(Loss::Dropped(DropReason::Unreadable), count);
        }
        self.record_dropped(journaled, DropReason::Unreadable, outcome);
    }
}
