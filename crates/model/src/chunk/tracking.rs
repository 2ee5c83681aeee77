//! What a stream keeps for its clients beside messages: how far a consumer has read, and the last number of a publisher. It
//! stands in the chunks themselves, so that it is written, replicated and synced with them:
//!
//! ```text
//! in trailers and deltas   kind u8 (0 sequence, 1 offset) | length u8 | reference | number u64
//! in snapshots             the same, with the time u64 before the number of a sequence
//! ```
//!
//! A snapshot is written at the beginning of each segment, so that earlier ones can go.

use super::{ChunkError, TRACKING_BYTES_MOST};
use crate::machine::Timestamp;
use std::collections::BTreeMap;

/// The longest reference, in bytes.
pub const REFERENCE_BYTES: usize = 255;

const SEQUENCE: u8 = 0;
const OFFSET: u8 = 1;

/// Something that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked<'a> {
    /// The publisher of this reference has come to this publishing id.
    Sequence {
        /// The publisher's name for itself; at most [`REFERENCE_BYTES`].
        reference: &'a [u8],
        /// Its last id.
        id: u64,
    },
    /// The consumer of this reference has come to this offset.
    Offset {
        /// The consumer's name for itself; at most [`REFERENCE_BYTES`].
        reference: &'a [u8],
        /// As it said.
        offset: u64,
    },
}

impl<'a> Tracked<'a> {
    /// Appends it as it stands in a trailer. Nothing if the reference is longer than it may be.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (kind, reference, number) = match *self {
            Self::Sequence { reference, id } => (SEQUENCE, reference, id),
            Self::Offset { reference, offset } => (OFFSET, reference, offset),
        };
        if let Ok(length) = u8::try_from(reference.len()) {
            out.extend_from_slice(&[kind, length]);
            out.extend_from_slice(reference);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (kind, reference, rest) = head(bytes)?;
        let (number, rest) = number(rest)?;
        let tracked = match kind {
            SEQUENCE => Self::Sequence {
                reference,
                id: number,
            },
            OFFSET => Self::Offset {
                reference,
                offset: number,
            },
            _ => return None,
        };
        Some((tracked, rest))
    }
}

/// All that is tracked. Its size is bounded by whoever adds to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracking {
    /// The publishing id that each publisher has come to, and when.
    sequences: BTreeMap<Vec<u8>, Sequence>,
    /// The offset that each consumer has come to.
    offsets: BTreeMap<Vec<u8>, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sequence {
    id: u64,
    at: Timestamp,
}

/// [`Tracking`] as bytes.
pub type Snapshot = Vec<u8>;

impl Tracking {
    /// Takes over what a chunk of this time has tracked.
    pub fn track(&mut self, tracked: Tracked<'_>, at: Timestamp) {
        match tracked {
            Tracked::Sequence { reference, id } => {
                let sequence = Sequence { id, at };
                match self.sequences.get_mut(reference) {
                    Some(known) => *known = sequence,
                    None => _ = self.sequences.insert(reference.to_vec(), sequence),
                }
            }
            Tracked::Offset { reference, offset } => match self.offsets.get_mut(reference) {
                Some(known) => *known = offset,
                None => _ = self.offsets.insert(reference.to_vec(), offset),
            },
        }
    }

    /// The last publishing id of this publisher.
    pub fn sequence(&self, reference: &[u8]) -> Option<u64> {
        self.sequences.get(reference).map(|sequence| sequence.id)
    }

    /// The offset of this consumer.
    pub fn offset(&self, reference: &[u8]) -> Option<u64> {
        self.offsets.get(reference).copied()
    }

    /// The consumers with their offsets, in the order of their references.
    pub fn offsets(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.offsets
            .iter()
            .map(|(reference, offset)| (reference.as_slice(), *offset))
    }

    /// The publishers with their last publishing ids, in the order of their references.
    pub fn sequences(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.sequences
            .iter()
            .map(|(reference, sequence)| (reference.as_slice(), sequence.id))
    }

    /// How many publishers it knows.
    pub fn sequences_len(&self) -> usize {
        self.sequences.len()
    }

    /// How many consumers it knows.
    pub fn offsets_len(&self) -> usize {
        self.offsets.len()
    }

    /// Of the publishers that are worth the least, by their references, that goes which has been silent for the longest time.
    pub fn forget_oldest_sequence<W: Ord>(&mut self, worth: impl Fn(&[u8]) -> W) {
        let worth = |(reference, sequence): &(&Vec<u8>, &Sequence)| (worth(reference), sequence.at);
        let oldest = self.sequences.iter().min_by_key(worth);
        if let Some(reference) = oldest.map(|(reference, _)| reference.clone()) {
            self.sequences.remove(&reference);
        }
    }

    /// The consumer that is furthest behind goes.
    pub fn forget_lowest_offset(&mut self) {
        let lowest = self.offsets.iter().min_by_key(|(_, offset)| **offset);
        if let Some(reference) = lowest.map(|(reference, _)| reference.clone()) {
            self.offsets.remove(&reference);
        }
    }

    /// Consumers whose offset is below the first one that the stream still has are forgotten, as RabbitMQ does when it writes
    /// a snapshot.
    pub fn forget_offsets_below(&mut self, first: u64) {
        self.offsets.retain(|_, offset| *offset >= first);
    }

    /// As bytes, for the entry of a chunk of the kind [`super::ChunkKind::TrackingSnapshot`].
    pub fn to_snapshot(&self) -> Snapshot {
        let mut out = Vec::new();
        for (reference, sequence) in &self.sequences {
            out.extend_from_slice(&[SEQUENCE, reference.len() as u8]);
            out.extend_from_slice(reference);
            out.extend_from_slice(&sequence.at.0.to_be_bytes());
            out.extend_from_slice(&sequence.id.to_be_bytes());
        }
        for (reference, offset) in self.offsets() {
            Tracked::Offset { reference, offset }.write(&mut out);
        }
        out
    }

    /// What [`Tracking::to_snapshot`] wrote. What cannot be read and all behind it is left out; see [`check_snapshot`].
    pub(super) fn from_snapshot(mut bytes: &[u8]) -> Self {
        let mut tracking = Self::default();
        while let Some((tracked, at, rest)) = read_of_snapshot(bytes) {
            tracking.track(tracked, at);
            bytes = rest;
        }
        tracking
    }
}

/// What has changed, one after the other, until the end of the bytes or of what can be read.
pub(super) fn read_delta(mut bytes: &[u8]) -> impl Iterator<Item = Tracked<'_>> {
    std::iter::from_fn(move || {
        let (tracked, rest) = Tracked::read(bytes)?;
        bytes = rest;
        Some(tracked)
    })
}

/// The one entry of a chunk that is about tracking: what stands behind its length.
pub(super) fn entry(section: &[u8]) -> &[u8] {
    section.get(super::entries::MESSAGE_HEADER..).unwrap_or_default()
}

/// Checks that there is one entry and nothing else, with what `inside` takes; or none at all.
pub(super) fn check(
    section: &[u8],
    entries: u16,
    inside: fn(&[u8]) -> Result<(), ChunkError>,
) -> Result<(), ChunkError> {
    let (length, bytes) = section.split_first_chunk().ok_or(ChunkError::Tracking)?;
    if entries != 1
        || u32::from_be_bytes(*length) as usize != bytes.len()
        || bytes.len() > TRACKING_BYTES_MOST
    {
        return Err(ChunkError::Tracking);
    }
    inside(bytes)
}

pub(super) fn check_delta(mut bytes: &[u8]) -> Result<(), ChunkError> {
    while !bytes.is_empty() {
        (_, bytes) = Tracked::read(bytes).ok_or(ChunkError::Tracking)?;
    }
    Ok(())
}

pub(super) fn check_snapshot(mut bytes: &[u8]) -> Result<(), ChunkError> {
    while !bytes.is_empty() {
        (_, _, bytes) = read_of_snapshot(bytes).ok_or(ChunkError::Tracking)?;
    }
    Ok(())
}

fn read_of_snapshot(bytes: &[u8]) -> Option<(Tracked<'_>, Timestamp, &[u8])> {
    let (kind, reference, rest) = head(bytes)?;
    match kind {
        SEQUENCE => {
            let (at, rest) = number(rest)?;
            let (id, rest) = number(rest)?;
            Some((Tracked::Sequence { reference, id }, Timestamp(at), rest))
        }
        _ => Tracked::read(bytes).map(|(tracked, rest)| (tracked, Timestamp(0), rest)),
    }
}

fn head(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([kind, length], rest) = bytes.split_first_chunk()?;
    let (reference, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((*kind, reference, rest))
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), rest))
}
