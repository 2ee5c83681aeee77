//! Whose a record is: journals have a kind and a number. And what stands first in the records of a replicated journal.
//!
//! The log keeps what it is given, whatever its kind. Kinds stand here so that each has one number for good:
//!
//! ```text
//! kind  1  the catalog's journal                          2  a queue's journal
//!       3  a deduplication cache's journal                4  entries of a replicated journal (a group)
//!       5  what a group's member has promised to others   6  what it alone remembers of the group's contents
//!       0  the log's own records
//! ```

use std::fmt;

/// What a journal is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

impl Kind {
    /// The log's own.
    pub(crate) const LOG: Self = Self(0);
    /// What exists: virtual hosts, users, queues, bindings. One a node, of number 0.
    pub const CATALOG: Self = Self(1);
    /// A queue's contents.
    pub const QUEUE: Self = Self(2);
    /// What a deduplicating exchange remembers.
    pub const CACHE: Self = Self(3);
    /// Entries of a replicated journal; the number is the group's. A record begins with its term and index, see
    /// [`GroupEntry`]. Of two with one index the later written one counts, and what followed the other one is void.
    pub const GROUP: Self = Self(4);
    /// What a group's member has promised, see [`HardState`]; the number is the group's. The latest counts.
    pub const HARD_STATE: Self = Self(5);
    /// What a group's member remembers of the group's contents, for itself: checkpoints, and where on this node bodies lie. The
    /// number is the group's.
    pub const MEMBER: Self = Self(6);
    /// A stream's, in which nothing stands yet: it has files of its own.
    pub const STREAM: Self = Self(7);
}

/// The name of a journal. Numbers are given out by whoever keeps it; those of one kind say nothing about another one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JournalId {
    pub kind: Kind,
    pub number: u64,
}

impl JournalId {
    /// The journal of this kind and number.
    pub const fn new(kind: Kind, number: u64) -> Self {
        Self { kind, number }
    }
}

impl fmt::Display for JournalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match self.kind {
            Kind::LOG => f.write_str("the log's own records"),
            Kind::CATALOG => f.write_str("the definitions"),
            Kind::QUEUE => write!(f, "queue {number}"),
            Kind::CACHE => write!(f, "deduplication cache {number}"),
            Kind::GROUP => write!(f, "group {number}"),
            Kind::HARD_STATE => write!(f, "the votes of group {number}"),
            Kind::MEMBER => write!(f, "the contents of group {number}"),
            Kind::STREAM => write!(f, "stream {number}"),
            Kind(other) => write!(f, "journal {number} of the unknown kind {other}"),
        }
    }
}

/// What stands first in a record of a replicated journal: 16 bytes, then the record itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupEntry {
    /// The term of the leader that made the entry.
    pub term: u64,
    /// The entry's place in the group, from 1, without gaps.
    pub index: u64,
}

impl GroupEntry {
    /// Appends the entry's head.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.term.to_le_bytes());
        out.extend_from_slice(&self.index.to_le_bytes());
    }

    /// The head and what follows it; `None` if it is too short to be one.
    pub fn decode(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (term, index) = (u64_at(payload, 0)?, u64_at(payload, 8)?);
        Some((Self { term, index }, payload.get(16..)?))
    }
}

/// What a member of a group must not forget: a record of 24 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HardState {
    /// The latest term that the member has seen.
    pub term: u64,
    /// The member that it voted for in this term; 0 if for none.
    pub vote: u64,
    /// Up to where it knew entries as committed.
    pub commit: u64,
}

impl HardState {
    /// Appends the record.
    pub fn encode(self, out: &mut Vec<u8>) {
        for number in [self.term, self.vote, self.commit] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads a record; `None` if it is of another length.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let payload: &[u8; 24] = payload.try_into().ok()?;
        Some(Self {
            term: u64_at(payload, 0)?,
            vote: u64_at(payload, 8)?,
            commit: u64_at(payload, 16)?,
        })
    }
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_of_a_group_are_read_as_they_were_written() {
        let entry = GroupEntry { term: 7, index: 9 };
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        bytes.extend_from_slice(b"record");
        assert_eq!(GroupEntry::decode(&bytes), Some((entry, &b"record"[..])));
        assert_eq!(GroupEntry::decode(&bytes[..15]), None);
        let state = HardState {
            term: 7,
            vote: 2,
            commit: 8,
        };
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        assert_eq!(HardState::decode(&bytes), Some(state));
        assert_eq!(HardState::decode(&bytes[1..]), None);
    }

    #[test]
    fn the_records_of_a_group_have_the_bytes_that_they_always_had_and_kinds_their_numbers() {
        let (mut entry, mut state) = (Vec::new(), Vec::new());
        GroupEntry { term: 7, index: 300 }.encode(&mut entry);
        let (term, vote, commit) = (7, (1 << 32) + 2, 299);
        HardState { term, vote, commit }.encode(&mut state);
        let written = [entry, state]
            .map(|bytes| bytes.escape_ascii().to_string())
            .to_vec();
        assert_eq!(
            written,
            [
                r"\x07\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00",
                r"\x07\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00+\x01\x00\x00\x00\x00\x00\x00"
            ]
        );
        let kinds = [
            Kind::LOG,
            Kind::CATALOG,
            Kind::QUEUE,
            Kind::CACHE,
            Kind::GROUP,
            Kind::HARD_STATE,
            Kind::MEMBER,
        ];
        assert_eq!(kinds.map(|kind| kind.0), [0, 1, 2, 3, 4, 5, 6]);
    }
}
