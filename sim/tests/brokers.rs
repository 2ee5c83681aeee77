//! Whole brokers with a queue that several of them have, at times or from the beginning.

#![allow(clippy::unwrap_used, reason = "test code")]

use sim::brokers::{self, Brokers, COUNTED};
use std::sync::Arc;
use std::time::Instant;

const REFUSED: &str = "messages refused";

fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|value| value.parse().ok()).unwrap_or(usual)
}

fn run(seed: u64, told: bool) -> Result<Brokers, String> {
    brokers::run(seed, told, Arc::new(|| {}))
}

#[test]
fn whatever_becomes_of_nodes_links_and_members_a_queue_keeps_what_it_confirmed_once_and_in_order() {
    let one = std::env::var("SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = one.unwrap_or(number("SIM_FIRST", 1));
    let count = one.map_or(number("SIM_SEEDS", 60), |_| 1);
    // Further ones are looked at as well, for whoever wants to see them all.
    let (mut failed, most) = (Vec::new(), number("SIM_FAILURES", 1) as usize);
    let (mut counts, began) = ([0; 8], Instant::now());
    for seed in first..first + count {
        match run(seed, one.is_some()) {
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
    let told: Vec<_> = counts.iter().zip(COUNTED).collect();
    println!("{told:?}, in {:?}", began.elapsed());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // What nobody answers for seconds is rare.
    let happens = |(sum, what): &(&u64, &str)| **sum > 10 || *what == REFUSED && count < 1_000;
    assert!(count < 60 || told.iter().all(happens), "{told:?}");
}

#[test]
fn a_seed_of_whole_brokers_does_the_same_each_time() {
    for seed in 1..=6 {
        let digest = || run(seed, false).map(|run| run.digest);
        assert_eq!(digest(), digest(), "seed {seed}");
    }
}
