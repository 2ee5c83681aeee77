//! Fairness: lanes with a backlog take turns by bytes (deficit round robin).

use super::LaneId;
use std::collections::{BTreeSet, VecDeque};

/// What a lane may hand out in one turn, in bytes. Small, because everybody else waits for it; a larger message passes all
/// the same, and its lane stands back for as many turns.
const QUANTUM: i64 = 8 * 1024;

/// Lanes in the order of their turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The first one's turn it is: so many bytes are left to it. At or below zero its next turn has not begun.
    line: VecDeque<(LaneId, i64)>,
    standing: BTreeSet<LaneId>,
}

impl Turns {
    /// A lane has something ready again.
    pub(super) fn join(&mut self, id: LaneId) {
        if self.standing.insert(id) {
            self.line.push_back((id, 0));
        }
    }

    /// Whose turn it is of those in `backlog`, and how many bytes it may hand out. Who has nothing left leaves the line.
    pub(super) fn next(&mut self, backlog: &BTreeSet<LaneId>) -> Option<(LaneId, u64)> {
        loop {
            let (id, left) = self.line.front_mut()?;
            let id = *id;
            if !backlog.contains(&id) {
                self.line.pop_front();
                self.standing.remove(&id);
                continue;
            }
            if *left <= 0 {
                *left += QUANTUM;
            }
            if *left > 0 {
                return Some((id, left.unsigned_abs()));
            }
            self.line.rotate_left(1);
        }
    }

    /// The first one has handed out so many bytes; `stuck` if it could not go on.
    pub(super) fn used(&mut self, bytes: u64, stuck: bool) {
        let Some((_, left)) = self.line.front_mut() else {
            return;
        };
        *left -= i64::try_from(bytes).unwrap_or(i64::MAX);
        if *left <= 0 || stuck {
            self.line.rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_with_large_messages_gets_as_many_bytes_as_one_with_small_ones() {
        let mut turns = Turns::default();
        let backlog = BTreeSet::from([1, 2]);
        turns.join(1);
        turns.join(2);
        let (mut large, mut small) = (0, 0);
        for _ in 0..100_000 {
            let (id, left) = turns.next(&backlog).unwrap();
            let bytes = if id == 1 { 100_000 } else { left.min(100) };
            *(if id == 1 { &mut large } else { &mut small }) += bytes;
            turns.used(bytes, false);
        }
        assert!(large.abs_diff(small) <= 200_000, "{large} {small}");
    }

    #[test]
    fn who_has_nothing_leaves_and_begins_anew() {
        let mut turns = Turns::default();
        turns.join(1);
        turns.join(2);
        turns.join(1);
        assert_eq!(turns.next(&BTreeSet::from([2])), Some((2, QUANTUM as u64)));
        turns.join(1);
        turns.used(1, true);
        assert_eq!(turns.next(&BTreeSet::from([1, 2])), Some((1, QUANTUM as u64)));
        assert_eq!(turns.next(&BTreeSet::new()), None);
    }
}
