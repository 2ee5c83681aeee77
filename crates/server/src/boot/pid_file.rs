//! The file that holds the number of the node's process, for scripts that wait for the node (`rabbitmqctl wait FILE`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file, which goes with the node unless it is to stay.
pub struct PidFile {
    path: PathBuf,
    stays: bool,
}

impl PidFile {
    /// Writes it.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn write(path: &Path, stays: bool) -> io::Result<Self> {
        let named = |error: io::Error| {
            let text = format!("pid_file: {} cannot be written: {error}", path.display());
            io::Error::new(error.kind(), text)
        };
        fs::write(path, format!("{}\n", std::process::id())).map_err(named)?;
        Ok(Self {
            path: path.to_owned(),
            stays,
        })
    }

    /// Leaves it to what the process does next.
    pub fn leave(mut self) {
        self.stays = true;
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if !self.stays {
            // Whoever took it away has no need of it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_goes_with_the_node_unless_it_is_to_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.pid");
        for stays in [false, true] {
            let file = PidFile::write(&path, stays).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(text, format!("{}\n", std::process::id()));
            drop(file);
            assert_eq!(path.exists(), stays);
        }
        PidFile::write(&path, false).unwrap().leave();
        assert!(path.exists());
        let error = PidFile::write(&dir.path().join("none/node.pid"), false)
            .err()
            .unwrap();
        assert!(error.to_string().starts_with("pid_file: "), "{error}");
    }
}
