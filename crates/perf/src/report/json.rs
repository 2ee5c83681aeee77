//! What `--json` writes: one object with everything that is known about a run.

use super::End;
use crate::exporter::arguments::without_secrets;
use crate::measure::{Latency, Recorder, Sample};
use crate::plan::{LatencyFrom, Plan};
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The version of the layout.
const FORMAT: u32 = 1;

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
pub fn interval(sample: &Sample) -> Value {
    let recorder = &sample.recorder;
    json!({
        "from_unix_us": sample.from_unix_us, "to_unix_us": sample.to_unix_us,
        "elapsed_s": thousandths(sample.elapsed.as_secs_f64()),
        "published": recorder.published, "returned": recorder.returned, "confirmed": recorder.confirmed,
        "nacked": recorder.nacked, "consumed": recorder.consumed,
        "latency": latency(&recorder.latency), "confirm_latency": latency(&recorder.confirm_latency),
    })
}

/// What stands above the intervals.
pub fn opening(plan: &Plan) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("format", json!(FORMAT));
    put("version", json!(env!("CARGO_PKG_VERSION")));
    put("id", json!(plan.id));
    put("arguments", json!(without_secrets(&plan.arguments)));
    put(
        "latency_from",
        json!(match plan.producing.latency_from {
            LatencyFrom::Intended => "intended",
            LatencyFrom::Sent => "sent",
        }),
    );
    put(
        "clock",
        json!(if plan.report.millis { "wall" } else { "monotonic" }),
    );
    for section in ["verify", "churn", "phases"] {
        put(section, Value::Null);
    }
    object
}

/// What is known at the end.
pub fn close(object: &mut Map<String, Value>, end: &End, intervals: Vec<Value>, total: Value) {
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("exit_code", json!(end.exit_code));
    put(
        "stop_reasons",
        end.reasons.iter().map(|(reason, _)| reason.as_str()).collect(),
    );
    put("cut_short", json!(end.cut_short));
    put("intervals", Value::Array(intervals));
    put("total", total);
}

/// The whole run.
pub fn total(recorder: &Recorder, span: Duration) -> Value {
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
