//! `/api/consumers`: who consumes, over AMQP and by the stream protocol.

use crate::access::Right;
use crate::call::Call;
use crate::connections;
use crate::json::table;
use crate::listing::List;
use crate::others::{self, Question};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::snapshot::{Actives, Consumes};
use crate::spread::Spread;
use broker::QueueView;
use broker::stats::{Connection, Consumer, StreamConsumer};
use model::table::Value as Argument;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/consumers",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/consumers/:vhost",
        verbs: &[("GET", Right::VhostOrMonitor, list)],
    },
];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    if call.given("vhost").is_some() {
        call.vhost()?;
    }
    if call.for_node {
        let body = call.json()?;
        if body.contains_key(ASKED) {
            return Ok(Reply::json(&json!(active_here(call))));
        }
        if let Some(queue) = body.get("queue").and_then(Value::as_str) {
            let rows = of_queue(call, call.part("vhost"), queue);
            return Ok(Reply::json(&rows.into()));
        }
    }
    let consumers = call.snapshot.consumers.get_or_init(|| {
        let connections = connections::visible(call);
        connections.iter().flat_map(on).collect()
    });
    let list = List {
        name: &|consumer: &&Consumes| match consumer {
            Consumes::Messages(consumer) => &consumer.tag,
            Consumes::Chunks { tag, .. } => tag,
        },
        row: &|consumer| any_row(call, consumer),
        member: &|_, _| None,
    };
    let id = &|consumer: &&Consumes| match consumer {
        Consumes::Messages(consumer) => [consumer.id.0, 0],
        Consumes::Chunks { on, consumer, .. } => [on.id, 1 + u64::from(consumer.id)],
    };
    let words = words(call);
    let spread = Spread {
        call,
        list,
        id,
        words,
    };
    spread.reply(consumers.iter(), consumers.len())
}

/// Asks which consumers a node's queues serve alone.
const ASKED: &str = "which_are_active";
/// Tells a node that is asked for rows of consumers.
const ACTIVE: &str = "active";

/// What another node has to know to make rows of consumers.
pub fn words(call: &Call<'_>) -> Map<String, Value> {
    let known: Vec<_> = actives(call).iter().collect();
    match known.is_empty() {
        true => Map::new(),
        false => Map::from_iter([(ACTIVE.to_owned(), json!(known))]),
    }
}

/// Who alone is served, of queues that serve one consumer at a time: their nodes know it, and whoever asks for somebody tells
/// all others.
fn actives<'c>(call: &'c Call<'_>) -> &'c Actives {
    call.snapshot.actives.get_or_init(|| {
        if call.for_node {
            let told = call.json().ok().and_then(|mut body| body.remove(ACTIVE));
            let told: Vec<(u64, (u64, u64))> = told
                .and_then(|told| serde_json::from_value(told).ok())
                .unwrap_or_default();
            return told.into_iter().collect();
        }
        if others::running(call).is_empty() || !has_single_active(call) {
            return Actives::new();
        }
        let question = Question {
            body: json!({ASKED: true}),
            ..Question::get("/api/consumers")
        };
        let told = others::ask_all(call, &question).into_iter();
        let told = told.filter_map(|(_, told)| serde_json::from_value::<Vec<(u64, (u64, u64))>>(told).ok());
        told.flatten().chain(active_here(call)).collect()
    })
}

fn has_single_active(call: &Call<'_>) -> bool {
    let mut queues = call.view.vhosts().flat_map(|vhost| vhost.queues());
    queues.any(|queue| is_single_active(queue))
}

fn is_single_active(queue: &QueueView) -> bool {
    queue.arguments.get("x-single-active-consumer") == Some(&Argument::Bool(true))
}

/// The consumers that queues of this node serve alone.
fn active_here(call: &Call<'_>) -> Vec<(u64, (u64, u64))> {
    let broker = &call.api.broker;
    let queues = call.view.vhosts().flat_map(|vhost| vhost.queues());
    let active = queues
        .filter(|queue| is_single_active(queue))
        .filter_map(|queue| {
            let whose = broker.active_consumer(&*broker.queues().here(queue.id)?)?;
            Some((queue.id.0, (whose.node.0, whose.consumer.0)))
        });
    active.collect()
}

/// The consumers of a connection, those over AMQP first.
fn on(connection: &Arc<Connection>) -> impl Iterator<Item = Consumes> {
    let channels = connection.channels().into_iter();
    let messages = channels.flat_map(|channel| channel.consumers());
    let on = connection.clone();
    let chunks = connection.stream_consumers().into_iter();
    let chunks = chunks.map(move |consumer| Consumes::Chunks {
        // As in RabbitMQ.
        tag: format!("stream.subid-{}", consumer.id),
        on: on.clone(),
        consumer,
    });
    messages.map(Consumes::Messages).chain(chunks)
}

/// The consumers of a queue whose connections are on this node, wherever the queue is.
pub fn of_queue(call: &Call<'_>, vhost: &str, queue: &str) -> Vec<Value> {
    rows_of(call, vhost, queue, |_| true)
}

/// Those of them that consume by the stream protocol.
pub fn by_stream_protocol(call: &Call<'_>, vhost: &str, stream: &str) -> Vec<Value> {
    rows_of(call, vhost, stream, |consumer| {
        matches!(consumer, Consumes::Chunks { .. })
    })
}

fn rows_of(call: &Call<'_>, vhost: &str, queue: &str, wanted: impl Fn(&Consumes) -> bool) -> Vec<Value> {
    let connections = call.api.broker.stats().connections().into_iter();
    let connections = connections.filter(|connection| *connection.vhost == *vhost);
    let consumers = connections.flat_map(|connection| on(&connection).collect::<Vec<_>>());
    let consumers = consumers.filter(|consumer| match consumer {
        Consumes::Messages(consumer) => *consumer.queue == *queue,
        Consumes::Chunks { consumer, .. } => *consumer.stream == *queue,
    });
    let consumers = consumers.filter(wanted);
    consumers.map(|consumer| any_row(call, &consumer)).collect()
}

/// Whether a consumer is the one that is served, where one at a time is.
fn is_active(call: &Call<'_>, consumer: &Consumer) -> Option<bool> {
    let broker = &call.api.broker;
    let queue = call.view.queue(&consumer.vhost, &consumer.queue)?;
    let own = broker.own_consumer(consumer.id);
    match broker.queues().here(queue.id) {
        // A queue that several nodes have knows the consumers of its own node by other names, too.
        Some(here) => Some(broker.active_consumer(&here)? == own),
        None => Some(*actives(call).get(&queue.id.0)? == (own.node.0, own.consumer.0)),
    }
}

/// A consumer as an object.
pub fn row(call: &Call<'_>, consumer: &Consumer) -> Value {
    let (active, status) = match is_active(call, consumer) {
        None => (true, "up"),
        Some(true) => (true, "single_active"),
        Some(false) => (false, "waiting"),
    };
    json!({
        "consumer_tag": consumer.tag,
        "queue": {"name": &*consumer.queue, "vhost": &*consumer.vhost},
        "ack_required": !consumer.no_ack,
        "exclusive": consumer.exclusive,
        "prefetch_count": consumer.prefetch,
        "active": active,
        "activity_status": status,
        "consumer_timeout": consumer.timeout_ms,
        "arguments": table(&consumer.arguments),
        "channel_details": channel_details(
            call,
            &consumer.connection,
            &connections::channel_name(&consumer.connection, consumer.channel),
            consumer.channel,
        ),
    })
}

fn any_row(call: &Call<'_>, consumer: &Consumes) -> Value {
    match consumer {
        Consumes::Messages(consumer) => row(call, consumer),
        Consumes::Chunks { tag, on, consumer } => row_of_stream(call, tag, on, consumer),
    }
}

/// As in RabbitMQ, a subscription of the stream protocol is a consumer of a channel without a name.
fn row_of_stream(call: &Call<'_>, tag: &str, connection: &Connection, consumer: &StreamConsumer) -> Value {
    json!({
        "consumer_tag": tag,
        "queue": {"name": &*consumer.stream, "vhost": &*connection.vhost},
        "ack_required": false,
        "exclusive": false,
        "prefetch_count": 0,
        "active": consumer.is_active(),
        "activity_status": stream_activity(consumer),
        "consumer_timeout": Value::Null,
        "arguments": stream_properties(consumer),
        "channel_details": channel_details(call, connection, "", 0),
    })
}

/// Whether a consumer of the stream protocol is sent something, or waits for its turn.
pub fn stream_activity(consumer: &StreamConsumer) -> &'static str {
    match (&consumer.group, consumer.is_active()) {
        (None, _) => "up",
        (Some(_), true) => "single_active",
        (Some(_), false) => "waiting",
    }
}

/// What its client has said of it.
pub fn stream_properties(consumer: &StreamConsumer) -> Map<String, Value> {
    let properties = consumer.properties.iter();
    let properties = properties.map(|(name, value)| (name.clone(), value.as_str().into()));
    properties.collect()
}

fn channel_details(call: &Call<'_>, connection: &Connection, name: &str, number: u16) -> Value {
    let mut details = json!({
        "name": name,
        "number": number,
        "connection_name": connection.name,
        "node": call.api.options.node,
        "peer_host": connection.peer_host(),
        "peer_port": connection.peer.port(),
        "user": &*connection.user,
    });
    if let Some(name) = connections::given_name(connection) {
        details["user_provided_name"] = name;
    }
    details
}
