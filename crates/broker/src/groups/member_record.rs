//! What a member of a group remembers in its own journal, as bytes. Numbers are little-endian.
//!
//! ```text
//! record      kind u8, index u64, term u64, length of the membership u16, membership, then
//!   1 known        nothing
//!   2 store        what the message store has remembered: on this node bytes lie there
//!   3 checkpoint   the contents after this entry, and where their bytes lie
//!   4 spare        bodies that were fetched for contents to come: each first u64, count u32, segment, offset and length u32
//!   5 segments     a kind u8 and a number u64: whose name the segments bear that bodies lie in, if not the member's
//!   6 life         u32: which of this node's members of the group this is, if it had others before
//! ```
//!
//! Each record says by which entry it was so, and who the members were then. Up to the highest of these entries all is
//! known to be committed.

use cluster::{Mark, Membership};
use queue::store::{Place, Stored};
use storage::{JournalId, Kind};

const KNOWN: u8 = 1;
const STORE: u8 = 2;
const CHECKPOINT: u8 = 3;
const SPARE: u8 = 4;
const SEGMENTS: u8 = 5;
const LIFE: u8 = 6;
/// Bytes of a spare body's place.
const SPARE_BYTES: usize = 24;
/// Bytes before the membership.
const HEAD: usize = 19;
/// Nobody reaches such an index or term.
const NUMBER_LIMIT: u64 = 1 << 62;

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
    /// Where bodies lie of which nobody says that they are needed.
    Spare(&'a [u8]),
    /// The segments bear the name of another journal: the contents were that one's, and bodies lie where they lay.
    Segments(JournalId),
    /// So many members of the group the node had before, of which nothing counts any more.
    Life(u32),
}

/// Bodies that were fetched, as bytes.
pub fn encode_spares(spares: &[Stored]) -> Vec<u8> {
    let mut out = Vec::with_capacity(spares.len() * SPARE_BYTES);
    for Stored { first, count, place } in spares {
        out.extend(first.to_le_bytes());
        for number in [*count, place.segment, place.offset, place.length] {
            out.extend(number.to_le_bytes());
        }
    }
    out
}

/// And back. What isn't whole is left out: it is fetched again.
pub fn decode_spares(bytes: &[u8]) -> impl Iterator<Item = Stored> + '_ {
    bytes.chunks_exact(SPARE_BYTES).filter_map(|spare| {
        let short = |at: usize| Some(u32::from_le_bytes(*spare.get(at..)?.first_chunk()?));
        let stored = Stored {
            first: u64::from_le_bytes(*spare.first_chunk()?),
            count: short(8)?,
            place: Place {
                segment: short(12)?,
                offset: short(16)?,
                length: short(20)?,
            },
        };
        (stored.first > 0 && stored.count > 0).then_some(stored)
    })
}

/// The name of a journal as bytes.
pub(super) fn journal_name(journal: JournalId) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = journal.number.to_le_bytes();
    [journal.kind.0, a, b, c, d, e, f, g, h]
}

/// And back; `None` if it is none.
pub(super) fn journal_of(bytes: &[u8]) -> Option<JournalId> {
    let [kind, number @ ..] = *<&[u8; 9]>::try_from(bytes).ok()?;
    Some(JournalId::new(Kind(kind), u64::from_le_bytes(number)))
}

/// A membership of nobody, as bytes.
const NOBODY: [u8; 4] = [0; 4];

impl Head {
    /// Appends a record of these bytes.
    pub fn encode(&self, what: Remembered<'_>, out: &mut Vec<u8>) {
        let (name, life);
        let (kind, bytes): (u8, &[u8]) = match what {
            Remembered::Known => (KNOWN, &[]),
            Remembered::Store(bytes) => (STORE, bytes),
            Remembered::Checkpoint(bytes) => (CHECKPOINT, bytes),
            Remembered::Spare(bytes) => (SPARE, bytes),
            Remembered::Segments(journal) => {
                name = journal_name(journal);
                (SEGMENTS, &name)
            }
            Remembered::Life(number) => {
                life = number.to_le_bytes();
                (LIFE, &life)
            }
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
        let number = |at: usize| number(at).filter(|number| *number < NUMBER_LIMIT);
        let (index, term) = (number(1)?, number(9)?);
        let length = u16::from_le_bytes(*head.get(17..)?.first_chunk()?);
        let (members, bytes) = rest.split_at_checked(usize::from(length))?;
        let what = match *head.first()? {
            KNOWN if bytes.is_empty() => Remembered::Known,
            STORE => Remembered::Store(bytes),
            CHECKPOINT => Remembered::Checkpoint(bytes),
            SPARE => Remembered::Spare(bytes),
            SEGMENTS => Remembered::Segments(journal_of(bytes)?),
            LIFE => Remembered::Life(u32::from_le_bytes(bytes.try_into().ok()?)),
            _ => return None,
        };
        let members = match what {
            // That is written down before anybody has told the member who the others are.
            Remembered::Life(_) if members == NOBODY => Membership::default(),
            _ => Membership::decode(members).ok()?,
        };
        let at = Mark { index, term };
        Some((Self { at, members }, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{MemberId, NodeId};
    use proptest::prelude::*;

    #[test]
    fn which_life_a_member_is_can_be_read_though_it_knew_no_members() {
        let head = Head {
            at: Mark::default(),
            members: Membership::default(),
        };
        let mut bytes = Vec::new();
        head.encode(Remembered::Life(3), &mut bytes);
        assert_eq!(Head::decode(&bytes), Some((head.clone(), Remembered::Life(3))));
        bytes.clear();
        head.encode(Remembered::Known, &mut bytes);
        assert_eq!(Head::decode(&bytes), None, "a group without members");
    }

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
            Remembered::Spare(b"spare"),
            Remembered::Segments(JournalId::new(Kind::QUEUE, 17)),
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

    proptest! {
        #[test]
        fn whatever_bytes_there_are_a_record_is_read_within_them_and_written_again_alike(
            kind in 0_u8..7,
            head in prop::collection::vec(any::<u8>(), 18),
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let bytes = [vec![kind], head, rest].concat();
            if let Some((head, what)) = Head::decode(&bytes) {
                prop_assert!(head.at.index < NUMBER_LIMIT);
                let mut again = Vec::new();
                head.encode(what, &mut again);
                prop_assert_eq!(Head::decode(&again), Some((head, what)));
            }
        }
    }

    #[test]
    fn a_record_has_the_bytes_that_it_always_had() {
        let head = Head {
            at: Mark { index: 300, term: 7 },
            members: Membership::of(&[1, 2, 300].map(|node| MemberId::first(NodeId(node)))),
        };
        let spares = encode_spares(&[Stored {
            first: 300,
            count: 2,
            place: Place {
                segment: 3,
                offset: 4_096,
                length: 200,
            },
        }]);
        let all = [
            Remembered::Known,
            Remembered::Store(b"moved"),
            Remembered::Checkpoint(b"all"),
            Remembered::Spare(&spares),
            Remembered::Segments(JournalId::new(Kind::QUEUE, 17)),
            Remembered::Life(2),
        ];
        let written = all.map(|what| {
            let mut bytes = Vec::new();
            head.encode(what, &mut bytes);
            bytes.escape_ascii().to_string()
        });
        assert_eq!(
            written.to_vec(),
            [
                r"\x01,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x03\x01\x02\xac\x02\x00\x00\x00",
                r"\x02,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x03\x01\x02\xac\x02\x00\x00\x00moved",
                r"\x03,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x03\x01\x02\xac\x02\x00\x00\x00all",
                r"\x04,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x03\x01\x02\xac\x02\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x10\x00\x00\xc8\x00\x00\x00",
                r"\x05,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x03\x01\x02\xac\x02\x00\x00\x00\x02\x11\x00\x00\x00\x00\x00\x00\x00",
                r"\x06,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x03\x01\x02\xac\x02\x00\x00\x00\x02\x00\x00\x00"
            ]
        );
    }
}
