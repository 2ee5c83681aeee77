//! Posts to Datadog.

use super::Shared;
use super::meter::{Kind, Meter, Summary};
use crate::failure::{Failure, complain};
use crate::http::{self, Refusals};
use crate::plan::Datadog;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};
use ureq::Agent;

/// How often failures are told.
const QUIET: Duration = Duration::from_secs(60);
/// How long a post may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A thread that posts every step.
pub struct Poster {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Poster {
    pub fn start(datadog: Datadog, board: Shared) -> Result<Self, Failure> {
        let (stop, stopped) = mpsc::channel();
        let step = datadog.step.max(Duration::from_millis(1));
        let mut account = Account::new(datadog);
        let post = move || {
            loop {
                let ended = stopped.recv_timeout(step);
                let (meters, tags) = {
                    let board = board.lock().unwrap_or_else(PoisonError::into_inner);
                    (board.meters(), board.tags().to_vec())
                };
                account.post(&meters, &tags);
                if !matches!(ended, Err(RecvTimeoutError::Timeout)) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("datadog".into())
            .spawn(post)
            .map_err(|error| {
                Failure::Connect(format!(
                    "cannot start a thread for Datadog: {error}. Allow more threads"
                ))
            })?;
        Ok(Self { stop, thread })
    }

    /// Posts a last time and ends. Takes as long as Datadog needs, 20 s at most.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

/// An account at Datadog, with what it was told already.
struct Account {
    datadog: Datadog,
    agent: Agent,
    /// Counts and sums at the last post: Datadog gets what was added since.
    before: BTreeMap<String, (u64, f64)>,
    described: BTreeSet<String>,
    complained: Option<Instant>,
}

impl Account {
    fn new(datadog: Datadog) -> Self {
        let agent = http::agent(TIMEOUT, Refusals::AreErrors);
        Self {
            datadog,
            agent,
            before: BTreeMap::new(),
            described: BTreeSet::new(),
            complained: None,
        }
    }

    fn post(&mut self, meters: &[Meter], tags: &[(String, String)]) {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let series: Vec<Value> = meters
            .iter()
            .flat_map(|meter| self.series(meter, tags, now))
            .collect();
        let base = self.datadog.uri.trim_end_matches('/');
        let address = format!("{base}/api/v1/series?api_key={}", self.datadog.api_key);
        if let Err(error) = self.agent.post(&address).send_json(json!({ "series": series })) {
            self.complain(&error);
            return;
        }
        if let Some(key) = self.datadog.application_key.clone() {
            self.describe(meters, &key);
        }
    }

    /// One meter is several series: a summary has its sum, count, mean, maximum and points.
    fn series(&mut self, meter: &Meter, tags: &[(String, String)], now: u64) -> Vec<Value> {
        let mut series = Series {
            host_tag: self.datadog.host_tag.as_deref(),
            tags,
            now,
            all: Vec::new(),
        };
        match &meter.kind {
            Kind::Gauge(value) => series.add(meter, "", *value, "gauge", None, Some(("statistic", "value"))),
            Kind::Counter(value) => {
                let (_, before) = self
                    .before
                    .insert(meter.name.clone(), (0, *value))
                    .unwrap_or_default();
                series.add(
                    meter,
                    "",
                    value - before,
                    "count",
                    None,
                    Some(("statistic", "count")),
                );
            }
            Kind::Summary(summary) => {
                let now = (summary.count, summary.sum);
                let before = self.before.insert(meter.name.clone(), now).unwrap_or_default();
                series.add_summary(meter, summary, before);
            }
        }
        series.all
    }

    /// Units and descriptions, once a metric, to be sent only with an application key.
    fn describe(&mut self, meters: &[Meter], application_key: &str) {
        let base = self.datadog.uri.trim_end_matches('/').to_owned();
        for meter in meters {
            if self.described.contains(&meter.name) {
                continue;
            }
            let kind = if matches!(meter.kind, Kind::Counter(_)) {
                "count"
            } else {
                "gauge"
            };
            let mut about = json!({ "type": kind });
            if matches!(meter.kind, Kind::Summary(Summary { time: true, .. })) {
                about["unit"] = "millisecond".into();
            }
            if self.datadog.descriptions && !meter.help.is_empty() {
                about["description"] = meter.help.into();
            }
            let address = format!(
                "{base}/api/v1/metrics/{}?api_key={}&application_key={application_key}",
                meter.name, self.datadog.api_key
            );
            match self.agent.put(&address).send_json(about) {
                // Datadog does not know a metric right after its first post; the next post tries again.
                Err(ureq::Error::StatusCode(404)) => return,
                Err(error) => return self.complain(&error),
                Ok(_) => drop(self.described.insert(meter.name.clone())),
            }
        }
    }

    /// Tells a failure unless one was told within the last minute; the run goes on.
    fn complain(&mut self, error: &ureq::Error) {
        if self.complained.is_some_and(|when| when.elapsed() < QUIET) {
            return;
        }
        self.complained = Some(Instant::now());
        complain(format_args!(
            "Datadog did not take the metrics: {}. Check --metrics-datadog-uri and --metrics-datadog-api-key",
            told(error)
        ));
    }
}

/// An error without the address, which has the keys in it.
fn told(error: &ureq::Error) -> String {
    match error {
        ureq::Error::BadUri(_) => "its address is none".into(),
        ureq::Error::StatusCode(403) => "it does not accept the key (403)".into(),
        other => other.to_string(),
    }
}

/// The series of one meter at one moment.
struct Series<'a> {
    host_tag: Option<&'a str>,
    tags: &'a [(String, String)],
    now: u64,
    all: Vec<Value>,
}

impl Series<'_> {
    fn add(
        &mut self,
        meter: &Meter,
        suffix: &str,
        value: f64,
        kind: &str,
        unit: Option<&str>,
        label: Option<(&str, &str)>,
    ) {
        // JSON has no word for what is not a number.
        if !value.is_finite() {
            return;
        }
        let own = meter
            .labels
            .iter()
            .chain(self.tags)
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let labels: Vec<(&str, &str)> = own.chain(label).collect();
        let tags: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}:{value}"))
            .collect();
        let mut one = json!({
            "metric": format!("{}{suffix}", meter.name), "points": [[self.now, value]], "type": kind, "tags": tags,
        });
        if let Some(unit) = unit {
            one["unit"] = unit.into();
        }
        let host = self
            .host_tag
            .and_then(|tag| labels.iter().find(|(key, _)| *key == tag));
        if let Some((_, host)) = host {
            one["host"] = (*host).into();
        }
        self.all.push(one);
    }

    /// Times go in milliseconds, as micrometer sends them to Datadog.
    fn add_summary(&mut self, meter: &Meter, summary: &Summary, before: (u64, f64)) {
        let (scale, unit) = if summary.time {
            (1_000.0, Some("millisecond"))
        } else {
            (1.0, None)
        };
        let count = summary.count.saturating_sub(before.0);
        let sum = (summary.sum - before.1) * scale;
        let mean = if count > 0 { sum / count as f64 } else { 0.0 };
        self.add(meter, ".sum", sum, "count", unit, None);
        self.add(meter, ".count", count as f64, "count", Some("occurrence"), None);
        self.add(meter, ".avg", mean, "gauge", unit, None);
        self.add(meter, ".max", summary.max * scale, "gauge", unit, None);
        for (quantile, value) in Summary::QUANTILES.iter().zip(summary.points) {
            self.add(
                meter,
                ".percentile",
                value * scale,
                "gauge",
                unit,
                Some(("phi", quantile)),
            );
        }
    }
}
