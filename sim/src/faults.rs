//! What goes wrong around the node by the seed: calls of the file system that fail, and clocks that jump. The node
//! survives each of them, or ends and says why; either way nothing that was confirmed is lost.

use crate::world::Simulated;
use std::time::Duration;
use storage::faulty::{Fault, FaultyFs, Random};

/// The faults of one life, by the number of the call that each of them hits.
#[derive(Debug, Default)]
pub struct Plan {
    calls: Vec<u64>,
}

impl Plan {
    /// Decides what the disk will do in the next life.
    pub fn make(files: &FaultyFs, random: &mut Random, power_cut: bool) -> Self {
        if power_cut {
            let soon = 1 + random.below(1_500);
            files.fail_at(1 + random.below(soon), Fault::PowerCut);
        }
        let mut calls = Vec::new();
        for _ in 0..random.below(4) {
            let fault = match random.below(6) {
                0 => Fault::Full,
                1 => Fault::ShortThenFull,
                2 => Fault::NoDescriptor,
                // After an error of the log's own file the life is short.
                3 => Fault::Io,
                _ => Fault::Short,
            };
            // Seldom while the node starts: it may say so and not start.
            let first = if random.below(8) == 0 { 1 } else { 200 };
            let call = first + random.below(1_000);
            files.fail_at(call, fault);
            calls.push(files.calls() + call);
        }
        Self { calls }
    }

    /// True if one of them has come.
    pub fn has_struck(&self, files: &FaultyFs) -> bool {
        self.calls.iter().any(|call| *call <= files.calls())
    }
}

/// Somebody sets the clock now and then, and the machine sleeps now and then.
pub fn shake_clocks(world: &Simulated, random: &mut Random) {
    match random.below(100) {
        0 => world.set_wall(random.below(172_800_000)),
        1 => world.advance(Duration::from_secs(random.below(7_200))),
        _ => {}
    }
}
