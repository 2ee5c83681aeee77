//! What cannot be read on this node, now or later: the disk has damaged it, or it is not there.
//!
//! That is this disk's matter. The messages still exist, perhaps whole on another node; they stay where they stand,
//! apart from their neighbours that can be read, until somebody brings their bytes or their machine is told to give
//! them up.

use super::relocate::Cut;
use super::{Effect, Store};
use model::{Ranges, Seq};

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
