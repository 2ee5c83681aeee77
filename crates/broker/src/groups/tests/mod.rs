//! A queue of which three nodes have a copy: what leaves it, when, and what each failure costs.

mod anywhere;
mod checkpoints;
mod damage;
mod frames;
mod installs;
mod refounding;
mod seeds;
mod seen;
mod storing;
mod transfer;
mod trio;
mod world;

use trio::{GROUP, Left, NODES, Trio};

fn others(id: u32) -> Vec<u32> {
    NODES.into_iter().filter(|other| *other != id).collect()
}

#[test]
fn a_confirm_leaves_once_a_majority_has_the_message_on_disk_and_not_before() {
    let mut trio = Trio::new();
    let leader = trio.leader();
    trio.left(leader);
    trio.hung.extend(others(leader));
    assert!(trio.publish(leader, 1..=1));
    trio.settle();
    assert_eq!(trio.left(leader), [], "the others have it in memory only");
    trio.hung.remove(&others(leader)[0]);
    trio.settle();
    assert_eq!(trio.left(leader), [Left::Confirm(1)]);
}

#[test]
fn nothing_leaves_while_the_leaders_own_disk_has_it_not() {
    let mut trio = Trio::new();
    let leader = trio.leader();
    trio.left(leader);
    trio.hung.insert(leader);
    assert!(trio.publish(leader, 1..=1));
    trio.settle();
    assert_eq!(trio.left(leader), []);
    trio.hung.clear();
    trio.settle();
    assert_eq!(trio.left(leader), [Left::Confirm(1)]);
}

#[test]
fn records_of_many_turns_make_one_batch_on_each_disk() {
    let trio = Trio::new();
    let leader = trio.leader();
    trio.settle();
    let before = NODES.map(|id| trio.syncs(id));
    for number in 1..=30 {
        assert!(trio.publish(leader, number..=number));
    }
    while trio.deliver_one() {}
    trio.settle();
    let syncs: Vec<u64> = NODES
        .into_iter()
        .zip(before)
        .map(|(id, before)| trio.syncs(id) - before)
        .collect();
    assert!(syncs.iter().all(|count| *count <= 3), "{syncs:?}");
    assert_eq!(trio.left(leader).len(), 30);
}

#[test]
fn what_is_published_while_many_turns_wait_for_their_sync_is_proposed_together() {
    let trio = Trio::new();
    let leader = trio.leader();
    trio.settle();
    trio.left(leader);
    let before = trio.groups(leader).turns();
    for number in 1..=200 {
        assert!(trio.publish(leader, number..=number));
    }
    let turns = trio.groups(leader).turns() - before;
    assert!(turns <= 30, "{turns}");
    trio.settle();
    assert_eq!(trio.left(leader).len(), 200);
}

#[test]
fn a_message_that_only_its_leader_had_is_gone_with_it_and_was_never_confirmed() {
    for seed in 0..20 {
        let mut trio = Trio::new();
        let old = trio.leader();
        assert!(trio.publish(old, 1..=3));
        trio.settle();
        trio.left(old);
        trio.isolate(old);
        assert!(trio.publish(old, 4..=4));
        trio.work();
        assert_eq!(trio.crash(old, seed), [], "no majority has it");
        trio.heal();
        let new = trio.leader();
        assert_eq!(trio.drain(new), [1, 2, 3]);
        trio.start(old);
        trio.ticks(30);
        assert_eq!(trio.messages(old), Some(3), "what it alone had is overwritten");
    }
}

#[test]
fn a_leader_that_is_cut_off_serves_nothing_and_is_replayed_when_it_learns_that_another_leads() {
    let mut trio = Trio::new();
    let old = trio.leader();
    assert!(trio.publish(old, 1..=2));
    trio.settle();
    trio.left(old);
    trio.isolate(old);
    assert!(trio.get(old), "it does not know yet");
    assert!(trio.publish(old, 3..=3));
    let new = trio.leader_of(&others(old));
    assert_eq!(trio.left(old), [], "nothing leaves without a majority");
    assert_eq!(trio.drain(new), [1, 2]);
    assert!(trio.publish(new, 4..=4));
    trio.heal();
    trio.ticks(10);
    assert!(!trio.queue(old).leads());
    assert_eq!(trio.left(old), [], "what was not committed never leaves");
    assert_eq!(trio.messages(old), Some(3));
    let again = trio.leader();
    let applied = NODES.map(|id| trio.queue(id).applied());
    assert_eq!(applied, [applied[0]; 3], "led by {again}");
}

#[test]
fn an_answer_that_saw_nothing_new_waits_for_a_majority_that_still_follows() {
    let trio = Trio::new();
    let leader = trio.leader();
    trio.left(leader);
    assert!(trio.get(leader));
    trio.work();
    assert_eq!(trio.left(leader), []);
    trio.settle();
    assert_eq!(trio.left(leader), [Left::Empty]);
}

#[test]
fn all_confirmed_messages_are_there_after_all_nodes_lost_power() {
    for seed in 0..20 {
        let mut trio = Trio::new();
        let leader = trio.leader();
        for number in 1..=20 {
            assert!(trio.publish(leader, number..=number));
        }
        trio.settle();
        assert_eq!(trio.left(leader).len(), 20);
        NODES.iter().for_each(|id| drop(trio.crash(*id, seed)));
        NODES.iter().for_each(|id| trio.start(*id));
        let leader = trio.leader();
        assert_eq!(trio.drain(leader), (1..=20).collect::<Vec<u64>>());
    }
}

#[test]
fn a_follower_that_was_away_has_everything_soon_after_its_return() {
    let mut trio = Trio::new();
    let leader = trio.leader();
    assert!(trio.publish(leader, 1..=5));
    trio.settle();
    let away = others(leader)[0];
    trio.crash(away, 1);
    for number in 6..=400 {
        assert!(trio.publish(leader, number..=number));
        trio.settle();
    }
    trio.start(away);
    trio.ticks(10);
    assert_eq!(trio.messages(away), Some(400));
}

#[test]
fn a_leader_whose_disk_fails_leads_no_longer_and_what_it_could_not_write_was_never_confirmed() {
    let mut trio = Trio::new();
    let old = trio.leader();
    assert!(trio.publish(old, 1..=2));
    trio.settle();
    trio.left(old);
    trio.isolate(old);
    trio.break_disk(old);
    assert!(trio.publish(old, 3..=3));
    trio.settle();
    trio.heal();
    trio.ticks(10);
    assert!(!trio.queue(old).leads(), "within a second");
    let new = trio.leader_of(&others(old));
    assert_eq!(trio.left(old), []);
    assert_eq!(trio.drain(new), [1, 2]);
}

#[test]
fn a_body_is_found_in_every_nodes_log_at_the_index_of_its_record() {
    let trio = Trio::new();
    let leader = trio.leader();
    for number in 1..=3 {
        assert!(trio.publish(leader, number..=number));
        trio.settle();
    }
    let last = trio.queue(leader).applied().unwrap();
    for id in NODES {
        let found = [last - 2, last - 1, last].map(|index| trio.number_at(id, index));
        assert_eq!(found, [Some(1), Some(2), Some(3)], "on node {id}");
        assert_eq!(trio.number_at(id, last + 1), None);
    }
}

#[test]
fn what_comes_while_somebody_looks_at_a_queue_is_taken_when_they_have_looked() {
    let trio = Trio::new();
    let leader = trio.leader();
    trio.left(leader);
    assert!(trio.publish(leader, 1..=1));
    trio.queue(leader).inspect(|_| {
        trio.settle();
        assert_eq!(trio.left(leader), [], "its host is locked");
    });
    assert_eq!(trio.left(leader), [Left::Confirm(1)]);
}

/// A record of a newer version.
const UNKNOWN: &[u8] = &[255];

#[test]
fn a_member_that_cannot_read_what_is_committed_does_not_lead_though_it_is_asked_to() {
    let trio = Trio::new();
    let leader = trio.leader();
    let term = trio.queue(leader).term().unwrap();
    trio.groups(leader).propose(GROUP, term, vec![UNKNOWN.into()]);
    trio.groups(leader).turn();
    trio.settle();
    trio.tell_commits();
    for id in others(leader) {
        assert_eq!(trio.messages(id), None, "it has stopped");
        let asked = trio.groups(leader).transfer(GROUP, trio.member(id));
        assert_eq!(asked, Ok(()));
        trio.ticks(40);
        assert_eq!(trio.queue(leader).term(), Some(term));
    }
}

#[test]
fn whoever_observes_is_told_of_a_peer_that_is_silent_and_of_its_return() {
    use crate::groups::Observer;
    use cluster::{Event, NodeId};
    use std::sync::{Arc, Mutex, Weak};

    #[derive(Default)]
    struct Seen(Mutex<Vec<Event>>);
    impl Observer for Seen {
        fn damaged(&self, _: cluster::GroupId) {}

        fn observe(&self, event: Event) {
            self.0.lock().unwrap().push(event);
        }
    }

    let mut trio = Trio::new();
    let leader = trio.leader();
    let silent = others(leader)[0];
    let seen = Arc::new(Seen::default());
    let observer: Arc<dyn Observer> = seen.clone();
    let observer: Weak<dyn Observer> = Arc::downgrade(&observer);
    trio.groups(leader).observed_by(observer);
    trio.isolate(silent);
    trio.ticks(20);
    trio.heal();
    trio.ticks(5);
    let expected = [Event::Suspected(NodeId(silent)), Event::Heard(NodeId(silent))];
    assert_eq!(*seen.0.lock().unwrap(), expected);
}
