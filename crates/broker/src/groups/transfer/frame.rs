//! What members of a group say to each other beside entries: frames of the bulk lane.
//!
//! ```text
//! version u8, incarnation of the sender u64, group u64, then what is said; numbers little-endian
//! ```

use bytes::Bytes;
use cluster::{GroupId, NodeId};

/// The version of frames that this node speaks.
const VERSION: u8 = 1;
/// Bytes before what is said.
const HEADER: usize = 17;

/// What a peer's member said, and nobody has looked at yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bulk {
    pub from: NodeId,
    /// The start of the peer's node in which it said so.
    pub incarnation: u64,
    pub said: Bytes,
}

/// Whose frame it is. `None` if it is none of a known version.
pub fn read_header(from: NodeId, frame: &Bytes) -> Option<(GroupId, Bulk)> {
    let number = |at: usize| {
        let bytes = frame.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    };
    if *frame.first()? != VERSION {
        return None;
    }
    let (incarnation, group) = (number(1)?, number(9)?);
    let said = frame.slice(HEADER..);
    Some((
        GroupId(group),
        Bulk {
            from,
            incarnation,
            said,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_another_version_and_one_that_is_cut_off_are_of_no_group() {
        let from = NodeId(2);
        let whole: Vec<u8> = [
            &[VERSION],
            &3_u64.to_le_bytes()[..],
            &7_u64.to_le_bytes(),
            b"said",
        ]
        .concat();
        let frame = Bytes::from(whole.clone());
        let (group, bulk) = read_header(from, &frame).unwrap();
        assert_eq!(
            (group, bulk.incarnation, &bulk.said[..]),
            (GroupId(7), 3, &b"said"[..])
        );
        assert!((0..HEADER).all(|end| read_header(from, &frame.slice(..end)).is_none()));
        let other = Bytes::from([&[VERSION + 1], &whole[1..]].concat());
        assert!(read_header(from, &other).is_none());
    }
}
