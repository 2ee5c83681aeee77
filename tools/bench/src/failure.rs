//! Why a benchmark ended without what it was asked for.

use std::fmt;
use std::path::PathBuf;

/// What the caller can do about it is in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The command line can't be done: correct it.
    Usage(String),
    /// Something outside stood in the way.
    Run(String),
    /// The user stopped it; what was measured is in the directory, and it can be gone on with.
    Interrupted(PathBuf),
}

impl Failure {
    /// Of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Run(_) => 1,
            // What shells report for a program that SIGINT ended.
            Self::Interrupted(_) => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Run(text) => f.write_str(text),
            Self::Interrupted(directory) => {
                let directory = directory.display();
                write!(f, "stopped; go on with: leveret bench --resume {directory}")
            }
        }
    }
}

impl std::error::Error for Failure {}
