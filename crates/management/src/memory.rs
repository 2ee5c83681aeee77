//! What the process's memory is used for, as far as that is known, under the names by which RabbitMQ tells it.

use broker::Broker;
use serde_json::{Map, Value};

/// RabbitMQ's names for what an Erlang node has and this one has not, or has and cannot tell apart.
const ABSENT: [&str; 20] = [
    "connection_readers",
    "connection_writers",
    "connection_channels",
    "connection_other",
    "stream_queue_procs",
    "stream_queue_replica_reader_procs",
    "stream_queue_coordinator_procs",
    "quorum_queue_procs",
    "quorum_queue_dlx_procs",
    "plugins",
    "metadata_store",
    "metrics",
    "quorum_ets",
    "mnesia",
    "metadata_store_ets",
    "other_ets",
    "binary",
    "msg_index",
    "atom",
    "other_proc",
];

/// How much memory goes where, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// All that the process holds.
    pub total: u64,
    /// Messages, and what queues know of them.
    queues: u64,
    /// Samples for the HTTP API.
    samples: u64,
    /// The program itself, and other files that are mapped.
    code: u64,
}

impl Share {
    /// As it is now, with so many bytes in samples. Queues say what they hold after each turn, so nobody is asked.
    pub fn of(broker: &Broker, samples: u64) -> Self {
        let mut queues = 0;
        broker
            .queues()
            .for_each(|queue| queues += queue.status().memory as u64);
        Self {
            total: broker.status().memory,
            queues,
            samples,
            code: mapped(&std::fs::read_to_string("/proc/self/status").unwrap_or_default()),
        }
    }

    /// What is in none of the parts: connections, the catalog, the log's buffers, what the allocator keeps. Parts are counted by
    /// themselves, so together they may be more than the process holds at a moment.
    fn other(&self) -> u64 {
        self.total
            .saturating_sub(self.queues)
            .saturating_sub(self.samples)
            .saturating_sub(self.code)
    }

    /// All parts by RabbitMQ's names.
    pub fn named(&self) -> Map<String, Value> {
        let parts = [
            ("queue_procs", self.queues),
            ("mgmt_db", self.samples),
            ("code", self.code),
            ("other_system", self.other()),
            ("allocated_unused", 0),
            ("reserved_unallocated", 0),
        ];
        let parts = parts.into_iter().chain(ABSENT.map(|name| (name, 0)));
        parts
            .map(|(name, bytes)| (name.to_owned(), bytes.into()))
            .collect()
    }
}

/// The bytes of mapped files that are in memory, by `/proc/self/status`; 0 where the system does not tell.
fn mapped(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_part_is_told_as_other() {
        let share = Share {
            total: 100,
            queues: 30,
            samples: 5,
            code: 20,
        };
        let named = share.named();
        assert_eq!(
            (named["queue_procs"].as_u64(), named["other_system"].as_u64()),
            (Some(30), Some(45))
        );
        assert_eq!(named.values().filter_map(Value::as_u64).sum::<u64>(), share.total);
        let crowded = Share { total: 40, ..share };
        assert_eq!(crowded.named()["other_system"], 0);
    }

    #[test]
    fn mapped_files_are_those_that_the_system_names() {
        assert_eq!(mapped("VmRSS:\t 9 kB\nRssFile:\t   12345 kB\n"), 12345 * 1024);
        assert_eq!(mapped(""), 0);
    }
}
