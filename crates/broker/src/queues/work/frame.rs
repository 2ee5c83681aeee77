//! The envelope of what a node's handle of a queue and the sessions of its home node say to each other.
//!
//! ```text
//! frame    version u8, kind u8, then
//!   1 up     queue, version of the catalog (both of variable length), a frame of the handle
//!   2 down   queue, a frame of the sessions
//! ```
//!
//! How long a frame may be is the lane's matter, and is asked before it costs memory; what is in it is read by
//! [`crate::groups::handle::Frame::decode`].

use crate::groups::handle::{Frame, ToLeader, ToNode};
use bytes::Bytes;
use model::QueueId;
use queue::encoding::{Input, put};

const VERSION: u8 = 1;

const UP: u8 = 1;
const DOWN: u8 = 2;

/// What a node says to another one about a queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Envelope {
    /// To the queue's home node. Its sender had applied what the catalog decided up to `version`.
    Up {
        queue: QueueId,
        version: u64,
        frame: Frame<ToLeader>,
    },
    /// From it.
    Down { queue: QueueId, frame: Frame<ToNode> },
}

impl Envelope {
    /// Its bytes, in parts that follow each other.
    pub fn encode(&self) -> Vec<Bytes> {
        let mut head = vec![VERSION];
        let mut parts = match self {
            Self::Up {
                queue,
                version,
                frame,
            } => {
                head.push(UP);
                put(&mut head, queue.0);
                put(&mut head, *version);
                frame.encode()
            }
            Self::Down { queue, frame } => {
                head.push(DOWN);
                put(&mut head, queue.0);
                frame.encode()
            }
        };
        parts.insert(0, head.into());
        parts
    }

    /// Reads one; `None` if it is none of this version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let input = &mut Input { rest: bytes };
        let [version, kind] = *input.take::<2>()?;
        let queue = QueueId(input.number()?);
        match (version, kind) {
            (VERSION, UP) => Some(Self::Up {
                queue,
                version: input.number()?,
                frame: Frame::decode(input.rest)?,
            }),
            (VERSION, DOWN) => Some(Self::Down {
                queue,
                frame: Frame::decode(input.rest)?,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Incarnation;

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
        for envelope in [up(), Envelope::Down { queue, frame }] {
            let bytes = envelope.encode().concat();
            assert_eq!(Envelope::decode(&bytes).as_ref(), Some(&envelope));
            for cut in 0..bytes.len() {
                assert_eq!(Envelope::decode(&bytes[..cut]), None);
            }
            let mut other = bytes.clone();
            other[0] += 1;
            assert_eq!(Envelope::decode(&other), None);
            other.clone_from(&bytes);
            other[1] = 9;
            assert_eq!(Envelope::decode(&other), None);
        }
    }
}
