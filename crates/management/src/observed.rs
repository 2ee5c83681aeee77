//! What happens on the node and what it logs, as one listener hears of it as it goes on (RabbitMQ's `consume_event_stream` and
//! `log_tail_stream`). What happens is told whether or not there is an event exchange.

use crate::json;
use crate::log_tail::LogTail;
use crate::query::Query;
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
    /// The log is another node's.
    pub elsewhere: Option<LogElsewhere>,
}

/// The log of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogElsewhere {
    node: String,
    level: String,
    /// The number of the last line, or `end`.
    after: String,
}

impl Happenings {
    /// What this watcher sees, of events whose names match the pattern, if there is one.
    ///
    /// # Errors
    /// The pattern is too long, or no regular expression.
    pub fn of(pattern: Option<&str>, watch: impl FnOnce() -> Arc<Watcher>) -> Result<Self, Refusal> {
        let wrong = || Refusal::bad_request("pattern is a regular expression for names of events");
        let (longest, compiled) = PATTERN;
        let compile = |text: &str| {
            let mut builder = RegexBuilder::new(text);
            let compiled = (text.len() <= longest).then(|| builder.size_limit(compiled).build());
            compiled.and_then(Result::ok).ok_or_else(wrong)
        };
        let pattern = pattern.map(compile).transpose()?;
        Ok(Self {
            watcher: watch(),
            pattern,
        })
    }

    /// What happened since the last turn, each as an event `happened`; then `turn`.
    pub fn turn(&self) -> String {
        let (occurrences, lost) = self.watcher.take();
        let meant = |it: &&Occurrence| {
            self.pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(it.key))
        };
        let mut events: String = occurrences
            .iter()
            .filter(meant)
            .map(|it| event("happened", &told(it).to_string()))
            .collect();
        events.push_str(&event("turn", &json!({"lost": lost}).to_string()));
        events
    }
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
            elsewhere: None,
        }
    }

    /// The same of another node; the level by its name.
    pub fn of_node(node: &str, level: &str) -> Self {
        Self {
            after: 0,
            level: 0,
            elsewhere: Some(LogElsewhere {
                node: node.to_owned(),
                level: level.to_owned(),
                after: "end".to_owned(),
            }),
        }
    }

    /// What was logged since the last turn, each line as an event `line`; then `turn`.
    pub fn turn(&mut self, log: &LogTail) -> String {
        let (lines, lost) = log.since(&mut self.after, self.level);
        as_events(&lines, lost)
    }
}

impl LogElsewhere {
    /// What its node is asked with the next turn.
    pub fn question(&self) -> Query {
        let pairs = [
            ("node", &self.node),
            ("level", &self.level),
            ("after", &self.after),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.clone()));
        Query::of(pairs.into())
    }

    /// The same as [`Following::turn`], once its node has said something.
    pub fn turn(&mut self, told: &Value) -> String {
        if let Some(after) = told["after"].as_u64() {
            self.after = after.to_string();
        }
        let lines = told["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
        as_events(lines, told["lost"].as_u64().unwrap_or_default())
    }
}

fn as_events(lines: &[Value], lost: u64) -> String {
    let lines = lines.iter().map(|line| event("line", &line.to_string()));
    let mut events: String = lines.collect();
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
        let mut following = Following {
            after: 0,
            level: 2,
            elsewhere: None,
        };
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
