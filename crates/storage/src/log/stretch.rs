//! Reading the entries of a group: by index, a stretch of the log at a time.

use super::carry::{self, CARRIED};
use super::chain::{Files, LogFile, file_at, read_record};
use super::format::{BLOCK_HEADER, FILE_HEADER, RECORD_HEADER, block_header, record_header};
use super::groups::{Stretch, settled};
use super::{JournalId, Kind, Log, Position};
use crate::error::StorageError;
use crate::file_system::read_full_at;
use crate::journal::GroupEntry;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// So much is read at once of what all groups have.
const PASS_BYTES: u64 = 1 << 20;

/// Entries as they were written: index and payload.
pub(crate) type Written = Vec<(u64, Vec<u8>)>;

/// Consecutive entries: index and payload.
pub(crate) type Entries = VecDeque<(u64, Vec<u8>)>;

impl Log {
    /// The payloads of a group's entries from index `from` on and before `to`, verified: one after the other, and fewer than
    /// asked for where the group ends or where they would be more than `limit_bytes`; but one at least. What was just appended is
    /// there, too: this waits for its write, not for its sync. So is what [`keep_tail`](Self::keep_tail) has kept.
    ///
    /// # Errors
    /// [`StorageError::Gone`] if the log has no entry `from`, or has it no longer; [`StorageError::Corrupt`] if it does not read
    /// as written.
    pub fn group_entries(
        &self,
        group: u64,
        from: u64,
        to: u64,
        limit_bytes: usize,
    ) -> Result<Vec<Vec<u8>>, StorageError> {
        limited(from, to, limit_bytes, |next| self.some_entries(group, next))
    }

    /// The payload of a group's entry, and of those behind it that are read with it anyway: for who is going to read these, too.
    /// Together they are hardly more than [`STRETCH`](super::groups::STRETCH), or the one.
    ///
    /// # Errors
    /// As [`group_entries`](Self::group_entries).
    pub fn group_entries_near(&self, group: u64, index: u64) -> Result<VecDeque<Vec<u8>>, StorageError> {
        let entries = self.some_entries(group, index)?;
        Ok(entries.into_iter().map(|(_, payload)| payload).collect())
    }

    /// As [`group_entries`](Self::group_entries), without what was kept elsewhere.
    pub(crate) fn entries_in_log(
        &self,
        group: u64,
        from: u64,
        to: u64,
        limit_bytes: usize,
    ) -> Result<Vec<Vec<u8>>, StorageError> {
        limited(from, to, limit_bytes, |next| self.stretch_entries(group, next))
    }

    /// The first and the last index of a group's entries in the log; `None` if it has none.
    pub fn group_span(&self, group: u64) -> Option<(u64, u64)> {
        self.shared.lock().groups.span(group)
    }

    /// What has to be needed no more of a group if nothing is to be needed of what stands before this position: its entries below
    /// the index that is returned. `None` if the log has no entries of it.
    pub fn group_index_from(&self, group: u64, at: Position) -> Option<u64> {
        self.shared.lock().groups.index_from(group, at)
    }

    /// Shows entries of all groups that stand in the log from a position on, in the order in which they were written: those that
    /// were overwritten, released or written again, too. For starts: what was appended since is not waited for.
    ///
    /// # Errors
    /// Something of it cannot be read, or not any more.
    pub fn entries_since(
        &self,
        from: Position,
        show: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<(), StorageError> {
        let written = self.shared.written.load(Ordering::Acquire);
        let mut at = from.0.max(self.begin().0);
        let mut take = |journal: JournalId, payload: &[u8]| match journal {
            CARRIED => {
                let group = carry::group_of(payload).map_or(0, |group| group.number);
                carry::entries(payload).for_each(|entry| show(group, entry));
            }
            group => show(group.number, payload),
        };
        while at < written {
            let until = written.min(at + PASS_BYTES);
            at = read_file(&self.files, at, until, &|group| group.is_some(), &mut take)?;
        }
        Ok(())
    }

    /// Where the entry of this index of a group stands, or something of the group that is before it; `None` if the log has no
    /// such entry.
    pub fn group_position(&self, group: u64, index: u64) -> Option<Position> {
        let stretch = self.shared.lock().groups.stretch(group, index)?;
        Some(Position(stretch.begin))
    }

    /// The entries from `index` on as far as they lie together, in the log or in the tail; one at least.
    fn some_entries(&self, group: u64, index: u64) -> Result<Entries, StorageError> {
        let gone = match self.stretch_entries(group, index) {
            Err(gone @ StorageError::Gone { .. }) => gone,
            entries => return entries,
        };
        // What the log has had at this index since counts, and not what was kept.
        let pending = self.shared.lock();
        let span = pending.groups.span(group);
        let before = span.is_none_or(|(first, _)| index < first)
            && pending.groups.tail_end(group).is_some_and(|end| index < end);
        drop(pending);
        let tails = self.tails.get().filter(|_| before).ok_or(gone.clone())?;
        tails.entries(group, index)?.ok_or(gone)
    }

    /// The entries from `index` on to the end of its stretch; one at least.
    fn stretch_entries(&self, group: u64, index: u64) -> Result<Entries, StorageError> {
        let journal = JournalId::new(Kind::GROUP, group);
        let gone = || StorageError::Gone {
            what: format!("the log has no entry {index} of {journal}"),
        };
        let mut pending = self.shared.lock();
        let (stretch, unwritten) = loop {
            let stretch = pending.groups.stretch(group, index).ok_or_else(gone)?;
            let until = stretch.until.min(pending.end());
            let stretch = Stretch { until, ..stretch };
            if until <= pending.written {
                break (stretch, Written::new());
            }
            if let Some(error) = &pending.stopped {
                return Err(error.clone());
            }
            if pending.begin() <= pending.written {
                break (
                    stretch,
                    pending.entries_between(journal, stretch.begin, stretch.until),
                );
            }
            // The rest is being written just now.
            pending = self.await_progress(pending);
        };
        let until = stretch.until.min(pending.written);
        drop(pending);
        let mut written = Written::new();
        let mut at = stretch.begin;
        while at < until {
            at = read_stretch(&self.files, journal, at, until, &mut written)?;
        }
        written.extend(unwritten);
        let mut entries = settled(written);
        entries.retain(|(found, _)| (index..stretch.below).contains(found));
        match entries.front() {
            Some((first, _)) if *first == index => Ok(entries),
            _ => Err(gone()),
        }
    }
}

/// Payloads from index `from` on and before `to`, within the limit and one at least, of what `some` brings from an index on.
fn limited(
    from: u64,
    to: u64,
    limit_bytes: usize,
    some: impl Fn(u64) -> Result<Entries, StorageError>,
) -> Result<Vec<Vec<u8>>, StorageError> {
    let (mut payloads, mut bytes, mut next) = (Vec::new(), 0, from);
    while next < to {
        let entries = match some(next) {
            Ok(entries) => entries,
            // What comes later is told to whoever asks for it.
            Err(_) if !payloads.is_empty() => break,
            Err(error) => return Err(error),
        };
        for (index, payload) in entries {
            bytes += payload.len();
            let enough = bytes > limit_bytes && !payloads.is_empty();
            if index >= to || enough {
                return Ok(payloads);
            }
            payloads.push(payload);
            next = index.saturating_add(1);
        }
    }
    Ok(payloads)
}

/// Adds the entries of `group` that a record of this journal and payload has.
pub(crate) fn take_entries(journal: JournalId, payload: &[u8], group: JournalId, written: &mut Written) {
    let mut take = |entry: &[u8]| {
        if let Some((head, _)) = GroupEntry::decode(entry) {
            written.push((head.index, entry.to_vec()));
        }
    };
    match journal {
        CARRIED if carry::group_of(payload) == Some(group) => carry::entries(payload).for_each(take),
        _ if journal == group => take(payload),
        _ => {}
    }
}

/// Reads records of `journal` that begin at `at` or behind and before `until`, as far as one file has them. Returns the position
/// behind.
fn read_stretch(
    files: &Files,
    journal: JournalId,
    at: u64,
    until: u64,
    written: &mut Written,
) -> Result<u64, StorageError> {
    let mut take = |of: JournalId, payload: &[u8]| take_entries(of, payload, journal, written);
    read_file(files, at, until, &|group| group == Some(journal), &mut take)
}

/// Shows the records that `wanted` wants, by the group whose they are, of those that begin at `at` or behind and before `until`,
/// as far as one file has them. Returns the position behind.
fn read_file(
    files: &Files,
    at: u64,
    until: u64,
    wanted: &dyn Fn(Option<JournalId>) -> bool,
    take: &mut dyn FnMut(JournalId, &[u8]),
) -> Result<u64, StorageError> {
    let gone = || StorageError::Gone {
        what: format!("the log no longer has position {at}"),
    };
    let (file, behind) = file_at(files, Position(at)).ok_or_else(gone)?;
    let until = behind.map_or(until, |behind| until.min(behind));
    let outcome = read_from(files, &file, at, until, wanted, take);
    // A file that was freed and reused meanwhile reads as damage; it is not.
    match file_at(files, Position(at)) {
        Some((still, _)) if still.header == file.header => outcome,
        _ => Err(gone()),
    }
}

fn read_from(
    files: &Files,
    file: &LogFile,
    begin: u64,
    until: u64,
    wanted: &dyn Fn(Option<JournalId>) -> bool,
    take: &mut dyn FnMut(JournalId, &[u8]),
) -> Result<u64, StorageError> {
    let offset = |position: u64| FILE_HEADER as u64 + (position - file.header.base);
    // The last record may begin right before the end.
    let length = until - begin + (BLOCK_HEADER + RECORD_HEADER) as u64;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    let read = read_full_at(file.file.as_ref(), &mut bytes, offset(begin))
        .map_err(|e| StorageError::from_io("read", &file.path, e))?;
    bytes.truncate(read);
    let mut at = begin;
    while at < until {
        let rest = bytes.get((at - begin) as usize..).unwrap_or_default();
        if block_header(rest, file.header.salt, at).is_some() {
            at += BLOCK_HEADER as u64;
            continue;
        }
        let corrupt = |journal, what: &str| StorageError::Corrupt {
            file: file.path.clone(),
            offset: offset(at),
            journal,
            what: what.to_owned(),
        };
        let record = record_header(rest, file.header.salt, at)
            .ok_or_else(|| corrupt(None, "a record's header does not match its checksum"))?;
        let end = RECORD_HEADER + record.length;
        let group = match record.journal {
            CARRIED => rest.get(RECORD_HEADER..).and_then(carry::group_of),
            journal => (journal.kind == Kind::GROUP).then_some(journal),
        };
        if wanted(group) {
            let payload = match rest.get(RECORD_HEADER..end) {
                Some(payload) if record.matches(payload) => Cow::Borrowed(payload),
                Some(_) => {
                    let what = "a record's content does not match its checksum";
                    return Err(corrupt(group, what));
                }
                None => Cow::Owned(read_record(files, Position(at))?),
            };
            take(record.journal, &payload);
        }
        at += end as u64;
    }
    Ok(at)
}
