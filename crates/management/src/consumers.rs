//! `/api/consumers`.

use crate::access::Right;
use crate::call::Call;
use crate::connections;
use crate::json::table;
use crate::listing::List;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::spread::Spread;
use broker::stats::Consumer;
use serde_json::{Value, json};
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
    if call.for_node
        && let Some(queue) = call.json()?.get("queue").and_then(Value::as_str)
    {
        let rows = of_queue(call, call.part("vhost"), queue);
        return Ok(Reply::json(&rows.into()));
    }
    let consumers = call.snapshot.consumers.get_or_init(|| {
        let connections = connections::visible(call).into_iter();
        let channels = connections.flat_map(|connection| connection.channels());
        channels.flat_map(|channel| channel.consumers()).collect()
    });
    let list = List {
        name: &|consumer: &&Arc<Consumer>| &consumer.tag,
        row: &|consumer| row(call, consumer),
        member: &|_, _| None,
    };
    let id = &|consumer: &&Arc<Consumer>| [consumer.id.0, 0];
    Spread { call, list, id }.reply(consumers.iter(), consumers.len())
}

/// The consumers of a queue whose connections are on this node, wherever the queue is.
pub fn of_queue(call: &Call<'_>, vhost: &str, queue: &str) -> Vec<Value> {
    let connections = call.api.broker.stats().connections().into_iter();
    let channels = connections
        .filter(|connection| *connection.vhost == *vhost)
        .flat_map(|connection| connection.channels());
    let consumers = channels.flat_map(|channel| channel.consumers());
    consumers
        .filter(|consumer| *consumer.queue == *queue)
        .map(|consumer| row(call, &consumer))
        .collect()
}

/// A consumer as an object.
pub fn row(call: &Call<'_>, consumer: &Consumer) -> Value {
    let queue = call.view.queue(&consumer.vhost, &consumer.queue);
    let queue = queue.and_then(|queue| call.api.broker.queues().here(queue.id));
    let (active, status) = match queue.and_then(|queue| queue.status().active) {
        None => (true, "up"),
        Some(id) if id == consumer.id => (true, "single_active"),
        Some(_) => (false, "waiting"),
    };
    let connection = &consumer.connection;
    let mut row = json!({
        "consumer_tag": consumer.tag,
        "queue": {"name": &*consumer.queue, "vhost": &*consumer.vhost},
        "ack_required": !consumer.no_ack,
        "exclusive": consumer.exclusive,
        "prefetch_count": consumer.prefetch,
        "active": active,
        "activity_status": status,
        "consumer_timeout": consumer.timeout_ms,
        "arguments": table(&consumer.arguments),
        "channel_details": {
            "name": connections::channel_name(connection, consumer.channel),
            "number": consumer.channel,
            "connection_name": connection.name,
            "node": call.api.options.node,
            "peer_host": connection.peer_host(),
            "peer_port": connection.peer.port(),
            "user": &*connection.user,
        },
    });
    if let Some(name) = connections::given_name(connection) {
        row["channel_details"]["user_provided_name"] = name;
    }
    row
}
