//! Quorum queues get the members that they are to have in the long run (RabbitMQ's continuous membership reconciliation), each
//! from the node that leads it, one after the other. See decision note 58.

use super::Topology;
use super::replicas::{is_as_wanted, member_id};
use crate::options::Reconciliation;
use crate::queues::{Handle, group_of};
use catalog::{NodeId, Queue, QueueKind, Request};
use cluster::{MemberId, NodeId as GroupNode};
use model::QueueId;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

/// So many queues that this node leads get a member at a time: each is a copy of a queue's contents.
const AT_A_TIME: usize = 8;

/// For so many ticks a queue is waited for before the next one has its turn.
const TIMEOUT: u32 = 600;

/// What this node is about.
#[derive(Debug, Default)]
pub(super) struct Reconciling {
    /// So many ticks until it looks at all queues.
    wait: Option<u32>,
    /// What existed, and which nodes could be reached, when it looked last.
    seen: (u64, Vec<NodeId>),
    /// Queues that it has to look at.
    left: VecDeque<QueueId>,
    open: Vec<Open>,
}

/// A queue that gets a member.
#[derive(Debug)]
struct Open {
    queue: QueueId,
    /// So many it had.
    members: usize,
    ticks: u32,
}

/// Whether a queue gets one member more, as RabbitMQ has it: with an odd number of members there has to be a node for the next
/// one, too, since an even number survives no more than the odd one below.
fn grows(members: usize, free: usize, target: usize) -> bool {
    members < target && free > 0 && (members.is_multiple_of(2) || free > 1)
}

impl Topology {
    /// A tick of the clock.
    pub(crate) fn grow_queues(&self) {
        let Some(options) = self
            .placing()
            .map(|it| it.reconciliation)
            .filter(|it| it.is_enabled)
        else {
            return;
        };
        let mut work = self.reconciling.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = work.tick(options, (self.generation(), self.reached()));
        work.open.retain_mut(|open| {
            open.ticks += 1;
            open.ticks < TIMEOUT && self.is_growing(open)
        });
        if is_due && work.left.is_empty() {
            let shared = self.registry.shared();
            work.left = shared.iter().map(|shared| shared.known.id).collect();
            self.registry.for_each(|queue| {
                if queue.kind() == QueueKind::Quorum && queue.replica().is_none() {
                    work.left.push_back(queue.id);
                }
            });
        }
        while work.open.len() < AT_A_TIME
            && let Some(queue) = work.left.pop_front()
        {
            work.open.extend(self.grow(queue, options));
        }
    }

    /// Asks for one more member of a queue, if this node leads it and it is to have one.
    fn grow(&self, id: QueueId, options: Reconciliation) -> Option<Open> {
        let view = self.view();
        let known = self.led_here(id)?;
        let policy = view.vhost(&known.vhost)?.target_size(&known);
        let size = policy.unwrap_or(options.target_size);
        let free = view.nodes().filter(|(node, it)| {
            it.is_running && it.is_open_to_queues() && self.reaches(**node) && known.member(**node).is_none()
        });
        let nodes: Vec<NodeId> = free.map(|(node, _)| *node).collect();
        let members = known.members().count();
        if !grows(members, nodes.len(), size) || !self.is_whole(&known) {
            return None;
        }
        tracing::info!(
            area = "groups",
            "queue '{}' in vhost '{}' has {members} members and is to have {size}: it gets another one",
            known.name,
            known.vhost
        );
        let name = known.name.clone();
        self.decide(None, Request::AddMember { id, nodes, size })
            .then(move |answered| {
                if let Err(refusal) = answered {
                    tracing::warn!(
                        area = "groups",
                        "queue '{name}' gets no other member now: {refusal}"
                    );
                }
            });
        Some(Open {
            queue: id,
            members,
            ticks: 0,
        })
    }

    /// Whether its new member is not there yet, or does not count.
    fn is_growing(&self, open: &Open) -> bool {
        self.led_here(open.queue)
            .is_some_and(|known| known.members().count() == open.members || !self.is_whole(&known))
    }

    /// The queue, if this node leads it or has it alone.
    fn led_here(&self, id: QueueId) -> Option<Arc<Queue>> {
        // Which nodes have others is for their policies to say.
        match self
            .registry
            .get(id)
            .filter(|handle| handle.kind() == QueueKind::Quorum)?
        {
            Handle::Shared(shared) => {
                let copy = shared.replica.as_ref();
                copy.is_some_and(|queue| queue.is_led_here())
                    .then(|| shared.known.clone())
            }
            Handle::Here(queue) => {
                let view = self.view();
                let known = view.queue(&queue.vhost, &queue.name);
                known.filter(|known| known.id == id).cloned()
            }
            Handle::Elsewhere(..) | Handle::WithoutOwner(_) => None,
        }
    }

    /// All that are to have it vote, and nobody else does.
    pub(super) fn is_whole(&self, known: &Queue) -> bool {
        if !known.is_shared() {
            return true;
        }
        let status = self.groups().and_then(|groups| groups.status(group_of(known)));
        let members: Vec<MemberId> = known.members().filter_map(member_id).collect();
        let is_reached = |node: GroupNode| self.reaches(NodeId(node.0.into()));
        status.is_some_and(|status| is_as_wanted(&members, &status.members, is_reached))
    }

    fn reached(&self) -> Vec<NodeId> {
        let view = self.view();
        let reached = view.nodes().filter(|(node, _)| self.reaches(**node));
        reached.map(|(node, _)| *node).collect()
    }
}

impl Reconciling {
    /// A tick. Whether all queues are to be looked at: from time to time, and soon after something has changed.
    fn tick(&mut self, options: Reconciliation, seen: (u64, Vec<NodeId>)) -> bool {
        let soon = options.trigger_ticks.max(1);
        let wait = self.wait.get_or_insert(soon);
        if self.seen != seen {
            self.seen = seen;
            *wait = soon.min(*wait);
        }
        *wait = wait.saturating_sub(1);
        let is_due = *wait == 0;
        if is_due {
            *wait = options.interval_ticks.max(1);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_grows_up_to_its_target_and_stops_at_no_even_number_for_lack_of_nodes() {
        assert!(grows(3, 2, 5) && grows(4, 1, 5) && grows(2, 1, 3));
        assert!(!grows(3, 1, 5), "four survive no more than three");
        assert!(!grows(5, 3, 5) && !grows(4, 0, 5) && !grows(3, 2, 0));
    }

    #[test]
    fn all_queues_are_looked_at_now_and_then_and_soon_after_a_change() {
        let options = Reconciliation {
            is_enabled: true,
            target_size: 0,
            interval_ticks: 50,
            trigger_ticks: 5,
        };
        let mut work = Reconciling::default();
        let mut due = Vec::new();
        for tick in 1..=200_u64 {
            // Something changes in every tick from 100 to 110.
            let generation = tick.clamp(99, 110);
            if work.tick(options, (generation, vec![NodeId(1)])) {
                due.push(tick);
            }
        }
        assert_eq!(due, [5, 55, 104, 109, 114, 164]);
    }
}
