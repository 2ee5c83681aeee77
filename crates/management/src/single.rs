//! What RabbitMQ has for nodes of a cluster, as one node answers it.

use crate::access::Right;
use crate::arguments::text;
use crate::call::Call;
use crate::refusal::{Refusal, need};
use crate::reply::Reply;
use crate::route::Route;
use serde_json::json;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/vhosts/:vhost/start/:node",
        verbs: &[("POST", Right::Administrator, start)],
    },
    Route {
        path: "/queues/:vhost/:name/actions",
        verbs: &[("POST", Right::Administrator, act)],
    },
];

/// All virtual hosts run as long as the node does, so that the one of the path does once it is there.
fn start(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (vhost, node) = (call.part("vhost"), call.part("node"));
    if *node != *call.api.options.node {
        return Err(Refusal::bad_request(format!("Unknown node: {node}")));
    }
    match call.view.vhost(vhost) {
        Some(_) => Ok(Reply::empty(204)),
        None => Err(Refusal::bad_request(format!(
            "Request to node {node} failed with {{no_such_vhost,<<{vhost:?}>>}}"
        ))),
    }
}

/// RabbitMQ 4 knows no action; RabbitMQ 3 had mirrors synchronised. Here they do that by themselves, so there is nothing to
/// begin, and what would end it is answered as it is there.
fn act(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = call.view.queue(call.part("vhost"), call.part("name"));
    let queue = queue.ok_or_else(|| Refusal::Missing("queue_not_found".into()))?;
    let body = call.json()?;
    need(&body, &["action"])?;
    let action = text(&body, "action")?;
    match action {
        Some("sync" | "cancel_sync") if queue.is_shared() && queue.is_mirrorable() => Ok(Reply::empty(204)),
        _ => Err(Refusal::BadRequest(json!(["unknown", action]))),
    }
}
