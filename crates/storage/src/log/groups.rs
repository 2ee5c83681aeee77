//! Where the log has the entries of groups, so that they are read and released by index; and what counts of their promises.
//!
//! A group has *spots*: entries of which it is known where they stand. A spot begins a *stretch*: the entries from there to the
//! next spot, all of which begin within [`STRETCH`] bytes and with less than [`GAP`] bytes of others between one and the next. So
//! whoever looks for an entry reads one stretch and next to nothing of others, and memory has no more than one spot for [`GAP`]
//! bytes of log and group. An entry whose index is there already voids that one and what followed it;
//! whether it was of an earlier term is not asked, the later written one counts.

use super::format::RECORD_HEADER;
use super::ledger::NumberHasher;
use super::stretch::Entries;
use super::{JournalId, Kind, Position};
use crate::journal::{GroupEntry, HardState};
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

/// How long a stretch is at most, in bytes of the log. An entry that is as long has a stretch of its own, so there are at most
/// two spots in so many bytes, and no stretch takes more than twice as much memory, or one entry.
pub(crate) const STRETCH: u64 = 128 << 10;

/// So much of what others wrote is read rather than remembered, in bytes of the log: to read less at once takes as long.
pub(crate) const GAP: u64 = 16 << 10;

type ByGroup<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

/// An entry of which it is known where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    index: u64,
    position: u64,
    /// Where the last entry of its stretch ends.
    end: u64,
}

/// The entries of one group that count. There is one spot at least.
#[derive(Debug)]
struct Group {
    /// Indices and positions rise.
    spots: VecDeque<Spot>,
    /// Index of the last entry.
    last: u64,
    /// How many entries were appended.
    appended: u64,
}

/// What a group has at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub first: u64,
    pub last: u64,
    /// Where the first entry stands.
    pub begin: Position,
    appended: u64,
}

/// Where to look for entries: between these positions their records begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub begin: u64,
    pub until: u64,
    /// Of this index and above, nothing that stands here counts.
    pub below: u64,
}

/// What the log knows of groups. It follows what is appended, so it is as old as the last append.
#[derive(Debug, Default)]
pub(crate) struct GroupIndex {
    groups: ByGroup<Group>,
    /// The latest promise of each group, and where it stands.
    promises: ByGroup<(Position, HardState)>,
    /// The groups that have a tail: from which index on nothing in it counts.
    tails: ByGroup<u64>,
    /// A stretch that begins before does not go on behind it.
    parted: u64,
}

impl GroupIndex {
    /// A record was appended.
    pub(crate) fn note(&mut self, journal: JournalId, at: Position, payload: &[u8]) {
        match journal.kind {
            Kind::GROUP => {
                if let Some((entry, _)) = GroupEntry::decode(payload) {
                    if let Some(end) = self.tails.get_mut(&journal.number) {
                        *end = entry.index.min(*end);
                    }
                    self.entry(journal.number, entry.index, at.0, payload.len() as u64);
                }
            }
            Kind::HARD_STATE => {
                if let Some(promise) = HardState::decode(payload) {
                    self.promises.insert(journal.number, (at, promise));
                }
            }
            _ => {}
        }
    }

    fn entry(&mut self, group: u64, index: u64, position: u64, length: u64) {
        let end = position.saturating_add(RECORD_HEADER as u64 + length);
        let spot = Spot { index, position, end };
        let group = self.groups.entry(group).or_insert_with(|| Group {
            spots: VecDeque::with_capacity(1),
            last: index,
            appended: 0,
        });
        group.appended += 1;
        // Behind a gap a snapshot has taken the place of what was before.
        if index > group.last.saturating_add(1) {
            group.spots.clear();
        }
        while group.spots.back().is_some_and(|spot| spot.index >= index) {
            group.spots.pop_back();
        }
        group.last = index;
        let near = |spot: &&mut Spot| {
            let gap = position.saturating_sub(spot.end);
            position - spot.position < STRETCH && gap < GAP && spot.position >= self.parted
        };
        match group.spots.back_mut().filter(near) {
            Some(spot) if length < STRETCH => spot.end = end.max(spot.end),
            _ => group.spots.push_back(spot),
        }
    }

    /// Entries of a group were written again, in one record.
    pub(crate) fn carried<'a>(&mut self, group: u64, at: Position, entries: impl Iterator<Item = &'a [u8]>) {
        // The first begins a stretch, however close the one before is.
        let mut length = STRETCH;
        for (entry, _) in entries.filter_map(GroupEntry::decode) {
            self.entry(group, entry.index, at.0, length);
            length = 0;
        }
    }

    /// What a group has now.
    pub(crate) fn seen(&self, group: u64) -> Option<Seen> {
        let group = self.groups.get(&group)?;
        let first = group.spots.front()?;
        Some(Seen {
            first: first.index,
            last: group.last,
            begin: Position(first.position),
            appended: group.appended,
        })
    }

    /// A group has a tail that ends here, or will have; or it has none.
    pub(crate) fn set_tail(&mut self, group: u64, end: Option<u64>) {
        match end {
            Some(end) => drop(self.tails.insert(group, end)),
            None => drop(self.tails.remove(&group)),
        }
    }

    /// From which index on nothing in a group's tail counts: it ends there, or what followed was overwritten.
    pub(crate) fn tail_end(&self, group: u64) -> Option<u64> {
        self.tails.get(&group).copied()
    }

    /// No stretch goes over this position: something there cannot be read, perhaps.
    pub(crate) fn part(&mut self, at: Position) {
        self.parted = self.parted.max(at.0);
    }

    /// The stretch that has an entry, if any has it.
    pub(crate) fn stretch(&self, group: u64, index: u64) -> Option<Stretch> {
        let group = self.groups.get(&group).filter(|group| index <= group.last)?;
        let after = group.spots.partition_point(|spot| spot.index <= index);
        let spot = group.spots.get(after.checked_sub(1)?)?;
        let behind = group.last.saturating_add(1);
        Some(Stretch {
            begin: spot.position,
            until: spot.position.saturating_add(STRETCH).min(spot.end),
            below: group.spots.get(after).map_or(behind, |next| next.index),
        })
    }

    /// The first and the last index of a group's entries.
    pub(crate) fn span(&self, group: u64) -> Option<(u64, u64)> {
        let group = self.groups.get(&group)?;
        Some((group.spots.front()?.index, group.last))
    }

    /// Of this index and above, a group's entries stand at this position or behind; of some below they may, too. Behind the last
    /// one if that is of none.
    pub(crate) fn index_from(&self, group: u64, at: Position) -> Option<u64> {
        let group = self.groups.get(&group)?;
        let after = group.spots.partition_point(|spot| spot.position < at.0);
        let behind = group.last.saturating_add(1);
        Some(group.spots.get(after).map_or(behind, |spot| spot.index))
    }

    /// A group's entries below this index are not needed any more. Returns the position before which no entry is needed; `end` is
    /// the log's.
    pub(crate) fn release(&mut self, number: u64, below: u64, end: Position) -> Position {
        let Some(group) = self.groups.get_mut(&number).filter(|group| below <= group.last) else {
            self.groups.remove(&number);
            return end;
        };
        let after = group.spots.partition_point(|spot| spot.index <= below);
        group.spots.drain(..after.saturating_sub(1));
        group
            .spots
            .front()
            .map_or(Position(0), |spot| Position(spot.position))
    }

    /// A journal released its past by position.
    pub(crate) fn forget(&mut self, journal: JournalId, before: Position, end: Position) {
        match journal.kind {
            Kind::GROUP if before >= end => drop(self.groups.remove(&journal.number)),
            Kind::HARD_STATE => {
                let gone = |(at, _): &(Position, HardState)| *at < before;
                if self.promises.get(&journal.number).is_some_and(gone) {
                    self.promises.remove(&journal.number);
                }
            }
            _ => {}
        }
    }

    /// A group's promise that counts, and where it stands.
    pub(crate) fn promise(&self, group: u64) -> Option<(Position, HardState)> {
        self.promises.get(&group).copied()
    }
}

/// What counts of entries that were written in this order: an entry voids what has its index or a higher one.
pub(crate) fn settled(written: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Entries {
    let mut entries = Entries::new();
    for (index, payload) in written {
        while entries.back().is_some_and(|(last, _)| *last >= index) {
            entries.pop_back();
        }
        entries.push_back((index, payload));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: JournalId = JournalId::new(Kind::GROUP, 7);
    const VOTES: JournalId = JournalId::new(Kind::HARD_STATE, 7);

    /// Notes entries of these indices, one each so many bytes.
    fn noted(index: &mut GroupIndex, indices: impl IntoIterator<Item = u64>, from: u64, apart: u64) -> u64 {
        let mut at = from;
        for entry in indices {
            let mut payload = Vec::new();
            GroupEntry {
                term: 1,
                index: entry,
            }
            .encode(&mut payload);
            index.note(GROUP, Position(at), &payload);
            at += apart;
        }
        at
    }

    fn spots(index: &GroupIndex) -> Vec<(u64, u64)> {
        let spots = &index.groups[&7].spots;
        spots.iter().map(|spot| (spot.index, spot.position)).collect()
    }

    #[test]
    fn many_entries_share_a_spot_and_an_overwritten_one_gives_its_spot_back() {
        let mut index = GroupIndex::default();
        let end = noted(&mut index, 1..=40, 100, STRETCH / 10);
        let at = |entry: u64| 100 + (entry - 1) * (STRETCH / 10);
        assert_eq!(
            spots(&index),
            [1, 12, 23, 34].map(|entry| (entry, at(entry))),
            "a stretch of 10 parts that are rounded down has 11 entries"
        );
        noted(&mut index, [20], end, 1);
        assert_eq!(spots(&index), [(1, at(1)), (12, at(12)), (20, end)]);
        assert_eq!(index.span(7), Some((1, 20)));
        assert_eq!(index.stretch(7, 21), None);
        assert_eq!(index.stretch(8, 1), None);
        let stretch = index.stretch(7, 19).unwrap();
        assert_eq!((stretch.begin, stretch.below), (at(12), 20));
    }

    #[test]
    fn who_reads_a_group_reads_next_to_nothing_of_what_others_wrote_between_its_entries() {
        let mut index = GroupIndex::default();
        let length = RECORD_HEADER as u64 + 16;
        // Two close together, and then one after each gap.
        noted(&mut index, [1, 2], 100, 1_000);
        noted(&mut index, 3..=5, 2_000 + GAP, 2_000 + GAP);
        assert_eq!(spots(&index).len(), 4);
        let read = |entry: u64| {
            let stretch = index.stretch(7, entry).unwrap();
            (stretch.begin, stretch.until, stretch.below)
        };
        assert_eq!(
            (read(1), read(2)),
            ((100, 1_100 + length, 3), (100, 1_100 + length, 3))
        );
        for entry in 3..=5 {
            let at = (2_000 + GAP) * (entry - 2);
            assert_eq!(read(entry), (at, at + length, entry + 1));
        }
        // What voids entries far behind ends the stretch before it where that ended.
        noted(&mut index, [2], 1 << 20, 1);
        assert_eq!(index.stretch(7, 1).unwrap().until, 1_100 + length);
        assert_eq!(index.stretch(7, 1).unwrap().below, 2);
    }

    #[test]
    fn of_which_entries_a_position_has_to_be_kept_is_known_to_the_next_spot() {
        let mut index = GroupIndex::default();
        let end = noted(&mut index, 1..=40, 100, STRETCH / 10);
        let at = |entry: u64| 100 + (entry - 1) * (STRETCH / 10);
        let from = |position: u64| index.index_from(7, Position(position)).unwrap();
        assert_eq!((from(0), from(at(1))), (1, 1));
        assert_eq!((from(at(1) + 1), from(at(12))), (12, 12));
        assert_eq!((from(at(34) + 1), from(end)), (41, 41));
        assert_eq!(index.index_from(8, Position(0)), None);
    }

    #[test]
    fn releasing_drops_what_lies_before_the_stretch_and_all_of_it_leaves_nothing() {
        let mut index = GroupIndex::default();
        let end = noted(&mut index, 1..=40, 100, STRETCH / 10);
        let at = |entry: u64| 100 + (entry - 1) * (STRETCH / 10);
        assert_eq!(index.release(7, 0, Position(end)), Position(at(1)));
        assert_eq!(index.release(7, 22, Position(end)), Position(at(12)));
        assert_eq!(index.span(7), Some((12, 40)));
        assert_eq!(index.stretch(7, 11), None);
        assert_eq!(index.release(7, 41, Position(end)), Position(end));
        assert!(index.groups.is_empty());
        assert_eq!(index.release(9, 5, Position(end)), Position(end));
    }

    #[test]
    fn behind_a_gap_nothing_that_was_before_counts() {
        let mut index = GroupIndex::default();
        noted(&mut index, [1, 2, 3, 9], 100, 50);
        assert_eq!(spots(&index), [(9, 250)]);
        noted(&mut index, [u64::MAX, 0], 300, 50);
        assert_eq!(index.span(7), Some((0, 0)));
    }

    #[test]
    fn no_stretch_goes_over_a_parting() {
        let mut index = GroupIndex::default();
        noted(&mut index, [1, 2], 100, 50);
        index.part(Position(200));
        noted(&mut index, [3, 4], 200, 50);
        assert_eq!(spots(&index), [(1, 100), (3, 200)]);
    }

    #[test]
    fn the_latest_promise_counts_until_it_is_forgotten() {
        let mut index = GroupIndex::default();
        for (at, term) in [(100, 1), (200, 2)] {
            let mut payload = Vec::new();
            let promise = HardState {
                term,
                ..HardState::default()
            };
            promise.encode(&mut payload);
            index.note(VOTES, Position(at), &payload);
        }
        index.note(VOTES, Position(300), b"none");
        let counts = |index: &GroupIndex| index.promise(7).map(|(at, promise)| (at.0, promise.term));
        assert_eq!(counts(&index), Some((200, 2)));
        index.forget(VOTES, Position(200), Position(900));
        assert_eq!(counts(&index), Some((200, 2)));
        index.forget(VOTES, Position(u64::MAX), Position(900));
        assert_eq!(counts(&index), None);
    }

    #[test]
    fn of_entries_with_one_index_the_later_written_one_counts() {
        let written = [(1, 'a'), (2, 'b'), (3, 'c'), (2, 'd')].map(|(index, c)| (index, vec![c as u8]));
        let counts: Vec<_> = settled(written).into_iter().map(|(i, p)| (i, p[0])).collect();
        assert_eq!(counts, [(1, b'a'), (2, b'd')]);
    }
}
