//! How a run ended.

use crate::verify::Verdict;

/// What is known once no message is under way any more.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Why it stopped, in PerfTest's words, with how many producers or consumers said so.
    pub reasons: Vec<(String, usize)>,
    /// Why it could not go on to the end, if so: one line.
    pub cut_short: Option<String>,
    /// With `--verify`: whether every message is accounted for.
    pub verdict: Option<Verdict>,
    /// What the program ends with.
    pub exit_code: i32,
}
