//! Messages that an operator takes out from wherever they stand: to move them elsewhere, or to have them gone.
//!
//! A taken message is in the operator's hands: nobody else gets it, and it counts as unacknowledged. It stays in the
//! contents until the operator says that it is to be removed, so a crash brings it back rather than losing it; put
//! back, it stands where it stood, and nothing tells that it was away.

use super::{Answer, Classic, DropReason, Effect, Ends, FifoOutcome, Lane, Loss};
use model::{Ranges, Seq};

impl<E: Ends> Classic<E> {
    /// Takes those of the messages that are ready.
    pub(super) fn take_away(&mut self, seqs: &Ranges, reply: E::Reply, outcome: &mut FifoOutcome<E>) {
        let mut taken = Ranges::new();
        self.lanes
            .each_part(seqs, outcome, |lane, seqs, _| lane.take_away(seqs, &mut taken));
        outcome.effects.push(Effect::Reply(reply, Answer::Taken(taken)));
        self.deliver(outcome);
    }

    /// Those of the messages that were taken stand again where they stood. What has expired meanwhile leaves.
    pub(super) fn put_back(&mut self, seqs: &Ranges, outcome: &mut FifoOutcome<E>) {
        let mut some = false;
        self.lanes.each_part(seqs, outcome, |lane, seqs, outcome| {
            some |= lane.put_back(seqs, outcome);
        });
        if some {
            self.deliver(outcome);
            self.overflow(outcome);
        }
    }

    /// Those of the messages that were taken are gone.
    pub(super) fn remove_taken(&mut self, seqs: &Ranges, outcome: &mut FifoOutcome<E>) {
        self.lanes.each_part(seqs, outcome, |lane, seqs, outcome| {
            lane.remove_taken(seqs, outcome)
        });
    }
}

impl Lane {
    /// Adds what it takes to `taken`.
    fn take_away(&mut self, seqs: &Ranges, taken: &mut Ranges) {
        let mut spans = Vec::new();
        for (first, last) in seqs.spans() {
            let dispatch = &self.dispatch;
            self.store.live_spans(first, last, |_, from, to| {
                dispatch.ready_within(from, to, |from, to| spans.push((from, to)));
            });
        }
        for (first, last) in spans {
            self.take_out(first, last);
            let bytes = self.store.bytes_of(first, last);
            self.dispatch.leave(first, last, bytes);
            self.dispatch.taken.insert(first, last);
            self.dispatch.taken_bytes += bytes;
            taken.push_span(first, last);
        }
    }

    /// True if there were some.
    fn put_back<E: Ends>(&mut self, seqs: &Ranges, outcome: &mut FifoOutcome<E>) -> bool {
        let back = self.untake(seqs);
        for (first, last) in &back {
            self.ready_again(*first, *last);
        }
        let overdue = self.overdue(&back);
        if !overdue.is_empty() {
            self.discard(&overdue, DropReason::Expired, outcome);
        }
        !back.is_empty()
    }

    fn remove_taken<E: Ends>(&mut self, seqs: &Ranges, outcome: &mut FifoOutcome<E>) {
        let mut journaled = Ranges::new();
        for (first, last) in self.untake(seqs) {
            self.left(first, last);
            let count = self.contents.remove(&mut self.store, first, last, &mut journaled);
            self.lost(Loss::Dropped(DropReason::Purged), count);
        }
        self.record_dropped(journaled, DropReason::Purged, outcome);
    }

    fn untake(&mut self, seqs: &Ranges) -> Vec<(Seq, Seq)> {
        let mut spans = Vec::new();
        for (first, last) in seqs.spans() {
            let mut at = first;
            while let Some((from, to)) = self.dispatch.taken.overlap(at, last) {
                spans.push((from, to));
                let bytes = self.store.bytes_of(from, to);
                self.dispatch.taken_bytes = self.dispatch.taken_bytes.saturating_sub(bytes);
                at = to + 1;
            }
            self.dispatch.taken.remove(first, last);
        }
        spans
    }
}
