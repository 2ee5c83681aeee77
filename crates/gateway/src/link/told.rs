//! Lines of log that would be repeated for as long as something stays wrong.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The same line is written again after so long.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// So many lines are remembered at the most; then all are forgotten.
const LINES: usize = 256;

/// What was told lately.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<BTreeMap<String, Instant>>);

impl Told {
    /// Whether to tell it now.
    pub fn is_due(&self, line: &str, now: Instant) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = told.get(line)
            && now.saturating_duration_since(*last) < AGAIN_AFTER
        {
            return false;
        }
        if told.len() >= LINES {
            told.clear();
        }
        told.insert(line.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_once_a_minute_and_others_meanwhile() {
        let (told, start) = (Told::default(), Instant::now());
        assert!(told.is_due("one", start));
        assert!(!told.is_due("one", start + Duration::from_secs(59)));
        assert!(told.is_due("two", start));
        assert!(told.is_due("one", start + Duration::from_secs(60)));
        for line in 0..2 * LINES {
            told.is_due(&line.to_string(), start);
        }
        assert!(told.0.lock().unwrap().len() <= LINES);
    }
}
