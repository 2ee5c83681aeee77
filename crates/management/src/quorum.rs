//! What RabbitMQ has for the members of quorum queues: here all queues are classic, and say so in its words.

use crate::access::Right;
use crate::call::Call;
use crate::queues::find;
use crate::refusal::{Refusal, need};
use crate::reply::Reply;
use crate::route::Route;
use serde_json::json;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/queues/quorum/:vhost/:name/status",
        verbs: &[("GET", Right::Vhost, status)],
    },
    Route {
        path: "/queues/quorum/:vhost/:name/replicas/add",
        verbs: &[("POST", Right::Administrator, add)],
    },
    Route {
        path: "/queues/quorum/:vhost/:name/replicas/delete",
        verbs: &[("DELETE", Right::Administrator, delete)],
    },
    Route {
        path: "/queues/quorum/replicas/on/:node/grow",
        verbs: &[("POST", Right::Administrator, grow)],
    },
    Route {
        path: "/queues/quorum/replicas/on/:node/shrink",
        verbs: &[("DELETE", Right::Administrator, shrink)],
    },
];

const CLASSIC: &str = "classic_queue_not_supported";

fn status(call: &Call<'_>) -> Result<Reply, Refusal> {
    find(call)?;
    let body = json!({"status": "failed", "reason": CLASSIC});
    Ok(Reply::with_status(503, &body))
}

fn add(call: &Call<'_>) -> Result<Reply, Refusal> {
    need_this_node(call)?;
    Ok(unavailable(match find(call) {
        Ok(_) => CLASSIC,
        Err(_) => "not_found",
    }))
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    find(call)?;
    need_this_node(call)?;
    Ok(unavailable(CLASSIC))
}

/// No queue has members, so that none gets one here.
fn grow(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.here()?;
    need(&call.json()?, &["vhost_pattern", "queue_pattern", "strategy"])?;
    Ok(Reply::empty(204))
}

fn shrink(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.here()?;
    Ok(Reply::empty(202))
}

/// # Errors
/// The body names another node, or none.
fn need_this_node(call: &Call<'_>) -> Result<(), Refusal> {
    let body = call.json()?;
    need(&body, &["node"])?;
    match body["node"].as_str() == Some(&call.api.options.node) {
        true => Ok(()),
        false => Err(Refusal::bad_request("Node is not a cluster member")),
    }
}

fn unavailable(reason: &str) -> Reply {
    let body = json!({"error": "service_unavailable", "reason": reason});
    Reply::with_status(503, &body)
}
