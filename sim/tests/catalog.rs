//! One catalog on several nodes: what anybody was told is so for all who ask afterwards.

#![allow(clippy::unwrap_used, reason = "test code")]

use model::Mutant;
use sim::catalog::ledger::Counts;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|value| value.parse().ok()).unwrap_or(usual)
}

#[test]
fn whatever_happens_the_catalog_is_one_and_says_nothing_that_is_not_so() {
    let (mut first, mut seeds) = (number("SIM_FIRST", 1), number("SIM_SEEDS", 500));
    if let Ok(seed) = std::env::var("SIM_SEED") {
        (first, seeds) = (seed.parse().unwrap(), 1);
    }
    let mut counts = Counts::default();
    for seed in first..first + seeds {
        let outcome = sim::catalog::run(seed);
        assert_eq!(outcome.violation, None, "seed {seed}");
        counts.add(outcome.counts);
    }
    println!("{counts:?}");
}

#[test]
fn nobody_is_cut_off_while_whoever_leads_and_another_node_have_no_link() {
    for seed in 1..=number("SIM_SEEDS", 100) {
        assert_eq!(sim::catalog::bridge(seed), None, "seed {seed}");
    }
}

#[test]
fn what_a_catalog_of_several_nodes_would_do_wrong_is_found() {
    for mutant in Mutant::OF_CATALOG {
        let found = (1..=number("SIM_SEEDS", 500)).find(|seed| {
            Mutant::turn_on(Some(mutant));
            let outcome = catch_unwind(AssertUnwindSafe(|| sim::catalog::run(*seed)));
            Mutant::turn_on(None);
            outcome.is_ok_and(|outcome| outcome.violation.is_some())
        });
        println!("{mutant:?}: seed {found:?}");
        assert!(found.is_some(), "nobody noticed {mutant:?}");
    }
}

#[test]
fn a_broker_shares_its_catalog_while_a_client_is_connected_and_another_node_decides_for_both() {
    for seed in 1..=5 {
        let mut pair = sim::catalog::joined::Pair::new(seed).unwrap();
        pair.declare("alone").unwrap();
        pair.share();
        pair.declare("shared").unwrap();
        pair.join().unwrap();
        pair.declare("joined").unwrap();
        pair.hand_over().unwrap();
        pair.declare("decided there").unwrap();
        for name in ["alone", "shared", "joined"] {
            pair.has(name).unwrap();
        }
        assert!(pair.is_equal());
        pair.becomes(false).unwrap();
        pair.cut(true);
        pair.becomes(true).unwrap();
        let refused = pair.declare("cut off").unwrap_err();
        assert_eq!(
            refused,
            "failed to declare queue 'cut off' in vhost '/' because the operation timed out"
        );
        pair.cut(false);
        pair.becomes(false).unwrap();
        pair.declare("healed").unwrap();
        assert_eq!(pair.violation(), None);
    }
}
