//! One owner's files: the one being written, and the books about all.

use super::books::Books;
use super::descriptors::{Descriptors, HEADER, SegmentKey, encode_header};
use super::place::PART;
use super::{Place, SegmentOptions};
use crate::error::StorageError;
use crate::file_system::{File, FileSystem, create_dir_durably, write_all_at};
use crate::journal::JournalId;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entries are gathered up to this size before they are written.
const WRITE_BYTES: usize = 1 << 20;
/// An entry's largest size, so that every offset fits 32 bits.
const MAX_ENTRY: u64 = 1 << 30;
/// A file being written is given up, once nothing in it is needed, if it has at least this size. Smaller ones go on:
/// making and deleting a file for every few messages would cost more than it saves.
const RETIRE_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Owner {
    id: JournalId,
    tail: Mutex<Tail>,
    books: Mutex<Books>,
    /// Held while syncing, so that a second caller cannot return before the first one's sync has.
    syncing: Mutex<()>,
}

/// What appending needs. Locked before `books`.
#[derive(Debug, Default)]
struct Tail {
    current: Option<Current>,
    /// Written files that are not synced. Their descriptors stay open until then: a failed write-back is reported on
    /// them.
    dirty: Vec<(u32, Arc<dyn File>)>,
    /// Somebody syncs them later, on another thread: until then they are not let go of.
    awaited: bool,
    /// Names that are not synced: of files in the owner's directory, of that directory in the one above.
    new_names: bool,
    new_dir: bool,
    /// Files ended by the append under way; entries of that append may still be counted in.
    sealed: Vec<u32>,
    /// A sync failed, or the owner was removed: nothing more is accepted.
    failed: Option<StorageError>,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    segment: u32,
    /// Bytes written.
    size: u64,
}

/// What an owner uses of its surroundings.
pub(crate) struct Around<'a> {
    pub fs: &'a dyn FileSystem,
    pub dir: &'a Path,
    pub descriptors: &'a Descriptors,
    pub options: &'a SegmentOptions,
}

impl Owner {
    /// An owner with these files of an earlier run: number and size.
    pub(crate) fn new(id: JournalId, files: &[(u32, u64)]) -> Self {
        let mut books = Books::default();
        for (segment, size) in files {
            books.found(*segment, *size);
        }
        Self {
            id,
            tail: Mutex::default(),
            books: Mutex::new(books),
            syncing: Mutex::new(()),
        }
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, segment: u32) -> SegmentKey {
        (self.id, segment)
    }

    pub(crate) fn append<'a>(
        &self,
        around: &Around<'_>,
        entries: impl IntoIterator<Item = impl AsRef<[&'a [u8]]>>,
        places: &mut Vec<Place>,
    ) -> Result<(), StorageError> {
        let mut tail = self.tail();
        if let Some(error) = &tail.failed {
            return Err(error.clone());
        }
        let known = places.len();
        let mut outcome = Ok(());
        for parts in entries {
            outcome = self.add(around, &mut tail, parts.as_ref(), places);
            if outcome.is_err() {
                break;
            }
        }
        let outcome = outcome.and_then(|()| self.flush(around, &mut tail));
        if outcome.is_err() {
            // What of this append is on disk counts as never written; later appends go to a new file.
            tail.buffer.clear();
            places.truncate(known);
            self.seal(&mut tail);
        }
        let dead = {
            let mut books = self.books();
            for place in &places[known..] {
                books.add(*place);
            }
            // Perhaps everything in a file was freed while it was still being written.
            tail.sealed
                .drain(..)
                .filter(|segment| books.take_if_dead(*segment))
                .collect::<Vec<_>>()
        };
        for segment in dead {
            tail.dirty.retain(|(dirty, _)| *dirty != segment);
            // If deleting fails, the file stays until the next start.
            let _ = around.descriptors.remove(self.key(segment));
        }
        outcome
    }

    /// Ends the file being written.
    fn seal(&self, tail: &mut Tail) {
        if let Some(current) = tail.current.take() {
            self.books().seal(current.segment);
            tail.sealed.push(current.segment);
        }
    }

    /// Puts one entry into the buffer.
    fn add(
        &self,
        around: &Around<'_>,
        tail: &mut Tail,
        parts: &[&[u8]],
        places: &mut Vec<Place>,
    ) -> Result<(), StorageError> {
        let length: u64 = parts.iter().map(|part| (part.len() + PART) as u64).sum();
        if length > MAX_ENTRY {
            return Err(StorageError::TooLarge {
                bytes: length,
                limit: MAX_ENTRY,
            });
        }
        let current = self.current_for(around, tail, length)?;
        let offset = current.size + tail.buffer.len() as u64;
        let place = Place {
            segment: current.segment,
            offset: offset as u32,
            length: length as u32,
        };
        place.encode(self.id, parts, &mut tail.buffer);
        places.push(place);
        if tail.buffer.len() >= WRITE_BYTES {
            self.flush(around, tail)
        } else {
            Ok(())
        }
    }

    /// The file for the next `bytes`: the current one, or a new one if they would make it too large.
    fn current_for(&self, around: &Around<'_>, tail: &mut Tail, bytes: u64) -> Result<Current, StorageError> {
        if let Some(current) = tail.current {
            let size = current.size + tail.buffer.len() as u64;
            let limit = around.options.segment_bytes.min(u64::from(u32::MAX) - MAX_ENTRY);
            if size + bytes <= limit || size <= HEADER as u64 {
                return Ok(current);
            }
            self.flush(around, tail)?;
            self.seal(tail);
        }
        let dir = around.descriptors.owner_dir(self.id);
        if self.books().is_empty() {
            around
                .fs
                .create_dir(&dir)
                .map_err(|e| StorageError::from_io("create the directory", &dir, e))?;
            tail.new_dir = true;
        }
        let segment = self.books().next();
        let file = around.descriptors.create(self.key(segment))?;
        tail.new_names = true;
        tail.dirty.push((segment, file));
        self.books().begin(segment);
        tail.buffer.extend_from_slice(&encode_header(self.key(segment)));
        let current = Current { segment, size: 0 };
        tail.current = Some(current);
        Ok(current)
    }

    /// Writes the buffer.
    fn flush(&self, around: &Around<'_>, tail: &mut Tail) -> Result<(), StorageError> {
        let Some(current) = tail.current else {
            return Ok(());
        };
        if tail.buffer.is_empty() {
            return Ok(());
        }
        let file = match tail.dirty.iter().find(|(segment, _)| *segment == current.segment) {
            Some((_, file)) => file.clone(),
            None => {
                let file = around.descriptors.get(self.key(current.segment))?;
                tail.dirty.push((current.segment, file.clone()));
                file
            }
        };
        write_all_at(file.as_ref(), &tail.buffer, current.size).map_err(|e| {
            StorageError::from_io("write", &around.descriptors.path(self.key(current.segment)), e)
        })?;
        let size = current.size + tail.buffer.len() as u64;
        tail.current = Some(Current {
            segment: current.segment,
            size,
        });
        tail.buffer.clear();
        tail.buffer
            .shrink_to(if tail.dirty.is_empty() { 0 } else { 2 * WRITE_BYTES });
        self.books().grow(current.segment, size);
        Ok(())
    }

    pub(crate) fn sync(&self, around: &Around<'_>) -> Result<(), StorageError> {
        let _syncing = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let (dirty, new_names, new_dir) = {
            let mut tail = self.tail();
            if let Some(error) = &tail.failed {
                return Err(error.clone());
            }
            // Nothing is buffered between appends, so this much memory per idle owner would be wasted.
            tail.buffer = Vec::new();
            tail.awaited = false;
            let names = (
                std::mem::take(&mut tail.new_names),
                std::mem::take(&mut tail.new_dir),
            );
            (std::mem::take(&mut tail.dirty), names.0, names.1)
        };
        let outcome = self.sync_files(around, &dirty, new_names, new_dir);
        if let Err(error) = &outcome {
            // Never retried: a second sync could succeed without having written what the first one lost.
            self.tail().failed = Some(error.clone());
        }
        outcome
    }

    /// What was appended is synced later.
    pub(crate) fn await_sync(&self) {
        self.tail().awaited = true;
    }

    /// Forgets what would have to be synced, unless somebody is going to.
    pub(crate) fn let_go(&self) {
        let mut tail = self.tail();
        if !tail.awaited {
            tail.dirty = Vec::new();
        }
        tail.buffer = Vec::new();
    }

    fn sync_files(
        &self,
        around: &Around<'_>,
        dirty: &[(u32, Arc<dyn File>)],
        new_names: bool,
        new_dir: bool,
    ) -> Result<(), StorageError> {
        for (segment, file) in dirty {
            let path = around.descriptors.path(self.key(*segment));
            file.sync_data()
                .map_err(|e| StorageError::from_io("sync", &path, e))?;
        }
        let sync_dir = |dir: &Path| {
            around
                .fs
                .sync_dir(dir)
                .map_err(|e| StorageError::from_io("sync the directory", dir, e))
        };
        if new_names {
            sync_dir(&around.descriptors.owner_dir(self.id))?;
        }
        if new_dir {
            sync_dir(around.dir)?;
        }
        Ok(())
    }

    /// An entry is needed no more. A file with nothing needed in it is deleted.
    pub(crate) fn free(&self, around: &Around<'_>, place: Place) -> Result<(), StorageError> {
        let (dead, large) = {
            let mut books = self.books();
            let empty = books.subtract(place);
            (
                books.take_if_dead(place.segment),
                empty && books.of(place.segment).1 >= RETIRE_BYTES,
            )
        };
        if dead {
            // An owner that is never synced would keep the file open, and with it its space on disk.
            self.tail().dirty.retain(|(dirty, _)| *dirty != place.segment);
        }
        if dead || (large && self.retire(place.segment)) {
            return around.descriptors.remove(self.key(place.segment));
        }
        Ok(())
    }

    /// Gives up the file being written, if nothing in it is needed, and deletes it.
    pub(crate) fn rest(&self, around: &Around<'_>) -> Result<(), StorageError> {
        let current = self.tail().current;
        match current.filter(|current| self.retire(current.segment)) {
            Some(current) => around.descriptors.remove(self.key(current.segment)),
            None => Ok(()),
        }
    }

    /// Gives up the file being written, if it is this one and nothing in it is needed.
    fn retire(&self, segment: u32) -> bool {
        let mut tail = self.tail();
        if tail.current.is_none_or(|current| current.segment != segment) {
            return false;
        }
        let mut books = self.books();
        if books.of(segment).0 > 0 {
            return false;
        }
        tail.current = None;
        tail.dirty.retain(|(dirty, _)| *dirty != segment);
        books.seal(segment);
        books.take_if_dead(segment)
    }

    /// Deletes files without adopted entries, or moves them to `aside`. Returns how many, and whether the owner has none left.
    pub(crate) fn sweep(
        &self,
        around: &Around<'_>,
        aside: Option<&Path>,
    ) -> Result<(usize, bool), StorageError> {
        let dead = self.books().take_dead();
        if let Some(aside) = aside.filter(|_| !dead.is_empty()) {
            create_dir_durably(around.fs, aside)?;
            for segment in &dead {
                around.descriptors.move_to(self.key(*segment), aside)?;
            }
            return Ok((dead.len(), self.delete(around, &[])?));
        }
        Ok((dead.len(), self.delete(around, &dead)?))
    }

    /// Deletes everything.
    pub(crate) fn remove(&self, around: &Around<'_>) -> Result<(), StorageError> {
        let all = {
            let mut tail = self.tail();
            *tail = Tail::default();
            tail.failed = Some(StorageError::Gone {
                what: format!("{} was removed", self.id),
            });
            self.books().take_all()
        };
        self.delete(around, &all).map(drop)
    }

    fn delete(&self, around: &Around<'_>, segments: &[u32]) -> Result<bool, StorageError> {
        for segment in segments {
            around.descriptors.remove(self.key(*segment))?;
        }
        let tail = self.tail();
        let empty = tail.current.is_none() && self.books().is_empty();
        if empty {
            // Fails if something foreign lies in it; then it stays.
            let _ = around.fs.remove_dir(&around.descriptors.owner_dir(self.id));
        }
        Ok(empty)
    }
}
