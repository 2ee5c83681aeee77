//! Classic queues that a policy mirrors: whoever decides what becomes of one sees to it that those nodes have it that are to.
//! With the first other one it grows ([`super::growth`]), with the last one gone it is its node's own again
//! ([`super::retreat`]). See decision note 61.

use super::Topology;
use super::replicas::member_id;
use crate::queues::{Handle, Replica, group_of};
use catalog::{NodeId, Queue, QueueKind, Request, View};
use model::QueueId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// After so many ticks, of 100 ms each, the catalog is asked again, if nothing has changed.
const ASKS_AGAIN_AFTER: u32 = 20;

/// A group that is over may be led in so many terms more before it is handed back, one for each start of its node. What nodes
/// hold counts in these, and would not in one that they take for a start of the queue's own.
const LED_AGAIN: u64 = 1_000_000;

/// What this node is about.
#[derive(Debug, Default)]
pub(super) struct Mirroring {
    /// The nodes that were there, and could be reached, when it looked last.
    nodes: Mutex<BTreeSet<(NodeId, bool)>>,
    /// What was asked of the catalog, and so many ticks ago.
    asked: Mutex<BTreeMap<QueueId, (Request, u32)>>,
}

impl Mirroring {
    fn asked(&self) -> MutexGuard<'_, BTreeMap<QueueId, (Request, u32)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is to be asked now.
    fn asks(&self, id: QueueId, request: &Request) -> bool {
        let mut asked = self.asked();
        let ticks = match asked.get(&id) {
            Some((before, ticks)) if before == request => *ticks,
            _ => ASKS_AGAIN_AFTER,
        };
        let is_due = ticks >= ASKS_AGAIN_AFTER;
        asked.insert(id, (request.clone(), if is_due { 0 } else { ticks + 1 }));
        is_due
    }

    /// Whether other nodes are there, or can be reached, than when this was asked last.
    fn notes(&self, nodes: BTreeSet<(NodeId, bool)>) -> bool {
        let mut known = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != nodes;
        *known = nodes;
        is_new
    }
}

impl Topology {
    /// A tick of the clock: where nodes have come or gone, all queues that a policy mirrors are looked at.
    pub(super) fn look_for_mirrors(&self) {
        if self.groups().is_none() {
            return;
        }
        let view = self.view();
        let there = view.nodes().filter(|(_, known)| known.joined().is_some());
        let there = there.map(|(node, _)| (*node, self.reaches(*node))).collect();
        if !self.mirroring.notes(there) {
            return;
        }
        let all = view.vhosts().flat_map(|vhost| vhost.queues());
        for queue in all.filter(|queue| self.is_mirrored(&view, queue)) {
            self.is_unsettled(queue.id);
        }
    }

    /// Whether a policy says that others are to have it, too, or others have it; or it was converted, and is to have members.
    pub(super) fn is_mirrored(&self, view: &View, known: &Queue) -> bool {
        let has_mirrors = || known.is_shared() || self.mirrors(view, known).is_some_and(|it| it.len() > 1);
        known.awaits_members() || known.kind == QueueKind::Classic && has_mirrors()
    }

    fn mirrors(&self, view: &View, known: &Queue) -> Option<Vec<NodeId>> {
        // Who votes had everything that was confirmed by then.
        let votes = |node| {
            let member = known.member(node).and_then(member_id);
            let status = self.groups().and_then(|groups| groups.status(group_of(known)));
            let voters = status.map(|status| status.members.voters);
            member.is_some_and(|member| voters.is_some_and(|voters| voters.contains(&member)))
        };
        view.mirrors(known, self.own_node(), |node| self.reaches(node), votes)
    }

    /// What this node decides of, it gets the mirrors that it is to have. True if nothing is left to do.
    pub(super) fn has_mirrors(&self, id: QueueId) -> bool {
        let view = self.view();
        let Some((known, is_shared)) = self.mirrored_here(&view, id) else {
            return self.has_said_grown(&view, id);
        };
        let Some(mut wanted) = self.mirrors(&view, &known) else {
            return true;
        };
        let mut now: Vec<NodeId> = match is_shared {
            true => known.members().map(|member| member.node).collect(),
            false => vec![known.home],
        };
        now.sort_unstable();
        // The node that has it leaves once those have it who are to: until then, what is on record says who has everything.
        let own = self.own_node();
        let leaves = is_shared && wanted.iter().all(|node| now.contains(node)) && self.is_whole(&known);
        let stays = !wanted.contains(&own) && now.contains(&own) && !leaves;
        wanted.extend(stays.then_some(own));
        wanted.sort_unstable();
        // The journal of a transient one is for a group only: it stays a group of one.
        let goes_back = is_shared && known.is_durable() && wanted == [own];
        let request = match (wanted == now && !known.awaits_members(), goes_back) {
            (false, _) => Request::Mirror {
                id,
                nodes: wanted,
                epoch: known.epoch.number,
            },
            (true, true) => match self.alone_in(&known) {
                Some(term) => Request::Unmirror {
                    id,
                    node: self.own_node(),
                    behind: term + LED_AGAIN,
                },
                None => return false,
            },
            (true, false) => {
                self.mirroring.asked().remove(&id);
                // It is looked at again until this node can leave.
                return !stays;
            }
        };
        self.ask_for_members(&known, request, &view);
        false
    }

    /// Has the catalog know that the queue is a group's by now, if this node leads that and it is not on record: from then on the
    /// node that it began on may leave. True if nothing is left to do.
    fn has_said_grown(&self, view: &View, id: QueueId) -> bool {
        let grown = self.registry.get(id).and_then(|handle| {
            let known = view.queue(handle.vhost(), handle.name())?;
            let is_alone = known.id == id && known.kind.is_replicated() && known.only_copy().is_some();
            let copy = handle.copy().filter(|queue| is_alone && queue.is_led_here())?;
            let group = copy.replica().map(Replica::group);
            (group == Some(group_of(known))).then(|| known.clone())
        });
        let Some(known) = grown else {
            self.mirroring.asked().remove(&id);
            return true;
        };
        let epoch = known.epoch.number;
        self.ask_for_members(&known, Request::SayGrown { id, epoch }, view);
        false
    }

    /// Without those who decide, each would be asked for again and again.
    fn ask_for_members(&self, known: &Queue, request: Request, view: &View) {
        let id = known.id;
        if self.is_stale() || !self.mirroring.asks(id, &request) {
            return;
        }
        tracing::info!(area = "groups", "{}", said(known, &request, view));
        self.decide(None, request).then(move |answered| {
            if let Err(refusal) = answered {
                tracing::warn!(area = "groups", "members of queue {id}: {refusal}");
            }
        });
    }

    /// The queue, if this node decides of it and mirrors are its business; and whether several nodes have it.
    fn mirrored_here(&self, view: &View, id: QueueId) -> Option<(Arc<Queue>, bool)> {
        self.groups()?;
        let handle = self.registry.get(id)?;
        let known = view.queue(handle.vhost(), handle.name())?;
        let is_own_business = known.is_mirrorable() || known.awaits_members();
        let known = Some(known).filter(|known| known.id == id && is_own_business)?;
        let decides = match &handle {
            _ if self.retreats(id) => false,
            Handle::Here(_) => true,
            Handle::Shared(shared) => {
                let copy = shared.replica.as_ref().filter(|queue| queue.is_led_here());
                // One that is not handed back yet is of the group before.
                let group = copy.and_then(|queue| queue.replica()).map(Replica::group);
                copy.is_some() && group.is_none_or(|group| group == group_of(known))
            }
            Handle::Elsewhere(..) | Handle::WithoutOwner(_) => false,
        };
        decides.then(|| (known.clone(), known.is_shared()))
    }

    /// Whether this node decides of the queue, and nothing is left to do for it to be where its kind and its policy want it.
    pub(crate) fn is_in_place(&self, known: &Queue) -> bool {
        let Some(handle) = self.registry.get(known.id) else {
            return false;
        };
        let is_led = handle.copy().is_some_and(|queue| {
            let group = queue.replica().map(Replica::group);
            let is_of_group = group == known.is_shared().then(|| group_of(known));
            queue.is_led_here() && queue.kind() == known.kind && is_of_group
        });
        let is_moving = self.is_growing_up(known.id) || self.retreats(known.id) || known.awaits_members();
        is_led && !is_moving && self.is_whole(known) && self.is_where_policies_want(known)
    }

    fn is_where_policies_want(&self, known: &Queue) -> bool {
        let wanted = self
            .mirrors(&self.view(), known)
            .filter(|_| self.groups().is_some());
        wanted.is_none_or(|wanted| {
            let is_one = wanted == [self.own_node()];
            let has = |node: &NodeId| known.places().any(|it| it == *node);
            known.places().count() == wanted.len() && wanted.iter().all(has) && !(is_one && known.is_shared())
        })
    }

    /// In which term this node leads the queue's group, if nobody else is a member of it any more.
    fn alone_in(&self, known: &Queue) -> Option<u64> {
        let status = self.groups()?.status(group_of(known))?;
        let is_alone = status.members.members().count() == 1;
        (is_alone && self.is_whole(known)).then_some(status.term)
    }
}

fn said(known: &Queue, request: &Request, view: &View) -> String {
    let (name, vhost) = (&known.name, &known.vhost);
    match request {
        Request::Mirror { nodes, .. } => {
            let nodes: Vec<&str> = nodes.iter().map(|node| view.node_name(*node)).collect();
            let nodes = nodes.join(", ");
            let why = match known.kind.is_replicated() {
                true => "as a quorum queue",
                false => "by its policy",
            };
            format!("queue '{name}' in vhost '{vhost}' is to be on {nodes}, {why}")
        }
        Request::SayGrown { .. } => format!("queue '{name}' in vhost '{vhost}' is its members' by now"),
        _ => format!(
            "no policy mirrors queue '{name}' in vhost '{vhost}' any more: it becomes this node's own"
        ),
    }
}
