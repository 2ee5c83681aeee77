//! A node that forgets everything, as RabbitMQ's `reset` has it.

use crate::groups::membership::ClusterFile;
use std::fs;
use std::io;
use std::path::Path;
use storage::{DirectoryLock, Disk};

/// What lies in the data directory and is the broker's: journals, and what queues hold. The lock and the admin socket stay.
const FOLDERS: [&str; 3] = ["log", "queues", "streams"];

/// Deletes everything durable of a node that is down: the next start finds an empty data directory.
///
/// # Errors
/// A process has the directory, or something can't be deleted.
pub fn erase(data_dir: &Path) -> io::Result<()> {
    let _lock = DirectoryLock::acquire(&Disk, data_dir).map_err(io::Error::other)?;
    for folder in FOLDERS {
        let path = data_dir.join(folder);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let text = format!("{} can't be deleted: {error}", path.display());
                return Err(io::Error::new(error.kind(), text));
            }
            _ => {}
        }
    }
    // Last: with it and without a log the node does not start, and is erased again.
    let path = ClusterFile::path(data_dir);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let text = format!("{} can't be deleted: {error}", path.display());
            Err(io::Error::new(error.kind(), text))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Broker, Options};

    #[test]
    fn a_node_that_is_down_forgets_and_one_that_is_open_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        assert!(erase(dir.path()).is_err());
        assert!(dir.path().join("log").exists());
        std::fs::create_dir_all(dir.path().join("streams/1")).unwrap();
        std::fs::write(dir.path().join("cluster"), "what it knew of its cluster").unwrap();
        broker.close();
        drop(broker);
        erase(dir.path()).unwrap();
        assert!(
            !["log", "queues", "streams"]
                .iter()
                .any(|it| dir.path().join(it).exists())
        );
        assert!(!dir.path().join("cluster").exists());
        erase(dir.path()).unwrap();
    }
}
