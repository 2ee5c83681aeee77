//! This node's copies of queues that several nodes have: opened with what the log has of them, in one pass over it.

use super::replay::Queues;
use crate::groups::handover::InCharge;
use crate::groups::{Found, NodeGroups, NotOpened, handover, last_of, read_together};
use crate::queues::{JournalOf, group_of, groups_of, queue_of, queue_type};
use crate::topology::{StartingReplica, Topology};
use catalog::Member;
use cluster::GroupId;
use model::{Mutant, QueueId};
use std::collections::{BTreeMap, BTreeSet};
use storage::JournalId;

/// What the log has of groups other than the catalog's, by their numbers, and of which queues it can't be read whether they were
/// handed over to one.
#[derive(Default)]
pub(super) struct Copies {
    pub found: BTreeMap<u64, Found>,
    unclear: BTreeMap<QueueId, NotOpened>,
    /// Queues that are this node's own, as the catalog says, and that their groups have not handed back.
    returning: BTreeSet<QueueId>,
}

impl Copies {
    /// What the log has.
    pub fn of(found: BTreeMap<u64, Found>) -> Self {
        Self {
            found,
            ..Self::default()
        }
    }

    /// True if a queue that began on this node is its own still: other nodes are to have it, too, and its journal was not handed
    /// over before the last life ended. Of the group nothing counts then. It is so even if this node is to have another copy by
    /// now, or none: first the others have this one.
    pub fn has_own(&mut self, topology: &Topology, known: &catalog::Queue, replayed: &Queues) -> bool {
        if Mutant::GrowthForgetsOwn.is_on() {
            return false;
        }
        let me = known.last_member(topology.own_node());
        // What was founded anew has been a group's, also if it began here.
        let began_here = |me: &Member| !known.epoch.is_refounded && known.founders[..] == [me.node];
        let Some((made, groups)) = queue_type(known.kind).zip(topology.groups()) else {
            return false;
        };
        let Some(me) = me.filter(began_here) else {
            return false;
        };
        let id = JournalOf::Queue(made, known.id).id();
        match self.in_charge(groups, id, known, replayed) {
            Some(InCharge::Neither) if me.is_gone || me.life > 0 => false,
            Some(InCharge::Own(_) | InCharge::Neither) => {
                self.forget(groups, group_of(known));
                true
            }
            Some(InCharge::Group) | None => false,
        }
    }

    /// True if a queue that became this node's own again, as the catalog says, has not been handed back before the last life
    /// ended, or it is not clear. Others may have become members since: first it is handed back.
    pub fn returns(&mut self, topology: &Topology, known: &catalog::Queue, replayed: &Queues) -> bool {
        let never_was = known.epoch.number == 0 || Mutant::RetreatForgetsGroup.is_on();
        if never_was || known.epoch.is_refounded || !topology.is_here(known) {
            return false;
        }
        let Some((made, groups)) = queue_type(known.kind).zip(topology.groups()) else {
            return false;
        };
        let (id, before) = (JournalOf::Queue(made, known.id).id(), known.before());
        let now = group_of(known);
        let handed_over = replayed.get(&id).and_then(|it| it.whose().handed_over());
        if handed_over == Some(now) || self.found.get(&now.0).is_some_and(Found::has_begun) {
            return false;
        }
        let returns = match self.in_charge(groups, id, &before, replayed) {
            Some(InCharge::Own(_) | InCharge::Neither) => {
                self.forget(groups, group_of(&before));
                false
            }
            Some(InCharge::Group) | None => true,
        };
        if returns {
            self.returning.insert(known.id);
        }
        returns
    }

    fn in_charge(
        &mut self,
        groups: &NodeGroups,
        id: JournalId,
        known: &catalog::Queue,
        replayed: &Queues,
    ) -> Option<InCharge> {
        let group = group_of(known);
        let whose = replayed.get(&id).map(|it| it.whose()).unwrap_or_default();
        let log = &groups.node().log;
        let in_charge = whose.in_charge(id, group, self.found.get(&group.0), log);
        if matches!(in_charge, Ok(InCharge::Group)) && whose.handed_over() == Some(group) {
            // A power cut has taken the end of the batch that handed it over.
            log.forget(id);
        }
        in_charge.map_err(|why| self.unclear.insert(known.id, why)).ok()
    }

    /// Of this group nothing counts.
    fn forget(&mut self, groups: &NodeGroups, group: GroupId) {
        if self.found.remove(&group.0).is_some() {
            handover::forget(groups, group, None);
        }
    }
}

/// Starts the copies that this node is to have of queues that exist, and has the others forgotten.
pub(super) fn restore(topology: &Topology, copies: Copies) {
    let Copies {
        mut found,
        mut unclear,
        returning,
    } = copies;
    let view = topology.view();
    let all = view.vhosts().flat_map(|vhost| vhost.all_queues());
    let (mut queues, mut starting) = (Vec::new(), Vec::<StartingReplica>::new());
    let returns = |known: &catalog::Queue| returning.contains(&known.id);
    let is_of_group = |known: &catalog::Queue| known.is_shared() || returns(known);
    for known in all.filter(|known| is_of_group(known) && !topology.has_handle(known.id)) {
        let before = returns(known).then(|| known.before());
        let is_member_of = before.as_ref().unwrap_or(known);
        let group = group_of(is_member_of);
        let of_group = match known.epoch.is_refounded {
            true => last_generation(topology, known, &mut found),
            false => Ok(found.remove(&group.0)),
        };
        let settings = view.settings(known);
        let begun = match (unclear.remove(&known.id), of_group) {
            (Some(why), _) | (None, Err(why)) => Some((0, Err(why))),
            (None, Ok(of_group)) => {
                let had_any = of_group.is_some();
                let begun =
                    topology.begin_replica(is_member_of, settings.clone(), of_group.unwrap_or_default());
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
