//! The members of quorum queues: how they stand, and which nodes have them. Other queues say in RabbitMQ's words that they have
//! none.

use crate::access::Right;
use crate::call::Call;
use crate::copies::quorum;
use crate::others::{self, Question};
use crate::queues::{find, from_its_node};
use crate::refusal::{Refusal, need};
use crate::reply::Reply;
use crate::route::Route;
use broker::{CopyPhase, CopyProgress, NodeId, QueueKind, QueueView};
use regex::Regex;
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
        path: "/leveret/queues/:vhost/:name/leader",
        verbs: &[("POST", Right::Administrator, lead)],
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

pub const CLASSIC: &str = "classic_queue_not_supported";

/// What RabbitMQ's state machine of quorum queues is called by since 4.3.
const MACHINE_VERSION: u32 = 8;

fn status(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    if queue.kind != QueueKind::Quorum {
        let body = json!({"status": "failed", "reason": CLASSIC});
        return Ok(Reply::with_status(503, &body));
    }
    if !queue.is_shared() {
        return alone(call, queue);
    }
    let mut rows: Vec<Value> = own_status(call, queue).into_iter().collect();
    if !call.for_node {
        for (_, told) in others::ask_same(call, others::running(call), &Question::again(call)) {
            rows.extend(told.as_array().into_iter().flatten().cloned());
        }
        rows.extend(silent(call, queue, &rows));
    }
    Ok(Reply::json(&Value::Array(rows)))
}

/// What the one member says of a queue that one node has, whose disk is the majority. It has no log of a group's, so its
/// indices count the messages that the queue has taken since the node was started.
fn alone(call: &Call<'_>, queue: &QueueView) -> Result<Reply, Refusal> {
    if let Some((_, answer)) = from_its_node(call, queue) {
        return Ok(answer.into());
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

/// This node's copy, in RabbitMQ's words.
fn own_status(call: &Call<'_>, queue: &QueueView) -> Option<Value> {
    let standing = call.api.broker.shared_standing(queue)?;
    let own = standing.own?;
    let state = match (own.leads, standing.leader) {
        (true, _) => "leader",
        (false, Some(_)) => "follower",
        (false, None) => "candidate",
    };
    let mut row = json!({
        "Node Name": call.api.options.node,
        "Raft State": state,
        "Membership": if own.votes { "voter" } else { "promotable" },
        "Last Log Index": own.last,
        "Last Written": own.last,
        "Last Applied": own.committed,
        "Commit Index": own.committed,
        "Snapshot Index": own.base,
        "Term": own.term,
        "Machine Version": MACHINE_VERSION,
    });
    if let Some(progress) = call.api.broker.copy_progress(queue.id) {
        row["transfer"] = transfer(&progress);
    }
    Some(row)
}

/// How far a copy is that is being made of another one's; ours.
fn transfer(progress: &CopyProgress) -> Value {
    let phase = match progress.phase {
        CopyPhase::Waits => "waiting",
        CopyPhase::Contents => "contents",
        CopyPhase::Copies => "copying",
        CopyPhase::Bodies => "messages",
        CopyPhase::Lacking => "repair",
    };
    let mut told = json!({
        "phase": phase,
        "percent": progress.percent(),
        "bytes": progress.bytes,
    });
    match progress.phase {
        CopyPhase::Waits | CopyPhase::Copies => {}
        CopyPhase::Contents => told["bytes_left"] = progress.left.into(),
        CopyPhase::Bodies | CopyPhase::Lacking => {
            told["messages"] = (progress.total - progress.left).into();
            told["messages_left"] = progress.left.into();
        }
    }
    told
}

/// Members whose nodes say nothing.
fn silent(call: &Call<'_>, queue: &QueueView, told: &[Value]) -> Vec<Value> {
    let has_told = |name: &str| told.iter().any(|row| row["Node Name"] == *name);
    let silent = queue
        .members()
        .map(|it| (it.node, call.view.node_name(it.node)))
        .filter(|(_, name)| !has_told(name));
    silent
        .map(|(node, name)| {
            let state = match runs(call, node) {
                true => "noproc",
                false => "noconnection",
            };
            json!({"Node Name": name, "Raft State": state, "Membership": ""})
        })
        .collect()
}

fn add(call: &Call<'_>) -> Result<Reply, Refusal> {
    let node = named(call)?;
    match find(call) {
        Ok(queue) if queue.kind != QueueKind::Quorum => Ok(unavailable(CLASSIC)),
        Ok(_) if !runs(call, node) => Ok(unavailable("node_not_running")),
        Ok(queue) => change(call, queue, node, true),
        Err(_) => Ok(unavailable("not_found")),
    }
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    let node = named(call)?;
    match queue.kind {
        QueueKind::Quorum if queue.is_shared() && queue.members().count() > 1 => {
            change(call, queue, node, false)?;
            Ok(Reply::empty(202))
        }
        QueueKind::Quorum => Ok(unavailable("last_node")),
        _ => Ok(unavailable(CLASSIC)),
    }
}

/// Has the node that the body names lead the queue. Whoever leads it now hands it over.
fn lead(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    let node = named(call)?;
    if !queue.is_shared() || queue.member(node).is_none() {
        return Ok(unavailable("unknown_member"));
    }
    // As in RabbitMQ whoever leads goes on: a node in maintenance would hand it over again.
    if call.view.node(node).is_some_and(|known| known.is_drained) {
        return Ok(Reply::empty(204));
    }
    let leader = call.view.node_name(call.api.broker.place_of(queue));
    let question = Question {
        verb: "POST",
        body: Value::Object(call.json()?),
        ..Question::again(call)
    };
    match others::said_by(call, leader, question)? {
        Some(answer) => Ok(answer.into()),
        None => {
            call.api.broker.hand_over_queue(queue, node)?;
            Ok(Reply::empty(204))
        }
    }
}

/// Every queue that the patterns match and whose members could be more by one gets one on this node.
fn grow(call: &Call<'_>) -> Result<Reply, Refusal> {
    let node = member_of(call, call.part("node")).ok_or(Refusal::NotFound)?;
    let body = call.json()?;
    need(&body, &["vhost_pattern", "queue_pattern", "strategy"])?;
    let only_even = match body["strategy"].as_str() {
        Some("all") => false,
        Some("even") => true,
        _ => return Err(Refusal::bad_request("Invalid strategy value")),
    };
    let [vhosts, names] = ["vhost_pattern", "queue_pattern"].map(|name| pattern(&body, name));
    let (vhosts, names) = (vhosts?, names?);
    for queue in quorum(call) {
        let fits = vhosts.is_match(&queue.vhost) && names.is_match(&queue.name) && runs(call, node);
        let grows = !only_even || queue.members().count().is_multiple_of(2);
        if fits && grows && queue.member(node).is_none() {
            change(call, queue, node, true)?;
        }
    }
    Ok(Reply::empty(204))
}

/// Every queue goes on without its member on this node, if it has others.
fn shrink(call: &Call<'_>) -> Result<Reply, Refusal> {
    let node = member_of(call, call.part("node")).ok_or(Refusal::NotFound)?;
    for queue in quorum(call).filter(|queue| queue.is_shared()) {
        if queue.member(node).is_some() && queue.members().count() > 1 {
            change(call, queue, node, false)?;
        }
    }
    Ok(Reply::empty(202))
}

/// A node is to have a copy of a queue, or none any more.
///
/// # Errors
/// That cannot be, or nobody can decide it now.
pub fn change(call: &Call<'_>, queue: &QueueView, node: NodeId, is_member: bool) -> Result<Reply, Refusal> {
    let by = call.api.broker.administrator(&call.user.name);
    by.change_member(queue, node, is_member)?;
    Ok(Reply::empty(204))
}

/// Whether a node can get a copy now: one that does not run would count for a majority, and not be there.
pub fn runs(call: &Call<'_>, node: NodeId) -> bool {
    let name = call.view.node_name(node);
    node == call.api.broker.own_node() || others::running(call).iter().any(|it| it == name)
}

/// A pattern that a body names; without one everything matches.
///
/// # Errors
/// It is none.
pub fn pattern(body: &Map<String, Value>, name: &str) -> Result<Regex, Refusal> {
    let source = body.get(name).and_then(Value::as_str).unwrap_or_default();
    Regex::new(source).map_err(|error| Refusal::bad_request(error.to_string()))
}

/// The node of this name, if it is a member of the cluster.
fn member_of(call: &Call<'_>, name: &str) -> Option<NodeId> {
    let mut nodes = call.view.nodes();
    let found = nodes.find(|(_, known)| !known.is_forgotten() && *known.name == *name);
    found.map(|(node, _)| *node)
}

/// The node that the body names.
///
/// # Errors
/// It names none, or one that is no member of the cluster.
pub fn named(call: &Call<'_>) -> Result<NodeId, Refusal> {
    let body = call.json()?;
    need(&body, &["node"])?;
    let node = body["node"].as_str().and_then(|name| member_of(call, name));
    node.ok_or_else(|| Refusal::bad_request("Node is not a cluster member"))
}

/// 503: it cannot be done now.
pub fn unavailable(reason: &str) -> Reply {
    let body = json!({"error": "service_unavailable", "reason": reason});
    Reply::with_status(503, &body)
}
