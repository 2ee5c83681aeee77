//! The copies that nodes have of queues, as all lists and checks tell of them.

use crate::call::Call;
use broker::{NodeId, QueueKind, QueueSettings, QueueView};
use model::{DeliveryLimit, Returned};
use serde_json::{Map, Value};
use std::sync::Arc;

/// All quorum queues.
pub fn quorum<'c>(call: &'c Call<'_>) -> impl Iterator<Item = &'c Arc<QueueView>> {
    all(call).filter(|queue| queue.kind == QueueKind::Quorum)
}

fn all<'c>(call: &'c Call<'_>) -> impl Iterator<Item = &'c Arc<QueueView>> {
    call.view.vhosts().flat_map(|vhost| vhost.queues())
}

/// Adds what RabbitMQ tells of a queue that several nodes can have beside what it tells of every queue.
pub fn describe(call: &Call<'_>, queue: &QueueView, map: &mut Map<String, Value>) {
    match queue.kind {
        QueueKind::Quorum => describe_quorum(call, queue, map),
        QueueKind::Stream => describe_stream(call, queue, map),
        _ if queue.is_shared() => describe_mirrors(call, queue, map),
        // It is mirrored, if only by itself.
        _ if is_to_be_mirrored(call, queue) => {
            for field in MIRRORS {
                map.insert(field.into(), Value::Array(Vec::new()));
            }
        }
        _ => {}
    }
}

/// Mirrors that run, those of them that have everything, and those that would have it once they run.
const MIRRORS: [&str; 3] = ["slave_nodes", "synchronised_slave_nodes", "recoverable_slaves"];

fn is_to_be_mirrored(call: &Call<'_>, queue: &QueueView) -> bool {
    let policies = call.view.vhost(&queue.vhost).map(|vhost| vhost.policies());
    let policy = policies.filter(|_| queue.is_mirrorable());
    policy.is_some_and(|policies| {
        let definition = policies.of_queue(queue).definition();
        definition.is_some_and(|keys| keys.contains("ha-mode"))
    })
}

/// As RabbitMQ 3 told of mirrors. Who has everything has a vote.
fn describe_mirrors(call: &Call<'_>, queue: &QueueView, map: &mut Map<String, Value>) {
    let Some(standing) = call.api.broker.shared_standing(queue) else {
        return;
    };
    let leads = |node: NodeId| standing.leader == Some(node);
    let votes = |node: NodeId| standing.voters.iter().any(|(it, _)| *it == node);
    let mirrors = || standing.members.iter().filter(|(node, _)| !leads(*node));
    let names = |of: &dyn Fn(&(NodeId, bool)) -> bool| -> Value {
        let named = mirrors().filter(|it| of(it));
        named.map(|(node, _)| call.view.node_name(*node)).collect()
    };
    let told = [
        names(&|(_, runs)| *runs),
        names(&|(node, runs)| *runs && votes(*node)),
        names(&|(node, _)| votes(*node)),
    ];
    for (field, nodes) in MIRRORS.into_iter().zip(told) {
        map.insert(field.into(), nodes);
    }
}

/// Adds what RabbitMQ tells of a stream.
fn describe_stream(call: &Call<'_>, queue: &QueueView, map: &mut Map<String, Value>) {
    let (leader, members) = match call.api.broker.shared_standing(queue) {
        Some(standing) => (standing.leader, standing.members),
        None => {
            let is_online = home_is_online(call, queue);
            (is_online.then_some(queue.home), vec![(queue.home, is_online)])
        }
    };
    put_members(call, leader, &members, map);
}

/// True if somebody who has the messages of a queue of one node can be reached.
fn home_is_online(call: &Call<'_>, queue: &QueueView) -> bool {
    let handle = call.api.broker.queues().get(queue.id);
    handle.is_some_and(|handle| !handle.is_without_owner())
}

/// Who leads, who has copies, and which of them run.
fn put_members(
    call: &Call<'_>,
    leader: Option<NodeId>,
    members: &[(NodeId, bool)],
    map: &mut Map<String, Value>,
) {
    let name = |node: NodeId| call.view.node_name(node);
    let online = members.iter().filter(|(_, is_online)| *is_online);
    map.insert("leader".into(), leader.map_or("", name).into());
    map.insert(
        "members".into(),
        members.iter().map(|(node, _)| name(*node)).collect(),
    );
    map.insert("online".into(), online.map(|(node, _)| name(*node)).collect());
}

/// Adds what RabbitMQ tells of a quorum queue.
fn describe_quorum(call: &Call<'_>, queue: &QueueView, map: &mut Map<String, Value>) {
    let name = |node: NodeId| call.view.node_name(node);
    let (leader, members) = match call.api.broker.shared_standing(queue) {
        Some(standing) => (standing.leader, standing.members),
        None => {
            let is_online = home_is_online(call, queue);
            (Some(queue.home), vec![(queue.home, is_online)])
        }
    };
    put_members(call, leader, &members, map);
    let files = members.iter().map(|(node, _)| (name(*node).to_owned(), 0.into()));
    map.insert("open_files".into(), Value::Object(files.collect()));
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

/// Whether too few of the nodes can be reached that have a queue.
pub fn lacks_majority(call: &Call<'_>, queue: &QueueView) -> bool {
    let standing = call.api.broker.shared_standing(queue);
    standing.is_some_and(|standing| !is_majority(&standing.voters, None))
}

/// The queues that would have no majority without this node, by the nodes that can be reached. As in RabbitMQ those that this
/// node has alone are among them.
pub fn lost_without<'c>(call: &'c Call<'_>, node: NodeId) -> Vec<&'c Arc<QueueView>> {
    let lost = all(call).filter(|queue| match call.api.broker.shared_standing(queue) {
        Some(standing) => {
            let voters = standing.voters;
            voters.iter().any(|(it, _)| *it == node) && !is_majority(&voters, Some(node))
        }
        // A stream of an earlier version is none that several nodes could have.
        None => (queue.is_replicated() || queue.kind == QueueKind::Stream) && queue.home == node,
    });
    lost.collect()
}

/// The queues that are mirrored by policy and that this node has alone.
pub fn unmirrored<'c>(call: &'c Call<'_>, node: NodeId) -> impl Iterator<Item = &'c Arc<QueueView>> {
    let alone = all(call).filter(move |queue| queue.home == node && !queue.is_shared());
    alone.filter(|queue| is_to_be_mirrored(call, queue))
}

fn is_majority(voters: &[(NodeId, bool)], without: Option<NodeId>) -> bool {
    let there = voters
        .iter()
        .filter(|(it, is_online)| *is_online && Some(*it) != without);
    there.count() * 2 > voters.len()
}
