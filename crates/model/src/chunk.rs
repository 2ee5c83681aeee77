//! Chunks: what a stream is made of. A chunk is a batch of messages in the form in which it is written, replicated and sent to
//! readers, without being taken apart: RabbitMQ's format, so that the clients of its stream protocol read what they know.
//!
//! ```text
//! magic and version u8 (0x50) | kind u8 | entries u16 | records u32 | timestamp i64 | epoch u64 | first offset u64
//! | CRC-32 of the entries u32 | their length u32 | length of the trailer u32 | length of the filter u8 | 3 bytes of nothing
//! | filter | entries | trailer
//! ```
//!
//! All numbers are big-endian. An entry is one message or a sub-batch ([`entries`]), the filter says which filter values are
//! likely not there ([`filter`]), and the trailer is what is tracked ([`tracking`]). Readers are sent header and entries; the
//! header goes on naming the lengths of what they are not sent, as RabbitMQ's does.
//!
//! Two things differ from RabbitMQ's files, which no client sees: chunks of another kind than [`ChunkKind::User`] have no records
//! and take no offset, so that offsets are dense; and the filter's hash is our own.
//!
//! Reading order: this file, [`entries`], [`batch`], [`builder`], [`compression`], [`filter`], [`tracking`].

pub mod batch;
pub mod builder;
pub mod compression;
pub mod entries;
pub mod filter;
#[cfg(test)]
mod tests;
pub mod tracking;

pub use batch::{Batch, Publication};
pub use builder::{ChunkBuilder, EntryError};
pub use compression::{Compression, UNCOMPRESSED_MOST};
pub use entries::{Entries, Entry, Messages, SubBatch};
pub use filter::{FILTER_SIZES, FilterBits, Matcher};
pub use tracking::{REFERENCE_BYTES, Snapshot, Tracked, Tracking};

use crate::machine::Timestamp;
use std::fmt;

/// What every chunk begins with, in bytes.
pub const HEADER_BYTES: usize = 48;

/// Magic number 5 and version 0.
const MAGIC_AND_VERSION: u8 = 0x50;

/// The most bytes that a chunk's entries may have together. One entry alone may have so many, too.
pub const ENTRIES_BYTES_MOST: usize = 256 << 20;

/// The most bytes of a trailer, or of the entries of a chunk that is about tracking.
pub const TRACKING_BYTES_MOST: usize = 64 << 20;

/// What a chunk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Messages.
    User,
    /// What has changed of what is tracked; readers are not sent it.
    TrackingDelta,
    /// All that is tracked; readers are not sent it.
    TrackingSnapshot,
}

impl ChunkKind {
    fn to_byte(self) -> u8 {
        match self {
            Self::User => 0,
            Self::TrackingDelta => 1,
            Self::TrackingSnapshot => 2,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::User),
            1 => Some(Self::TrackingDelta),
            2 => Some(Self::TrackingSnapshot),
            _ => None,
        }
    }
}

/// What a chunk says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is for.
    pub kind: ChunkKind,
    /// How many entries it has.
    pub entries: u16,
    /// How many messages are in them: so many offsets it takes. 0 unless it is a [`ChunkKind::User`].
    pub records: u32,
    /// When it was made.
    pub timestamp: Timestamp,
    /// Whose leadership it was made in; rises with each leader.
    pub epoch: u64,
    /// The offset of its first message, or of the next one if it has none.
    pub first_offset: u64,
    /// CRC-32 (ISO-HDLC) of the entries.
    pub crc: u32,
    /// The length of the entries, in bytes.
    pub entries_bytes: u32,
    /// The length of the trailer, in bytes.
    pub trailer_bytes: u32,
    /// The length of the filter, in bytes: 0 or one of [`FILTER_SIZES`].
    pub filter_bytes: u8,
}

impl Header {
    /// The first [`HEADER_BYTES`] of a chunk.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = MAGIC_AND_VERSION;
        bytes[1] = self.kind.to_byte();
        bytes[2..4].copy_from_slice(&self.entries.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.records.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.timestamp.0.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.first_offset.to_be_bytes());
        bytes[32..36].copy_from_slice(&self.crc.to_be_bytes());
        bytes[36..40].copy_from_slice(&self.entries_bytes.to_be_bytes());
        bytes[40..44].copy_from_slice(&self.trailer_bytes.to_be_bytes());
        bytes[44] = self.filter_bytes;
        bytes
    }

    /// Reads the header at the beginning of these bytes, and checks what can be checked without the rest of the chunk. After
    /// this no length in it is above its limit, and no sum of them can overflow.
    ///
    /// # Errors
    /// The bytes are too few, or not the header of a chunk of this version.
    pub fn read(bytes: &[u8]) -> Result<Self, ChunkError> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(ChunkError::Cut)?;
        if bytes[0] != MAGIC_AND_VERSION {
            return Err(ChunkError::Magic);
        }
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(short(at)) << 16 | u32::from(short(at + 2));
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        let header = Self {
            kind: ChunkKind::from_byte(bytes[1]).ok_or(ChunkError::Kind)?,
            entries: short(2),
            records: word(4),
            timestamp: Timestamp(long(8)),
            epoch: long(16),
            first_offset: long(24),
            crc: word(32),
            entries_bytes: word(36),
            trailer_bytes: word(40),
            filter_bytes: bytes[44],
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<(), ChunkError> {
        let entries_most = match self.kind {
            ChunkKind::User => ENTRIES_BYTES_MOST,
            ChunkKind::TrackingDelta | ChunkKind::TrackingSnapshot => TRACKING_BYTES_MOST,
        };
        if self.entries_bytes as usize > entries_most || self.trailer_bytes as usize > TRACKING_BYTES_MOST {
            return Err(ChunkError::TooLarge);
        }
        if self.filter_bytes != 0 && !FILTER_SIZES.contains(&self.filter_bytes) {
            return Err(ChunkError::FilterSize);
        }
        if i64::try_from(self.timestamp.0).is_err() {
            return Err(ChunkError::Timestamp);
        }
        let is_user = self.kind == ChunkKind::User;
        // An entry is at least one message, and the least one has four bytes.
        let counts_fit = u32::from(self.entries) <= self.entries_bytes / 4
            && if is_user {
                u32::from(self.entries) <= self.records && self.entries > 0
            } else {
                self.records == 0
            };
        if !counts_fit {
            return Err(ChunkError::Counts);
        }
        match self.first_offset.checked_add(u64::from(self.records)) {
            Some(_) => Ok(()),
            None => Err(ChunkError::Counts),
        }
    }

    /// The offset of the next chunk's first message.
    pub fn next_offset(&self) -> u64 {
        self.first_offset.saturating_add(u64::from(self.records))
    }

    /// The whole chunk's length, in bytes.
    pub fn chunk_bytes(&self) -> usize {
        self.entries_at() + self.entries_bytes as usize + self.trailer_bytes as usize
    }

    /// Where in the chunk its entries begin.
    pub fn entries_at(&self) -> usize {
        HEADER_BYTES + usize::from(self.filter_bytes)
    }
}

/// A chunk where it lies. All of it was checked but what is inside compressed sub-batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    header: Header,
    bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Checks the chunk at the beginning of these bytes: every length and count, the checksum, each entry, also those in
    /// uncompressed sub-batches, and what is tracked. What follows the chunk is not looked at.
    ///
    /// # Errors
    /// It is none, or it is not as it was written.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ChunkError> {
        let header = Header::read(bytes)?;
        let bytes = bytes.get(..header.chunk_bytes()).ok_or(ChunkError::Cut)?;
        let chunk = Self { header, bytes };
        let entries = chunk.entries_section();
        if checksum(entries) != header.crc {
            return Err(ChunkError::Checksum);
        }
        match header.kind {
            ChunkKind::User => entries::check(entries, header.entries, header.records)?,
            ChunkKind::TrackingDelta => tracking::check(entries, header.entries, tracking::check_delta)?,
            ChunkKind::TrackingSnapshot => {
                tracking::check(entries, header.entries, tracking::check_snapshot)?;
            }
        }
        tracking::check_delta(chunk.trailer())?;
        Ok(chunk)
    }

    /// A chunk that was checked before, or made here: only that it is whole is looked at. `None` if it is not, or something
    /// stands behind it.
    pub fn trusted(bytes: &'a [u8]) -> Option<Self> {
        let header = Header::read(bytes).ok()?;
        (header.chunk_bytes() == bytes.len()).then_some(Self { header, bytes })
    }

    /// Checks what a reader is sent of a chunk: the header, which goes on naming the lengths of filter and trailer, and the
    /// entries behind it. Nothing may follow them.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn delivered(bytes: &'a [u8]) -> Result<(Header, Entries<'a>), ChunkError> {
        let header = Header::read(bytes)?;
        let entries = bytes.get(HEADER_BYTES..).unwrap_or_default();
        if entries.len() != header.entries_bytes as usize {
            return Err(ChunkError::Cut);
        }
        if checksum(entries) != header.crc {
            return Err(ChunkError::Checksum);
        }
        let section = match header.kind {
            ChunkKind::User => {
                entries::check(entries, header.entries, header.records)?;
                entries
            }
            ChunkKind::TrackingDelta | ChunkKind::TrackingSnapshot => &[],
        };
        Ok((header, Entries::new(section, header.first_offset)))
    }

    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All of it.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The checksum of the whole chunk, of the same kind as that of its entries, which are not read again if they are many.
    pub fn whole_checksum(&self) -> u32 {
        let entries = self.entries_section();
        if entries.len() < WORTH_COMBINING {
            return checksum(self.bytes);
        }
        let (before, after) = (self.header.entries_at(), self.header.entries_at() + entries.len());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.bytes[..before]);
        hasher.combine(&crc32fast::Hasher::new_with_initial_len(
            self.header.crc,
            entries.len() as u64,
        ));
        hasher.update(&self.bytes[after..]);
        hasher.finalize()
    }

    /// Which filter values may be there; empty if no entry has any.
    pub fn filter(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..self.header.entries_at()]
    }

    /// The entries as bytes: with the header in front of them, what a reader is sent.
    pub fn entries_section(&self) -> &'a [u8] {
        let at = self.header.entries_at();
        &self.bytes[at..at + self.header.entries_bytes as usize]
    }

    /// What has changed of what is tracked, as bytes.
    pub fn trailer(&self) -> &'a [u8] {
        &self.bytes[self.bytes.len() - self.header.trailer_bytes as usize..]
    }

    /// The entries with the offset of each one's first message. None if it is no [`ChunkKind::User`].
    pub fn entries(&self) -> Entries<'a> {
        let section = match self.header.kind {
            ChunkKind::User => self.entries_section(),
            ChunkKind::TrackingDelta | ChunkKind::TrackingSnapshot => &[],
        };
        Entries::new(section, self.header.first_offset)
    }

    /// What has changed of what is tracked: the trailer, and the entry of a [`ChunkKind::TrackingDelta`].
    pub fn tracked(&self) -> impl Iterator<Item = Tracked<'a>> + use<'a> {
        let entry = match self.header.kind {
            ChunkKind::TrackingDelta => tracking::entry(self.entries_section()),
            ChunkKind::User | ChunkKind::TrackingSnapshot => &[],
        };
        tracking::read_delta(entry).chain(tracking::read_delta(self.trailer()))
    }

    /// All that is tracked, if it is a [`ChunkKind::TrackingSnapshot`].
    pub fn snapshot(&self) -> Option<Tracking> {
        (self.header.kind == ChunkKind::TrackingSnapshot)
            .then(|| Tracking::from_snapshot(tracking::entry(self.entries_section())))
    }
}

/// From so many bytes on it costs less to combine a checksum with another one than to compute it again.
const WORTH_COMBINING: usize = 32 << 10;

/// The checksum of a chunk's entries: CRC-32 (ISO-HDLC).
pub fn checksum(entries: &[u8]) -> u32 {
    crc32fast::hash(entries)
}

/// Why bytes are not a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkError {
    /// They end too early.
    Cut,
    /// They begin with something else, or are of another version.
    Magic,
    /// No such kind of chunk.
    Kind,
    /// Something is larger than it may be.
    TooLarge,
    /// The filter has a size that none has.
    FilterSize,
    /// The time is before 1970.
    Timestamp,
    /// What it says of the number of its entries and messages is not so.
    Counts,
    /// The checksum is another one.
    Checksum,
    /// An entry is longer than what is left, or there is something behind the last one.
    Entry,
    /// A sub-batch in a sub-batch.
    Nested,
    /// A sub-batch of a compression that nobody knows.
    Compression,
    /// What is tracked cannot be read.
    Tracking,
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cut => "it ends too early",
            Self::Magic => "it does not begin like a chunk of this version",
            Self::Kind => "no such kind of chunk",
            Self::TooLarge => "a part of it is larger than it may be",
            Self::FilterSize => "its filter has a size that no filter has",
            Self::Timestamp => "its time is before 1970",
            Self::Counts => "it has another number of entries or messages than it says",
            Self::Checksum => "its checksum is wrong",
            Self::Entry => "an entry does not end where it should",
            Self::Nested => "there is a sub-batch in a sub-batch",
            Self::Compression => "a sub-batch is compressed in an unknown way",
            Self::Tracking => "what it tracks cannot be read",
        })
    }
}

impl std::error::Error for ChunkError {}
