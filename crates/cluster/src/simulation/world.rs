//! All nodes, and the network between them.

use super::invariants::Invariants;
use super::machine::{Checkpoint, Machine};
use super::some_steps;
use crate::{Event, GroupId, Mark, MemberId, Membership, NodeId, Status};
use bytes::Bytes;
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub struct World {
    seed: u64,
    pub machines: Vec<Machine>,
    network: VecDeque<(usize, usize, Bytes)>,
    /// From whom to whom nothing gets through.
    cuts: BTreeSet<(usize, usize)>,
    invariants: Invariants,
    groups: u64,
    /// What was committed anywhere when a proof was asked for, by node and question.
    asked: BTreeMap<(usize, u64), u64>,
    /// Checkpoints that are to be taken.
    wanted: Vec<(usize, GroupId)>,
    /// Members that were added by a change and don't exist yet.
    promised: BTreeSet<(GroupId, NodeId)>,
}

impl World {
    pub fn new(nodes: usize, groups: u64, seed: u64) -> Self {
        let mut world = Self {
            seed,
            machines: (1..=nodes as u32)
                .map(|node| Machine::new(NodeId(node)))
                .collect(),
            network: VecDeque::new(),
            cuts: BTreeSet::new(),
            invariants: Invariants::default(),
            groups,
            asked: BTreeMap::new(),
            wanted: Vec::new(),
            promised: BTreeSet::new(),
        };
        // One group begins with a single voter, the other with three.
        for group in 1..=groups {
            let voters = [1, 3][group as usize % 2].min(nodes);
            let members: Vec<_> = (1..=voters as u32).map(|n| MemberId::first(NodeId(n))).collect();
            for machine in &mut world.machines[..voters] {
                machine.begin(GroupId(group), Mark::default(), Membership::of(&members));
            }
        }
        (0..nodes).for_each(|node| world.start(node));
        world
    }

    pub fn start(&mut self, node: usize) {
        let nodes = self.machines.len() as u32;
        let machine = &mut self.machines[node];
        if machine.groups.is_some() {
            return;
        }
        for (group, checkpoint) in &machine.checkpoints {
            self.invariants.begins(machine.node, *group, checkpoint.at);
        }
        machine.start(nodes);
    }

    pub fn crash(&mut self, node: usize, rng: &mut Rng) {
        let machine = &mut self.machines[node];
        let kept = rng.usize(..=machine.unsynced());
        machine.crash(kept);
        self.invariants.crashed(machine.node);
        self.asked.retain(|(of, _), _| *of != node);
    }

    pub fn tick(&mut self, node: usize) {
        if let Some(groups) = &mut self.machines[node].groups {
            groups.tick();
        }
        self.fetch(node);
        self.collect(node);
    }

    pub fn sync(&mut self, node: usize) {
        self.machines[node].sync(1 + self.seed as usize % 3);
        self.collect(node);
    }

    pub fn propose(&mut self, node: usize, group: GroupId, record: Bytes) {
        if let Some(groups) = &mut self.machines[node].groups {
            let Ok(index) = groups.propose(group, record.clone()) else {
                return;
            };
            if let Some(status) = groups.status(group) {
                let at = Mark {
                    index,
                    term: status.term,
                };
                self.invariants.promised(group, status.me, at, record);
            }
        }
    }

    pub fn prove(&mut self, node: usize, group: GroupId) {
        let Some(groups) = &mut self.machines[node].groups else {
            return;
        };
        if let Ok(question) = groups.prove(group) {
            self.asked.insert((node, question), self.invariants.last(group));
        }
    }

    pub fn transfer(&mut self, node: usize, rng: &mut Rng) {
        let to = MemberId::first(NodeId(rng.u32(1..=self.machines.len() as u32)));
        if let Some(groups) = &mut self.machines[node].groups {
            let _ = groups.transfer(GroupId(rng.u64(1..=self.groups)), to);
        }
    }

    pub fn change(&mut self, node: usize, rng: &mut Rng) {
        let steps = some_steps(rng, self.machines.len() as u32);
        let group = GroupId(rng.u64(1..=self.groups));
        if let Some(groups) = &mut self.machines[node].groups {
            let _ = groups.change(group, &steps);
        }
    }

    /// Members that were added come into being, with nothing in their log.
    pub fn join(&mut self) {
        for (group, node) in std::mem::take(&mut self.promised) {
            let machine = &mut self.machines[node.0 as usize - 1];
            if machine.checkpoints.contains_key(&group) {
                continue;
            }
            // It knows of nobody but the first member; who else there is, it learns with the entries.
            let first = Membership::of(&[MemberId::first(NodeId(1))]);
            let members = match group.0 % 2 {
                0 => first,
                _ => Membership::of(&[1, 2, 3].map(|n| MemberId::first(NodeId(n)))),
            };
            machine.begin(group, Mark::default(), members);
            if machine.groups.is_some() {
                let kept = machine.unsynced();
                machine.crash(kept);
                self.invariants.crashed(node);
                self.start(node.0 as usize - 1);
            }
        }
    }

    pub fn cut(&mut self, rng: &mut Rng) {
        let nodes = self.machines.len();
        match rng.u32(..4) {
            0 => self.cuts.clear(),
            1 => {
                let (from, to) = (rng.usize(..nodes), rng.usize(..nodes));
                self.cuts.insert((from, to));
            }
            _ => {
                let alone = rng.usize(..nodes);
                for other in 0..nodes {
                    self.cuts.extend([(alone, other), (other, alone)]);
                }
            }
        }
    }

    pub fn deliver(&mut self, rng: &mut Rng, faults: u32) {
        if self.network.is_empty() {
            return;
        }
        let at = match faults {
            0 => 0,
            _ => rng.usize(..self.network.len().min(8)),
        };
        if faults > 1 && rng.u32(..20) == 0 {
            let again = self.network[at].clone();
            self.network.push_back(again);
        }
        let Some((from, to, frame)) = self.network.remove(at) else {
            return;
        };
        if faults > 0 && rng.u32(..30) == 0 || self.cuts.contains(&(from, to)) {
            return;
        }
        self.receive(from, to, &frame);
    }

    fn receive(&mut self, from: usize, to: usize, frame: &Bytes) {
        let from = self.machines[from].node;
        if let Some(groups) = &mut self.machines[to].groups {
            match groups.receive(from, frame) {
                Ok(()) | Err(crate::Rejected::OldIncarnation { .. }) => {}
                Err(other) => panic!("an honest peer was refused: {other:?}"),
            }
        }
        self.collect(to);
    }

    /// Carries away what a node's turn brings.
    pub fn collect(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        let Some(groups) = &mut machine.groups else {
            return;
        };
        let turn = groups.turn();
        machine.append(turn.number, turn.append);
        for (to, frame) in turn.send {
            self.network.push_back((node, to.0 as usize - 1, frame));
        }
        for event in turn.events {
            self.event(node, event);
        }
        for entry in turn.committed {
            self.invariants.committed(self.machines[node].node, &entry);
        }
        for (node, group) in std::mem::take(&mut self.wanted) {
            self.checkpoint(node, group, 3);
        }
    }

    fn event(&mut self, node: usize, event: Event) {
        let machine = &mut self.machines[node];
        match event {
            Event::Leader { group, term, leader } => {
                if let Some(leader) = leader {
                    self.invariants.leads(group, term, leader);
                }
            }
            Event::Members {
                group,
                index,
                members,
            } => {
                for member in members.members() {
                    self.promised.insert((group, member.node));
                }
                machine.members.insert((group, index), members);
            }
            Event::Read { group, from, to } => {
                let payloads = machine.read(group, from, to);
                if let Some(groups) = &mut machine.groups {
                    groups.fetched(group, from, &payloads);
                }
            }
            Event::Fetch {
                group,
                from,
                at,
                members,
            } => {
                machine.fetching.insert(group, (from, at, members));
            }
            Event::Checkpoint(group) => self.wanted.push((node, group)),
            Event::Proven {
                group,
                question,
                index,
            } => {
                let before = self.asked.remove(&(node, question)).unwrap();
                assert!(
                    index >= before,
                    "{group:?} proven at {index}, {before} was committed"
                );
            }
            Event::Unproven { question, .. } => {
                self.asked.remove(&(node, question)).unwrap();
            }
            Event::Unknown { .. }
            | Event::Returned { .. }
            | Event::Removed(_)
            | Event::Suspected(_)
            | Event::Heard(_) => {}
            Event::Gone { .. } | Event::Lost { .. } => panic!("nobody is gone: {event:?}"),
        }
    }

    /// Brings the contents of a snapshot, if the one who has them can be reached.
    fn fetch(&mut self, node: usize) {
        for (group, (from, at, members)) in std::mem::take(&mut self.machines[node].fetching) {
            let source = from.node.0 as usize - 1;
            let there = self.machines[source].groups.is_some() && !self.cuts.contains(&(source, node));
            if !there || self.machines[node].groups.is_none() {
                self.machines[node].fetching.insert(group, (from, at, members));
                continue;
            }
            assert!(
                self.machines[source].taken.contains_key(&(group, at.index)),
                "a snapshot was offered that was never taken"
            );
            let machine = &mut self.machines[node];
            let applied = self.invariants.applied(group, machine.node);
            if applied >= at.index {
                continue;
            }
            let base = at;
            let new = Checkpoint {
                base,
                at,
                members: members.clone(),
            };
            let old = machine.checkpoints.insert(group, new);
            machine.taken.insert((group, at.index), members);
            let used = machine
                .groups
                .as_mut()
                .is_some_and(|groups| groups.installed(group, at.index));
            if used {
                self.invariants.begins(machine.node, group, at);
            } else if let Some(old) = old {
                machine.checkpoints.insert(group, old);
            }
        }
    }

    /// A member writes its contents down, and lets go of the log before it, or of most of it.
    pub fn checkpoint(&mut self, node: usize, group: GroupId, back: u64) {
        let machine = &mut self.machines[node];
        let Some(groups) = &mut machine.groups else {
            return;
        };
        let index = self.invariants.applied(group, machine.node);
        let Some(checkpoint) = machine.checkpoints.get_mut(&group) else {
            return;
        };
        if index <= checkpoint.at.index {
            return;
        }
        let mut since = machine.members.range((group, 0)..=(group, index));
        if let Some((_, members)) = since.next_back() {
            checkpoint.members = members.clone();
        }
        let term = self.invariants.term_at(group, index).unwrap();
        checkpoint.at = Mark { index, term };
        let keep = index.saturating_sub(back);
        if keep > checkpoint.base.index {
            let term = self.invariants.term_at(group, keep).unwrap();
            checkpoint.base = Mark { index: keep, term };
        }
        machine.taken.insert((group, index), checkpoint.members.clone());
        groups.checkpointed(group, index, keep);
    }

    /// All faults end.
    pub fn heal(&mut self) {
        self.cuts.clear();
        self.join();
        (0..self.machines.len()).for_each(|node| self.start(node));
    }

    /// All nodes tick once, everything is delivered and synced.
    pub fn round(&mut self) {
        let nodes = self.machines.len();
        self.join();
        (0..nodes).for_each(|node| self.tick(node));
        for _ in 0..6 {
            for _ in 0..self.network.len() {
                if let Some((from, to, frame)) = self.network.pop_front() {
                    self.receive(from, to, &frame);
                }
            }
            for node in 0..nodes {
                self.machines[node].sync(usize::MAX);
                self.collect(node);
            }
        }
    }

    /// Whether each group has a leader, its members have everything, and all of them sleep.
    pub fn is_well(&self) -> bool {
        (1..=self.groups).map(GroupId).all(|group| {
            let statuses: Vec<_> = self
                .machines
                .iter()
                .filter_map(|m| m.groups.as_ref()?.status(group))
                .collect();
            let Some(leading) = self.leading(group) else {
                return false;
            };
            leading.members.members().all(|member| {
                let status = statuses.iter().find(|s| s.me == member);
                status.is_some_and(|s| {
                    let there = (s.term, s.last, s.committed, s.awake);
                    there == (leading.term, leading.last, leading.committed, false)
                })
            })
        })
    }

    /// What the leader says; of several who believe that they are it, the latest.
    fn leading(&self, group: GroupId) -> Option<Status> {
        let all = self
            .machines
            .iter()
            .filter_map(|m| m.groups.as_ref()?.status(group));
        all.filter(|s| s.leader == Some(s.me)).max_by_key(|s| s.term)
    }

    pub fn check_all_is_there(&self) {
        for group in (1..=self.groups).map(GroupId) {
            let last = self.invariants.last(group);
            let members = self.leading(group).map(|s| s.members).unwrap_or_default();
            for machine in &self.machines {
                let status = machine.groups.as_ref().and_then(|groups| groups.status(group));
                let Some(status) = status else { continue };
                // A member that was removed learns nothing more.
                let counts = members.members().any(|m| m == status.me);
                assert!(
                    !counts || status.committed >= last,
                    "{group:?}{}",
                    self.describe()
                );
                for index in status.base.index..=status.committed {
                    let term = machine.groups.as_ref().and_then(|g| g.term_at(group, index));
                    let known = self.invariants.term_at(group, index);
                    assert!(known.is_none() || known == term, "{group:?} at {index}");
                }
            }
        }
    }

    pub fn describe(&self) -> String {
        let mut text = String::new();
        for machine in &self.machines {
            for group in (1..=self.groups).map(GroupId) {
                let status = machine.groups.as_ref().and_then(|groups| groups.status(group));
                text += &format!("\n{:?} {group:?} {status:?}", machine.node);
            }
        }
        text
    }
}
