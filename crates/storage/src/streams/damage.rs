//! What of a stream cannot be read any more.

use std::fmt;
use std::path::PathBuf;

/// A part of a file that was safe and does not read as it was written. It stays as it is, and is passed over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamDamage {
    /// The file.
    pub file: PathBuf,
    /// Where in it the damage begins, in bytes.
    pub offset: u64,
    /// How far it goes, in bytes.
    pub bytes: u64,
    /// The first number that cannot be read any more.
    pub first: u64,
    /// The number behind the last one; the same, if what is damaged has none.
    pub next: u64,
}

impl StreamDamage {
    pub(super) fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// How many numbers are in it.
    pub fn count(&self) -> u64 {
        self.next - self.first
    }
}

impl fmt::Display for StreamDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is damaged from byte {} on, for {} bytes",
            self.file.display(),
            self.offset,
            self.bytes
        )
    }
}

/// The end of a file that a crash has torn, and that was cut off. Nothing in it was known to be safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornEnd {
    /// The file.
    pub file: PathBuf,
    /// Where it ends now, in bytes.
    pub offset: u64,
}
