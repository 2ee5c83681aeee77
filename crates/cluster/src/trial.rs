//! Nodes of one group, for tests: what one says the others hear at once, unless it is cut; what is written is synced at
//! once, unless a disk hangs.

use crate::frame::{self, Item};
use crate::{
    Committed, Event, GroupId, Groups, MemberId, Membership, NodeId, Record, Recovered, Rejected, Settings,
    Status, Step,
};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub const GROUP: GroupId = GroupId(1);

pub fn m(node: u32) -> MemberId {
    MemberId::first(NodeId(node))
}

/// What a node has said.
pub fn said(frame: &Bytes) -> Vec<Item> {
    frame::read(frame).unwrap().1
}

#[derive(Default)]
pub struct Trial {
    pub nodes: BTreeMap<u32, Groups>,
    /// From whom to whom nothing gets through.
    pub cuts: BTreeSet<(u32, u32)>,
    /// The next frame with such an item is lost.
    pub loses: Option<fn(&Item) -> bool>,
    /// Whose disks don't sync.
    pub hanging: BTreeSet<u32>,
    pub events: Vec<(u32, Event)>,
    pub committed: Vec<(u32, Committed)>,
    pub refused: Vec<Rejected>,
    /// Everything that was said, whether it arrived or not.
    pub said: Vec<(u32, u32, Item)>,
    /// How many turns of a node brought something, and how often it synced.
    pub turns: BTreeMap<u32, u32>,
    pub syncs: BTreeMap<u32, u32>,
    written: BTreeMap<u32, u64>,
    log: BTreeMap<u32, BTreeMap<u64, Bytes>>,
    network: VecDeque<(u32, u32, Bytes)>,
}

impl Trial {
    /// These nodes, of which the first `voters` have a member of the group.
    pub fn new(nodes: u32, voters: u32) -> Self {
        let mut trial = Self::default();
        for node in 1..=nodes {
            trial.start(node, nodes, 1);
        }
        let members: Vec<_> = (1..=voters).map(m).collect();
        for node in 1..=voters {
            let new = Recovered::new_group(m(node), Membership::of(&members));
            trial.node(node).open(GROUP, new).unwrap();
        }
        trial
    }

    /// A node without groups.
    pub fn start(&mut self, node: u32, nodes: u32, incarnation: u64) {
        let mut groups = Groups::new(NodeId(node), incarnation, Settings::default());
        (1..=nodes).for_each(|peer| groups.add_peer(NodeId(peer)));
        self.nodes.insert(node, groups);
        self.written.remove(&node);
    }

    pub fn node(&mut self, node: u32) -> &mut Groups {
        self.nodes.get_mut(&node).unwrap()
    }

    pub fn status(&self, node: u32) -> Status {
        self.nodes[&node].status(GROUP).unwrap()
    }

    pub fn cut(&mut self, one: u32, other: u32) {
        self.cuts.extend([(one, other), (other, one)]);
    }

    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// One frame arrives, if there is one.
    pub fn step(&mut self) -> bool {
        let nodes: Vec<_> = self.nodes.keys().copied().collect();
        nodes.iter().for_each(|node| self.collect(*node));
        let Some((from, to, frame)) = self.network.pop_front() else {
            return false;
        };
        let lost = self.loses.take_if(|loses| said(&frame).iter().any(loses));
        if lost.is_none()
            && !self.cuts.contains(&(from, to))
            && let Some(groups) = self.nodes.get_mut(&to)
            && let Err(rejected) = groups.receive(NodeId(from), &frame)
        {
            self.refused.push(rejected);
        }
        true
    }

    fn collect(&mut self, node: u32) {
        let turn = self.node(node).turn();
        let brings = !(turn.append.is_empty() && turn.send.is_empty() && turn.committed.is_empty());
        *self.turns.entry(node).or_default() += u32::from(brings);
        if !turn.append.is_empty() {
            self.written.insert(node, turn.number);
        }
        for (to, frame) in turn.send {
            let items = said(&frame).into_iter();
            self.said.extend(items.map(|item| (node, to.0, item)));
            self.network.push_back((node, to.0, frame));
        }
        self.write(node, &turn.append);
        for event in &turn.events {
            self.read(node, event);
        }
        self.events
            .extend(turn.events.into_iter().map(|event| (node, event)));
        let committed = turn.committed.into_iter();
        self.committed.extend(committed.map(|entry| (node, entry)));
        if !self.hanging.contains(&node)
            && let Some(number) = self.written.remove(&node)
        {
            *self.syncs.entry(node).or_default() += 1;
            self.node(node).synced(number);
            self.collect(node);
        }
    }

    fn write(&mut self, node: u32, records: &[Record]) {
        let log = self.log.entry(node).or_default();
        for record in records {
            if let Record::Entry { at, .. } = record {
                log.split_off(&at.index);
                log.insert(at.index, record.payload());
            }
        }
    }

    fn read(&mut self, node: u32, event: &Event) {
        if let Event::Read { group, from, to } = *event {
            let payloads: Vec<_> = self.log[&node].range(from..to).map(|(_, p)| p.clone()).collect();
            self.node(node).fetched(group, from, &payloads);
        }
    }

    /// Frames that a test took from a node's turn.
    pub fn deliver(&mut self, frames: impl Iterator<Item = (NodeId, NodeId, Bytes)>) {
        self.network
            .extend(frames.map(|(from, to, frame)| (from.0, to.0, frame)));
        self.settle();
    }

    pub fn ticks(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.nodes.values_mut().for_each(Groups::tick);
            self.settle();
        }
    }

    /// Ticks until `done`, and how many it took.
    pub fn ticks_until(&mut self, limit: u32, done: impl Fn(&Self) -> bool) -> u32 {
        for ticks in 0..=limit {
            if done(self) {
                return ticks;
            }
            self.ticks(1);
        }
        panic!("not within {limit} ticks: {:?}", self.statuses());
    }

    fn statuses(&self) -> Vec<Option<Status>> {
        self.nodes.values().map(|node| node.status(GROUP)).collect()
    }

    /// The node that leads and knows it, of the latest term.
    pub fn leader(&self) -> Option<u32> {
        let all = self.nodes.values().filter_map(|node| node.status(GROUP));
        let leading = all.filter(|s| s.leader == Some(s.me));
        leading.max_by_key(|s| s.term).map(|s| s.me.node.0)
    }

    /// Ticks until `leader` leads and everybody sleeps.
    pub fn led_by(&mut self, leader: u32) {
        self.ticks_until(60, |t| t.leader().is_some());
        if self.leader() != Some(leader) {
            let now = self.leader().unwrap();
            self.ticks(2);
            self.node(now).transfer(GROUP, m(leader)).unwrap();
        }
        self.ticks_until(60, |t| t.leader() == Some(leader) && t.is_asleep());
    }

    /// Node 1, which leads, has this as a learner, until everybody sleeps.
    pub fn learns(&mut self, steps: &[Step]) {
        self.node(1).change(GROUP, steps).unwrap();
        self.ticks_until(100, |t| t.is_asleep() && !t.status(1).members.learners.is_empty());
    }

    pub fn is_asleep(&self) -> bool {
        self.nodes.values().all(|node| node.awake() == 0)
    }

    pub fn has(&self, event: &Event) -> bool {
        self.events.iter().any(|(_, e)| e == event)
    }
}
