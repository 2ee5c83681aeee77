//! Writes the log's next file full of zeros while the present one fills.
//!
//! A file system remembers of reserved space that it was never written. The first write there changes its books, and the sync
//! has to make those durable too: it takes twice the time and twice the processor. Files that were in use before have that
//! behind them; a log that is young, or grows, has none. What goes wrong here is no failure, but it tells early that
//! there will be no next file.

use crate::error::StorageError;
use crate::file_system::{Access, File, FileSystem, write_all_at};
use crate::world::{Step, Task, Thread, World};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// How much is written and synced at once: the log's own syncs get their turn between two pieces.
const PIECE: usize = 256 << 10;

/// A file under way, on a thread of its own.
#[derive(Debug)]
pub(crate) struct Ahead {
    thread: Arc<dyn Thread>,
    shared: Arc<Shared>,
    path: PathBuf,
    size: u64,
}

#[derive(Debug, Default)]
struct Shared {
    unwanted: AtomicBool,
    made: OnceLock<Result<(), StorageError>>,
}

/// The thread's part.
struct Making {
    shared: Arc<Shared>,
    fs: Arc<dyn FileSystem>,
    file: Option<Arc<dyn File>>,
    path: PathBuf,
    size: u64,
    written: u64,
    zeros: Vec<u8>,
}

impl Ahead {
    /// Begins to make a file of `size` bytes at `path`, which nobody else may use.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(crate) fn begin(world: &dyn World, path: PathBuf, size: u64) -> Result<Self, StorageError> {
        let shared = Arc::new(Shared::default());
        let making = Making {
            shared: shared.clone(),
            fs: world.files(),
            file: None,
            path: path.clone(),
            size,
            written: 0,
            zeros: vec![0; PIECE],
        };
        let thread = world
            .start("log-ahead", Box::new(making))
            .map_err(|e| StorageError::from_io("start the thread for", &path, e))?;
        Ok(Self {
            thread,
            shared,
            path,
            size,
        })
    }

    /// True if it has come to its end, one way or the other.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.made.get().is_some()
    }

    /// The file and its size, after waiting for it.
    ///
    /// # Errors
    /// Why it could not be made.
    pub(crate) fn finish(mut self) -> Result<(PathBuf, u64), StorageError> {
        self.thread.join();
        self.shared
            .made
            .get()
            .cloned()
            .unwrap_or(Err(StorageError::Misuse {
                what: "the thread that makes the log's next file died",
            }))?;
        Ok((std::mem::take(&mut self.path), self.size))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.unwanted.store(true, Ordering::Relaxed);
        self.thread.join();
    }
}

impl Task for Making {
    /// After the last step the file is there, whole and synced; or it is gone, as far as the file system lets it.
    fn step(&mut self) -> Step {
        let made = match self.fill() {
            Ok(false) => return Step::Again,
            Ok(true) => Ok(()),
            Err(error) => {
                let _ = self.fs.remove(&self.path);
                Err(StorageError::from_io("make", &self.path, error))
            }
        };
        let _ = self.shared.made.set(made);
        Step::End
    }
}

impl Making {
    /// Writes one piece. True if it was the last one.
    fn fill(&mut self) -> io::Result<bool> {
        if self.shared.unwanted.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let Some(file) = &self.file else {
            let file = self.fs.open(&self.path, Access::Create)?;
            file.allocate(self.size)?;
            self.file = Some(file);
            return Ok(self.size == 0);
        };
        let length = (self.size - self.written).min(PIECE as u64);
        write_all_at(file.as_ref(), &self.zeros[..length as usize], self.written)?;
        file.sync_data()?;
        self.written += length;
        Ok(self.written == self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::{Fault, FaultyFs};
    use crate::system::System;
    use std::path::Path;

    const SIZE: u64 = (PIECE * 2 + 100) as u64;

    fn disk() -> (FaultyFs, PathBuf) {
        let fs = FaultyFs::new();
        fs.create_dir(Path::new("/log")).unwrap();
        (fs, PathBuf::from("/log/spare-ahead.wal"))
    }

    #[test]
    fn a_file_made_ahead_is_zeros_to_its_end() {
        let (fs, path) = disk();
        let made = Ahead::begin(System::over(Arc::new(fs.clone())).as_ref(), path.clone(), SIZE)
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
            let made = Ahead::begin(System::over(Arc::new(fs.clone())).as_ref(), path.clone(), SIZE)
                .unwrap()
                .finish();
            assert!(matches!(made, Err(StorageError::Full { .. })), "call {call}");
            assert_eq!(fs.bytes(&path), None, "call {call}");
        }
    }

    #[test]
    fn one_that_is_not_wanted_any_more_ends_early() {
        let (fs, path) = disk();
        let world = System::over(Arc::new(fs.clone()));
        drop(Ahead::begin(world.as_ref(), path.clone(), SIZE * 1000).unwrap());
        assert_eq!(fs.bytes(&path), None);
    }
}
