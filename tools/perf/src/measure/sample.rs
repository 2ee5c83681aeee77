//! What a run hands to its reports.

use super::Recorder;
use std::time::Duration;

/// What happened in one interval.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Wall clock, microseconds since 1970.
    pub from_unix_us: u64,
    pub to_unix_us: u64,
    /// Since the start of the run, at the end of the interval.
    pub elapsed: Duration,
    /// How long the interval was.
    pub interval: Duration,
    pub recorder: Recorder,
}
