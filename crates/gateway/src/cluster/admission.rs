//! What a node asks that is no member of a cluster, and what it is answered. Numbers have their highest byte first.
//!
//! ```text
//! question    version (1), kind (1): 1 let me in, 2 the same of a node that has data of its own; then port (2), token (16)
//! answer      version (1), kind (1), then
//!   1 alone     nothing: the node that was asked is in no cluster
//!   2 welcome   cluster (16), number (4), count (1), and so often: number (4), port (2), length (1), name
//!   3 refused   a text for the operator, of at most 1,024 bytes
//!   4 not now   nothing: ask again
//! ```

use broker::groups::NodeId;
use broker::groups::membership::Peer;
use bytes::Bytes;

const VERSION: u8 = 1;

const LET_ME_IN: u8 = 1;
const WITH_DATA: u8 = 2;

const ALONE: u8 = 1;
const WELCOME: u8 = 2;
const REFUSED: u8 = 3;
const NOT_NOW: u8 = 4;

/// The most bytes of a text.
const TEXT_LIMIT: usize = 1024;

/// What a node says that wants to be a member. Its name is in its greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Where it is dialled.
    pub port: u16,
    /// What it is recognised by.
    pub token: [u8; 16],
    /// It has queues or definitions of its own, which a cluster would not know: it is not let in, and not put on record.
    pub has_data: bool,
}

/// What it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The node that was asked is in no cluster.
    Alone,
    Welcome(Welcome),
    /// An operator has to do something.
    Refused(String),
    /// Nobody can say just now.
    NotNow,
}

/// A node is a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The cluster's number, which is never all zeros.
    pub cluster: [u8; 16],
    /// The node's.
    pub node: NodeId,
    /// All members, the new one among them.
    pub members: Vec<Peer>,
}

impl Question {
    pub fn encode(&self) -> Bytes {
        let kind = match self.has_data {
            true => WITH_DATA,
            false => LET_ME_IN,
        };
        let mut out = vec![VERSION, kind];
        out.extend(self.port.to_be_bytes());
        out.extend(self.token);
        out.into()
    }

    /// Reads it; `None` if it is none that this version knows.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let ([VERSION, kind @ (LET_ME_IN | WITH_DATA)], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let has_data = *kind == WITH_DATA;
        let (port, rest) = rest.split_first_chunk()?;
        let port = u16::from_be_bytes(*port);
        let token = rest.try_into().ok()?;
        (port != 0).then_some(Self {
            port,
            token,
            has_data,
        })
    }
}

impl Answer {
    pub fn encode(&self) -> Bytes {
        let mut out = vec![VERSION];
        match self {
            Self::Alone => out.push(ALONE),
            Self::NotNow => out.push(NOT_NOW),
            Self::Refused(text) => {
                out.push(REFUSED);
                let length = text.floor_char_boundary(TEXT_LIMIT);
                out.extend(&text.as_bytes()[..length]);
            }
            Self::Welcome(Welcome {
                cluster,
                node,
                members,
            }) => {
                out.push(WELCOME);
                out.extend(cluster);
                out.extend(node.0.to_be_bytes());
                // There are no more members than fit, and no longer names than greetings have.
                out.push(members.len().min(255) as u8);
                for Peer { node, name, port } in members.iter().take(255) {
                    out.extend(node.0.to_be_bytes());
                    out.extend(port.to_be_bytes());
                    let name = &name.as_bytes()[..name.len().min(255)];
                    out.push(name.len() as u8);
                    out.extend(name);
                }
            }
        }
        out.into()
    }

    /// Reads it; `None` if it is none that this version knows. A text has nothing that would write lines into a log.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let ([VERSION, kind], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        match *kind {
            ALONE if rest.is_empty() => Some(Self::Alone),
            NOT_NOW if rest.is_empty() => Some(Self::NotNow),
            REFUSED if rest.len() <= TEXT_LIMIT => {
                let text = std::str::from_utf8(rest).ok()?;
                let is_plain = text.chars().all(|char| !char.is_control());
                is_plain.then(|| Self::Refused(text.to_owned()))
            }
            WELCOME => welcome(rest).map(Self::Welcome),
            _ => None,
        }
    }
}

fn welcome(bytes: &[u8]) -> Option<Welcome> {
    let (cluster, rest) = bytes.split_first_chunk()?;
    let (node, rest) = rest.split_first_chunk()?;
    let node = NodeId(u32::from_be_bytes(*node));
    let ([count], mut rest) = rest.split_first_chunk()?;
    let mut members = Vec::new();
    for _ in 0..*count {
        let (number, behind) = rest.split_first_chunk()?;
        let (port, behind) = behind.split_first_chunk()?;
        let ([length], behind) = behind.split_first_chunk()?;
        let (name, behind) = behind.split_at_checked((*length).into())?;
        let name = std::str::from_utf8(name).ok()?;
        if name.is_empty() || !name.chars().all(|char| char.is_ascii_graphic()) {
            return None;
        }
        members.push(Peer {
            node: NodeId(u32::from_be_bytes(*number)),
            name: name.to_owned(),
            port: u16::from_be_bytes(*port),
        });
        rest = behind;
    }
    let is_whole = rest.is_empty() && *cluster != [0; 16] && node.0 != 0;
    is_whole.then_some(Welcome {
        cluster: *cluster,
        node,
        members,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn peer() -> impl Strategy<Value = Peer> {
        (any::<u32>(), "[!-~]{1,255}", any::<u16>()).prop_map(|(node, name, port)| Peer {
            node: NodeId(node),
            name,
            port,
        })
    }

    fn answer() -> impl Strategy<Value = Answer> {
        let welcome = (
            any::<[u8; 16]>(),
            1..u32::MAX,
            proptest::collection::vec(peer(), 0..33),
        );
        let welcome = welcome.prop_filter("a cluster has a number", |(cluster, ..)| *cluster != [0; 16]);
        prop_oneof![
            Just(Answer::Alone),
            Just(Answer::NotNow),
            "[ -~ä]{0,500}".prop_map(Answer::Refused),
            welcome.prop_map(|(cluster, node, members)| {
                let node = NodeId(node);
                Answer::Welcome(Welcome {
                    cluster,
                    node,
                    members,
                })
            }),
        ]
    }

    proptest! {
        #[test]
        fn answers_are_read_as_they_were_given_and_rubbish_is_no_panic(
            answer in answer(),
            rubbish in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let bytes = answer.encode();
            prop_assert!(bytes.len() <= crate::link::QUESTION_LIMIT);
            prop_assert_eq!(Answer::decode(&bytes), Some(answer.clone()));
            if let Answer::Welcome(_) = answer {
                for length in 0..bytes.len() {
                    prop_assert_eq!(Answer::decode(&bytes[..length]), None);
                }
            }
            let _ = Answer::decode(&rubbish);
            let _ = Question::decode(&rubbish);
        }

        #[test]
        fn a_question_is_read_as_it_was_asked(port in 1_u16.., token in any::<[u8; 16]>(), has_data: bool) {
            let question = Question { port, token, has_data };
            let bytes = question.encode();
            prop_assert_eq!(Question::decode(&bytes), Some(question));
            for length in 0..bytes.len() {
                prop_assert_eq!(Question::decode(&bytes[..length]), None);
            }
        }
    }

    #[test]
    fn a_text_that_would_write_lines_into_a_log_is_none_and_a_long_one_is_cut() {
        assert_eq!(Answer::decode(b"\x01\x03a\nb"), None);
        let long = Answer::Refused("ä".repeat(1000));
        assert_eq!(
            Answer::decode(&long.encode()),
            Some(Answer::Refused("ä".repeat(512)))
        );
    }
}
