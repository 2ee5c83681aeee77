//! What cannot be read on this node, now or later: the disk has damaged it, or it is not there.
//!
//! That is this disk's matter. The messages still exist, perhaps whole on another node; they stay where they stand,
//! apart from their neighbours that can be read, until somebody brings their bytes or their machine is told to give
//! them up.

use super::relocate::Cut;
use super::{Effect, Pieces, Record, Store, Stored, Whereabouts};
use model::{Ranges, Seq};

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pieces: Pieces,
    gone: Ranges,
    lost: Ranges,
}

impl Search {
    /// These are not there. All of them were looked for.
    pub(crate) fn gone(&mut self, first: Seq, last: Seq) -> bool {
        self.gone.push_span(first, last);
        true
    }

    pub(crate) fn finish(mut self) -> Whereabouts {
        Whereabouts {
            bytes: self.pieces.bytes,
            pieces: self.pieces.take(),
            gone: self.gone,
            lost: self.lost,
        }
    }
}

impl Store {
    /// These cannot be read where they lie. Those `in_memory` are not lost for that, unless it is what was read that is damaged.
    pub(crate) fn lose(&mut self, unreadable: &Ranges, in_memory: bool) {
        let mut seqs = Ranges::new();
        for (first, last) in unreadable.spans() {
            let mut slot = self.find(first);
            while let Some(run) = self.runs.get(slot)
                && run.first <= last
            {
                let (from, to) = (first.max(run.first), last.min(run.end - 1));
                let next = run.end;
                let known = run.lost || (run.memory.is_some() && !in_memory);
                if run.live_span(from, to).is_some() && !known {
                    self.set_lost(slot, from, to);
                    self.live_spans(from, to, |_, from, to| seqs.push_span(from, to));
                }
                slot = self.find(next);
            }
        }
        self.report(seqs);
    }

    /// Says that these are lost: whoever wants them must know.
    pub(crate) fn report(&mut self, seqs: Ranges) {
        let known = |effect: &Effect| matches!(effect, Effect::FindElsewhere { seqs: told } if *told == seqs);
        if !seqs.is_empty() && !self.orders.effects.iter().any(known) {
            self.orders.effects.push(Effect::FindElsewhere { seqs });
        }
    }

    /// These were found elsewhere and lie in segments now. What is not looked for any more is given back.
    pub(crate) fn found(&mut self, pieces: Vec<Stored>) {
        let mut moved = Vec::new();
        for piece in pieces {
            let mut wanted = false;
            self.live_spans(piece.first, piece.last(), |run, _, _| wanted |= run.lost);
            let keep = self.memory() <= self.budget();
            match wanted && self.relocate(piece, keep, false) {
                true => moved.push(piece),
                false => self.free(piece.place),
            }
        }
        if !moved.is_empty() {
            let moved = Record::Moved { pieces: moved };
            self.orders.promises.push(Effect::Remember(moved));
        }
    }

    /// The messages that are there and cannot be read here.
    pub(crate) fn unreadable(&self, seqs: &mut Ranges) {
        for run in self.runs.iter().filter(|run| run.lost) {
            let mut at = run.low;
            while let Some((from, to)) = run.live_span(at, Seq::MAX) {
                seqs.push_span(from, to);
                at = to + 1;
            }
        }
    }

    /// Where messages `first..=last` are, as far as there are less than `most` bytes to be read, or only one message.
    /// Whether all of them were looked for.
    pub(crate) fn find_bytes(&self, (first, last): (Seq, Seq), most: u64, found: &mut Search) -> bool {
        let mut at = first;
        while at <= last {
            let Some((slot, from, to)) = self.first_live(at, last) else {
                found.gone.push_span(at, last);
                break;
            };
            if from > at {
                found.gone.push_span(at, from - 1);
            }
            let Some(run) = self.run(slot) else { break };
            if run.bytes().is_none() {
                found.lost.push_span(from, to);
                at = to + 1;
                continue;
            }
            let each = (run.weight / run.length().max(1) as u64).max(1);
            let fit = most.saturating_sub(found.pieces.bytes) / each;
            let count = match found.pieces.is_empty() {
                true => fit.max(1),
                false => fit,
            };
            let end = (to + 1).min(from.saturating_add(count));
            // For a part of what lies on the disk all of it would be read, and once more for the rest: it is left for then.
            let is_read_twice = end <= to && run.memory.is_none() && !found.pieces.is_empty();
            if count == 0 || is_read_twice {
                return false;
            }
            found.pieces.add(run, from, end);
            at = end;
        }
        true
    }

    /// Takes `first..=last` of the run in a slot apart from the rest of it.
    fn set_lost(&mut self, slot: usize, first: Seq, last: Seq) {
        let run = &self.runs[slot];
        let part = |from: Seq, end: Seq| {
            let part = (from < end).then(|| run.cut(from, end));
            part.filter(|part| part.live > 0)
        };
        let (left, right) = (part(run.first, first), part(last + 1, run.end));
        let mut lost = run.cut(first, last + 1);
        lost.take_down_sizes();
        lost.memory = None;
        lost.lost = true;
        lost.storing = false;
        self.divide(
            slot,
            Cut {
                left,
                moved: vec![lost],
                right,
            },
        );
    }
}
