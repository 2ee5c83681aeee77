//! `/api/leveret/why`: what holds a queue or a connection up, with figures.

use crate::access::Right;
use crate::call::Call;
use crate::connections;
use crate::history::Slot;
use crate::holds::{self, Hold, Pace};
use crate::listing::object;
use crate::others::{self, Question};
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::times::{NODE_TIMES, QUEUE_TIMES, Times};
use broker::queues::{Queue, Status};
use broker::stats::{Connection, Consumer, Histogram, State};
use broker::{QueueKind, Reason};
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

fn queue(call: &Call<'_>) -> Result<Reply, Refusal> {
    let view = queues::find(call)?;
    if let Some((_, answer)) = queues::from_its_node(call, view) {
        return Ok(answer.into());
    }
    let broker = &call.api.broker;
    let queue = broker.queues().here(view.id).ok_or(Refusal::NotFound)?;
    let (status, consumers) = (queue.status(), queue.consumers());
    let pace = Pace::of(call, &queue);
    let mut holds = holds::of_node(&broker.status());
    holds.extend(holds::of_pressure(queue.holds()));
    if view.is_durable() {
        holds.extend(holds::of_pressure(broker.log_holds()));
    }
    holds.extend(holds::of_rate_limits(&view.vhost, &broker.stats().connections()));
    // What a stream has waits for nobody: it stays, however often it is read, until retention drops it.
    if view.kind != QueueKind::Stream {
        holds.extend(holds::of_length(&call.view.settings(view), &status));
        holds.extend(holds::of_consumers(&status, &consumers, &pace));
    }
    let figures = queue_figures(call, &queue, &status, &consumers, &pace);
    Ok(object(&call.query, answer(&holds, figures)))
}

fn connection(call: &Call<'_>) -> Result<Reply, Refusal> {
    let connection = match connections::find(call) {
        Err(Refusal::NotFound) => return others::of_whoever_has_it(call, &Question::again(call)),
        found => found?,
    };
    let holds = holds::of_connection(&connection, &call.api.broker.status());
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

/// Percentiles of the last minute, in milliseconds, with the moment of which they are and how many messages were timed
/// since the start; null where there was nothing.
fn times<const N: usize>(
    found: Option<&Times<N>>,
    names: &[&str; N],
    all: [u64; N],
    now: Slot,
) -> Map<String, Value> {
    let Some(times) = found else {
        return names
            .iter()
            .map(|name| ((*name).to_owned(), Value::Null))
            .collect();
    };
    let mut shown = times.latest_shown(names, now);
    for (name, count) in names.iter().zip(all) {
        if let Some(Value::Object(latest)) = shown.get_mut(*name) {
            latest.insert("samples".into(), count.into());
        }
    }
    shown
}

/// The log's, as [`times`] tells it.
fn log_sync(call: &Call<'_>) -> Value {
    let samples = call.api.sampler.samples();
    let mut all = [0; NODE_TIMES.len()];
    all[NODE_TIMES.len() - 1] = call.api.broker.work().sync.count();
    let mut shown = times(Some(&samples.times.node), &NODE_TIMES, all, samples.now);
    shown.remove("log_sync").unwrap_or_default()
}

impl Pace {
    fn of(call: &Call<'_>, queue: &Queue) -> Self {
        let samples = call.api.sampler.samples();
        let history = samples.queues.get(&queue.id);
        let rate = |places: &[usize]| history.map_or(0.0, |history| history.rate(samples.now, places));
        Self {
            publish: rate(&[2]),
            deliver_get: rate(&[3, 4, 5, 6]),
            ack: rate(&[8]),
        }
    }
}

fn queue_figures(
    call: &Call<'_>,
    queue: &Queue,
    status: &Status,
    consumers: &[Arc<Consumer>],
    pace: &Pace,
) -> Value {
    let mut figures = json!({
        "messages_ready": status.ready,
        "messages_unacknowledged": status.unacked,
        "messages_paged_out": status.paged,
        "memory": status.memory,
        "consumers": status.consumers,
        "prefetch": holds::allowance(status, consumers),
        "oldest_message_age_ms": queues::age_ms(call, status),
        "publish_rate": pace.publish,
        "deliver_get_rate": pace.deliver_get,
        "ack_rate": pace.ack,
        "log_sync": log_sync(call),
    });
    let samples = call.api.sampler.samples();
    let timed = samples.times.queues.get(&queue.id).map(|timed| &timed.times);
    let counts = queue
        .latencies()
        .map(|found| [&found.deliver, &found.ack, &found.confirm].map(Histogram::count));
    for (name, latest) in times(timed, &QUEUE_TIMES, counts.unwrap_or_default(), samples.now) {
        figures[name] = latest;
    }
    figures
}

fn connection_figures(call: &Call<'_>, connection: &Connection) -> Value {
    let now_ms = call.api.broker.now_ms();
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
    let sum = |count: fn(&broker::stats::Channel) -> u64| channels.iter().map(|it| count(it)).sum::<u64>();
    json!({
        "state": connection.state().name(),
        "blocked": connection.state() == State::Blocked,
        "held_ms": held,
        "open_ms": now_ms.saturating_sub(connection.connected_at_ms),
        "channels": channels.len(),
        "messages_unacknowledged": sum(|it| it.unacked()),
        "messages_unconfirmed": sum(|it| it.unconfirmed()),
        "published": sum(|it| it.counts.messages.publish.get()),
        "log_sync": log_sync(call),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_holds_says_so() {
        assert_eq!(answer(&[], json!({}))["held_by"], "nothing");
    }
}
