//! What holds messages up, as far as the node can see: every cause in force, the gravest first.
//!
//! It is read from what queues, connections and the node show anyhow; nobody is asked.

use broker::queues::Status;
use broker::stats::{Channel, Connection, Consumer};
use broker::{NodeStatus, Overflow, QueueSettings, Reason};
use model::words::{counted, counted_are, size};
use std::collections::HashMap;
use std::sync::Arc;

/// Something that holds messages up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// `publishers`, `deliveries`, or `messages` that are lost.
    pub who: &'static str,
    /// What is short.
    pub resource: &'static str,
    /// In a sentence.
    pub because: String,
}

/// How fast messages come to a queue and leave it, a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Published to it.
    pub publish: f64,
    /// Delivered and fetched.
    pub deliver_get: f64,
    /// Acknowledged.
    pub ack: f64,
}

/// Of a difference between rates that is this small nobody says that a queue grows: samples of both are taken at one moment, but
/// messages of one read count together.
const STEADY: f64 = 1.05;

fn publishers(resource: &'static str, because: impl Into<String>) -> Hold {
    Hold {
        who: "publishers",
        resource,
        because: because.into(),
    }
}

fn deliveries(resource: &'static str, because: impl Into<String>) -> Hold {
    Hold {
        who: "deliveries",
        resource,
        because: because.into(),
    }
}

/// The node's alarms: they hold all who publish.
pub fn of_node(node: &NodeStatus) -> Vec<Hold> {
    let memory = || {
        let (used, limit) = (size(node.memory), size(node.memory_limit));
        publishers(
            "memory_alarm",
            format!(
                "the memory alarm is on, {used} of {limit} are used: connections that publish are not read from"
            ),
        )
    };
    let disk = || {
        let (free, limit) = (size(node.disk_free), size(node.disk_free_limit));
        publishers(
            "disk_alarm",
            format!(
                "the disk alarm is on, {free} are free and {limit} wanted: connections that publish are not read from"
            ),
        )
    };
    let log = || {
        publishers(
            "log_failed",
            "the write-ahead log has failed and nothing can be made durable: connections that publish are not read \
             from",
        )
    };
    let stalled = || {
        publishers(
            "log_stalled",
            "the write-ahead log has no next file, for want of disk space or file descriptors (the node's log says which), and tries again: connections that publish are not read from",
        )
    };
    let alarms = [
        node.memory_alarm.then(memory),
        node.disk_alarm.then(disk),
        node.log_stalled.then(stalled),
        node.log_failed.then(log),
    ];
    alarms.into_iter().flatten().collect()
}

/// What publishers are slowed down by. Alarms are told by [`of_node`], each by its name.
pub fn of_pressure(reason: Option<Reason>) -> Option<Hold> {
    let because = match reason? {
        Reason::Memory => {
            let because = "bodies of the queue in memory are over its budget until some are paged out";
            return Some(publishers("memory_budget", because));
        }
        Reason::Consumers => "publishers are held to the pace of the queue's consumers",
        Reason::Sync => "more than the disk keeps up with waits to be written and synced",
        Reason::LogSize => "the write-ahead log waits for checkpoints to let go of its oldest files",
        Reason::Catalog => "a queue with very many bindings is being deleted",
        Reason::Node => "what was sent to the queue's node and has no answer is all that may be under way",
        Reason::RateLimit => {
            "its user or its virtual host publishes as fast as max-message-rate or max-byte-rate let it"
        }
        Reason::Alarm => return None,
    };
    Some(publishers(reason?.name(), because))
}

/// Publishers of the virtual host whose user or virtual host may not publish faster. Nobody knows which of them publish
/// to one queue.
pub fn of_rate_limits(vhost: &str, connections: &[Arc<Connection>]) -> Option<Hold> {
    let held = |it: &&Arc<Connection>| *it.vhost == *vhost && it.held().reason() == Some(Reason::RateLimit);
    let count = connections.iter().filter(held).count();
    (count > 0).then(|| {
        let because = format!(
            "publishing connections of the virtual host that are held to max-message-rate or max-byte-rate: {count}"
        );
        publishers(Reason::RateLimit.name(), because)
    })
}

/// A queue that is as long as it may be.
pub fn of_length(settings: &QueueSettings, status: &Status) -> Option<Hold> {
    let ready = status.ready;
    let full = settings.max_length.filter(|limit| ready > 0 && ready >= *limit);
    // There is no room once the next message, if it is like the others, would be too much.
    let one = status.ready_bytes / ready.max(1);
    let full_bytes = settings
        .max_length_bytes
        .filter(|limit| ready > 0 && status.ready_bytes + one > *limit);
    let limit = match (full, full_bytes) {
        (Some(limit), _) => format!(
            "max-length is {limit} and {} ready",
            counted_are(ready, "message")
        ),
        (None, Some(limit)) => format!(
            "max-length-bytes is {} and {} are ready",
            size(limit),
            size(status.ready_bytes)
        ),
        (None, None) => return None,
    };
    Some(match settings.overflow {
        Overflow::DropHead => Hold {
            who: "messages",
            resource: "max_length",
            because: format!("{limit}: for each new message the oldest one is dropped"),
        },
        Overflow::Reject | Overflow::RejectAndDeadLetter => {
            publishers("max_length", format!("{limit}: new messages are refused"))
        }
    })
}

/// How many messages those consumers may hold together who are served; `None` is no limit.
pub fn allowance(status: &Status, consumers: &[Arc<Consumer>]) -> Option<u64> {
    let served = || {
        let active = status.active;
        consumers
            .iter()
            .filter(move |it| active.is_none_or(|id| it.id == id))
    };
    let unlimited = served().any(|it| it.no_ack || it.prefetch == 0);
    (!unlimited && served().next().is_some()).then(|| served().map(|it| u64::from(it.prefetch)).sum())
}

/// Why messages are not delivered.
pub fn of_consumers(status: &Status, consumers: &[Arc<Consumer>], pace: &Pace) -> Vec<Hold> {
    let ready = status.ready;
    if ready == 0 {
        return Vec::new();
    }
    let ready = counted_are(ready, "message");
    if status.consumers == 0 {
        let because = format!("{ready} ready and there are no consumers");
        return vec![deliveries("no_consumers", because)];
    }
    let mut holds = Vec::from_iter(of_acks(status, consumers));
    if status.active.is_some() && status.consumers > 1 {
        let because = format!("{ready} ready and one consumer at a time is served");
        holds.push(deliveries("single_active_consumer", because));
    }
    if status.oldest_ms == 0 && status.paged > 0 {
        let because = format!(
            "{} being read back from disk",
            counted_are(status.paged, "message")
        );
        holds.push(deliveries("disk", because));
    }
    if pace.publish > pace.deliver_get * STEADY {
        let because = format!(
            "messages come at {:.0} a second, and consumers take {:.0}",
            pace.publish, pace.deliver_get
        );
        holds.push(deliveries("slow_consumers", because));
    }
    if holds.is_empty() {
        let because = format!("{ready} ready and the consumers' connections do not read them faster");
        holds.push(deliveries("socket", because));
    }
    holds
}

/// Consumers who hold as many messages as they may.
fn of_acks(status: &Status, consumers: &[Arc<Consumer>]) -> Option<Hold> {
    let because = match allowance(status, consumers) {
        Some(prefetch) if status.unacked >= prefetch => format!(
            "{} unacknowledged, as many as the prefetch of {} allows ({prefetch})",
            counted_are(status.unacked, "message"),
            counted(status.consumers, "consumer")
        ),
        _ if are_channels_full(consumers) => {
            format!(
                "{} with a channel that holds as many unacknowledged messages as its prefetch allows, and no others",
                counted(consumers.len() as u64, "consumer")
            )
        }
        _ => return None,
    };
    Some(deliveries("consumer_acks", because))
}

/// True if each consumer's channel holds what it may hold altogether (`basic.qos` with `global`).
fn are_channels_full(consumers: &[Arc<Consumer>]) -> bool {
    let mut channels: HashMap<u64, Vec<Arc<Channel>>> = HashMap::new();
    !consumers.is_empty()
        && consumers.iter().all(|consumer| {
            let of_connection = channels
                .entry(consumer.connection.id)
                .or_insert_with(|| consumer.connection.channels());
            let channel = of_connection.iter().find(|it| it.number == consumer.channel);
            channel.is_some_and(|it| is_full(it))
        })
}

fn is_full(channel: &Channel) -> bool {
    let prefetch = channel.global_prefetch.get();
    prefetch > 0 && channel.unacked() >= prefetch
}

/// Everything that holds a connection.
pub fn of_connection(connection: &Connection, node: &NodeStatus) -> Vec<Hold> {
    let reason = connection.held().reason();
    let channels = connection.channels();
    let publishes = channels.iter().any(|it| it.counts.messages.publish.get() > 0);
    let mut holds = match publishes || reason == Some(Reason::Alarm) {
        true => of_node(node),
        false => Vec::new(),
    };
    holds.extend(connection.alarm_elsewhere().map(|alarm| {
        let because = format!("it published to a queue of another node, which has an alarm: {alarm}");
        publishers("alarm_elsewhere", because)
    }));
    holds.extend(of_pressure(reason));
    for channel in &channels {
        let (number, unconfirmed, unacked) = (channel.number, channel.unconfirmed(), channel.unacked());
        if unconfirmed > 0 {
            let because = format!("confirms that are still to come on channel {number}: {unconfirmed}");
            holds.push(publishers("sync", because));
        }
        let consumers = channel.consumers();
        let prefetch = allowance(&Status::default(), &consumers);
        if prefetch.is_some_and(|prefetch| unacked >= prefetch) || is_full(channel) {
            let because = format!(
                "{} unacknowledged on channel {number}, as many as its prefetch allows",
                counted_are(unacked, "message")
            );
            holds.push(deliveries("consumer_acks", because));
        }
    }
    holds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(holds: &[Hold]) -> Vec<&str> {
        holds.iter().map(|hold| hold.resource).collect()
    }

    fn ready(ready: u64, consumers: u64) -> Status {
        Status {
            ready,
            ready_bytes: ready * 100,
            consumers,
            ..Status::default()
        }
    }

    #[test]
    fn each_alarm_is_named_and_a_healthy_node_holds_nobody() {
        let node = NodeStatus {
            memory: 7_000,
            memory_limit: 5_000,
            memory_alarm: true,
            disk_alarm: true,
            log_failed: true,
            ..NodeStatus::default()
        };
        let holds = of_node(&node);
        assert_eq!(resources(&holds), ["memory_alarm", "disk_alarm", "log_failed"]);
        assert!(
            holds[0].because.contains("6.8 KiB of 4.9 KiB are used"),
            "{holds:?}"
        );
        assert_eq!(of_node(&NodeStatus::default()), []);
    }

    #[test]
    fn a_queue_without_consumers_says_so_and_an_empty_one_is_held_by_nothing() {
        let pace = Pace::default();
        let of = |status| of_consumers(&status, &[], &pace);
        assert_eq!(resources(&of(ready(3, 0))), ["no_consumers"]);
        let alone = "1 message is ready and there are no consumers";
        assert_eq!(of(ready(1, 0))[0].because, alone);
        assert_eq!(resources(&of(ready(3, 1))), ["socket"]);
        assert_eq!(of(Status::default()), []);
    }

    #[test]
    fn several_causes_are_all_named() {
        let status = Status {
            active: Some(model::ConsumerId(1)),
            paged: 5,
            ..ready(5, 2)
        };
        let pace = Pace {
            publish: 800.0,
            deliver_get: 100.0,
            ack: 0.0,
        };
        let holds = of_consumers(&status, &[], &pace);
        assert_eq!(
            resources(&holds),
            ["single_active_consumer", "disk", "slow_consumers"]
        );
        assert!(
            holds[2]
                .because
                .contains("messages come at 800 a second, and consumers take 100")
        );
    }

    #[test]
    fn a_full_queue_says_what_becomes_of_messages() {
        let mut settings = QueueSettings {
            max_length: Some(10),
            ..QueueSettings::default()
        };
        assert_eq!(of_length(&settings, &ready(9, 0)), None);
        assert_eq!(of_length(&settings, &ready(10, 0)).unwrap().who, "messages");
        settings.overflow = Overflow::Reject;
        assert_eq!(of_length(&settings, &ready(10, 0)).unwrap().who, "publishers");
        (settings.max_length, settings.max_length_bytes) = (None, Some(950));
        let hold = of_length(&settings, &ready(9, 0)).unwrap();
        assert!(
            hold.because
                .contains("max-length-bytes is 950 bytes and 900 bytes are ready"),
            "{hold:?}"
        );
        assert_eq!(of_length(&settings, &ready(8, 0)), None);
    }

    #[test]
    fn pressure_has_a_sentence_for_each_reason() {
        for reason in Reason::ALL {
            assert_eq!(of_pressure(Some(reason)).is_none(), reason == Reason::Alarm);
        }
        assert_eq!(of_pressure(None), None);
    }
}
