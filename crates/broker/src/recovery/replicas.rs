//! This node's copies of queues that several nodes have: opened with what the log has of them, in one pass over it.

use super::replay::Queues;
use crate::groups::handover::InCharge;
use crate::groups::{Found, NotOpened, handover, last_of, read_together};
use crate::queues::{JournalOf, group_of, groups_of, queue_of, queue_type};
use crate::topology::{StartingReplica, Topology};
use catalog::Member;
use cluster::GroupId;
use model::QueueId;
use std::collections::BTreeMap;

/// What the log has of groups other than the catalog's, by their numbers, and of which queues it can't be read whether they were
/// handed over to one.
#[derive(Default)]
pub(super) struct Copies {
    pub found: BTreeMap<u64, Found>,
    unclear: BTreeMap<QueueId, NotOpened>,
}

impl Copies {
    /// What the log has.
    pub fn of(found: BTreeMap<u64, Found>) -> Self {
        Self {
            found,
            unclear: BTreeMap::new(),
        }
    }

    /// True if a queue that began on this node is its own still: other nodes are to have it, too, and its journal was not handed
    /// over before the last life ended. Of the group nothing counts then. It is so even if this node is to have another copy by
    /// now, or none: first the others have this one.
    pub fn has_own(&mut self, topology: &Topology, known: &catalog::Queue, replayed: &Queues) -> bool {
        let me = known.last_member(topology.own_node());
        // What was founded anew has been a group's, also if it began here.
        let began_here = |me: &Member| known.generation == 0 && known.founders[..] == [me.node];
        let Some((made, groups)) = queue_type(known.kind).zip(topology.groups()) else {
            return false;
        };
        let Some(me) = me.filter(began_here) else {
            return false;
        };
        let (id, group) = (JournalOf::Queue(made, known.id).id(), group_of(known));
        let whose = replayed.get(&id).map(|it| it.whose()).unwrap_or_default();
        match whose.in_charge(id, group, self.found.get(&group.0), &groups.node().log) {
            Ok(InCharge::Neither) if me.is_gone || me.life > 0 => false,
            Ok(InCharge::Own(_) | InCharge::Neither) => {
                if self.found.remove(&group.0).is_some() {
                    handover::forget(groups, group, None);
                }
                true
            }
            Ok(InCharge::Group) => false,
            Err(why) => {
                self.unclear.insert(known.id, why);
                false
            }
        }
    }
}

/// Starts the copies that this node is to have of queues that exist, and has the others forgotten.
pub(super) fn restore(topology: &Topology, copies: Copies) {
    let Copies {
        mut found,
        mut unclear,
    } = copies;
    let view = topology.view();
    let all = view.vhosts().flat_map(|vhost| vhost.all_queues());
    let (mut queues, mut starting) = (Vec::new(), Vec::<StartingReplica>::new());
    for known in all.filter(|known| known.is_shared() && !topology.has_handle(known.id)) {
        let group = group_of(known);
        let of_group = last_generation(topology, known, &mut found);
        let settings = view.settings(known);
        let begun = match (unclear.remove(&known.id), of_group) {
            (Some(why), _) | (None, Err(why)) => Some((0, Err(why))),
            (None, Ok(of_group)) => {
                let had_any = of_group.is_some();
                let begun = topology.begin_replica(known, settings.clone(), of_group.unwrap_or_default());
                if had_any && begun.is_none() {
                    forget(topology, group.0);
                }
                begun
            }
        };
        let (life, begun) = begun.unzip();
        queues.push((known, settings, life));
        starting.extend(begun);
    }
    if let Some(groups) = topology.groups() {
        read_together(&groups.node().log, &mut starting);
    }
    let mut starting = starting.into_iter();
    for (known, settings, life) in queues {
        let begun = life.and_then(|life| Some((life, starting.next()?)));
        topology.start_shared(known, &settings, begun);
    }
    found.into_keys().for_each(|group| forget(topology, group));
}

/// What counts of what the log has of the groups that a queue is and was: what it has of the present one. If the queue goes on
/// with what this node has of an earlier one, and a crash came before that was written down whole, it is written down now. All
/// others are forgotten.
///
/// # Errors
/// The queue goes on with this node's copy, which is damaged: that is kept in the log as it is.
fn last_generation(
    topology: &Topology,
    known: &catalog::Queue,
    found: &mut BTreeMap<u64, Found>,
) -> Result<Option<Found>, NotOpened> {
    let of_queue = groups_of(known.id);
    let mut of_all = found.split_off(&of_queue.start);
    found.extend(of_all.split_off(&of_queue.end));
    let has_it = |me: &Member| me.life == 0 && !(me.is_gone && of_all.is_empty());
    let is_last = known
        .last_member(topology.own_node())
        .is_some_and(|me| has_it(&me));
    let founder = topology
        .sole_founder(known)
        .filter(|_| is_last)
        .zip(topology.groups());
    let counts = match founder {
        Some((identity, groups)) => {
            let (found, copy) = last_of(&groups.node().log, &identity, &mut of_all)?;
            if let Some(copy) = copy {
                topology.say_refounded(known, &copy);
            }
            Some(found)
        }
        None => of_all.remove(&group_of(known).0),
    };
    of_all.into_keys().for_each(|group| forget(topology, group));
    Ok(counts)
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
