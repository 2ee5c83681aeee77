//! How a member's log is put together again from what its node's log has of it.

use crate::encoding::Malformed;
use crate::frame::NUMBER_LIMIT;
use crate::identity::MemberId;
use crate::membership::Membership;
use crate::record::{Mark, entry};
use crate::tail::Tail;
use bytes::Bytes;
use storage::{GroupEntry, HardState};

/// Why a member can't be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// A record isn't one.
    Record(Malformed),
    /// An entry follows that does not begin where the last one ended.
    Gap { last: u64, next: u64 },
    /// The contents, or what the member promised, are ahead of its log: entries that it has answered for are lost. It
    /// has to come back as another member.
    LostTail { last: u64, needed: u64 },
    /// It is open already.
    Open,
    /// The group was deleted. Its number is not given out again.
    Deleted,
}

/// A member's state after a start.
pub struct Recovered {
    pub me: MemberId,
    pub(crate) applied: u64,
    pub(crate) promise: HardState,
    pub(crate) tail: Tail,
}

impl Recovered {
    /// A member of a new group, with nothing in its log.
    pub fn new_group(me: MemberId, membership: Membership) -> Self {
        Self::at(me, Mark::default(), 0, membership)
    }

    /// A member whose log begins at `base` and whose contents are at `applied`, in a durable checkpoint; `membership`
    /// is of there. What its node's log has of it is added in the order in which it was written.
    pub fn at(me: MemberId, base: Mark, applied: u64, membership: Membership) -> Self {
        let applied = applied.max(base.index);
        Self {
            me,
            applied,
            promise: HardState::default(),
            tail: Tail::new(base, applied, membership),
        }
    }

    /// Its contents go beyond their checkpoint, up to `applied`, since everything up to there is known to be committed;
    /// `membership` is of there. Called before anything is added that the node's log has.
    pub fn known(&mut self, applied: u64, membership: Membership) {
        if applied > self.applied {
            self.applied = applied;
            self.tail.joined(applied, membership);
        }
    }

    /// Adds a record of [`Kind::GROUP`].
    ///
    /// Of two entries with one index the later written one counts, and what followed the other is void. Entries behind
    /// a snapshot that are of an earlier term than it are void, too: had they been committed, the snapshot would be of
    /// their leader's successor.
    ///
    /// # Errors
    /// It isn't an entry, or it leaves a gap.
    pub fn entry(&mut self, payload: &Bytes) -> Result<(), Damage> {
        let short = Damage::Record(Malformed::Short);
        let (GroupEntry { term, index }, rest) = GroupEntry::decode(payload).ok_or(short)?;
        let kind = *rest.first().ok_or(short)?;
        if term > NUMBER_LIMIT || index > NUMBER_LIMIT {
            return Err(Damage::Record(Malformed::Limit));
        }
        let base = self.tail.base();
        if index <= base.index || term < base.term {
            return Ok(());
        }
        let last = self.tail.last();
        if index > last + 1 {
            return Err(Damage::Gap { last, next: index });
        }
        let bytes = match kind == 0 && index <= self.applied {
            true => Bytes::new(),
            false => payload.slice(17..),
        };
        let entry = entry(Mark { index, term }, kind, bytes).map_err(Damage::Record)?;
        self.tail.append(&entry);
        // What is applied stays known by its term only.
        self.tail.release(self.applied, 0);
        Ok(())
    }

    /// Adds a record of [`Kind::HARD_STATE`].
    ///
    /// # Errors
    /// It isn't one.
    pub fn promise(&mut self, payload: &[u8]) -> Result<(), Damage> {
        let promise = HardState::decode(payload).ok_or(Damage::Record(Malformed::Short))?;
        if promise.term > NUMBER_LIMIT {
            return Err(Damage::Record(Malformed::Limit));
        }
        self.promise = promise;
        Ok(())
    }

    /// What the library is started with.
    ///
    /// # Errors
    /// The log is shorter than what was applied or known as committed.
    pub(crate) fn checked(mut self) -> Result<Self, Damage> {
        let (last, needed) = (self.tail.last(), self.applied.max(self.promise.commit));
        if last < needed {
            return Err(Damage::LostTail { last, needed });
        }
        // The commit index is written now and then only; what is in a checkpoint is committed, whatever was written.
        self.promise.commit = needed;
        // A crash may keep an entry and lose the term that was written beside it. Nothing was answered in that term yet.
        let term = self.tail.last_term();
        if term > self.promise.term {
            (self.promise.term, self.promise.vote) = (term, 0);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{GroupId, NodeId};
    use crate::record::entry_record;
    use raft::Storage;

    fn written(term: u64, index: u64) -> Bytes {
        let mark = Mark { index, term };
        let entry = entry(mark, 0, Bytes::from_static(b"x")).unwrap();
        entry_record(GroupId(1), &entry).payload()
    }

    fn empty(base: Mark, applied: u64) -> Recovered {
        let me = MemberId::first(NodeId(1));
        Recovered::at(me, base, applied, Membership::of(&[me]))
    }

    fn terms(member: &Recovered) -> Vec<(u64, u64)> {
        (member.tail.base().index + 1..=member.tail.last())
            .map(|index| (member.tail.term(index).unwrap(), index))
            .collect()
    }

    #[test]
    fn an_entry_that_was_overwritten_is_void_with_what_followed_it() {
        let mut member = empty(Mark::default(), 0);
        for (term, index) in [(1, 1), (1, 2), (1, 3), (2, 2)] {
            member.entry(&written(term, index)).unwrap();
        }
        assert_eq!(terms(&member), [(1, 1), (2, 2)]);
        assert_eq!(
            member.entry(&written(2, 5)),
            Err(Damage::Gap { last: 2, next: 5 })
        );
    }

    #[test]
    fn entries_behind_a_snapshot_that_are_of_an_earlier_term_are_void() {
        let mut member = empty(Mark { index: 4, term: 3 }, 4);
        for (term, index) in [(1, 3), (1, 4), (1, 5), (1, 6), (3, 5)] {
            member.entry(&written(term, index)).unwrap();
        }
        assert_eq!(terms(&member), [(3, 5)]);
    }

    #[test]
    fn a_log_that_ends_before_what_was_applied_is_refused() {
        let mut member = empty(Mark::default(), 2);
        member.entry(&written(1, 1)).unwrap();
        let lost = member.checked().map(|_| ());
        assert_eq!(lost, Err(Damage::LostTail { last: 1, needed: 2 }));
    }

    #[test]
    fn what_is_known_beyond_a_checkpoint_is_applied_and_the_checkpoint_is_offered_as_it_is() {
        let (me, other) = (MemberId::first(NodeId(1)), MemberId::first(NodeId(2)));
        let mut member = empty(Mark { index: 2, term: 1 }, 2);
        member.known(4, Membership::of(&[me, other]));
        for index in 3..=5 {
            member.entry(&written(1, index)).unwrap();
        }
        assert_eq!(member.tail.membership(), &Membership::of(&[me, other]));
        assert_eq!(member.tail.held_bytes(), 1, "what is applied is not kept");
        let offered = member.tail.snapshot(0, me.number()).unwrap();
        assert_eq!(offered.get_metadata().index, 2);
        assert_eq!(member.checked().map(|it| it.promise.commit), Ok(4));
    }

    #[test]
    fn a_promise_or_an_entry_of_a_term_that_nobody_reaches_is_refused() {
        let mut member = empty(Mark::default(), 0);
        let limit = Err(Damage::Record(Malformed::Limit));
        assert_eq!(member.entry(&written(NUMBER_LIMIT + 1, 1)), limit);
        assert_eq!(member.promise(&[0xff; 24]), limit);
    }

    #[test]
    fn a_term_that_was_lost_beside_its_entry_is_the_entrys_and_nobody_was_voted_for() {
        let mut member = empty(Mark::default(), 0);
        let mut promise = Vec::new();
        let vote = MemberId::first(NodeId(2)).number();
        HardState {
            term: 1,
            vote,
            commit: 0,
        }
        .encode(&mut promise);
        member.promise(&promise).unwrap();
        member.entry(&written(2, 1)).unwrap();
        let promise = member.checked().unwrap().promise;
        assert_eq!((promise.term, promise.vote), (2, 0));
    }
}
