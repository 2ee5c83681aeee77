//! What the kernel says about the broker's process.

use std::fs;

/// The kernel counts CPU time in hundredths of a second for user space, on every architecture.
const TICKS_A_SECOND: f64 = 100.0;

/// The broker's process.
pub struct Process {
    pid: u32,
}

/// Counters of a process since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time in user mode, in seconds.
    pub user_s: f64,
    /// CPU time in the kernel, in seconds.
    pub system_s: f64,
    /// Bytes sent to the block layer; 0 if the kernel doesn't tell us.
    pub written: u64,
}

impl Process {
    pub fn new(pid: u32) -> Self {
        Self { pid }
    }

    /// Reads the counters.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn usage(&self) -> Result<Usage, String> {
        let stat = self.read("stat")?;
        // The name in parentheses may contain anything; utime is the 12th field behind it.
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        let mut ticks = behind
            .split_whitespace()
            .skip(11)
            .map_while(|field| field.parse::<f64>().ok());
        let (Some(user), Some(system)) = (ticks.next(), ticks.next()) else {
            return Err(format!("can't read the CPU time of process {}", self.pid));
        };
        let io = self.read("io").unwrap_or_default();
        Ok(Usage {
            user_s: user / TICKS_A_SECOND,
            system_s: system / TICKS_A_SECOND,
            written: field(&io, "write_bytes:").unwrap_or(0),
        })
    }

    /// Makes the peak of memory begin anew. Where that is not allowed the peak is the one since the start.
    pub fn reset_peak(&self) {
        let _ = fs::write(self.path("clear_refs"), "5");
    }

    /// The peak of resident memory, in bytes.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn peak_bytes(&self) -> Result<u64, String> {
        let kibibytes = field(&self.read("status")?, "VmHWM:");
        kibibytes.map(|k| k * 1024).ok_or_else(|| "no VmHWM".to_owned())
    }

    fn read(&self, file: &str) -> Result<String, String> {
        fs::read_to_string(self.path(file)).map_err(|e| format!("process {}: {e}", self.pid))
    }

    fn path(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.pid)
    }
}

/// The number behind `name` at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_can_be_read() {
        let process = Process::new(std::process::id());
        assert!(process.usage().unwrap().user_s >= 0.0);
        assert!(process.peak_bytes().unwrap() > 0);
        assert!(Process::new(u32::MAX).usage().is_err());
    }
}
