//! Where an entry lies, and what it looks like there.
//!
//! ```text
//! the parts, one behind the other; then for each where it ends in the entry (u32) and its checksum (u32), little-endian
//! ```
//!
//! Each part has its own checksum, so that damage costs the parts that it hits. A checksum covers where the part
//! belongs as well, so a misdirected write or a place from elsewhere is noticed.

use crate::journal::JournalId;
use std::ops::Range;

/// Where one entry of an owner lies. Plain numbers, to be stored by whoever needs to find the entry again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the owner's file.
    pub segment: u32,
    /// Byte in that file where the entry begins.
    pub offset: u32,
    /// Bytes that the entry takes there, checksums included.
    pub length: u32,
}

/// Bytes that each part takes on disk besides its content.
pub(crate) const PART: usize = 8;

/// An entry as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    bytes: Vec<u8>,
    /// Where each part is; `None` if it is not what was written.
    parts: Vec<Option<Range<usize>>>,
}

impl Entry {
    /// The parts in their order; `None` for those that are not what was written.
    pub fn parts(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.parts.iter().map(|range| self.bytes.get(range.clone()?))
    }

    /// All parts one behind the other, if all are what was written.
    pub(crate) fn whole(mut self) -> Option<Vec<u8>> {
        let end = self.parts.last()?.clone()?.end;
        let intact = self.parts.iter().all(Option::is_some);
        self.bytes.truncate(end);
        intact.then_some(self.bytes)
    }
}

impl Place {
    /// Bytes on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        u64::from(self.length)
    }

    /// Byte behind the entry.
    pub(crate) fn end(&self) -> u64 {
        u64::from(self.offset) + self.disk_bytes()
    }

    fn checksum(&self, owner: JournalId, start: u32, end: u32, part: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&[owner.kind.0]);
        hasher.update(&owner.number.to_le_bytes());
        for number in [self.segment, self.offset, self.length, start, end] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(part);
        hasher.finalize()
    }

    /// Appends the entry's bytes.
    pub(crate) fn encode(&self, owner: JournalId, parts: &[&[u8]], out: &mut Vec<u8>) {
        parts.iter().for_each(|part| out.extend_from_slice(part));
        let mut start = 0;
        for part in parts {
            let end = start + part.len() as u32;
            out.extend_from_slice(&end.to_le_bytes());
            out.extend_from_slice(&self.checksum(owner, start, end, part).to_le_bytes());
            start = end;
        }
    }

    /// The entry that `bytes` are; `None` if nothing of it is as it was written.
    pub(crate) fn decode(&self, owner: JournalId, bytes: Vec<u8>) -> Option<Entry> {
        if bytes.len() as u64 != self.disk_bytes() {
            return None;
        }
        // Where the last part ends, so many parts there are. If that is damaged, the first part tells.
        let last = bytes.len().checked_sub(PART)?;
        let content = u32_at(&bytes, last)? as usize;
        let told = bytes.len().checked_sub(content).map(|rest| rest / PART);
        let all = 1..=bytes.len() / PART;
        let count = told.into_iter().chain(all).find(|count| {
            let rest = bytes.len().checked_sub(*count * PART);
            *count > 0 && rest.is_some_and(|end| self.part(owner, &bytes, end, 0).is_some())
        });
        let count = count.or_else(|| told.filter(|count| *count > 0 && *count * PART <= bytes.len()))?;
        let content = bytes.len() - count * PART;
        let parts: Vec<_> = (0..count)
            .map(|at| self.part(owner, &bytes, content, at))
            .collect();
        let some = parts.iter().any(Option::is_some);
        some.then_some(Entry { bytes, parts })
    }

    /// Where part number `at` is, of an entry whose parts end at `content`; `None` if it is not what was written.
    fn part(&self, owner: JournalId, bytes: &[u8], content: usize, at: usize) -> Option<Range<usize>> {
        let row = content + at * PART;
        let start = match at {
            0 => 0,
            _ => u32_at(bytes, row - PART)?,
        };
        let end = u32_at(bytes, row)?;
        let range = start as usize..end as usize;
        let part = bytes.get(..content)?.get(range.clone())?;
        (u32_at(bytes, row + 4)? == self.checksum(owner, start, end, part)).then_some(range)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
