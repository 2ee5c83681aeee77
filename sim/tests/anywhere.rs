//! A classic queue through other nodes, and exchanges that keep something, whatever becomes of links and nodes.

#![allow(clippy::unwrap_used, reason = "test code")]

use sim::anywhere::exchanges;

fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// The seeds to run, and whether what happens in them is told.
fn seeds() -> (std::ops::Range<u64>, bool) {
    let one = std::env::var("SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = one.unwrap_or(number("SIM_FIRST", 1));
    let count = one.map_or(number("SIM_SEEDS", 400), |_| 1);
    (first..first + count, one.is_some())
}

#[test]
fn whatever_becomes_of_links_and_nodes_a_queue_elsewhere_keeps_what_it_confirmed_once_and_in_order() {
    let (seeds, told) = seeds();
    let (mut counts, count) = ([0; 5], seeds.end - seeds.start);
    for seed in seeds {
        let run = sim::anywhere::run(seed, told).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        counts
            .iter_mut()
            .zip(run.counts)
            .for_each(|(sum, more)| *sum += more);
    }
    println!(
        "{counts:?} links broken, starts again, refusals, late acknowledgements, publishes through a third node"
    );
    assert!(
        count < 400 || counts.iter().all(|count| *count > 100),
        "{counts:?}"
    );
}

#[test]
fn whatever_becomes_of_links_and_nodes_exchanges_elsewhere_let_pass_what_they_confirmed_once_and_in_time() {
    let (seeds, told) = seeds();
    let (mut counts, count) = ([0; 8], seeds.end - seeds.start);
    for seed in seeds {
        let run = exchanges::run(seed, told).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        counts
            .iter_mut()
            .zip(run.counts)
            .for_each(|(sum, more)| *sum += more);
    }
    let told: Vec<_> = counts.iter().zip(exchanges::COUNTED).collect();
    println!("{told:?}");
    assert!(
        count < 400 || counts.iter().all(|count| *count > 100),
        "{counts:?}"
    );
}

#[test]
fn a_seed_of_exchanges_elsewhere_does_the_same_each_time() {
    for seed in 1..10 {
        let digest = || exchanges::run(seed, false).map(|run| run.digest);
        assert_eq!(digest(), digest(), "seed {seed}");
    }
}
