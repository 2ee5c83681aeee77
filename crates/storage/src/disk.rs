//! The real file system.

use crate::file_system::{Access, Advice, File, FileSystem, Locking};
use rustix::fs::{FallocateFlags, fadvise, fallocate, statvfs};
use std::fs::{OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Messages may be confidential: files are readable by the owner and the group only.
const FILE_MODE: u32 = 0o640;
const DIRECTORY_MODE: u32 = 0o750;

/// The operating system's files.
#[derive(Debug, Default, Clone, Copy)]
pub struct Disk;

#[derive(Debug)]
struct DiskFile(std::fs::File);

impl FileSystem for Disk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(FILE_MODE);
        match access {
            Access::Read => {}
            Access::Write => {
                options.write(true);
            }
            Access::Create => {
                options.write(true).create(true).truncate(true);
            }
        }
        Ok(Arc::new(DiskFile(options.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(dir)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::remove_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::File::open(dir)?.sync_all()
    }

    fn free_space(&self, dir: &Path) -> io::Result<u64> {
        let numbers = statvfs(dir)?;
        Ok(numbers.f_bavail.saturating_mul(numbers.f_frsize))
    }

    fn lock(&self, path: &Path, holder: &str) -> io::Result<Locking> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.write_all(holder.as_bytes())?;
                Ok(Locking::Held(Box::new(file)))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.take(256).read_to_string(&mut text);
                Ok(Locking::Taken(text.trim().to_owned()))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl File for DiskFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// Plain `fallocate`, which changes the length as well: then `fdatasync` of later writes need not journal it. Never
    /// glibc's `posix_fallocate`, which emulates by writing where the file system cannot do it.
    fn allocate(&self, length: u64) -> io::Result<()> {
        match fallocate(&self.0, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                if self.0.metadata()?.len() < length {
                    self.0.set_len(length)
                } else {
                    Ok(())
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn advise(&self, offset: u64, length: u64, advice: Advice) {
        let advice = match advice {
            Advice::WillNeed => rustix::fs::Advice::WillNeed,
            Advice::DontNeed => rustix::fs::Advice::DontNeed,
        };
        if let Some(length) = NonZeroU64::new(length) {
            let _ = fadvise(&self.0, offset, Some(length), advice);
        }
    }
}
