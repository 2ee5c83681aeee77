//! The envelope of what a node's handle of a queue and the sessions of its home node say to each other.
//!
//! ```text
//! said     version u8, kind u8, then
//!   1 up     queue, version of the catalog (both of variable length), a frame of the handle
//!   2 down   queue, a frame of the sessions
//!   3 reply  virtual host and address (each with its length), a block with one message
//!   4 alarm  the node's alarm u8: 0 none, 1 memory, 2 disk, 3 both, 4 the log has no room, 5 the log failed
//!   7 led    queue, the node that leads it u32
//!   8 streams  whether it asks for the other's u8, where the node's streams are reached: host with its length and port, without
//!              TLS and with it
//!   9 offset  stream, a consumer's reference with its length, the offset that is to be stored under it
//!   10 lacks  stream, the offset from which on the node lacks chunks that the other one has
//!   11 chunks  stream, that offset, the first one that the node has, how many chunks: of each its entry's term and index, its
//!              length, and itself
//!   12 group  stream, what is said of groups of its readers u8, a term, then
//!               0 the node leads in that
//!               1 it follows the other one in that
//!               2 the group's name with its length, one more than the place of the stream in a super stream, or 0, the number of
//!                 this word, that of the last one that was heard, how many readers of the node are in the group: of each the
//!                 node's name for it, and whether it reads u8
//!               3 the group's name with its length, the number of this word, that of the last one that was heard, whether one of
//!                 the other node's readers is active u8, and which
//!   13 has all  whether it asks u8, stream, the life of the member that is asked or answers, the entry up to which its files have all
//!             chunks
//! ```
//!
//! What is said about detours has the same version and other kinds: `passed`.
//!
//! How long a frame may be is the lane's matter, and is asked before it costs memory; what is in it is read by
//! [`crate::groups::handle::Frame::get`]. The bytes of blocks stand before what is said
//! ([`crate::groups::handle::Parts`]).

use crate::clients::alarms::AlarmReason;
use crate::groups::NodeId;
use crate::groups::handle::{Frame, Parts, Reading, ToLeader, ToNode, block};
use crate::queues::remote::{HostAndPort, StreamAddresses};
use crate::queues::streams::Pieces;
use bytes::Bytes;
use cluster::Mark;
use model::{Block, ConsumerId, Index, QueueId};
use queue::encoding::{Input, put};
use queue::stream::GroupWord;
use queue::stream::shared::READERS_MOST;
use std::sync::Arc;

pub(super) const VERSION: u8 = 1;

const UP: u8 = 1;
const DOWN: u8 = 2;
const REPLY: u8 = 3;
const ALARM: u8 = 4;
/// Those between are [`OfDetours`](super::passed::OfDetours)'s.
const LED: u8 = 7;
const STREAMS: u8 = 8;
const OFFSET: u8 = 9;
const LACKS: u8 = 10;
const CHUNKS: u8 = 11;
const GROUP: u8 = 12;
const HAS_ALL: u8 = 13;

/// Alarms by their numbers, from 1.
const ALARMS: [AlarmReason; 5] = [
    AlarmReason::Memory,
    AlarmReason::Disk,
    AlarmReason::MemoryAndDisk,
    AlarmReason::LogStalled,
    AlarmReason::LogFailed,
];

/// The longest name of a virtual host or address, in bytes: AMQP's short strings.
const NAME_BYTES: usize = 255;

/// What a node says to another one about a queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Envelope {
    /// To the queue's home node. Its sender had applied what the catalog decided up to `version`.
    Up {
        queue: QueueId,
        version: u64,
        frame: Frame<ToLeader>,
    },
    /// From it.
    Down { queue: QueueId, frame: Frame<ToNode> },
    /// A direct reply to a client of the node.
    Reply {
        vhost: Box<str>,
        address: Box<str>,
        /// One message.
        block: Arc<Block>,
    },
    /// The node has an alarm, or none any more.
    Alarm(Option<AlarmReason>),
    /// Clients of the stream protocol reach the node there. Whoever sees a link first says so before the other one listens to it:
    /// so the other one asks.
    Streams { at: StreamAddresses, asks: bool },
    /// A client of the node stores an offset in a stream of the other one.
    Offset {
        stream: QueueId,
        reference: Arc<[u8]>,
        offset: u64,
    },
    /// The node's copy of a stream lacks chunks from this offset on.
    Lacks { stream: QueueId, from: u64 },
    /// In answer to that.
    Chunks { stream: QueueId, pieces: Pieces },
    /// Whether the other node's copy of a stream, of this life, has all chunks up to this entry. Or in answer to that: it has.
    HasAll {
        stream: QueueId,
        life: u32,
        upto: Index,
        asks: bool,
    },
    /// Something is so of readers in a group.
    Group { stream: QueueId, said: GroupWord },
    /// The node was asked about a queue that it does not lead: this one does. Or nobody has asked, and it is a stream that the
    /// other node has no copy of.
    Led { queue: QueueId, leader: NodeId },
}

impl Envelope {
    /// Its bytes, in parts that follow each other.
    pub fn encode(&self) -> Vec<Bytes> {
        let mut parts = Parts::default();
        let said = &mut parts.said;
        said.push(VERSION);
        match self {
            Self::Up {
                queue,
                version,
                frame,
            } => {
                said.push(UP);
                put(said, queue.0);
                put(said, *version);
                frame.put(&mut parts);
            }
            Self::Down { queue, frame } => {
                said.push(DOWN);
                put(said, queue.0);
                frame.put(&mut parts);
            }
            Self::Reply {
                vhost,
                address,
                block,
            } => {
                said.push(REPLY);
                for name in [vhost, address] {
                    put(said, name.len() as u64);
                    said.extend_from_slice(name.as_bytes());
                }
                parts.block(block);
            }
            Self::Led { queue, leader } => {
                said.push(LED);
                put(said, queue.0);
                put(said, leader.0.into());
            }
            Self::Streams { at, asks } => {
                said.extend_from_slice(&[STREAMS, u8::from(*asks)]);
                for (host, port) in [&at.plain, &at.tls] {
                    put(said, host.len() as u64);
                    said.extend_from_slice(host.as_bytes());
                    put(said, (*port).into());
                }
            }
            Self::Offset {
                stream,
                reference,
                offset,
            } => {
                said.push(OFFSET);
                put(said, stream.0);
                put(said, reference.len() as u64);
                said.extend_from_slice(reference);
                put(said, *offset);
            }
            Self::Group { stream, said: word } => {
                said.push(GROUP);
                put(said, stream.0);
                put_word(said, word);
            }
            Self::HasAll {
                stream,
                life,
                upto,
                asks,
            } => {
                said.extend([HAS_ALL, u8::from(*asks)]);
                put(said, stream.0);
                put(said, (*life).into());
                put(said, *upto);
            }
            Self::Lacks { stream, from } => {
                said.push(LACKS);
                put(said, stream.0);
                put(said, *from);
            }
            Self::Chunks { stream, pieces } => {
                said.push(CHUNKS);
                put(said, stream.0);
                put(said, pieces.from);
                put(said, pieces.first);
                put(said, pieces.chunks.len() as u64);
                for (at, chunk) in &pieces.chunks {
                    put(said, at.term);
                    put(said, at.index);
                    put(said, chunk.len() as u64);
                    said.extend_from_slice(chunk);
                }
            }
            Self::Alarm(reason) => {
                let number = ALARMS.iter().position(|known| Some(*known) == *reason);
                said.extend_from_slice(&[ALARM, number.map_or(0, |number| number as u8 + 1)]);
            }
        }
        parts.finish()
    }

    /// Reads one; `None` if it is none of this version. The memory of `bytes` may become that of a block.
    pub fn decode(bytes: Vec<u8>) -> Option<Self> {
        Reading::of(bytes, Self::get)
    }

    fn get(input: &mut Reading<'_>) -> Option<Self> {
        let [VERSION, kind] = *input.take::<2>()? else {
            return None;
        };
        Some(match kind {
            UP => Self::Up {
                queue: QueueId(input.number()?),
                version: input.number()?,
                frame: Frame::get(input)?,
            },
            DOWN => Self::Down {
                queue: QueueId(input.number()?),
                frame: Frame::get(input)?,
            },
            REPLY => Self::Reply {
                vhost: name(input)?,
                address: name(input)?,
                block: block(input).filter(|block| block.len() == 1)?,
            },
            LED => Self::Led {
                queue: QueueId(input.number()?),
                leader: NodeId(input.number()?.try_into().ok()?),
            },
            STREAMS => Self::Streams {
                asks: flag(input)?,
                at: StreamAddresses {
                    plain: host_and_port(input)?,
                    tls: host_and_port(input)?,
                },
            },
            GROUP => Self::Group {
                stream: QueueId(input.number()?),
                said: word(input)?,
            },
            HAS_ALL => Self::HasAll {
                asks: flag(input)?,
                stream: QueueId(input.number()?),
                life: u32::try_from(input.number()?).ok()?,
                upto: input.number()?,
            },
            LACKS => Self::Lacks {
                stream: QueueId(input.number()?),
                from: input.number()?,
            },
            CHUNKS => Self::Chunks {
                stream: QueueId(input.number()?),
                pieces: pieces(input)?,
            },
            OFFSET => Self::Offset {
                stream: QueueId(input.number()?),
                reference: short(input)?.into(),
                offset: input.number()?,
            },
            ALARM => match usize::from(input.take::<1>()?[0]).checked_sub(1) {
                None => Self::Alarm(None),
                Some(at) => Self::Alarm(Some(*ALARMS.get(at)?)),
            },
            _ => return None,
        })
    }
}

fn put_word(out: &mut Vec<u8>, word: &GroupWord) {
    let (number, term) = match word {
        GroupWord::Leads { term } => (0, term),
        GroupWord::Follows { term } => (1, term),
        GroupWord::Members { term, .. } => (2, term),
        GroupWord::Active { term, .. } => (3, term),
        // Nobody says it.
        GroupWord::Lost => (4, &0),
    };
    out.push(number);
    put(out, *term);
    let mut put_group = |group: &[u8], numbers: &[u64]| {
        put(out, group.len() as u64);
        out.extend_from_slice(group);
        numbers.iter().for_each(|number| put(out, *number));
    };
    match word {
        GroupWord::Members {
            group,
            partition,
            number,
            heard,
            readers,
            ..
        } => {
            let place = partition.map_or(0, |partition| u64::from(partition) + 1);
            put_group(group, &[place, *number, *heard, readers.len() as u64]);
            for (reader, reads) in readers {
                put(out, reader.0);
                out.push(u8::from(*reads));
            }
        }
        GroupWord::Active {
            group,
            number,
            heard,
            reader,
            ..
        } => {
            put_group(group, &[*number, *heard]);
            out.push(u8::from(reader.is_some()));
            reader.iter().for_each(|reader| put(out, reader.0));
        }
        _ => {}
    }
}

fn word(input: &mut Input<'_>) -> Option<GroupWord> {
    let (number, term) = (input.octet()?, input.number()?);
    Some(match number {
        0 => GroupWord::Leads { term },
        1 => GroupWord::Follows { term },
        2 => GroupWord::Members {
            term,
            group: short(input)?.into(),
            partition: match input.number()? {
                0 => None,
                place => Some(u32::try_from(place - 1).ok()?),
            },
            number: input.number()?,
            heard: input.number()?,
            readers: readers(input)?,
        },
        3 => GroupWord::Active {
            term,
            group: short(input)?.into(),
            number: input.number()?,
            heard: input.number()?,
            reader: match flag(input)? {
                true => Some(ConsumerId(input.number()?)),
                false => None,
            },
        },
        _ => return None,
    })
}

/// Those of a group, of which there are no more than are said. Nothing is allocated for what is not there.
fn readers(input: &mut Input<'_>) -> Option<Vec<(ConsumerId, bool)>> {
    let count = usize::try_from(input.number()?).ok()?;
    let mut readers = Vec::new();
    for _ in 0..(count <= READERS_MOST).then_some(count)? {
        readers.push((ConsumerId(input.number()?), flag(input)?));
    }
    Some(readers)
}

fn flag(input: &mut Input<'_>) -> Option<bool> {
    match input.octet()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Whether they are chunks is looked at where they are written.
fn pieces(input: &mut Input<'_>) -> Option<Pieces> {
    let mut pieces = Pieces {
        from: input.number()?,
        first: input.number()?,
        chunks: Vec::new(),
    };
    for _ in 0..input.number()? {
        let (term, index) = (input.number()?, input.number()?);
        let length = usize::try_from(input.number()?).ok()?;
        let (chunk, rest) = input.rest.split_at_checked(length)?;
        input.rest = rest;
        let at = Mark { index, term };
        pieces.chunks.push((at, Bytes::copy_from_slice(chunk)));
    }
    Some(pieces)
}

fn host_and_port(input: &mut Input<'_>) -> Option<HostAndPort> {
    Some((name(input)?, input.number()?.try_into().ok()?))
}

fn name(input: &mut Input<'_>) -> Option<Box<str>> {
    std::str::from_utf8(short(input)?).ok().map(Box::from)
}

/// Bytes with their length, no more than a name has.
fn short<'a>(input: &mut Input<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(input.number()?).ok()?;
    let (name, rest) = input.rest.split_at_checked(length)?;
    input.rest = rest;
    (length <= NAME_BYTES).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{BlockBuilder, Incarnation, Timestamp};

    fn up() -> Envelope {
        let frame = Frame {
            session: 3,
            term: 4,
            number: 1,
            seen: 0,
            asks: false,
            messages: vec![ToLeader::Open {
                node: Incarnation(7),
                sent: 300,
            }],
        };
        let (queue, version) = (QueueId(500), 1 << 40);
        Envelope::Up {
            queue,
            version,
            frame,
        }
    }

    fn reply(messages: usize) -> Envelope {
        let mut builder = BlockBuilder::new();
        for _ in 0..messages {
            builder.push(b"", b"a", b"\0\0", b"body");
        }
        Envelope::Reply {
            vhost: "/".into(),
            address: "amq.rabbitmq.reply-to.1".into(),
            block: Arc::new(builder.finish(false, Timestamp::default())),
        }
    }

    fn streams() -> Envelope {
        let at = StreamAddresses {
            plain: ("a.example".into(), 5552),
            tls: ("b".into(), 5551),
        };
        Envelope::Streams { at, asks: true }
    }

    fn has_all() -> Envelope {
        Envelope::HasAll {
            stream: QueueId(500),
            life: 3,
            upto: 300,
            asks: true,
        }
    }

    fn lacks() -> Envelope {
        let (stream, from) = (QueueId(500), 1 << 40);
        Envelope::Lacks { stream, from }
    }

    fn chunks() -> Envelope {
        let at = Mark { index: 300, term: 2 };
        let pieces = Pieces {
            from: 7,
            first: 5,
            chunks: vec![(at, Bytes::from_static(b"one")), (at, Bytes::from_static(b"two"))],
        };
        let stream = QueueId(500);
        Envelope::Chunks { stream, pieces }
    }

    fn group(partition: Option<u32>, readers: usize) -> Envelope {
        let reader = |number| (ConsumerId(7 + number as u64), number == 1);
        let said = GroupWord::Members {
            term: 300,
            group: b"g"[..].into(),
            partition,
            number: 5,
            heard: 4,
            readers: (0..readers).map(reader).collect(),
        };
        let stream = QueueId(500);
        Envelope::Group { stream, said }
    }

    fn words() -> Vec<Envelope> {
        let (stream, term) = (QueueId(5), 300);
        let active = |reader| GroupWord::Active {
            term,
            group: b"g"[..].into(),
            number: 6,
            heard: 5,
            reader,
        };
        let words = [
            GroupWord::Leads { term },
            GroupWord::Follows { term },
            active(None),
            active(Some(ConsumerId(7))),
        ];
        words.map(|said| Envelope::Group { stream, said }).into()
    }

    fn offset(reference: &[u8]) -> Envelope {
        Envelope::Offset {
            stream: QueueId(500),
            reference: reference.into(),
            offset: 1 << 40,
        }
    }

    #[test]
    fn alarms_are_read_as_they_were_written_and_no_other_number_is() {
        for reason in ALARMS.into_iter().map(Some).chain([None]) {
            let bytes = Envelope::Alarm(reason).encode().concat();
            assert_eq!(Envelope::decode(bytes.clone()), Some(Envelope::Alarm(reason)));
            for cut in 0..bytes.len() {
                assert_eq!(Envelope::decode(bytes[..cut].to_vec()), None);
            }
        }
        let mut parts = Parts::default();
        parts.said.extend_from_slice(&[VERSION, ALARM, 6]);
        assert_eq!(Envelope::decode(parts.finish().concat()), None);
    }

    #[test]
    fn a_reply_is_one_message_and_its_names_are_short() {
        for messages in [0, 2] {
            assert_eq!(Envelope::decode(reply(messages).encode().concat()), None);
        }
        let Envelope::Reply { vhost, block, .. } = reply(1) else {
            unreachable!()
        };
        let reply = Envelope::Reply {
            vhost,
            address: "a".repeat(256).into(),
            block,
        };
        assert_eq!(Envelope::decode(reply.encode().concat()), None);
        assert_eq!(Envelope::decode(offset(&[7; 256]).encode().concat()), None);
    }

    #[test]
    fn a_word_of_a_group_names_so_many_readers_at_most() {
        let said = |readers| group(None, readers).encode().concat();
        assert!(Envelope::decode(said(READERS_MOST)).is_some());
        assert_eq!(Envelope::decode(said(READERS_MOST + 1)), None);
    }

    #[test]
    fn what_is_read_is_what_was_written_and_nothing_that_was_cut_or_is_of_another_version() {
        let frame = Frame {
            messages: vec![ToNode::Credit { bytes: 1 << 20 }],
            ..Frame {
                session: 1,
                term: 2,
                number: 3,
                seen: 4,
                asks: true,
                messages: Vec::new(),
            }
        };
        let queue = QueueId(1);
        let leader = NodeId(70_000);
        for envelope in [
            up(),
            Envelope::Down { queue, frame },
            reply(1),
            Envelope::Led { queue, leader },
            streams(),
            offset(b"\xff"),
            lacks(),
            has_all(),
            chunks(),
            group(None, 0),
            group(Some(2), 2),
        ]
        .into_iter()
        .chain(words())
        {
            let parts = envelope.encode();
            let bytes = parts.concat();
            assert_eq!(Envelope::decode(bytes.clone()).as_ref(), Some(&envelope));
            for cut in 0..bytes.len() {
                assert_eq!(Envelope::decode(bytes[..cut].to_vec()), None);
            }
            let said = bytes.len() - parts.last().map_or(0, Bytes::len);
            for (at, wrong) in [(said, VERSION + 1), (said + 1, 14)] {
                let mut other = bytes.clone();
                other[at] = wrong;
                assert_eq!(Envelope::decode(other), None);
            }
        }
    }

    #[test]
    fn envelopes_have_the_bytes_that_they_always_had() {
        let frame = Frame {
            session: 1,
            term: 2,
            number: 3,
            seen: 4,
            asks: true,
            messages: vec![ToNode::Credit { bytes: 1 << 20 }],
        };
        let (queue, leader) = (QueueId(1), NodeId(70_000));
        let alarms = ALARMS.into_iter().map(Some).chain([None]);
        let all = [
            up(),
            Envelope::Down { queue, frame },
            reply(1),
            Envelope::Led { queue, leader },
            streams(),
            offset(b"\xff"),
            lacks(),
            has_all(),
            chunks(),
            group(Some(2), 2),
        ];
        let one = |envelope: Envelope| envelope.encode().concat().escape_ascii().to_string();
        let all = all.into_iter().chain(words()).chain(alarms.map(Envelope::Alarm));
        let written: Vec<String> = all.map(one).collect();
        assert_eq!(
            written,
            [
                r"\x01\x01\xf4\x03\x80\x80\x80\x80\x80 \x01\x01\x03\x04\x01\x00\x00\x01\x01\x07\xac\x02\x00\x00\x00\x16",
                r"\x01\x02\x01\x01\x02\x01\x02\x03\x04\x01\x01\n\x80\x80@\x00\x00\x00\x0f",
                r"\x04\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x01a\x00\x00body\x01\x03\x01/\x17amq.rabbitmq.reply-to.1\x00\x00\x15\x00\x00\x00\x1f",
                r"\x01\x07\x01\xf0\xa2\x04\x00\x00\x00\x06",
                r"\x01\x08\x01\ta.example\xb0+\x01b\xaf+\x00\x00\x00\x13",
                r"\x01\t\xf4\x03\x01\xff\x80\x80\x80\x80\x80 \x00\x00\x00\x0c",
                r"\x01\n\xf4\x03\x80\x80\x80\x80\x80 \x00\x00\x00\n",
                r"\x01\r\x01\xf4\x03\x03\xac\x02\x00\x00\x00\x08",
                r"\x01\x0b\xf4\x03\x07\x05\x02\x02\xac\x02\x03one\x02\xac\x02\x03two\x00\x00\x00\x15",
                r"\x01\x0c\xf4\x03\x02\xac\x02\x01g\x03\x05\x04\x02\x07\x00\x08\x01\x00\x00\x00\x11",
                r"\x01\x0c\x05\x00\xac\x02\x00\x00\x00\x06",
                r"\x01\x0c\x05\x01\xac\x02\x00\x00\x00\x06",
                r"\x01\x0c\x05\x03\xac\x02\x01g\x06\x05\x00\x00\x00\x00\x0b",
                r"\x01\x0c\x05\x03\xac\x02\x01g\x06\x05\x01\x07\x00\x00\x00\x0c",
                r"\x01\x04\x01\x00\x00\x00\x03",
                r"\x01\x04\x02\x00\x00\x00\x03",
                r"\x01\x04\x03\x00\x00\x00\x03",
                r"\x01\x04\x04\x00\x00\x00\x03",
                r"\x01\x04\x05\x00\x00\x00\x03",
                r"\x01\x04\x00\x00\x00\x00\x03"
            ]
        );
    }
}
