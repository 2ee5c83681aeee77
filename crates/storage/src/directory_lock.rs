//! One broker per data directory.

use crate::error::StorageError;
use crate::file_system::{FileSystem, Locking, create_dir_durably};
use std::path::Path;

const NAME: &str = "leveret.lock";

/// This process owns the data directory until this is dropped. The kernel gives the lock back if the process dies, so
/// a file left behind by a crash stops nobody.
pub struct DirectoryLock {
    _held: Box<dyn Send + Sync>,
}

impl std::fmt::Debug for DirectoryLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DirectoryLock")
    }
}

impl DirectoryLock {
    /// Makes `dir` if needed and locks it. [`StorageError::Locked`] names the process that has it;
    /// [`StorageError::NotWritable`] if this process may not write there.
    pub fn acquire(fs: &dyn FileSystem, dir: &Path) -> Result<Self, StorageError> {
        create_dir_durably(fs, dir)?;
        let path = dir.join(NAME);
        let holder = format!("pid {}", std::process::id());
        match fs
            .lock(&path, &holder)
            .map_err(|e| StorageError::from_io("lock", &path, e))?
        {
            Locking::Held(held) => Ok(Self { _held: held }),
            Locking::Taken(holder) if holder.is_empty() => Err(StorageError::Locked {
                path: dir.to_owned(),
                holder: "pid unknown".to_owned(),
            }),
            Locking::Taken(holder) => Err(StorageError::Locked {
                path: dir.to_owned(),
                holder,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, faulty::FaultyFs};

    #[test]
    fn a_second_broker_is_told_who_has_the_directory() {
        for fs in [&FaultyFs::new() as &dyn FileSystem, &Disk] {
            let dir = std::env::temp_dir().join(format!("leveret-lock-{}", std::process::id()));
            let first = DirectoryLock::acquire(fs, &dir).unwrap();
            let refused = DirectoryLock::acquire(fs, &dir).unwrap_err();
            assert!(
                matches!(&refused, StorageError::Locked { holder, .. } if *holder == format!("pid {}", std::process::id()))
            );
            drop(first);
            drop(DirectoryLock::acquire(fs, &dir).unwrap());
            let _ = std::fs::remove_dir_all(&dir);
        }
    }
}
