//! What of a group's log is in memory.
//!
//! Terms are, for all of the log: one pair of numbers for each term. Bodies are only as long as somebody is about to
//! need them: until they are applied, synced, and sent to the members that keep up. Whoever lags further behind is read
//! for in the node's log. The library asks in two ways: reads for sending may be answered later; all others want to
//! know only which entries change the membership, and get those with
//! their bytes and all others without.

use crate::membership::Membership;
use crate::record::{Mark, bytes_of};
use bytes::Bytes;
use raft::eraftpb::{Entry, EntryType, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Storage, StorageError};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Entries that a lagging member needs and that are not in memory.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub from: u64,
    /// The first that isn't wanted.
    pub to: u64,
    context: GetEntriesContext,
}

pub(crate) struct Tail {
    start: RaftState,
    base: Mark,
    last: u64,
    /// The first index of each term, above `base`.
    terms: VecDeque<Mark>,
    /// The bodies of the last entries, without gaps.
    window: VecDeque<(EntryType, Bytes)>,
    window_bytes: usize,
    /// Changes of members above `base`.
    changes: VecDeque<(u64, Bytes)>,
    /// Who the members were from which index on; the first is of the checkpoint.
    memberships: VecDeque<(u64, Membership)>,
    /// Up to where the host has the contents in a durable checkpoint.
    checkpoint: u64,
    wanted: RefCell<Vec<Wanted>>,
    fetched: RefCell<VecDeque<Entry>>,
    /// Whether a member needs a later checkpoint than there is.
    outdated: Cell<bool>,
}

impl Tail {
    /// A log that begins behind `base`, of a member whose contents are at `applied`.
    pub fn new(base: Mark, applied: u64, membership: Membership) -> Self {
        Self {
            start: RaftState::default(),
            base,
            last: base.index,
            terms: VecDeque::new(),
            window: VecDeque::new(),
            window_bytes: 0,
            changes: VecDeque::new(),
            memberships: VecDeque::from([(applied, membership)]),
            checkpoint: applied,
            wanted: RefCell::default(),
            fetched: RefCell::default(),
            outdated: Cell::new(false),
        }
    }

    /// What the library starts with.
    pub fn promised(&mut self, promise: storage::HardState) {
        let hard_state = HardState {
            term: promise.term,
            vote: promise.vote,
            commit: promise.commit,
            ..HardState::default()
        };
        self.start = RaftState::new(hard_state, self.membership().to_state());
    }

    pub fn last(&self) -> u64 {
        self.last
    }

    pub fn last_term(&self) -> u64 {
        self.term_of(self.last)
    }

    /// Adds an entry, in place of those that were there from its index on.
    pub fn append(&mut self, entry: &Entry) {
        self.truncate(entry.index);
        let bytes = bytes_of(entry).clone();
        if self.terms.back().map_or(self.base.term, |run| run.term) != entry.term {
            let (index, term) = (entry.index, entry.term);
            self.terms.push_back(Mark { index, term });
        }
        let kind = entry.get_entry_type();
        if kind != EntryType::EntryNormal {
            self.changes.push_back((entry.index, bytes.clone()));
        }
        self.window_bytes += bytes.len();
        self.window.push_back((kind, bytes));
        self.last = entry.index;
    }

    fn truncate(&mut self, from: u64) {
        while self.last >= from {
            if let Some((_, bytes)) = self.window.pop_back() {
                self.window_bytes -= bytes.len();
            }
            self.last -= 1;
        }
        self.terms.retain(|run| run.index < from);
        self.changes.retain(|change| change.0 < from);
        self.fetched.get_mut().clear();
    }

    /// The contents are those of a leader's snapshot now, and the log begins behind it.
    pub fn restore(&mut self, base: Mark, membership: Membership) {
        *self = Self::new(base, base.index, membership);
    }

    /// The members are these from an entry on.
    pub fn joined(&mut self, index: u64, membership: Membership) {
        self.memberships.push_back((index, membership));
    }

    /// Whether a change of members is behind an index.
    pub fn changes_after(&self, index: u64) -> bool {
        self.changes.back().is_some_and(|change| change.0 > index)
    }

    /// Whether a change of members is behind `index`, and not behind `last`.
    pub fn changes_within(&self, index: u64, last: u64) -> bool {
        self.changes_after(index)
            && self
                .changes
                .iter()
                .any(|change| change.0 > index && change.0 <= last)
    }

    /// From which entry on, or from which contents on, the members are these.
    pub fn members_since(&self) -> u64 {
        self.memberships[self.memberships.len() - 1].0
    }

    pub fn membership(&self) -> &Membership {
        // There is always one: the checkpoint's stays when older ones go.
        &self.memberships[self.memberships.len() - 1].1
    }

    /// The contents at `index` are durable, and the log needn't go back further than `keep`.
    pub fn checkpointed(&mut self, index: u64, keep: u64) {
        self.checkpoint = self.checkpoint.max(index);
        while self.memberships.len() > 1 && self.memberships[1].0 <= self.checkpoint {
            self.memberships.pop_front();
        }
        let index = keep.min(self.checkpoint);
        if index > self.base.index {
            self.release(index, 0);
            let term = self.term_of(index);
            self.base = Mark { index, term };
            self.terms.retain(|run| run.index > index);
            self.changes.retain(|change| change.0 > index);
            if self.terms.capacity() > 8 * self.terms.len() {
                self.terms.shrink_to_fit();
            }
        }
    }

    /// Gives up the bodies up to `index`, oldest first, as long as more than `keep` bytes are held.
    pub fn release(&mut self, index: u64, keep: usize) {
        while self.window_first() <= index && self.window_bytes > keep
            || self.window_first() <= self.base.index
        {
            match self.window.pop_front() {
                Some((_, bytes)) => self.window_bytes -= bytes.len(),
                None => break,
            }
        }
        // Entries without bytes don't count, but have to go some time, too.
        if keep == 0 {
            while self.window_first() <= index && self.window.pop_front().is_some() {}
            if self.window.is_empty() {
                self.window = VecDeque::new();
            }
        }
    }

    fn window_first(&self) -> u64 {
        self.last + 1 - self.window.len() as u64
    }

    fn term_of(&self, index: u64) -> u64 {
        let after = self.terms.partition_point(|run| run.index <= index);
        match after.checked_sub(1) {
            Some(at) => self.terms[at].term,
            None => self.base.term,
        }
    }

    fn entry_at(&self, index: u64, kind: EntryType, bytes: Bytes) -> Entry {
        let mut entry = Entry::default();
        (entry.index, entry.term) = (index, self.term_of(index));
        entry.set_entry_type(kind);
        match kind {
            EntryType::EntryNormal => entry.data = bytes,
            _ => entry.context = bytes,
        }
        entry
    }

    /// An entry as far as memory has it: a change of members always with its bytes.
    fn known(&self, index: u64) -> Entry {
        if let Some(at) = index.checked_sub(self.window_first()) {
            let (kind, bytes) = &self.window[at as usize];
            return self.entry_at(index, *kind, bytes.clone());
        }
        match self.changes.binary_search_by_key(&index, |change| change.0) {
            Ok(at) => self.entry_at(index, EntryType::EntryConfChangeV2, self.changes[at].1.clone()),
            Err(_) => self.entry_at(index, EntryType::EntryNormal, Bytes::new()),
        }
    }

    pub fn take_wanted(&mut self) -> Vec<Wanted> {
        std::mem::take(self.wanted.get_mut())
    }

    /// What was wanted has been read; the context goes back to the library, which asks again.
    pub fn fetched(&mut self, wanted: Wanted, entries: Vec<Entry>) -> GetEntriesContext {
        *self.fetched.get_mut() = entries.into();
        wanted.context
    }

    /// What was read has been sent.
    pub fn forget_fetched(&mut self) {
        *self.fetched.get_mut() = VecDeque::new();
    }

    /// Whether a member was to be sent a checkpoint and there is none that it could use.
    pub fn take_outdated(&self) -> bool {
        self.outdated.take()
    }

    /// How many bytes of bodies are in memory.
    pub fn held_bytes(&self) -> usize {
        self.window_bytes
    }

    pub fn base(&self) -> Mark {
        self.base
    }
}

/// The first entries whose sizes together are within the limit, and one at least.
fn limited(entries: impl Iterator<Item = Entry>, limit: Option<u64>) -> Vec<Entry> {
    let (mut taken, mut size) = (Vec::new(), 0_u64);
    for entry in entries {
        size += bytes_of(&entry).len() as u64 + 16;
        if !taken.is_empty() && limit.is_some_and(|limit| size > limit) {
            break;
        }
        taken.push(entry);
    }
    taken
}

impl Storage for Tail {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(self.start.clone())
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        let limit = max_size.into();
        if low <= self.base.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        if low >= self.window_first() || !context.can_async() {
            return Ok(limited((low..high).map(|index| self.known(index)), limit));
        }
        let fetched = self.fetched.borrow();
        if fetched.front().is_some_and(|entry| entry.index == low) {
            return Ok(limited(
                fetched.iter().take((high - low) as usize).cloned(),
                limit,
            ));
        }
        let to = high.min(self.window_first());
        let from = low;
        self.wanted.borrow_mut().push(Wanted { from, to, context });
        Err(Error::Store(StorageError::LogTemporarilyUnavailable))
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index < self.base.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        if index > self.last {
            return Err(Error::Store(StorageError::Unavailable));
        }
        Ok(self.term_of(index))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last)
    }

    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        // Who wasn't a member yet would take it for another group's, and stay without contents for ever.
        let members = &self.memberships[0].1;
        let knows = members.members().any(|member| member.number() == to);
        if self.checkpoint < request_index.max(1) || !knows {
            self.outdated.set(true);
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        metadata.index = self.checkpoint;
        metadata.term = self.term_of(self.checkpoint);
        metadata.set_conf_state(self.memberships[0].1.to_state());
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{MemberId, NodeId};
    use crate::record::entry;

    fn tail() -> Tail {
        let me = MemberId::first(NodeId(1));
        Tail::new(Mark::default(), 0, Membership::of(&[me]))
    }

    fn appended(tail: &mut Tail, term: u64, index: u64) {
        let bytes = Bytes::from(vec![b'x'; 10]);
        tail.append(&entry(Mark { index, term }, 0, bytes).unwrap());
    }

    #[test]
    fn terms_stay_known_when_bodies_go_and_an_overwritten_end_is_forgotten() {
        let mut tail = tail();
        for (term, index) in [(1, 1), (1, 2), (2, 3), (2, 4), (2, 5), (4, 4)] {
            appended(&mut tail, term, index);
        }
        assert_eq!(tail.last_index(), Ok(4));
        tail.release(3, 0);
        let terms: Vec<_> = (1..=4).map(|index| tail.term(index).unwrap()).collect();
        assert_eq!(terms, [1, 1, 2, 4]);
        assert_eq!(tail.held_bytes(), 10);
        assert!(tail.term(5).is_err());
        tail.checkpointed(3, 3);
        assert_eq!(
            (tail.base(), tail.first_index()),
            (Mark { index: 3, term: 2 }, Ok(4))
        );
        assert_eq!(tail.term(3), Ok(2));
    }

    #[test]
    fn reads_that_cannot_wait_get_entries_without_bodies_and_others_are_asked_for() {
        let mut tail = tail();
        for index in 1..=4 {
            appended(&mut tail, 1, index);
        }
        tail.release(2, 0);
        let now = tail.entries(1, 5, None, GetEntriesContext::empty(false)).unwrap();
        let lengths: Vec<_> = now.iter().map(|e| e.data.len()).collect();
        assert_eq!(lengths, [0, 0, 10, 10]);
        assert!(tail.entries(1, 5, None, GetEntriesContext::empty(true)).is_err());
        let wanted = tail.take_wanted().remove(0);
        assert_eq!((wanted.from, wanted.to), (1, 3));
        let read =
            (1..3).map(|index| entry(Mark { index, term: 1 }, 0, Bytes::from_static(b"read")).unwrap());
        let context = tail.fetched(wanted, read.collect());
        let then = tail.entries(1, 5, None, context).unwrap();
        assert_eq!(then.len(), 2);
        assert_eq!(&then[1].data[..], b"read");
    }
}
