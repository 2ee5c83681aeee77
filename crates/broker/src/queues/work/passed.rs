//! What is said on the lane for work that a third node passes on, and whom a node has links with.
//!
//! ```text
//! passed   a frame as it would be sent over a link, or nothing; then said, and its length (4)
//! said     version u8, 5, to, from, start and number of the detour (all of variable length), step u8, then
//!   1 open    nothing
//!   2 opened  the start of the node that says it
//!   3 lives   nothing
//!   4 closed  nothing
//!   5 frame   nothing: it stands before
//! reaches  version u8, 6, how many nodes, then their numbers; and the length of that (4)
//! ```
//!
//! The version and the kinds are those of [`super::Envelope`], which has others. As with that, what is said stands behind what
//! it is said of: a frame stays in the memory into which it was read.

use super::frame::VERSION;
use crate::groups::NodeId;
use queue::encoding::{Input, put};

const PASSED: u8 = 5;
const REACHES: u8 = 6;

/// The bytes of the length at the end.
const LENGTH: usize = size_of::<u32>();

const OPEN: u8 = 1;
const OPENED: u8 = 2;
const LIVES: u8 = 3;
const CLOSED: u8 = 4;
const FRAME: u8 = 5;

/// So many nodes are named at the most. A cluster has fewer.
const MOST_NODES: usize = 64;

/// A detour's name: the start of the node that has opened it, which counts them. The ends know each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub start: u64,
    pub number: u64,
}

/// A frame on a detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub to: NodeId,
    pub from: NodeId,
    pub name: Name,
    pub step: Step,
}

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The detour is to begin.
    Open,
    /// It has begun, in this start of the node that says so.
    Opened { start: u64 },
    /// This end is there.
    Lives,
    /// There is no such detour any more.
    Closed,
    /// A frame about queues stands before this.
    Frame,
}

/// Whom a node has links with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reaches {
    pub nodes: Vec<NodeId>,
}

/// One of these.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OfDetours {
    Passed(Passed),
    Reaches(Reaches),
}

impl OfDetours {
    /// Whether bytes say that they are one of these.
    pub fn is(bytes: &[u8]) -> bool {
        matches!(said(bytes), Some((_, [VERSION, PASSED | REACHES, ..])))
    }

    /// Reads one, and how many bytes stand before it: the frame, if it is one that brings any. `None` if it is none of this
    /// version.
    pub fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let (before, rest) = said(bytes)?;
        let input = &mut Input { rest };
        let read = match input.take::<2>()? {
            [VERSION, PASSED] => passed(input).map(Self::Passed),
            [VERSION, REACHES] => reaches(input).map(Self::Reaches),
            _ => None,
        }?;
        let brings = matches!(&read, Self::Passed(passed) if passed.step == Step::Frame);
        (input.rest.is_empty() && (brings || before == 0)).then_some((read, before))
    }
}

/// What bytes say, as [`crate::groups::handle::Parts`] has it, and how many stand before it.
fn said(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (rest, length) = bytes.split_last_chunk::<LENGTH>()?;
    let before = rest.len().checked_sub(u32::from_be_bytes(*length) as usize)?;
    Some((before, &rest[before..]))
}

fn with_length(mut said: Vec<u8>) -> Vec<u8> {
    // A few octets, or one for each node and some more.
    let length = said.len() as u32;
    said.extend(length.to_be_bytes());
    said
}

impl Passed {
    /// Its bytes; those of a frame that is passed on stand before them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, PASSED];
        put(&mut out, self.to.0.into());
        put(&mut out, self.from.0.into());
        put(&mut out, self.name.start);
        put(&mut out, self.name.number);
        match self.step {
            Step::Open => out.push(OPEN),
            Step::Opened { start } => {
                out.push(OPENED);
                put(&mut out, start);
            }
            Step::Lives => out.push(LIVES),
            Step::Closed => out.push(CLOSED),
            Step::Frame => out.push(FRAME),
        }
        with_length(out)
    }
}

impl Reaches {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, REACHES];
        put(&mut out, self.nodes.len() as u64);
        self.nodes.iter().for_each(|node| put(&mut out, node.0.into()));
        with_length(out)
    }
}

fn node(input: &mut Input<'_>) -> Option<NodeId> {
    u32::try_from(input.number()?).ok().map(NodeId)
}

fn passed(input: &mut Input<'_>) -> Option<Passed> {
    let (to, from) = (node(input)?, node(input)?);
    let name = Name {
        start: input.number()?,
        number: input.number()?,
    };
    let [step] = *input.take::<1>()?;
    let step = match step {
        OPEN => Step::Open,
        OPENED => Step::Opened {
            start: input.number()?,
        },
        LIVES => Step::Lives,
        CLOSED => Step::Closed,
        FRAME => Step::Frame,
        _ => return None,
    };
    Some(Passed { to, from, name, step })
}

fn reaches(input: &mut Input<'_>) -> Option<Reaches> {
    let count = usize::try_from(input.number()?)
        .ok()
        .filter(|it| *it <= MOST_NODES)?;
    let nodes: Option<Vec<NodeId>> = (0..count).map(|_| node(input)).collect();
    nodes.map(|nodes| Reaches { nodes })
}

#[cfg(test)]
mod tests {
    use super::super::frame::Envelope;
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written_and_nothing_that_was_cut_or_is_too_long() {
        let steps = [
            Step::Open,
            Step::Opened { start: 1 << 40 },
            Step::Lives,
            Step::Closed,
            Step::Frame,
        ];
        let (to, from) = (NodeId(3), NodeId(300));
        let name = Name {
            start: 5,
            number: 600,
        };
        for step in steps {
            let passed = Passed { to, from, name, step };
            let bytes = passed.encode();
            assert!(OfDetours::is(&bytes));
            let read = |before| Some((OfDetours::Passed(passed), before));
            assert_eq!(OfDetours::decode(&bytes), read(0));
            for cut in 0..bytes.len() {
                assert_eq!(OfDetours::decode(&bytes[..cut]), None);
            }
            let brings = OfDetours::decode(&[b"\x01\x02 anything", &bytes[..]].concat());
            assert_eq!(brings, read(11).filter(|_| step == Step::Frame));
        }
        let reaches = |count: u32| Reaches {
            nodes: (0..count).map(NodeId).collect(),
        };
        let bytes = reaches(3).encode();
        assert_eq!(
            OfDetours::decode(&bytes),
            Some((OfDetours::Reaches(reaches(3)), 0))
        );
        assert_eq!(OfDetours::decode(&bytes[1..]), None);
        assert_eq!(OfDetours::decode(&[b"x", &bytes[..]].concat()), None);
        assert_eq!(OfDetours::decode(&reaches(65).encode()), None);
    }

    #[test]
    fn what_is_said_of_queues_is_none_of_these_whatever_it_brings() {
        let is = |said: &[u8]| OfDetours::is(&[&[VERSION, PASSED], &with_length(said.to_vec())[..]].concat());
        assert!(is(&[VERSION, PASSED]) && is(&[VERSION, REACHES]));
        assert!((0..=4).all(|kind| !is(&[VERSION, kind])) && !is(&[VERSION + 1, PASSED]));
        let (queue, leader) = (model::QueueId(5), NodeId(6));
        let led = Envelope::Led { queue, leader }.encode();
        assert!(
            !OfDetours::is(&led.concat()),
            "whoever looks for a leader hears who it is"
        );
        assert!(
            [&[][..], &[0; 4], &[9; 4], &[VERSION, PASSED, 0, 0, 0, 3]]
                .iter()
                .all(|it| !OfDetours::is(it))
        );
    }

    #[test]
    fn a_frame_grows_by_little() {
        let node = NodeId(u32::MAX);
        let passed = Passed {
            to: node,
            from: node,
            name: Name {
                start: u64::MAX,
                number: u64::MAX,
            },
            step: Step::Frame,
        };
        // Two octets, four numbers, a step, the length: far below what a message of the largest size leaves of the lane's limit.
        assert_eq!(passed.encode().len(), 2 + 2 * 5 + 2 * 10 + 1 + LENGTH);
    }

    #[test]
    fn what_is_said_of_detours_has_the_bytes_that_it_always_had() {
        let steps = [
            Step::Open,
            Step::Opened { start: 1 << 40 },
            Step::Lives,
            Step::Closed,
            Step::Frame,
        ];
        let (to, from) = (NodeId(3), NodeId(300));
        let (start, number) = (5, 600);
        let name = Name { start, number };
        let reaches = Reaches {
            nodes: vec![to, from],
        };
        let passed = steps
            .into_iter()
            .map(|step| Passed { to, from, name, step }.encode());
        let written: Vec<String> = passed
            .chain([reaches.encode()])
            .map(|bytes| bytes.escape_ascii().to_string())
            .collect();
        assert_eq!(
            written,
            [
                r"\x01\x05\x03\xac\x02\x05\xd8\x04\x01\x00\x00\x00\t",
                r"\x01\x05\x03\xac\x02\x05\xd8\x04\x02\x80\x80\x80\x80\x80 \x00\x00\x00\x0f",
                r"\x01\x05\x03\xac\x02\x05\xd8\x04\x03\x00\x00\x00\t",
                r"\x01\x05\x03\xac\x02\x05\xd8\x04\x04\x00\x00\x00\t",
                r"\x01\x05\x03\xac\x02\x05\xd8\x04\x05\x00\x00\x00\t",
                r"\x01\x06\x02\x03\xac\x02\x00\x00\x00\x06"
            ]
        );
    }
}
