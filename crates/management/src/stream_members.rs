//! Which nodes have a copy of a stream, and are to have one. RabbitMQ has commands for these and no API.

use crate::access::Right;
use crate::call::Call;
use crate::queues::find;
use crate::quorum::{CLASSIC, change, named, runs, unavailable};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::stream_copies::all;
use broker::{NodeId, QueueKind, QueueView};
use serde_json::Value;

pub const ROUTES: &[Route] = &[Route {
    path: "/leveret/streams/:vhost/:name/replicas",
    verbs: &[
        ("GET", Right::Vhost, list),
        ("POST", Right::Administrator, add),
        ("DELETE", Right::Administrator, delete),
    ],
}];

/// Of a queue that is no stream there is none.
fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = call.vhost()?.queue(call.part("name"));
    let queue = queue.ok_or(Refusal::NotFound)?;
    let rows = match queue.kind {
        QueueKind::Stream => all(call, queue),
        _ => Vec::new(),
    };
    Ok(Reply::json(&Value::Array(rows)))
}

/// What RabbitMQ says of a queue that is no stream.
fn is_none(queue: &QueueView) -> Option<&'static str> {
    match queue.kind {
        QueueKind::Stream => None,
        QueueKind::Quorum => Some("quorum_queue_not_supported"),
        _ => Some(CLASSIC),
    }
}

fn add(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (stream, node) = (find(call)?, named(call)?);
    if let Some(reason) = is_none(stream) {
        return Ok(unavailable(reason));
    }
    match runs(call, node) {
        true => changed(call, stream, node, true),
        false => Ok(unavailable("node_not_running")),
    }
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (stream, node) = (find(call)?, named(call)?);
    if let Some(reason) = is_none(stream) {
        return Ok(unavailable(reason));
    }
    match stream.is_shared() && stream.members().count() > 1 {
        true => changed(call, stream, node, false),
        false => Ok(unavailable("last_stream_member")),
    }
}

/// What the catalog cannot do with the stream as it is has a sentence of its own.
fn changed(call: &Call<'_>, stream: &QueueView, node: NodeId, is_member: bool) -> Result<Reply, Refusal> {
    match change(call, stream, node, is_member) {
        Err(Refusal::Internal(reason)) => Ok(unavailable(&reason)),
        answered => answered,
    }
}
