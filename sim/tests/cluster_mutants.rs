//! What broken nodes would do with replicated queues: each of these is found, or the invariants see nothing.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Each wrong behaviour is found by one of so many seeds, most by one of the first hundred, unless `SIM_SEEDS` says otherwise.
const SEEDS: usize = 2_000;

/// What these seeds do not show, and why: with `SIM_MUTANT` one of them is looked for all the same.
const NOT_FOUND: [(&str, &str); 11] = [
    (
        "NoGuard",
        "only a member that lost what it had synced is told what can't be; the simulation of groups finds it by a scenario",
    ),
    (
        "ChangeBeforeCommit",
        "two majorities need two changes and two lost promises; seeds of the simulation of groups find it",
    ),
    (
        "SleepUnapplied",
        "a node would have to stand still until it is told two things at once that it has not applied; the simulation of groups finds it",
    ),
    (
        "LeavesAtOnce",
        "one of two would have to lose its power within the one sync behind the other one's removal; a scenario of groups finds it",
    ),
    (
        "ForgetsActive",
        "whose node was in trouble lately is not believed to be there; a story of the queue finds it",
    ),
    (
        "BelievesOldClaims",
        "a node would have to claim what came back without having counted as down; a story of the queue finds it",
    ),
    (
        "YieldsAtOnce",
        "an active consumer would have to be looked at while it holds something and is to make room; a story of the queue finds it",
    ),
    (
        "ReleasesFetched",
        "a member asks the others for bodies that it lacks, so hardly anybody notices; groups/tests/installs.rs finds it",
    ),
    (
        "KeepsUnsynced",
        "a member asks the others for bodies that it lacks, so nobody notices; groups/tests/storing.rs finds it",
    ),
    (
        "InstallsUnsynced",
        "what a member writes behind contents its log has behind them, too, so no power cut shows it; groups/tests/installs.rs finds it",
    ),
    (
        "InstallsWithoutTail",
        "the log of a member would have to go on while it is sent contents; groups/tests/installs.rs finds it",
    ),
];

/// Something that is done wrong: by what surrounds nodes, by queues or by groups.
#[derive(Clone, Copy)]
enum Wrong {
    Around(sim::cluster::Mutant),
    InQueues(model::Mutant),
    InGroups(cluster::mutant::Mutant),
}

impl Wrong {
    fn all() -> Vec<Self> {
        let around = sim::cluster::Mutant::ALL.into_iter().map(Self::Around);
        let in_queues = model::Mutant::ALL.into_iter().map(Self::InQueues);
        let in_groups = cluster::mutant::Mutant::IN_CODE.into_iter().map(Self::InGroups);
        around.chain(in_queues).chain(in_groups).collect()
    }

    fn name(self) -> String {
        match self {
            Self::Around(mutant) => format!("{mutant:?}"),
            Self::InQueues(mutant) => format!("{mutant:?}"),
            Self::InGroups(mutant) => format!("{mutant:?}"),
        }
    }

    /// It is done wrong in this thread, or no more.
    fn turn(self, on: bool) {
        match self {
            Self::Around(mutant) => sim::cluster::Mutant::turn_on(on.then_some(mutant)),
            Self::InQueues(mutant) => model::Mutant::turn_on(on.then_some(mutant)),
            Self::InGroups(mutant) => cluster::mutant::Mutant::turn_on(on.then_some(mutant)),
        }
    }

    /// Runs seeds until one of them breaks an invariant, and breaks none if nothing is done wrong: which, and how.
    fn find(self) -> Option<(u64, String)> {
        let most = std::env::var("SIM_SEEDS").ok().and_then(|it| it.parse().ok());
        let mut seeds = (1..).take(most.unwrap_or(SEEDS));
        seeds.find_map(|seed| {
            self.turn(true);
            let found = broken(seed);
            self.turn(false);
            found
                .filter(|_| broken(seed).is_none())
                .map(|found| (seed, found))
        })
    }

    fn is_wanted(self) -> bool {
        match std::env::var("SIM_MUTANT") {
            Ok(only) => only == self.name(),
            Err(_) => NOT_FOUND.iter().all(|(name, _)| *name != self.name()),
        }
    }
}

/// What a seed breaks.
fn broken(seed: u64) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| sim::cluster::run(seed))) {
        Ok(outcome) => {
            let found = outcome.violations.into_iter().next();
            found.map(|found| format!("{}: {}", found.invariant, found.what))
        }
        Err(_) => Some("a panic".to_owned()),
    }
}

#[test]
fn every_mutation_of_replicated_queues_is_found() {
    let wrong: Vec<Wrong> = Wrong::all().into_iter().filter(|it| it.is_wanted()).collect();
    let (next, unfound) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let look = || {
        while let Some(wrong) = wrong.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = wrong.find();
            println!("{}: {found:?}", wrong.name());
            if found.is_none() {
                unfound.lock().unwrap().push(wrong.name());
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(look))));
    for (name, why) in NOT_FOUND {
        println!("not looked for: {name}: {why}");
    }
    let unfound = unfound.into_inner().unwrap();
    assert!(unfound.is_empty(), "nobody noticed {unfound:?}");
}
