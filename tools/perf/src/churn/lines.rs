//! How a churn is told: lines while it runs, a table and JSON at the end.

use super::background::Spans;
use super::results::Errors;
use crate::measure::Latency;
use crate::report::json;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Duration;

/// What is told of all operations.
pub struct Lines {
    pub id: String,
    pub operations: &'static [&'static str],
}

impl Lines {
    /// The line of an interval; `None` if nothing was done in it.
    pub fn interval(&self, taken: &[Histogram<u64>], span: Duration, elapsed: Duration) -> Option<String> {
        if taken.iter().all(Histogram::is_empty) {
            return None;
        }
        let mut line = format!("id: {}, time {:.3} s", self.id, elapsed.as_secs_f64());
        for (name, histogram) in self.operations.iter().zip(taken) {
            let _ = write!(
                line,
                ", {name}: {} ops/s",
                rate(per_second(histogram.len(), span))
            );
        }
        let mut first = true;
        for (name, histogram) in self.operations.iter().zip(taken) {
            if histogram.is_empty() {
                continue;
            }
            let points = points(&Latency::of(histogram));
            let names = if std::mem::take(&mut first) {
                "min/median/75th/95th/99th/max "
            } else {
                ""
            };
            let _ = write!(line, ", {names}{name} latency: {points} µs");
        }
        Some(line)
    }

    /// The table at the end, in milliseconds.
    pub fn table(&self, all: &[Histogram<u64>], span: Duration, errors: &Errors) -> Vec<String> {
        let heads = ["count", "ops/s", "mean", "p50", "p95", "p99", "p99.9", "max"];
        let mut head = format!("{:<10}", "ms");
        for name in heads {
            let _ = write!(head, "{name:>11}");
        }
        let mut lines = vec![head];
        for (name, histogram) in self.operations.iter().zip(all) {
            let latency = Latency::of(histogram);
            let mut line = format!("{name:<10}{:>11}", latency.count);
            let _ = write!(line, "{:>11}", rate(per_second(latency.count, span)));
            let _ = write!(line, "{:>11}", ms(latency.mean));
            for ns in [latency.p50, latency.p95, latency.p99, latency.p99_9, latency.max] {
                let _ = write!(line, "{:>11}", ms(ns as f64));
            }
            lines.push(line);
        }
        lines.push(match &errors.first {
            None => format!("id: {}, errors: 0", self.id),
            Some(first) => format!("id: {}, errors: {}; the first: {first}", self.id, errors.count),
        });
        lines
    }

    /// The part `churn` of the JSON.
    pub fn json(
        &self,
        what: &str,
        all: &[Histogram<u64>],
        span: Duration,
        errors: &Errors,
    ) -> Map<String, Value> {
        let mut operations = Map::new();
        for (name, histogram) in self.operations.iter().zip(all) {
            let rate = (per_second(histogram.len(), span) * 1_000.0).round() / 1_000.0;
            let told = json!({"count": histogram.len(), "rate": rate, "latency": json::latency(histogram)});
            operations.insert((*name).to_owned(), told);
        }
        let mut object = Map::new();
        object.insert("what".into(), what.into());
        object.insert("seconds".into(), json!(span.as_secs_f64()));
        object.insert("operations".into(), Value::Object(operations));
        object.insert("errors".into(), json!(errors.count));
        object.insert(
            "first_error".into(),
            json!(errors.first.as_ref().map(ToString::to_string)),
        );
        object
    }

    /// The background before and during the churn.
    pub fn background(&self, spans: &Spans) -> Vec<String> {
        let mut lines = Vec::new();
        let during = [
            ("during the churn", Some(&spans.during)),
            ("around deletions", spans.deletions.as_ref()),
        ];
        for (name, choose) in [
            (
                "consumer",
                (|recorder| &recorder.latency) as fn(&crate::measure::Recorder) -> &Histogram<u64>,
            ),
            ("confirm", |recorder| &recorder.confirm_latency),
        ] {
            let before = Latency::of(choose(&spans.before.recorder));
            for (when, span) in during {
                let Some(span) = span.filter(|span| !choose(&span.recorder).is_empty()) else {
                    continue;
                };
                let after = Latency::of(choose(&span.recorder));
                let mut line = format!(
                    "id: {}, background {name} latency {when}: p50 {} ms, p99 {} ms, max {} ms",
                    self.id,
                    ms(after.p50 as f64),
                    ms(after.p99 as f64),
                    ms(after.max as f64)
                );
                if before.count > 0 && before.p99 > 0 {
                    let ratio = after.p99 as f64 / before.p99 as f64;
                    let _ = write!(
                        line,
                        " (before: p50 {} ms, p99 {} ms, max {} ms; p99 is {ratio:.2} times as much)",
                        ms(before.p50 as f64),
                        ms(before.p99 as f64),
                        ms(before.max as f64)
                    );
                }
                lines.push(line);
            }
        }
        let sent = |span: &super::background::Span| rate(per_second(span.recorder.published, span.time));
        lines.push(format!(
            "id: {}, background sent {} msg/s during the churn, {} msg/s before",
            self.id,
            sent(&spans.during),
            sent(&spans.before)
        ));
        lines
    }
}

/// PerfTest's six points in microseconds.
fn points(latency: &Latency) -> String {
    let six = [
        latency.min,
        latency.p50,
        latency.p75,
        latency.p95,
        latency.p99,
        latency.max,
    ];
    six.map(|ns| (ns.saturating_add(500) / 1_000).to_string())
        .join("/")
}

fn per_second(count: u64, span: Duration) -> f64 {
    if span.is_zero() {
        0.0
    } else {
        count as f64 / span.as_secs_f64()
    }
}

/// Fewer digits behind the point, the larger it is, as in PerfTest's lines.
pub fn rate(rate: f64) -> String {
    let digits = match rate {
        0.0 => 0,
        rate if rate < 1.0 => 2,
        rate if rate < 10.0 => 1,
        _ => 0,
    };
    format!("{rate:.digits$}")
}

/// Milliseconds with microseconds.
fn ms(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::churn::results::histograms;
    use crate::failure::Failure;

    const BIND: Lines = Lines {
        id: String::new(),
        operations: &["bind", "unbind"],
    };

    fn lines() -> Lines {
        Lines {
            id: "c".into(),
            ..BIND
        }
    }

    fn taken() -> Vec<Histogram<u64>> {
        let mut taken = histograms(2);
        for us in 1..=1_000 {
            taken[0].record(us * 1_000).unwrap();
        }
        taken[1].record(5_000_000).unwrap();
        taken
    }

    #[test]
    fn an_intervals_line_is_in_perftests_style() {
        let second = Duration::from_secs(1);
        assert_eq!(
            lines().interval(&taken(), second, second).unwrap(),
            "id: c, time 1.000 s, bind: 1000 ops/s, unbind: 1.0 ops/s, \
             min/median/75th/95th/99th/max bind latency: 1/500/750/950/990/1000 µs, \
             unbind latency: 4999/4999/4999/4999/4999/4999 µs"
        );
        assert_eq!(lines().interval(&histograms(2), second, second), None);
    }

    #[test]
    fn the_table_is_in_milliseconds_and_tells_the_first_error() {
        let errors = Errors {
            count: 3,
            first: Some(Failure::Refused {
                code: 404,
                text: "no queue".into(),
            }),
        };
        let table = lines().table(&taken(), Duration::from_secs(2), &errors);
        let cells: Vec<&str> = table[1].split_whitespace().collect();
        assert_eq!(cells[..5], ["bind", "1000", "500", "0.501", "0.500"]);
        assert_eq!(table[0].len(), table[1].len());
        assert_eq!(table[3], "id: c, errors: 3; the first: 404 no queue");
    }

    #[test]
    fn the_json_has_each_operation_with_count_rate_and_latency() {
        let json = lines().json("bind", &taken(), Duration::from_secs(2), &Errors::default());
        assert_eq!(json["operations"]["bind"]["count"], 1_000);
        assert_eq!(json["operations"]["unbind"]["rate"], 0.5);
        assert!(json["operations"]["bind"]["latency"]["p99_9"].is_number());
        assert_eq!((&json["what"], &json["errors"]), (&"bind".into(), &0.into()));
    }
}
