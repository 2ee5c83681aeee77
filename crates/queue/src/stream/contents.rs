//! What a stream's machine has, apart from chunks: enough to go on behind the last one. In bytes it is what a member of a group
//! that lacks entries is sent, and what a checkpoint says.
//!
//! ```text
//! version u8 | epoch u64 | time of the last chunk u64 | next offset u64 | first offset of the segment that is written to u64
//! | its bytes u64 | all that is tracked, as a chunk
//! ```
//!
//! All numbers are little-endian.

use super::Stream;
use super::segments::{Segment, Segments};
use crate::ends::Ends;
use model::chunk::{Chunk, Tracking};
use model::{Journaled, Timestamp};

const VERSION: u8 = 1;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    epoch: u64,
    last_time: Timestamp,
    next_offset: u64,
    /// Of the segment that is written to.
    first: u64,
    bytes: u64,
    tracking: Tracking,
}

impl Contents {
    /// The offset of the next message.
    pub fn next_offset(&self) -> u64 {
        self.next_offset
    }
}

impl Journaled for Contents {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        let numbers = [
            self.epoch,
            self.last_time.0,
            self.next_offset,
            self.first,
            self.bytes,
        ];
        numbers
            .iter()
            .for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        let chunk = self
            .tracking
            .to_chunk(self.last_time, self.epoch, self.next_offset);
        out.extend_from_slice(&chunk);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[VERSION], mut rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let mut number = || {
            let (number, behind) = rest.split_first_chunk()?;
            rest = behind;
            Some(u64::from_le_bytes(*number))
        };
        let (epoch, last_time, next_offset, first, bytes) =
            (number()?, number()?, number()?, number()?, number()?);
        let chunk = Chunk::read(rest).ok()?;
        let is_whole = chunk.bytes().len() == rest.len() && first <= next_offset;
        Some(Self {
            epoch,
            last_time: Timestamp(last_time),
            next_offset,
            first,
            bytes,
            tracking: chunk.snapshot().filter(|_| is_whole)?,
        })
    }
}

impl<E: Ends> Stream<E> {
    /// What it has by the chunks that are on record.
    pub fn contents(&self) -> Contents {
        let active = self.segments.active();
        Contents {
            epoch: self.epoch,
            last_time: self.last_time,
            next_offset: self.next_offset,
            first: active.first,
            bytes: active.bytes,
            tracking: self.tracking.clone(),
        }
    }

    /// It has this from now on, in the place of what it had: for a machine that nothing was asked of yet.
    pub fn restore(&mut self, contents: Contents) {
        let active = Segment {
            first: contents.first,
            next: contents.next_offset,
            bytes: contents.bytes,
            last: contents.last_time,
        };
        self.segments = Segments::written_to(active);
        self.epoch = contents.epoch;
        self.last_time = contents.last_time;
        self.next_offset = contents.next_offset;
        self.tracking = contents.tracking;
    }
}
