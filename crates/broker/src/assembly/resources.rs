//! Memory, disk and the log are looked at, alarms raised and cleared, and queues given their share of the memory.

use crate::broker::Broker;
use crate::clients::alarms::resident_memory;
use crate::events::Happening;
use queue::Request;
use queue::store;

/// How much memory a queue may hold for bodies when there is plenty, and when there is none, in bytes.
pub const QUEUE_MEMORY: (usize, usize) = (16 * 1024 * 1024, 256 * 1024);

impl Broker {
    pub(crate) fn raise_log_failed(&self) {
        if self.alarms().log_failed() {
            self.announce_alarm();
        }
    }

    pub(crate) fn set_log_stalled(&self, stalled: bool) {
        if self.alarms().log_stalled(stalled) {
            self.announce_alarm();
        }
    }

    /// Keeps the memory or the disk alarm on, whatever there is of both, or keeps it no more; `None` leaves one as it
    /// is. Takes hold at once.
    pub fn want_alarms(&self, memory: Option<bool>, disk: Option<bool>) {
        self.alarms().want(memory, disk);
        // Nobody looks at free space then, so nothing else would end the alarm.
        let ends = disk == Some(false) && !self.service().is_disk_watched();
        if ends && self.alarms().set(self.alarms().on().0, false) {
            self.announce_alarm();
        }
        self.look_at_resources();
    }

    /// Looks at memory, disk and what queues hold; called by the monitor.
    pub(crate) fn look_at_resources(&self) {
        self.node().look_at_wall_clock();
        let is_short = resident_memory() > self.service().memory_high_watermark();
        let (memory_wanted, disk_wanted) = self.alarms().wanted();
        let memory = is_short || memory_wanted;
        if self.log_events().failure().is_some() {
            self.raise_log_failed();
        }
        self.set_log_stalled(self.log_events().is_stalled());
        let (memory_before, disk_before, _) = self.alarms().on();
        let disk = match self.service().is_disk_watched() {
            true => {
                let free = self
                    .node()
                    .free_space(&self.options().data_dir)
                    .unwrap_or(u64::MAX);
                free < self.service().disk_free_limit()
            }
            false => disk_before,
        } || disk_wanted;
        if self.alarms().set(memory, disk) {
            self.announce_alarm();
        }
        for (source, before, now) in [("memory", memory_before, memory), ("disk", disk_before, disk)] {
            let key = if now { "alarm.set" } else { "alarm.cleared" };
            if before != now {
                self.happened(|| {
                    Happening::new(key)
                        .with("source", source)
                        .with("node", &*self.options().node_name)
                });
            }
        }
        self.node().look_after_publishers();
        self.caches().write(false);
        self.share_memory(is_short);
    }

    /// Gives each queue its share of the memory for bodies, smaller when all of them together hold too much.
    fn share_memory(&self, alarm: bool) {
        let held = self.node().memory() as u64;
        let limit = self.options().message_memory;
        let mut budget = self.queue_memory();
        let wanted = if alarm || held > limit {
            (*budget / 2).max(QUEUE_MEMORY.1)
        } else if held < limit / 2 {
            (*budget * 2).min(QUEUE_MEMORY.0)
        } else {
            *budget
        };
        if wanted != *budget {
            *budget = wanted;
            self.topology().set_queue_memory(wanted);
            for queue in self.queues().copies() {
                queue.submit(Request::Store(store::Request::Shrink { memory: wanted }));
            }
        }
    }

    fn announce_alarm(&self) {
        let reason = self.alarms().reason();
        match reason {
            Some(reason) => tracing::warn!(area = "alarm", "publishers are blocked: {reason}"),
            None => tracing::warn!(area = "alarm", "all alarms are cleared, publishers continue"),
        }
        self.sessions().announce(reason);
        self.topology().tell_alarm(reason);
    }
}
