//! Frames of peers at a node with groups in all states: honest ones, some of them bent, late or doubled, and bytes that
//! never were one. Nothing may panic, and no more bodies are held than came in.
#![no_main]

use bytes::Bytes;
use cluster::{
    Disk, Event, GroupId, Groups, Mark, MemberId, Membership, NodeId, Recovered, Settings, Status, Step,
};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;

const NODES: u32 = 3;

fn m(node: u32) -> MemberId {
    MemberId::first(NodeId(node))
}

/// One group alone, one of three, one of which node 1 is no member yet, and one whose log begins behind a checkpoint.
fn members(group: u64) -> (Mark, Membership) {
    match group {
        1 => (Mark::default(), Membership::of(&[m(1)])),
        2 => (Mark::default(), Membership::of(&[m(1), m(2), m(3)])),
        3 => (Mark::default(), Membership::of(&[m(2), m(3)])),
        _ => (Mark { index: 5, term: 2 }, Membership::of(&[m(1), m(2), m(3)])),
    }
}

struct Peers {
    nodes: Vec<Groups>,
    /// Those that there are.
    groups: Vec<GroupId>,
    incarnations: u64,
    network: VecDeque<(u32, u32, Bytes)>,
    /// What was delivered before: it may come again, at any time.
    late: Vec<(u32, u32, Bytes)>,
    received: usize,
}

impl Peers {
    /// `open` says which of the groups there are, bit by bit: few of them make a quick run.
    fn new(open: u8) -> Self {
        let open = if open % 16 == 0 { 15 } else { open };
        let numbers: Vec<u64> = (1..=4).filter(|group| open >> (group - 1) & 1 == 1).collect();
        let settings = || Settings {
            uncommitted_bytes: 4_096,
            message_bytes: 64,
            in_flight: 3,
            kept_bytes: 0,
            ..Settings::default()
        };
        let nodes = (1..=NODES).map(|node| {
            let mut groups = Groups::new(NodeId(node), 1, settings());
            (1..=NODES).for_each(|peer| groups.add_peer(NodeId(peer)));
            // The one of a single member is opened elsewhere only by those who bend frames.
            for group in numbers.iter().filter(|group| **group != 1 || node == 1) {
                let (base, members) = members(*group);
                let new = Recovered::at(m(node), base, base.index, members);
                groups.open(GroupId(*group), new).expect("a sound log");
            }
            groups
        });
        Self {
            nodes: nodes.collect(),
            groups: numbers.iter().copied().map(GroupId).collect(),
            incarnations: 1,
            network: VecDeque::new(),
            late: Vec::new(),
            received: 0,
        }
    }

    fn collect(&mut self, node: u32, synced: bool) {
        let Some(groups) = self.nodes.get_mut(node as usize - 1) else {
            return;
        };
        let turn = groups.turn();
        for (to, frame) in turn.send {
            self.network.push_back((node, to.0, frame));
        }
        for event in turn.events {
            match event {
                Event::Fetch { group, at, .. } if synced => {
                    groups.installed(group, at.index);
                }
                // What was read is never what was asked for: this log keeps nothing.
                Event::Read { group, from, .. } => {
                    groups.fetched(group, from, &[Bytes::from_static(&[0; 18])])
                }
                _ => {}
            }
        }
        if synced {
            groups.synced(turn.number);
        }
    }

    fn receive(&mut self, from: u32, to: u32, frame: &Bytes) {
        self.received += frame.len();
        // Whoever bends frames may name members on nodes that don't exist.
        let Some(groups) = self.nodes.get_mut(to as usize - 1) else {
            return;
        };
        let _ = groups.receive(NodeId(from), frame);
        let held = groups.held_bytes();
        assert!(held <= self.received + 4 * 4_096, "{held}");
    }

    fn act(&mut self, [kind, which, at, value]: [u8; 4], rest: &mut &[u8]) {
        let node = u32::from(which) % NODES + 1;
        let group = GroupId(u64::from(at) % 6);
        let groups = &mut self.nodes[node as usize - 1];
        match kind % 16 {
            0 | 1 => self.nodes.iter_mut().for_each(Groups::tick),
            2 => drop(groups.propose(group, vec![value; usize::from(value)].into())),
            3 => {
                let member = m(u32::from(value >> 4) % 4 + 1);
                let steps = [Step::Voter(member), Step::Learner(member), Step::Remove(member)];
                drop(groups.change(group, &steps[usize::from(value) % 3..][..1]));
            }
            4 => drop(groups.transfer(group, m(u32::from(value) % NODES + 1))),
            5 => drop(groups.prove(group)),
            6 => groups.checkpointed(group, value.into(), (value / 2).into()),
            7 => groups.suspect(NodeId(u32::from(value) % NODES + 1)),
            8 => groups.disk(match value {
                255 => Disk::Failed,
                ticks => Disk::Hangs { ticks: ticks.into() },
            }),
            9 if value > 200 => groups.delete(group),
            9 => {
                groups.close(group);
                let (base, members) = members(group.0);
                let _ = groups.open(group, Recovered::at(m(node), base, base.index, members));
            }
            // Bytes that never were a frame, behind a header that is one.
            10 => {
                let (raw, left) = rest.split_at(rest.len().min(value.into()));
                *rest = left;
                self.incarnations += u64::from(at == 255);
                let mut frame = vec![1, self.incarnations.min(127) as u8];
                frame.extend_from_slice(raw);
                self.receive(u32::from(which >> 4) % 4 + 1, node, &frame.into());
            }
            11 if !self.late.is_empty() => {
                let (from, to, frame) = self.late[usize::from(value) % self.late.len()].clone();
                self.receive(from, to, &frame);
            }
            // An honest frame that was bent.
            12 | 13 => {
                if let Some((from, to, frame)) = self.network.pop_front() {
                    let mut bent = frame.to_vec();
                    let place = usize::from(at) % bent.len();
                    bent[place] = bent[place].wrapping_add(value);
                    self.receive(from, to, &bent.into());
                }
            }
            _ => self.deliver(usize::from(value) % 8),
        }
        (1..=NODES).for_each(|node| self.collect(node, which < 200));
    }

    /// A tick of all clocks, and whatever is said over it arrives.
    fn tick(&mut self) {
        self.nodes.iter_mut().for_each(Groups::tick);
        (1..=NODES).for_each(|node| self.collect(node, true));
        while !self.network.is_empty() {
            self.deliver(8);
        }
    }

    /// Whether each group has a leader that is one of the nodes.
    fn are_led(&self) -> bool {
        let leads = |status: Status| status.leader == Some(status.me);
        self.groups.iter().all(|group| {
            let mut nodes = self.nodes.iter();
            nodes.any(|node| node.status(*group).is_some_and(leads))
        })
    }

    fn deliver(&mut self, frames: usize) {
        for _ in 0..frames {
            if let Some((from, to, frame)) = self.network.pop_front() {
                self.receive(from, to, &frame);
                self.late.push((from, to, frame));
                self.collect(to, true);
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&open, mut rest)) = input.split_first() else {
        return;
    };
    let mut peers = Peers::new(open);
    // Everything is led when it begins, and has rested for a while, perhaps.
    let ticks = (0..8).find(|_| {
        peers.tick();
        peers.are_led()
    });
    assert!(ticks.is_some(), "nobody leads");
    (0..open >> 5).for_each(|_| peers.tick());
    while let Some((action, left)) = rest.split_first_chunk::<4>() {
        rest = left;
        peers.act(*action, &mut rest);
    }
});
