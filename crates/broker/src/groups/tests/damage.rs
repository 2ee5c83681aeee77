//! Members whose disk has rotted, or that are forgotten: they take part in nothing. The first come back as other members, which
//! the others mend.

use super::others;
use super::transfer::{checkpoint, has, is_member, lead};
use super::trio::{GROUP, Trio};
use crate::groups::{Member, News, Observer, handover, member_journal};
use cluster::{Event, GroupId, MemberId, Step};
use std::sync::{Arc, Mutex};

/// Groups of which a node's member is damaged.
#[derive(Default)]
struct Seen(Mutex<Vec<GroupId>>);

impl Observer for Seen {
    fn damaged(&self, group: GroupId) {
        self.0.lock().unwrap().push(group);
    }

    fn observe(&self, _: Event) {}
}

/// The group has this member in the place of that one.
fn replaced(trio: &Trio, (before, after): (MemberId, MemberId)) {
    let leader = trio.leader_of(&others(after.node.0));
    let steps = [Step::Remove(before), Step::Learner(after)];
    trio.groups(leader).change(GROUP, &steps).unwrap();
    trio.ticks(30);
    is_member(trio, after.node.0);
}

#[test]
fn a_member_whose_log_is_damaged_at_the_start_comes_back_as_another_one_with_everything() {
    for leads in [false, true] {
        let mut trio = Trio::deep();
        let leader = trio.leader();
        trio.publish_each(leader, 1..=100);
        let sick = if leads { leader } else { others(leader)[0] };
        trio.rot_what_is_written(sick, checkpoint);
        trio.publish_each(leader, 101..=120);
        trio.crash(sick, 1);
        let next = trio.start_renouncing(sick);
        let others_lead = trio.leader_of(&others(sick));
        trio.publish_each(others_lead, 121..=130);
        assert_eq!(trio.groups(sick).status(GROUP).unwrap().me, next.1);
        replaced(&trio, next);
        has(&trio, sick, 1..=130);
        // Nothing of what was damaged is found again.
        trio.crash(sick, 2);
        trio.start(sick);
        trio.ticks(10);
        assert_eq!(trio.messages(sick), Some(130), "it led: {leads}");
    }
}

#[test]
fn while_the_next_machine_is_made_it_is_known_who_leads_and_little_of_what_comes_waits_in_memory() {
    let mut trio = Trio::deep();
    let old = trio.leader();
    trio.publish_each(old, 1..=10);
    trio.hold(old, Some("page-reader"));
    let next = others(old)[0];
    lead(&trio, next);
    trio.ticks(5);
    assert_eq!(trio.messages(old), None);
    assert_eq!(trio.queue(old).leader(), Some(trio.member(next)));
    trio.body = 1 << 20;
    trio.publish_each(next, 11..=34);
    trio.tell_commits();
    let waiting = trio.queue(old).waiting_bytes();
    assert!(waiting <= 17 << 20, "{waiting}");
    trio.hold(old, None);
    trio.ticks(5);
    assert_eq!(trio.messages(old), Some(34));
}

#[test]
fn a_member_that_cannot_be_made_anew_stops_leading_and_voting_and_says_so() {
    let mut trio = Trio::deep();
    let sick = trio.leader();
    trio.publish_each(sick, 1..=100);
    trio.rot_what_is_written(sick, checkpoint);
    trio.publish_each(sick, 101..=120);
    assert!(!trio.queue(sick).is_damaged(), "it has everything in memory");
    let seen = Arc::new(Seen::default());
    let observer: Arc<dyn Observer> = seen.clone();
    trio.groups(sick).observed_by(Arc::downgrade(&observer));
    let next = others(sick)[0];
    lead(&trio, next);
    trio.ticks(5);
    assert_eq!(*seen.0.lock().unwrap(), [GROUP]);
    assert!(trio.queue(sick).is_damaged());
    assert_eq!(trio.queue(sick).leader(), None, "nobody tells it any more");
    assert!(trio.groups(sick).status(GROUP).is_none(), "it votes no more");
    let next = trio.renounce(sick);
    let leader = trio.leader_of(&others(sick));
    trio.publish_each(leader, 121..=130);
    replaced(&trio, next);
    has(&trio, sick, 1..=130);
    trio.crash(sick, 2);
    trio.start(sick);
    trio.ticks(10);
    assert_eq!(trio.messages(sick), Some(130));
}

#[test]
fn a_member_that_is_closed_writes_nothing_behind_what_the_log_has_forgotten() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=20);
    let gone = others(leader)[0];
    trio.tell_commits();
    handover::forget(trio.groups(gone), GROUP, Some(member_journal(GROUP)));
    // Whoever turned it before goes on with it.
    trio.checkpoint(gone);
    trio.settle();
    trio.crash(gone, 1);
    assert!(!trio.finds_contents(gone));
}

#[test]
fn a_member_that_is_forgotten_leaves_no_segments_whatever_its_store_still_does() {
    let trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=100);
    let gone = others(leader)[0];
    trio.checkpoint(gone);
    trio.settle();
    trio.publish_each(leader, 101..=200);
    assert!(trio.segment_bytes(gone).0 > 0);
    handover::forget(trio.groups(gone), GROUP, Some(member_journal(GROUP)));
    trio.settle();
    // The log asks for space, and its store does not know yet.
    trio.checkpoint(gone);
    trio.settle();
    assert_eq!(trio.segment_bytes(gone), (0, 0));
    assert_eq!(trio.segment_files(gone), 0);
}

/// The thread that writes segments lags: what the earlier member had under way is done when the log has the next one's entries.
#[test]
fn what_an_earlier_member_of_the_node_had_under_way_does_nothing_to_the_next_one() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=100);
    let node = others(leader)[0];
    trio.tell_commits();
    trio.hold(node, Some("page-writer"));
    trio.queue(node).tell(vec![News::Checkpoint]);
    trio.queue(node).applied();
    trio.settle();
    let (before, after) = trio.renounce(node);
    let steps = [Step::Remove(before), Step::Learner(after)];
    trio.groups(leader).change(GROUP, &steps).unwrap();
    trio.ticks(30);
    trio.hold(node, None);
    is_member(&trio, node);
    trio.publish_each(leader, 101..=110);
    trio.tell_commits();
    trio.crash(node, 2);
    trio.start(node);
    trio.ticks(10);
    assert_eq!(trio.messages(node), Some(110));
}

#[test]
fn a_checkpoint_that_rots_is_written_anew_when_somebody_asks_for_it() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    let away = others(leader)[0];
    trio.publish_each(leader, 1..=50);
    trio.crash(away, 3);
    trio.publish_each(leader, 51..=60);
    trio.ticks(610);
    for id in others(away) {
        trio.rot_what_is_written(id, |trio| {
            trio.checkpoint(id);
            trio.settle();
        });
    }
    trio.start(away);
    trio.ticks(60);
    assert_eq!(trio.messages(away), Some(60));
    has(&trio, away, 1..=60);
}

#[test]
fn a_member_that_needs_a_later_checkpoint_gets_one_at_a_time() {
    let trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=20);
    let position = || trio.queue(leader).checkpoint_position();
    let ask = || {
        trio.queue(leader).tell(vec![News::Checkpoint]);
        trio.queue(leader).applied();
        trio.settle();
        position()
    };
    trio.hold(leader, Some("page-writer"));
    let first = ask();
    assert!(first.is_some());
    assert_eq!(ask(), first, "the group has not heard of that one");
    trio.hold(leader, None);
    trio.settle();
    assert!(ask() > first);
}
