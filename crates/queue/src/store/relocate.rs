//! Moving messages to segments: runs become pieces.

use super::{Home, Memory, Run, Sizes, Store, Stored};
use model::BlockBuilder;
use std::sync::Arc;

/// What becomes of the runs that a piece touches: what of them lies in it, and what sticks out before and after it.
pub(super) struct Cut {
    pub left: Option<Run>,
    pub moved: Vec<Run>,
    pub right: Option<Run>,
}

impl Store {
    /// The piece's messages now lie where it says. Runs that lie in it and follow each other become one; a run that reaches
    /// beyond it is cut. `keep` says whether bytes that are in memory shall stay there, `journaled` that they count as journaled
    /// from now on.
    ///
    /// False, and nothing happened, if none of the piece's messages is alive: its place is not needed.
    pub(super) fn relocate(&mut self, piece: Stored, keep: bool, journaled: bool) -> bool {
        let lo = piece.first;
        let Some(hi) = lo.checked_add(u64::from(piece.count)).filter(|hi| *hi > lo) else {
            return false;
        };
        let from = self.find(lo);
        let mut to = from;
        while self.runs.get(to).is_some_and(|run| run.first < hi) {
            to += 1;
        }
        let mut parts = Vec::with_capacity(to - from);
        let (mut left, mut right) = (None, None);
        for run in self.runs.range(from..to).filter(|run| run.live > 0) {
            parts.push(run.cut(run.first.max(lo), run.end.min(hi)));
            if run.first < lo {
                left = Some(run.cut(run.first, lo)).filter(|left| left.live > 0);
            }
            if run.end > hi {
                right = Some(run.cut(hi, run.end)).filter(|right| right.live > 0);
            }
        }
        parts.retain(|part| part.live > 0);
        // Where whole runs in the middle are gone, what is left stays apart and shares the place.
        let groups = parts.chunk_by(|one, next| one.end == next.first);
        let mut moved: Vec<Run> = groups.map(|group| merged(group, piece, keep)).collect();
        moved.iter_mut().for_each(|run| run.journaled |= journaled);
        if moved.is_empty() {
            return false;
        }
        if moved.len() > 1 {
            self.shared
                .insert((piece.place.segment, piece.place.offset), moved.len() as u32);
        }
        self.replace(from, to, Cut { left, moved, right });
        true
    }

    /// The run in a slot becomes several, all in the place where it was.
    pub(super) fn divide(&mut self, at: usize, cut: Cut) {
        let runs: Vec<Run> = cut.left.into_iter().chain(cut.moved).chain(cut.right).collect();
        let run = &self.runs[at];
        self.sums.remove(run);
        self.memory -= run.memory_bytes();
        if let Home::Segment { place, .. } = run.home
            && runs.len() > 1
        {
            let others = runs.len() as u32 - 1;
            *self.shared.entry((place.segment, place.offset)).or_insert(1) += others;
        }
        for (slot, run) in (at..).zip(runs) {
            self.sums.add(&run);
            self.memory += run.memory_bytes();
            match slot == at {
                true => self.runs[slot] = run,
                false => self.runs.insert(slot, run),
            }
        }
    }

    /// Puts the cut runs in place of slots `from..to`.
    fn replace(&mut self, from: usize, to: usize, cut: Cut) {
        for at in from..to {
            let run = &self.runs[at];
            if run.live == 0 {
                self.dead -= 1;
                continue;
            }
            self.sums.remove(run);
            self.memory -= run.memory_bytes();
            let Home::Segment { place, .. } = run.home else {
                continue;
            };
            let journaled = run.journaled;
            let left = cut.left.as_ref().is_some_and(|left| left.first == run.first);
            let right = cut.right.as_ref().is_some_and(|right| right.end == run.end);
            match (left, right) {
                (true, true) => *self.shared.entry((place.segment, place.offset)).or_insert(1) += 1,
                (false, false) => self.release(place, journaled),
                _ => {}
            }
        }
        let mut slot = from;
        for run in cut.left.into_iter().chain(cut.moved).chain(cut.right) {
            self.sums.add(&run);
            self.memory += run.memory_bytes();
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

/// Parts that follow each other as one run in the piece's place.
fn merged(parts: &[Run], piece: Stored, keep: bool) -> Run {
    let (Some(head), Some(tail)) = (parts.first(), parts.last()) else {
        return Run::new(piece.first, 0, false);
    };
    let mut run = Run::new(head.first, tail.end - head.first, head.journaled);
    run.home = Home::Segment {
        place: piece.place,
        base: piece.first,
    };
    run.weight = parts.iter().map(|part| part.weight).sum();
    for part in parts {
        run.remove_like(part);
    }
    run.sizes = sizes(parts);
    run.memory = match parts {
        _ if !keep => None,
        [only] => only.memory.clone(),
        _ => one_block(parts),
    };
    run
}

/// The bytes of parts as one block, if all are in memory.
fn one_block(parts: &[Run]) -> Option<Memory> {
    let head = parts.first()?;
    if parts.iter().any(|part| part.memory.is_none()) {
        return None;
    }
    let mut builder = BlockBuilder::new();
    for part in parts {
        let memory = part.memory.as_ref()?;
        for seq in part.first..part.end {
            builder.push_message(&memory.block.message((seq - memory.base) as usize));
        }
    }
    // The time of receipt is the oldest one's: a piece has one, as a block has.
    let oldest = &head.memory.as_ref()?.block;
    let block = builder.finish(oldest.persistent(), oldest.received());
    Some(Memory {
        block: Arc::new(block),
        base: head.first,
    })
}

fn sizes(parts: &[Run]) -> Sizes {
    let mut list = Vec::new();
    let mut exact = true;
    for part in parts {
        let mut part = part.clone();
        part.take_down_sizes();
        if let [_] = parts {
            return part.sizes;
        }
        exact &= part.sizes.are_exact();
        part.sizes.list(part.length(), &mut list);
    }
    match exact {
        true => Sizes::from_list(list),
        false => Sizes::Spread(list.into_iter().map(u64::from).sum()),
    }
}
