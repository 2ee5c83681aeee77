//! A queue's journal becomes a group's and its node's own again, and the power is cut at any write of that.

#![allow(clippy::unwrap_used, reason = "test code")]

use model::Mutant;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|value| value.parse().ok()).unwrap_or(usual)
}

#[test]
fn whatever_a_power_cut_leaves_of_a_handover_one_journal_goes_on_with_all_that_was_confirmed() {
    let first = number("SIM_FIRST", 1);
    let mut handed = [0; 3];
    for seed in first..first + number("SIM_SEEDS", 150) {
        let run = sim::handover::run(seed).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        handed
            .iter_mut()
            .zip(run.handed)
            .for_each(|(sum, more)| *sum += more);
    }
    println!("{handed:?} handovers to groups, back, and given up");
    assert!(handed[0] > 100 && handed[1] > 50 && handed[2] > 0, "{handed:?}");
}

/// Two batches that follow each other at once mostly become one write: so few seeds cut the power between them.
const NOT_FOUND_YET: [Mutant; 2] = [Mutant::HandsOverBefore, Mutant::ForgetsBefore];

#[test]
fn what_a_handover_would_do_wrong_is_found() {
    let looked_for = |mutant: &Mutant| !NOT_FOUND_YET.contains(mutant);
    for mutant in Mutant::OF_HANDOVER.into_iter().filter(looked_for) {
        let found = (1..=150).find(|seed| {
            Mutant::turn_on(Some(mutant));
            let outcome = catch_unwind(AssertUnwindSafe(|| sim::handover::run(*seed)));
            Mutant::turn_on(None);
            !matches!(outcome, Ok(Ok(_)))
        });
        println!("{mutant:?}: seed {found:?}");
        assert!(found.is_some(), "nobody noticed {mutant:?}");
    }
}
