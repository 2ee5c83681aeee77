//! Groups that are closed or deleted here, and what peers are told who don't know it yet.
//!
//! That a group was deleted, or who its members are, is the catalog's to say; what a peer tells is a reason to look
//! there. A member that was removed stops by itself, because the peer tells at which entry: who has no later one of the
//! group can't have been added again.

use super::Groups;
use crate::frame::{Gone, Item};
use crate::group::Event;
use crate::identity::{GroupId, MemberId, NodeId};

/// So many deleted groups are remembered, the latest ones. Of others the host is asked.
const REMEMBERED: usize = 1 << 16;

impl Groups {
    /// Takes a member out of memory. Nothing is said or told of it any more, but to its followers that it doesn't lead;
    /// what is in the log stays there, and it may be opened again. Whether it was open.
    pub fn close(&mut self, group: GroupId) -> bool {
        let Some(member) = self.slots.get(group) else {
            return false;
        };
        self.out.send.retain(|(_, item)| item.group() != Some(group));
        member.say_closed(&mut self.out);
        self.slots.remove(group);
        self.proofs.forget(group);
        self.out.committed.retain(|committed| committed.group != group);
        self.out.events.retain(|event| event.group() != Some(group));
        true
    }

    /// The group exists no more, on no node. Peers that still speak of it are told so.
    pub fn delete(&mut self, group: GroupId) {
        self.close(group);
        self.gone.insert(group);
        if self.gone.len() > REMEMBERED {
            // Numbers are given out in order.
            self.gone.pop_first();
        }
    }

    /// A peer speaks of a group that isn't open here, as its member of this number, perhaps to one of this node's.
    pub(super) fn unknown(&mut self, group: GroupId, node: NodeId, speaker: u64, to: Option<MemberId>) {
        let to = to.filter(|member| member.node == self.node);
        if self.gone.contains(&group) {
            self.say_gone(group, node, speaker, Gone::Group);
        } else if self.strangers.insert((group, node, to)) {
            // It may be about to be opened: its leader says again what it said.
            self.out.events.push(Event::Unknown { group, node, to });
        }
    }

    pub(super) fn say_gone(&mut self, group: GroupId, node: NodeId, to: u64, gone: Gone) {
        self.out.send.push((node, Item::Gone { group, to, gone }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{GROUP, Trial, m};
    use crate::{Damage, MemberId, Membership, Recovered, Refused, Status, Step};

    fn member(node: u32, life: u32) -> MemberId {
        let node = NodeId(node);
        MemberId { node, life }
    }

    #[test]
    fn a_closed_member_is_silent_and_may_be_opened_again_in_the_slot_of_another_group() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.node(2).prove(GROUP).unwrap_err();
        trial.node(1).propose(GROUP, "x".into()).unwrap();
        let question = trial.node(1).prove(GROUP).unwrap();
        assert!(trial.node(1).close(GROUP));
        assert!(!trial.node(1).close(GROUP));
        let turn = trial.node(1).turn();
        assert_eq!(
            (turn.append, turn.committed, turn.events),
            (vec![], vec![], vec![])
        );
        assert_eq!(turn.send.len(), 2);
        let closed = turn.send.into_iter().map(|(to, frame)| (NodeId(1), to, frame));
        trial.deliver(closed);
        assert_eq!(trial.node(1).propose(GROUP, "x".into()), Err(Refused::Unknown));
        let other = Recovered::new_group(m(1), Membership::of(&[m(1)]));
        trial.node(1).open(GroupId(2), other).unwrap();
        trial.ticks_until(100, |t| t.leader().is_some_and(|leader| leader != 1));
        let unproven = |e: &Event| matches!(e, Event::Unproven { question: q, .. } if *q == question);
        assert!(!trial.events.iter().any(|(_, e)| unproven(e)));
        let again = || Recovered::new_group(m(1), Membership::of(&[m(1), m(2), m(3)]));
        trial.node(1).open(GROUP, again()).unwrap();
        assert_eq!(trial.node(1).open(GROUP, again()), Err(Damage::Open));
        trial.ticks_until(100, |t| t.is_asleep() && t.status(1).leader.is_some());
        assert_eq!(trial.node(1).status(GroupId(2)).unwrap().leader, Some(m(1)));
        assert_eq!(trial.refused, vec![]);
    }

    #[test]
    fn who_speaks_of_a_deleted_group_is_told_and_rests_and_one_that_nobody_knows_is_reported() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.node(2).delete(GROUP);
        trial.node(1).close(GROUP);
        let new = Recovered::new_group(m(2), Membership::of(&[m(2)]));
        assert_eq!(trial.node(2).open(GROUP, new), Err(Damage::Deleted));
        trial.node(3).suspect(NodeId(1));
        trial.ticks(100);
        let (group, by) = (GROUP, NodeId(2));
        assert!(trial.has(&Event::Gone { group, by }));
        let unknown = |event: &Event| matches!(event, Event::Unknown { node: NodeId(3), .. });
        assert!(trial.events.iter().any(|(_, event)| unknown(event)));
        assert!(trial.is_asleep());
        let said = trial.said.len();
        trial.ticks(100);
        assert!(trial.said[said..].iter().all(|(.., item)| item.group().is_none()));
    }

    #[test]
    fn so_many_deleted_groups_are_remembered_and_not_more() {
        let mut trial = Trial::new(1, 1);
        let node = trial.node(1);
        (1..=REMEMBERED as u64 + 10).for_each(|group| node.delete(GroupId(group)));
        assert_eq!(node.gone.len(), REMEMBERED);
        assert!(!node.gone.contains(&GroupId(10)));
        assert_eq!(node.slots.len(), 1);
    }

    /// Whoever began the group has left it, and a later member of the node is to be in it.
    #[test]
    fn a_member_that_knows_nobody_who_is_left_is_told_by_those_whom_its_host_names_that_it_is_none() {
        let mut trial = Trial::new(4, 3);
        trial.led_by(1);
        let new = Recovered::new_group(m(4), Membership::of(&[m(9)]));
        trial.node(4).open(GROUP, new).unwrap();
        trial
            .node(1)
            .change(GROUP, &[Step::Learner(member(4, 1))])
            .unwrap();
        trial.ticks(100);
        assert!(!trial.status(4).is_removed);
        let nodes = [1, 2].map(NodeId);
        trial.node(4).ask_after_itself(GROUP, m(4), &nodes);
        trial.ticks(5);
        assert!(trial.status(4).is_removed);
        trial.node(4).close(GROUP);
        trial.settle();
        trial.events.clear();
        trial.node(4).ask_after_itself(GROUP, member(4, 1), &nodes);
        trial.settle();
        let (group, node, to) = (GROUP, NodeId(1), Some(member(4, 1)));
        assert!(trial.has(&Event::Unknown { group, node, to }));
    }

    /// Node 3 was made a member while it was down, and nobody is left of those of whom it knows. Its node can be reached before
    /// the member is open.
    #[test]
    fn a_member_that_opens_after_its_node_was_heard_of_and_knows_nobody_who_is_left_is_given_everything() {
        let mut trial = Trial::new(3, 2);
        trial.led_by(1);
        trial.cut(1, 3);
        trial.cut(2, 3);
        trial.ticks(5);
        trial.learns(&[Step::Learner(m(3))]);
        trial.events.clear();
        trial.cuts.clear();
        trial.ticks_until(5, |t| t.events.contains(&(1, Event::Heard(NodeId(3)))));
        trial.ticks(100);
        let new = Recovered::new_group(m(3), Membership::of(&[m(9)]));
        trial.node(3).open(GROUP, new).unwrap();
        trial.ticks_until(20, |t| {
            t.is_asleep() && t.status(3).committed == t.status(1).committed
        });
        assert_eq!(trial.status(3).leader, Some(m(1)));
    }

    /// Node 3 was removed while it heard nothing.
    fn removed_unheard() -> Trial {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.cut(1, 3);
        trial.cut(2, 3);
        trial.ticks(5);
        trial.node(1).change(GROUP, &[Step::Remove(m(3))]).unwrap();
        trial.ticks_until(60, |t| {
            t.status(2).members == Membership::of(&[m(1), m(2)]) && t.nodes[&1].awake() == 0
        });
        trial
    }

    #[test]
    fn a_removed_member_learns_it_when_it_asks_and_disturbs_nobody() {
        let mut trial = removed_unheard();
        let term = trial.status(1).term;
        trial.cuts.clear();
        let mut woken = 0;
        for _ in 0..200 {
            trial.ticks(1);
            woken += trial.nodes[&1].awake() + trial.nodes[&2].awake();
        }
        assert!(trial.events.contains(&(3, Event::Removed(GROUP))));
        assert_eq!((trial.status(1).term, woken), (term, 0));
        assert!(trial.is_asleep());
        // It may come back, as long as it has its log.
        trial.learns(&[Step::Learner(m(3))]);
        trial.node(1).change(GROUP, &[Step::Voter(m(3))]).unwrap();
        trial.ticks_until(60, |t| t.is_asleep() && t.status(3).members.voters.len() == 3);
        trial.node(1).close(GROUP);
        trial.ticks_until(100, |t| t.leader().is_some());
    }

    #[test]
    fn a_member_that_was_removed_while_its_node_stood_still_is_told_though_everybody_sleeps() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        // It misses nobody afterwards, so it asks nobody where they stand.
        let stands_still = trial.nodes.remove(&3).unwrap();
        trial.ticks_until(20, |t| t.has(&Event::Suspected(NodeId(3))));
        trial.node(1).change(GROUP, &[Step::Remove(m(3))]).unwrap();
        trial.ticks_until(60, |t| {
            t.status(2).members == Membership::of(&[m(1), m(2)]) && t.is_asleep()
        });
        trial.nodes.insert(3, stands_still);
        trial.ticks_until(10, |t| t.events.contains(&(3, Event::Removed(GROUP))));
        assert!(trial.is_asleep());
    }

    #[test]
    fn a_member_that_can_be_reached_is_told_at_once_that_it_was_removed() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.node(1).change(GROUP, &[Step::Remove(m(3))]).unwrap();
        trial.settle();
        assert!(trial.events.contains(&(3, Event::Removed(GROUP))));
    }

    #[test]
    fn a_member_that_was_told_that_it_is_none_goes_by_no_change_before_that_of_which_it_hears_later() {
        let mut trial = Trial::new(4, 3);
        trial.led_by(1);
        let new = Recovered::new_group(m(4), Membership::of(&[m(1), m(2), m(3)]));
        trial.node(4).open(GROUP, new).unwrap();
        let before = trial.status(3).last;
        trial.node(1).change(GROUP, &[Step::Learner(m(4))]).unwrap();
        while trial.status(3).last == before {
            assert!(trial.step());
        }
        // It has the change, and not that it is committed.
        let Status { last, committed, .. } = trial.status(3);
        assert!(committed < last);
        [1, 2, 4].iter().for_each(|node| trial.cut(*node, 3));
        trial.ticks(5);
        trial.node(1).change(GROUP, &[Step::Remove(m(3))]).unwrap();
        trial.ticks_until(60, |t| {
            t.status(2).members.voters == [m(1), m(2)] && t.is_asleep()
        });
        let (
            group,
            to,
            Status {
                committed: index,
                term,
                ..
            },
        ) = (GROUP, m(3).number(), trial.status(1));
        let gone = Gone::Told(crate::Mark { index, term });
        let mut frame = crate::frame::FrameWriter::new(1);
        frame.put(&Item::Gone { group, to, gone });
        trial.node(3).receive(NodeId(1), &frame.finish()).unwrap();
        assert!(trial.status(3).is_removed);
        let mut late = raft::eraftpb::Message {
            from: m(1).number(),
            to,
            term,
            commit: last,
            ..Default::default()
        };
        late.set_msg_type(raft::eraftpb::MessageType::MsgHeartbeat);
        let mut frame = crate::frame::FrameWriter::new(1);
        frame.put(&Item::Raft(group, late));
        trial.node(3).receive(NodeId(1), &frame.finish()).unwrap();
        trial.settle();
        let Status {
            committed,
            is_removed,
            ..
        } = trial.status(3);
        assert_eq!((committed, is_removed), (last, true));
    }

    #[test]
    fn a_voter_whose_log_goes_further_is_not_silenced_by_a_peer_that_lags_behind_its_being_added() {
        let mut trial = Trial::new(3, 2);
        trial.led_by(1);
        let at = trial.status(1).last;
        let term = trial.nodes[&1].term_at(GROUP, at).unwrap();
        let new = Recovered::new_group(m(3), Membership::of(&[m(1), m(2)]));
        trial.node(3).open(GROUP, new).unwrap();
        trial.learns(&[Step::Learner(m(3))]);
        trial.node(1).change(GROUP, &[Step::Voter(m(3))]).unwrap();
        trial.ticks_until(60, |t| t.is_asleep() && t.status(3).members.voters.len() == 3);
        let gone = Gone::Told(crate::Mark { index: at, term });
        let to = m(3).number();
        let mut frame = crate::frame::FrameWriter::new(1);
        let group = GROUP;
        frame.put(&Item::Gone { group, to, gone });
        trial.node(3).receive(NodeId(2), &frame.finish()).unwrap();
        trial.ticks(5);
        assert!(!trial.events.contains(&(3, Event::Removed(GROUP))));
        // One that says so of the newest entry is believed.
        let Status { last, term, .. } = trial.status(3);
        let gone = Gone::Told(crate::Mark { index: last, term });
        let mut frame = crate::frame::FrameWriter::new(1);
        frame.put(&Item::Gone { group, to, gone });
        trial.node(3).receive(NodeId(2), &frame.finish()).unwrap();
        trial.ticks(5);
        assert!(trial.events.contains(&(3, Event::Removed(GROUP))));
    }

    #[test]
    fn a_node_that_lost_its_disk_is_another_member_and_the_old_one_is_reported_and_keeps_nobody_awake() {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.start(3, 3, 2);
        let new = Recovered::new_group(member(3, 1), Membership::of(&[m(1), m(2), m(3)]));
        trial.node(3).open(GROUP, new).unwrap();
        trial.node(1).propose(GROUP, "x".into()).unwrap();
        trial.ticks_until(100, Trial::is_asleep);
        let (group, lost) = (GROUP, m(3));
        let event = Event::Lost { group, member: lost };
        assert_eq!(trial.events.iter().filter(|(_, e)| *e == event).count(), 1);
        trial.learns(&[Step::Remove(m(3)), Step::Learner(member(3, 1))]);
        trial.node(1).change(GROUP, &[Step::Voter(member(3, 1))]).unwrap();
        trial.ticks_until(100, |t| {
            t.is_asleep() && t.status(3).committed == t.status(1).committed
        });
        assert_eq!(
            trial.status(3).members,
            Membership::of(&[m(1), m(2), member(3, 1)])
        );
        assert_eq!(trial.refused, vec![]);
    }
}
