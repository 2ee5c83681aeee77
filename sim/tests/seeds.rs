//! Many seeds, and each of them twice where that is to be shown.

#![allow(clippy::unwrap_used, reason = "test code")]

use sim::coverage::Coverage;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many seeds are run unless `SIM_SEEDS` says otherwise.
const SEEDS: u64 = 2_000;

/// So many of the 414 cells of what the seeds reach may be empty: the rarest are reached once or twice, and what
/// changes in a node moves them.
const RARE: usize = 6;

/// In a long run, a line tells after so many seeds how far it is.
const TOLD_EVERY: u64 = 10_000;

/// Each wrong behaviour is found by one of so many seeds.
const SEEDS_OF_MUTANTS: u64 = 100;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// So many seeds that break an invariant are told of before the others are left out.
const FAILURES: usize = 5;

/// Runs a seed.
///
/// # Errors
/// It panicked or broke an invariant.
fn run(seed: u64) -> Result<sim::Outcome, String> {
    let named = format!("seed {seed} (SIM_SEED={seed} runs it alone)");
    let outcome = std::panic::catch_unwind(|| sim::run(seed)).map_err(|_| format!("{named} panicked"))?;
    match outcome.violations.is_empty() {
        true => Ok(outcome),
        false => Err(format!("{named}: {:#?}", outcome.violations)),
    }
}

/// Runs one seed, and prints what happens.
fn tell(seed: u64) {
    let outcome = sim::run_told(seed);
    outcome.story.iter().for_each(|line| println!("{line}"));
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

#[test]
fn no_seed_breaks_an_invariant() {
    if let Some(seed) = number("SIM_SEED") {
        tell(seed);
        return;
    }
    let first = number("SIM_FIRST").unwrap_or(1);
    let behind = first + number("SIM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(first);
    let sums: [AtomicU64; 5] = Default::default();
    let failures = Mutex::new(Vec::new());
    let coverage = Mutex::new(Coverage::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= behind || failures.lock().unwrap().len() >= FAILURES {
                        return;
                    }
                    let done = seed - first;
                    if done > 0 && done.is_multiple_of(TOLD_EVERY) {
                        eprintln!("{done} of {} seeds", behind - first);
                    }
                    let outcome = match run(seed) {
                        Ok(outcome) => outcome,
                        Err(failure) => {
                            failures.lock().unwrap().push(failure);
                            continue;
                        }
                    };
                    coverage.lock().unwrap().add(&outcome.coverage);
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
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
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
    let coverage = coverage.into_inner().unwrap();
    println!("{coverage}");
    let empty = coverage.empty();
    println!("no seed reaches {empty:?}");
    assert!(empty.len() <= RARE || least < SEEDS, "no seed reaches {empty:?}");
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
