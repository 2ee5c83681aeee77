//! Files for what is appended and read again and again, and goes only as a whole from its beginning: streams. Entries are
//! bytes under numbers without gaps; what is in them nobody looks at here
//! ([decision 70](../../../../docs/decisions/0070-streams.md)).
//!
//! A stream has a directory, with one file for each of its segments and an index beside it. Memory: a few numbers for each file,
//! nothing for what is in it. Reading order: `frame` (an entry on disk), `part` (a file, its index, walking it), `recovery`,
//! `writer`, this file (writing, and which files there are), `reading`.

mod damage;
mod frame;
mod part;
mod reading;
mod recovery;
#[cfg(test)]
mod tests;
mod writer;

pub use damage::{StreamDamage, TornEnd};
pub use frame::FrameHead;
pub use reading::{Page, StreamCursor};

use crate::error::{StorageError, is_full};
use crate::file_system::{Access, File, FileSystem, create_dir_durably, remove_files};
use frame::ENTRY_MOST;
use part::{HEADER, Part, ROW_EVERY, Row, write_row};
use recovery::Found;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use writer::{Large, Open, Writer};

/// Room is reserved in steps of the file's size, of at least so many bytes: a sync need not write the file's length then.
const RESERVE_LEAST: u64 = 64 << 10;
/// And of at most so many.
const RESERVE_MOST: u64 = 8 << 20;

/// More memory for frames than this is given back at once, in bytes.
const BUFFER_MOST: usize = 1 << 20;

/// An entry to be appended.
#[derive(Debug, Clone, Copy)]
pub struct StreamEntry<'a> {
    /// The number of the first thing in it; the one that the stream has next.
    pub first: u64,
    /// How many things are in it; may be 0.
    pub count: u32,
    /// It says something that is needed at a start.
    pub tracks: bool,
    /// When it was made, in milliseconds since the Unix epoch; never earlier than the entry before.
    pub time_ms: u64,
    /// Of a replicated stream, the term of the leader that made it; else 0.
    pub term: u64,
    /// Of a replicated stream, its index; else 0.
    pub index: u64,
    /// A new file begins with it, and is closed before the next one. It takes the place of the newest one if that has no number
    /// yet: what that has is not needed any more then.
    pub starts_file: bool,
    /// What it is.
    pub bytes: &'a [u8],
    /// The CRC-32 (ISO-HDLC) of `bytes`.
    pub checksum: u32,
}

/// A file of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSegment {
    /// The first number in it.
    pub first: u64,
    /// The number behind the last one in it.
    pub next: u64,
    /// What is in it, in bytes.
    pub bytes: u64,
    /// When its last entry was made, in milliseconds since the Unix epoch; 0 if there is none.
    pub last_ms: u64,
}

/// The files of one stream. One thread appends; any may read.
#[derive(Debug)]
pub struct StreamFiles {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    owner: u64,
    /// In order. The last one is written to.
    parts: RwLock<Vec<Arc<Part>>>,
    /// One that is to go, and could not be removed: nothing behind it goes before it, or a start would find a hole.
    leaving: Mutex<Option<Arc<Part>>>,
    writer: Mutex<Writer>,
    /// At the start.
    found: Found,
}

impl StreamFiles {
    /// Opens the stream's directory, made if needed. `owner` is the stream's number: files of another one are not believed.
    ///
    /// # Errors
    /// The file system has one, a newer version has written it, or what was synced does not read as it was written, and nothing
    /// says how far that goes.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, owner: u64) -> Result<Self, StorageError> {
        create_dir_durably(fs.as_ref(), dir)?;
        let mut found = Found::default();
        let parts = recovery::parts(fs.as_ref(), dir, owner, &mut found)?;
        let writer = Writer::new(parts.last());
        Ok(Self {
            fs,
            dir: dir.to_owned(),
            owner,
            parts: RwLock::new(parts.into_iter().map(Arc::new).collect()),
            leaving: Mutex::default(),
            writer: Mutex::new(writer),
            found,
        })
    }

    /// What was found to be damaged in the newest file when it was opened. Nothing of it is ever read, its numbers are not given
    /// out again, and what comes behind is there. Damage in other files is found by [`skip`](Self::skip).
    pub fn damage(&self) -> &[StreamDamage] {
        &self.found.damage
    }

    /// The end that was cut off when it was opened, because a crash had torn it.
    pub fn torn(&self) -> Option<&TornEnd> {
        self.found.torn.as_ref()
    }

    fn parts(&self) -> Vec<Arc<Part>> {
        self.parts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number that comes next, and the first one that is there.
    pub fn bounds(&self) -> (u64, u64) {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let first = parts.first().map_or(0, |part| part.first);
        (first, parts.last().map_or(0, |part| part.extent().next))
    }

    /// How many files there are.
    pub fn segment_count(&self) -> usize {
        self.parts.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The files in order; the last one is written to.
    pub fn segments(&self) -> Vec<StreamSegment> {
        let parts = self.parts();
        let segments = parts.iter().map(|part| {
            let extent = part.extent();
            StreamSegment {
                first: part.first,
                next: extent.next,
                bytes: extent.end.saturating_sub(HEADER as u64),
                last_ms: extent.last_ms,
            }
        });
        segments.collect()
    }

    /// True if nothing is written ever again: a write or a sync has failed, or the stream is removed.
    pub fn has_failed(&self) -> bool {
        self.writer().failed.is_some()
    }

    /// So many entries were appended since the files were opened, and are safe.
    pub fn safe_entries(&self) -> u64 {
        self.writer().safe.entries
    }

    /// Writes entries behind all others. They can be read at once, and are safe after [`sync`](Self::sync). An entry that
    /// starts a file has the one before it synced here, or is safe itself if it takes the place of that.
    ///
    /// # Errors
    /// [`StorageError::Misuse`] if numbers or times do not follow, [`StorageError::TooLarge`] for one above 1 GiB; nothing is
    /// written then. After any other error all that is not safe by [`safe_entries`](Self::safe_entries) is taken back, and is to
    /// be appended again; that may succeed if the disk was full or a file could not be opened or made. Otherwise
    /// [`has_failed`](Self::has_failed), and nothing is written ever again.
    pub fn append(&self, entries: &[StreamEntry<'_>]) -> Result<(), StorageError> {
        let mut writer = self.writer();
        writer.check()?;
        self.check(entries)?;
        for group in entries.chunk_by(|_, entry| !entry.starts_file) {
            let outcome = self.append_to_one(&mut writer, group);
            if outcome.is_err() {
                writer.take_back(self.parts().last().map(Arc::as_ref));
            }
            outcome?;
        }
        Ok(())
    }

    /// Numbers without gaps, times that do not fall.
    fn check(&self, entries: &[StreamEntry<'_>]) -> Result<(), StorageError> {
        let last = self.parts().last().map(|part| part.extent());
        let (mut next, mut time) = last.map_or((0, 0), |last| (last.next, last.last_ms));
        if last.is_none() {
            // A copy of a stream may begin anywhere.
            next = entries.first().map_or(0, |entry| entry.first);
        }
        for entry in entries {
            if entry.first != next || entry.time_ms < time {
                return Err(StorageError::Misuse {
                    what: "an entry of a stream does not follow the one before it",
                });
            }
            if entry.bytes.len() > ENTRY_MOST {
                return Err(StorageError::TooLarge {
                    bytes: entry.bytes.len() as u64,
                    limit: ENTRY_MOST as u64,
                });
            }
            (next, time) = (next.saturating_add(u64::from(entry.count)), entry.time_ms);
        }
        Ok(())
    }

    fn append_to_one(&self, writer: &mut Writer, entries: &[StreamEntry<'_>]) -> Result<(), StorageError> {
        let Some(first) = entries.first() else {
            return Ok(());
        };
        let mut entries = entries;
        let part = match self.parts().pop() {
            Some(part) if !first.starts_file => part,
            // Files have the names of their first numbers: one without any stays, or is replaced.
            Some(part) if part.extent().end == HEADER as u64 => part,
            Some(part) if part.extent().next == part.first => {
                entries = &entries[1..];
                self.replace(writer, &part, first)?
            }
            last => self.begin(writer, last, first.first)?,
        };
        if entries.is_empty() {
            return Ok(());
        }
        if writer.open.is_none() {
            writer.open = Some(self.open_part(&part)?);
        }
        let mut extent = part.extent();
        let start = extent.end;
        writer.buffer.clear();
        // What the file begins with goes with what is first in it, and is written again as that is.
        let is_first = start == HEADER as u64;
        if is_first {
            writer.buffer.extend_from_slice(&part.header());
        }
        let mut rows = part.rows();
        let (mut new_rows, mut large) = (Vec::new(), Large::new());
        let synced = writer.safe.extent.end;
        for entry in entries {
            if writer.row.is_none_or(|row| extent.end >= row + ROW_EVERY) {
                writer.row = Some(extent.end);
                new_rows.push(Row {
                    number: entry.first,
                    time_ms: entry.time_ms,
                    position: extent.end,
                });
            }
            extent = writer.put((self.owner, extent.end), synced, entry, &mut large);
        }
        let Some(open) = &writer.open else {
            return Ok(());
        };
        let (file, index) = (open.file.clone(), open.index.clone());
        if extent.end > writer.reserved {
            let step = extent.end.clamp(RESERVE_LEAST, RESERVE_MOST);
            let reserved = reserve(file.as_ref(), extent.end, step);
            writer.reserved = writer.note(part.io("reserve room in", reserved))?;
        }
        let at = if is_first { 0 } else { start };
        let written = writer.write(file.as_ref(), at, &large);
        writer.note(part.io("write", written))?;
        for row in new_rows {
            // A row that is missing costs readers a longer way.
            if let Some(index) = &index
                && write_row(index.as_ref(), rows, row).is_ok()
            {
                rows += 1;
            }
        }
        part.set_rows(rows);
        part.publish(extent);
        writer.entries += entries.len() as u64;
        if writer.buffer.capacity() > BUFFER_MOST {
            writer.buffer = Vec::new();
        }
        Ok(())
    }

    /// Closes the last part, durably, and begins another one.
    fn begin(
        &self,
        writer: &mut Writer,
        last: Option<Arc<Part>>,
        first: u64,
    ) -> Result<Arc<Part>, StorageError> {
        if let Some(last) = last {
            self.close_part(writer, &last)?;
        }
        if let Some(part) = &writer.unnamed {
            recovery::remove(self.fs.as_ref(), part)?;
        }
        let part = Arc::new(Part::new(&self.dir, self.owner, first));
        writer.unnamed = Some(part.clone());
        let file = part.io("create", self.fs.open(&part.path, Access::Create))?;
        let index = self.fs.open(&part.index_path(), Access::Create).ok();
        // Before there is anything in it: if this fails, nothing is lost, and a start removes the empty file.
        self.fs
            .sync_dir(&self.dir)
            .map_err(|e| StorageError::from_io("sync the directory", &self.dir, e))?;
        writer.unnamed = None;
        writer.begin(&part, Open { file, index });
        self.parts
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(part.clone());
        Ok(part)
    }

    /// Puts a file in the place of the last part, which has no numbers. It has this entry, and is safe.
    fn replace(
        &self,
        writer: &mut Writer,
        last: &Part,
        entry: &StreamEntry<'_>,
    ) -> Result<Arc<Part>, StorageError> {
        let part = Arc::new(Part::new(&self.dir, self.owner, last.first));
        let draft = part.draft_path();
        writer.buffer.clear();
        writer.buffer.extend_from_slice(&part.header());
        let (begin, mut large) = (HEADER as u64, Large::new());
        let extent = writer.put((self.owner, begin), begin, entry, &mut large);
        let file = part.io("create", self.fs.open(&draft, Access::Create))?;
        part.io("write", writer.write(file.as_ref(), 0, &large))?;
        writer.note(part.io("sync", file.sync_data()))?;
        // What the old index says of the old file must not be believed of this one, whatever a crash leaves.
        let index = part.io(
            "create an index for",
            self.fs.open(&part.index_path(), Access::Create),
        )?;
        writer.note(part.io("sync the index of", index.sync_data()))?;
        part.io("rename", self.fs.rename(&draft, &part.path))?;
        if let Err(error) = self.fs.sync_dir(&self.dir) {
            // Nobody knows which of both has the name after a crash. Either will do as long as nothing is behind the old one's
            // end: the next attempt makes another file, and what is written to the old one meanwhile goes with that.
            let error = StorageError::from_io("sync the directory", &self.dir, error);
            if !error.may_pass() {
                writer.failed = Some(error.clone());
            }
            // The index is the new file's, and no mark of the old one's end may get into it.
            if let Some(open) = &mut writer.open {
                open.index = None;
            }
            return Err(error);
        }
        part.publish(extent);
        // It costs readers a longer way if that fails.
        let _ = part.write_mark(index.as_ref(), extent);
        let index = Some(index);
        writer.replace(&part, Open { file, index });
        let mut parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
        parts.pop();
        parts.push(part.clone());
        Ok(part)
    }

    fn open_part(&self, part: &Part) -> Result<Open, StorageError> {
        let file = part.open(self.fs.as_ref(), Access::Write)?;
        let path = part.index_path();
        let index = self.fs.open(&path, Access::Write);
        let index = index.or_else(|_| self.fs.open(&path, Access::Create)).ok();
        Ok(Open { file, index })
    }

    /// Cuts the file to what is in it, and syncs it.
    fn close_part(&self, writer: &mut Writer, part: &Part) -> Result<(), StorageError> {
        let open = match writer.open.take() {
            Some(open) => open,
            None => self.open_part(part)?,
        };
        let end = part.extent().end;
        let cut = part.io("cut", open.file.set_len(end));
        writer.note(cut)?;
        writer.reserved = end;
        writer.note(part.io("sync", open.file.sync_data()))?;
        if let Some(index) = &open.index {
            // Rows behind these belong to nothing. That fails without harm.
            let _ = index.set_len(part.rows() * part::ROW_BYTES);
            let _ = part.write_mark(index.as_ref(), part.extent());
            let _ = index.sync_data();
        }
        writer.safe = writer.mark(part);
        Ok(())
    }

    /// Makes all that was appended safe.
    ///
    /// # Errors
    /// As of [`append`](Self::append): what is not safe is taken back, and nothing is written ever again unless the disk was
    /// full.
    pub fn sync(&self) -> Result<(), StorageError> {
        let (part, file, mark, taken_back) = {
            let writer = self.writer();
            writer.check()?;
            match (self.parts().pop(), &writer.open) {
                (Some(part), Some(open)) => {
                    let mark = writer.mark(&part);
                    (part, open.file.clone(), mark, writer.taken_back)
                }
                _ => return Ok(()),
            }
        };
        // Meanwhile more may be appended; that is the next sync's.
        let outcome = part.io("sync", file.sync_data());
        let mut writer = self.writer();
        let outcome = writer.note(outcome);
        let last = self.parts().pop();
        if outcome.is_err() {
            writer.take_back(last.as_deref());
        } else if last.is_some_and(|last| Arc::ptr_eq(&last, &part))
            && taken_back == writer.taken_back
            && mark.entries >= writer.safe.entries
        {
            writer.safe = mark;
            if let Some(index) = writer.open.as_ref().and_then(|open| open.index.as_ref()) {
                // Without it, only frames that come later say so.
                let _ = part.write_mark(index.as_ref(), mark.extent);
            }
        }
        outcome
    }

    /// Nothing comes for now: what was appended is synced, room that was reserved is given back, and no file stays open.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn rest(&self) -> Result<(), StorageError> {
        let mut writer = self.writer();
        // Nothing is open of a stream that is removed.
        if writer.open.is_none() {
            return Ok(());
        }
        writer.check()?;
        let Some(part) = self.parts().pop() else {
            return Ok(());
        };
        writer.buffer = Vec::new();
        let outcome = self.close_part(&mut writer, &part);
        if outcome.is_err() {
            writer.take_back(Some(&part));
        }
        outcome
    }

    /// Removes the files that end at or below this number; never the last one, which is synced before: it alone says then which
    /// number is next. Whoever reads one of them now can go on to its end.
    ///
    /// # Errors
    /// A file cannot be removed, and those before it are gone; or as [`sync`](Self::sync), and none is. It is tried again by
    /// the next call.
    pub fn drop_below(&self, number: u64) -> Result<(), StorageError> {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        let goes = |first: &Arc<Part>| first.extent().next <= number;
        if leaving.is_none() && !self.parts().first().is_some_and(goes) {
            return Ok(());
        }
        self.sync()?;
        loop {
            if leaving.is_none() {
                let mut parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
                // A crash takes a newest file in which nothing is yet: then the one before it says which number is next.
                let is_empty = parts
                    .last()
                    .is_some_and(|last| last.extent().end == HEADER as u64);
                if parts.len() < 2 + usize::from(is_empty) || !goes(&parts[0]) {
                    return Ok(());
                }
                *leaving = Some(parts.remove(0));
            }
            if let Some(part) = leaving.as_deref() {
                // One after the other, durably: after a crash the stream begins with the first file that is there.
                recovery::remove(self.fs.as_ref(), part)?;
                self.fs
                    .sync_dir(&self.dir)
                    .map_err(|e| StorageError::from_io("sync the directory", &self.dir, e))?;
            }
            *leaving = None;
        }
    }

    /// Removes all files, from the oldest on: what is appended next may have any number. For a copy that others are far ahead of.
    ///
    /// # Errors
    /// A file cannot be removed, and those before it are gone.
    pub fn clear(&self) -> Result<(), StorageError> {
        let mut writer = self.writer();
        writer.check()?;
        writer.clear();
        loop {
            let first = self.parts().into_iter().next();
            let Some(first) = first else { return Ok(()) };
            recovery::remove(self.fs.as_ref(), &first)?;
            self.fs
                .sync_dir(&self.dir)
                .map_err(|e| StorageError::from_io("sync the directory", &self.dir, e))?;
            self.parts
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(0);
        }
    }

    /// What is in all files, in bytes.
    pub fn bytes(&self) -> u64 {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = parts
            .iter()
            .map(|part| part.extent().end.saturating_sub(HEADER as u64));
        bytes.sum()
    }

    /// Removes the whole stream. Nothing is written any more; whoever reads a file now can go on to its end.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(&self) -> Result<(), StorageError> {
        let mut writer = self.writer();
        writer.open = None;
        writer.failed = Some(StorageError::Misuse {
            what: "the stream is removed",
        });
        remove_files(self.fs.as_ref(), &self.dir)
    }
}

/// Reserves room up to `end`, and so many bytes behind it if there is that much. Returns how far it goes.
fn reserve(file: &dyn File, end: u64, step: u64) -> std::io::Result<u64> {
    match file.allocate(end + step) {
        Err(error) if step > 0 && is_full(&error) => reserve(file, end, 0),
        reserved => reserved.map(|()| end + step),
    }
}
