//! What nodes say to each other about groups: frames, each of a version, the sender's incarnation and items.
//!
//! Nothing here is the library's own encoding. Numbers take as many bytes as they need; an entry's index is not said,
//! and its term only as a difference, so that gaps and terms that go back can't be said at all. A body is a part of the
//! frame that it came in, not a copy.

use crate::encoding::{Malformed, Reader, put_number};
use crate::identity::{GroupId, NodeId};
use crate::membership::Membership;
use crate::record::{Mark, bytes_of, entry, kind_of};
use bytes::Bytes;
use raft::eraftpb::{Message, MessageType};

/// The version of frames that this node speaks.
const VERSION: u8 = 1;
/// The longest frame. A longer one is refused unread; one that is being filled is sent before it comes near.
pub const FRAME_LIMIT: usize = 1 << 30;
/// From this size on a frame takes no more items.
const FULL: usize = 1 << 20;
/// The most items, entries and questions of a frame together: each takes more memory than bytes.
pub(crate) const PARTS_LIMIT: usize = 1 << 16;
/// The most nodes that a list names.
pub(crate) const NODES_LIMIT: usize = 256;
/// The highest term and index. A node that says more lies: it would be the end of elections, and of the log.
pub(crate) const NUMBER_LIMIT: u64 = 1 << 62;
/// What the library compares with when a vote is asked for in a transfer of leadership.
const TRANSFER: &[u8] = b"CampaignTransfer";

/// What a member knows of its group, for comparison after a link is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    pub group: GroupId,
    /// The number of the member that says it.
    pub member: u64,
    pub term: u64,
    /// The leader's number, 0 if none is known.
    pub leader: u64,
    pub last: u64,
    pub commit: u64,
}

/// A leader's question in a proof round: whether nothing of a later term was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    pub group: GroupId,
    /// The number of the member that is asked.
    pub to: u64,
    pub term: u64,
}

/// What is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// The group was deleted.
    Group,
    /// Who is told was removed: at this committed entry it is no member.
    Told(Mark),
    /// The member of this number, which was written to: its node lost its disk, and is another member now.
    Addressed(u64),
    /// The member of this number, which led: it was closed.
    Leader(u64),
}

/// A part of a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Raft(GroupId, Message),
    /// The group may sleep if it stands where the leader says: the message's term, index and commit.
    Sleep(GroupId, Message),
    Digest(Digest),
    Ask {
        round: u64,
        questions: Vec<Question>,
    },
    /// All groups of the round are as their leader believes, but these.
    Answer {
        round: u64,
        deposed: Vec<GroupId>,
    },
    Gone {
        group: GroupId,
        /// The number of the member that is told.
        to: u64,
        gone: Gone,
    },
    /// Of these nodes the sender hears nothing.
    Unheard(Vec<NodeId>),
    /// The sender's log failed: it says nothing more until it is started again.
    Failed,
}

impl Item {
    /// The group that it is about, if it is about one.
    pub fn group(&self) -> Option<GroupId> {
        match self {
            Self::Raft(group, _) | Self::Sleep(group, _) | Self::Gone { group, .. } => Some(*group),
            Self::Digest(digest) => Some(digest.group),
            Self::Ask { .. } | Self::Answer { .. } | Self::Unheard(_) | Self::Failed => None,
        }
    }
}

/// The items of a frame while it is filled.
pub(crate) struct FrameWriter {
    bytes: Vec<u8>,
    parts: usize,
}

impl FrameWriter {
    pub fn new(incarnation: u64) -> Self {
        let mut out = Vec::with_capacity(HEAD_BYTES);
        out.push(VERSION);
        put_number(&mut out, incarnation);
        Self { bytes: out, parts: 0 }
    }

    /// Whether it is time to send it and to begin another.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL || self.parts >= PARTS_LIMIT / 4
    }

    pub fn put(&mut self, item: &Item) {
        self.parts += parts(item);
        let out = &mut self.bytes;
        match item {
            Item::Raft(group, message) => put_message(out, *group, message),
            Item::Sleep(group, message) => {
                out.push(SLEEP);
                put_number(out, group.0);
                put_head(out, message);
            }
            Item::Digest(digest) => {
                out.push(DIGEST);
                let Digest {
                    group,
                    member,
                    term,
                    leader,
                    last,
                    commit,
                } = *digest;
                for number in [group.0, member, term, leader, last, commit] {
                    put_number(out, number);
                }
            }
            Item::Ask { round, questions } => {
                out.push(ASK);
                put_number(out, *round);
                put_number(out, questions.len() as u64);
                for question in questions {
                    for number in [question.group.0, question.to, question.term] {
                        put_number(out, number);
                    }
                }
            }
            Item::Answer { round, deposed } => {
                out.push(ANSWER);
                put_number(out, *round);
                put_number(out, deposed.len() as u64);
                deposed.iter().for_each(|group| put_number(out, group.0));
            }
            Item::Gone { group, to, gone } => {
                let (kind, first, second) = match *gone {
                    Gone::Group => (0, 0, 0),
                    Gone::Told(at) => (1, at.index, at.term),
                    Gone::Addressed(member) => (2, member, 0),
                    Gone::Leader(member) => (3, member, 0),
                };
                out.extend([GONE, kind]);
                for number in [group.0, *to, first, second] {
                    put_number(out, number);
                }
            }
            Item::Unheard(nodes) => {
                out.push(UNHEARD);
                put_number(out, nodes.len() as u64);
                nodes.iter().for_each(|node| put_number(out, node.0.into()));
            }
            Item::Failed => out.push(FAILED),
        }
    }

    pub fn finish(self) -> Bytes {
        self.bytes.into()
    }
}

/// How many things an item is, for [`PARTS_LIMIT`].
fn parts(item: &Item) -> usize {
    1 + match item {
        Item::Raft(_, message) => message.entries.len(),
        Item::Ask { questions, .. } => questions.len(),
        Item::Answer { deposed, .. } => deposed.len(),
        Item::Unheard(nodes) => nodes.len(),
        Item::Sleep(..) | Item::Digest(_) | Item::Gone { .. } | Item::Failed => 0,
    }
}

/// What a frame with nothing but the head of a message takes, mostly.
const HEAD_BYTES: usize = 128;
/// More than an entry takes beside its bytes, mostly: so much that a frame is not moved while it is filled.
const BESIDE_BYTES: usize = 8;

const SLEEP: u8 = 32;
const DIGEST: u8 = 33;
const ASK: u8 = 34;
const ANSWER: u8 = 35;
const GONE: u8 = 36;
const UNHEARD: u8 = 37;
const FAILED: u8 = 38;

/// The messages of the library that travel, each with its number.
const KINDS: [(u8, MessageType); 10] = [
    (1, MessageType::MsgAppend),
    (2, MessageType::MsgAppendResponse),
    (3, MessageType::MsgRequestVote),
    (4, MessageType::MsgRequestVoteResponse),
    (5, MessageType::MsgSnapshot),
    (6, MessageType::MsgHeartbeat),
    (7, MessageType::MsgHeartbeatResponse),
    (8, MessageType::MsgTimeoutNow),
    (9, MessageType::MsgRequestPreVote),
    (10, MessageType::MsgRequestPreVoteResponse),
];

fn put_message(out: &mut Vec<u8>, group: GroupId, message: &Message) {
    // What isn't in the table never leaves a node: proposals and reads are not forwarded.
    let Some((kind, _)) = KINDS.iter().find(|(_, of)| *of == message.get_msg_type()) else {
        return;
    };
    out.push(*kind);
    put_number(out, group.0);
    put_head(out, message);
    match message.get_msg_type() {
        MessageType::MsgAppend => {
            put_number(out, message.entries.len() as u64);
            let bytes: usize = message
                .entries
                .iter()
                .map(|e| bytes_of(e).len() + BESIDE_BYTES)
                .sum();
            out.reserve(bytes);
            let mut term = message.log_term;
            for entry in &message.entries {
                out.push(kind_of(entry));
                put_number(out, entry.term - term);
                term = entry.term;
                let bytes = bytes_of(entry);
                put_number(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
        }
        MessageType::MsgSnapshot => {
            let metadata = message.get_snapshot().get_metadata();
            put_number(out, metadata.index);
            put_number(out, metadata.term);
            Membership::from_state(metadata.get_conf_state()).encode(out);
        }
        _ => {}
    }
}

fn put_head(out: &mut Vec<u8>, message: &Message) {
    out.push(u8::from(message.reject) | u8::from(!message.context.is_empty()) << 1);
    for number in [
        message.from,
        message.to,
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.reject_hint,
    ] {
        put_number(out, number);
    }
}

/// Reads a frame: the sender's incarnation and the items. All of it is read before anything of it counts.
pub(crate) fn read(frame: &Bytes) -> Result<(u64, Vec<Item>), Malformed> {
    if frame.len() > FRAME_LIMIT {
        return Err(Malformed::Limit);
    }
    let mut reader = Reader::new(frame);
    if reader.byte()? != VERSION {
        return Err(Malformed::Unknown);
    }
    let incarnation = reader.number()?;
    let (mut items, mut left) = (Vec::new(), PARTS_LIMIT);
    while !reader.is_empty() {
        let item = item(frame, &mut reader, left)?;
        left = left.checked_sub(parts(&item)).ok_or(Malformed::Limit)?;
        items.push(item);
    }
    Ok((incarnation, items))
}

fn item(frame: &Bytes, reader: &mut Reader<'_>, left: usize) -> Result<Item, Malformed> {
    match reader.byte()? {
        SLEEP => Ok(Item::Sleep(GroupId(reader.number()?), head(reader)?)),
        DIGEST => Ok(Item::Digest(Digest {
            group: GroupId(reader.number()?),
            member: reader.number()?,
            term: bounded(reader.number()?)?,
            leader: reader.number()?,
            last: bounded(reader.number()?)?,
            commit: bounded(reader.number()?)?,
        })),
        ASK => {
            let round = reader.number()?;
            let count = reader.count(left)?;
            let mut question = || {
                Ok(Question {
                    group: GroupId(reader.number()?),
                    to: reader.number()?,
                    term: reader.number()?,
                })
            };
            let questions = (0..count).map(|_| question()).collect::<Result<_, _>>()?;
            Ok(Item::Ask { round, questions })
        }
        ANSWER => {
            let round = reader.number()?;
            let count = reader.count(left)?;
            let deposed = (0..count).map(|_| reader.number().map(GroupId));
            let deposed = deposed.collect::<Result<_, _>>()?;
            Ok(Item::Answer { round, deposed })
        }
        GONE => gone(reader),
        UNHEARD => {
            let count = reader.count(left.min(NODES_LIMIT))?;
            let mut node = || u32::try_from(reader.number()?).map_err(|_| Malformed::Number);
            let nodes = (0..count).map(|_| node().map(NodeId)).collect::<Result<_, _>>()?;
            Ok(Item::Unheard(nodes))
        }
        FAILED => Ok(Item::Failed),
        kind => message(frame, reader, kind, left),
    }
}

fn gone(reader: &mut Reader<'_>) -> Result<Item, Malformed> {
    let kind = reader.byte()?;
    let (group, to) = (GroupId(reader.number()?), reader.number()?);
    let (first, second) = (reader.number()?, reader.number()?);
    let gone = match kind {
        0 => Gone::Group,
        1 => Gone::Told(Mark {
            index: bounded(first)?,
            term: bounded(second)?,
        }),
        2 => Gone::Addressed(first),
        3 => Gone::Leader(first),
        _ => return Err(Malformed::Unknown),
    };
    Ok(Item::Gone { group, to, gone })
}

fn message(frame: &Bytes, reader: &mut Reader<'_>, kind: u8, left: usize) -> Result<Item, Malformed> {
    let found = KINDS.iter().find(|(number, _)| *number == kind);
    let (_, kind) = found.ok_or(Malformed::Unknown)?;
    let group = GroupId(reader.number()?);
    let mut message = head(reader)?;
    message.set_msg_type(*kind);
    match kind {
        MessageType::MsgAppend => {
            let count = reader.count(left)?;
            let mut entries = Vec::new();
            let (mut index, mut term) = (message.index, message.log_term);
            for _ in 0..count {
                let kind = reader.byte()?;
                index = bounded(index + 1)?;
                term = bounded(term.checked_add(reader.number()?).ok_or(Malformed::Number)?)?;
                let length = reader.count(FRAME_LIMIT)?;
                let from = reader.position();
                reader.take(length)?;
                let bytes = frame.slice(from..from + length);
                entries.push(entry(Mark { index, term }, kind, bytes)?);
            }
            message.set_entries(entries.into());
        }
        MessageType::MsgSnapshot => {
            let metadata = message.mut_snapshot().mut_metadata();
            metadata.index = bounded(reader.number()?)?;
            metadata.term = bounded(reader.number()?)?;
            metadata.set_conf_state(Membership::read(reader)?.to_state());
        }
        _ => {}
    }
    Ok(Item::Raft(group, message))
}

fn head(reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    let flags = reader.byte()?;
    if flags > 3 {
        return Err(Malformed::Unknown);
    }
    let mut message = Message {
        reject: flags & 1 != 0,
        ..Message::default()
    };
    if flags & 2 != 0 {
        message.context = Bytes::from_static(TRANSFER);
    }
    message.from = reader.number()?;
    message.to = reader.number()?;
    message.term = bounded(reader.number()?)?;
    message.log_term = bounded(reader.number()?)?;
    message.index = bounded(reader.number()?)?;
    message.commit = bounded(reader.number()?)?;
    message.commit_term = bounded(reader.number()?)?;
    message.reject_hint = bounded(reader.number()?)?;
    Ok(message)
}

/// A term or an index.
fn bounded(number: u64) -> Result<u64, Malformed> {
    match number <= NUMBER_LIMIT {
        true => Ok(number),
        false => Err(Malformed::Limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::MemberId;
    use proptest::prelude::*;

    fn append() -> Message {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgAppend);
        (message.from, message.to, message.term, message.log_term) = (1, 2, 9, 4);
        (message.index, message.commit) = (70, 60);
        let entries = [(4, 0, "a"), (9, 0, ""), (9, 1, "")];
        let entries = entries.iter().zip(71..).map(|((term, kind, bytes), index)| {
            let mark = Mark { index, term: *term };
            entry(mark, *kind, Bytes::from_static(bytes.as_bytes())).unwrap()
        });
        message.set_entries(entries.collect());
        message
    }

    fn snapshot() -> Message {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgSnapshot);
        (message.from, message.to, message.term) = (1, 2, 9);
        let metadata = message.mut_snapshot().mut_metadata();
        (metadata.index, metadata.term) = (5, 3);
        let members = Membership::of(&[MemberId::first(NodeId(1)), MemberId::first(NodeId(2))]);
        metadata.set_conf_state(members.to_state());
        message
    }

    fn items() -> Vec<Item> {
        let mut vote = Message::default();
        vote.set_msg_type(MessageType::MsgRequestVote);
        (vote.from, vote.to, vote.term) = (1, 2, 3);
        vote.context = Bytes::from_static(TRANSFER);
        let group = GroupId(8);
        let gone = |gone| Item::Gone { group, to: 3, gone };
        vec![
            Item::Raft(group, append()),
            Item::Raft(group, snapshot()),
            Item::Raft(group, vote),
            Item::Digest(Digest {
                group,
                member: 1,
                term: 1,
                leader: 2,
                last: 3,
                commit: 4,
            }),
            Item::Ask {
                round: 5,
                questions: vec![Question {
                    group,
                    to: 1,
                    term: 2,
                }],
            },
            Item::Answer {
                round: 5,
                deposed: vec![group],
            },
            gone(Gone::Group),
            gone(Gone::Told(Mark { index: 7, term: 6 })),
            gone(Gone::Addressed(9)),
            gone(Gone::Leader(9)),
            Item::Unheard(vec![NodeId(3), NodeId(300)]),
            Item::Failed,
        ]
    }

    fn frame() -> Bytes {
        let mut writer = FrameWriter::new(77);
        items().iter().for_each(|item| writer.put(item));
        writer.finish()
    }

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        assert_eq!(read(&frame()), Ok((77, items())));
    }

    #[test]
    fn a_frame_that_was_cut_anywhere_is_refused_or_shorter_and_never_a_panic() {
        let whole = frame();
        for end in 0..whole.len() {
            if let Ok((_, read)) = read(&whole.slice(..end)) {
                assert_eq!(read[..], items()[..read.len()]);
            }
        }
    }

    #[test]
    fn a_term_or_an_index_beyond_the_limit_is_refused() {
        let beyond: [fn(&mut Message); 3] = [
            |message| message.term = NUMBER_LIMIT + 1,
            |message| message.index = NUMBER_LIMIT + 1,
            |message| message.commit = u64::MAX,
        ];
        for beyond in beyond {
            let mut message = append();
            beyond(&mut message);
            let mut writer = FrameWriter::new(1);
            writer.put(&Item::Raft(GroupId(1), message));
            assert_eq!(read(&writer.finish()), Err(Malformed::Limit));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut frame = vec![VERSION, 1];
            frame.extend(bytes);
            let _ = read(&frame.into());
        }
    }

    #[test]
    fn what_members_say_has_the_bytes_that_it_always_had_and_nobody_reads_another_version() {
        let one = |item: &Item| {
            let mut writer = FrameWriter::new(300);
            writer.put(item);
            writer.finish().escape_ascii().to_string()
        };
        let written: Vec<String> = items().iter().map(one).collect();
        assert_eq!(
            written,
            [
                r"\x01\xac\x02\x01\x08\x00\x01\x02\t\x04F<\x00\x00\x03\x00\x00\x01a\x00\x05\x00\x01\x00\x00",
                r"\x01\xac\x02\x05\x08\x00\x01\x02\t\x00\x00\x00\x00\x00\x05\x03\x02\x01\x02\x00\x00\x00",
                r"\x01\xac\x02\x03\x08\x02\x01\x02\x03\x00\x00\x00\x00\x00",
                r"\x01\xac\x02!\x08\x01\x01\x02\x03\x04",
                r#"\x01\xac\x02\"\x05\x01\x08\x01\x02"#,
                r"\x01\xac\x02#\x05\x01\x08",
                r"\x01\xac\x02$\x00\x08\x03\x00\x00",
                r"\x01\xac\x02$\x01\x08\x03\x07\x06",
                r"\x01\xac\x02$\x02\x08\x03\t\x00",
                r"\x01\xac\x02$\x03\x08\x03\t\x00",
                r"\x01\xac\x02%\x02\x03\xac\x02",
                r"\x01\xac\x02&"
            ]
        );
        let numbers = KINDS.map(|(number, _)| number);
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let mut later = frame().to_vec();
        later[0] += 1;
        assert_eq!(read(&later.into()), Err(Malformed::Unknown));
    }
}
