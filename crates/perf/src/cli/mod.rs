//! The command line: PerfTest's flags, and ours.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs what the arguments (behind the program's name) ask for.
pub fn main(_args: Vec<OsString>) -> ExitCode {
    ExitCode::FAILURE
}
