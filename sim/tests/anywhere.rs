//! A classic queue through other nodes, whatever becomes of links and nodes.

#![allow(clippy::unwrap_used, reason = "test code")]

fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|value| value.parse().ok()).unwrap_or(usual)
}

#[test]
fn whatever_becomes_of_links_and_nodes_a_queue_elsewhere_keeps_what_it_confirmed_once_and_in_order() {
    let one = std::env::var("SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = one.unwrap_or(number("SIM_FIRST", 1));
    let count = one.map_or(number("SIM_SEEDS", 400), |_| 1);
    let mut counts = [0; 5];
    for seed in first..first + count {
        let run =
            sim::anywhere::run(seed, one.is_some()).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
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
