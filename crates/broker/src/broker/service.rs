//! What operators change while the node runs: the limits of memory and disk, and whether it takes clients. Nothing of
//! it outlives the process, as in RabbitMQ.

use crate::options::Options;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

/// Told whether clients may connect, to open or shut a listener.
type ToldOfSuspension = Box<dyn Fn(bool) + Send>;

/// The settings that can be changed.
pub struct Service {
    pub(crate) memory_high_watermark: AtomicU64,
    pub(crate) disk_free_limit: AtomicU64,
    pub(crate) disk_unwatched: AtomicBool,
    pub(crate) channel_max: AtomicU16,
    pub(crate) suspended: AtomicBool,
    pub(crate) drained: AtomicBool,
    /// Held while the node goes into maintenance, or comes back.
    pub(crate) draining: Mutex<()>,
    pub(crate) watching: Mutex<Vec<ToldOfSuspension>>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("suspended", &self.suspended)
            .field("drained", &self.drained)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// As the configuration has them.
    pub fn new(options: &Options) -> Self {
        Self {
            memory_high_watermark: options.memory_high_watermark.into(),
            disk_free_limit: options.disk_free_limit.into(),
            disk_unwatched: false.into(),
            channel_max: options.limits.channel_max.into(),
            suspended: false.into(),
            drained: false.into(),
            draining: Mutex::default(),
            watching: Mutex::default(),
        }
    }

    /// Publishers are blocked while the process holds more memory than this, in bytes.
    pub fn memory_high_watermark(&self) -> u64 {
        self.memory_high_watermark.load(Ordering::Relaxed)
    }

    /// Publishers are blocked while the data directory's file system has less space than this, in bytes.
    pub fn disk_free_limit(&self) -> u64 {
        self.disk_free_limit.load(Ordering::Relaxed)
    }

    /// False while free space is not looked at: an alarm that is on stays on, and none is raised.
    pub fn is_disk_watched(&self) -> bool {
        !self.disk_unwatched.load(Ordering::Relaxed)
    }
}
