//! The log's bytes. All numbers are little-endian.
//!
//! ```text
//! file    = header page (4096 bytes, the header twice, in different sectors), blocks
//! header  = magic 8 | version u32 | crc u32 | sequence u64 | base u64 | salt u64 | size u64
//! block   = magic u32 | crc u32 | position u64 | length u32 | zero u32 | synced u64 | records
//! record  = length u32 | header crc u32 | payload crc u32 | kind u8 | zero 3 | journal's number u64 | payload
//! ```
//!
//! A position is an offset in the endless concatenation of all files' blocks; `base` is that of a file's first block.
//! One block is one write. Its `synced` says up to which position the log was known to be durable when it was written:
//! that is how recovery tells a torn tail from damage. All checksums of a file begin with its random salt, so what a
//! recycled file held before, or a client's message that imitates a block, is never taken for a block.
//! A record's header has a checksum of its own, so that damage to a payload can be attributed to its journal. Versions
//! 1 and 2 had no kinds; they are refused.

use super::{JournalId, Kind, Position};
use crc32fast::Hasher;

pub(crate) const VERSION: u32 = 3;
pub(crate) const FILE_HEADER: usize = 4096;
pub(crate) const BLOCK_HEADER: usize = 32;
pub(crate) const RECORD_HEADER: usize = 24;
/// Where in a record's header its journal stands.
const JOURNAL: usize = 12;
/// Largest payload of one record, in bytes; far above any message RabbitMQ accepts (512 MiB).
pub(crate) const MAX_RECORD: usize = 1 << 30;

const FILE_MAGIC: [u8; 8] = *b"LEVLOG\r\n";
const BLOCK_MAGIC: [u8; 4] = [0xb1, 0x0c, 0x4c, 0xe7];
const HEADER_COPIES: [usize; 2] = [0, 2048];
const HEADER_LENGTH: usize = 48;
/// Of version 1, which did not state the size.
const SHORT_HEADER_LENGTH: usize = 40;

/// What stands at the beginning of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// Rises by one with every file; also in the name.
    pub sequence: u64,
    /// Position of the file's first block.
    pub base: u64,
    pub salt: u64,
    /// How large the file was made, in bytes.
    pub size: u64,
}

/// Why a file header cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadHeader {
    Unreadable,
    Version(u32),
}

/// A verified block header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub length: u32,
    pub synced: u64,
}

/// A verified record header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub journal: JournalId,
    pub length: usize,
    header_crc: u32,
    payload_crc: u32,
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl FileHeader {
    /// The whole header page.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(HEADER_LENGTH);
        copy.extend_from_slice(&FILE_MAGIC);
        copy.extend_from_slice(&VERSION.to_le_bytes());
        copy.extend_from_slice(&[0; 4]);
        for number in [self.sequence, self.base, self.salt, self.size] {
            copy.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32fast::hash(&copy);
        copy[12..16].copy_from_slice(&crc.to_le_bytes());
        let mut page = vec![0; FILE_HEADER];
        for at in HEADER_COPIES {
            page[at..at + HEADER_LENGTH].copy_from_slice(&copy);
        }
        page
    }

    /// Reads whichever copy is intact.
    pub(crate) fn decode(page: &[u8]) -> Result<Self, BadHeader> {
        let mut outcome = Err(BadHeader::Unreadable);
        for at in HEADER_COPIES {
            match Self::decode_copy(page.get(at..at + HEADER_LENGTH).unwrap_or(&[])) {
                Err(BadHeader::Unreadable) => {}
                readable => outcome = readable,
            }
        }
        outcome
    }

    fn decode_copy(copy: &[u8]) -> Result<Self, BadHeader> {
        let bad = BadHeader::Unreadable;
        let version = u32_at(copy, 8).ok_or(bad)?;
        let length = match version {
            1 => SHORT_HEADER_LENGTH,
            _ => HEADER_LENGTH,
        };
        let mut bytes = copy.get(..length).ok_or(bad)?.to_vec();
        let crc = u32_at(&bytes, 12).ok_or(bad)?;
        bytes[12..16].fill(0);
        if bytes[..8] != FILE_MAGIC || crc32fast::hash(&bytes) != crc {
            return Err(bad);
        }
        if version != VERSION {
            return Err(BadHeader::Version(version));
        }
        let number = |at| u64_at(&bytes, at).ok_or(bad);
        Ok(Self {
            sequence: number(16)?,
            base: number(24)?,
            salt: number(32)?,
            size: number(40)?,
        })
    }
}

fn block_crc(salt: u64, header: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&header[8..]);
    hasher.finalize()
}

fn record_crc(salt: u64, position: u64, length: &[u8], journal: &[u8]) -> u32 {
    let mut bytes = [0; 20 + RECORD_HEADER - JOURNAL];
    bytes[..8].copy_from_slice(&salt.to_le_bytes());
    bytes[8..16].copy_from_slice(&position.to_le_bytes());
    bytes[16..20].copy_from_slice(length);
    bytes[20..].copy_from_slice(journal);
    crc32fast::hash(&bytes)
}

fn payload_crc(header_crc: u32, payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(header_crc);
    hasher.update(payload);
    hasher.finalize()
}

/// Makes room for a block's header at the start of an empty buffer.
pub(crate) fn begin_block(block: &mut Vec<u8>) {
    block.resize(BLOCK_HEADER, 0);
}

/// Begins a record at the end of `block`: its header, without checksums. The payload is appended by the caller, who then
/// calls [`end_record`] with what this returned.
pub(crate) fn begin_record(block: &mut Vec<u8>, journal: JournalId) -> usize {
    let at = block.len();
    let mut header = [0; RECORD_HEADER];
    header[JOURNAL] = journal.kind.0;
    header[JOURNAL + 4..].copy_from_slice(&journal.number.to_le_bytes());
    block.extend_from_slice(&header);
    at
}

/// Fills in the length of the record that began at `at`.
pub(crate) fn end_record(block: &mut [u8], at: usize) {
    let length = (block.len() - at - RECORD_HEADER) as u32;
    block[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Payload length of a record in a block not yet sealed.
pub(crate) fn unsealed_payload(block: &[u8], at: usize) -> Option<&[u8]> {
    let length = u32_at(block, at)? as usize;
    block.get(at + RECORD_HEADER..at + RECORD_HEADER + length)
}

/// Fills in all checksums of a finished block and shows each record to `each`.
pub(crate) fn seal_block(
    block: &mut [u8],
    salt: u64,
    position: u64,
    synced: u64,
    mut each: impl FnMut(JournalId, Position, &[u8]),
) {
    let mut at = BLOCK_HEADER;
    while at + RECORD_HEADER <= block.len() {
        let here = position + at as u64;
        let (header, rest) = block[at..].split_at_mut(RECORD_HEADER);
        let length = u32_at(header, 0).unwrap_or(0) as usize;
        let payload = &rest[..length.min(rest.len())];
        let header_crc = record_crc(salt, here, &header[..4], &header[JOURNAL..]);
        header[4..8].copy_from_slice(&header_crc.to_le_bytes());
        header[8..12].copy_from_slice(&payload_crc(header_crc, payload).to_le_bytes());
        each(journal_of(header), Position(here), payload);
        at += RECORD_HEADER + length;
    }
    let length = (block.len() - BLOCK_HEADER) as u32;
    block[..4].copy_from_slice(&BLOCK_MAGIC);
    block[8..16].copy_from_slice(&position.to_le_bytes());
    block[16..20].copy_from_slice(&length.to_le_bytes());
    block[20..24].fill(0);
    block[24..32].copy_from_slice(&synced.to_le_bytes());
    let crc = block_crc(salt, &block[..BLOCK_HEADER]);
    block[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// The block header at the start of `bytes`, if one that belongs to this file and this position stands there.
pub(crate) fn block_header(bytes: &[u8], salt: u64, position: u64) -> Option<BlockHeader> {
    let header: &[u8; BLOCK_HEADER] = bytes.first_chunk()?;
    if header[..4] != BLOCK_MAGIC || u64_at(header, 8)? != position {
        return None;
    }
    if u32_at(header, 4)? != block_crc(salt, header) {
        return None;
    }
    Some(BlockHeader {
        length: u32_at(header, 16)?,
        synced: u64_at(header, 24)?,
    })
}

/// Offset of the next place at or after `from` where a block might begin.
pub(crate) fn next_block_candidate(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == BLOCK_MAGIC[0])?;
        if bytes[at..].starts_with(&BLOCK_MAGIC) {
            return Some(at);
        }
        at += 1;
    }
}

/// The record header at the start of `bytes`, if it is intact.
pub(crate) fn record_header(bytes: &[u8], salt: u64, position: u64) -> Option<RecordHeader> {
    let header: &[u8; RECORD_HEADER] = bytes.first_chunk()?;
    let header_crc = u32_at(header, 4)?;
    if header_crc != record_crc(salt, position, &header[..4], &header[JOURNAL..]) {
        return None;
    }
    Some(RecordHeader {
        journal: journal_of(header),
        length: u32_at(header, 0)? as usize,
        header_crc,
        payload_crc: u32_at(header, 8)?,
    })
}

/// The journal that a record's header names.
pub(crate) fn journal_of(header: &[u8]) -> JournalId {
    let kind = header.get(JOURNAL).copied().unwrap_or_default();
    JournalId::new(Kind(kind), u64_at(header, JOURNAL + 4).unwrap_or_default())
}

impl RecordHeader {
    /// True if this is the payload that was written under this header.
    pub(crate) fn matches(&self, payload: &[u8]) -> bool {
        payload.len() == self.length && payload_crc(self.header_crc, payload) == self.payload_crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_loss_of_either_copy() {
        let header = FileHeader {
            sequence: 7,
            base: 1 << 40,
            salt: 0xfeed,
            size: 1 << 20,
        };
        let page = header.encode();
        for lost in HEADER_COPIES {
            let mut page = page.clone();
            page[lost..lost + 512].fill(0);
            assert_eq!(FileHeader::decode(&page), Ok(header));
        }
        assert_eq!(FileHeader::decode(&page[..100]), Ok(header));
        assert_eq!(FileHeader::decode(&page[..47]), Err(BadHeader::Unreadable));
    }

    #[test]
    fn another_version_is_named() {
        for (version, length) in [(1, SHORT_HEADER_LENGTH), (2, HEADER_LENGTH), (9, HEADER_LENGTH)] {
            let header = FileHeader {
                sequence: 7,
                base: 0,
                salt: 1,
                size: 8192,
            };
            let mut page = header.encode();
            for at in HEADER_COPIES {
                page[at + 8] = version;
                page[at + 12..at + 16].fill(0);
                let crc = crc32fast::hash(&page[at..at + length]);
                page[at + 12..at + 16].copy_from_slice(&crc.to_le_bytes());
            }
            let named = Err(BadHeader::Version(u32::from(version)));
            assert_eq!(FileHeader::decode(&page), named);
        }
    }

    #[test]
    fn a_block_is_valid_only_in_its_file_at_its_position_and_unchanged() {
        let mut block = Vec::new();
        begin_block(&mut block);
        let at = begin_record(&mut block, JournalId::new(Kind::GROUP, 3));
        block.extend_from_slice(b"payload");
        end_record(&mut block, at);
        let mut seen = Vec::new();
        seal_block(&mut block, 99, 1000, 500, |journal, position, payload| {
            seen.push((journal, position, payload.to_vec()));
        });
        assert_eq!(
            seen,
            [(
                JournalId::new(Kind::GROUP, 3),
                Position(1032),
                b"payload".to_vec()
            )]
        );
        let header = block_header(&block, 99, 1000).unwrap();
        assert_eq!((header.length as usize, header.synced), (RECORD_HEADER + 7, 500));
        assert!(block_header(&block, 98, 1000).is_none());
        assert!(block_header(&block, 99, 1001).is_none());
        let record = record_header(&block[at..], 99, 1032).unwrap();
        assert!(record.matches(b"payload"));
        assert!(!record.matches(b"paylord"));
        assert!(record_header(&block[at..], 99, 1033).is_none());
        for byte in 0..BLOCK_HEADER {
            let mut damaged = block.clone();
            damaged[byte] ^= 4;
            assert!(block_header(&damaged, 99, 1000).is_none());
        }
    }

    #[test]
    fn a_file_of_the_log_has_the_bytes_that_it_always_had() {
        let (sequence, base, salt, size) = (7, 1 << 40, 0xfeed, 1 << 20);
        let header = FileHeader {
            sequence,
            base,
            salt,
            size,
        };
        let page = header.encode();
        let first = page[..HEADER_LENGTH].to_vec();
        let mut whole = vec![0; FILE_HEADER];
        whole[..HEADER_LENGTH].copy_from_slice(&first);
        whole[2048..2048 + HEADER_LENGTH].copy_from_slice(&first);
        assert_eq!(page, whole);
        let mut block = Vec::new();
        begin_block(&mut block);
        for payload in ["payload", ""] {
            let at = begin_record(&mut block, JournalId::new(Kind::GROUP, 300));
            block.extend_from_slice(payload.as_bytes());
            end_record(&mut block, at);
        }
        seal_block(&mut block, salt, base + 1000, base + 500, |_, _, _| {});
        let written = [first, block]
            .map(|bytes| bytes.escape_ascii().to_string())
            .to_vec();
        assert_eq!(
            written,
            [
                r"LEVLOG\r\n\x03\x00\x00\x00\xf8\xb0,B\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\xed\xfe\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00",
                r"\xb1\x0cL\xe7\xc51+@\xe8\x03\x00\x00\x00\x01\x00\x007\x00\x00\x00\x00\x00\x00\x00\xf4\x01\x00\x00\x00\x01\x00\x00\x07\x00\x00\x00\xcc!\x05\x85\x00\x80\x06\x97\x04\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00payload\x00\x00\x00\x00\n,?e\n,?e\x04\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00"
            ]
        );
    }
}
