//! `/api/leveret/why`: which resource holds a queue or a connection up, with figures.

use crate::access::Right;
use crate::call::Call;
use crate::connections;
use crate::listing::object;
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
use broker::queues::{Queue, Status};
use broker::sight::{Connection, Consumer, Histogram, State};
use broker::{NodeStatus, Reason};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/leveret/why/queues/:vhost/:name",
        verbs: &[("GET", Right::Vhost, queue)],
    },
    Route {
        path: "/leveret/why/connections/:connection",
        verbs: &[("GET", Right::Management, connection)],
    },
];

/// Something that holds messages up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hold {
    /// `publishers`, `deliveries`.
    who: &'static str,
    /// What is short.
    resource: &'static str,
    /// In a sentence.
    because: String,
}

fn queue(call: &Call<'_>) -> Result<Reply, Refusal> {
    let view = queues::find(call)?;
    let queue = call.hall.broker.queues().get(view.id).ok_or(Refusal::NotFound)?;
    let (status, consumers) = (queue.status(), queue.consumers());
    let mut holds = Vec::new();
    holds.extend(publishers(queue.holds(), &call.hall.broker.status()));
    holds.extend(deliveries(&status, &consumers));
    let figures = queue_figures(call, &queue, &status, &consumers);
    Ok(object(&call.query, answer(&holds, figures)))
}

fn connection(call: &Call<'_>) -> Result<Reply, Refusal> {
    let connection = connections::find(call)?;
    let mut holds = Vec::new();
    holds.extend(publishers(connection.held().reason(), &call.hall.broker.status()));
    let channels = connection.channels();
    for channel in &channels {
        let (unconfirmed, unacked) = (channel.unconfirmed(), channel.unacked());
        if unconfirmed > 0 {
            holds.push(Hold {
                who: "publishers",
                resource: "sync",
                because: format!(
                    "{unconfirmed} publishes on channel {} wait for their confirm",
                    channel.number
                ),
            });
        }
        let consumers = channel.consumers();
        let prefetch = allowance(&consumers);
        if prefetch.is_some_and(|prefetch| unacked >= prefetch) {
            holds.push(Hold {
                who: "deliveries",
                resource: "consumer_acks",
                because: format!(
                    "channel {} holds {unacked} unacknowledged messages, as many as its prefetch allows",
                    channel.number
                ),
            });
        }
    }
    Ok(object(
        &call.query,
        answer(&holds, connection_figures(call, &connection)),
    ))
}

/// The first hold is the verdict; nothing held is an answer too.
fn answer(holds: &[Hold], figures: Value) -> Value {
    let shown = holds
        .iter()
        .map(|hold| json!({"who": hold.who, "resource": hold.resource, "because": hold.because}));
    json!({
        "held_by": holds.first().map_or("nothing", |hold| hold.resource),
        "holds": shown.collect::<Value>(),
        "figures": figures,
    })
}

fn publishers(reason: Option<Reason>, node: &NodeStatus) -> Option<Hold> {
    let (resource, because) = match reason? {
        Reason::Memory => (
            "memory_budget",
            "bodies of the queue in memory are over its budget until some are paged out".to_owned(),
        ),
        Reason::Consumers => (
            "consumers",
            "publishers are held to the pace of the queue's consumers".to_owned(),
        ),
        Reason::Sync => (
            "sync",
            "more than the disk keeps up with waits to be written and synced".to_owned(),
        ),
        Reason::LogSize => (
            "log_size",
            "the write-ahead log waits for checkpoints to let go of its oldest files".to_owned(),
        ),
        Reason::Catalog => (
            "catalog",
            "a queue with very many bindings is being deleted".to_owned(),
        ),
        Reason::RateLimit => (
            "rate_limit",
            "its user or its virtual host publishes as fast as max-message-rate or max-byte-rate let it"
                .to_owned(),
        ),
        Reason::Alarm => (
            "alarm",
            format!(
                "an alarm is on: memory {} of {} bytes, disk {} free of {} wanted",
                node.memory, node.memory_limit, node.disk_free, node.disk_free_limit
            ),
        ),
    };
    Some(Hold {
        who: "publishers",
        resource,
        because,
    })
}

/// How many messages these consumers may hold together; `None` is no limit.
fn allowance(consumers: &[Arc<Consumer>]) -> Option<u64> {
    let unlimited = consumers.iter().any(|it| it.no_ack || it.prefetch == 0);
    (!unlimited && !consumers.is_empty()).then(|| consumers.iter().map(|it| u64::from(it.prefetch)).sum())
}

/// Why messages are not delivered.
fn deliveries(status: &Status, consumers: &[Arc<Consumer>]) -> Option<Hold> {
    if status.ready == 0 {
        return None;
    }
    let ready = status.ready;
    let (resource, because) = if status.consumers == 0 {
        (
            "no_consumers",
            format!("{ready} messages are ready and nobody consumes"),
        )
    } else if let Some(prefetch) = allowance(consumers).filter(|prefetch| status.unacked >= *prefetch) {
        (
            "consumer_acks",
            format!(
                "{} unacknowledged messages are as many as the prefetch of all {} consumers allows ({prefetch})",
                status.unacked, status.consumers
            ),
        )
    } else if status.active.is_some() {
        (
            "single_active_consumer",
            format!("{ready} messages are ready and one consumer at a time is served"),
        )
    } else if status.oldest_ms == 0 && status.paged > 0 {
        (
            "disk",
            format!("{} messages are being read back from disk", status.paged),
        )
    } else {
        (
            "socket",
            format!(
                "{ready} messages are ready and the consumers' connections do not take them more quickly"
            ),
        )
    };
    Some(Hold {
        who: "deliveries",
        resource,
        because,
    })
}

/// A time's percentiles in milliseconds.
pub fn times(histogram: &Histogram) -> Value {
    let ms = |part| histogram.quantile_s(part).map(|seconds| seconds * 1000.0);
    json!({
        "samples": histogram.count(),
        "p50_ms": ms(0.5),
        "p95_ms": ms(0.95),
        "p99_ms": ms(0.99),
        "max_ms": ms(1.0),
    })
}

fn queue_figures(call: &Call<'_>, queue: &Queue, status: &Status, consumers: &[Arc<Consumer>]) -> Value {
    let samples = call.hall.sampler.samples();
    let history = samples.queues.get(&queue.id);
    let rate = |places: &[usize]| history.map_or(0.0, |history| history.rate(samples.now, places));
    let mut figures = json!({
        "messages_ready": status.ready,
        "messages_unacknowledged": status.unacked,
        "messages_paged_out": status.paged,
        "memory": status.memory,
        "consumers": status.consumers,
        "prefetch": allowance(consumers),
        "oldest_message_age_ms": age_ms(call, status),
        "publish_rate": rate(&[2]),
        "deliver_get_rate": rate(&[3, 4, 5, 6]),
        "ack_rate": rate(&[8]),
        "log_sync": times(&call.hall.broker.work().sync),
    });
    if let Some(latencies) = queue.latencies() {
        figures["publish_to_deliver"] = times(&latencies.deliver);
        figures["deliver_to_ack"] = times(&latencies.ack);
        figures["publish_to_confirm"] = times(&latencies.confirm);
    }
    figures
}

/// How long the first ready message has been there, if that is known.
pub fn age_ms(call: &Call<'_>, status: &Status) -> Option<u64> {
    (status.oldest_ms > 0).then(|| call.hall.broker.now_ms().saturating_sub(status.oldest_ms))
}

fn connection_figures(call: &Call<'_>, connection: &Connection) -> Value {
    let now_ms = call.hall.broker.now_ms();
    let held: Map<String, Value> = Reason::ALL
        .into_iter()
        .map(|reason| {
            (
                reason.name().into(),
                connection.held().total_ms(reason, now_ms).into(),
            )
        })
        .collect();
    let channels = connection.channels();
    let sum = |count: fn(&broker::sight::Channel) -> u64| channels.iter().map(|it| count(it)).sum::<u64>();
    json!({
        "state": connection.state().name(),
        "blocked": connection.state() == State::Blocked,
        "held_ms": held,
        "open_ms": now_ms.saturating_sub(connection.connected_at_ms),
        "channels": channels.len(),
        "messages_unacknowledged": sum(|it| it.unacked()),
        "messages_unconfirmed": sum(|it| it.unconfirmed()),
        "published": sum(|it| it.counts.messages.publish.get()),
        "log_sync": times(&call.hall.broker.work().sync),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_without_consumers_says_so_and_an_empty_one_is_held_by_nothing() {
        let status = Status {
            ready: 3,
            ..Status::default()
        };
        assert_eq!(deliveries(&status, &[]).unwrap().resource, "no_consumers");
        let status = Status {
            ready: 3,
            consumers: 1,
            ..Status::default()
        };
        assert_eq!(deliveries(&status, &[]).unwrap().resource, "socket");
        assert_eq!(deliveries(&Status::default(), &[]), None);
        assert_eq!(answer(&[], json!({}))["held_by"], "nothing");
    }
}
