//! Moving messages to segments: runs become pieces.

use super::{Contents, Home, Memory, Run, Sizes};
use crate::fifo::Stored;
use model::{BlockBuilder, Seq};
use std::sync::Arc;

impl Contents {
    /// The piece's messages now lie where it says. Runs that lie in it become one; a run that reaches beyond it is cut.
    /// `keep` says whether bytes that are in memory shall stay there.
    ///
    /// False, and nothing happened, if none of the piece's messages is alive: its place is not needed.
    pub(crate) fn relocate(&mut self, piece: Stored, keep: bool) -> bool {
        let lo = piece.first;
        let Some(hi) = lo.checked_add(u64::from(piece.count)).filter(|hi| *hi > lo) else {
            return false;
        };
        let from = self.find(lo);
        let mut to = from;
        while self.runs.get(to).is_some_and(|run| run.first < hi) {
            to += 1;
        }
        let mut merged = Run::new(lo, hi - lo, false);
        let mut outside = (None, None);
        let mut parts = Vec::with_capacity(to - from);
        for run in self.runs.range(from..to).filter(|run| run.live > 0) {
            let (start, end) = (run.first.max(lo), run.end.min(hi));
            parts.push(run.cut(start, end));
            if run.first < lo {
                outside.0 = Some(run.cut(run.first, lo)).filter(|left| left.live > 0);
            }
            if run.end > hi {
                outside.1 = Some(run.cut(hi, run.end)).filter(|right| right.live > 0);
            }
        }
        if parts.iter().all(|part| part.live == 0) {
            return false;
        }
        merge(&mut merged, &parts, piece, keep);
        self.replace(from, to, merged, outside);
        true
    }

    /// Puts `merged` and what is left of the runs beside it in place of slots `from..to`.
    fn replace(&mut self, from: usize, to: usize, merged: Run, outside: (Option<Run>, Option<Run>)) {
        for at in from..to {
            let run = &self.runs[at];
            if run.live == 0 {
                self.dead -= 1;
                continue;
            }
            self.live -= u64::from(run.live);
            self.memory -= run.memory_bytes();
            if run.memory.is_none() {
                self.paged -= u64::from(run.live);
            }
            let Home::Segment { place, .. } = run.home else {
                continue;
            };
            let journaled = run.journaled;
            let left = outside.0.as_ref().is_some_and(|left| left.first == run.first);
            let right = outside.1.as_ref().is_some_and(|right| right.end == run.end);
            match (left, right) {
                (true, true) => *self.shared.entry((place.segment, place.offset)).or_insert(1) += 1,
                (false, false) => self.release(place, journaled),
                _ => {}
            }
        }
        let mut slot = from;
        let (left, right) = outside;
        for run in [left, Some(merged), right].into_iter().flatten() {
            self.live += u64::from(run.live);
            self.memory += run.memory_bytes();
            if run.memory.is_none() {
                self.paged += u64::from(run.live);
            }
            match slot < to {
                true => self.runs[slot] = run,
                false => self.runs.insert(slot, run),
            }
            slot += 1;
        }
        // Slots left over become tombstones that keep the order of numbers: taking them out would shift a long queue
        // once for every piece.
        let Some(end) = slot
            .checked_sub(1)
            .and_then(|last| self.runs.get(last))
            .map(|run| run.end)
        else {
            return;
        };
        for run in self.runs.range_mut(slot.min(to)..to) {
            *run = Run::new(end, 0, false);
            self.dead += 1;
        }
        self.tidy();
    }
}

fn merge(merged: &mut Run, parts: &[Run], piece: Stored, keep: bool) {
    let (lo, hi) = (merged.first, merged.end);
    merged.home = Home::Segment {
        place: piece.place,
        base: lo,
    };
    merged.weight = u64::from(piece.place.length);
    merged.journaled = parts.iter().any(|part| part.journaled);
    let mut at = lo;
    for part in parts {
        if part.first > at {
            merged.remove(at, part.first - 1, |_, _| {});
        }
        merged.remove_like(part);
        at = part.end;
    }
    if at < hi {
        merged.remove(at, hi - 1, |_, _| {});
    }
    match parts {
        [only] if only.first == lo && only.end == hi => {
            merged.memory = only.memory.clone().filter(|_| keep);
            let mut only = only.clone();
            only.take_down_sizes();
            merged.sizes = only.sizes;
        }
        _ => {
            merged.memory = if keep { one_block(lo, hi, parts) } else { None };
            merged.sizes = listed(lo, hi, parts);
        }
    }
}

/// The bytes of parts without gaps between them as one block, if all are in memory.
fn one_block(lo: Seq, hi: Seq, parts: &[Run]) -> Option<Memory> {
    let contiguous = parts.windows(2).all(|pair| pair[0].end == pair[1].first);
    let whole =
        parts.first().is_some_and(|part| part.first == lo) && parts.last().is_some_and(|part| part.end == hi);
    let all = parts.iter().all(|part| part.memory.is_some());
    let first = parts
        .first()
        .and_then(|part| part.memory.as_ref())
        .filter(|_| contiguous && whole && all)?;
    let mut builder = BlockBuilder::new();
    for part in parts {
        let memory = part.memory.as_ref()?;
        for seq in part.first..part.end {
            builder.push_message(memory.block.message((seq - memory.base) as usize));
        }
    }
    // The time of receipt is the oldest one's: a piece has one, as a block has.
    let block = builder.finish(first.block.persistent(), first.block.received());
    Some(Memory {
        block: Arc::new(block),
        base: lo,
    })
}

fn listed(lo: Seq, hi: Seq, parts: &[Run]) -> Sizes {
    let mut list = Vec::with_capacity((hi - lo) as usize);
    let mut exact = true;
    for part in parts {
        let mut part = part.clone();
        part.take_down_sizes();
        exact &= part.sizes.are_exact();
        list.resize((part.first - lo) as usize, 0);
        part.sizes.list(part.length(), &mut list);
    }
    list.resize((hi - lo) as usize, 0);
    match exact {
        true => Sizes::from_list(list),
        false => Sizes::Spread(list.into_iter().map(u64::from).sum()),
    }
}
