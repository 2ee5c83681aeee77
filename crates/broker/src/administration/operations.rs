//! What operators do to a running node: other limits, maintenance, tracing. Nothing of it outlives the process, as in RabbitMQ.

use crate::broker::Broker;
use crate::clients::close_reason::CloseReason;
use crate::events::Happening;
use catalog::{Refusal, Request};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

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

    /// Begins or ceases to look at free space, as RabbitMQ's `activate_free_disk_space_monitoring` does: a limit that
    /// is set meanwhile holds from when it is looked at again.
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

    /// Has `watcher` told, now and whenever that changes, whether clients may come in. It must not call the broker, and
    /// is kept as long as the broker is.
    pub fn watch_suspension(&self, watcher: impl Fn(bool) + Send + 'static) {
        let mut watching = self
            .service()
            .watching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        watcher(self.takes_clients());
        watching.push(Box::new(watcher));
    }

    /// Puts the node into maintenance: nobody is let in, connections are closed with a reason, and other nodes, if there are
    /// some, lead what it leads and get what would be declared here; or ends that. A start of the node ends it, too.
    ///
    /// # Errors
    /// The cluster could not be told. The node is closed to clients all the same, or stays so.
    pub fn drain(&self, drained: bool) -> Result<(), Refusal> {
        // Two operators who want different things get one of them, whole.
        let _one = self
            .service()
            .draining
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let node = self.topology().incarnation().node;
        let told = self.topology().decide(None, Request::DrainNode { node, drained });
        let told = told.wait().map(|_| ());
        if !drained && told.is_err() {
            return told;
        }
        self.service().drained.store(drained, Ordering::Relaxed);
        self.suspend_clients(drained);
        if drained {
            let closed = self.sessions().close(&CloseReason::Maintenance, |_| true);
            tracing::warn!(
                area = "cluster",
                "this node is in maintenance: it takes no clients any more, and has told {closed} to go"
            );
            for key in ["maintenance.connections.closed", "maintenance.draining"] {
                let reason = "node is being put into maintenance";
                self.happened(|| Happening::new(key).with("reason", reason));
            }
        } else {
            tracing::info!(
                area = "cluster",
                "this node is back from maintenance, and takes clients again"
            );
            self.happened(|| Happening::new("maintenance.revived"));
        }
        told
    }

    /// True if connections may come in.
    pub fn takes_clients(&self) -> bool {
        !self.service().suspended.load(Ordering::Relaxed)
    }

    /// How many connections of clients this node has, and how many it may have, if there is a limit.
    pub fn node_connections(&self) -> (u64, Option<u64>) {
        let limit = self.options().node_limits.connections;
        (self.occupancy().connections(), limit)
    }

    /// True while the node is in maintenance.
    pub fn is_drained(&self) -> bool {
        self.service().drained.load(Ordering::Relaxed)
    }

    /// Begins or ends tracing a virtual host.
    ///
    /// # Errors
    /// There is no such virtual host.
    pub fn trace(&self, vhost: &str, on: bool) -> Result<(), Refusal> {
        if self.view().vhost(vhost).is_none() {
            return Err(Refusal::NoVhost { vhost: vhost.into() });
        }
        let before = self.firehose().trace(vhost, on);
        if before != on {
            let what = if on { "enabled" } else { "disabled" };
            tracing::info!(area = "vhost", "tracing of vhost '{vhost}' is {what}");
        }
        Ok(())
    }

    /// True if the virtual host is traced.
    pub fn is_traced(&self, vhost: &str) -> bool {
        self.firehose().of(vhost).is_on()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Broker, Options};

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
        broker.drain(true).unwrap();
        assert!(!broker.takes_clients() && broker.is_drained());
        broker.drain(false).unwrap();
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
        broker.drain(false).unwrap();
        assert_eq!(hears.try_iter().collect::<Vec<_>>(), [true, false, true]);
    }
}
