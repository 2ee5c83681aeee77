//! What can end a run before its time.

use std::fmt;

/// Why a run could not begin or go on: one line that says what to do. Each ends the program with exit code 1, as in PerfTest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The command line asks for something that does not exist or does not go together.
    Usage(String),
    /// A broker could not be reached, or did not let us in.
    Connect(String),
    /// The broker refused an operation: its reply code and text, with what we asked.
    Refused { code: u16, text: String },
    /// The connection broke.
    Lost(String),
    /// A file could not be read or written.
    File(String),
}

/// Writes a line to standard error. Unlike `eprintln!` it does not panic where nothing can be written, such as on a full disk.
pub fn complain(line: impl fmt::Display) {
    use std::io::Write;
    // There is nowhere left to say that it failed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Connect(text) | Self::Lost(text) | Self::File(text) => {
                f.write_str(text)
            }
            Self::Refused { code, text } => write!(f, "{code} {text}"),
        }
    }
}

impl std::error::Error for Failure {}
