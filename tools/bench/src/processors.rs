//! The machine's processors: who may run on them, and what they did, from `/proc/stat`. On a virtual machine the host
//! may run something else although we have work ("steal"): a visit from which much was stolen measures the host.

use rustix::thread::CpuSet;
use std::{fs, io};

/// Time of all processors together since the machine was started, in the kernel's ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Processors {
    pub all: u64,
    /// Of it, the time of programs and of the kernel on their behalf, without interrupts: those are not counted to programs.
    pub programs: u64,
    /// Of it, the time that the host gave to others while there was work here.
    pub stolen: u64,
}

impl Processors {
    /// As they are now; `None` where the kernel doesn't tell.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal, and guests' time, which is part of user and nice.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Option<Vec<u64>> = line
            .split_ascii_whitespace()
            .take(8)
            .map(|n| n.parse().ok())
            .collect();
        let ticks = ticks?;
        Some(Self {
            all: ticks.iter().sum(),
            programs: ticks.iter().take(3).sum(),
            stolen: *ticks.get(7)?,
        })
    }
}

/// Lets the calling thread, and what it starts from now on, run on these processors only.
///
/// # Errors
/// If there are none of them, or none that this process may use.
pub fn pin(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_time_is_not_counted_twice() {
        let stat = "cpu  100 1 50 800 20 3 6 20 90 0\ncpu0 1 2 3\n";
        let expected = Processors {
            all: 1_000,
            programs: 151,
            stolen: 20,
        };
        assert_eq!(Processors::parse(stat), Some(expected));
    }

    #[test]
    fn a_kernel_that_tells_no_steal_is_no_answer() {
        assert_eq!(Processors::parse("cpu  100 1 50 800\n"), None);
        assert_eq!(Processors::parse(""), None);
    }
}
