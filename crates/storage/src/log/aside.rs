//! Journals that nobody knows are written to files of their own, so that nothing is lost when the log forgets them.
//!
//! ```text
//! file   = magic 8 | version u32 | kind u8 | zero 3 | number u64 | records
//! record = length u32 | crc u32 | position u64 | payload
//! ```

use super::{JournalId, LogOptions, Position, recovery};
use crate::error::StorageError;
use crate::file_system::{Access, File, FileSystem, create_dir_durably, write_all_at};
use std::collections::{BTreeMap, btree_map::Entry};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"LEVJRNL\n";
const VERSION: u32 = 1;
/// So much is written at once, in bytes.
const PIECE: usize = 1 << 20;

/// A journal that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    pub journal: JournalId,
    /// Where it is now.
    pub file: PathBuf,
    pub records: u64,
    /// Of their payloads.
    pub bytes: u64,
}

/// A journal's file while it is written.
struct Draft {
    file: Arc<dyn File>,
    buffer: Vec<u8>,
    offset: u64,
    told: SetAside,
}

/// Copies journals of the log in `log_dir` into files in `to`, durably. The log stays as it is; it may be open.
///
/// # Errors
/// The log cannot be read, or `to` not written.
pub fn set_journals_aside(
    fs: &dyn FileSystem,
    log_dir: &Path,
    options: &LogOptions,
    which: &dyn Fn(JournalId) -> bool,
    to: &Path,
) -> Result<Vec<SetAside>, StorageError> {
    create_dir_durably(fs, to)?;
    let mut drafts: BTreeMap<JournalId, Draft> = BTreeMap::new();
    let mut failed = None;
    recovery::recover(fs, log_dir, options, &mut |journal, position, payload| {
        if failed.is_none() && which(journal) {
            failed = copy(fs, to, &mut drafts, journal, position, payload).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let mut told = Vec::new();
    for mut draft in drafts.into_values() {
        draft.write()?;
        let synced = draft.file.sync_data();
        synced.map_err(|e| StorageError::from_io("sync", &draft.told.file, e))?;
        told.push(draft.told);
    }
    fs.sync_dir(to)
        .map_err(|e| StorageError::from_io("sync the directory", to, e))?;
    Ok(told)
}

fn copy(
    fs: &dyn FileSystem,
    to: &Path,
    drafts: &mut BTreeMap<JournalId, Draft>,
    journal: JournalId,
    position: Position,
    payload: &[u8],
) -> Result<(), StorageError> {
    let draft = match drafts.entry(journal) {
        Entry::Occupied(draft) => draft.into_mut(),
        Entry::Vacant(free) => free.insert(Draft::begin(fs, to, journal)?),
    };
    draft.record(position, payload)
}

impl Draft {
    fn begin(fs: &dyn FileSystem, to: &Path, journal: JournalId) -> Result<Self, StorageError> {
        let path = to.join(format!("{}-{}.journal", journal.kind.0, journal.number));
        let file = fs
            .open(&path, Access::Create)
            .map_err(|e| StorageError::from_io("create", &path, e))?;
        let mut buffer = MAGIC.to_vec();
        buffer.extend_from_slice(&VERSION.to_le_bytes());
        buffer.extend_from_slice(&[journal.kind.0, 0, 0, 0]);
        buffer.extend_from_slice(&journal.number.to_le_bytes());
        Ok(Self {
            file,
            buffer,
            offset: 0,
            told: SetAside {
                journal,
                file: path,
                records: 0,
                bytes: 0,
            },
        })
    }

    fn record(&mut self, position: Position, payload: &[u8]) -> Result<(), StorageError> {
        // The log has no larger records.
        let length = payload.len() as u32;
        self.buffer.extend_from_slice(&length.to_le_bytes());
        let crc = crc32fast::hash(payload);
        self.buffer.extend_from_slice(&crc.to_le_bytes());
        self.buffer.extend_from_slice(&position.0.to_le_bytes());
        self.buffer.extend_from_slice(payload);
        self.told.records += 1;
        self.told.bytes += payload.len() as u64;
        match self.buffer.len() >= PIECE {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> Result<(), StorageError> {
        write_all_at(self.file.as_ref(), &self.buffer, self.offset)
            .map_err(|e| StorageError::from_io("write", &self.told.file, e))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
