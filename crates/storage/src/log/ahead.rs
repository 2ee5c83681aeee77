//! Writes the log's next file full of zeros while the present one fills.
//!
//! A file system remembers of reserved space that it was never written. The first write there changes its books, and the sync
//! has to make those durable too: it takes twice the time and twice the processor. Files that were in use before have that
//! behind them; a log that is young, or grows, has none. What goes wrong here is no failure, but it tells early that there will be no next file.

use crate::error::StorageError;
use crate::file_system::{Access, FileSystem, write_all_at};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How much is written and synced at once: the log's own syncs get their turn between two pieces.
const PIECE: usize = 256 << 10;

/// A file under way, on a thread of its own.
#[derive(Debug)]
pub(crate) struct Ahead {
    thread: Option<JoinHandle<Result<(), StorageError>>>,
    unwanted: Arc<AtomicBool>,
    path: PathBuf,
    size: u64,
}

impl Ahead {
    /// Begins to make a file of `size` bytes at `path`, which nobody else may use.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(crate) fn begin(fs: Arc<dyn FileSystem>, path: PathBuf, size: u64) -> Result<Self, StorageError> {
        let unwanted = Arc::new(AtomicBool::new(false));
        let (to, stop) = (path.clone(), unwanted.clone());
        let thread = std::thread::Builder::new()
            .name("log-ahead".to_owned())
            .spawn(move || make(fs.as_ref(), &to, size, &stop))
            .map_err(|e| StorageError::from_io("start the thread for", &path, e))?;
        Ok(Self {
            thread: Some(thread),
            unwanted,
            path,
            size,
        })
    }

    /// True if it has come to its end, one way or the other.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The file and its size, after waiting for it.
    ///
    /// # Errors
    /// Why it could not be made.
    pub(crate) fn finish(mut self) -> Result<(PathBuf, u64), StorageError> {
        let made = self.thread.take().map(JoinHandle::join);
        made.and_then(Result::ok).unwrap_or(Err(StorageError::Misuse {
            what: "the thread that makes the log's next file died",
        }))?;
        Ok((std::mem::take(&mut self.path), self.size))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// After this the file is there, whole and synced; or it is gone, as far as the file system lets it.
fn make(fs: &dyn FileSystem, path: &Path, size: u64, unwanted: &AtomicBool) -> Result<(), StorageError> {
    let made = fill(fs, path, size, unwanted);
    if made.is_err() {
        let _ = fs.remove(path);
    }
    made.map_err(|e| StorageError::from_io("make", path, e))
}

fn fill(fs: &dyn FileSystem, path: &Path, size: u64, unwanted: &AtomicBool) -> io::Result<()> {
    let file = fs.open(path, Access::Create)?;
    file.allocate(size)?;
    let zeros = vec![0; PIECE];
    let mut offset = 0;
    while offset < size {
        if unwanted.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = (size - offset).min(PIECE as u64);
        write_all_at(file.as_ref(), &zeros[..length as usize], offset)?;
        file.sync_data()?;
        offset += length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::{Fault, FaultyFs};

    const SIZE: u64 = (PIECE * 2 + 100) as u64;

    fn disk() -> (FaultyFs, PathBuf) {
        let fs = FaultyFs::new();
        fs.create_dir(Path::new("/log")).unwrap();
        (fs, PathBuf::from("/log/spare-ahead.wal"))
    }

    #[test]
    fn a_file_made_ahead_is_zeros_to_its_end() {
        let (fs, path) = disk();
        let made = Ahead::begin(Arc::new(fs.clone()), path.clone(), SIZE)
            .unwrap()
            .finish();
        assert_eq!(made.unwrap(), (path.clone(), SIZE));
        assert_eq!(fs.bytes(&path).unwrap(), vec![0; SIZE as usize]);
    }

    #[test]
    fn what_cannot_be_made_is_not_there() {
        for call in 1..=8 {
            let (fs, path) = disk();
            fs.fail_at(call, Fault::Full);
            let made = Ahead::begin(Arc::new(fs.clone()), path.clone(), SIZE)
                .unwrap()
                .finish();
            assert!(matches!(made, Err(StorageError::Full { .. })), "call {call}");
            assert_eq!(fs.bytes(&path), None, "call {call}");
        }
    }

    #[test]
    fn one_that_is_not_wanted_any_more_ends_early() {
        let (fs, path) = disk();
        let unwanted = AtomicBool::new(true);
        assert!(make(&fs, &path, SIZE, &unwanted).is_err());
        assert_eq!(fs.bytes(&path), None);
    }
}
