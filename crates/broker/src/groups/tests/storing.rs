//! Bodies that others have sent are written while those before are being synced: none counts before its own sync has ended.

use super::others;
use super::transfer::{checkpoint, has, is_member, replace};
use super::trio::Trio;
use model::Mutant;

/// The thread that waits for syncs of bodies.
const SYNCER: &str = "page-syncer";
/// How long each body is, and how many there are: 18 answers.
const BODY: usize = 60_000;
const BODIES: u64 = 300;

/// A member whose disk was lost has contents, and so many bytes of bodies or more have come; how many.
fn fetching(body: usize, bodies: u64, bytes: u64) -> (Trio, u32, u64) {
    let mut trio = Trio::deep();
    trio.body = body;
    let leader = trio.leader();
    trio.publish_each(leader, 1..=bodies);
    checkpoint(&trio);
    let lost = others(leader)[0];
    replace(&mut trio, lost);
    trio.hold(lost, Some(SYNCER));
    let mut came = trio.bulk();
    for _ in 0..100_000 {
        if came > bytes {
            return (trio, lost, came);
        }
        if !trio.deliver_one() {
            trio.work();
            trio.tick_only();
        }
        came += trio.bulk();
    }
    panic!("nothing comes");
}

#[test]
fn the_next_bodies_are_written_while_a_sync_takes_its_time_and_what_waits_is_bounded() {
    let (trio, lost, came) = fetching(BODY, BODIES, 1 << 20);
    trio.ticks(20);
    let came = came + trio.bulk();
    assert!((8 << 20..13 << 20).contains(&came), "{came}");
    let (_, written) = trio.segment_bytes(lost);
    assert!((3 << 19..4 << 20).contains(&written), "two stores: {written}");
    assert_eq!(trio.messages(lost), None, "what is not synced does not count");
    // The first one has ended: what has come since is written beside the second one.
    assert!(trio.step_held(lost));
    trio.work();
    let (_, more) = trio.segment_bytes(lost);
    assert!(more > written + (6 << 20), "{more}");
    trio.hold(lost, None);
    trio.ticks(10);
    let came = came + trio.bulk();
    assert!(
        (17 << 20..19 << 20).contains(&came),
        "nothing is fetched twice: {came}"
    );
    is_member(&trio, lost);
    has(&trio, lost, 1..=BODIES);
}

#[test]
fn a_power_cut_before_a_sync_has_ended_costs_what_was_written_and_what_waited() {
    for first_is_synced in [false, true] {
        let (mut trio, lost, _) = fetching(BODY, BODIES, 1 << 20);
        trio.ticks(20);
        if first_is_synced {
            assert!(trio.step_held(lost));
            trio.work();
        }
        trio.bulk();
        trio.crash(lost, 1);
        trio.start(lost);
        trio.ticks(30);
        let again = trio.bulk();
        let least = if first_is_synced { 16 << 20 } else { 17 << 20 };
        assert!(again > least, "it is fetched again: {again}");
        is_member(&trio, lost);
        has(&trio, lost, 1..=BODIES);
        assert_eq!(trio.bulk(), 0, "nothing that counted was missing");
    }
}

#[test]
fn a_sync_that_fails_takes_those_behind_it_along() {
    let (mut trio, lost, _) = fetching(BODY, BODIES, 1 << 20);
    trio.ticks(20);
    trio.break_disk(lost);
    assert!(trio.step_held(lost));
    trio.hold(lost, None);
    trio.work();
    assert_eq!(trio.messages(lost), None);
    // Its segments take nothing more, so it asks now and then only.
    trio.bulk();
    trio.ticks(200);
    let vain = trio.bulk();
    assert!((1..50 << 20).contains(&vain), "in twenty seconds: {vain}");
    trio.crash(lost, 1);
    trio.start(lost);
    trio.ticks(30);
    let again = trio.bulk();
    assert!(again > 17 << 20, "{again}");
    is_member(&trio, lost);
    has(&trio, lost, 1..=BODIES);
    assert_eq!(trio.bulk(), 0, "nothing that counted was missing");
}

#[test]
fn what_a_member_remembers_of_bodies_is_there_after_a_power_cut() {
    for seed in 0..6 {
        let (mut trio, lost, _) = fetching(20_000, 90, 1 << 20);
        trio.hold(lost, None);
        trio.work();
        trio.crash(lost, seed);
        trio.start(lost);
        trio.ticks(30);
        is_member(&trio, lost);
        trio.bulk();
        has(&trio, lost, 1..=90);
        assert_eq!(trio.bulk(), 0, "nothing that counted was missing");
    }
}

/// Seeds of whole nodes do not show it: what is missing comes from others then.
#[test]
fn what_is_remembered_before_its_sync_is_found() {
    Mutant::turn_on(Some(Mutant::KeepsUnsynced));
    let found =
        std::panic::catch_unwind(what_a_member_remembers_of_bodies_is_there_after_a_power_cut).is_err();
    Mutant::turn_on(None);
    assert!(found, "nobody noticed it");
}
