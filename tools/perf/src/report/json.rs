//! What `--json` writes: one object with everything that is known about a run.

use super::End;
use crate::exporter::arguments::without_secrets;
use crate::failure::Failure;
use crate::measure::{Latency, Recorder, Sample};
use crate::plan::{LatencyFrom, Plan};
use crate::verify::Verdict;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the layout.
pub const FORMAT: u32 = 1;

/// What stands above the intervals.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    pub id: &'a str,
    pub arguments: &'a [String],
    pub latency_from: LatencyFrom,
    /// False if messages are stamped by the monotonic clock.
    pub wall_clock: bool,
}

/// The object while it grows.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    /// Holds the place until the object is whole, so that there is never half of one under `path`.
    part: PathBuf,
    object: Map<String, Value>,
    intervals: Vec<Value>,
}

impl Results {
    /// Fails if there can be no file at `path`.
    pub fn create(path: PathBuf, plan: &Plan) -> Result<Self, Failure> {
        let opening = Opening {
            id: &plan.id,
            arguments: &plan.arguments,
            latency_from: plan.producing.latency_from,
            wall_clock: plan.report.millis,
        };
        Self::begin(path, &opening)
    }

    /// The same for a run of another kind.
    pub fn begin(path: PathBuf, plan: &Opening<'_>) -> Result<Self, Failure> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = path.with_file_name(name);
        fs::write(&part, "").map_err(|error| super::cannot_write(&path, &error))?;
        Ok(Self {
            path,
            part,
            object: opening(plan),
            intervals: Vec::new(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an interval.
    pub fn interval(&mut self, sample: &Sample) {
        self.intervals.push(interval(sample));
    }

    /// Sets what a run of another kind measured.
    pub fn section(&mut self, name: &str, measured: Value) {
        self.object.insert(name.into(), measured);
    }

    /// Writes the object of a run from one moment to another, in microseconds since 1970, in which producers and
    /// consumers worked for `span`.
    pub fn finish(
        mut self,
        end: &End,
        (started_unix_us, finished_unix_us): (u64, u64),
        all: &Recorder,
        span: Duration,
    ) -> io::Result<()> {
        self.object
            .insert("started_unix_us".into(), started_unix_us.into());
        self.object
            .insert("finished_unix_us".into(), finished_unix_us.into());
        close(&mut self.object, end, self.intervals, total(all, span));
        let mut text = Value::Object(self.object).to_string();
        text.push('\n');
        fs::write(&self.part, text)?;
        fs::rename(&self.part, &self.path)
    }
}

/// A histogram in microseconds with one decimal, or `null` if nothing was recorded.
pub fn latency(histogram: &Histogram<u64>) -> Value {
    let latency = Latency::of(histogram);
    if latency.count == 0 {
        return Value::Null;
    }
    let us = |ns: u64| json!(tenths(ns as f64 / 1_000.0));
    json!({
        "count": latency.count, "min": us(latency.min), "mean": tenths(latency.mean / 1_000.0),
        "p50": us(latency.p50), "p75": us(latency.p75), "p90": us(latency.p90), "p95": us(latency.p95),
        "p99": us(latency.p99), "p99_9": us(latency.p99_9), "p99_99": us(latency.p99_99), "max": us(latency.max),
    })
}

/// One element of `intervals`.
fn interval(sample: &Sample) -> Value {
    let recorder = &sample.recorder;
    json!({
        "from_unix_us": sample.from_unix_us, "to_unix_us": sample.to_unix_us,
        "elapsed_s": thousandths(sample.elapsed.as_secs_f64()),
        "published": recorder.published, "returned": recorder.returned, "confirmed": recorder.confirmed,
        "nacked": recorder.nacked, "consumed": recorder.consumed,
        "latency": latency(&recorder.latency), "latency_sent": latency(recorder.sent()),
        "confirm_latency": latency(&recorder.confirm_latency),
    })
}

/// What stands above the intervals.
fn opening(plan: &Opening<'_>) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("format", json!(FORMAT));
    put("version", json!(env!("CARGO_PKG_VERSION")));
    put("id", json!(plan.id));
    put("arguments", json!(without_secrets(plan.arguments)));
    put(
        "latency_from",
        json!(match plan.latency_from {
            LatencyFrom::Intended => "intended",
            LatencyFrom::Sent => "sent",
        }),
    );
    put("clock", json!(if plan.wall_clock { "wall" } else { "monotonic" }));
    for section in ["churn", "phases"] {
        put(section, Value::Null);
    }
    object
}

/// What is known at the end.
fn close(object: &mut Map<String, Value>, end: &End, intervals: Vec<Value>, total: Value) {
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("exit_code", json!(end.exit_code));
    put(
        "stop_reasons",
        end.reasons.iter().map(|(reason, _)| reason.as_str()).collect(),
    );
    put("cut_short", json!(end.cut_short));
    put("verify", end.verdict.as_ref().map_or(Value::Null, verdict));
    put("intervals", Value::Array(intervals));
    put("total", total);
}

/// What `--verify` found.
fn verdict(verdict: &Verdict) -> Value {
    json!({
        "published": verdict.published, "consumed": verdict.consumed, "lost": verdict.lost,
        "duplicates": verdict.duplicates, "redelivered": verdict.redelivered,
        "out_of_order": verdict.out_of_order, "corrupt": verdict.corrupt,
        "unconfirmed_missing": verdict.unconfirmed_missing, "ok": verdict.ok,
    })
}

/// The whole run.
fn total(recorder: &Recorder, span: Duration) -> Value {
    json!({
        "seconds": thousandths(span.as_secs_f64()),
        "published": recorder.published, "returned": recorder.returned, "confirmed": recorder.confirmed,
        "nacked": recorder.nacked, "consumed": recorder.consumed,
        "publish_rate": thousandths(super::figures::per_second(recorder.published, span)),
        "consume_rate": thousandths(super::figures::per_second(recorder.consumed, span)),
        "latency": latency(&recorder.latency), "latency_sent": latency(recorder.sent()),
        "confirm_latency": latency(&recorder.confirm_latency),
    })
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn thousandths(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::trial::{START_UNIX_US, end, plan, reports, second};

    #[test]
    fn the_json_object_tells_everything() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let mut plan = plan();
        plan.report.json = Some(path.clone());
        let (mut reports, _) = reports(&plan);
        assert!(!path.exists(), "there is never half an object");
        reports.started();
        let mut first = second(1, 100, &[1_000]);
        first.recorder.latency_both(2_000_000, 500_000);
        reports.interval(&first);
        reports.interval(&second(2, 0, &[]));
        let mut rest = second(3, 0, &[]);
        rest.recorder.confirmed = 9;
        rest.recorder.confirm_latency_n(1_500, 9);
        reports.remainder(&rest);
        reports.churn(serde_json::json!({ "what": "bind" }));
        let cut = End {
            cut_short: Some("the broker closed the connection".into()),
            exit_code: 1,
            ..end()
        };
        reports.finish(&cut).unwrap();
        let run: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            (run["format"].as_u64(), run["id"].as_str()),
            (Some(1), Some("abc"))
        );
        assert_eq!(run["arguments"][0], "--rate");
        assert_eq!(
            (run["exit_code"].as_i64(), run["clock"].as_str()),
            (Some(1), Some("monotonic"))
        );
        assert_eq!(run["stop_reasons"], serde_json::json!(["Reached time limit"]));
        assert_eq!(run["cut_short"], "the broker closed the connection");
        assert_eq!(run["latency_from"], "intended");
        assert_eq!(run["churn"]["what"], "bind");
        assert!(run["phases"].is_null());
        assert!(run["started_unix_us"].as_u64() > Some(START_UNIX_US));
        assert_eq!(run["finished_unix_us"], START_UNIX_US + 3_000_000);
        let intervals = run["intervals"].as_array().unwrap();
        assert_eq!(intervals.len(), 3);
        assert_eq!(
            (&intervals[0]["from_unix_us"], &intervals[0]["elapsed_s"]),
            (&START_UNIX_US.into(), &1.0.into())
        );
        assert_eq!(intervals[0]["published"], 100);
        assert_eq!(intervals[0]["latency"]["count"], 2);
        assert!(intervals[1]["latency"].is_null());
        let total = &run["total"];
        assert_eq!(
            (&total["seconds"], &total["published"], &total["publish_rate"]),
            (&3.0.into(), &100.into(), &33.333.into())
        );
        assert_eq!(total["latency"]["p99_99"], 2000.4);
        assert_eq!(total["latency_sent"]["min"], 500.1);
        assert_eq!(total["confirm_latency"]["mean"], 1.5);
        assert!(!folder.path().join("run.json.part").exists());
    }
}
