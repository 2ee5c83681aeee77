//! What the node's memory is used for, on a page of its own as in RabbitMQ: `/metrics/memory-breakdown`.

use super::collect::Collector;
use super::family::Metric;
use super::page::{Number, Type::Gauge};
use crate::memory::Share;

/// The parts by the names that `/api/nodes/NODE/memory` has for them, and what this page calls them.
const PARTS: [(&str, Metric); 26] = [
    (
        "code",
        (
            "memory_code_module_bytes",
            Gauge,
            "Program and other mapped files",
        ),
    ),
    (
        "connection_readers",
        (
            "memory_client_connection_reader_bytes",
            Gauge,
            "Connections' readers",
        ),
    ),
    (
        "connection_writers",
        (
            "memory_client_connection_writer_bytes",
            Gauge,
            "Connections' writers",
        ),
    ),
    (
        "connection_channels",
        (
            "memory_client_connection_channel_bytes",
            Gauge,
            "Connections' channels",
        ),
    ),
    (
        "connection_other",
        (
            "memory_client_connection_other_bytes",
            Gauge,
            "What else connections hold",
        ),
    ),
    (
        "queue_procs",
        (
            "memory_classic_queue_erlang_process_bytes",
            Gauge,
            "Classic queues and their messages",
        ),
    ),
    (
        "quorum_queue_procs",
        ("memory_quorum_queue_erlang_process_bytes", Gauge, "Quorum queues"),
    ),
    (
        "quorum_queue_dlx_procs",
        (
            "memory_quorum_queue_dlx_erlang_process_bytes",
            Gauge,
            "Dead letters of quorum queues",
        ),
    ),
    (
        "stream_queue_procs",
        ("memory_stream_erlang_process_bytes", Gauge, "Streams"),
    ),
    (
        "stream_queue_replica_reader_procs",
        (
            "memory_stream_replica_reader_erlang_process_bytes",
            Gauge,
            "Readers of streams' replicas",
        ),
    ),
    (
        "stream_queue_coordinator_procs",
        (
            "memory_stream_coordinator_erlang_process_bytes",
            Gauge,
            "Coordinator of streams",
        ),
    ),
    ("plugins", ("memory_plugin_bytes", Gauge, "Plugins")),
    (
        "metadata_store",
        ("memory_modern_metadata_store_bytes", Gauge, "Store of metadata"),
    ),
    (
        "other_proc",
        (
            "memory_other_erlang_process_bytes",
            Gauge,
            "Other processes of a runtime",
        ),
    ),
    ("metrics", ("memory_metrics_bytes", Gauge, "Metrics")),
    (
        "mgmt_db",
        (
            "memory_management_stats_db_bytes",
            Gauge,
            "Samples of the HTTP API",
        ),
    ),
    (
        "mnesia",
        (
            "memory_classic_metadata_store_bytes",
            Gauge,
            "Former store of metadata",
        ),
    ),
    (
        "quorum_ets",
        (
            "memory_quorum_queue_ets_table_bytes",
            Gauge,
            "Tables of quorum queues",
        ),
    ),
    (
        "metadata_store_ets",
        (
            "memory_modern_metadata_store_ets_table_bytes",
            Gauge,
            "Tables of the store of metadata",
        ),
    ),
    (
        "other_ets",
        ("memory_other_ets_table_bytes", Gauge, "Other tables of a runtime"),
    ),
    (
        "binary",
        ("memory_binary_heap_bytes", Gauge, "Binaries of a runtime"),
    ),
    (
        "msg_index",
        ("memory_message_index_bytes", Gauge, "Index of messages"),
    ),
    ("atom", ("memory_atom_table_bytes", Gauge, "Atoms of a runtime")),
    (
        "other_system",
        ("memory_other_system_bytes", Gauge, "What is in no other part"),
    ),
    (
        "allocated_unused",
        (
            "memory_runtime_allocated_unused_bytes",
            Gauge,
            "What a runtime has allocated and not used",
        ),
    ),
    (
        "reserved_unallocated",
        (
            "memory_runtime_reserved_unallocated_bytes",
            Gauge,
            "What a runtime has reserved and not allocated",
        ),
    ),
];

impl Collector<'_> {
    /// What the memory is used for. This page does not know the HTTP API's samples: they are in no part.
    pub(super) fn memory(&mut self) {
        let named = Share::of(self.broker, 0).named();
        for (part, metric) in PARTS {
            let bytes = named.get(part).and_then(serde_json::Value::as_u64);
            self.single([metric], [Number::Whole(bytes.unwrap_or(0))], "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_memory_has_its_family() {
        let named = Share::default().named();
        assert_eq!(named.len(), PARTS.len());
        assert!(PARTS.iter().all(|(part, _)| named.contains_key(*part)));
    }
}
