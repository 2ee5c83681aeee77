//! This node's copies of queues that several nodes have: opened with what the log has of them, in one pass over it.

use crate::groups::{Found, handover, read_together};
use crate::queues::{group_of, queue_of};
use crate::topology::{StartingReplica, Topology};
use cluster::GroupId;
use std::collections::BTreeMap;

/// Starts the copies that this node is to have of queues that exist, and has the others forgotten. `found` is what the log has
/// of groups other than the catalog's, by their numbers.
pub(super) fn restore(topology: &Topology, mut found: BTreeMap<u64, Found>) {
    let view = topology.view();
    let all = view.vhosts().flat_map(|vhost| vhost.all_queues());
    let (mut queues, mut starting) = (Vec::new(), Vec::<Result<StartingReplica, _>>::new());
    for known in all.filter(|known| known.is_shared()) {
        let group = group_of(known.id);
        let of_group = found.remove(&group.0);
        let (had_any, settings) = (of_group.is_some(), view.settings(known));
        let begun = topology.begin_replica(known, settings.clone(), of_group.unwrap_or_default());
        if had_any && begun.is_none() {
            forget(topology, group.0);
        }
        queues.push((known, settings, begun.is_some()));
        starting.extend(begun);
    }
    if let Some(groups) = topology.groups() {
        read_together(&groups.node().log, &mut starting);
    }
    let mut starting = starting.into_iter();
    for (known, settings, has_copy) in queues {
        let begun = has_copy.then(|| starting.next()).flatten();
        topology.start_shared(known, &settings, begun);
    }
    found.into_keys().for_each(|group| forget(topology, group));
}

/// The log has something of a group that this node has no member of. What exists was asked of the others just now, so the queue
/// was deleted, or goes on without this node.
fn forget(topology: &Topology, group: u64) {
    match queue_of(GroupId(group)).zip(topology.groups()) {
        Some((_, groups)) => {
            tracing::info!(
                area = "groups",
                "the log still had something of a queue that this node has no copy of any more; it is released"
            );
            handover::forget(groups, GroupId(group), None);
        }
        None => tracing::error!(
            area = "groups",
            "the log has something of group {group}, which nothing is known of; it is kept"
        ),
    }
}
