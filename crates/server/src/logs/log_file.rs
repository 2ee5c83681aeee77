//! The log file: appended to, put aside when it is full, opened again when somebody else put it aside.

use super::rotation::Rotation;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// An open log file. A line that cannot be written is lost: there is no log to tell it to.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    /// Its length, in bytes, as far as this process knows.
    size: u64,
    /// When it was last written, in seconds since 1970.
    last: u64,
}

impl LogFile {
    /// Opens or makes the file and its directory.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let file = append(path)?;
        let found = file.metadata()?;
        let written = found.modified().ok();
        Ok(Self {
            path: path.to_owned(),
            rotation,
            file,
            size: found.len(),
            last: written.map_or_else(now, seconds),
        })
    }

    /// Goes on in the file of this name, if another one has it by now.
    pub fn reopen(&mut self) {
        if let Ok(file) = append(&self.path) {
            self.size = file.metadata().map_or(0, |found| found.len());
            self.file = file;
        }
    }

    fn write_at(&mut self, bytes: &[u8], now: u64) -> io::Result<()> {
        if self.rotation.is_due(self.size, self.last, now) {
            // A file that cannot be put aside is written on: a long log is better than none.
            if self.put_aside().is_ok() {
                self.reopen();
            }
        }
        self.file.write_all(bytes)?;
        self.size += bytes.len() as u64;
        self.last = now;
        Ok(())
    }

    /// The file becomes `NAME.0`, the one of this name before it `NAME.1`; the oldest goes.
    fn put_aside(&self) -> io::Result<()> {
        let count = self.rotation.count;
        if count == 0 {
            return fs::remove_file(&self.path);
        }
        for number in (1..count).rev() {
            let younger = self.old(number - 1);
            if younger.exists() {
                fs::rename(younger, self.old(number))?;
            }
        }
        fs::rename(&self.path, self.old(0))
    }

    fn old(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(bytes, now())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn now() -> u64 {
    seconds(SystemTime::now())
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::super::rotation::Moment;
    use super::*;

    fn read(dir: &Path, name: &str) -> Option<String> {
        fs::read_to_string(dir.join(name)).ok()
    }

    #[test]
    fn full_files_are_put_aside_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let rotation = Rotation {
            size: Some(6),
            count: 2,
            date: None,
        };
        let mut log = LogFile::open(&dir.path().join("sub/l.log"), rotation).unwrap();
        for line in ["one", "two", "three", "four", "five", "six", "seven"] {
            log.write_at(line.as_bytes(), 0).unwrap();
        }
        let dir = dir.path().join("sub");
        assert_eq!(read(&dir, "l.log").as_deref(), Some("seven"));
        assert_eq!(read(&dir, "l.log.0").as_deref(), Some("fivesix"));
        assert_eq!(read(&dir, "l.log.1").as_deref(), Some("threefour"));
        assert_eq!(read(&dir, "l.log.2"), None);
    }

    #[test]
    fn a_day_ends_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let rotation = Rotation {
            date: Some(Moment::Daily { hour: 0 }),
            size: None,
            count: 0,
        };
        let mut log = LogFile::open(&dir.path().join("l.log"), rotation).unwrap();
        let day = 86_400;
        log.write_at(b"a", now()).unwrap();
        log.write_at(b"b", now() + day).unwrap();
        assert_eq!(read(dir.path(), "l.log").as_deref(), Some("b"));
        assert_eq!(read(dir.path(), "l.log.0"), None, "none is kept");
    }

    #[test]
    fn a_file_that_somebody_moved_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l.log");
        let mut log = LogFile::open(&path, Rotation::default()).unwrap();
        log.write_all(b"a").unwrap();
        fs::rename(&path, dir.path().join("moved")).unwrap();
        log.reopen();
        log.write_all(b"b").unwrap();
        assert_eq!(read(dir.path(), "l.log").as_deref(), Some("b"));
        assert_eq!(read(dir.path(), "moved").as_deref(), Some("a"));
    }
}
