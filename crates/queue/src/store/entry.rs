//! What a stored piece looks like: small parts, each with a checksum of its own where it is stored, so that damage
//! costs few messages. All numbers little-endian.
//!
//! ```text
//! header  how many messages u32, persistent u8, time of receipt u64; it is the first part and the last
//! group   number of its first message in the piece u32, how many u32, the messages as a block has them
//! ```

use super::Place;
use model::{Block, BlockBuilder, Ranges, Timestamp};

/// A group ends when it has so many bytes.
const GROUP_BYTES: usize = 512;
/// Bytes of a header.
const HEADER: usize = 13;
/// Bytes before a group's messages.
const GROUP: usize = 8;
/// The least that a message takes in a block, in bytes: its lengths and two empty names.
pub(super) const SMALLEST: u64 = 14;

/// A piece that is being put together.
#[derive(Debug)]
pub struct EntryBuilder {
    bytes: Vec<u8>,
    /// Where each part ends, but for the last.
    ends: Vec<usize>,
    count: u32,
    persistent: bool,
    received: Timestamp,
}

impl EntryBuilder {
    /// A piece without messages.
    pub fn new(persistent: bool, received: Timestamp) -> Self {
        Self {
            bytes: vec![0; HEADER],
            ends: vec![HEADER],
            count: 0,
            persistent,
            received,
        }
    }

    /// Adds messages `from..from + count` of the block.
    pub fn push(&mut self, block: &Block, from: usize, count: usize) {
        let mut at = from;
        while at < from + count {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&self.count.to_le_bytes());
            self.bytes.extend_from_slice(&[0; 4]);
            let mut taken: u32 = 0;
            while at < from + count && (taken == 0 || self.bytes.len() - start < GROUP_BYTES) {
                self.bytes.extend_from_slice(block.slice(at, 1));
                taken += 1;
                at += 1;
            }
            self.bytes[start + 4..start + GROUP].copy_from_slice(&taken.to_le_bytes());
            self.count += taken;
            self.ends.push(self.bytes.len());
        }
    }

    /// Nothing more comes: the headers say how much there is.
    pub fn finish(&mut self) {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&self.count.to_le_bytes());
        header[4] = u8::from(self.persistent);
        header[5..].copy_from_slice(&self.received.0.to_le_bytes());
        self.bytes[..HEADER].copy_from_slice(&header);
        self.bytes.extend_from_slice(&header);
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The parts, in order.
    pub fn parts(&self) -> Vec<&[u8]> {
        let ends = self.ends.iter().copied().chain([self.bytes.len()]);
        let mut start = 0;
        let part = |end| {
            let part = &self.bytes[start..end];
            start = end;
            part
        };
        ends.map(part).collect()
    }
}

/// The block that the entry in this place holds, from those of its parts that are as they were written, and at which
/// positions of it something else stands because a part is not. `None` if that cannot be told.
pub fn decode_entry<'a>(
    place: Place,
    parts: impl Iterator<Item = Option<&'a [u8]>>,
) -> Option<(Block, Ranges)> {
    let parts: Vec<Option<&[u8]>> = parts.collect();
    let (first, rest) = parts.split_first()?;
    let (last, groups) = rest.split_last()?;
    let header: &[u8; HEADER] = (*first).or(*last)?.try_into().ok()?;
    let count = u64::from(u32_at(header, 0)?);
    if count > u64::from(place.length) / SMALLEST {
        return None;
    }
    let received = Timestamp(u64::from_le_bytes(*header[5..].first_chunk()?));
    let mut bytes = Vec::with_capacity(groups.iter().flatten().map(|group| group.len()).sum());
    let (mut next, mut damaged) = (0, Ranges::new());
    for group in groups.iter().flatten() {
        let (first, taken) = (u64::from(u32_at(group, 0)?), u64::from(u32_at(group, 4)?));
        if first < next || first + taken > count {
            return None;
        }
        stand_in(first - next, &mut bytes);
        if next < first {
            damaged.push_span(next, first - 1);
        }
        bytes.extend_from_slice(group.get(GROUP..)?);
        next = first + taken;
    }
    stand_in(count - next, &mut bytes);
    if next < count {
        damaged.push_span(next, count - 1);
    }
    let block = Block::from_bytes(bytes, header[4] == 1, received)?;
    (block.len() as u64 == count).then_some((block, damaged))
}

/// Messages without anything in them, so that those after them keep their positions.
fn stand_in(count: u64, bytes: &mut Vec<u8>) {
    if count == 0 {
        return;
    }
    let mut builder = BlockBuilder::new();
    (0..count).for_each(|_| builder.push(b"", b"", &[0, 0], b""));
    bytes.extend_from_slice(builder.finish(false, Timestamp(0)).bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(sizes: &[usize]) -> Block {
        let mut builder = BlockBuilder::new();
        for (at, size) in sizes.iter().enumerate() {
            builder.push(b"x", b"key", &[0, 0], &vec![at as u8; *size]);
        }
        builder.finish(true, Timestamp(7))
    }

    fn place(builder: &EntryBuilder) -> Place {
        Place {
            segment: 1,
            offset: 0,
            length: builder.bytes.len() as u32,
        }
    }

    #[test]
    fn each_damaged_part_costs_its_messages_only() {
        let sizes: Vec<usize> = (0..200).map(|at| at % 90).chain([4000, 3]).collect();
        let block = block(&sizes);
        let mut builder = EntryBuilder::new(true, Timestamp(7));
        builder.push(&block, 0, 100);
        builder.push(&block, 100, sizes.len() - 100);
        builder.finish();
        let parts = builder.parts();
        assert!(parts.len() > 10);
        for lost in 0..=parts.len() {
            let read = parts
                .iter()
                .enumerate()
                .map(|(at, part)| (at != lost).then_some(*part));
            let (again, damaged) = decode_entry(place(&builder), read).unwrap();
            assert_eq!(
                (again.len(), again.persistent(), again.received()),
                (sizes.len(), true, Timestamp(7))
            );
            for at in (0..sizes.len()).filter(|at| !damaged.contains(*at as u64)) {
                assert_eq!(again.message(at).body, block.message(at).body);
            }
            let header = lost == 0 || lost + 1 >= parts.len();
            assert_eq!(damaged.is_empty(), header, "part {lost}");
            assert!(
                damaged.count() <= 35,
                "part {lost} costs {} messages",
                damaged.count()
            );
        }
    }

    #[test]
    fn what_is_no_entry_is_told() {
        let nothing: [Option<&[u8]>; 2] = [None, None];
        let place = Place {
            segment: 1,
            offset: 0,
            length: 100,
        };
        assert!(decode_entry(place, nothing.into_iter()).is_none());
        let mut header = [0; HEADER];
        header[0] = 200;
        let parts: [Option<&[u8]>; 2] = [Some(&header), None];
        assert!(
            decode_entry(place, parts.into_iter()).is_none(),
            "more messages than bytes"
        );
    }
}
