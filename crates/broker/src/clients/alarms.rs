//! Memory and disk alarms: while one is on, connections that publish are not read from; consumers, acknowledgements
//! and everything else go on (RabbitMQ: `vm_memory_high_watermark`, `disk_free_limit`).

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};
use std::time::Duration;
use storage::{Step, Task, Thread, World};

/// How often memory and disk are looked at (RabbitMQ looks at memory every 2.5 s and at the disk at least every 10 s).
const EVERY: Duration = Duration::from_millis(250);

/// Why publishers are blocked. The text is what `connection.blocked` carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmReason {
    /// The process holds more memory than the watermark.
    Memory,
    /// The data directory's file system has less free space than the limit.
    Disk,
    /// Both.
    MemoryAndDisk,
    /// The write-ahead log has no file to go on in, for want of space or descriptors; it tries again.
    LogStalled,
    /// The write-ahead log failed: nothing can be confirmed until a restart.
    LogFailed,
}

impl std::fmt::Display for AlarmReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Memory => "low on memory",
            Self::Disk => "low on disk",
            Self::MemoryAndDisk => "low on memory & disk",
            Self::LogStalled => "the log has no room for its next file",
            Self::LogFailed => "log failed, nothing can be made durable until the node is restarted",
        })
    }
}

const MEMORY: u8 = 1;
const DISK: u8 = 2;
const LOG: u8 = 4;
const STALLED: u8 = 8;

/// Which alarms are on.
#[derive(Debug, Default)]
pub struct Alarms {
    on: AtomicU8,
    /// Those that an operator wants to be on, whatever memory and disk say.
    wanted: AtomicU8,
}

impl Alarms {
    /// The reason to block publishers, if there is one. One relaxed load.
    pub fn reason(&self) -> Option<AlarmReason> {
        let on = self.on.load(Ordering::Relaxed);
        match (on & LOG != 0, on & MEMORY != 0, on & DISK != 0) {
            (true, _, _) => Some(AlarmReason::LogFailed),
            (_, true, true) => Some(AlarmReason::MemoryAndDisk),
            (_, true, false) => Some(AlarmReason::Memory),
            (_, false, true) => Some(AlarmReason::Disk),
            (_, false, false) if on & STALLED != 0 => Some(AlarmReason::LogStalled),
            (_, false, false) => None,
        }
    }

    /// Which alarms are on: memory, disk, log.
    pub fn on(&self) -> (bool, bool, bool) {
        let on = self.on.load(Ordering::Relaxed);
        (on & MEMORY != 0, on & DISK != 0, on & LOG != 0)
    }

    /// The log failed; only a restart ends this alarm. True if the reason changed.
    pub fn log_failed(&self) -> bool {
        self.on.fetch_or(LOG, Ordering::Relaxed) & LOG == 0
    }

    /// Keeps the memory or the disk alarm on from the next look on, or keeps it no more; `None` leaves one as it is.
    pub fn want(&self, memory: Option<bool>, disk: Option<bool>) {
        for (bit, wanted) in [(MEMORY, memory), (DISK, disk)] {
            match wanted {
                Some(true) => self.wanted.fetch_or(bit, Ordering::Relaxed),
                Some(false) => self.wanted.fetch_and(!bit, Ordering::Relaxed),
                None => continue,
            };
        }
    }

    /// Which alarms an operator wants to be on: memory, disk.
    pub fn wanted(&self) -> (bool, bool) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        (wanted & MEMORY != 0, wanted & DISK != 0)
    }

    /// The log has no next file, or has one again. True if the reason changed.
    pub fn log_stalled(&self, stalled: bool) -> bool {
        let before = self.reason();
        match stalled {
            true => self.on.fetch_or(STALLED, Ordering::Relaxed),
            false => self.on.fetch_and(!STALLED, Ordering::Relaxed),
        };
        self.reason() != before
    }

    /// Sets the memory and disk alarms. True if the reason changed.
    pub fn set(&self, memory: bool, disk: bool) -> bool {
        let before = self.reason();
        let bits = (u8::from(memory) * MEMORY) | (u8::from(disk) * DISK);
        self.on.fetch_and(LOG | STALLED | bits, Ordering::Relaxed);
        self.on.fetch_or(bits, Ordering::Relaxed);
        self.reason() != before
    }
}

/// The thread that looks at memory and disk. Ends when dropped.
#[derive(Debug)]
pub struct Monitor {
    stop: Arc<AtomicBool>,
    thread: Arc<dyn Thread>,
}

/// What the thread does.
struct Looking<F> {
    look: F,
    world: Arc<dyn World>,
    stop: Arc<AtomicBool>,
    next: Duration,
}

impl Monitor {
    /// Starts the thread, which ends when a look says that there is nothing left to look at.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        world: &Arc<dyn World>,
        look: impl FnMut() -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let looking = Looking {
            look,
            stop: stop.clone(),
            next: world.elapsed() + EVERY,
            world: world.clone(),
        };
        let thread = world.start("monitor", Box::new(looking))?;
        Ok(Self { stop, thread })
    }
}

impl<F: FnMut() -> bool + Send> Task for Looking<F> {
    fn step(&mut self) -> Step {
        if self.stop.load(Ordering::Acquire) {
            return Step::End;
        }
        let now = self.world.elapsed();
        if now >= self.next {
            if !(self.look)() {
                return Step::End;
            }
            self.next = now + EVERY;
        }
        Step::Sleep(Some(self.next.saturating_sub(now)))
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread.wake();
        self.thread.join();
    }
}

/// Resident memory of this process in bytes, from `/proc/self/statm`; 0 where that does not exist.
pub fn resident_memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or(0);
    pages * 4096
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_combine_and_a_failed_log_stays() {
        let alarms = Alarms::default();
        assert_eq!(alarms.reason(), None);
        assert!(alarms.set(true, false));
        assert!(!alarms.set(true, false));
        assert_eq!(alarms.reason().unwrap().to_string(), "low on memory");
        assert!(alarms.set(true, true));
        assert_eq!(alarms.reason().unwrap().to_string(), "low on memory & disk");
        assert!(alarms.set(false, true));
        assert!(alarms.log_failed());
        alarms.set(false, false);
        assert_eq!(alarms.reason(), Some(AlarmReason::LogFailed));
    }

    #[test]
    fn a_log_without_a_next_file_blocks_until_it_has_one() {
        let alarms = Alarms::default();
        assert!(alarms.log_stalled(true));
        assert!(!alarms.set(false, false));
        assert_eq!(alarms.reason(), Some(AlarmReason::LogStalled));
        assert!(alarms.set(false, true));
        assert_eq!(alarms.reason(), Some(AlarmReason::Disk));
        assert!(!alarms.log_stalled(false));
        assert!(alarms.set(false, false));
        assert_eq!(alarms.reason(), None);
    }

    #[test]
    fn a_running_process_has_memory() {
        assert!(resident_memory() > 100_000);
    }
}
