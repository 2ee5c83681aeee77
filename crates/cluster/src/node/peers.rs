//! Who is heard of. One frame a tick says that a node lives, for all of its groups; while nothing is heard of it, it is
//! suspected.

use super::Groups;
use crate::encoding::Malformed;
use crate::frame::{self, Digest, Item, NODES_LIMIT};
use crate::group::{Event, Lie};
use crate::identity::{GroupId, MemberId, NodeId};
use bytes::Bytes;
use raft::eraftpb::{Message, MessageType};
use std::collections::{BTreeMap, VecDeque};

/// Why a frame of a peer, or a part of it, does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejected {
    /// It can't be read; nothing of it counts.
    Malformed(Malformed),
    /// It is of an earlier start of the peer than is known; nothing of it counts.
    OldIncarnation { known: u64 },
    /// These parts can't be true; all others count.
    Lies(Vec<(GroupId, Lie)>),
}

#[derive(Default)]
struct Peer {
    incarnation: u64,
    heard: bool,
    /// Ticks since something was heard of it.
    silence: u32,
    /// Whether something was said to it since the last tick.
    said: bool,
    /// Groups of which it is still to be told where they stand here.
    digests: VecDeque<GroupId>,
    /// Whether it said that its log failed; it is heard again only after a start.
    failed: bool,
    /// Of whom it hears nothing, as it said last.
    unheard: Vec<NodeId>,
    /// Ticks since it said so; it says so each tick.
    unheard_age: u32,
    /// Ticks for which it has been cut off from here, but not from all others.
    cut_for: u32,
}

/// What is known of whom a peer hears that is heard here.
pub(super) struct View {
    pub node: NodeId,
    unheard: Vec<NodeId>,
}

impl View {
    pub fn hears(&self, node: NodeId) -> bool {
        node == self.node || !self.unheard.contains(&node)
    }
}

#[derive(Default)]
pub(super) struct Peers {
    list: BTreeMap<NodeId, Peer>,
    silent: Vec<NodeId>,
}

impl Peers {
    pub fn is_heard(&self, node: NodeId) -> bool {
        self.list.get(&node).is_some_and(|peer| peer.heard)
    }

    pub fn reachable(&self) -> impl Fn(NodeId) -> bool + use<> {
        let heard: Vec<_> = self
            .list
            .iter()
            .filter(|(_, p)| p.heard)
            .map(|(node, _)| *node)
            .collect();
        move |node| heard.contains(&node)
    }

    pub fn heard(&self) -> Vec<NodeId> {
        let heard = self.list.iter().filter(|(_, peer)| peer.heard);
        heard.map(|(node, _)| *node).collect()
    }

    pub fn views(&self) -> Vec<View> {
        let heard = self.list.iter().filter(|(_, peer)| peer.heard);
        heard
            .map(|(node, peer)| View {
                node: *node,
                unheard: peer.unheard.clone(),
            })
            .collect()
    }

    /// Whether something was heard of the node within so many ticks, or since the start.
    pub fn spoke_within(&self, node: NodeId, ticks: u32) -> bool {
        self.list.get(&node).is_some_and(|peer| peer.silence <= ticks)
    }

    /// Who is cut off from here though others hear it, for `after` ticks, and once more each second while that lasts.
    pub fn take_cut(&mut self, me: NodeId, after: u32) -> Vec<NodeId> {
        let views = self.views();
        let mut cut = Vec::new();
        for (&node, peer) in &mut self.list {
            let missing = !peer.heard || peer.unheard.contains(&me);
            let lives = views.iter().any(|view| view.node != node && view.hears(node));
            peer.cut_for = match missing && lives {
                true => peer.cut_for + 1,
                false => 0,
            };
            if peer.cut_for >= after && (peer.cut_for - after).is_multiple_of(10) {
                cut.push(node);
            }
        }
        cut
    }

    pub fn incarnation_of(&self, node: NodeId) -> Option<u64> {
        self.list.get(&node).map(|peer| peer.incarnation)
    }

    pub fn said(&mut self, node: NodeId) {
        if let Some(peer) = self.list.get_mut(&node) {
            peer.said = true;
        }
    }

    /// To whom nothing was said in the last tick: an empty frame says that this node lives.
    pub fn take_silent(&mut self) -> Vec<NodeId> {
        std::mem::take(&mut self.silent)
    }
}

impl Groups {
    /// A node that groups may be shared with. It is said to live once it is heard of.
    pub fn add_peer(&mut self, node: NodeId) {
        if node != self.node {
            self.peers.list.entry(node).or_default();
        }
    }

    /// A node that left: nothing is said to it any more.
    pub fn forget_peer(&mut self, node: NodeId) {
        self.suspect(node);
        self.peers.list.remove(&node);
        self.peers.silent.retain(|silent| *silent != node);
    }

    /// Takes a frame of a peer that has proven who it is.
    ///
    /// # Errors
    /// It, or a part of it, can't be true. The peer or this node is broken: that is worth a line of log.
    pub fn receive(&mut self, from: NodeId, frame: &Bytes) -> Result<(), Rejected> {
        let (incarnation, items) = frame::read(frame).map_err(Rejected::Malformed)?;
        let peer = self.peers.list.entry(from).or_default();
        if incarnation < peer.incarnation {
            let known = peer.incarnation;
            return Err(Rejected::OldIncarnation { known });
        }
        let restarted = incarnation > peer.incarnation;
        if self.failed || peer.failed && !restarted {
            return Ok(());
        }
        peer.failed = false;
        peer.incarnation = incarnation;
        peer.silence = 0;
        if restarted && peer.heard {
            self.suspect(from);
        }
        if restarted || !self.peers.is_heard(from) {
            self.hear(from);
        }
        let mut lies = Vec::new();
        for item in items {
            match item {
                Item::Raft(group, message) => self.step(from, group, message, &mut lies),
                Item::Sleep(group, message) => {
                    if message.from as u32 == from.0 {
                        let _ = self.with(group, |group, _, out| group.may_sleep(&message, out));
                    }
                }
                Item::Digest(digest) => self.compare(from, &digest),
                Item::Gone { group, to, gone } => {
                    let reachable = self.peers.reachable();
                    let _ = self.with(group, |group, _, out| {
                        group.told(from, to, gone, &reachable, out);
                    });
                }
                Item::Ask { round, questions } => self.answer(from, round, &questions),
                Item::Answer { round, deposed } => self.answered(from, round, &deposed),
                Item::Unheard(nodes) => {
                    if let Some(peer) = self.peers.list.get_mut(&from) {
                        (peer.unheard, peer.unheard_age) = (nodes, 0);
                    }
                }
                Item::Failed => {
                    self.suspect(from);
                    if let Some(peer) = self.peers.list.get_mut(&from) {
                        peer.failed = true;
                    }
                    break;
                }
            }
        }
        match lies.is_empty() {
            true => Ok(()),
            false => Err(Rejected::Lies(lies)),
        }
    }

    fn step(&mut self, from: NodeId, group: GroupId, message: Message, lies: &mut Vec<(GroupId, Lie)>) {
        // Who hands its leaderships over takes none.
        if self.yields() && message.get_msg_type() == MessageType::MsgTimeoutNow {
            return;
        }
        if message.from as u32 != from.0 {
            lies.push((group, Lie::Member));
            return;
        }
        let Some(member) = self.slots.get(group) else {
            let to = MemberId::from_number(message.to);
            return self.unknown(group, from, message.from, to);
        };
        let (farewell, counts) = member.judge(&message);
        if let Some(gone) = farewell {
            self.say_gone(group, from, message.from, gone);
        }
        if !counts {
            return;
        }
        if let Ok(Err(lie)) = self.with(group, |group, settings, _| group.step(message, settings)) {
            lies.push((group, lie));
        }
    }

    fn compare(&mut self, from: NodeId, digest: &Digest) {
        if digest.member as u32 != from.0 {
            return;
        }
        let Some(member) = self.slots.get(digest.group) else {
            return self.unknown(digest.group, from, digest.member, None);
        };
        if let Some(gone) = member.farewell(digest.member) {
            self.say_gone(digest.group, from, digest.member, gone);
        }
        let told = self.with(digest.group, |group, settings, _| {
            group.compare(digest, settings).then(|| group.digest())
        });
        if let Ok(Some(own)) = told {
            self.out.send.push((from, Item::Digest(own)));
        }
    }

    /// The link to a peer is down, or its host knows otherwise that it doesn't answer.
    pub fn suspect(&mut self, node: NodeId) {
        match self.peers.list.get_mut(&node) {
            Some(peer) if peer.heard => {
                peer.heard = false;
                peer.digests = VecDeque::new();
                peer.unheard = Vec::new();
            }
            _ => return,
        }
        self.out.events.push(Event::Suspected(node));
        let reachable = self.peers.reachable();
        let is_led_there = |group: &crate::group::Group| group.leader().is_some_and(|it| it.node == node);
        let led_there = self.slots.groups().filter(|group| is_led_there(group)).count();
        // Ten thousand groups don't ask at once.
        let a_tick = led_there.div_ceil(self.settings.elections_spread as usize);
        let a_tick = a_tick.max(self.settings.elections_at_once);
        let (yields, drained) = (self.yields(), &self.drained);
        let mut before = 0;
        for slot in 0..self.slots.len() {
            if let Some(group) = self.slots.at_mut(slot) {
                let late = (before / a_tick) as u32;
                before += usize::from(is_led_there(group));
                group.suspect(node, &self.settings, &reachable, (yields, drained), late);
                self.slots.touch_if_awake(slot);
            }
        }
    }

    fn hear(&mut self, node: NodeId) {
        let Some(peer) = self.peers.list.get_mut(&node) else {
            return;
        };
        peer.heard = true;
        let shared = |group: &crate::group::Group| group.membership().members().any(|m| m.node == node);
        let groups = self.slots.groups().filter(|group| shared(group));
        peer.digests = groups.map(|group| group.id).collect();
        self.out.events.push(Event::Heard(node));
        let reachable = self.peers.reachable();
        for slot in 0..self.slots.len() {
            let Some(group) = self.slots.at_mut(slot) else {
                continue;
            };
            group.greet(node, &mut self.out);
            if !shared(group) {
                continue;
            }
            let again = group.offer_again(node);
            if group.lacks_leader(&self.settings) {
                group.lose_leader(&reachable);
            } else if !again {
                continue;
            }
            self.slots.touch_if_awake(slot);
        }
    }

    pub(super) fn tick_peers(&mut self) {
        let mut suspects = Vec::new();
        let unheard: Vec<_> = self.peers.list.iter().filter(|(_, peer)| !peer.heard).collect();
        let unheard: Vec<_> = unheard.iter().take(NODES_LIMIT).map(|(node, _)| **node).collect();
        for (&node, peer) in &mut self.peers.list {
            if peer.heard && !unheard.is_empty() {
                self.out.send.push((node, Item::Unheard(unheard.clone())));
            }
            peer.unheard_age += 1;
            if peer.unheard_age > self.settings.suspect_after {
                peer.unheard = Vec::new();
            }
            if !std::mem::take(&mut peer.said) {
                self.peers.silent.push(node);
            }
            peer.silence = peer.silence.saturating_add(1);
            if peer.heard && peer.silence >= self.settings.suspect_after {
                suspects.push(node);
            }
            let some = peer.digests.len().min(self.settings.digests_a_tick);
            for group in peer.digests.drain(..some) {
                let Some(slot) = self.slots.find(group) else {
                    continue;
                };
                if let Some(group) = self.slots.at_mut(slot) {
                    group.miss(node);
                    self.out.send.push((node, Item::Digest(group.digest())));
                }
                self.slots.touch_if_awake(slot);
            }
        }
        for node in suspects {
            self.suspect(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;

    #[test]
    fn nothing_is_said_any_more_to_a_node_that_left() {
        let mut trial = Trial::new(3, 2);
        trial.ticks(5);
        trial.nodes.remove(&3);
        for node in [1, 2] {
            trial.node(node).forget_peer(NodeId(3));
        }
        trial.settle();
        let said = trial.said.len();
        let turn = trial.node(1).turn();
        assert!(turn.send.iter().all(|(to, _)| *to != NodeId(3)));
        trial.ticks(20);
        assert!(trial.said[said..].iter().all(|(_, to, _)| *to != 3));
        assert!(!trial.nodes[&1].peers.list.contains_key(&NodeId(3)));
    }
}
