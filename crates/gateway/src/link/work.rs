//! What travels in [`Lane::Work`]: whose a frame is says the octet that stands last in it. So what a queue is sent may begin with
//! the messages themselves, and stay in the memory into which it was read.

use super::links::Links;
use broker::groups::NodeId;
use broker::queues::WorkLinks;
use bytes::Bytes;
use protocol::link::Lane;

/// Whose a frame of [`Lane::Work`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Catalog = 1,
    Queues = 2,
    /// What operators ask of a node.
    Questions = 3,
}

impl Topic {
    /// The parts of a frame about this.
    pub fn mark(self, mut parts: Vec<Bytes>) -> Vec<Bytes> {
        parts.push(Bytes::from_static(match self {
            Self::Catalog => &[Self::Catalog as u8],
            Self::Queues => &[Self::Queues as u8],
            Self::Questions => &[Self::Questions as u8],
        }));
        parts
    }

    /// What a frame is about, and the rest of it; `None` if this version knows of no such topic.
    pub fn of(frame: Bytes) -> Option<(Self, Vec<u8>)> {
        // Nobody else has it, so this moves nothing.
        let mut rest = Vec::from(frame);
        let topics = [Self::Catalog, Self::Queues, Self::Questions];
        let last = rest.pop()?;
        let topic = topics.into_iter().find(|topic| *topic as u8 == last)?;
        Some((topic, rest))
    }
}

impl WorkLinks for Links {
    fn work(&self, to: NodeId, parts: Vec<Bytes>) {
        // What is lost is missed by its session.
        let _ = self.send(to, Lane::Work, Topic::Queues.mark(parts));
    }

    fn spare(&self, to: NodeId, parts: Vec<Bytes>) {
        let _ = self.send_spare(to, Lane::Work, Topic::Queues.mark(parts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_is_known_whose_it_is_stays_where_it_is() {
        for topic in [Topic::Catalog, Topic::Queues, Topic::Questions] {
            let frame = Bytes::from(topic.mark(vec![vec![7; 1000].into()]).concat());
            let at = frame.as_ptr();
            let (found, rest) = Topic::of(frame).unwrap();
            assert_eq!((found, rest.as_ptr(), &rest[..]), (topic, at, &[7; 1000][..]));
        }
        for unknown in [&[][..], &[0], &[2, 4]] {
            assert_eq!(Topic::of(Bytes::from_static(unknown)), None);
        }
    }
}
