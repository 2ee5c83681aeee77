//! What whole brokers would do wrong with a queue that is one node's and several nodes' by turns: each of it is found, or the
//! invariants see nothing. What is not among them: [`Mutant::GrowsUnsynced`], which does nothing that others see, since a member
//! commits nothing before it is synced; and what takes a power cut in the middle of one write, which `handover.rs` has.
//! `SIM_MUTANT` names any of them.

use model::Mutant;
use sim::brokers;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const FOUND: [Mutant; 8] = [
    Mutant::GrowsInOldTerms,
    Mutant::GrowthAsksForNodes,
    Mutant::GrowthDropsWaiting,
    Mutant::GrowthForgetsOwn,
    Mutant::GroupsShareNumbers,
    Mutant::RetreatsInOldTerms,
    Mutant::RetreatForgetsGroup,
    Mutant::HandsOverLater,
];

fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|value| value.parse().ok()).unwrap_or(usual)
}

#[test]
fn what_brokers_would_do_wrong_while_a_queue_grows_and_is_mirrored_is_found() {
    let within = number("SIM_SEEDS", 400);
    let only = std::env::var("SIM_MUTANT").ok();
    let all = Mutant::OF_GROWTH.into_iter().chain(Mutant::OF_HANDOVER);
    let is_meant = |it: &Mutant| match &only {
        Some(only) => *only == format!("{it:?}"),
        None => FOUND.contains(it),
    };
    let mut missed = Vec::new();
    for mutant in all.filter(is_meant) {
        // A node that falls over it is found, too, but says nothing of the invariants.
        let found = (1..=within).find_map(|seed| {
            Mutant::turn_on(Some(mutant));
            let prepare = Arc::new(move || Mutant::turn_on(Some(mutant)));
            let outcome = catch_unwind(AssertUnwindSafe(|| brokers::run(seed, false, prepare)));
            Mutant::turn_on(None);
            let what = outcome.ok().and_then(Result::err)?;
            Some((seed, what.chars().take(80).collect::<String>()))
        });
        println!("{mutant:?}: {found:?}");
        if found.is_none() {
            missed.push(mutant);
        }
    }
    assert!(missed.is_empty(), "nobody noticed {missed:?}");
}
