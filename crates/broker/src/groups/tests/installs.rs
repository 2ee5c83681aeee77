//! Contents that a member has fetched take the place of its own: once they are durable, and with all that is committed behind
//! them. Seeds of whole nodes do not show what happens otherwise (`sim/tests/cluster_mutants.rs`), so these scenarios do.

use super::others;
use super::transfer::{checkpoint, has, replace};
use super::trio::{GROUP, Lane, Trio};
use cluster::{Refused, Step};
use model::Mutant;

/// Lets small steps happen until it is so.
fn steps_until(trio: &Trio, is_so: impl Fn(&Trio) -> bool) {
    for step in 0..10_000 {
        if is_so(trio) {
            return;
        }
        match step % 4 {
            0 if trio.network.lock().unwrap().is_empty() => trio.tick_only(),
            0 | 2 => trio.step(),
            _ => drop(trio.deliver_one()),
        }
    }
    panic!("it does not come to that");
}

#[test]
fn a_member_answers_for_contents_once_they_are_durable() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=40);
    checkpoint(&trio);
    let lost = others(leader)[0];
    replace(&mut trio, lost);
    steps_until(&trio, |trio| trio.messages(lost) == Some(40));
    trio.hung.insert(lost);
    trio.ticks(5);
    let voter = [Step::Voter(trio.member(lost))];
    let change = |trio: &Trio| trio.groups(leader).change(GROUP, &voter);
    assert_eq!(change(&trio), Err(Refused::Behind), "it has them in memory only");
    trio.hung.clear();
    trio.ticks(5);
    assert_eq!(change(&trio), Ok(()));
    trio.ticks(5);
    has(&trio, lost, 1..=40);
}

/// The next leader has entries that the one before had not any more, so that the member's log goes on while it is sent contents.
#[test]
fn a_member_whose_log_goes_on_beyond_the_contents_that_it_fetches_has_it_all() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    let (away, next) = (others(leader)[0], others(leader)[1]);
    trio.publish_each(leader, 1..=40);
    trio.crash(away, 3);
    trio.publish_each(leader, 41..=60);
    trio.ticks(610);
    trio.checkpoint(leader);
    trio.settle();
    assert!(trio.base(next) < trio.base(leader));
    trio.start(away);
    // It has the contents, and lacks bodies.
    steps_until(&trio, |trio| trio.messages(away).is_none());
    trio.crash(leader, 4);
    let goes_on = |trio: &Trio| {
        trio.tick_only();
        for _ in 0..20 {
            trio.work();
            let mut network = trio.network.lock().unwrap();
            network.retain(|(_, _, lane, _)| *lane != Lane::Bulk);
            drop(network);
            trio.deliver_one();
        }
    };
    (0..80).for_each(|_| goes_on(&trio));
    assert!(trio.queue(next).leads());
    assert!(trio.publish(next, 61..=70));
    (0..5).for_each(|_| goes_on(&trio));
    trio.ticks(80);
    assert_eq!(trio.messages(away), Some(70));
    has(&trio, away, 1..=70);
}

#[test]
fn bodies_that_a_member_has_fetched_are_needed_as_long_as_its_contents_name_them() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=300);
    checkpoint(&trio);
    let lost = others(leader)[0];
    replace(&mut trio, lost);
    trio.ticks(30);
    let (fetched, whole) = (trio.segment_bytes(lost), trio.segment_bytes(leader));
    // The leader has moved some more since.
    assert!(fetched.0 > whole.0 / 2, "{fetched:?} of {whole:?}");
}

#[test]
fn what_a_node_would_do_wrong_with_contents_is_found() {
    let scenarios: [(Mutant, fn()); 3] = [
        (
            Mutant::InstallsUnsynced,
            a_member_answers_for_contents_once_they_are_durable,
        ),
        (
            Mutant::InstallsWithoutTail,
            a_member_whose_log_goes_on_beyond_the_contents_that_it_fetches_has_it_all,
        ),
        (
            Mutant::ReleasesFetched,
            bodies_that_a_member_has_fetched_are_needed_as_long_as_its_contents_name_them,
        ),
    ];
    for (mutant, scenario) in scenarios {
        Mutant::turn_on(Some(mutant));
        let found = std::panic::catch_unwind(scenario).is_err();
        Mutant::turn_on(None);
        assert!(found, "nobody noticed {mutant:?}");
    }
}
