//! What exchanges that keep something would do wrong on several nodes: each of it is found, or the invariants see nothing.

use model::Mutant;
use sim::anywhere::exchanges;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A violation is what the ledger says, not that the node fell over it.
const WITHIN: u64 = 400;

#[test]
fn what_exchanges_of_several_nodes_would_do_wrong_is_found() {
    for mutant in Mutant::OF_EXCHANGES {
        let found = (1..=WITHIN).find_map(|seed| {
            Mutant::turn_on(Some(mutant));
            let outcome = catch_unwind(AssertUnwindSafe(|| exchanges::run(seed, false)));
            Mutant::turn_on(None);
            let what = outcome.ok().and_then(Result::err)?;
            Some((seed, what.chars().take(80).collect::<String>()))
        });
        println!("{mutant:?}: {found:?}");
        assert!(found.is_some(), "nobody noticed {mutant:?}");
    }
}
