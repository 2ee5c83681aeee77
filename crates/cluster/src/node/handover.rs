//! Leaderships that this node should not keep: its disk is sick, it is about to close or in maintenance, or a member can't
//! reach it.
//!
//! A message for a node that this one can't reach is not passed on through a third here; that is the links' matter.

use super::Groups;
use crate::frame::Item;
use crate::identity::{GroupId, NodeId};
use std::collections::BTreeSet;

/// What the host knows of the node's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    Syncs,
    /// What was appended so many ticks ago isn't synced yet.
    Hangs {
        ticks: u32,
    },
    /// A write or a sync failed. Nothing more can be promised by this start of the node.
    Failed,
}

impl Groups {
    /// Takes word of the node's log. A log that hangs for a second hands over what is led here to members that keep up,
    /// and asks for no votes; one that failed ends it all: peers are told so in the next turn, and after that nothing
    /// is said, answered or appended any more.
    pub fn disk(&mut self, disk: Disk) {
        match disk {
            Disk::Syncs => self.hangs = false,
            Disk::Hangs { ticks } => self.hangs = ticks >= self.settings.hang_after,
            Disk::Failed if !self.failed => self.fail(),
            Disk::Failed => {}
        }
    }

    /// The node is about to close: what is led here is handed over, some of it with each tick, where another member can lead.
    pub fn hand_over(&mut self) {
        self.closing = true;
    }

    /// These nodes are in maintenance from now on, and no others. What they lead they hand over, some of it with each tick, to
    /// members that are not, and are elected only where these can't be. Nodes may learn of it at different times: it is a wish,
    /// and nothing that is safe rests on it.
    pub fn drain(&mut self, nodes: BTreeSet<NodeId>) {
        self.drained = nodes;
    }

    /// Hands one group over to a member that keeps up, if it is led here and there is one. Whether that was begun.
    pub fn hand_over_group(&mut self, group: GroupId) -> bool {
        self.hand_over_to(group, &|_| true)
    }

    /// The same to the member on this node, unless that is in maintenance.
    pub fn hand_over_group_to(&mut self, group: GroupId, to: NodeId) -> bool {
        !self.drained.contains(&to) && self.hand_over_to(group, &|node| node == to)
    }

    fn hand_over_to(&mut self, group: GroupId, fits: &dyn Fn(NodeId) -> bool) -> bool {
        let (me, reachable) = (self.node, self.peers.reachable());
        let Some(slot) = self.slots.find(group) else {
            return false;
        };
        let electors = |node| node == me || reachable(node);
        let led = self.slots.at_mut(slot).filter(|group| group.leads());
        let begun = led.is_some_and(|group| group.hand_over(&reachable, &electors, fits));
        if begun {
            self.slots.touch(slot);
        }
        begun
    }

    /// How many groups are led here.
    pub fn leading(&self) -> usize {
        self.slots.groups().filter(|group| group.leads()).count()
    }

    /// Whether leaderships should be elsewhere.
    pub(super) fn yields(&self) -> bool {
        self.hangs || self.closing
    }

    fn fail(&mut self) {
        self.failed = true;
        // What waits here was to be said or written by a node that could promise something.
        self.out.append.clear();
        self.out.send.clear();
        self.peers.take_silent();
        for slot in 0..self.slots.len() {
            if let Some(group) = self.slots.at_mut(slot) {
                group.end_office(&mut self.out);
            }
        }
        self.proofs.give_up(&mut self.out);
        for node in self.peers.heard() {
            self.out.send.push((node, Item::Failed));
        }
    }

    /// Hands over what has to be elsewhere, so much in a tick that its elections are no storm.
    pub(super) fn tick_handovers(&mut self) {
        let (me, reachable) = (self.node, self.peers.reachable());
        let drained = self.drained.clone();
        let serves = |node: NodeId, _: &[NodeId]| !drained.contains(&node);
        if self.yields() {
            // Its own vote would have to be synced, or is about to be gone.
            let others = |node| node != me && reachable(node);
            self.hand_over_if(&|_| true, &others, &serves);
            self.hand_over_if(&|_| true, &others, &|_, _| true);
        } else if drained.contains(&me) {
            self.hand_over_if(&|_| true, &|node| node == me || reachable(node), &serves);
        }
        for cut in self.peers.take_cut(self.node, self.settings.cut_after) {
            let (me, views) = (self.node, self.peers.views());
            // A node of which nobody hears is down, and not a reason to look for somebody who hears it.
            let lives = |node| node == me || views.iter().any(|view| view.hears(node));
            let of = |node: NodeId| views.iter().find(move |view| view.node == node);
            // Whom a member hears that isn't heard here itself nobody knows.
            let both = |one: NodeId, other: NodeId| {
                let hears = |a, b| of(a).is_none_or(|view| view.hears(b));
                !lives(other) || hears(one, other) && hears(other, one)
            };
            // One in maintenance would hand it back.
            let fits = |node: NodeId, members: &[NodeId]| {
                !drained.contains(&node) && members.iter().all(|member| both(node, *member))
            };
            self.hand_over_if(&|members| members.contains(&cut), &lives, &fits);
        }
    }

    /// Hands over what is led here of groups with members on such nodes, if `electors` are enough, to a node that fits
    /// those members.
    fn hand_over_if(
        &mut self,
        of: &dyn Fn(&[NodeId]) -> bool,
        electors: &dyn Fn(NodeId) -> bool,
        fits: &dyn Fn(NodeId, &[NodeId]) -> bool,
    ) {
        let reachable = self.peers.reachable();
        let mut left = self.settings.handovers_a_tick;
        for slot in 0..self.slots.len() {
            let Some(group) = self.slots.at_mut(slot).filter(|group| group.leads()) else {
                continue;
            };
            let nodes: Vec<_> = group.membership().members().map(|m| m.node).collect();
            if of(&nodes) && group.hand_over(&reachable, electors, &|node| fits(node, &nodes)) {
                self.slots.touch(slot);
                left = left.saturating_sub(1);
                if left == 0 {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{GROUP, Trial, m};
    use crate::{Event, Refused, Step};
    use raft::eraftpb::MessageType;

    #[test]
    fn a_leader_whose_disk_hangs_for_a_second_hands_over_and_leads_again_only_when_it_syncs() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.hanging.insert(1);
        let x = trial.node(1).propose(GROUP, "x".into()).unwrap();
        trial.node(1).disk(Disk::Hangs { ticks: 9 });
        trial.ticks(3);
        assert_eq!(trial.leader(), Some(1));
        trial.node(1).disk(Disk::Hangs { ticks: 10 });
        let ticks = trial.ticks_until(10, |t| t.leader().is_some_and(|leader| leader != 1));
        assert!(ticks <= 2, "{ticks}");
        // What it hadn't synced itself is committed by the others.
        let new = trial.leader().unwrap();
        let y = trial.node(new).propose(GROUP, "y".into()).unwrap();
        trial.ticks(1);
        assert_eq!((y, trial.status(new).committed), (x + 2, x + 2));
        let back = trial.node(new).transfer(GROUP, m(1));
        trial.ticks(20);
        assert_eq!((back, trial.leader()), (Ok(()), Some(new)));
        trial.node(1).disk(Disk::Syncs);
        trial.hanging.clear();
        trial.ticks_until(60, Trial::is_asleep);
        trial.led_by(1);
    }

    #[test]
    fn a_node_that_closes_hands_over_what_sleeps_and_keeps_what_nobody_else_can_lead() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        let alone = crate::GroupId(2);
        let new = crate::Recovered::new_group(m(1), crate::Membership::of(&[m(1)]));
        trial.node(1).open(alone, new).unwrap();
        trial.ticks(30);
        assert_eq!(trial.node(1).leading(), 2);
        trial.node(1).hand_over();
        trial.ticks_until(3, |t| t.nodes[&1].leading() == 1);
        trial.ticks_until(60, Trial::is_asleep);
        assert_eq!(trial.node(1).status(alone).unwrap().leader, Some(m(1)));
    }

    /// These are in maintenance, and all nodes know it.
    fn drain(trial: &mut Trial, nodes: &[u32]) {
        let drained: BTreeSet<NodeId> = nodes.iter().map(|node| NodeId(*node)).collect();
        trial.nodes.values_mut().for_each(|it| it.drain(drained.clone()));
    }

    #[test]
    fn a_node_in_maintenance_hands_over_what_sleeps_and_leads_again_once_it_is_revived() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.ticks(30);
        drain(&mut trial, &[1, 2]);
        trial.ticks_until(5, |t| t.leader() == Some(3));
        trial.ticks_until(60, Trial::is_asleep);
        // Whom it was handed to by somebody who did not know hands it on.
        trial.node(3).transfer(GROUP, m(2)).unwrap();
        trial.ticks_until(20, |t| t.leader() == Some(2));
        trial.ticks_until(20, |t| t.leader() == Some(3));
        drain(&mut trial, &[]);
        trial.node(3).transfer(GROUP, m(1)).unwrap();
        trial.ticks(30);
        assert_eq!(trial.leader(), Some(1));
    }

    #[test]
    fn a_group_goes_to_the_member_that_is_named_if_that_one_has_everything() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.ticks(30);
        let to =
            |trial: &mut Trial, from: u32, to: u32| trial.node(from).hand_over_group_to(GROUP, NodeId(to));
        drain(&mut trial, &[2]);
        assert!(!to(&mut trial, 1, 2), "it is in maintenance");
        drain(&mut trial, &[]);
        assert!(!to(&mut trial, 1, 9) && !to(&mut trial, 1, 1) && !to(&mut trial, 2, 3));
        assert!(to(&mut trial, 1, 3));
        trial.ticks_until(5, |t| t.leader() == Some(3));
        trial.ticks(30);
        trial.cut(3, 2);
        trial.node(3).propose(GROUP, "x".into()).unwrap();
        trial.settle();
        assert_eq!(trial.status(3).committed, trial.status(3).last);
        assert!(!to(&mut trial, 3, 2), "it lacks an entry");
        assert!(to(&mut trial, 3, 1));
        trial.ticks_until(5, |t| t.leader() == Some(1));
    }

    #[test]
    fn of_two_nodes_the_one_in_maintenance_hands_over_and_votes_for_the_other() {
        let mut trial = Trial::new(2, 2);
        trial.led_by(1);
        drain(&mut trial, &[1]);
        trial.ticks_until(5, |t| t.leader() == Some(2));
        trial.ticks(100);
        assert_eq!(trial.leader(), Some(2));
    }

    #[test]
    fn a_node_in_maintenance_is_elected_where_nobody_else_can_be() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.cut(3, 1);
        trial.cut(3, 2);
        trial.node(1).propose(GROUP, "x".into()).unwrap();
        trial.settle();
        trial.nodes.remove(&1);
        trial.cuts.clear();
        drain(&mut trial, &[2]);
        // Node 3 lacks an entry, of which a majority has said that it has it.
        let term = trial.status(2).term;
        trial.ticks_until(400, |t| t.leader() == Some(3) && t.status(3).term > term + 1);
        // All that are left are in maintenance: it goes on.
        drain(&mut trial, &[2, 3]);
        trial.node(3).propose(GROUP, "y".into()).unwrap();
        trial.ticks(60);
        let status = trial.status(3);
        assert_eq!((trial.leader(), status.committed), (Some(3), status.last));
    }

    #[test]
    fn a_node_whose_log_failed_says_so_at_once_and_then_neither_votes_nor_speaks_nor_appends() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.node(1).propose(GROUP, "x".into()).unwrap();
        let question = trial.node(1).prove(GROUP).unwrap();
        trial.node(1).disk(Disk::Failed);
        let said = trial.said.len();
        trial.settle();
        let last: Vec<_> = trial.said[said..]
            .iter()
            .filter(|(from, ..)| *from == 1)
            .collect();
        assert_eq!(last.len(), 2, "{last:?}");
        assert!(last.iter().all(|(.., item)| *item == Item::Failed));
        for node in [2, 3] {
            assert!(trial.events.contains(&(node, Event::Suspected(NodeId(1)))));
        }
        let (group, records) = (GROUP, vec!["x".into()]);
        assert!(trial.has(&Event::Returned { group, records }));
        assert!(trial.has(&Event::Unproven { group, question }));
        let said = trial.said.len();
        trial.ticks_until(10, |t| t.leader().is_some_and(|leader| leader != 1));
        trial.ticks(30);
        assert!(trial.said[said..].iter().all(|(from, ..)| *from != 1));
        assert_eq!(trial.node(1).propose(GROUP, "x".into()), Err(Refused::Failed));
        assert_eq!(trial.node(1).prove(GROUP), Err(Refused::Failed));
        assert_eq!(
            trial.node(1).change(GROUP, &[Step::Remove(m(2))]),
            Err(Refused::Failed)
        );
        assert!(trial.node(1).turn().append.is_empty());
    }

    #[test]
    fn what_was_voted_before_the_log_failed_is_not_answered_afterwards() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.hanging.insert(3);
        trial.cut(1, 2);
        trial.cut(1, 3);
        trial.ticks(8);
        trial.node(3).disk(Disk::Failed);
        let said = trial.said.len();
        trial.hanging.clear();
        trial.node(3).synced(u64::MAX);
        trial.ticks(60);
        let votes = |item: &Item| matches!(item, Item::Raft(_, m) if m.get_msg_type() == MessageType::MsgRequestVoteResponse);
        assert!(
            !trial.said[said..]
                .iter()
                .any(|(from, _, item)| *from == 3 && votes(item))
        );
        assert_ne!(trial.leader(), Some(2));
    }

    #[test]
    fn a_leader_that_a_member_cannot_reach_directly_leads_no_more_after_a_second() {
        let mut trial = Trial::new(4, 4);
        trial.led_by(1);
        // Only the leader misses it: the member itself hears the leader, and doesn't look for another one.
        trial.cuts.insert((4, 1));
        trial.ticks_until(20, |t| {
            t.leader().is_some_and(|leader| leader != 1 && leader != 4)
        });
        trial.ticks_until(60, Trial::is_asleep);
        let leader = trial.leader();
        trial.ticks(100);
        assert_eq!(trial.leader(), leader);
    }

    #[test]
    fn a_leader_stays_if_the_member_is_down_or_nobody_reaches_all() {
        let mut trial = Trial::new(4, 4);
        trial.led_by(1);
        (1..=3).for_each(|node| trial.cut(node, 4));
        trial.ticks(200);
        assert_eq!(trial.leader(), Some(1));
        trial.cuts.clear();
        trial.ticks(30);
        trial.led_by(1);
        trial.cuts.extend([(4, 1), (4, 2), (3, 2)]);
        let said = trial.said.len();
        trial.ticks(100);
        let transfer =
            |item: &Item| matches!(item, Item::Raft(_, m) if m.get_msg_type() == MessageType::MsgTimeoutNow);
        assert!(
            !trial.said[said..]
                .iter()
                .any(|(from, _, item)| *from == 1 && transfer(item))
        );
    }

    #[test]
    fn a_member_that_abstains_votes_and_leads_only_until_somebody_else_can() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.node(2).abstain(GROUP);
        trial.node(1).transfer(GROUP, m(2)).unwrap();
        trial.ticks(30);
        assert_eq!(trial.leader(), Some(1), "asked to lead it does not");
        trial.cut(1, 2);
        trial.cut(1, 3);
        for _ in 0..60 {
            trial.ticks(1);
            assert_ne!(trial.leader(), Some(2), "another one can");
        }
        assert_eq!(trial.leader(), Some(3), "by its vote");
        trial.node(3).propose(GROUP, "x".into()).unwrap();
        trial.settle();
        let status = trial.status(3);
        assert_eq!(status.committed, status.last, "by its entries");
        // Now only node 1 serves anybody, and it lacks what the others have.
        trial.node(3).abstain(GROUP);
        trial.cuts.clear();
        trial.ticks_until(100, |t| t.leader() == Some(1));
        trial.ticks(100);
        assert_eq!(trial.leader(), Some(1));
        trial.nodes.remove(&3);
        trial.ticks(100);
        assert_eq!(trial.leader(), Some(1));
    }

    /// The only one that could serve is behind, and the others have nobody who leads them.
    #[test]
    fn a_member_that_abstains_leads_where_others_lack_what_it_has_and_hands_over() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.cut(3, 1);
        trial.cut(3, 2);
        trial.node(1).propose(GROUP, "x".into()).unwrap();
        trial.settle();
        trial.nodes.remove(&1);
        trial.cuts.clear();
        trial.node(2).abstain(GROUP);
        let term = trial.status(2).term;
        trial.ticks_until(400, |t| t.leader() == Some(3) && t.status(3).term > term + 1);
        let (two, three) = (trial.status(2), trial.status(3));
        assert_eq!(two.last, three.last);
    }
}
