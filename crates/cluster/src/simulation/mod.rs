//! Groups on several nodes, on a network that loses, doubles, reorders and cuts, with crashes that lose what was not
//! synced. A seed decides.
//!
//! `CLUSTER_SEED=29 cargo test -p leveret-cluster simulation` runs one seed again; `CLUSTER_SEEDS` says how many;
//! `CLUSTER_MUTANT=NoProof` looks for one mutant.

#![expect(
    clippy::disallowed_methods,
    reason = "which seeds to run is read from the environment, and they run in two threads"
)]

mod invariants;
mod machine;
mod world;

use crate::mutant::Mutant;
use crate::trial::{GROUP, Trial, m};
use crate::{Event, GroupId, Lie, MemberId, Membership, NodeId, Recovered, Refused, Rejected, Step};
use bytes::Bytes;
use fastrand::Rng;
use world::World;

/// Steps of a run before everything heals.
const STEPS: usize = 700;
/// Rounds within which everything has to be well again.
const HEALING: usize = 400;

/// Runs of the simulation within which each mutant has to be found.
const SEEDS_OF_MUTANTS: u64 = 2_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let nodes = [3, 3, 4, 5][rng.usize(..4)];
    let mut world = World::new(nodes, 2, seed);
    // Some runs have few faults, so that much is committed; others have many.
    let faults = rng.u32(..4);
    for step in 0..STEPS {
        turn(&mut world, &mut rng, faults, step as u64);
    }
    world.heal();
    for round in 0.. {
        world.round();
        if round > 10 && world.is_well() {
            break;
        }
        assert!(round < HEALING, "not well again: {}", world.describe());
    }
    world.check_all_is_there();
    // Those who were removed learn it or give up, and then nobody says anything.
    let mut quiet = 0;
    for round in 0.. {
        world.round();
        quiet = if world.awake() == 0 && world.is_quiet() {
            quiet + 1
        } else {
            0
        };
        if quiet == 30 {
            break;
        }
        assert!(round < HEALING, "never quiet: {}", world.describe());
    }
}

fn turn(world: &mut World, rng: &mut Rng, faults: u32, step: u64) {
    let node = rng.usize(..world.machines.len());
    match rng.u32(..1000) {
        0..294 => world.deliver(rng, faults),
        294..300 if faults > 0 => world.stand(node, rng.bool()),
        300..500 => world.collect(node),
        500..650 => world.sync(node),
        650..800 => world.tick(node),
        800..900 => world.propose(
            node,
            GroupId(rng.u64(1..=2)),
            Bytes::from(format!("{step} on {node}")),
        ),
        900..930 => world.prove(node, GroupId(rng.u64(1..=2))),
        930..950 => world.checkpoint(node, GroupId(rng.u64(1..=2)), rng.u64(..6)),
        950..960 => world.transfer(node, rng),
        960..970 => world.change(node, rng),
        970..978 if faults > 0 => {
            if rng.bool() {
                world.checkpoint(node, GroupId(rng.u64(1..=2)), rng.u64(..6));
            }
            world.crash(node, rng);
        }
        978..980 if faults > 0 => world.wipe(node),
        980..985 if faults > 1 => world.cut(rng),
        985..990 => world.join(),
        990..992 if faults > 1 => world.machines[node].hang(rng.bool()),
        992 if faults > 1 => world.fail(node),
        993..995 if faults > 1 => world.deliver_late(rng),
        _ => world.start(node),
    }
}

#[test]
fn whatever_the_network_and_crashes_do_no_committed_entry_is_lost_and_all_members_agree() {
    if let Some(seed) = number("CLUSTER_SEED") {
        return run(seed);
    }
    let seeds = number("CLUSTER_SEEDS").unwrap_or(1_000);
    let first = number("CLUSTER_FIRST").unwrap_or(0);
    let failed: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                scope.spawn(move || {
                    let seeds = (first..first + seeds).filter(|seed| seed % 2 == worker);
                    seeds
                        .filter(|seed| std::panic::catch_unwind(|| run(*seed)).is_err())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    assert!(failed.is_empty(), "run again with CLUSTER_SEED: {failed:?}");
}

#[test]
fn a_leader_that_was_deposed_unheard_proves_nothing() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.cut(1, 2);
    trial.cut(1, 3);
    trial.ticks_until(9, |t| t.leader().is_some_and(|leader| leader != 1));
    let leader = trial.leader().unwrap();
    trial.node(leader).propose(GROUP, "x".into()).unwrap();
    trial.settle();
    let question = trial.node(1).prove(GROUP).unwrap();
    trial.ticks(40);
    let group = GROUP;
    assert!(trial.has(&Event::Unproven { group, question }));
}

#[test]
fn a_change_waits_until_the_one_before_it_is_through() {
    let mut trial = Trial::new(4, 3);
    trial.led_by(1);
    trial.node(1).change(GROUP, &[Step::Learner(m(4))]).unwrap();
    let second = trial.node(1).change(GROUP, &[Step::Remove(m(3))]);
    assert_eq!(second, Err(Refused::ChangeUnderWay));
    trial.settle();
    trial.node(1).change(GROUP, &[Step::Remove(m(3))]).unwrap();
}

/// Node 2 lost everything, and comes back as the member that it was.
#[test]
fn a_leader_that_believes_in_entries_that_were_lost_stops_nobody() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.start(2, 3, 2);
    let new = Recovered::new_group(m(2), Membership::of(&[m(1), m(2), m(3)]));
    trial.node(2).open(GROUP, new).unwrap();
    trial.node(1).suspect(NodeId(3));
    trial.ticks(3);
    trial.node(1).propose(GROUP, "x".into()).unwrap();
    trial.ticks(20);
    let lost = |rejected: &Rejected| {
        let Rejected::Lies(lies) = rejected else {
            return false;
        };
        lies.iter().all(|(_, lie)| matches!(lie, Lie::LostTail { .. }))
    };
    assert!(!trial.refused.is_empty() && trial.refused.iter().all(lost));
}

/// Of two members one leaves, and the other one loses its power before it has written down that this is committed. A record that
/// was proposed behind the change, before that was committed, says nothing of it.
#[test]
fn a_member_that_is_still_needed_is_not_told_that_it_is_none() {
    let group = GroupId(2);
    for (seed, has_more) in (0..8).flat_map(|seed| [(seed, false), (seed, true)]) {
        let (mut world, mut rng) = (World::new(3, 2, 0), Rng::with_seed(seed));
        for step in [Step::Learner(m(2)), Step::Voter(m(2)), Step::Remove(m(2))] {
            (0..20).for_each(|_| world.round());
            let groups = world.machines[0].groups.as_mut().unwrap();
            groups.change(group, &[step]).unwrap();
            if has_more && matches!(step, Step::Remove(_)) {
                groups.propose(group, Bytes::from_static(b"more")).unwrap();
            }
        }
        world.collect(0);
        for node in [0, 1] {
            (0..4).for_each(|_| world.sync(node));
            (0..20).for_each(|_| world.deliver(&mut rng, 0));
        }
        world.crash(0, &mut rng);
        world.start(0);
        let is_well = |world: &mut World| {
            world.round();
            world.is_well()
        };
        assert!((0..HEALING).any(|_| is_well(&mut world)), "{}", world.describe());
    }
}

/// Contents that a new member would be sent count once they are committed, which would need that member.
#[test]
fn a_change_that_would_wait_for_a_member_that_has_nothing_is_refused() {
    let mut trial = Trial::new(3, 2);
    trial.led_by(1);
    let steps = [Step::Remove(m(2)), Step::Voter(m(3))];
    assert_eq!(trial.node(1).change(GROUP, &steps), Err(Refused::Behind));
    let new = Recovered::new_group(m(3), Membership::of(&[m(1), m(2)]));
    trial.node(3).open(GROUP, new).unwrap();
    trial.learns(&[Step::Learner(m(3))]);
    trial.node(1).change(GROUP, &steps).unwrap();
    trial.ticks_until(60, |t| t.status(3).members == Membership::of(&[m(1), m(3)]));
}

#[test]
fn every_mutant_is_found() {
    let only = std::env::var("CLUSTER_MUTANT").ok();
    let mut unfound = Vec::new();
    for mutant in Mutant::ALL {
        if only.as_ref().is_some_and(|only| *only != format!("{mutant:?}")) {
            continue;
        }
        Mutant::turn_on(Some(mutant));
        let fails = |run: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
        let scenario: Option<fn()> = match mutant {
            Mutant::NoProof => Some(a_leader_that_was_deposed_unheard_proves_nothing),
            Mutant::TwoChanges => Some(a_change_waits_until_the_one_before_it_is_through),
            Mutant::LeavesAtOnce => Some(a_member_that_is_still_needed_is_not_told_that_it_is_none),
            Mutant::NoGuard => Some(a_leader_that_believes_in_entries_that_were_lost_stops_nobody),
            _ => None,
        };
        let found = match scenario {
            Some(scenario) => fails(&scenario).then_some("by its scenario".to_owned()),
            None => (0..SEEDS_OF_MUTANTS)
                .find(|seed| fails(&|| run(*seed)))
                .map(|seed| format!("by seed {seed}")),
        };
        Mutant::turn_on(None);
        println!("{mutant:?}: found {found:?}");
        unfound.extend(found.is_none().then_some(mutant));
    }
    assert_eq!(unfound, [], "nobody noticed");
}

/// A change that the node may ask for: one member in or out, or two at once.
fn some_steps(rng: &mut Rng, nodes: u32) -> Vec<Step> {
    let mut step = || {
        let member = MemberId::first(NodeId(rng.u32(1..=nodes)));
        match rng.u32(..4) {
            0 => Step::Learner(member),
            1 => Step::Remove(member),
            _ => Step::Voter(member),
        }
    };
    match step() {
        Step::Remove(member) => vec![Step::Remove(member), step()],
        single => vec![single],
    }
}
