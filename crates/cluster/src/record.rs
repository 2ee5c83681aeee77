//! What a member writes to its node's log.
//!
//! An entry is a record of [`Kind::GROUP`]: [`GroupEntry`], one byte that says what it is, and its bytes. What a member
//! has promised is a record of [`Kind::HARD_STATE`]. Bytes are encoded where they are to stay: a body is copied once.

use crate::encoding::Malformed;
use crate::identity::GroupId;
use crate::membership::decode_change;
use bytes::Bytes;
use raft::eraftpb::{Entry, EntryType};
use storage::{GroupEntry, HardState, JournalId, Kind};

/// A record that belongs into the node's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An entry of a group. Its bytes are those that were proposed or came in a frame, not a copy.
    Entry {
        group: GroupId,
        at: Mark,
        kind: u8,
        bytes: Bytes,
    },
    /// What this node's member of a group has promised.
    Promise { group: GroupId, promise: HardState },
}

impl Record {
    /// Whose record it is.
    pub fn journal(&self) -> JournalId {
        match self {
            Self::Entry { group, .. } => JournalId::new(Kind::GROUP, group.0),
            Self::Promise { group, .. } => JournalId::new(Kind::HARD_STATE, group.0),
        }
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Entry { at, kind, bytes, .. } => {
                let Mark { index, term } = *at;
                GroupEntry { term, index }.encode(out);
                out.push(*kind);
                out.extend_from_slice(bytes);
            }
            Self::Promise { promise, .. } => promise.encode(out),
        }
    }

    #[cfg(test)]
    pub fn payload(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode(&mut out);
        out.into()
    }
}

/// A place in a group's log: an index, and the term of the entry that is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    pub index: u64,
    pub term: u64,
}

/// What an entry is of: one byte, on disk and between nodes.
pub(crate) fn kind_of(entry: &Entry) -> u8 {
    u8::from(entry.get_entry_type() != EntryType::EntryNormal)
}

/// The bytes of an entry, on disk and between nodes. Those of a change of members are ours; the library's own are never
/// read from outside.
pub(crate) fn bytes_of(entry: &Entry) -> &Bytes {
    match entry.get_entry_type() {
        EntryType::EntryNormal => &entry.data,
        _ => &entry.context,
    }
}

/// An entry of these parts.
///
/// # Errors
/// The kind is unknown, or a change of members can't be read.
pub(crate) fn entry(mark: Mark, kind: u8, bytes: Bytes) -> Result<Entry, Malformed> {
    let mut entry = Entry::default();
    (entry.index, entry.term) = (mark.index, mark.term);
    match kind {
        0 => entry.data = bytes,
        1 => {
            decode_change(&bytes)?;
            entry.set_entry_type(EntryType::EntryConfChangeV2);
            entry.context = bytes;
        }
        _ => return Err(Malformed::Unknown),
    }
    Ok(entry)
}

pub(crate) fn entry_record(group: GroupId, entry: &Entry) -> Record {
    let (term, index) = (entry.term, entry.index);
    Record::Entry {
        group,
        at: Mark { index, term },
        kind: kind_of(entry),
        bytes: bytes_of(entry).clone(),
    }
}

/// What a record of [`Kind::GROUP`] is of: its place, and the bytes that were proposed; these are empty for what nobody
/// proposed as a record (a leader's first entry, a change of members). `None` if it isn't one.
pub fn entry_of(payload: &[u8]) -> Option<(Mark, &[u8])> {
    let (GroupEntry { term, index }, rest) = GroupEntry::decode(payload)?;
    let (kind, bytes) = rest.split_first()?;
    let bytes = if *kind == 0 { bytes } else { &[] };
    Some((Mark { index, term }, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{MemberId, NodeId};
    use crate::membership::{Membership, Step, encode_change};

    #[test]
    fn what_a_member_writes_has_the_bytes_that_it_always_had_and_no_other_kind_is_read() {
        let (group, at) = (GroupId(8), Mark { index: 300, term: 7 });
        let members = [1, 2, 300].map(|node| MemberId::first(NodeId(node)));
        let again = MemberId {
            life: 2,
            ..members[2]
        };
        let steps = [
            Step::Voter(again),
            Step::Learner(members[1]),
            Step::Remove(members[0]),
        ];
        let joint = Membership {
            voters: vec![members[0], again],
            learners: vec![MemberId::first(NodeId(5))],
            outgoing: members.to_vec(),
            learners_next: vec![members[1]],
        };
        let entry_of = |kind, bytes| Record::Entry {
            group,
            at,
            kind,
            bytes,
        };
        let mut membership = Vec::new();
        joint.encode(&mut membership);
        let (term, vote, commit) = (7, again.number(), 299);
        let promise = HardState { term, vote, commit };
        let written: Vec<String> = [
            entry_of(0, Bytes::from_static(b"record")).payload(),
            entry_of(1, encode_change(&steps).into()).payload(),
            Record::Promise { group, promise }.payload(),
            membership.into(),
        ]
        .iter()
        .map(|bytes| bytes.escape_ascii().to_string())
        .collect();
        assert_eq!(
            written,
            [
                r"\x07\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x00record",
                r"\x07\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x01\x00\xac\x82\x80\x80 \x01\x02\x02\x01",
                r"\x07\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x02\x00\x00\x00+\x01\x00\x00\x00\x00\x00\x00",
                r"\x02\x01\xac\x82\x80\x80 \x01\x05\x03\x01\x02\xac\x02\x01\x02"
            ]
        );
        assert_eq!(entry(at, 2, Bytes::new()), Err(Malformed::Unknown));
    }
}
