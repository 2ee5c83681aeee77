//! What members of a group say to each other beside entries: frames of the bulk lane.
//!
//! ```text
//! frame     version u8, incarnation of the sender u64, group u64, kind u8, then by kind; numbers little-endian
//!  1 contents? number, least, at (0: any), offset          2 bodies?   number, applied, offset, spans
//!  3 contents  asked, index, term, total, offset, bytes    4 bodies    asked, spans gone, spans lost, count u32, entries
//!  5 slice     asked, entry's head, total, offset, bytes   6 not now   asked, why u8
//! asked     incarnation of whoever asked u64, number of the question u64
//! spans     count u32, then each: first u64, last u64; ascending, with gaps between them
//! entry     head, length u32, bytes; the head: first u64, count u32, persistent u8, received u64
//! ```
//!
//! Nothing costs memory before it passed a limit, and bytes are parts of the frame that they came in.

use bytes::Bytes;
use cluster::{GroupId, Mark, NodeId};
use model::{Block, Index, Ranges, Seq, Timestamp};

/// The version of frames that this node speaks.
const VERSION: u8 = 1;
/// Bytes before what is said.
const HEADER: usize = 17;
/// No frame has more bytes around its lists and bodies.
const AROUND: usize = 128;
/// Bytes of a span.
const SPAN: usize = 16;
/// Bytes of an entry before its messages.
const ENTRY: usize = 25;
/// The most bytes of contents or bodies in a frame.
pub const PIECE_BYTES: usize = 1 << 20;
/// The longest frame. A longer one is refused unread.
pub const BULK_LIMIT: usize = PIECE_BYTES + (512 << 10);
/// The most spans of a list: each takes sixteen bytes.
pub const SPANS: usize = 4_096;
/// The most entries of an answer.
pub const ENTRIES: usize = 4_096;
/// The largest contents, in bytes: they are in memory as a whole.
pub const CONTENTS_LIMIT: u64 = 1 << 28;
/// The largest message, in bytes.
pub const MESSAGE_LIMIT: u64 = 1 << 30;

/// What a peer's member said, and nobody has looked at yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bulk {
    pub from: NodeId,
    /// The start of the peer's node in which it said so.
    pub incarnation: u64,
    pub said: Bytes,
}

/// A question of the node that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub incarnation: u64,
    pub number: u64,
}

/// What members say to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A part of a checkpoint at `least` or behind it is wanted: of the one at `at`, unless that is 0.
    WantsContents {
        number: u64,
        least: Index,
        at: Index,
        offset: u64,
    },
    /// Bodies are wanted of messages that were there once `applied` was applied; of the first one from `offset` on.
    WantsBodies {
        number: u64,
        applied: Index,
        offset: u64,
        seqs: Ranges,
    },
    /// A part of a checkpoint.
    Contents {
        asked: Asked,
        at: Mark,
        total: u64,
        offset: u64,
        bytes: Bytes,
    },
    /// Some of the bodies. Those `gone` are settled, those `lost` can't be read there.
    Bodies {
        asked: Asked,
        gone: Ranges,
        lost: Ranges,
        entries: Vec<Entry>,
    },
    /// A part of a message that is larger than a frame.
    Slice {
        asked: Asked,
        head: Head,
        total: u64,
        offset: u64,
        bytes: Bytes,
    },
    /// There is no such answer just now.
    NotNow { asked: Asked, why: Why },
}

/// Why something is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// What is asked for is not there yet.
    Behind,
    /// The checkpoint is gone; there is a later one.
    Newer,
    /// The member is busy with itself, or could not read it this time.
    Later,
}

/// Of which messages bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub first: Seq,
    pub count: u32,
    pub persistent: bool,
    pub received: Timestamp,
}

/// Messages in a row, as a block has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub head: Head,
    pub bytes: Bytes,
}

impl Head {
    /// The last message.
    pub fn last(&self) -> Seq {
        self.first.saturating_add(u64::from(self.count)).saturating_sub(1)
    }
}

impl Entry {
    /// Whether the bytes are those of so many messages.
    pub fn is_whole(&self) -> bool {
        Block::count(&self.bytes) == Some(self.head.count as usize)
    }

    /// The messages; `None` if the bytes aren't those of so many.
    pub fn block(&self) -> Option<Block> {
        let Head {
            count,
            persistent,
            received,
            ..
        } = self.head;
        let block = Block::from_bytes(self.bytes.to_vec(), persistent, received)?;
        (block.len() == count as usize).then_some(block)
    }
}

impl Said {
    /// A frame for the group's member on another node.
    pub fn frame(&self, incarnation: u64, group: GroupId) -> Bytes {
        let mut out = Vec::with_capacity(self.most_bytes());
        out.push(VERSION);
        put(&mut out, &[incarnation, group.0]);
        self.encode(&mut out);
        out.into()
    }

    /// A frame of it has about so many bytes, so that these are not moved while they are written.
    fn most_bytes(&self) -> usize {
        match self {
            Self::Bodies {
                gone, lost, entries, ..
            } => {
                let bodies: usize = entries.iter().map(|entry| ENTRY + entry.bytes.len()).sum();
                AROUND + SPAN * (gone.spans().count() + lost.spans().count()) + bodies
            }
            Self::WantsBodies { seqs, .. } => AROUND + SPAN * seqs.spans().count(),
            Self::Contents { bytes, .. } | Self::Slice { bytes, .. } => AROUND + bytes.len(),
            Self::WantsContents { .. } | Self::NotNow { .. } => AROUND,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::WantsContents {
                number,
                least,
                at,
                offset,
            } => {
                out.push(1);
                put(out, &[*number, *least, *at, *offset]);
            }
            Self::WantsBodies {
                number,
                applied,
                offset,
                seqs,
            } => {
                out.push(2);
                put(out, &[*number, *applied, *offset]);
                put_spans(out, seqs);
            }
            Self::Contents {
                asked,
                at,
                total,
                offset,
                bytes,
            } => {
                out.push(3);
                put_asked(out, *asked);
                put(out, &[at.index, at.term, *total, *offset]);
                out.extend_from_slice(bytes);
            }
            Self::Bodies {
                asked,
                gone,
                lost,
                entries,
            } => {
                out.push(4);
                put_asked(out, *asked);
                put_spans(out, gone);
                put_spans(out, lost);
                put_short(out, entries.len());
                for entry in entries {
                    put_head(out, &entry.head);
                    put_short(out, entry.bytes.len());
                    out.extend_from_slice(&entry.bytes);
                }
            }
            Self::Slice {
                asked,
                head,
                total,
                offset,
                bytes,
            } => {
                out.push(5);
                put_asked(out, *asked);
                put_head(out, head);
                put(out, &[*total, *offset]);
                out.extend_from_slice(bytes);
            }
            Self::NotNow { asked, why } => {
                out.push(6);
                put_asked(out, *asked);
                out.push(*why as u8);
            }
        }
    }

    /// What was said. `None` if it can't have been.
    pub fn decode(said: &Bytes) -> Option<Self> {
        let mut input = Input { bytes: said, read: 0 };
        let kind = input.byte()?;
        let said = match kind {
            1 => Self::WantsContents {
                number: input.number()?,
                least: input.number()?,
                at: input.number()?,
                offset: input.number()?,
            },
            2 => Self::WantsBodies {
                number: input.number()?,
                applied: input.number()?,
                offset: input.number()?,
                seqs: input.spans()?,
            },
            3 => Self::Contents {
                asked: input.asked()?,
                at: Mark {
                    index: input.number()?,
                    term: input.number()?,
                },
                total: input.number_within(CONTENTS_LIMIT)?,
                offset: input.number_within(CONTENTS_LIMIT)?,
                bytes: input.rest(PIECE_BYTES)?,
            },
            4 => Self::Bodies {
                asked: input.asked()?,
                gone: input.spans()?,
                lost: input.spans()?,
                entries: input.entries()?,
            },
            5 => Self::Slice {
                asked: input.asked()?,
                head: input.head()?,
                total: input.number_within(MESSAGE_LIMIT)?,
                offset: input.number_within(MESSAGE_LIMIT)?,
                bytes: input.rest(PIECE_BYTES)?,
            },
            6 => Self::NotNow {
                asked: input.asked()?,
                why: match input.byte()? {
                    0 => Why::Behind,
                    1 => Why::Newer,
                    2 => Why::Later,
                    _ => return None,
                },
            },
            _ => return None,
        };
        (input.read == input.bytes.len()).then_some(said)
    }
}

/// Whose frame it is. `None` if it is none of a known version.
pub fn read_header(from: NodeId, frame: &Bytes) -> Option<(GroupId, Bulk)> {
    if frame.len() > BULK_LIMIT || *frame.first()? != VERSION {
        return None;
    }
    let number = |at: usize| Some(u64::from_le_bytes(*frame.get(at..)?.first_chunk()?));
    let (incarnation, group) = (number(1)?, GroupId(number(9)?));
    let said = frame.slice(HEADER..);
    Some((
        group,
        Bulk {
            from,
            incarnation,
            said,
        },
    ))
}

fn put(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
}

/// Counts and lengths that a limit keeps small.
fn put_short(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u32).to_le_bytes());
}

fn put_asked(out: &mut Vec<u8>, asked: Asked) {
    put(out, &[asked.incarnation, asked.number]);
}

fn put_spans(out: &mut Vec<u8>, spans: &Ranges) {
    put_short(out, spans.spans().count());
    spans.spans().for_each(|(first, last)| put(out, &[first, last]));
}

fn put_head(out: &mut Vec<u8>, head: &Head) {
    put(out, &[head.first]);
    out.extend(head.count.to_le_bytes());
    out.push(u8::from(head.persistent));
    put(out, &[head.received.0]);
}

struct Input<'a> {
    bytes: &'a Bytes,
    read: usize,
}

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = *self.bytes.get(self.read..)?.first_chunk::<N>()?;
        self.read += N;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn number_within(&mut self, limit: u64) -> Option<u64> {
        self.number().filter(|number| *number <= limit)
    }

    fn short(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn count(&mut self, limit: usize) -> Option<usize> {
        self.short()
            .map(|count| count as usize)
            .filter(|count| *count <= limit)
    }

    fn asked(&mut self) -> Option<Asked> {
        Some(Asked {
            incarnation: self.number()?,
            number: self.number()?,
        })
    }

    fn spans(&mut self) -> Option<Ranges> {
        let mut spans = Ranges::new();
        for _ in 0..self.count(SPANS)? {
            let (first, last) = (self.number()?, self.number()?);
            let behind = spans.last().is_none_or(|before| first > before.saturating_add(1));
            if first > last || !behind {
                return None;
            }
            spans.push_span(first, last);
        }
        Some(spans)
    }

    fn head(&mut self) -> Option<Head> {
        let head = Head {
            first: self.number()?,
            count: self.short()?,
            persistent: match self.byte()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            received: Timestamp(self.number()?),
        };
        (head.count > 0 && head.first.checked_add(u64::from(head.count)).is_some()).then_some(head)
    }

    fn entries(&mut self) -> Option<Vec<Entry>> {
        let count = self.count(ENTRIES)?;
        let mut entries: Vec<Entry> = Vec::new();
        for _ in 0..count {
            let head = self.head()?;
            if entries
                .last()
                .is_some_and(|before| head.first <= before.head.last())
            {
                return None;
            }
            let length = self.count(PIECE_BYTES)?;
            let end = self.read + length;
            if end > self.bytes.len() {
                return None;
            }
            let bytes = self.bytes.slice(self.read..end);
            self.read = end;
            entries.push(Entry { head, bytes });
        }
        Some(entries)
    }

    fn rest(&mut self, limit: usize) -> Option<Bytes> {
        let rest = self.bytes.slice(self.read..);
        self.read = self.bytes.len();
        (rest.len() <= limit).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Said> {
        let asked = Asked {
            incarnation: 4,
            number: 9,
        };
        let head = Head {
            first: 7,
            count: 2,
            persistent: true,
            received: Timestamp(5),
        };
        let mut seqs = Ranges::span(7, 8);
        seqs.push(20);
        let bytes = Bytes::from_static(b"bytes");
        vec![
            Said::WantsContents {
                number: 1,
                least: 2,
                at: 3,
                offset: 4,
            },
            Said::WantsBodies {
                number: 1,
                applied: 2,
                offset: 3,
                seqs: seqs.clone(),
            },
            Said::Contents {
                asked,
                at: Mark { index: 8, term: 2 },
                total: 100,
                offset: 50,
                bytes: bytes.clone(),
            },
            Said::Bodies {
                asked,
                gone: seqs,
                lost: Ranges::one(3),
                entries: vec![Entry {
                    head,
                    bytes: bytes.clone(),
                }],
            },
            Said::Slice {
                asked,
                head,
                total: 100,
                offset: 5,
                bytes,
            },
            Said::NotNow {
                asked,
                why: Why::Newer,
            },
        ]
    }

    #[test]
    fn what_is_said_is_read_as_it_was_written_and_no_part_of_it_is_taken_for_a_question() {
        for said in all() {
            let frame = said.frame(3, GroupId(7));
            let (group, bulk) = read_header(NodeId(2), &frame).unwrap();
            assert_eq!((group, bulk.incarnation), (GroupId(7), 3));
            assert_eq!(Said::decode(&bulk.said), Some(said.clone()));
            for end in 0..bulk.said.len() {
                // Bytes at the end may be fewer: that is for whoever knows how many there are to be.
                let cut = Said::decode(&bulk.said.slice(..end));
                let open = matches!(cut, None | Some(Said::Contents { .. } | Said::Slice { .. }));
                assert!(open, "{cut:?}");
            }
        }
    }

    #[test]
    fn frames_of_another_version_or_cut_off_or_too_long_are_of_no_group() {
        let frame = all()[0].frame(3, GroupId(7));
        assert!((0..HEADER).all(|end| read_header(NodeId(2), &frame.slice(..end)).is_none()));
        let mut other = frame.to_vec();
        other[0] += 1;
        assert!(read_header(NodeId(2), &other.into()).is_none());
        let mut long = frame.to_vec();
        long.resize(BULK_LIMIT + 1, 0);
        assert!(read_header(NodeId(2), &long.into()).is_none());
    }

    #[test]
    fn lists_that_say_more_than_is_there_or_go_back_are_refused() {
        let number = |n: u64| n.to_le_bytes();
        let spans = |spans: &[(u64, u64)], count: u32| {
            let mut said = vec![2];
            [1, 2, 3].map(number).iter().for_each(|n| said.extend(n));
            said.extend(count.to_le_bytes());
            for (first, last) in spans {
                said.extend([number(*first), number(*last)].concat());
            }
            Said::decode(&said.into())
        };
        assert!(spans(&[(1, 2), (4, 4)], 2).is_some());
        assert_eq!(spans(&[(1, 2)], u32::MAX), None);
        assert_eq!(spans(&[(1, 2), (3, 4)], 2), None);
        assert_eq!(spans(&[(4, 4), (1, 2)], 2), None);
        assert_eq!(spans(&[(2, 1)], 1), None);
    }

    #[test]
    fn frames_have_the_bytes_that_they_always_had() {
        let one = |said: Said| said.frame(3, GroupId(300)).escape_ascii().to_string();
        let written: Vec<String> = all().into_iter().map(one).collect();
        assert_eq!(
            written,
            [
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x03\x04\x00\x00\x00\x00\x00\x00\x00\t\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00d\x00\x00\x00\x00\x00\x00\x002\x00\x00\x00\x00\x00\x00\x00bytes",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x04\x04\x00\x00\x00\x00\x00\x00\x00\t\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x05\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00bytes",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x05\x04\x00\x00\x00\x00\x00\x00\x00\t\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x05\x00\x00\x00\x00\x00\x00\x00d\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00bytes",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x00\t\x00\x00\x00\x00\x00\x00\x00\x01"
            ]
        );
    }
}
