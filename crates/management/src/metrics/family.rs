//! RabbitMQ's families of metrics: their names, types and words, which dashboards and alerts are written for.

use super::page::Type::{self, Counter, Gauge};

/// One metric: its name after the prefix, its type, and its help.
pub type Metric = (&'static str, Type, &'static str);

/// What comes and goes.
pub const CHURN: [Metric; 7] = [
    (
        "connections_opened_total",
        Counter,
        "Total number of connections opened",
    ),
    (
        "connections_closed_total",
        Counter,
        "Total number of connections closed or terminated",
    ),
    (
        "channels_opened_total",
        Counter,
        "Total number of channels opened",
    ),
    (
        "channels_closed_total",
        Counter,
        "Total number of channels closed",
    ),
    (
        "queues_declared_total",
        Counter,
        "Total number of queues declared",
    ),
    ("queues_created_total", Counter, "Total number of queues created"),
    ("queues_deleted_total", Counter, "Total number of queues deleted"),
];

/// How much there is.
pub const TOTALS: [Metric; 4] = [
    ("connections", Gauge, "Connections currently open"),
    ("channels", Gauge, "Channels currently open"),
    ("consumers", Gauge, "Consumers currently connected"),
    ("queues", Gauge, "Queues available"),
];

/// How the node is.
pub const NODE_COARSE: [Metric; 3] = [
    ("process_open_fds", Gauge, "Open file descriptors"),
    ("process_resident_memory_bytes", Gauge, "Memory used in bytes"),
    (
        "disk_space_available_bytes",
        Gauge,
        "Disk space available in bytes",
    ),
];

/// What the node may take.
pub const NODE: [Metric; 4] = [
    ("process_max_fds", Gauge, "Open file descriptors limit"),
    (
        "resident_memory_limit_bytes",
        Gauge,
        "Memory high watermark in bytes",
    ),
    (
        "disk_space_available_limit_bytes",
        Gauge,
        "Free disk space low watermark in bytes",
    ),
    ("erlang_uptime_seconds", Gauge, "Node uptime"),
];

/// What a queue holds.
pub const QUEUE_COARSE: [Metric; 3] = [
    (
        "queue_messages_ready",
        Gauge,
        "Messages ready to be delivered to consumers",
    ),
    (
        "queue_messages_unacked",
        Gauge,
        "Messages delivered to consumers but not yet acknowledged",
    ),
    (
        "queue_messages",
        Gauge,
        "Sum of ready and unacknowledged messages - total queue depth",
    ),
];

/// Who consumes from a queue.
pub const QUEUE_CONSUMERS: [Metric; 1] = [("queue_consumers", Gauge, "Consumers on a queue")];

/// What else is known of a queue.
pub const QUEUE: [Metric; 13] = [
    ("queue_consumer_capacity", Gauge, "Consumer capacity"),
    ("queue_consumer_utilisation", Gauge, "Same as consumer capacity"),
    (
        "queue_process_memory_bytes",
        Gauge,
        "Memory in bytes used by the queue",
    ),
    (
        "queue_messages_ram",
        Gauge,
        "Ready and unacknowledged messages stored in memory",
    ),
    (
        "queue_messages_ram_bytes",
        Gauge,
        "Size in bytes of ready and unacknowledged messages stored in memory",
    ),
    (
        "queue_messages_ready_ram",
        Gauge,
        "Ready messages stored in memory",
    ),
    (
        "queue_messages_unacked_ram",
        Gauge,
        "Unacknowledged messages stored in memory",
    ),
    ("queue_messages_persistent", Gauge, "Persistent messages"),
    (
        "queue_messages_persistent_bytes",
        Gauge,
        "Size in bytes of persistent messages",
    ),
    (
        "queue_messages_bytes",
        Gauge,
        "Size in bytes of ready and unacknowledged messages",
    ),
    (
        "queue_messages_ready_bytes",
        Gauge,
        "Size in bytes of ready messages",
    ),
    (
        "queue_messages_unacked_bytes",
        Gauge,
        "Size in bytes of all unacknowledged messages",
    ),
    ("queue_messages_paged_out", Gauge, "Messages paged out to disk"),
];

/// What the first message of a queue says of itself.
pub const QUEUE_HEAD: Metric = (
    "queue_head_message_timestamp",
    Gauge,
    "Timestamp of the first message in the queue, if any",
);

/// How far this node's member of a quorum queue is.
pub const RAFT: [Metric; 7] = [
    ("raft_term", Gauge, "The current term"),
    ("raft_commit_index", Gauge, "The current commit index"),
    ("raft_last_applied", Gauge, "The last applied index"),
    (
        "raft_last_written_index",
        Gauge,
        "The last fully written and fsynced index of the log",
    ),
    ("raft_snapshot_index", Gauge, "The current snapshot index"),
    ("raft_num_segments", Gauge, "Number of segments"),
    (
        "raft_commit_latency_seconds",
        Gauge,
        "Approximate time taken from an entry being written to the log to being committed",
    ),
];

/// The highest of these of all members.
pub const RAFT_MOST: [Metric; 2] = [
    ("raft_max_num_segments", Gauge, "Number of segments"),
    (
        "raft_max_commit_latency_seconds",
        Gauge,
        "Approximate time taken from an entry being written to the log to being committed",
    ),
];

/// The log of the node, which all queues share.
pub const RAFT_LOG: [Metric; 2] = [
    (
        "raft_wal_files",
        Counter,
        "Number of write-ahead log files created",
    ),
    (
        "raft_bytes_written",
        Counter,
        "Number of bytes written to the write-ahead log",
    ),
];

/// What happened in a queue, in the order of its counts.
pub const QUEUE_DELIVERY: [Metric; 8] = [
    (
        "queue_messages_published_total",
        Counter,
        "Total number of messages published into a queue",
    ),
    (
        "queue_messages_delivered_ack_total",
        Counter,
        "Total number of messages delivered from a queue to consumers in manual acknowledgement mode",
    ),
    (
        "queue_messages_delivered_total",
        Counter,
        "Total number of messages delivered from a queue to consumers in automatic acknowledgement mode",
    ),
    (
        "queue_get_ack_total",
        Counter,
        "Total number of messages fetched from a queue with basic.get in manual acknowledgement mode",
    ),
    (
        "queue_get_total",
        Counter,
        "Total number of messages fetched from a queue with basic.get in automatic acknowledgement mode",
    ),
    (
        "queue_get_empty_total",
        Counter,
        "Total number of times basic.get operations fetched no message on a queue",
    ),
    (
        "queue_messages_acked_total",
        Counter,
        "Total number of messages acknowledged by consumers on a queue",
    ),
    (
        "queue_messages_redelivered_total",
        Counter,
        "Total number of messages redelivered from a queue to consumers",
    ),
];

/// What a channel is at.
pub const CHANNEL: [Metric; 7] = [
    ("channel_consumers", Gauge, "Consumers on a channel"),
    (
        "channel_messages_unacked",
        Gauge,
        "Delivered but not yet acknowledged messages",
    ),
    (
        "channel_messages_unconfirmed",
        Gauge,
        "Published but not yet confirmed messages",
    ),
    (
        "channel_messages_uncommitted",
        Gauge,
        "Messages received in a transaction but not yet committed",
    ),
    (
        "channel_acks_uncommitted",
        Gauge,
        "Message acknowledgements in a transaction not yet committed",
    ),
    (
        "consumer_prefetch",
        Gauge,
        "Limit of unacknowledged messages for each consumer",
    ),
    (
        "channel_prefetch",
        Gauge,
        "Total limit of unacknowledged messages for all consumers on a channel",
    ),
];

/// What a channel did, in the order of its counts.
pub const CHANNEL_COUNTS: [Metric; broker::stats::KINDS] = [
    (
        "channel_messages_published_total",
        Counter,
        "Total number of messages published into an exchange on a channel",
    ),
    (
        "channel_messages_confirmed_total",
        Counter,
        "Total number of messages published into an exchange and confirmed on the channel",
    ),
    (
        "channel_messages_unroutable_returned_total",
        Counter,
        "Total number of messages published as mandatory into an exchange and returned to the publisher as unroutable",
    ),
    (
        "channel_messages_unroutable_dropped_total",
        Counter,
        "Total number of messages published as non-mandatory into an exchange and dropped as unroutable",
    ),
    (
        "channel_messages_delivered_ack_total",
        Counter,
        "Total number of messages delivered to consumers in manual acknowledgement mode",
    ),
    (
        "channel_messages_delivered_total",
        Counter,
        "Total number of messages delivered to consumers in automatic acknowledgement mode",
    ),
    (
        "channel_get_ack_total",
        Counter,
        "Total number of messages fetched with basic.get in manual acknowledgement mode",
    ),
    (
        "channel_get_total",
        Counter,
        "Total number of messages fetched with basic.get in automatic acknowledgement mode",
    ),
    (
        "channel_get_empty_total",
        Counter,
        "Total number of times basic.get operations fetched no message",
    ),
    (
        "channel_messages_acked_total",
        Counter,
        "Total number of messages acknowledged by consumers",
    ),
    (
        "channel_messages_redelivered_total",
        Counter,
        "Total number of messages redelivered to consumers",
    ),
];

/// Bytes of a connection.
pub const CONNECTION_COARSE: [Metric; 2] = [
    (
        "connection_incoming_bytes_total",
        Counter,
        "Total number of bytes received on a connection",
    ),
    (
        "connection_outgoing_bytes_total",
        Counter,
        "Total number of bytes sent on a connection",
    ),
];

/// What else is known of a connection.
pub const CONNECTION: [Metric; 3] = [
    (
        "connection_incoming_packets_total",
        Counter,
        "Total number of packets received on a connection",
    ),
    (
        "connection_outgoing_packets_total",
        Counter,
        "Total number of packets sent on a connection",
    ),
    ("connection_channels", Gauge, "Channels on a connection"),
];

/// What came to an exchange.
pub const EXCHANGE: [Metric; 1] = [(
    "exchange_messages_published_total",
    Counter,
    "Total number of messages published into an exchange",
)];

/// What became of it, which is counted for all exchanges together.
pub const EXCHANGE_OUTCOMES: [Metric; 3] = [
    (
        "exchange_messages_confirmed_total",
        Counter,
        "Total number of messages published into an exchange and confirmed",
    ),
    (
        "exchange_messages_unroutable_returned_total",
        Counter,
        "Total number of messages published as mandatory into an exchange and returned to the publisher as unroutable",
    ),
    (
        "exchange_messages_unroutable_dropped_total",
        Counter,
        "Total number of messages published as non-mandatory into an exchange and dropped as unroutable",
    ),
];

/// Other nodes of the cluster, of which there are none.
pub const PEERS: [Metric; 1] = [(
    "unreachable_cluster_peers_count",
    Gauge,
    "Number of peers in the cluster the current node cannot reach.",
)];

/// The links of a node with another one. Their names have no other beginning on any page.
pub const LINKS: [Metric; 6] = [
    ("leveret_link_up", Gauge, "Whether there is a link with the peer"),
    (
        "leveret_link_round_trip_seconds",
        Gauge,
        "Round trip of the last heartbeat of the lane for clients' work",
    ),
    (
        "leveret_link_sent_bytes_total",
        Counter,
        "Bytes of frames that were sent to the peer",
    ),
    (
        "leveret_link_received_bytes_total",
        Counter,
        "Bytes of frames that came from the peer",
    ),
    (
        "leveret_link_backlog_bytes",
        Gauge,
        "Bytes that wait to be sent to the peer",
    ),
    (
        "leveret_link_dropped_frames_total",
        Counter,
        "Frames for the peer that found no link, or no room",
    ),
];

/// The group of nodes that decides what exists.
pub const CATALOG: [Metric; 5] = [
    (
        "leveret_catalog_leader",
        Gauge,
        "Whether this node leads the group that decides about definitions: 1 on one node of the cluster",
    ),
    (
        "leveret_catalog_term",
        Gauge,
        "The term of that group: it rises with each election",
    ),
    (
        "leveret_catalog_version",
        Gauge,
        "How many changes this node has applied: the node with the highest number is not behind",
    ),
    (
        "leveret_catalog_lag",
        Gauge,
        "How many changes this node knows to be committed and has not applied",
    ),
    (
        "leveret_catalog_fresh",
        Gauge,
        "Whether this node reaches a majority, and so knows that it has missed no change",
    ),
];

/// What happened on the node since its start, for one protocol.
pub const GLOBAL: [Metric; 8] = [
    (
        "global_messages_received_total",
        Counter,
        "Total number of messages received from publishers",
    ),
    (
        "global_messages_received_confirm_total",
        Counter,
        "Total number of messages received from publishers expecting confirmations",
    ),
    (
        "global_messages_routed_total",
        Counter,
        "Total number of messages routed to queues or streams",
    ),
    (
        "global_messages_unroutable_dropped_total",
        Counter,
        "Total number of messages published as non-mandatory into an exchange and dropped as unroutable",
    ),
    (
        "global_messages_unroutable_returned_total",
        Counter,
        "Total number of messages published as mandatory into an exchange and returned to the publisher as unroutable",
    ),
    (
        "global_messages_confirmed_total",
        Counter,
        "Total number of messages confirmed to publishers",
    ),
    ("global_publishers", Gauge, "Current number of publishers"),
    ("global_consumers", Gauge, "Current number of consumers"),
];

/// The same, for one protocol and type of queue.
pub const GLOBAL_QUEUES: [Metric; 8] = [
    (
        "global_messages_delivered_total",
        Counter,
        "Total number of messages delivered to consumers",
    ),
    (
        "global_messages_delivered_consume_manual_ack_total",
        Counter,
        "Total number of messages delivered to consumers using basic.consume with manual acknowledgment",
    ),
    (
        "global_messages_delivered_consume_auto_ack_total",
        Counter,
        "Total number of messages delivered to consumers using basic.consume with automatic acknowledgment",
    ),
    (
        "global_messages_delivered_get_manual_ack_total",
        Counter,
        "Total number of messages delivered to consumers using basic.get with manual acknowledgment",
    ),
    (
        "global_messages_delivered_get_auto_ack_total",
        Counter,
        "Total number of messages delivered to consumers using basic.get with automatic acknowledgment",
    ),
    (
        "global_messages_get_empty_total",
        Counter,
        "Total number of times basic.get operations fetched no message",
    ),
    (
        "global_messages_redelivered_total",
        Counter,
        "Total number of messages redelivered to consumers",
    ),
    (
        "global_messages_acknowledged_total",
        Counter,
        "Total number of messages acknowledged by consumers",
    ),
];

/// What is wrong.
pub const ALARMS: [Metric; 2] = [
    (
        "alarms_memory_used_watermark",
        Gauge,
        "is 1 if VM memory watermark alarm is in effect",
    ),
    (
        "alarms_free_disk_space_watermark",
        Gauge,
        "is 1 if free disk space watermark alarm is in effect",
    ),
];

/// What the log does.
pub const LOG: [Metric; 1] = [(
    "io_sync_ops_total",
    Counter,
    "Total number of I/O sync operations",
)];

/// Who tried to log in.
pub const LOGIN_ATTEMPTS: [Metric; 3] = [
    (
        "auth_attempts_total",
        Counter,
        "Total number of authorization attempts",
    ),
    (
        "auth_attempts_succeeded_total",
        Counter,
        "Total number of successful authentication attempts",
    ),
    (
        "auth_attempts_failed_total",
        Counter,
        "Total number of failed authentication attempts",
    ),
];

/// What died and has a dead-letter exchange.
pub const DEAD_LETTERED: [Metric; 5] = [
    (
        "global_messages_dead_lettered_confirmed_total",
        Counter,
        "Total number of messages dead-lettered and confirmed by target queues",
    ),
    (
        "global_messages_dead_lettered_delivery_limit_total",
        Counter,
        "Total number of messages dead-lettered due to delivery-limit exceeded",
    ),
    (
        "global_messages_dead_lettered_expired_total",
        Counter,
        "Total number of messages dead-lettered due to message TTL exceeded",
    ),
    (
        "global_messages_dead_lettered_maxlen_total",
        Counter,
        "Total number of messages dead-lettered due to overflow drop-head or reject-publish-dlx",
    ),
    (
        "global_messages_dead_lettered_rejected_total",
        Counter,
        "Total number of messages dead-lettered due to basic.reject or basic.nack",
    ),
];
