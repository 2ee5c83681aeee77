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
