//! What brokers would do wrong with a stream that all of them have: each of it is found, or the invariants see nothing.
//! `SIM_MUTANT` names one.

use model::Mutant;
use sim::brokers;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|value| value.parse().ok()).unwrap_or(usual)
}

#[test]
fn what_brokers_would_do_wrong_with_a_stream_is_found() {
    let within = number("SIM_SEEDS", 250);
    let only = std::env::var("SIM_MUTANT").ok();
    let is_meant = |it: &Mutant| only.as_ref().is_none_or(|only| *only == format!("{it:?}"));
    let mut missed = Vec::new();
    for mutant in Mutant::OF_STREAMS.into_iter().filter(is_meant) {
        // A node that falls over it is found, too, but says nothing of the invariants.
        let found = (1..=within).find_map(|seed| {
            Mutant::turn_on(Some(mutant));
            let prepare = Arc::new(move || Mutant::turn_on(Some(mutant)));
            let outcome = catch_unwind(AssertUnwindSafe(|| brokers::run_stream(seed, false, prepare)));
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
