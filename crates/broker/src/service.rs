//! What operators change while the node runs: the limits of memory and disk, and whether it takes clients. Nothing of it outlives the
//! process, as in RabbitMQ.

use crate::broker::Broker;
use crate::options::Options;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Told whether clients may connect, to open or shut a listener.
type ToldOfSuspension = Box<dyn Fn(bool) + Send>;

/// The settings that can be changed.
pub struct Service {
    memory_high_watermark: AtomicU64,
    disk_free_limit: AtomicU64,
    disk_unwatched: AtomicBool,
    channel_max: AtomicU16,
    suspended: AtomicBool,
    drained: AtomicBool,
    watching: Mutex<Vec<ToldOfSuspension>>,
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

impl Broker {
    /// Sets the memory that the process may hold before publishers are blocked, in bytes; takes hold at once.
    pub fn set_memory_high_watermark(&self, bytes: u64) {
        self.service()
            .memory_high_watermark
            .store(bytes, Ordering::Relaxed);
        self.look_at_resources();
    }

    /// Sets the free space below which publishers are blocked, in bytes; takes hold at once.
    pub fn set_disk_free_limit(&self, bytes: u64) {
        self.service().disk_free_limit.store(bytes, Ordering::Relaxed);
        self.look_at_resources();
    }

    /// Begins or ceases to look at free space, as RabbitMQ's `activate_free_disk_space_monitoring` does: a limit that is set meanwhile
    /// holds from when it is looked at again.
    pub fn watch_disk(&self, watched: bool) {
        self.service().disk_unwatched.store(!watched, Ordering::Relaxed);
        self.look_at_resources();
    }

    /// How many channels a connection is offered; 0 is as many as the protocol has.
    pub fn channel_max(&self) -> u16 {
        self.service().channel_max.load(Ordering::Relaxed)
    }

    /// Offers later connections so many channels, as RabbitMQ's `application:set_env(rabbit, channel_max, N)` does.
    pub fn set_channel_max(&self, channels: u16) {
        self.service().channel_max.store(channels, Ordering::Relaxed);
    }

    /// From now on nobody is let in, or everybody is again. Connections that are open go on.
    pub fn suspend_clients(&self, suspended: bool) {
        let watching = self
            .service()
            .watching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.service().suspended.store(suspended, Ordering::Relaxed);
        watching.iter().for_each(|watcher| watcher(!suspended));
    }

    /// Has `watcher` told, now and whenever that changes, whether clients may come in. It must not call the broker, and is kept as long
    /// as the broker is.
    pub fn watch_suspension(&self, watcher: impl Fn(bool) + Send + 'static) {
        let mut watching = self
            .service()
            .watching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        watcher(self.takes_clients());
        watching.push(Box::new(watcher));
    }

    /// Puts the node into maintenance: nobody is let in, and connections are closed with a reason; or ends that.
    pub fn drain(&self, drained: bool) {
        self.suspend_clients(drained);
        self.service().drained.store(drained, Ordering::Relaxed);
        if drained {
            self.close_sessions("node is being put into maintenance mode", |_| true);
        }
    }

    /// True if connections may come in.
    pub fn takes_clients(&self) -> bool {
        !self.service().suspended.load(Ordering::Relaxed)
    }

    /// True while the node is in maintenance.
    pub fn is_drained(&self) -> bool {
        self.service().drained.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_take_hold_at_once_and_a_drained_node_takes_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        broker.set_memory_high_watermark(1);
        broker.set_disk_free_limit(u64::MAX);
        let status = broker.status();
        assert!(status.memory_alarm && status.disk_alarm);
        assert_eq!((status.memory_limit, status.disk_free_limit), (1, u64::MAX));
        broker.set_memory_high_watermark(u64::MAX);
        broker.set_disk_free_limit(0);
        assert!(!broker.status().memory_alarm && !broker.status().disk_alarm);
        assert!(broker.takes_clients() && !broker.is_drained());
        broker.drain(true);
        assert!(!broker.takes_clients() && broker.is_drained());
        broker.drain(false);
        assert!(broker.takes_clients() && !broker.is_drained());
        broker.close();
    }

    #[test]
    fn an_alarm_that_is_wanted_stays_on_until_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        broker.want_alarms(Some(true), None);
        broker.look_at_resources();
        let on = |broker: &Broker| (broker.status().memory_alarm, broker.status().disk_alarm);
        assert_eq!(on(&broker), (true, false));
        broker.want_alarms(None, Some(true));
        assert_eq!(on(&broker), (true, true));
        broker.want_alarms(Some(false), None);
        assert_eq!(on(&broker), (false, true));
        broker.watch_disk(false);
        broker.want_alarms(None, Some(false));
        assert_eq!(on(&broker), (false, false));
    }

    #[test]
    fn free_space_that_is_not_watched_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        broker.watch_disk(false);
        broker.set_disk_free_limit(u64::MAX);
        assert!(!broker.status().disk_alarm, "nobody looks");
        broker.watch_disk(true);
        assert!(broker.status().disk_alarm, "the limit holds now");
        broker.watch_disk(false);
        broker.set_disk_free_limit(0);
        assert!(
            broker.status().disk_alarm,
            "an alarm stays as it is, as in RabbitMQ"
        );
        broker.watch_disk(true);
        assert!(!broker.status().disk_alarm);
        broker.close();
    }

    #[test]
    fn listeners_are_told_at_once_and_at_each_change() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let (told, hears) = std::sync::mpsc::channel();
        broker.watch_suspension(move |open| told.send(open).unwrap());
        broker.suspend_clients(true);
        broker.drain(false);
        assert_eq!(hears.try_iter().collect::<Vec<_>>(), [true, false, true]);
    }
}
