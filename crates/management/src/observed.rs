//! What happens on the node and what it logs, as one listener hears of it as it goes on (RabbitMQ's `consume_event_stream` and
//! `log_tail_stream`). What happens is told whether or not there is an event exchange.

use crate::json;
use crate::log_tail::LogTail;
use crate::refusal::Refusal;
use crate::text::event;
use broker::{Occurrence, Watcher};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};
use std::sync::Arc;

/// The longest pattern, in bytes, and what it may take once it is compiled.
const PATTERN: (usize, usize) = (255, 64 * 1024);

/// What one listener hears of what happens.
#[derive(Clone, Debug)]
pub struct Happenings {
    watcher: Arc<Watcher>,
    pattern: Option<Regex>,
}

impl PartialEq for Happenings {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.watcher, &other.watcher)
    }
}

impl Eq for Happenings {}

/// How far one listener has read the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Following {
    after: u64,
    level: usize,
}

impl Happenings {
    /// What this watcher sees, of events whose names match the pattern, if there is one.
    pub fn of(watcher: Arc<Watcher>, pattern: Option<Regex>) -> Self {
        Self { watcher, pattern }
    }

    /// What happened since the last turn, each as an event `happened`; then `turn`.
    pub fn turn(&self) -> String {
        let (occurrences, lost) = self.watcher.take();
        as_events("happened", &shown(&occurrences, self.pattern.as_ref()), lost)
    }
}

/// A pattern for names of events, if one is given.
///
/// # Errors
/// It is too long, or no regular expression.
pub fn pattern(text: Option<&str>) -> Result<Option<Regex>, Refusal> {
    let (longest, compiled) = PATTERN;
    let compile = |text: &str| {
        let mut builder = RegexBuilder::new(text);
        let compiled = (text.len() <= longest).then(|| builder.size_limit(compiled).build());
        let compiled = compiled.and_then(Result::ok);
        compiled.ok_or_else(|| Refusal::bad_request("pattern is a regular expression for names of events"))
    };
    text.map(compile).transpose()
}

/// Those whose names match the pattern, if there is one, as they are told.
pub fn shown(occurrences: &[Occurrence], pattern: Option<&Regex>) -> Vec<Value> {
    let meant = |it: &&Occurrence| pattern.is_none_or(|pattern| pattern.is_match(it.key));
    occurrences.iter().filter(meant).map(told).collect()
}

/// As RabbitMQ's event stream shows it.
fn told(occurrence: &Occurrence) -> Value {
    let mut told = json::table(&occurrence.headers);
    told["event"] = occurrence.key.into();
    told["timestamp_in_ms"] = occurrence.at_ms.into();
    told
}

impl Following {
    /// From now on, lines that matter as much as this level or more.
    pub fn of(log: &LogTail, level: usize) -> Self {
        Self {
            after: log.written(),
            level,
        }
    }

    /// What was logged since the last turn, each line as an event `line`; then `turn`.
    pub fn turn(&mut self, log: &LogTail) -> String {
        let (lines, lost) = log.since(&mut self.after, self.level);
        as_events("line", &lines, lost)
    }
}

/// Each of these as an event of this kind; then `turn`, with how many others were lost.
pub fn as_events(kind: &str, told: &[Value], lost: u64) -> String {
    let told = told.iter().map(|it| event(kind, &it.to_string()));
    let mut events: String = told.collect();
    events.push_str(&event("turn", &json!({"lost": lost}).to_string()));
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_tail::LogLine;
    use model::table::Table;

    #[test]
    fn an_event_is_told_with_its_name_and_when() {
        let occurrence = Occurrence {
            key: "queue.created",
            at_ms: 5,
            headers: Arc::new(Table::new().with("name", "q").with("durable", true)),
        };
        assert_eq!(
            told(&occurrence),
            json!({"event": "queue.created", "timestamp_in_ms": 5, "name": "q", "durable": true})
        );
    }

    #[test]
    fn lines_are_told_once_in_their_order_with_the_audit_trail_among_them() {
        let log = LogTail::default();
        let mut following = Following { after: 0, level: 2 };
        let line = |area: &str, level, text: &str| LogLine {
            at_ms: 1,
            level,
            area: area.into(),
            text: text.into(),
        };
        log.push(line("connection", "info", "one"));
        log.push(line("audit", "info", "two"));
        log.push(line("connection", "debug", "hidden"));
        let first = following.turn(&log);
        assert_eq!(first.matches("event: line").count(), 2, "{first}");
        assert!(first.find("one") < first.find("two"), "{first}");
        assert!(first.contains("\"time\":\"1970-01-01 00:00:00.001\""), "{first}");
        assert_eq!(following.turn(&log), event("turn", "{\"lost\":0}"));
        (0..2_010).for_each(|_| log.push(line("connection", "info", "flood")));
        assert!(following.turn(&log).ends_with("data: {\"lost\":10}\n\n"));
    }
}
