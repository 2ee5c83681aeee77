//! All nodes, and the network between them.

use super::invariants::Invariants;
use super::machine::{Checkpoint, Machine};
use super::some_steps;
use crate::mutant::Mutant;
use crate::{Event, GroupId, Mark, MemberId, Membership, NodeId, Refused, Status, Step};
use bytes::Bytes;
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub struct World {
    seed: u64,
    pub machines: Vec<Machine>,
    network: VecDeque<(usize, usize, Bytes)>,
    /// Frames that arrived before, and may arrive again much later.
    late: VecDeque<(usize, usize, Bytes)>,
    /// From whom to whom nothing gets through.
    cuts: BTreeSet<(usize, usize)>,
    invariants: Invariants,
    groups: u64,
    /// What was committed anywhere when a proof was asked for, by node and question.
    asked: BTreeMap<(usize, u64), u64>,
    /// Checkpoints that are to be taken.
    wanted: Vec<(usize, GroupId)>,
    /// Members that were added by a change and don't exist yet.
    promised: BTreeSet<(GroupId, MemberId)>,
    /// Whether disks are wiped in this run; members change then only to replace those that are lost.
    wipes: bool,
}

impl World {
    pub fn new(nodes: usize, groups: u64, seed: u64) -> Self {
        let mut world = Self {
            seed,
            machines: (1..=nodes as u32)
                .map(|node| Machine::new(NodeId(node)))
                .collect(),
            network: VecDeque::new(),
            late: VecDeque::new(),
            cuts: BTreeSet::new(),
            invariants: Invariants::default(),
            groups,
            asked: BTreeMap::new(),
            wanted: Vec::new(),
            promised: BTreeSet::new(),
            wipes: seed % 4 == 3,
        };
        // One group begins with a single voter, the other with three.
        for group in 1..=groups {
            let voters = [1, 3][group as usize % 2].min(nodes);
            let voters = if world.wipes { 3 } else { voters };
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
        let kept = rng.usize(..=self.machines[node].unsynced());
        self.die(node, kept);
        self.asked.retain(|(of, _), _| *of != node);
    }

    fn die(&mut self, node: usize, kept: usize) {
        let lost = self.machines[node].crash(kept);
        let held = |entry: &(GroupId, Mark)| self.machines.iter().any(|m| m.has(entry.0, entry.1));
        let gone: Vec<_> = lost.into_iter().filter(|entry| !held(entry)).collect();
        self.invariants.crashed(self.machines[node].node, &gone);
    }

    /// A sync fails; the process lives on until it is killed.
    pub fn fail(&mut self, node: usize) {
        if self.machines[node].groups.is_some() {
            self.machines[node].fail();
            self.collect(node);
        }
    }

    /// The disk of a node is lost, where the others have everything: no other member is missing, and no change is under way.
    pub fn wipe(&mut self, node: usize) {
        let lives = |m: MemberId| self.machines[m.node.0 as usize - 1].me() == m;
        let first = Membership::of(&[1, 2, 3].map(|n| MemberId::first(NodeId(n))));
        let whole = (1..=self.groups).map(GroupId).all(|group| {
            let now = self.invariants.members(group).unwrap_or_else(|| first.clone());
            // Who alone knew that a change is through is not lost: the others would wait for members of before it,
            // which are no more.
            let mut others = self.machines.iter().enumerate().filter(|(at, _)| *at != node);
            let known = others.all(|(_, machine)| {
                let status = machine.groups.as_ref().and_then(|groups| groups.status(group));
                status.is_some_and(|status| status.members == now)
                    || !now.members().any(|m| m == machine.me())
            });
            known && !now.is_joint() && now.members().all(lives)
        });
        if self.wipes && whole {
            self.die(node, 0);
            self.asked.retain(|(of, _), _| *of != node);
            self.machines[node].wipe();
            let node = self.machines[node].node;
            self.invariants.wiped(node);
        }
    }

    /// Whoever leads replaces members that are lost.
    pub fn replace(&mut self) {
        let lives: Vec<_> = self.machines.iter().map(Machine::me).collect();
        for groups in self.machines.iter_mut().filter_map(|m| m.groups.as_mut()) {
            for group in (1..=self.groups).map(GroupId) {
                let Some(members) = groups.status(group).map(|status| status.members) else {
                    continue;
                };
                let lost = members.members().find(|m| !lives.contains(m));
                if let Some(lost) = lost {
                    let new = lives[lost.node.0 as usize - 1];
                    let _ = groups.change(group, &[Step::Remove(lost), Step::Learner(new)]);
                } else if let Some(new) = members.learners.first() {
                    let _ = groups.change(group, &[Step::Voter(*new)]);
                }
            }
        }
    }

    pub fn tick(&mut self, node: usize) {
        if self.machines[node].stands {
            return;
        }
        self.machines[node].tick();
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
        let to = self.machines[rng.usize(..self.machines.len())].me();
        if let Some(groups) = &mut self.machines[node].groups {
            let _ = groups.transfer(GroupId(rng.u64(1..=self.groups)), to);
        }
    }

    pub fn change(&mut self, node: usize, rng: &mut Rng) {
        if self.wipes {
            return self.replace();
        }
        let steps = some_steps(rng, self.machines.len() as u32);
        let group = GroupId(rng.u64(1..=self.groups));
        // Mostly who leads is asked, so that much changes.
        let leader = self.leading(group).map(|status| status.me.node.0 as usize - 1);
        let node = leader.filter(|_| rng.u32(..4) > 0).unwrap_or(node);
        if let Some(groups) = &mut self.machines[node].groups {
            let refused = groups.change(group, &steps) == Err(Refused::Behind);
            // Whoever has nothing yet is a learner first.
            if let Some(Step::Voter(member)) = steps.last().filter(|_| refused) {
                let _ = groups.change(group, &[Step::Learner(*member)]);
            }
        }
    }

    /// Members that were added come into being, with nothing in their log.
    pub fn join(&mut self) {
        for (group, member) in std::mem::take(&mut self.promised) {
            let node = member.node;
            let machine = &mut self.machines[node.0 as usize - 1];
            if machine.me() != member {
                continue;
            }
            let now = self.invariants.members(group);
            let is_back =
                now.is_some_and(|now| now.members().any(|m| m == member)) && machine.left.remove(&group);
            if machine.checkpoints.contains_key(&group) {
                if is_back && machine.groups.is_some() {
                    self.restart(node);
                }
                continue;
            }
            // It knows of nobody but the first member; who else there is, it learns with the entries.
            let first = Membership::of(&[MemberId::first(NodeId(1))]);
            let members = match group.0 % 2 {
                0 if !self.wipes => first,
                _ => Membership::of(&[1, 2, 3].map(|n| MemberId::first(NodeId(n)))),
            };
            machine.begin(group, Mark::default(), members);
            if machine.groups.is_some() {
                self.restart(node);
            }
        }
    }

    /// Ends a process, and starts it on all that it has written.
    fn restart(&mut self, node: NodeId) {
        let node = node.0 as usize - 1;
        self.die(node, self.machines[node].unsynced());
        self.start(node);
    }

    pub fn cut(&mut self, rng: &mut Rng) {
        let nodes = self.machines.len();
        match rng.u32(..5) {
            0 => self.cuts.clear(),
            // Two miss each other, and others reach both.
            4 => {
                let (one, other) = (rng.usize(..nodes), rng.usize(..nodes));
                self.cuts.extend([(one, other), (other, one)]);
            }
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
        if faults > 1 {
            if self.late.len() == 300 {
                self.late.pop_front();
            }
            self.late.push_back((from, to, frame.clone()));
        }
        if faults > 0 && rng.u32(..30) == 0 || self.cuts.contains(&(from, to)) {
            return;
        }
        self.receive(from, to, &frame);
    }

    /// A frame arrives once more, long after it was sent.
    pub fn deliver_late(&mut self, rng: &mut Rng) {
        if !self.late.is_empty() {
            let (from, to, frame) = self.late[rng.usize(..self.late.len())].clone();
            self.receive(from, to, &frame);
        }
    }

    fn receive(&mut self, from: usize, to: usize, frame: &Bytes) {
        let from = self.machines[from].node;
        self.machines[to].mail.push((from, frame.clone()));
        self.collect(to);
    }

    /// A process stands still, or goes on: then everything that has come meanwhile is there before its next turn.
    pub fn stand(&mut self, node: usize, stands: bool) {
        self.machines[node].stands = stands;
        self.collect(node);
    }

    /// Carries away what a node's turn brings.
    pub fn collect(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        if machine.stands {
            return;
        }
        let mail = std::mem::take(&mut machine.mail);
        let Some(groups) = &mut machine.groups else {
            return;
        };
        for (from, frame) in mail {
            match groups.receive(from, &frame) {
                Ok(()) | Err(crate::Rejected::OldIncarnation { .. }) => {}
                Err(other) => panic!("an honest peer was refused: {other:?}"),
            }
        }
        let turn = groups.turn();
        for record in &turn.append {
            let before = |group, index| groups.term_at(group, index);
            self.invariants.appended(record, &before);
        }
        machine.append(turn.number, turn.append);
        for (to, frame) in turn.send {
            self.invariants.said(&frame);
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
                if leader == Some(machine.me())
                    && let Some(groups) = &machine.groups
                {
                    let base = groups.status(group).unwrap().base.index;
                    let term_at = |index| groups.term_at(group, index);
                    self.invariants.completes(group, term, base, &term_at);
                }
            }
            Event::Members {
                group,
                index,
                members,
            } => {
                for member in members.members() {
                    self.promised.insert((group, member));
                }
                self.invariants.changed(group, index, members.clone());
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
            | Event::Lost { .. }
            | Event::Returned { .. }
            | Event::Suspected(_)
            | Event::Heard(_) => {}
            Event::Removed(group) => {
                let me = machine.me();
                let now = self.invariants.members(group).unwrap_or_default();
                if let Some(groups) = &mut machine.groups
                    && now.members().all(|m| m != me)
                {
                    machine.left.insert(group);
                    groups.close(group);
                }
            }
            Event::Gone { .. } => panic!("no group is gone: {event:?}"),
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
            // Who has offered it has lost it since, with the disk: whoever leads offers another one.
            if from.life != self.machines[source].life {
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
        let mut index = self.invariants.applied(group, machine.node);
        if Mutant::CheckpointAboveCommit.is_on() {
            index = groups.status(group).map_or(index, |status| status.last);
        }
        let Some(checkpoint) = machine.checkpoints.get_mut(&group) else {
            return;
        };
        if index <= checkpoint.at.index {
            return;
        }
        let mut since = machine.members.range((group, 0)..=(group, index));
        if let Some((_, members)) = since.next_back()
            && !Mutant::RemovedCounts.is_on()
        {
            checkpoint.members = members.clone();
        }
        let term = groups.term_at(group, index).unwrap();
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
        self.late.clear();
        for node in 0..self.machines.len() {
            self.machines[node].hang(false);
            self.stand(node, false);
            if self.machines[node].failed() {
                self.die(node, 0);
                self.asked.retain(|(of, _), _| *of != node);
            }
        }
        self.join();
        (0..self.machines.len()).for_each(|node| self.start(node));
    }

    /// All nodes tick once, everything is delivered and synced.
    pub fn round(&mut self) {
        let nodes = self.machines.len();
        self.join();
        if self.wipes {
            self.replace();
        }
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
            let lives = |m: MemberId| self.machines[m.node.0 as usize - 1].me() == m;
            if leading.members.is_joint() || !leading.members.members().all(lives) {
                return false;
            }
            leading.members.members().all(|member| {
                let status = statuses.iter().find(|s| s.me == member);
                status.is_some_and(|s| {
                    let there = (s.term, s.last, s.committed, s.awake);
                    there == (leading.term, leading.last, leading.committed, false)
                })
            })
        })
    }

    /// How many members are awake anywhere, those that were removed included.
    pub fn awake(&self) -> usize {
        let nodes = self.machines.iter().filter_map(|m| m.groups.as_ref());
        nodes.map(crate::Groups::awake).sum()
    }

    /// Whether frames under way say nothing about groups.
    pub fn is_quiet(&self) -> bool {
        self.network.iter().all(|(.., frame)| {
            let (_, items) = crate::frame::read(frame).unwrap();
            items.iter().all(|item| item.group().is_none())
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
