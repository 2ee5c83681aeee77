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

/// A queue goes to a group, and then back, and the power is cut at each call of that, in several worlds. The first that is wrong.
fn wherever_the_power_is_cut() -> Option<String> {
    for (seed, back) in (1..=number("SIM_CUTS", 150)).flat_map(|seed| [(seed, false), (seed, true)]) {
        for call in 1.. {
            match sim::handover::run_cut_at(seed, back, call) {
                Ok(true) => {}
                Ok(false) => break,
                Err(what) => return Some(format!("seed {seed}, back: {back}, call {call}: {what}")),
            }
        }
    }
    None
}

#[test]
fn wherever_the_power_is_cut_one_journal_goes_on() {
    assert_eq!(wherever_the_power_is_cut(), None);
}

/// Two batches that follow each other at once mostly become one write, and few seeds cut the power within it: these are looked
/// for at every write.
const WITHIN_A_WRITE: [Mutant; 2] = [Mutant::HandsOverBefore, Mutant::ForgetsBefore];

#[test]
fn what_a_handover_would_do_wrong_is_found() {
    for mutant in Mutant::OF_HANDOVER {
        Mutant::turn_on(Some(mutant));
        let found = match WITHIN_A_WRITE.contains(&mutant) {
            true => wherever_the_power_is_cut(),
            false => (1..=150).find_map(|seed| {
                let run = AssertUnwindSafe(|| sim::handover::run(seed).map(drop));
                let outcome = catch_unwind(run).unwrap_or_else(|_| Err("a panic".to_owned()));
                outcome.err().map(|what| format!("seed {seed}: {what}"))
            }),
        };
        Mutant::turn_on(None);
        println!("{mutant:?}: {found:?}");
        assert!(found.is_some(), "nobody noticed {mutant:?}");
    }
}
