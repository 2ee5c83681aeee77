//! Many seeds of several nodes.

#![allow(clippy::unwrap_used, reason = "test code")]

use sim::cluster;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many seeds are run unless `SIM_SEEDS` says otherwise.
const SEEDS: u64 = 2_000;

/// What all seeds together reach less often than so is named: some change of the code will have them miss it.
const RARE: u64 = 10;

/// So many seeds that break an invariant are told of before the others are left out.
const FAILURES: usize = 5;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(seed: u64) -> Result<cluster::Outcome, String> {
    let theme = cluster::Theme::of(seed);
    let named = format!("seed {seed} about {theme:?} (SIM_SEED={seed} runs it alone)");
    let outcome = std::panic::catch_unwind(|| cluster::run(seed)).map_err(|_| format!("{named} panicked"))?;
    match outcome.violations.is_empty() {
        true => Ok(outcome),
        false => Err(format!("{named}: {:#?}", outcome.violations)),
    }
}

#[test]
fn no_seed_of_several_nodes_breaks_an_invariant() {
    if let Some(seed) = number("SIM_SEED") {
        let outcome = cluster::run_told(seed);
        outcome.story.iter().for_each(|line| println!("{line}"));
        assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
        return;
    }
    let only = std::env::var("SIM_THEME").ok();
    let is_wanted = |seed| {
        let theme = format!("{:?}", cluster::Theme::of(seed));
        only.as_ref().is_none_or(|only| *only == theme)
    };
    let first = number("SIM_FIRST").unwrap_or(1);
    let behind = first + number("SIM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(first);
    let (failures, sums) = (Mutex::new(Vec::new()), Mutex::new(cluster::Counts::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= behind || failures.lock().unwrap().len() >= FAILURES {
                        return;
                    }
                    if !is_wanted(seed) {
                        continue;
                    }
                    match run(seed) {
                        Ok(outcome) => sums.lock().unwrap().add(&outcome.counts),
                        Err(failure) => failures.lock().unwrap().push(failure),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let sums = sums.into_inner().unwrap();
    println!("{} seeds: {sums}\n{}", behind - first, sums.coverage);
    let rare = sums.coverage.below(RARE);
    println!("reached less often than {RARE} times: {rare:?}");
    let empty: Vec<_> = rare.iter().filter(|(count, _)| *count == 0).collect();
    let unreached = sums.rot.unreached();
    assert!(
        empty.is_empty() && unreached.is_empty() || behind - first < SEEDS || only.is_some(),
        "no seed has reached {empty:?} {unreached:?}"
    );
}

#[test]
fn a_seed_of_several_nodes_does_the_same_again_exactly() {
    for seed in 1..=5 {
        assert_eq!(cluster::run(seed), cluster::run(seed), "seed {seed}");
    }
}
