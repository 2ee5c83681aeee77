//! Many seeds, and each of them twice where that is to be shown.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::sync::atomic::{AtomicU64, Ordering};

/// How many seeds are run unless `SIM_SEEDS` says otherwise.
const SEEDS: u64 = 2_000;

/// In a long run, a line tells after so many seeds how far it is.
const TOLD_EVERY: u64 = 10_000;

/// Each wrong behaviour is found by one of so many seeds.
const SEEDS_OF_MUTANTS: u64 = 100;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs a seed; says which, if it panics or breaks an invariant.
fn run(seed: u64) -> sim::Outcome {
    let outcome = std::panic::catch_unwind(|| sim::run(seed));
    let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed} panicked; SIM_SEED={seed} runs it alone"));
    assert!(
        outcome.violations.is_empty(),
        "seed {seed} (SIM_SEED={seed} runs it alone): {:#?}",
        outcome.violations
    );
    outcome
}

#[test]
fn no_seed_breaks_an_invariant() {
    if let Some(seed) = number("SIM_SEED") {
        println!("seed {seed}: {:?}", run(seed));
        return;
    }
    let first = number("SIM_FIRST").unwrap_or(1);
    let behind = first + number("SIM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(first);
    let sums: [AtomicU64; 5] = Default::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= behind {
                        return;
                    }
                    let done = seed - first;
                    if done > 0 && done.is_multiple_of(TOLD_EVERY) {
                        eprintln!("{done} of {} seeds", behind - first);
                    }
                    let outcome = run(seed);
                    let counts = [
                        outcome.confirms,
                        outcome.deliveries,
                        outcome.acks,
                        outcome.refusals,
                        outcome.dead_letters,
                    ];
                    for (sum, count) in sums.iter().zip(counts) {
                        sum.fetch_add(count, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let [confirms, deliveries, acks, refusals, dead_letters] = &sums;
    println!(
        "{} seeds: {confirms:?} confirms, {deliveries:?} deliveries, {acks:?} acknowledgements, {refusals:?} refusals, {dead_letters:?} dead letters",
        behind - first
    );
    // Something must have happened, or nothing was shown.
    let least = behind - first;
    assert!(
        [confirms, deliveries, acks, dead_letters]
            .iter()
            .all(|it| it.load(Ordering::Relaxed) >= least)
    );
}

#[test]
fn a_seed_does_the_same_again_exactly() {
    for seed in 1..=10 {
        assert_eq!(sim::run(seed), sim::run(seed), "seed {seed}");
    }
}

#[test]
fn every_mutation_is_found() {
    for mutant in sim::Mutant::ALL {
        let found = (1..=SEEDS_OF_MUTANTS).find_map(|seed| {
            let violation = sim::run_mutant(seed, mutant).violations.into_iter().next();
            violation.map(|violation| (seed, violation))
        });
        let Some((seed, violation)) = found else {
            panic!("nobody noticed {mutant:?}");
        };
        println!(
            "{mutant:?}: seed {seed}, {}: {}",
            violation.invariant, violation.what
        );
    }
}
