//! A stream that three whole brokers have.
//!
//! `SIM_SEED=29` runs one seed again and tells what happens, `SIM_SEEDS=100000` runs more, `SIM_FIRST=5000` others.

#![allow(clippy::unwrap_used, reason = "test code")]

use sim::brokers::{self, Brokers, COUNTED_OF_STREAM};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|value| value.parse().ok()).unwrap_or(usual)
}

fn run(seed: u64, told: bool) -> Result<Brokers, String> {
    brokers::run_stream(seed, told, Arc::new(|| {}))
}

#[test]
fn whatever_becomes_of_nodes_and_links_all_copies_of_a_stream_have_what_it_confirmed() {
    let one = std::env::var("SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = one.unwrap_or(number("SIM_FIRST", 1));
    let count = one.map_or(number("SIM_SEEDS", 120), |_| 1);
    // Further ones are looked at as well, for whoever wants to see them all.
    let (mut failed, most) = (Vec::new(), number("SIM_FAILURES", 1) as usize);
    let (mut counts, began) = ([0; 8], Instant::now());
    for seed in first..first + count {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, one.is_some())));
        match outcome.unwrap_or_else(|_| Err("it panics".to_owned())) {
            Ok(run) => counts
                .iter_mut()
                .zip(run.counts)
                .for_each(|(sum, more)| *sum += more),
            Err(what) => failed.push(format!("seed {seed}: {what}")),
        }
        if failed.len() >= most {
            break;
        }
    }
    let told: Vec<_> = counts.iter().zip(COUNTED_OF_STREAM).collect();
    println!("{told:?}, in {:?}", began.elapsed());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(count < 120 || told.iter().all(|(sum, _)| **sum > 10), "{told:?}");
}

#[test]
fn a_seed_of_a_stream_does_the_same_each_time() {
    for seed in 1..=6 {
        let digest = || run(seed, false).map(|run| run.digest);
        assert_eq!(digest(), digest(), "seed {seed}");
    }
}
