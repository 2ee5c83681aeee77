//! Scenarios that can be run: what a visit does. `scenario_file` says where they come from.

use crate::results::{PlotKind, Point};
use serde::{Deserialize, Serialize};

/// What the flags of a load over the stream protocol begin with.
pub const STREAM_PERF: &str = "stream-perf";
/// Filled in at each visit: unique, for the names of durable queues.
pub const VISIT: &str = "visit";
/// The rounds that the `rounds` of a scenario are meant for.
pub const DEFAULT_ROUNDS: u32 = 5;

/// When a scenario is run: each level includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// With `--smoke`, and always.
    Smoke,
    /// Without `--smoke`.
    Full,
    /// With `--all`.
    Long,
}

/// A scenario that can be run: of a sweep, one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    pub name: String,
    pub title: String,
    pub group: String,
    /// A load that is run to its end before and does not count, as `flags`; empty if there is none.
    #[serde(default)]
    pub fill: Vec<String>,
    /// A guess of what that takes, for the estimate.
    #[serde(default)]
    pub fill_seconds: f64,
    /// Without URI, output and time; `{visit}` may stand in it.
    pub flags: Vec<String>,
    /// Length of the measured window; of a run that ends by itself, a guess for the estimate.
    pub seconds: f64,
    pub warmup: f64,
    /// Seconds that connecting, filling and deleting may take beside the load itself before the visit has failed.
    pub timeout: f64,
    /// Visits to each target where five rounds are asked for.
    pub rounds: u32,
    pub level: Level,
    pub plot: Option<PlotKind>,
    pub ends_itself: bool,
    pub point: Option<Point>,
}

impl Scenario {
    /// Visits to each target where so many rounds are asked for: at least one.
    pub fn rounds_of(&self, asked: u32) -> u32 {
        (self.rounds * asked).div_ceil(DEFAULT_ROUNDS).max(1)
    }

    /// What a visit takes but for connecting and the like, in seconds.
    pub fn load_seconds(&self) -> f64 {
        if self.ends_itself {
            self.seconds
        } else {
            self.warmup + self.seconds
        }
    }

    /// Whether the load is over the stream protocol.
    pub fn is_of_streams(&self) -> bool {
        self.flags.first().is_some_and(|word| word == STREAM_PERF)
    }

    /// Whether disk syncs are to be expected.
    pub fn is_durable(&self) -> bool {
        self.is_of_streams()
            || self
                .flags
                .iter()
                .any(|word| word == "persistent" || word == "churn" || word == "--quorum-queue")
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario_file;

    #[test]
    fn rounds_grow_and_shrink_with_what_is_asked_for() {
        let mut scenario = scenario_file::read("[[scenario]]\nname='A'\ntitle='a'\nflags=''")
            .unwrap()
            .remove(0);
        scenario.rounds = 5;
        assert_eq!(
            [1, 2, 5, 10].map(|asked| scenario.rounds_of(asked)),
            [1, 2, 5, 10]
        );
        scenario.rounds = 2;
        assert_eq!([1, 2, 5, 10].map(|asked| scenario.rounds_of(asked)), [1, 1, 2, 4]);
        scenario.rounds = 1;
        assert_eq!([1, 5, 10].map(|asked| scenario.rounds_of(asked)), [1, 1, 2]);
    }
}
