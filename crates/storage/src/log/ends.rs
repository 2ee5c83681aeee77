//! Which files belong to the log. Files cannot tell of their neighbours that are gone: without this, a log whose newest file was
//! deleted looks like a shorter one.
//!
//! ```text
//! file = two slots of 4096 bytes, written in turns
//! slot = the same 56 bytes twice, in different sectors:
//!        magic 8 | version u32 | crc u32 | generation u64 | oldest u64 | newest u64 | end u64 | clean u64
//! ```
//!
//! The slot with the higher generation counts. A crash can only tear the slot that is being written, so the other one is always
//! whole, and no write needs space or a new name. What is written here follows what it tells of: a file is named once
//! its own name is durable, and is named no more before it goes. So after a crash at any point every file that is named
//! is there.

use super::format::{u32_at, u64_at};
use crate::error::StorageError;
use crate::file_system::{Access, File, FileSystem, read_full_at, write_all_at};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file's name, beside the log's files.
pub(crate) const NAME: &str = "chain";
/// The file being made.
pub(crate) const DRAFT: &str = "chain.tmp";
const MAGIC: [u8; 8] = *b"LEVENDS\n";
const VERSION: u32 = 1;
const SLOT: usize = 4096;
const COPIES: [usize; 2] = [0, 2048];
const LENGTH: usize = 56;

/// The ends of the chain of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Sequence number of the oldest file that is needed.
    pub oldest: u64,
    /// Of the newest one; lower than `oldest` if there was none yet.
    pub newest: u64,
    /// Everything before this position was durable once.
    pub end: u64,
    /// The log was closed in good order, and ended at `end`.
    pub clean: bool,
}

/// The file that tells them.
#[derive(Debug)]
pub(crate) struct EndsFile {
    file: Arc<dyn File>,
    path: PathBuf,
    generation: u64,
}

impl EndsFile {
    /// Makes the file, durably; one that is there is replaced.
    pub(crate) fn create(fs: &dyn FileSystem, dir: &Path, ends: Ends) -> Result<Self, StorageError> {
        let (draft, path) = (dir.join(DRAFT), dir.join(NAME));
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |e| StorageError::from_io(action, &path, e)
        };
        let file = fs
            .open(&draft, Access::Create)
            .map_err(failed("create", &draft))?;
        let mut slots = vec![0; SLOT];
        slots.extend_from_slice(&encode(1, ends));
        write_all_at(file.as_ref(), &slots, 0).map_err(failed("write", &draft))?;
        file.sync_data().map_err(failed("sync", &draft))?;
        fs.rename(&draft, &path).map_err(failed("rename", &draft))?;
        fs.sync_dir(dir).map_err(failed("sync the directory", dir))?;
        Ok(Self {
            file,
            path,
            generation: 1,
        })
    }

    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if neither slot is readable; [`StorageError::Version`] for a newer format.
    pub(crate) fn open(fs: &dyn FileSystem, dir: &Path) -> Result<Option<(Self, Ends)>, StorageError> {
        let path = dir.join(NAME);
        let file = match fs.open(&path, Access::Write) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StorageError::from_io("open", &path, error)),
        };
        let mut bytes = vec![0; 2 * SLOT];
        let read = read_full_at(file.as_ref(), &mut bytes, 0)
            .map_err(|e| StorageError::from_io("read", &path, e))?;
        bytes.truncate(read);
        let copies = COPIES.into_iter().flat_map(|copy| [copy, SLOT + copy]);
        let readable = copies.filter_map(|at| decode(bytes.get(at..at + LENGTH)?));
        let Some((version, generation, ends)) = readable.max_by_key(|(_, generation, _)| *generation) else {
            return Err(StorageError::corrupt(
                &path,
                0,
                "it does not say any more which files belong to the log",
            ));
        };
        if version > VERSION {
            return Err(StorageError::Version {
                file: path,
                found: version,
                supported: VERSION,
            });
        }
        let file = Self {
            file,
            path,
            generation,
        };
        Ok(Some((file, ends)))
    }

    /// Makes durable what [`open`](Self::open) has read. The process before this one may have ended by a sync that
    /// failed: the system shows what it wrote, and the disk does not have it. The other slot must not be written before
    /// the disk does: were that torn, what counted would be older than what was true once.
    pub(crate) fn write_again(&self, ends: Ends) -> Result<(), StorageError> {
        self.write_slot(self.generation, ends)
    }

    /// Says from now on, durably, that the ends are these. It may be called again after an error: everything is written
    /// anew then.
    pub(crate) fn write(&mut self, ends: Ends) -> Result<(), StorageError> {
        self.write_slot(self.generation + 1, ends)?;
        self.generation += 1;
        Ok(())
    }

    fn write_slot(&self, generation: u64, ends: Ends) -> Result<(), StorageError> {
        let offset = SLOT as u64 * (generation % 2);
        write_all_at(self.file.as_ref(), &encode(generation, ends), offset)
            .map_err(|e| StorageError::from_io("write", &self.path, e))?;
        let synced = self.file.sync_data();
        synced.map_err(|e| StorageError::from_io("sync", &self.path, e))
    }
}

fn encode(generation: u64, ends: Ends) -> Vec<u8> {
    let mut copy = Vec::with_capacity(LENGTH);
    copy.extend_from_slice(&MAGIC);
    copy.extend_from_slice(&VERSION.to_le_bytes());
    copy.extend_from_slice(&[0; 4]);
    for number in [
        generation,
        ends.oldest,
        ends.newest,
        ends.end,
        u64::from(ends.clean),
    ] {
        copy.extend_from_slice(&number.to_le_bytes());
    }
    let crc = crc32fast::hash(&copy);
    copy[12..16].copy_from_slice(&crc.to_le_bytes());
    let mut slot = vec![0; SLOT];
    for at in COPIES {
        slot[at..at + LENGTH].copy_from_slice(&copy);
    }
    slot
}

/// The version, generation and ends that a copy states.
fn decode(copy: &[u8]) -> Option<(u32, u64, Ends)> {
    let mut bytes: [u8; LENGTH] = copy.try_into().ok()?;
    let crc = u32_at(&bytes, 12)?;
    bytes[12..16].fill(0);
    if bytes[..8] != MAGIC || crc32fast::hash(&bytes) != crc {
        return None;
    }
    let number = |at| u64_at(&bytes, at);
    let ends = Ends {
        oldest: number(24)?,
        newest: number(32)?,
        end: number(40)?,
        clean: number(48)? == 1,
    };
    Some((u32_at(&bytes, 8)?, number(16)?, ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::{Fault, FaultyFs};
    use crate::file_system::create_dir_durably;

    fn ends(newest: u64) -> Ends {
        Ends {
            oldest: 1,
            newest,
            end: newest * 1000,
            clean: newest.is_multiple_of(2),
        }
    }

    fn disk() -> (FaultyFs, PathBuf) {
        let fs = FaultyFs::new();
        create_dir_durably(&fs, Path::new("/log")).unwrap();
        (fs, PathBuf::from("/log"))
    }

    #[test]
    fn what_was_written_last_counts_however_the_power_fails() {
        for call in 1..=12 {
            for seed in 0..20 {
                let (fs, dir) = disk();
                let mut file = EndsFile::create(&fs, &dir, ends(1)).unwrap();
                fs.fail_at(call, Fault::PowerCut);
                let written = (2..=5)
                    .take_while(|newest| file.write(ends(*newest)).is_ok())
                    .last();
                let known = written.unwrap_or(1);
                let (_, found) = EndsFile::open(&fs.crash(seed), &dir).unwrap().unwrap();
                assert!(found == ends(known) || found == ends(known + 1), "{found:?}");
            }
        }
    }

    #[test]
    fn a_failed_write_is_made_up_for_by_the_next_one() {
        for call in 1..=2 {
            let (fs, dir) = disk();
            let mut file = EndsFile::create(&fs, &dir, ends(1)).unwrap();
            fs.fail_at(call, Fault::Io);
            assert!(file.write(ends(2)).is_err());
            file.write(ends(3)).unwrap();
            let after = fs.crash(call);
            assert_eq!(EndsFile::open(&after, &dir).unwrap().unwrap().1, ends(3));
        }
    }

    #[test]
    fn what_a_failed_sync_left_behind_is_made_durable_before_the_other_slot_is_written() {
        for call in 1..=6 {
            for seed in 0..20 {
                let (fs, dir) = disk();
                let mut file = EndsFile::create(&fs, &dir, ends(1)).unwrap();
                file.write(ends(2)).unwrap();
                fs.fail_at(2, Fault::Io);
                assert!(file.write(ends(3)).is_err());
                let fs = fs.kill();
                let (mut file, found) = EndsFile::open(&fs, &dir).unwrap().unwrap();
                assert_eq!(found, ends(3), "a killed process leaves what it wrote");
                fs.fail_at(call, Fault::PowerCut);
                let known = match file.write_again(found) {
                    Ok(()) => 3 + u64::from(file.write(ends(4)).is_ok()),
                    Err(_) => 2,
                };
                let (_, found) = EndsFile::open(&fs.crash(seed), &dir).unwrap().unwrap();
                assert!(found == ends(known) || found == ends(known + 1), "{found:?}");
            }
        }
    }

    #[test]
    fn a_lost_sector_costs_nothing_and_a_lost_file_is_told() {
        let (fs, dir) = disk();
        let mut file = EndsFile::create(&fs, &dir, ends(1)).unwrap();
        file.write(ends(2)).unwrap();
        for sector in 0..2 * SLOT / 512 {
            let fs = fs.copy();
            fs.corrupt(&dir.join(NAME), |bytes| bytes[sector * 512..][..512].fill(0xff));
            assert_eq!(EndsFile::open(&fs, &dir).unwrap().unwrap().1, ends(2));
        }
        fs.corrupt(&dir.join(NAME), Vec::clear);
        assert!(matches!(
            EndsFile::open(&fs, &dir),
            Err(StorageError::Corrupt { .. })
        ));
        assert!(EndsFile::open(&disk().0, &dir).unwrap().is_none());
    }

    #[test]
    fn it_has_the_bytes_that_it_always_had_and_one_of_a_later_version_is_refused_by_name() {
        let slot = encode(3, ends(2));
        let copy = &slot[..LENGTH];
        assert_eq!(&slot[COPIES[1]..][..LENGTH], copy);
        let written = vec![copy.escape_ascii().to_string()];
        assert_eq!(
            written,
            [
                r"LEVENDS\n\x01\x00\x00\x00\xa3\x80\xe4,\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\xd0\x07\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"
            ]
        );
        let (fs, dir) = disk();
        EndsFile::create(&fs, &dir, ends(1)).unwrap();
        fs.corrupt(&dir.join(NAME), |bytes| {
            for at in COPIES {
                let copy = &mut bytes[SLOT + at..][..LENGTH];
                copy[8..12].copy_from_slice(&(VERSION + 1).to_le_bytes());
                copy[12..16].fill(0);
                let crc = crc32fast::hash(copy);
                copy[12..16].copy_from_slice(&crc.to_le_bytes());
            }
        });
        let error = EndsFile::open(&fs, &dir).unwrap_err().to_string();
        assert!(error.contains("chain has format version 2"), "{error}");
    }
}
