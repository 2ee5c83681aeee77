//! What can go wrong on disk, told so that the caller, and an operator reading the log, know what to do next.

use crate::journal::JournalId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything that this crate reports. Cheap to clone, because one failure of the log is told to many.
#[derive(Debug, Clone)]
pub enum StorageError {
    /// The disk (or the quota) is full. Nothing that was promised is lost; free space.
    Full { action: &'static str, path: PathBuf },
    /// The directory or file may not be written: a read-only mount or missing rights. Mend the rights.
    NotWritable {
        action: &'static str,
        path: PathBuf,
        source: Arc<io::Error>,
    },
    /// Another process uses the data directory. Stop it, or use another directory.
    Locked { path: PathBuf, holder: String },
    /// Bytes that were known to be safely on disk do not read back as written. `journal` names whose record it was, if
    /// that much is still readable. Restore the file, or open with quarantine and accept the loss.
    Corrupt {
        file: PathBuf,
        offset: u64,
        journal: Option<JournalId>,
        what: String,
    },
    /// Files of the log are gone that belong to it. Put them back, or open with quarantine and accept the loss.
    Incomplete { dir: PathBuf, what: String },
    /// The caller did not accept what opening the log found. Nothing was changed.
    Refused { what: String },
    /// The file was written by a version with another format. Run that version.
    Version {
        file: PathBuf,
        found: u32,
        supported: u32,
    },
    /// What was asked for has been released, or was never written. The caller holds an outdated position or place.
    Gone { what: String },
    /// One entry or record is larger than the format allows. Refuse the message.
    TooLarge { bytes: u64, limit: u64 },
    /// A fault in this program: the log was used in a way that would have damaged it. Nothing more is written.
    Misuse { what: &'static str },
    /// Any other failure of the operating system or the device. A failed write or sync is final for its log.
    Io {
        action: &'static str,
        path: PathBuf,
        source: Arc<io::Error>,
    },
}

impl StorageError {
    /// Sorts an operating system error by what the caller can do about it.
    pub fn from_io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            _ if is_full(&source) => Self::Full { action, path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::NotWritable {
                action,
                path,
                source: Arc::new(source),
            },
            _ => Self::Io {
                action,
                path,
                source: Arc::new(source),
            },
        }
    }

    /// True for want of room or of file descriptors: what failed may succeed later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Io { source, .. } => out_of_descriptors(source),
            _ => false,
        }
    }

    /// True if what was to be read is not there, or is not what was written. Every other error says nothing about what
    /// is on disk: the same may work later.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::Gone { .. })
    }

    pub(crate) fn corrupt(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt {
            file: file.to_owned(),
            offset,
            journal: None,
            what: what.into(),
        }
    }
}

/// There is no room on the disk, or the quota is used up.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// The process, or the machine, has no descriptor left.
pub(crate) fn out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

impl std::fmt::Display for StorageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full { action, path } => {
                write!(
                    f,
                    "the disk is full: cannot {action} {}; free some space",
                    path.display()
                )
            }
            Self::NotWritable { action, path, source } => {
                write!(
                    f,
                    "cannot {action} {}: {source}; check its owner, its mode and how it is mounted",
                    path.display()
                )
            }
            Self::Locked { path, holder } => {
                write!(
                    f,
                    "{} is in use by another process ({holder}); stop it first",
                    path.display()
                )
            }
            Self::Corrupt {
                file,
                offset,
                journal,
                what,
            } => {
                write!(f, "{} is damaged at byte {offset}: {what}", file.display())?;
                match journal {
                    Some(journal) => write!(f, " (a record of {journal})"),
                    None => Ok(()),
                }
            }
            Self::Incomplete { dir, what } => {
                write!(f, "the log in {} is not complete: {what}", dir.display())
            }
            Self::Version {
                file,
                found,
                supported,
            } => write!(
                f,
                "{} has format version {found}, which this program does not read (it writes version {supported}); run the version that wrote \
                 it, or begin with an empty data directory",
                file.display()
            ),
            Self::Gone { what } | Self::Refused { what } => write!(f, "{what}"),
            Self::Misuse { what } => write!(f, "a bug: {what}"),
            Self::TooLarge { bytes, limit } => {
                write!(
                    f,
                    "{bytes} bytes are too large for one record; the limit is {limit}"
                )
            }
            Self::Io { action, path, source } => write!(f, "cannot {action} {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotWritable { source, .. } | Self::Io { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}
