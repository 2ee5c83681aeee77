//! Queues that several nodes have, as this node leads them: its sessions begin with its term, and hear first who may have
//! something of what others have delivered.

use super::frame::Envelope;
use super::served::{Brought, Served};
use super::{Work, incarnation};
use crate::clients::pressure::Pressure;
use crate::groups::NodeId;
use crate::queues::Queue;
use model::{Incarnation, QueueId};
use queue::Request;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// For so many ticks, of 100 ms each, a node that has just started waits for those that it has not heard of: it does not know
/// which start of them may have something. After that they count as down, as any other node that says nothing.
const KNOWS_ALL_AFTER: u32 = 20;

/// What this node leads.
#[derive(Debug, Default)]
pub(super) struct Leading {
    /// How far sessions have come.
    begun: Mutex<BTreeMap<QueueId, Begun>>,
    /// Those that wait until it is known whom to ask.
    waiting: Mutex<BTreeSet<QueueId>>,
    ticks: AtomicU32,
}

/// Who may have something of a queue.
#[derive(Default)]
pub(super) struct ToHear {
    /// They are heard before anything is delivered.
    pub starts: Vec<Incarnation>,
    /// They were not heard of, so it is not known which start of them there is. All that queues know of count as down.
    pub unknown: Vec<NodeId>,
    /// What is on record of those who may have something is not the whole.
    pub are_others: bool,
}

impl ToHear {
    /// Those of a queue's senders that count as down.
    pub fn down(&self, senders: Vec<Incarnation>) -> impl Iterator<Item = Incarnation> {
        let is_unknown = |sender: &Incarnation| self.unknown.contains(&super::node_of(*sender));
        senders.into_iter().filter(is_unknown)
    }
}

/// The sessions of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// They are being made: nobody else makes some.
    Soon(u64),
    /// They were made, and the machine knows whom it waits for. If they are let go of, those who had anything of the queue have
    /// let go of it before.
    Once(u64),
}

impl Begun {
    fn term(self) -> u64 {
        match self {
            Self::Soon(term) | Self::Once(term) => term,
        }
    }
}

impl Leading {
    fn begun(&self) -> MutexGuard<'_, BTreeMap<QueueId, Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<QueueId>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    /// Of a queue of which this node has a copy, another one leads than before, or none does.
    pub(super) fn led(&self, queue: &Arc<Queue>) {
        loop {
            let term = queue.term();
            if let Some(served) = self.served_of(queue.id)
                && term.is_none_or(|term| served.term() < term)
            {
                served.end();
                served.knock();
            }
            match term {
                // Of what a node has of a queue of this node's own nothing counts that an earlier start has delivered.
                Some(_) if queue.own_term().is_some_and(|own| !own.is_handed_back) => {}
                Some(term) if !queue.is_retired() => self.lead(queue, term),
                _ => self.leads_no_more(queue.id),
            }
            let leader = queue.leader();
            self.followed.led(queue.id, leader);
            self.say_leader(queue, leader);
            for node in self.all_nodes().iter().filter(|node| Some(node.node) != leader) {
                node.does_not_lead(queue.id);
            }
            // Another thread may have been told of a later term meanwhile, and undone by this one.
            if queue.term() == term {
                return;
            }
        }
    }

    /// The queue is deleted.
    pub(super) fn leads_no_more(&self, queue: QueueId) {
        self.leading.begun().remove(&queue);
    }

    /// This node leads the queue in this term: its sessions begin, once it is known who is to be heard.
    fn lead(&self, queue: &Arc<Queue>, term: u64) {
        if self
            .leading
            .begun()
            .get(&queue.id)
            .is_some_and(|it| it.term() >= term)
        {
            return;
        }
        self.set(queue, term);
        let Some(mut nodes) = self.nodes_to_hear() else {
            self.leading.waiting().insert(queue.id);
            return;
        };
        let shared = || self.here.existing.upgrade()?.shared(queue.id);
        nodes.are_others = shared().is_some_and(|it| it.is_refounded);
        let mut begun = self.leading.begun();
        if begun.get(&queue.id).is_some_and(|it| it.term() >= term) {
            return;
        }
        begun.insert(queue.id, Begun::Soon(term));
        drop(begun);
        self.begin_leading(queue, term, &nodes, None);
        let mut begun = self.leading.begun();
        if begun.get(&queue.id) == Some(&Begun::Soon(term)) {
            begun.insert(queue.id, Begun::Once(term));
        }
    }

    /// What the queue's machine here was made with may be long ago: before anything is decided it gets the settings that are in
    /// force.
    fn set(&self, queue: &Arc<Queue>, term: u64) {
        let existing = self.here.existing.upgrade();
        let settings = || Some(existing.as_ref()?.shared(queue.id)?.settings);
        let mut known = None;
        // A policy may have changed meanwhile, whose settings these must not follow.
        while let Some(now) = settings().filter(|now| Some(now) != known.as_ref()) {
            known = Some(now.clone());
            let settings = Box::new(now);
            queue.submit_in(term, vec![Request::Configure { settings }]);
        }
    }

    fn begin_leading(&self, queue: &Arc<Queue>, term: u64, nodes: &ToHear, brought: Option<Brought>) {
        let started = |node| self.start_of(node).unwrap_or(0);
        let (here, budget) = (self.here.clone(), self.budget.clone());
        let served = Served::leading((queue.clone(), term), here, budget, nodes, started);
        for node in &nodes.starts {
            let is_up =
                |node: NodeId| node == self.here.node() || self.known(node).is_some_and(|it| it.is_up());
            if is_up(super::node_of(*node)) {
                served.put(Brought::Heard(*node));
            }
        }
        self.begin_serving(served, brought);
    }

    /// A node says something to the leader of a queue, which this node may be. It comes back if it is not, or not yet.
    #[allow(clippy::result_large_err, reason = "the caller has made it")]
    pub(super) fn bring_to_leader(&self, queue: &Arc<Queue>, brought: Brought) -> Result<(), Brought> {
        let Some(term) = queue.term() else {
            return Err(brought);
        };
        if self.leading.begun().get(&queue.id) != Some(&Begun::Once(term)) {
            return Err(brought);
        }
        // There were some, so the machine knows whom it waits for, and they were not needed any more.
        self.begin_leading(queue, term, &ToHear::default(), Some(brought));
        Ok(())
    }

    /// A tick of the clock: what waited for nodes waits no more, if it is known by now which ones there are.
    pub(super) fn lead_when_due(&self) {
        let ticks = self.leading.ticks.load(Ordering::Relaxed);
        self.leading
            .ticks
            .store(ticks.saturating_add(1), Ordering::Relaxed);
        let waiting = std::mem::take(&mut *self.leading.waiting());
        for id in waiting {
            let existing = self.here.existing.upgrade();
            if let Some(queue) = existing.and_then(|existing| existing.replica(id)) {
                self.led(&queue);
            }
        }
    }

    /// The nodes that may have something of a queue which others have delivered; `None` if that is to be asked again with the
    /// next tick.
    fn nodes_to_hear(&self) -> Option<ToHear> {
        let knows_all = self.leading.ticks.load(Ordering::Relaxed) >= KNOWS_ALL_AFTER;
        let existing = self.here.existing.upgrade()?;
        let mut to_hear = ToHear {
            are_others: false,
            starts: vec![self.here.incarnation],
            unknown: Vec::new(),
        };
        for node in existing
            .nodes()
            .into_iter()
            .filter(|node| *node != self.here.node())
        {
            match self.start_of(node).filter(|start| *start > 0) {
                Some(start) => to_hear.starts.push(incarnation(node, start)),
                None if knows_all => to_hear.unknown.push(node),
                None => return None,
            }
        }
        Some(to_hear)
    }

    /// A node has asked about a queue that is not decided here: it is told by whom, if this node knows.
    pub(super) fn say_who_leads(&self, to: NodeId, queue: QueueId) {
        let existing = self.here.existing.upgrade();
        let replica = existing.and_then(|existing| existing.replica(queue));
        let leader = replica.and_then(|queue| queue.leader());
        if let Some(leader) = leader.filter(|leader| *leader != self.here.node()) {
            self.here.send(to, Envelope::Led { queue, leader });
        }
    }

    /// This node says something to itself.
    pub(super) fn receive_own(&self, envelope: Envelope) {
        let own = self.here.node();
        match envelope {
            Envelope::Down { queue, frame } => {
                if let Err(asked) = self.followed.receive(own, queue, frame) {
                    self.say_nothing(own, queue, &asked);
                }
            }
            up @ Envelope::Up { .. } => self.serve(own, up, 0),
            Envelope::Led { queue, leader } => self.followed.named(queue, leader),
            Envelope::Reply { .. }
            | Envelope::Alarm(_)
            | Envelope::Streams { .. }
            | Envelope::HasAll { .. }
            | Envelope::Lacks { .. }
            | Envelope::Chunks { .. }
            | Envelope::Group { .. }
            | Envelope::Offset { .. } => {}
        }
    }

    /// A reason to slow down for those who publish to a queue that is led on a node with an alarm.
    pub(super) fn alarm_where_led(&self, queue: QueueId) -> Option<Pressure> {
        let existing = self.here.existing.upgrade()?;
        let leader = || existing.replica(queue)?.leader();
        let leads = leader()?;
        let pressure = self.known(leads)?.alarm_of(queue)?;
        // Those who wait were let go of if another one leads since.
        (leader() == Some(leads)).then_some(pressure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_which_no_start_is_known_counts_as_down_in_all_its_starts() {
        let [one, other, third] = [1, 2, 3].map(NodeId);
        let to_hear = ToHear {
            are_others: false,
            starts: vec![incarnation(one, 7), incarnation(other, 4)],
            unknown: vec![third],
        };
        let senders = vec![incarnation(one, 7), incarnation(third, 2), incarnation(third, 5)];
        let down: Vec<Incarnation> = to_hear.down(senders).collect();
        assert_eq!(down, [incarnation(third, 2), incarnation(third, 5)]);
    }
}
