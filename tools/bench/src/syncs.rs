//! Counts a broker's disk syncs with strace. Tracing slows the broker down, so this is never done in a timed visit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

/// The calls that wait for the disk.
const CALLS: [&str; 2] = ["fsync", "fdatasync"];

/// strace at work.
#[derive(Debug)]
pub struct SyncCount {
    strace: Child,
    summary: PathBuf,
}

impl SyncCount {
    /// Begins to count the syncs of all threads of these processes.
    ///
    /// # Errors
    /// strace can't be started.
    pub fn start(pids: &[u32], scratch: &Path) -> Result<Self, String> {
        let summary = scratch.join("strace");
        let strace = Command::new("strace")
            .args(["-f", "-c", "-e", "trace=fsync,fdatasync"])
            .args(pids.iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]))
            .arg("-o")
            .arg(&summary)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("--count-syncs needs strace: {e}"))?;
        Ok(Self { strace, summary })
    }

    /// Stops and tells how many there were; `None` if strace was not let near the process.
    pub fn finish(mut self) -> Option<u64> {
        // strace lets go of the process and writes its table when it is interrupted.
        let _ = rustix::process::kill_process(Pid::from_child(&self.strace), Signal::INT);
        let _ = self.strace.wait();
        count(&fs::read_to_string(&self.summary).ok()?)
    }
}

/// Whether strace is there.
pub fn available() -> bool {
    let version = Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// The calls in strace's table. A process that made none has no table, and a process that was not traced no file.
fn count(table: &str) -> Option<u64> {
    let calls = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = fields.last()?;
        // "% time", "seconds", "usecs/call", "calls", perhaps "errors", "syscall".
        CALLS
            .contains(name)
            .then(|| fields.get(3)?.parse::<u64>().ok())
            .flatten()
    };
    Some(table.lines().filter_map(calls).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 90.00    0.012345         100       123           fdatasync
 10.00    0.001111          50         7         1 fsync
------ ----------- ----------- --------- --------- ----------------
100.00    0.013456                   130         1 total
";

    #[test]
    fn the_calls_in_straces_table_are_added_up() {
        assert_eq!(count(TABLE), Some(130));
        assert_eq!(count(""), Some(0));
    }
}
