//! Groups on several nodes, on a network that loses, doubles, reorders and cuts, with crashes that lose what was not synced. A seed decides.
//!
//! `CLUSTER_SEED=29 cargo test -p leveret-cluster simulation` runs one seed again; `CLUSTER_SEEDS` says how many.

mod invariants;
mod machine;
mod world;

use crate::{GroupId, MemberId, NodeId, Step};
use bytes::Bytes;
use fastrand::Rng;
use world::World;

/// Steps of a run before everything heals.
const STEPS: usize = 700;
/// Rounds within which everything has to be well again.
const HEALING: usize = 400;

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
}

fn turn(world: &mut World, rng: &mut Rng, faults: u32, step: u64) {
    let node = rng.usize(..world.machines.len());
    match rng.u32(..1000) {
        0..300 => world.deliver(rng, faults),
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
        970..980 if faults > 0 => world.crash(node, rng),
        980..985 if faults > 1 => world.cut(rng),
        985..990 => world.join(),
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
