//! Entries that a group still needs though their file is to go: written again by the log itself.
//!
//! They stand in one record, so that a crash leaves all of them or none. Had it left some, these would void the others, which
//! they stand for.
//!
//! ```text
//! record = group u64 | entries
//! entry  = length u32 | payload
//! ```

use super::format::{u32_at, u64_at};
use super::{JournalId, Kind, Log, Position};
use crate::error::StorageError;

/// The journal of these records; no caller's.
pub(crate) const CARRIED: JournalId = JournalId::new(Kind::LOG, 1);
/// More than a group may have that is not applied.
const LIMIT: usize = 64 << 20;
/// So often it is tried again because the group's member appended meanwhile.
const ATTEMPTS: usize = 3;

/// Appends the record's payload.
pub(crate) fn encode(group: u64, entries: &[Vec<u8>], out: &mut Vec<u8>) {
    out.extend_from_slice(&group.to_le_bytes());
    for entry in entries {
        out.extend_from_slice(&(entry.len() as u32).to_le_bytes());
        out.extend_from_slice(entry);
    }
}

/// The group that a record is of, as far as it can be read.
pub(crate) fn group_of(payload: &[u8]) -> Option<JournalId> {
    Some(JournalId::new(Kind::GROUP, u64_at(payload, 0)?))
}

/// The payloads of its entries.
pub(crate) fn entries(payload: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = payload.get(8..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        let entry = rest.get(4..)?.get(..length)?;
        rest = &rest[4 + length..];
        Some(entry)
    })
}

impl Log {
    /// What the log has of a group's entries is written again, if any of it stands before this position: nothing there is needed
    /// then. For entries that cannot be released, since they are not committed or not applied; a group without a majority has
    /// such for long. Reads files, so it is for a thread that may wait. False if the group was appended to meanwhile, again and
    /// again.
    ///
    /// # Errors
    /// The entries cannot be read, or are more than 64 MiB.
    pub fn carry_group(&self, group: u64, before: Position) -> Result<bool, StorageError> {
        for _ in 0..ATTEMPTS {
            let Some(seen) = self.shared.lock().groups.seen(group) else {
                return Ok(true);
            };
            if seen.begin >= before {
                return Ok(true);
            }
            let entries = self.entries_in_log(group, seen.first, seen.last.saturating_add(1), LIMIT)?;
            if entries.len() as u64 <= seen.last - seen.first {
                let bytes = entries.iter().map(|entry| entry.len() as u64).sum();
                let limit = LIMIT as u64;
                return Err(StorageError::TooLarge { bytes, limit });
            }
            let carried = self.append(|batch| {
                let same = batch.pending.groups.seen(group) == Some(seen);
                if same {
                    batch.pending.carry(group, &entries);
                }
                same
            });
            if carried {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_bytes_there_are_entries_are_read_within_them() {
        let mut bytes = Vec::new();
        encode(7, &[b"one".to_vec(), Vec::new(), b"three".to_vec()], &mut bytes);
        assert_eq!(group_of(&bytes), Some(JournalId::new(Kind::GROUP, 7)));
        let read: Vec<&[u8]> = entries(&bytes).collect();
        assert_eq!(read, [b"one".as_slice(), b"", b"three"]);
        for cut in 0..bytes.len() {
            assert!(entries(&bytes[..cut]).count() < 3);
        }
        bytes[8..12].fill(0xff);
        assert_eq!(entries(&bytes).count(), 0);
    }

    #[test]
    fn the_logs_own_records_have_the_bytes_that_they_always_had() {
        let (mut carried, mut mark) = (Vec::new(), Vec::new());
        encode(300, &[b"one".to_vec(), Vec::new()], &mut carried);
        let (journal, before) = (JournalId::new(Kind::QUEUE, 300), Position(70_000));
        super::super::mark::Mark { journal, before }.encode(&mut mark);
        let written = [carried, mark]
            .map(|bytes| bytes.escape_ascii().to_string())
            .to_vec();
        assert_eq!(
            written,
            [
                r",\x01\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00one\x00\x00\x00\x00",
                r",\x01\x00\x00\x00\x00\x00\x00p\x11\x01\x00\x00\x00\x00\x00\x02"
            ]
        );
        assert_eq!((CARRIED.kind, CARRIED.number), (Kind::LOG, 1));
        assert_eq!(super::super::mark::MARKS, JournalId::new(Kind::LOG, 0));
    }
}
