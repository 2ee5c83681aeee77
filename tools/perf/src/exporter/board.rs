//! What the last interval was like, and what has been counted since the start.

use super::arguments;
use super::expected::Expected;
use super::meter::{Meter, Summary};
use super::process::Process;
use crate::measure::{Recorder, Sample};
use crate::plan::Plan;
use hdrhistogram::Histogram;
use std::time::Duration;

/// Nanoseconds of a second.
const NS: f64 = 1e9;

/// The numbers that carriers show.
#[derive(Debug)]
pub struct Board {
    prefix: String,
    tags: Vec<(String, String)>,
    arguments: Option<String>,
    exposed: Vec<(String, f64)>,
    expected: Expected,
    elapsed: Duration,
    /// Messages a second: published, confirmed, nacked, returned, consumed.
    rates: [f64; 5],
    latency: Summary,
    confirm_latency: Summary,
    confirm_size: Summary,
    client: Option<Client>,
    process: Process,
}

/// What `--metrics-client` shows: counts since the start, of what a client library knows.
#[derive(Debug, Default)]
struct Client {
    connections: f64,
    channels: f64,
    auto_ack: bool,
    /// `Some(requeue)`.
    nack: Option<bool>,
    published: u64,
    confirmed: u64,
    nacked: u64,
    returned: u64,
    consumed: u64,
}

impl Board {
    /// Everything is 0 until the first interval.
    pub fn new(plan: &Plan) -> Self {
        let exporting = &plan.exporter;
        let time = Summary {
            time: true,
            ..Summary::default()
        };
        Self {
            prefix: exporting.prefix.clone(),
            tags: exporting.tags.clone(),
            arguments: exporting.arguments.then(|| arguments::shown(&plan.arguments)),
            exposed: exporting.exposed.clone(),
            expected: Expected::of(plan),
            elapsed: Duration::ZERO,
            rates: [0.0; 5],
            latency: time,
            confirm_latency: time,
            confirm_size: Summary::default(),
            client: exporting.client.then(|| Client::of(plan)),
            process: Process::new(exporting),
        }
    }

    /// Labels of every metric.
    pub fn tags(&self) -> &[(String, String)] {
        &self.tags
    }

    /// Takes an interval in.
    pub fn update(&mut self, sample: &Sample) {
        let counted = &sample.recorder;
        let seconds = sample.interval.as_secs_f64();
        self.elapsed = sample.elapsed;
        self.rates = [
            counted.published,
            counted.confirmed,
            counted.nacked,
            counted.returned,
            counted.consumed,
        ]
        .map(|count| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        });
        advance(&mut self.latency, &counted.latency, NS);
        advance(&mut self.confirm_latency, &counted.confirm_latency, NS);
        advance(&mut self.confirm_size, &counted.confirm_size, 1.0);
        if let Some(client) = &mut self.client {
            client.count(counted);
        }
        self.process.update(sample.interval);
    }

    /// Everything there is to show.
    pub fn meters(&self) -> Vec<Meter> {
        let named = |name: &str| format!("{}{name}", self.prefix);
        let mut meters: Vec<Meter> = ["published", "confirmed", "nacked", "returned", "consumed"]
            .into_iter()
            .zip(self.rates)
            .map(|(name, rate)| Meter::gauge(named(name), rate))
            .collect();
        meters.extend([
            Meter::summary(named("latency"), "message latency", self.latency),
            Meter::summary(named("confirm.latency"), "confirm latency", self.confirm_latency),
            Meter::summary(
                named("confirm.size"),
                "number of confirms received per confirm frame",
                self.confirm_size,
            ),
        ]);
        meters.extend(
            self.exposed
                .iter()
                .map(|(name, value)| Meter::gauge(named(name), *value)),
        );
        let expected = [
            (
                "expected_published",
                self.expected.published(self.elapsed),
                self.rates[0],
            ),
            ("expected_consumed", self.expected.consumed(), self.rates[4]),
        ];
        for (name, computed, rate) in expected {
            let exposed = self.exposed.iter().find(|(exposed, _)| exposed == name);
            if let Some(value) = computed.filter(|_| exposed.is_none()) {
                meters.push(Meter::gauge(named(name), value));
            }
            if let Some(wanted) = exposed
                .map(|(_, value)| *value)
                .or(computed)
                .filter(|wanted| *wanted > 0.0)
            {
                let ratio = Meter::gauge(named(&format!("{name}_ratio")), rate / wanted);
                meters.push(ratio.with_help(
                    "",
                    "how much of what was expected came about in the last interval",
                ));
            }
        }
        if let Some(arguments) = &self.arguments {
            meters.push(Meter::gauge(named("args"), 1.0).with_label("command_line", arguments));
        }
        if let Some(client) = &self.client {
            meters.extend(client.meters());
        }
        meters.extend(self.process.meters());
        meters
    }
}

impl Client {
    fn of(plan: &Plan) -> Self {
        let (producing, consuming) = (&plan.producing, &plan.consuming);
        Self {
            // One more for the set-up, as in PerfTest.
            connections: (producing.producers + consuming.consumers + 1) as f64,
            channels: (producing.producers * producing.channels + consuming.consumers * consuming.channels)
                as f64,
            auto_ack: consuming.auto_ack,
            nack: consuming.nack,
            ..Self::default()
        }
    }

    fn count(&mut self, counted: &Recorder) {
        self.published += counted.published;
        self.confirmed += counted.confirmed;
        self.nacked += counted.nacked;
        self.returned += counted.returned;
        self.consumed += counted.consumed;
    }

    /// What is consumed counts as settled at once, although acks may come in batches.
    fn meters(&self) -> Vec<Meter> {
        let settled = |if_so: bool| if if_so { self.consumed as f64 } else { 0.0 };
        vec![
            Meter::counter(
                "client.acknowledged",
                settled(!self.auto_ack && self.nack.is_none()),
            ),
            Meter::counter("client.acknowledged_published", self.confirmed as f64),
            Meter::gauge("client.channels", self.channels),
            Meter::gauge("client.connections", self.connections),
            Meter::counter("client.consumed", self.consumed as f64),
            Meter::counter("client.failed_to_publish", 0.0),
            Meter::counter("client.not_acknowledged_published", self.nacked as f64),
            Meter::counter("client.published", self.published as f64),
            Meter::counter("client.rejected", settled(!self.auto_ack && self.nack.is_some())),
            Meter::counter(
                "client.requeued",
                settled(!self.auto_ack && self.nack == Some(true)),
            ),
            Meter::counter("client.unrouted_published", self.returned as f64),
        ]
    }
}

/// Points and maximum are the interval's, as PerfTest's percentiles expire after an interval; count and sum go on.
fn advance(summary: &mut Summary, histogram: &Histogram<u64>, unit: f64) {
    summary.points = [0.0; 4];
    summary.max = 0.0;
    if histogram.is_empty() {
        return;
    }
    let max = histogram.max();
    summary.points =
        [0.5, 0.75, 0.95, 0.99].map(|quantile| histogram.value_at_quantile(quantile).min(max) as f64 / unit);
    summary.max = max as f64 / unit;
    summary.count += histogram.len();
    summary.sum += histogram.mean() * histogram.len() as f64 / unit;
}
