//! The log's files: an unbroken chain by position, oldest first. Only the last one is written.

use super::ahead::Ahead;
use super::ends::{self, Ends, EndsFile};
use super::format::{BadHeader, FILE_HEADER, FileHeader, RECORD_HEADER, record_header};
use super::{LogOptions, Position};
use crate::error::StorageError;
use crate::file_system::{Access, File, FileSystem, read_full_at, write_all_at};
use crate::world::World;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

const SUFFIX: &str = ".wal";
/// A file being made; it gets its real name when its header is durable. So a file with a real name has a valid header.
const DRAFT: &str = "draft.tmp";
const SPARE: &str = "spare-";
/// A spare file that was never part of the log. There is one at most: it is made only while there is no other.
const AHEAD: &str = "spare-ahead.wal";
/// The next file is made ahead once this part of the last one is full: a log that is hardly used keeps to one file.
const AHEAD_FROM: u64 = 4;
/// A full disk has room for a smaller file, perhaps: so much smaller each time, and at the smallest this part of the usual size.
const SMALLER: u64 = 4;
const SMALLEST_PART: u64 = 64;
/// How much a read fetches before it knows the record's length.
const FIRST_READ: usize = 4096;

/// One file that is part of the log.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    pub path: PathBuf,
    pub header: FileHeader,
    pub file: Arc<dyn File>,
    /// Its size on disk, header and preallocated space included.
    pub size: u64,
}

/// What recovery found.
#[derive(Debug)]
pub(crate) struct FoundFiles {
    pub files: VecDeque<LogFile>,
    /// The highest sequence number ever used.
    pub sequence: u64,
}

/// What readers see of the chain.
pub(crate) type Files = RwLock<VecDeque<LogFile>>;

/// The writer's view of all files.
#[derive(Debug)]
pub(crate) struct Chain {
    world: Arc<dyn World>,
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    options: LogOptions,
    files: Arc<Files>,
    spares: Vec<(PathBuf, u64)>,
    ahead: Option<Ahead>,
    /// The last attempt to make one failed.
    refused: bool,
    /// Says durably which files are part of the log.
    ends: EndsFile,
    /// What it says of the oldest one.
    oldest: u64,
    /// It may name the next file: it was to, and that failed.
    names_next: bool,
    sequence: u64,
    /// Offset in the last file where the next block goes.
    offset: u64,
}

pub(crate) fn file_name(sequence: u64) -> String {
    format!("{sequence:016x}{SUFFIX}")
}

/// The sequence number that a file's name states; `None` if it is no log file.
pub(crate) fn sequence_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    if digits.len() != 16 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// True for what a crash may leave behind and nobody needs: drafts and spare files.
pub(crate) fn is_leftover(name: &str) -> bool {
    name == DRAFT || name == ends::DRAFT || (name.starts_with(SPARE) && name.ends_with(SUFFIX))
}

/// A number nobody can guess.
fn salt(world: &dyn World, path: &Path) -> Result<u64, StorageError> {
    let mut salt = [0; 8];
    world
        .random(&mut salt)
        .map_err(|e| StorageError::from_io("get random numbers for", path, e))?;
    Ok(u64::from_le_bytes(salt))
}

/// Reads a file's header.
pub(crate) fn read_header(file: &dyn File, path: &Path) -> Result<FileHeader, StorageError> {
    let mut page = vec![0; FILE_HEADER];
    let read = read_full_at(file, &mut page, 0).map_err(|e| StorageError::from_io("read", path, e))?;
    match FileHeader::decode(&page[..read]) {
        Ok(header) => Ok(header),
        Err(BadHeader::Version(found)) => Err(StorageError::Version {
            file: path.to_owned(),
            found,
            supported: super::format::VERSION,
        }),
        Err(BadHeader::Unreadable) => Err(StorageError::corrupt(
            path,
            0,
            "neither copy of the file's header is readable",
        )),
    }
}

impl Chain {
    /// A chain of what recovery found, without a file to write to yet: [`roll`](Self::roll) makes one.
    pub(crate) fn new(
        world: Arc<dyn World>,
        dir: &Path,
        options: LogOptions,
        found: FoundFiles,
        ends: (EndsFile, Ends),
    ) -> Self {
        Self {
            fs: world.files(),
            world,
            dir: dir.to_owned(),
            options,
            files: Arc::new(RwLock::new(found.files)),
            spares: Vec::new(),
            ahead: None,
            refused: false,
            ends: ends.0,
            oldest: ends.1.oldest,
            names_next: false,
            sequence: found.sequence,
            offset: 0,
        }
    }

    /// The files, for readers.
    pub(crate) fn files(&self) -> Arc<Files> {
        self.files.clone()
    }

    /// Begins a new file at `base`, with room for a block of `room` bytes at least. The last one must be synced before.
    /// If the disk is full, the file is smaller than usual, and what was missing is returned.
    ///
    /// # Errors
    /// Nothing has changed: it may be called again.
    pub(crate) fn roll(&mut self, base: u64, room: u64) -> Result<Option<StorageError>, StorageError> {
        let least = FILE_HEADER as u64 + room;
        let mut size = self.options.file_bytes.max(least);
        let mut scarce = None;
        loop {
            match self.try_roll(base, size) {
                Err(full @ StorageError::Full { .. })
                    if size > least && size > self.options.file_bytes / SMALLEST_PART =>
                {
                    size = (size / SMALLER).max(least);
                    scarce = Some(full);
                }
                rolled => return rolled.map(|()| scarce),
            }
        }
    }

    fn try_roll(&mut self, base: u64, size: u64) -> Result<(), StorageError> {
        let header = FileHeader {
            sequence: self.sequence + 1,
            base,
            salt: salt(self.world.as_ref(), &self.dir)?,
            size,
        };
        let draft = self.dir.join(DRAFT);
        let path = self.dir.join(file_name(header.sequence));
        let file = self.make_file(&draft, &path, header).inspect_err(|_| {
            // Whatever there is of it holds nothing. What cannot be removed is written over by the next attempt.
            let _ = self.fs.remove(&draft);
            if !self.names_next {
                let _ = self.fs.remove(&path);
            }
        })?;
        // After an error here the file stays: the list may name it all the same, and one that the list leaves out does no harm.
        self.names_next = true;
        self.ends.write(Ends {
            oldest: self.oldest,
            newest: header.sequence,
            end: base,
            clean: false,
        })?;
        self.names_next = false;
        self.sequence = header.sequence;
        self.offset = FILE_HEADER as u64;
        self.write_files().push_back(LogFile {
            path,
            header,
            file,
            size,
        });
        Ok(())
    }

    /// Makes an empty file of the log, with its name, durably.
    fn make_file(
        &mut self,
        draft: &Path,
        path: &Path,
        header: FileHeader,
    ) -> Result<Arc<dyn File>, StorageError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |e| StorageError::from_io(action, &path, e)
        };
        let spare = self.spares.iter().position(|(_, size)| *size == header.size);
        let file = match spare.map(|at| self.spares.remove(at)) {
            Some((spare, size)) => {
                if let Err(error) = self.fs.rename(&spare, draft) {
                    let error = StorageError::from_io("rename", &spare, error);
                    self.spares.push((spare, size));
                    return Err(error);
                }
                self.fs
                    .open(draft, Access::Write)
                    .map_err(failed("open", draft))?
            }
            None => {
                let file = self
                    .fs
                    .open(draft, Access::Create)
                    .map_err(failed("create", draft))?;
                file.allocate(header.size)
                    .map_err(failed("reserve space for", draft))?;
                file
            }
        };
        write_all_at(file.as_ref(), &header.encode(), 0).map_err(failed("write", draft))?;
        file.sync_data().map_err(failed("sync", draft))?;
        self.fs.rename(draft, path).map_err(failed("rename", draft))?;
        self.fs
            .sync_dir(&self.dir)
            .map_err(failed("sync the directory", &self.dir))?;
        Ok(file)
    }

    /// Makes durable what recovery has read of the last file between these positions: a new file says that all before
    /// it is. It is written once more because the process before this one may have ended by a sync that failed. The
    /// system then goes on showing what the disk does not have, and another sync succeeds without having written it.
    pub(crate) fn write_again(&self, from: u64, end: u64) -> Result<(), StorageError> {
        let Some(last) = self.last() else {
            return Ok(());
        };
        let begin = from.saturating_sub(last.header.base) + FILE_HEADER as u64;
        let behind = end.saturating_sub(last.header.base) + FILE_HEADER as u64;
        let length = behind.min(last.size).saturating_sub(begin);
        if length == 0 {
            return Ok(());
        }
        let path = &last.path;
        let failed = |action| move |e| StorageError::from_io(action, path, e);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let read = read_full_at(last.file.as_ref(), &mut bytes, begin).map_err(failed("read"))?;
        write_all_at(last.file.as_ref(), &bytes[..read], begin).map_err(failed("write"))?;
        last.file.sync_data().map_err(failed("sync"))
    }

    /// Cuts the file before the last one down to what is in it, which ends at position `end`. Only recovery leaves more
    /// there; from the moment the last file exists, nothing behind `end` counts.
    pub(crate) fn trim_previous(&mut self, end: u64) -> Result<(), StorageError> {
        let mut files = self.write_files();
        let Some(previous) = files.len().checked_sub(2).and_then(|at| files.get_mut(at)) else {
            return Ok(());
        };
        let size = FILE_HEADER as u64 + (end - previous.header.base);
        if size < previous.size {
            previous
                .file
                .set_len(size)
                .map_err(|e| StorageError::from_io("cut", &previous.path, e))?;
            previous.size = size;
        }
        Ok(())
    }

    fn write_files(&self) -> std::sync::RwLockWriteGuard<'_, VecDeque<LogFile>> {
        self.files.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file being written.
    pub(crate) fn last(&self) -> Option<LogFile> {
        read_lock(&self.files).back().cloned()
    }

    /// Offset for the next block; `None` if the last file has no room for `length` more bytes.
    pub(crate) fn room(&self, last: &LogFile, length: u64) -> Option<u64> {
        (self.offset + length <= last.size).then_some(self.offset)
    }

    /// A block of `length` bytes was written to a file of `size` bytes.
    pub(crate) fn advance(&mut self, length: u64, size: u64) {
        self.offset += length;
        if self.offset > size / AHEAD_FROM && self.spares.is_empty() && self.ahead.is_none() && !self.refused
        {
            self.make_ahead();
        }
    }

    /// Begins to make a spare file.
    #[cold]
    pub(crate) fn make_ahead(&mut self) {
        if self.options.make_ahead && self.ahead.is_none() {
            let path = self.dir.join(AHEAD);
            self.ahead = Ahead::begin(self.world.as_ref(), path, self.options.file_bytes).ok();
        }
    }

    /// True while a spare file is being made.
    pub(crate) fn is_making(&self) -> bool {
        self.ahead.is_some()
    }

    /// Takes the file that was made ahead among the spares, if it is ready; `None` if nothing has come to an end.
    ///
    /// # Errors
    /// Why it could not be made. It is not begun again unless somebody asks for that.
    pub(crate) fn take_ahead(&mut self) -> Option<Result<(), StorageError>> {
        let ahead = self.ahead.take_if(|ahead| ahead.is_over())?;
        let made = ahead.finish().map(|spare| self.spares.push(spare));
        self.refused = made.is_err();
        Some(made)
    }

    /// True if there is a file to follow the present one, or it is not time for that.
    pub(crate) fn has_spare(&self) -> bool {
        !self.options.make_ahead
            || self
                .spares
                .iter()
                .any(|(_, size)| *size == self.options.file_bytes)
    }

    /// Sequence of the oldest file, and the position behind it, if it is not the one being written.
    pub(crate) fn oldest(&self) -> Option<(u64, Position)> {
        let files = read_lock(&self.files);
        Some((
            files.front()?.header.sequence,
            Position(files.get(1)?.header.base),
        ))
    }

    /// Takes the `count` oldest files out of the log: kept as spares if they have the usual size, or deleted. The last one stays.
    pub(crate) fn free_oldest(&mut self, count: usize) -> Result<(), StorageError> {
        let (Some(oldest), Some(last)) = (self.sequence_at(count), self.last()) else {
            return Ok(());
        };
        // First they are not part of the log any more, then they go: a file that is missed would look like a loss.
        self.ends.write(Ends {
            oldest,
            newest: last.header.sequence,
            end: last.header.base,
            clean: false,
        })?;
        self.oldest = oldest;
        let freed: Vec<LogFile> = self.write_files().drain(..count).collect();
        for freed in freed {
            self.set_free(freed);
        }
        Ok(())
    }

    /// What cannot be kept or deleted stays where it is until the next start, which finds that it is not part of the log.
    fn set_free(&mut self, freed: LogFile) {
        if freed.size == self.options.file_bytes && self.spares.len() < self.options.spare_files {
            let spare = self
                .dir
                .join(format!("{SPARE}{:016x}{SUFFIX}", freed.header.sequence));
            if self.fs.rename(&freed.path, &spare).is_ok() {
                self.spares.push((spare, freed.size));
                return;
            }
        }
        let _ = self.fs.remove(&freed.path);
    }

    fn sequence_at(&self, index: usize) -> Option<u64> {
        Some(read_lock(&self.files).get(index)?.header.sequence)
    }

    /// The log ends here, in good order: everything before `end` is synced, and nothing will be written behind it.
    pub(crate) fn close(&mut self, end: u64) -> Result<(), StorageError> {
        self.ends.write(Ends {
            oldest: self.oldest,
            newest: self.sequence,
            end,
            clean: true,
        })
    }

    /// Bytes of the files in use.
    pub(crate) fn used(&self) -> u64 {
        read_lock(&self.files).iter().map(|file| file.size).sum()
    }

    /// Bytes of all files, spares included.
    pub(crate) fn size(&self) -> u64 {
        self.used() + self.spares.iter().map(|(_, size)| size).sum::<u64>()
    }
}

fn read_lock(files: &Files) -> std::sync::RwLockReadGuard<'_, VecDeque<LogFile>> {
    files.read().unwrap_or_else(PoisonError::into_inner)
}

/// The file that has a position, and where the next file begins.
pub(crate) fn file_at(files: &Files, at: Position) -> Option<(LogFile, Option<u64>)> {
    let files = read_lock(files);
    let after = files.partition_point(|file| file.header.base <= at.0);
    let file = files.get(after.checked_sub(1)?)?.clone();
    Some((file, files.get(after).map(|next| next.header.base)))
}

/// Reads and verifies the record at `at`, which has been written.
pub(crate) fn read_record(files: &Files, at: Position) -> Result<Vec<u8>, StorageError> {
    let gone = || StorageError::Gone {
        what: format!("the log no longer has position {}", at.0),
    };
    let (found, _) = file_at(files, at).ok_or_else(gone)?;
    let LogFile {
        path, header, file, ..
    } = found;
    let offset = FILE_HEADER as u64 + (at.0 - header.base);
    let outcome = read_from(file.as_ref(), &path, &header, offset, at);
    // A file that was freed and reused meanwhile reads as damage; it is not.
    match file_at(files, at) {
        Some((still, _)) if still.header == header => outcome,
        _ => Err(gone()),
    }
}

fn read_from(
    file: &dyn File,
    path: &Path,
    header: &FileHeader,
    offset: u64,
    at: Position,
) -> Result<Vec<u8>, StorageError> {
    let failed = |e| StorageError::from_io("read", path, e);
    let mut bytes = vec![0; FIRST_READ];
    let read = read_full_at(file, &mut bytes, offset).map_err(failed)?;
    let record = record_header(&bytes[..read], header.salt, at.0)
        .ok_or_else(|| StorageError::corrupt(path, offset, "no record begins here"))?;
    let wrong = || StorageError::Corrupt {
        file: path.to_owned(),
        offset,
        journal: Some(record.journal),
        what: "a record's content does not match its checksum".to_owned(),
    };
    let end = RECORD_HEADER + record.length;
    if end > read {
        // The header is intact, so the length is what was written; still, never allocate more than the file can hold.
        if offset + end as u64 > file.len().map_err(failed)? {
            return Err(wrong());
        }
        bytes.resize(end, 0);
        let more = read_full_at(file, &mut bytes[read..], offset + read as u64).map_err(failed)?;
        bytes.truncate(read + more);
    }
    let payload = match bytes.get(RECORD_HEADER..end) {
        Some(payload) if record.matches(payload) => payload,
        _ => return Err(wrong()),
    };
    if end <= FIRST_READ {
        // Exactly as large as needed: the caller may keep it.
        return Ok(payload.to_vec());
    }
    bytes.truncate(end);
    bytes.drain(..RECORD_HEADER);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::System;

    #[test]
    fn every_file_has_a_salt_of_its_own() {
        let mut salts: Vec<u64> = (0..100)
            .map(|_| salt(System::real().as_ref(), Path::new("/")).unwrap())
            .collect();
        salts.sort_unstable();
        salts.dedup();
        assert_eq!(salts.len(), 100);
    }

    #[test]
    fn a_name_states_a_sequence_or_is_not_ours() {
        assert_eq!(sequence_of(&file_name(0x1234)), Some(0x1234));
        for foreign in [
            "1.wal",
            "00000000000000zz.wal",
            "+000000000000001.wal",
            "0000000000000001.wal.damaged",
        ] {
            assert_eq!(sequence_of(foreign), None, "{foreign}");
        }
        assert!(
            is_leftover("draft.tmp") && is_leftover("chain.tmp") && is_leftover("spare-0000000000000001.wal")
        );
        assert!(!is_leftover(&file_name(1)));
    }
}
