//! Which columns and parts of lines a run shows.

use crate::plan::Plan;

/// A part is shown if the command line lets it become other than 0, as in PerfTest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// There are producers.
    pub published: bool,
    /// There are consumers.
    pub received: bool,
    /// `--flag mandatory`.
    pub returned: bool,
    /// `--confirm`, whether there are producers or not.
    pub confirm_asked: bool,
    /// `--use-millis`: latencies are shown in milliseconds.
    pub millis: bool,
}

impl Parts {
    pub fn of(plan: &Plan) -> Self {
        Self {
            published: plan.producing.producers > 0,
            received: plan.consuming.consumers > 0,
            returned: plan.producing.mandatory,
            confirm_asked: plan.producing.confirm.is_some(),
            millis: plan.report.millis,
        }
    }

    /// Confirms come to producers only.
    pub fn confirmed(&self) -> bool {
        self.published && self.confirm_asked
    }

    /// The unit of shown latencies.
    pub fn unit(&self) -> &'static str {
        if self.millis { "ms" } else { "µs" }
    }

    /// A latency in that unit, rounded. PerfTest cuts off, but it knows nanoseconds and not a histogram's three digits,
    /// of which 3 ms may be 2.9997 ms.
    pub fn shown(&self, ns: u64) -> u64 {
        let unit = if self.millis { 1_000_000 } else { 1_000 };
        ns.saturating_add(unit / 2) / unit
    }
}
