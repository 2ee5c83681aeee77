//! What one seed does: some lives of a node, each ended in its way, and a last one in which everything is looked at.

use crate::coverage::{Coverage, Trouble};
use crate::faults::Plan;
use crate::ledger::{Ledger, Violation};
use crate::life::{Ending, Life};
use crate::mutant::Mutant;
use crate::world::{Simulated, until_power_cut};
use std::time::Duration;
use storage::faulty::{FaultyFs, Random};

/// What became of a seed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    pub violations: Vec<Violation>,
    /// What happened, in words, if that was wanted.
    pub story: Vec<String>,
    /// What it reached.
    pub coverage: Coverage,
    /// A sum over everything that happened.
    pub digest: u64,
    pub confirms: u64,
    pub deliveries: u64,
    pub acks: u64,
    pub refusals: u64,
    /// Dead letters that were delivered.
    pub dead_letters: u64,
}

/// Runs a seed.
pub fn run(seed: u64) -> Outcome {
    run_with(seed, Ledger::default())
}

/// Runs a seed, and writes down what happens.
pub fn run_told(seed: u64) -> Outcome {
    let story = Some(Vec::new());
    run_with(
        seed,
        Ledger {
            story,
            ..Ledger::default()
        },
    )
}

/// Runs a seed with a node that does something wrong.
pub fn run_mutant(seed: u64, mutant: Mutant) -> Outcome {
    let mutant = Some(mutant);
    run_with(
        seed,
        Ledger {
            mutant,
            ..Ledger::default()
        },
    )
}

fn run_with(seed: u64, mut ledger: Ledger) -> Outcome {
    let mutant = ledger.mutant;
    let mut random = Random(seed);
    let mut files = FaultyFs::new();
    let mut now = Duration::from_secs(1);
    if mutant == Some(Mutant::NoSync) {
        files.set_lying();
    }
    let lives = 1 + random.below(3);
    for _ in 0..lives {
        let ending = match random.below(4) {
            0 => Ending::Closed,
            1 => Ending::Killed,
            _ => Ending::PowerCut,
        };
        ledger.tell(|| format!("a life begins that is to be {ending:?}"));
        let mut plan = Plan::make(&files, &mut random, ending == Ending::PowerCut);
        let world = Simulated::new(files.clone(), now, random.bits());
        if let Some(mut life) = Life::begin(&world, &files, &plan, &mut ledger) {
            until_power_cut(|| life.go(&mut ledger, &mut random, &mut plan));
            life.end(&mut ledger, ending);
        }
        if !ledger.violations.is_empty() {
            return outcome(ledger);
        }
        plan.note(&files, &mut ledger.coverage);
        world.abandon();
        let cut = ending == Ending::PowerCut || files.is_off();
        ledger.coverage.struck(match ending {
            _ if cut => Trouble::PowerCut,
            Ending::Closed => Trouble::Closed,
            _ => Trouble::Killed,
        });
        files = if cut {
            files.crash(random.bits())
        } else {
            files.kill()
        };
        if let Some(mutant) = mutant {
            mutant.spoil(&files);
        }
        now = storage::World::elapsed(world.as_ref()) + Duration::from_secs(1);
    }
    let world = Simulated::new(files.clone(), now, random.bits());
    if let Some(life) = Life::begin(&world, &files, &Plan::default(), &mut ledger) {
        life.look_at_everything(&mut ledger);
    }
    world.abandon();
    outcome(ledger)
}

fn outcome(ledger: Ledger) -> Outcome {
    Outcome {
        violations: ledger.violations,
        story: ledger.story.unwrap_or_default(),
        coverage: ledger.coverage,
        digest: ledger.digest,
        confirms: ledger.confirms,
        deliveries: ledger.deliveries,
        acks: ledger.acks,
        refusals: ledger.refusals,
        dead_letters: ledger.dead_letters,
    }
}
