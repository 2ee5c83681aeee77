//! Open segment files, with a bound: queues may be many more than file descriptors.

use crate::error::{StorageError, out_of_descriptors};
use crate::file_system::{Access, File, FileSystem, read_full_at};
use crate::journal::JournalId;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) const HEADER: usize = 32;
/// Version 2 had owners without a kind.
pub(crate) const VERSION: u32 = 3;
const MAGIC: [u8; 8] = *b"LEVSEG\r\n";

/// Owner and number of a segment.
pub(crate) type SegmentKey = (JournalId, u32);

#[derive(Debug)]
pub(crate) struct Descriptors {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    limit: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    files: HashMap<SegmentKey, (Arc<dyn File>, u64)>,
    /// Counts uses; the file with the lowest count was used longest ago.
    clock: u64,
}

/// The header of a segment file.
pub(crate) fn encode_header(key: SegmentKey) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..20].copy_from_slice(&key.0.number.to_le_bytes());
    header[20..24].copy_from_slice(&key.1.to_le_bytes());
    header[24] = key.0.kind.0;
    let crc = crc32fast::hash(&header[..28]);
    header[28..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// A file of another version is not read. One whose header is damaged is: each part of an entry says where it belongs.
pub(crate) fn check_version(file: &dyn File, path: &Path) -> Result<(), StorageError> {
    let mut header = [0; HEADER];
    read_full_at(file, &mut header, 0).map_err(|e| StorageError::from_io("read", path, e))?;
    let mut found = [0; 4];
    found.copy_from_slice(&header[8..12]);
    let found = u32::from_le_bytes(found);
    let crc = crc32fast::hash(&header[..28]).to_le_bytes();
    if header[..8] == MAGIC && header[28..] == crc && found != VERSION {
        return Err(StorageError::Version {
            file: path.to_owned(),
            found,
            supported: VERSION,
        });
    }
    Ok(())
}

/// The name of an owner's directory.
pub(crate) fn owner_name(owner: JournalId) -> String {
    format!("{}-{}", owner.kind.0, owner.number)
}

impl Descriptors {
    pub(crate) fn new(fs: Arc<dyn FileSystem>, dir: &Path, limit: usize) -> Self {
        Self {
            fs,
            dir: dir.to_owned(),
            limit: limit.max(1),
            open: Mutex::new(Open::default()),
        }
    }

    pub(crate) fn owner_dir(&self, owner: JournalId) -> PathBuf {
        self.dir.join(owner_name(owner))
    }

    pub(crate) fn path(&self, key: SegmentKey) -> PathBuf {
        self.owner_dir(key.0).join(format!("{}.segment", key.1))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file; if the process has no descriptor left, all that nobody uses are given back first.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let opened = self.fs.open(path, access);
        match &opened {
            Err(error) if out_of_descriptors(error) => {
                self.lock().files.clear();
                self.fs.open(path, access)
            }
            _ => opened,
        }
    }

    /// A new, empty file.
    pub(crate) fn create(&self, key: SegmentKey) -> Result<Arc<dyn File>, StorageError> {
        let path = self.path(key);
        let file = self
            .open(&path, Access::Create)
            .map_err(|e| StorageError::from_io("create", &path, e))?;
        self.keep(key, file.clone());
        Ok(file)
    }

    /// An existing file.
    pub(crate) fn get(&self, key: SegmentKey) -> Result<Arc<dyn File>, StorageError> {
        {
            let mut open = self.lock();
            open.clock += 1;
            let now = open.clock;
            if let Some((file, used)) = open.files.get_mut(&key) {
                *used = now;
                return Ok(file.clone());
            }
        }
        let path = self.path(key);
        let file = self.open(&path, Access::Write).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => StorageError::Gone {
                what: format!("{} does not exist", path.display()),
            },
            _ => StorageError::from_io("open", &path, e),
        })?;
        self.keep(key, file.clone());
        Ok(file)
    }

    fn keep(&self, key: SegmentKey, file: Arc<dyn File>) {
        let mut open = self.lock();
        while open.files.len() >= self.limit {
            let oldest = open
                .files
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| *key);
            match oldest {
                Some(oldest) => open.files.remove(&oldest),
                None => break,
            };
        }
        open.clock += 1;
        let now = open.clock;
        open.files.insert(key, (file, now));
    }

    /// Moves the file to another folder on the same file system.
    pub(crate) fn move_to(&self, key: SegmentKey, dir: &Path) -> Result<(), StorageError> {
        let path = self.path(key);
        let name = path.file_name().unwrap_or_default();
        self.fs
            .rename(&path, &dir.join(name))
            .map_err(|e| StorageError::from_io("rename", &path, e))
    }

    /// Closes the file, as soon as nobody uses it, and deletes it.
    pub(crate) fn remove(&self, key: SegmentKey) -> Result<(), StorageError> {
        self.lock().files.remove(&key);
        let path = self.path(key);
        match self.fs.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StorageError::from_io("remove", &path, error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::FaultyFs;
    use crate::file_system::write_all_at;
    use crate::journal::Kind;
    use crate::segments::Place;

    #[test]
    fn a_segment_has_the_bytes_that_it_always_had_and_one_of_another_version_is_refused_by_name() {
        let owner = JournalId::new(Kind::QUEUE, 300);
        let header = encode_header((owner, 5));
        let place = Place {
            segment: 5,
            offset: 4_096,
            length: 25,
        };
        let mut entry = Vec::new();
        place.encode(owner, &[b"message", b"m2"], &mut entry);
        let written = [header.to_vec(), entry].map(|bytes| bytes.escape_ascii().to_string());
        assert_eq!(
            written.to_vec(),
            [
                r"LEVSEG\r\n\x03\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x02\x00\x00\x00\xea\xbdN\x06",
                r"messagem2\x07\x00\x00\x00\xa9P^\x0b\t\x00\x00\x00Y\xed\x87v"
            ]
        );
        let (fs, path) = (FaultyFs::new(), Path::new("/q/5.segment"));
        fs.create_dir(Path::new("/q")).unwrap();
        let mut later = header;
        later[8] += 1;
        let crc = crc32fast::hash(&later[..28]);
        later[28..].copy_from_slice(&crc.to_le_bytes());
        let file = fs.open(path, Access::Create).unwrap();
        write_all_at(file.as_ref(), &header, 0).unwrap();
        check_version(file.as_ref(), path).unwrap();
        write_all_at(file.as_ref(), &later, 0).unwrap();
        let error = check_version(file.as_ref(), path).unwrap_err().to_string();
        assert!(error.contains("5.segment has format version 4"), "{error}");
    }
}
