//! A group whose majority is lost for good goes on with one node's copy alone, as another group.

use super::others;
use super::trio::{GROUP, NEXT, Trio};

/// A leader with contents in a checkpoint and in segments, entries behind that, and the last ten of them nobody else's: what it
/// has, and which node it is.
fn with_more_than_is_committed() -> (Trio, u32) {
    let mut trio = Trio::deep();
    let last = trio.leader();
    trio.publish_each(last, 1..=60);
    trio.checkpoint(last);
    trio.settle();
    trio.publish_each(last, 61..=100);
    for _ in 0..10 {
        let seq = trio.take_next(last).unwrap();
        assert!(trio.ack(last, seq));
    }
    trio.settle();
    trio.isolate(last);
    assert!(trio.publish(last, 101..=110));
    trio.settle();
    (trio, last)
}

/// It has everything that it had, and goes on: alone, and after another start.
fn goes_on(trio: &mut Trio, last: u32) {
    let leads = trio.leader_of(&[last]);
    assert_eq!(leads, last);
    trio.ticks(5);
    assert!(trio.groups(last).status(GROUP).is_none(), "the old group is over");
    trio.publish_each(last, 111..=120);
    trio.crash(last, 7);
    trio.start(last);
    trio.leader_of(&[last]);
    let had = trio.drain(last);
    // Four priorities, and the ten that were settled.
    let mut sorted = had.clone();
    sorted.sort_unstable();
    assert_eq!(had.len(), 110, "{had:?}");
    assert!(sorted.windows(2).all(|two| two[0] < two[1]) && sorted.contains(&110) && sorted.contains(&120));
}

#[test]
fn what_a_node_has_goes_on_as_another_group_with_what_it_does_not_know_to_be_committed() {
    let (mut trio, last) = with_more_than_is_committed();
    let term = trio.groups(last).status(GROUP).unwrap().term;
    trio.crash(last, 1);
    assert!(trio.start_alone(last));
    assert!(trio.groups(last).status(NEXT).unwrap().term > term + 100_000);
    goes_on(&mut trio, last);
}

#[test]
fn a_node_that_runs_goes_on_with_its_copy_and_is_not_disturbed_by_members_of_before() {
    let (mut trio, last) = with_more_than_is_committed();
    trio.goes_on_alone(last);
    trio.heal();
    let rest = others(last);
    let theirs = trio.leader_of(&rest);
    trio.publish_each(theirs, 900..=910);
    goes_on(&mut trio, last);
    assert!(trio.groups(rest[0]).status(GROUP).is_some());
    let of_next = trio.groups(last).status(NEXT).unwrap();
    assert_eq!(
        (of_next.leader, of_next.members.voters.len()),
        (Some(of_next.me), 1)
    );
}

#[test]
fn wherever_the_power_is_cut_the_old_group_is_there_or_the_new_one_and_nothing_is_missing() {
    let (mut trio, last) = with_more_than_is_committed();
    trio.crash(last, 3);
    let before = trio.disk(last);
    let mut cuts = 0;
    for call in 1.. {
        trio.put_disk(last, &before);
        trio.cut_power(last, call);
        if trio.start_alone(last) {
            break;
        }
        cuts += 1;
        // It is tried again, and cut once more.
        trio.reboot(last, call);
        trio.cut_power(last, call / 2 + 3);
        match trio.start_alone(last) {
            true => drop(trio.crash(last, call + 1)),
            false => trio.reboot(last, call + 1),
        }
        assert!(trio.start_alone(last));
        goes_on(&mut trio, last);
        trio.crash(last, call);
    }
    assert!(cuts > 10, "{cuts}");
}
