//! What operators see of a node: numbers that are there anyhow. Nothing here asks a queue's machine anything.

use crate::broker::Broker;
use crate::clients::alarms::resident_memory;
use crate::clients::pressure::Reason;
use crate::queues::Queue;
use crate::stats::LossCounts;
use model::QueueId;
use std::sync::Arc;

/// A node's state at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStatus {
    /// Resident memory, in bytes.
    pub memory: u64,
    /// From when on publishers are blocked, in bytes.
    pub memory_limit: u64,
    /// They are, for that reason.
    pub memory_alarm: bool,
    /// Free space of the data directory's file system, in bytes.
    pub disk_free: u64,
    /// Below which publishers are blocked, in bytes.
    pub disk_free_limit: u64,
    /// They are, for that reason.
    pub disk_alarm: bool,
    /// The log failed: nothing can be confirmed until a restart.
    pub log_failed: bool,
    /// The log has no next file: publishers are blocked until it has one.
    pub log_stalled: bool,
    /// Time since the start, in milliseconds.
    pub uptime_ms: u64,
    /// Open sessions.
    pub sessions: usize,
    /// Syncs of the log since the start.
    pub log_syncs: u64,
    /// Publishes that were confirmed after a sync.
    pub confirmed: u64,
}

/// What all queues hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTotals {
    /// Messages that may be delivered.
    pub ready: u64,
    /// Messages delivered and not acknowledged.
    pub unacked: u64,
    /// Consumers.
    pub consumers: u64,
}

/// A queue that was turned.
#[derive(Debug)]
pub struct Turned {
    /// Its id.
    pub id: QueueId,
    /// `None` if it is deleted.
    pub queue: Option<Arc<Queue>>,
    /// It was seen here before.
    pub known: bool,
}

impl Broker {
    /// The queues that were turned since this was called last; at the first call all there are. One caller at a time.
    pub fn turned_queues(&self) -> Vec<Turned> {
        let touched = &self.node().touched;
        let turned = |queue: Arc<Queue>| Turned {
            id: queue.id,
            known: queue.look(),
            queue: Some(queue),
        };
        if !touched.watch() {
            return self.queues().all().into_iter().map(turned).collect();
        }
        let gone = |id| Turned {
            id,
            queue: None,
            known: true,
        };
        let each = touched.take().into_iter();
        each.map(|id| self.queues().here(id).map_or_else(|| gone(id), turned))
            .collect()
    }

    /// Adds up what the queues published after their last turns: some 0.1 microseconds a queue.
    pub fn queue_totals(&self) -> QueueTotals {
        let mut totals = QueueTotals::default();
        self.queues().for_each(|queue| {
            let status = queue.status();
            totals.ready += status.ready;
            totals.unacked += status.unacked;
            totals.consumers += status.consumers;
        });
        totals
    }

    /// Bytes that the messages of all queues hold in memory.
    pub fn message_memory(&self) -> usize {
        self.node().memory()
    }

    /// What all queues lost since the start.
    pub fn losses(&self) -> &LossCounts {
        &self.node().losses
    }

    /// Why those wait who publish persistent messages to durable queues, if they do.
    pub fn log_holds(&self) -> Option<Reason> {
        self.node().log_holds()
    }

    /// Files with journals that the log had at the start and that nobody knew.
    pub fn set_aside_journals(&self) -> impl Iterator<Item = String> {
        let journals = self.node().set_aside_journals().iter();
        journals.map(|it| it.file.display().to_string())
    }

    /// How the node is.
    pub fn status(&self) -> NodeStatus {
        let options = self.options();
        let (memory_alarm, disk_alarm, log_failed) = self.alarms_on();
        NodeStatus {
            memory: resident_memory(),
            memory_limit: self.service().memory_high_watermark(),
            memory_alarm,
            disk_free: self.node().free_space(&options.data_dir).unwrap_or(0),
            disk_free_limit: self.service().disk_free_limit(),
            disk_alarm,
            log_failed,
            log_stalled: self.is_log_stalled(),
            uptime_ms: self.node().micros() / 1000,
            sessions: self.sessions().count(),
            log_syncs: self.node().log.syncs(),
            confirmed: self.node().confirmed(),
        }
    }
}
