//! What goes wrong around the node by the seed: calls of the file system that fail, and clocks that jump. The node
//! survives each of them, or ends and says why; either way nothing that was confirmed is lost.

use crate::coverage::{Coverage, Trouble};
use crate::world::Simulated;
use std::time::Duration;
use storage::faulty::{Fault, FaultyFs, Random};

/// The faults of one life, with the number of the call that each of them hits.
#[derive(Debug, Default)]
pub struct Plan {
    faults: Vec<(u64, Fault)>,
    /// So many calls had been made when it was looked last.
    seen: u64,
}

impl Plan {
    /// Decides what the disk will do in the next life.
    pub fn make(files: &FaultyFs, random: &mut Random, power_cut: bool) -> Self {
        if power_cut {
            let soon = 1 + random.below(1_500);
            files.fail_at(1 + random.below(soon), Fault::PowerCut);
        }
        let mut faults = Vec::new();
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
            faults.push((files.calls() + call, fault));
        }
        let seen = files.calls();
        Self { faults, seen }
    }

    /// True if one of them has come.
    pub fn has_struck(&self, files: &FaultyFs) -> bool {
        self.faults.iter().any(|(call, _)| *call <= files.calls())
    }

    /// Notes which of them have come since it was looked last.
    pub fn note(&mut self, files: &FaultyFs, coverage: &mut Coverage) {
        let calls = files.calls();
        for (_, fault) in (self.faults.iter()).filter(|(call, _)| (self.seen + 1..=calls).contains(call)) {
            coverage.struck(match fault {
                Fault::Full | Fault::ShortThenFull => Trouble::Full,
                Fault::Short => Trouble::Short,
                Fault::NoDescriptor => Trouble::NoDescriptor,
                Fault::Io | Fault::PowerCut => Trouble::Io,
            });
        }
        self.seen = calls;
    }
}

/// Somebody sets the clock now and then, and the machine sleeps now and then.
pub fn shake_clocks(world: &Simulated, random: &mut Random, coverage: &mut Coverage) {
    match random.below(100) {
        0 => {
            world.set_wall(random.below(172_800_000));
            coverage.struck(Trouble::WallClock);
        }
        1 => {
            world.advance(Duration::from_secs(random.below(7_200)));
            coverage.struck(Trouble::Sleep);
        }
        _ => {}
    }
}
