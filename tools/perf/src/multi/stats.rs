//! What a load measured, in the layout of PerfTest's results.

use crate::measure::{Latency, Sample};
use crate::report::per_second;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// So many samples at the beginning don't count for the rates of the whole, if there are more.
const IGNORED: usize = 3;

/// One interval.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Since the first load began, at the interval's end.
    pub elapsed: Duration,
    pub sent: f64,
    pub received: f64,
    pub latency: Option<Latency>,
}

/// The loads of a scenario with one value of each variable.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub intervals: Vec<Interval>,
    /// Bytes of a message, for rates in bytes.
    size: f64,
    /// What the loads before this one took.
    before: Duration,
    counted: Counted,
}

/// Sums over the samples that count.
#[derive(Debug, Clone, Default)]
struct Counted {
    sent: u64,
    received: u64,
    latency_sum_us: f64,
    latencies: u64,
    time: Duration,
}

impl Stats {
    /// A load begins, with messages of at least this many bytes.
    pub fn begin(&mut self, size: f64) {
        self.size = size;
        self.before = self.intervals.last().map_or(Duration::ZERO, |it| it.elapsed);
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        if self.intervals.len() == IGNORED {
            self.counted = Counted::default();
        }
        let recorder = &sample.recorder;
        let latency = Latency::of(&recorder.latency);
        self.counted.sent += recorder.published;
        self.counted.received += recorder.consumed;
        self.counted.latency_sum_us += latency.mean / 1_000.0 * latency.count as f64;
        self.counted.latencies += latency.count;
        self.counted.time += sample.interval;
        self.intervals.push(Interval {
            elapsed: self.before + sample.elapsed,
            sent: per_second(recorder.published, sample.interval),
            received: per_second(recorder.consumed, sample.interval),
            latency: (latency.count > 0).then_some(latency),
        });
    }

    /// Messages per second over the samples that count.
    pub fn sent(&self) -> f64 {
        per_second(self.counted.sent, self.counted.time)
    }

    /// Messages per second over the samples that count.
    pub fn received(&self) -> f64 {
        per_second(self.counted.received, self.counted.time)
    }

    /// In microseconds.
    pub fn mean_latency_us(&self) -> Option<f64> {
        let Counted {
            latency_sum_us,
            latencies,
            ..
        } = &self.counted;
        (*latencies > 0).then(|| latency_sum_us / *latencies as f64)
    }

    /// The results as PerfTest has them: latencies in microseconds, `elapsed` in milliseconds.
    pub fn to_json(&self) -> Value {
        let mut results = self.rates(self.sent(), self.received());
        if let Some(mean) = self.mean_latency_us() {
            results.insert("avg-latency".into(), json!(mean as u64));
        }
        let samples = self.intervals.iter().map(|interval| {
            let mut sample = self.rates(interval.sent, interval.received);
            sample.insert("elapsed".into(), json!(interval.elapsed.as_millis() as u64));
            if let Some(latency) = &interval.latency {
                sample.insert("min-latency".into(), json!(latency.min / 1_000));
                sample.insert("avg-latency".into(), json!(latency.mean as u64 / 1_000));
                sample.insert("max-latency".into(), json!(latency.max / 1_000));
            }
            Value::Object(sample)
        });
        results.insert("samples".into(), samples.collect());
        Value::Object(results)
    }

    fn rates(&self, sent: f64, received: f64) -> Map<String, Value> {
        let rates = [
            ("send-msg-rate", sent),
            ("send-bytes-rate", sent * self.size),
            ("recv-msg-rate", received),
            ("recv-bytes-rate", received * self.size),
        ];
        rates
            .into_iter()
            .map(|(name, rate)| (name.to_owned(), json!(rate)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Recorder;

    fn sample(second: u64, published: u64, latency_us: u64) -> Sample {
        let mut recorder = Recorder::new();
        recorder.published = published;
        recorder.consumed = published;
        recorder.latency_both(latency_us * 1_000, latency_us * 1_000);
        Sample {
            elapsed: Duration::from_secs(second),
            interval: Duration::from_secs(1),
            recorder,
            ..Sample::default()
        }
    }

    #[test]
    fn the_first_three_samples_do_not_count_if_there_are_more() {
        let mut stats = Stats::default();
        stats.begin(10.0);
        for second in 1..=3 {
            stats.add(&sample(second, 500, 50));
        }
        assert_eq!(stats.sent(), 500.0);
        stats.add(&sample(4, 100, 20));
        let json = stats.to_json();
        assert_eq!(
            (json["send-msg-rate"].as_f64(), json["recv-bytes-rate"].as_f64()),
            (Some(100.0), Some(1_000.0))
        );
        assert_eq!(json["samples"].as_array().map(Vec::len), Some(4));
        assert_eq!(json["samples"][3]["elapsed"], 4_000);
        assert_eq!(
            (
                json["avg-latency"].as_u64(),
                json["samples"][0]["max-latency"].as_u64()
            ),
            (Some(20), Some(50))
        );
    }

    #[test]
    fn a_second_load_goes_on_where_the_first_ended_and_no_sample_is_no_rate() {
        let mut stats = Stats::default();
        assert_eq!(stats.to_json()["send-msg-rate"], 0.0);
        assert!(stats.to_json().get("avg-latency").is_none());
        stats.begin(1.0);
        stats.add(&sample(2, 1, 1));
        stats.begin(1.0);
        stats.add(&sample(1, 1, 1));
        assert_eq!(stats.intervals[1].elapsed, Duration::from_secs(3));
    }
}
