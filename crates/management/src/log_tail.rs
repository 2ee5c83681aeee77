//! The last lines of the log: a ring in memory.
//!
//! Lines of the audit trail have a ring of their own, so that a flood of others does not wash them away. Lines hold no
//! secrets, and no bodies of requests.

use crate::refusal::Refusal;
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How many lines are kept: of the log, and of the audit trail.
const KEPT: [usize; 2] = [2_000, 500];
/// The longest line, in bytes; the rest of a longer one is left out.
pub const LINE_BYTES: usize = 2_048;
/// The area of the audit trail.
const AUDIT: &str = "audit";
/// Levels, by how much they matter.
const LEVELS: [&str; 5] = ["error", "warning", "info", "debug", "trace"];

/// The last lines of the log.
#[derive(Debug, Default)]
pub struct LogTail {
    rings: Mutex<Rings>,
}

/// What is kept: the lines of the log and those of the audit trail, each with its number since the start.
#[derive(Debug, Default)]
struct Rings {
    kept: [VecDeque<(u64, LogLine)>; 2],
    written: u64,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written, in milliseconds since 1970.
    pub at_ms: u64,
    /// RabbitMQ's word for how important it is: `error`, `warning`, `info`, `debug`.
    pub level: &'static str,
    /// Who speaks: `connection`, `audit`, …
    pub area: String,
    /// What is said, with its fields.
    pub text: String,
}

/// Which lines are asked for.
pub struct LogQuery<'q> {
    /// Lines that matter as much, or more.
    pub level: usize,
    /// Those of this area alone.
    pub area: Option<&'q str>,
    /// Those with this text, in lower case.
    pub text: String,
    /// So many of them at most, the newest.
    pub count: usize,
}

impl LogTail {
    /// Keeps a line, and forgets the oldest if there are too many.
    pub fn push(&self, mut line: LogLine) {
        if line.text.len() > LINE_BYTES {
            let end = (0..=LINE_BYTES).rev().find(|at| line.text.is_char_boundary(*at));
            line.text.truncate(end.unwrap_or(0));
            line.text.push('…');
            line.text.shrink_to_fit();
        }
        let which = usize::from(line.area == AUDIT);
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.written += 1;
        let number = rings.written;
        let ring = &mut rings.kept[which];
        if ring.len() == KEPT[which] {
            ring.pop_front();
        }
        ring.push_back((number, line));
    }

    /// How many lines were written since the start.
    pub fn written(&self) -> u64 {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).written
    }

    /// The lines after this number that matter as much as `level` or more, in the order in which they were written, and
    /// how many are kept no more. The number becomes that of the last line.
    pub fn since(&self, after: &mut u64, level: usize) -> (Vec<Value>, u64) {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = rings.kept.iter().flatten();
        // Whoever knows of later ones has them of an earlier start.
        if *after > rings.written {
            *after = 0;
        }
        let mut lines: Vec<_> = lines.filter(|(number, _)| number > after).collect();
        lines.sort_unstable_by_key(|(number, _)| *number);
        let lost = (rings.written - *after).saturating_sub(lines.len() as u64);
        *after = rings.written;
        let meant = lines.iter().filter(|(_, line)| line.matters(level));
        let shown = meant.map(|(_, line)| {
            let mut shown = line.shown();
            shown["time"] = line.time().into();
            shown
        });
        (shown.collect(), lost)
    }

    /// The lines of the log (0) or of the audit trail (1), the newest first.
    pub fn answer(&self, which: usize, wanted: &LogQuery<'_>) -> Value {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = &rings.kept[which];
        let areas: BTreeSet<&str> = ring.iter().map(|(_, line)| line.area.as_str()).collect();
        let lines = ring
            .iter()
            .rev()
            .map(|(_, line)| line)
            .filter(|line| wanted.takes(line))
            .take(wanted.count);
        json!({
            "lines": lines.map(LogLine::shown).collect::<Value>(),
            "areas": areas,
            "kept": ring.len(),
            "kept_at_most": KEPT[which],
            "oldest": ring.front().map(|(_, line)| line.at_ms),
        })
    }
}

impl LogLine {
    /// True if the line matters as much as this level, or more.
    fn matters(&self, level: usize) -> bool {
        let own = LEVELS.iter().position(|known| *known == self.level);
        own.is_some_and(|own| own <= level)
    }

    /// When it was written, as log files have it.
    fn time(&self) -> String {
        let moment = listener::expiry::moment(self.at_ms / 1000);
        let moment = moment.trim_end_matches('Z').replace('T', " ");
        format!("{moment}.{:03}", self.at_ms % 1000)
    }

    fn shown(&self) -> Value {
        json!({"at": self.at_ms, "level": self.level, "area": self.area, "text": self.text})
    }
}

impl LogQuery<'_> {
    fn takes(&self, line: &LogLine) -> bool {
        line.matters(self.level)
            && self.area.is_none_or(|area| area == line.area)
            && (self.text.is_empty() || line.text.to_lowercase().contains(&self.text))
    }
}

/// A level by its name, all if none is named.
pub fn level(name: Option<&str>) -> Result<usize, Refusal> {
    match name {
        None => Ok(LEVELS.len() - 1),
        Some(name) => LEVELS
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| Refusal::bad_request("level is one of error, warning, info, debug")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(area: &str, level: &'static str, text: &str) -> LogLine {
        LogLine {
            at_ms: 1,
            level,
            area: area.into(),
            text: text.into(),
        }
    }

    fn all() -> LogQuery<'static> {
        LogQuery {
            level: 4,
            area: None,
            text: String::new(),
            count: 500,
        }
    }

    fn texts(answer: &Value) -> Vec<&str> {
        let lines = answer["lines"].as_array().unwrap();
        lines.iter().map(|line| line["text"].as_str().unwrap()).collect()
    }

    #[test]
    fn the_newest_line_comes_first_and_filters_hold_together() {
        let tail = LogTail::default();
        tail.push(line("connection", "info", "Ada came"));
        tail.push(line("connection", "warning", "Ada went without a word"));
        tail.push(line("log", "error", "a sync failed"));
        assert_eq!(
            texts(&tail.answer(0, &all())),
            ["a sync failed", "Ada went without a word", "Ada came"]
        );
        let some = LogQuery {
            level: 1,
            area: Some("connection"),
            text: "ada".into(),
            ..all()
        };
        let answer = tail.answer(0, &some);
        assert_eq!(texts(&answer), ["Ada went without a word"]);
        assert_eq!(answer["areas"], json!(["connection", "log"]));
    }

    #[test]
    fn a_flood_of_other_lines_leaves_the_audit_trail() {
        let tail = LogTail::default();
        tail.push(line(AUDIT, "info", "user 'ada': DELETE /api/queues/%2F/orders"));
        (0..KEPT[0] + 7).for_each(|at| tail.push(line("connection", "info", &at.to_string())));
        assert_eq!(texts(&tail.answer(1, &all())).len(), 1);
        let log = tail.answer(0, &all());
        assert_eq!((texts(&log).len(), texts(&log)[0]), (500, "2006"));
        assert_eq!(log["kept"], KEPT[0]);
    }

    #[test]
    fn a_long_line_is_cut_between_two_characters() {
        let tail = LogTail::default();
        tail.push(line("connection", "info", &"é".repeat(LINE_BYTES)));
        let answer = tail.answer(0, &all());
        assert_eq!(texts(&answer)[0].chars().count(), LINE_BYTES / 2 + 1);
    }
}
