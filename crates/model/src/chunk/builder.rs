//! Putting a chunk together. Entries are appended where they stay: a chunk is copied nowhere before it is written, unless it has
//! a filter, for which room is made in front of the entries at the end.

use super::batch::Batch;
use super::entries::{Entry, SubBatch};
use super::filter::FilterBits;
use super::tracking::{Tracked, Tracking};
use super::{ChunkError, ChunkKind, ENTRIES_BYTES_MOST, HEADER_BYTES, Header, checksum};
use crate::machine::Timestamp;

/// A chunk begins with room for what the one before it had, but not for more bytes.
const ROOM_MOST: usize = 1 << 20;

/// A chunk of messages that is being made. It is used again and again.
#[derive(Debug)]
pub struct ChunkBuilder {
    /// Room for the header, then entries.
    bytes: Vec<u8>,
    entries: u16,
    records: u32,
    filter: FilterBits,
    trailer: Vec<u8>,
    /// How long the entries of the chunk before were, in bytes: the next one is often as large, and what grows step by step is
    /// copied at each.
    room: usize,
}

/// Why an entry was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// It does not fit into this chunk any more: the chunk is to be finished first.
    Full,
    /// It fits into no chunk.
    TooLarge,
    /// A sub-batch that is none.
    Invalid(ChunkError),
}

impl ChunkBuilder {
    /// For chunks with filters of this size, in bytes ([`super::FILTER_SIZES`]).
    pub fn new(filter_size: u8) -> Self {
        Self {
            bytes: vec![0; HEADER_BYTES],
            entries: 0,
            records: 0,
            filter: FilterBits::new(filter_size),
            trailer: Vec::new(),
            room: 0,
        }
    }

    /// Appends a message with its filter value.
    ///
    /// # Errors
    /// It was not taken.
    pub fn message(&mut self, value: Option<&[u8]>, message: &[u8]) -> Result<(), EntryError> {
        self.push(value, Entry::Message(message))
    }

    /// Appends a sub-batch as it is. Compressed ones are not looked into.
    ///
    /// # Errors
    /// It was not taken.
    pub fn sub_batch(&mut self, value: Option<&[u8]>, batch: SubBatch<'_>) -> Result<(), EntryError> {
        batch.check().map_err(EntryError::Invalid)?;
        self.push(value, Entry::SubBatch(batch))
    }

    /// Appends entries of a batch from number `from` on, until the batch ends, or the chunk has `most` bytes of entries or as
    /// many entries as it may have. An empty chunk takes one, however large. Returns the number of the first entry that was
    /// not taken.
    pub fn batch(&mut self, batch: &Batch, from: usize, most: usize) -> usize {
        let room = most.min(ENTRIES_BYTES_MOST).saturating_sub(self.entries_bytes());
        let count = usize::from(u16::MAX - self.entries);
        let mut to = batch.fitting(from, room, count);
        if to == from && self.entries == 0 && from < batch.len() {
            to = from + 1;
        }
        let records = batch.records_of(from, to);
        let Some(sum) = self.records.checked_add(records) else {
            return from;
        };
        if to == from {
            return from;
        }
        if self.entries == 0 {
            self.bytes.reserve(self.room);
        }
        (self.entries, self.records) = (self.entries + (to - from) as u16, sum);
        self.bytes.extend_from_slice(batch.section(from, to));
        if batch.has_values() {
            batch
                .iter()
                .take(to)
                .skip(from)
                .for_each(|it| self.filter.add(it.value));
        } else {
            self.filter.add(None);
        }
        to
    }

    fn push(&mut self, value: Option<&[u8]>, entry: Entry<'_>) -> Result<(), EntryError> {
        if entry.len() > ENTRIES_BYTES_MOST {
            return Err(EntryError::TooLarge);
        }
        let (Some(entries), Some(records)) = (
            self.entries.checked_add(1),
            self.records.checked_add(entry.records()),
        ) else {
            return Err(EntryError::Full);
        };
        if self.entries_bytes() + entry.len() > ENTRIES_BYTES_MOST {
            return Err(EntryError::Full);
        }
        (self.entries, self.records) = (entries, records);
        self.filter.add(value);
        entry.write(&mut self.bytes);
        Ok(())
    }

    /// Something that is tracked goes with the chunk, in its trailer.
    pub fn track(&mut self, tracked: Tracked<'_>) {
        tracked.write(&mut self.trailer);
    }

    /// How many entries are there.
    pub fn entries(&self) -> u16 {
        self.entries
    }

    /// How many messages are in them.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// The length of the entries, in bytes.
    pub fn entries_bytes(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    /// True if there is nothing to be written.
    pub fn is_empty(&self) -> bool {
        self.entries == 0 && self.trailer.is_empty()
    }

    /// The chunk; the builder is empty afterwards. Without an entry it is a [`ChunkKind::TrackingDelta`] of what was tracked.
    pub fn finish(&mut self, at: Timestamp, epoch: u64, first_offset: u64) -> Vec<u8> {
        let kind = if self.entries > 0 {
            ChunkKind::User
        } else {
            let delta = std::mem::take(&mut self.trailer);
            Entry::Message(&delta).write(&mut self.bytes);
            self.entries = 1;
            ChunkKind::TrackingDelta
        };
        let header = Header {
            kind,
            entries: self.entries,
            records: self.records,
            timestamp: at,
            epoch,
            first_offset,
            crc: checksum(&self.bytes[HEADER_BYTES..]),
            entries_bytes: self.entries_bytes() as u32,
            trailer_bytes: self.trailer.len() as u32,
            filter_bytes: self.filter.bytes().len() as u8,
        };
        self.room = self.entries_bytes().min(ROOM_MOST);
        let mut chunk = std::mem::replace(&mut self.bytes, vec![0; HEADER_BYTES]);
        chunk[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        if header.filter_bytes > 0 {
            chunk.splice(HEADER_BYTES..HEADER_BYTES, self.filter.bytes().iter().copied());
        }
        chunk.append(&mut self.trailer);
        self.filter.clear();
        (self.entries, self.records) = (0, 0);
        chunk
    }
}

impl Tracking {
    /// All that is tracked as a chunk of its own, before the message of this offset.
    pub fn to_chunk(&self, at: Timestamp, epoch: u64, first_offset: u64) -> Vec<u8> {
        let mut section = Vec::new();
        Entry::Message(&self.to_snapshot()).write(&mut section);
        let header = Header {
            kind: ChunkKind::TrackingSnapshot,
            entries: 1,
            records: 0,
            timestamp: at,
            epoch,
            first_offset,
            crc: checksum(&section),
            entries_bytes: section.len() as u32,
            trailer_bytes: 0,
            filter_bytes: 0,
        };
        let mut chunk = header.to_bytes().to_vec();
        chunk.append(&mut section);
        chunk
    }
}
