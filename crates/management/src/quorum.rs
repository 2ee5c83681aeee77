//! The members of quorum queues, in RabbitMQ's words. On a node alone each has one.

use crate::access::Right;
use crate::call::Call;
use crate::queues::find;
use crate::refusal::{Refusal, need};
use crate::reply::Reply;
use crate::route::Route;
use broker::{QueueKind, QueueSettings, QueueView};
use model::{DeliveryLimit, Returned};
use serde_json::{Map, Value, json};

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

/// What RabbitMQ's state machine of quorum queues is called by since 4.3.
const MACHINE_VERSION: u32 = 8;

/// What the members of a queue say: on a node alone that is this one, whose disk is the majority. It has no log of a group's, so
/// its indices count the messages that the queue has taken since the node was started.
fn status(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    if queue.kind != QueueKind::Quorum {
        let body = json!({"status": "failed", "reason": CLASSIC});
        return Ok(Reply::with_status(503, &body));
    }
    let here = call.api.broker.queues().here(queue.id);
    let taken = here.map_or(0, |queue| {
        let status = queue.status();
        status.handed + status.ready
    });
    Ok(Reply::json(&json!([{
        "Node Name": call.view.node_name(queue.home),
        "Raft State": "leader",
        "Membership": "voter",
        "Last Log Index": taken,
        "Last Written": taken,
        "Last Applied": taken,
        "Commit Index": taken,
        "Snapshot Index": -1,
        "Term": 1,
        "Machine Version": MACHINE_VERSION,
    }])))
}

/// Adds what RabbitMQ tells of a quorum queue beside what it tells of every queue.
pub fn describe(call: &Call<'_>, queue: &QueueView, map: &mut Map<String, Value>) {
    if queue.kind != QueueKind::Quorum {
        return;
    }
    let node = call.view.node_name(queue.home);
    let handle = call.api.broker.queues().get(queue.id);
    let is_online = handle.is_some_and(|handle| !handle.is_without_owner());
    let online: Vec<&str> = is_online.then_some(node).into_iter().collect();
    map.insert("leader".into(), node.into());
    map.insert("members".into(), json!([node]));
    map.insert("online".into(), json!(online));
    map.insert("open_files".into(), json!({node: 0}));
    if let Some(vhost) = call.view.vhost(&queue.vhost) {
        let settings = vhost.settings(queue);
        let limit = match settings.delivery_limit {
            Some(DeliveryLimit::Returns(limit)) => limit.into(),
            Some(DeliveryLimit::Unlimited) | None => "unlimited".into(),
        };
        map.insert("delivery_limit".into(), limit);
        map.insert("delayed_retry".into(), delayed_retry(&settings).into());
    }
}

fn delayed_retry(settings: &QueueSettings) -> String {
    let Some(retry) = settings.delayed_retry else {
        return "disabled".into();
    };
    let of = match retry.of {
        Returned::All => "all",
        Returned::Failed => "failed",
        Returned::GivenBack => "returned",
    };
    format!("{of} (min: {}ms, max: {}ms)", retry.least_ms, retry.most_ms)
}

/// A quorum queue of a node alone is on that node already.
fn add(call: &Call<'_>) -> Result<Reply, Refusal> {
    need_this_node(call)?;
    Ok(match find(call) {
        Ok(queue) if queue.kind == QueueKind::Quorum => Reply::empty(204),
        Ok(_) => unavailable(CLASSIC),
        Err(_) => unavailable("not_found"),
    })
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    need_this_node(call)?;
    Ok(unavailable(match queue.kind {
        QueueKind::Quorum => "last_node",
        _ => CLASSIC,
    }))
}

/// No queue has members elsewhere, so that none gets one here.
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
