//! What a member of a group remembers in its own journal, as bytes. Numbers are little-endian.
//!
//! ```text
//! record      kind u8, index u64, term u64, length of the membership u16, membership, then
//!   1 known        nothing
//!   2 store        what the message store has remembered: on this node bytes lie there
//!   3 checkpoint   the contents after this entry, and where their bytes lie
//! ```
//!
//! Each record says by which entry it was so, and who the members were then. Up to the highest of these entries all is
//! known to be committed.

use cluster::{Mark, Membership};

const KNOWN: u8 = 1;
const STORE: u8 = 2;
const CHECKPOINT: u8 = 3;
/// Bytes before the membership.
const HEAD: usize = 19;

/// By which entry something was so: it is committed, and was applied here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The entry.
    pub at: Mark,
    /// Who the members were behind it.
    pub members: Membership,
}

/// What is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remembered<'a> {
    /// How far the contents have come.
    Known,
    /// What the message store wants remembered.
    Store(&'a [u8]),
    /// Everything that is there, and where it lies.
    Checkpoint(&'a [u8]),
}

impl Head {
    /// Appends a record of these bytes.
    pub fn encode(&self, what: Remembered<'_>, out: &mut Vec<u8>) {
        let (kind, bytes): (u8, &[u8]) = match what {
            Remembered::Known => (KNOWN, &[]),
            Remembered::Store(bytes) => (STORE, bytes),
            Remembered::Checkpoint(bytes) => (CHECKPOINT, bytes),
        };
        out.push(kind);
        out.extend_from_slice(&self.at.index.to_le_bytes());
        out.extend_from_slice(&self.at.term.to_le_bytes());
        let length = out.len();
        out.extend_from_slice(&[0; 2]);
        self.members.encode(out);
        // A membership has at most 128 numbers of ten bytes.
        let written = (out.len() - length - 2) as u16;
        out[length..length + 2].copy_from_slice(&written.to_le_bytes());
        out.extend_from_slice(bytes);
    }

    /// Takes a record apart; `None` if it isn't one that this version knows.
    pub fn decode(record: &[u8]) -> Option<(Self, Remembered<'_>)> {
        let (head, rest) = record.split_at_checked(HEAD)?;
        let number = |at: usize| Some(u64::from_le_bytes(*head.get(at..)?.first_chunk()?));
        let (index, term) = (number(1)?, number(9)?);
        let length = u16::from_le_bytes(*head.get(17..)?.first_chunk()?);
        let (members, bytes) = rest.split_at_checked(usize::from(length))?;
        let what = match *head.first()? {
            KNOWN if bytes.is_empty() => Remembered::Known,
            STORE => Remembered::Store(bytes),
            CHECKPOINT => Remembered::Checkpoint(bytes),
            _ => return None,
        };
        let members = Membership::decode(members).ok()?;
        let at = Mark { index, term };
        Some((Self { at, members }, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{MemberId, NodeId};

    #[test]
    fn records_are_read_as_they_were_written_and_no_cut_one_is_taken_for_another() {
        let head = Head {
            at: Mark { index: 7, term: 3 },
            members: Membership::of(&[1, 2, 3].map(|node| MemberId::first(NodeId(node)))),
        };
        for what in [
            Remembered::Known,
            Remembered::Store(b"moved"),
            Remembered::Checkpoint(b"all"),
        ] {
            let mut bytes = Vec::new();
            head.encode(what, &mut bytes);
            assert_eq!(Head::decode(&bytes), Some((head.clone(), what)));
            let before = bytes.len() - 5;
            for cut in 0..before {
                let read = Head::decode(&bytes[..cut]);
                assert!(read.is_none_or(|(read, _)| read == head), "{cut}");
            }
            bytes[0] = 9;
            assert_eq!(Head::decode(&bytes), None);
        }
    }
}
