//! The entries of a chunk: messages, and sub-batches of messages that their publisher has put together, perhaps compressed.
//!
//! ```text
//! message     0 and length, 31 bits | message
//! sub-batch   1, compression, 4 bits of nothing: u8 | messages u16 | length before compression u32 | length u32 | messages
//! ```
//!
//! The first bit tells them apart. In a sub-batch, once it is not compressed, stand messages in the first form.

use super::compression::Compression;
use super::{ChunkError, ENTRIES_BYTES_MOST};

/// What stands before a message, in bytes.
pub const MESSAGE_HEADER: usize = 4;
/// What stands before the messages of a sub-batch, in bytes.
pub const SUB_BATCH_HEADER: usize = 11;

/// Set in the first byte of a sub-batch.
const SUB_BATCH: u8 = 0x80;

/// One entry of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A message, mostly sections of AMQP 1.0; nobody checks what.
    Message(&'a [u8]),
    /// Several ones.
    SubBatch(SubBatch<'a>),
}

impl<'a> Entry<'a> {
    /// How many messages it is.
    pub fn records(&self) -> u32 {
        match self {
            Self::Message(_) => 1,
            Self::SubBatch(batch) => u32::from(batch.records),
        }
    }

    /// Reads the entry at the beginning of these bytes, and says what follows it.
    ///
    /// # Errors
    /// It is cut, a sub-batch has no message, or nobody knows its compression.
    pub fn read(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), ChunkError> {
        match bytes.first() {
            Some(first) if first & SUB_BATCH != 0 => {
                let (batch, rest) = SubBatch::read(bytes)?;
                Ok((Self::SubBatch(batch), rest))
            }
            _ => message(bytes).map(|(message, rest)| (Self::Message(message), rest)),
        }
    }

    /// Appends it as it stands in a chunk. What the four bits of nothing were is not kept.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Message(message) => {
                out.extend_from_slice(&(message.len() as u32).to_be_bytes());
                out.extend_from_slice(message);
            }
            Self::SubBatch(batch) => {
                out.push(SUB_BATCH | batch.compression.to_bits() << 4);
                out.extend_from_slice(&batch.records.to_be_bytes());
                out.extend_from_slice(&batch.uncompressed_bytes.to_be_bytes());
                out.extend_from_slice(&(batch.body.len() as u32).to_be_bytes());
                out.extend_from_slice(batch.body);
            }
        }
    }

    /// Its length in a chunk, in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Message(message) => MESSAGE_HEADER + message.len(),
            Self::SubBatch(batch) => SUB_BATCH_HEADER + batch.body.len(),
        }
    }

    /// False: there is at least what says how long it is.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// Messages that their publisher has put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubBatch<'a> {
    /// How the body is compressed.
    pub compression: Compression,
    /// How many messages it has; at least one.
    pub records: u16,
    /// The length of the body before it was compressed, in bytes, as the publisher says.
    pub uncompressed_bytes: u32,
    /// The messages, each with its length before it, compressed as a whole.
    pub body: &'a [u8],
}

impl<'a> SubBatch<'a> {
    /// Reads the sub-batch at the beginning of these bytes, and says what follows it.
    ///
    /// # Errors
    /// As [`Entry::read`].
    pub fn read(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), ChunkError> {
        let (head, rest) = bytes
            .split_first_chunk::<SUB_BATCH_HEADER>()
            .ok_or(ChunkError::Entry)?;
        let [first, r0, r1, u0, u1, u2, u3, l0, l1, l2, l3] = *head;
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let (body, rest) = rest.split_at_checked(length).ok_or(ChunkError::Entry)?;
        let batch = Self {
            compression: Compression::from_bits(first >> 4 & 0b111).ok_or(ChunkError::Compression)?,
            records: u16::from_be_bytes([r0, r1]),
            uncompressed_bytes: u32::from_be_bytes([u0, u1, u2, u3]),
            body,
        };
        if batch.records == 0 {
            return Err(ChunkError::Counts);
        }
        Ok((batch, rest))
    }

    /// Checks the messages if they are not compressed; those that are nobody looks at before they are read.
    ///
    /// # Errors
    /// They are others than it says.
    pub fn check(&self) -> Result<(), ChunkError> {
        match self.compression {
            Compression::None => check_messages(self.body, self.records),
            _ => Ok(()),
        }
    }

    /// Its messages. `room` is used if they have to be decompressed, and is as large as they are afterwards: at most `most`
    /// bytes, see [`super::UNCOMPRESSED_MOST`].
    ///
    /// # Errors
    /// It cannot be decompressed, is another length or number of messages then than it says, or would be longer than `most`.
    pub fn messages<'b>(&self, room: &'b mut Vec<u8>, most: usize) -> Result<Messages<'b>, ChunkError>
    where
        'a: 'b,
    {
        let bytes = match self.compression {
            Compression::None => self.body,
            compression => {
                compression.decompress(self.body, self.uncompressed_bytes as usize, most, room)?;
                room.as_slice()
            }
        };
        check_messages(bytes, self.records)?;
        Ok(Messages { rest: bytes })
    }
}

/// The messages of a sub-batch, which were checked.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (message, rest) = message(self.rest).ok()?;
        self.rest = rest;
        Some(message)
    }
}

/// The entries of a chunk that was checked, each with the offset of its first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Entries<'a> {
    pub(super) fn new(section: &'a [u8], first_offset: u64) -> Self {
        Self {
            rest: section,
            offset: first_offset,
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (u64, Entry<'a>);

    fn next(&mut self) -> Option<(u64, Entry<'a>)> {
        let (entry, rest) = Entry::read(self.rest).ok()?;
        let offset = self.offset;
        self.rest = rest;
        self.offset += u64::from(entry.records());
        Some((offset, entry))
    }
}

/// Checks that these bytes are so many entries with so many messages, and nothing else.
pub(super) fn check(mut section: &[u8], entries: u16, records: u32) -> Result<(), ChunkError> {
    let mut found = 0_u64;
    for _ in 0..entries {
        let (entry, rest) = Entry::read(section)?;
        if let Entry::SubBatch(batch) = &entry {
            batch.check()?;
        }
        found += u64::from(entry.records());
        section = rest;
    }
    if !section.is_empty() {
        return Err(ChunkError::Entry);
    }
    if found == u64::from(records) {
        Ok(())
    } else {
        Err(ChunkError::Counts)
    }
}

/// Checks that these bytes are so many messages and nothing else.
fn check_messages(mut bytes: &[u8], records: u16) -> Result<(), ChunkError> {
    for _ in 0..records {
        if bytes.is_empty() {
            return Err(ChunkError::Counts);
        }
        (_, bytes) = message(bytes)?;
    }
    if bytes.is_empty() {
        Ok(())
    } else {
        Err(ChunkError::Counts)
    }
}

/// The message at the beginning of these bytes, and what follows it.
fn message(bytes: &[u8]) -> Result<(&[u8], &[u8]), ChunkError> {
    let (length, rest) = bytes
        .split_first_chunk::<MESSAGE_HEADER>()
        .ok_or(ChunkError::Entry)?;
    if length[0] & SUB_BATCH != 0 {
        return Err(ChunkError::Nested);
    }
    let length = u32::from_be_bytes(*length) as usize;
    if length > ENTRIES_BYTES_MOST {
        return Err(ChunkError::TooLarge);
    }
    rest.split_at_checked(length).ok_or(ChunkError::Entry)
}
