//! How long things took, slot by slot: percentiles of what a histogram gained within each.

use crate::history::{SLOT_S, Slot};
use broker::sight::Buckets;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// Which parts of the times are kept, and how they are called.
const PARTS: [(f64, &str); 3] = [(0.5, "p50_ms"), (0.95, "p95_ms"), (0.99, "p99_ms")];

/// What a queue's times are.
pub const QUEUE_TIMES: [&str; 3] = ["publish_to_deliver", "deliver_to_ack", "publish_to_confirm"];
/// And the node's: those of all queues together, and the log's.
pub const NODE_TIMES: [&str; 4] = [
    "publish_to_deliver",
    "deliver_to_ack",
    "publish_to_confirm",
    "log_sync",
];

/// Percentiles in milliseconds; `None` where there was nothing.
type Percentiles = Option<[f32; PARTS.len()]>;

/// Times of `N` sorts. There is no sample for a slot in which nothing was timed.
#[derive(Debug)]
pub struct Times<const N: usize> {
    /// The slot that it began with.
    began: Slot,
    before: Box<[Buckets; N]>,
    samples: VecDeque<(Slot, [Percentiles; N])>,
}

impl<const N: usize> Times<N> {
    /// Begins after these times.
    pub fn after(began: Slot, before: [Buckets; N]) -> Self {
        Self {
            began,
            before: Box::new(before),
            samples: VecDeque::new(),
        }
    }

    /// Takes what has come since the last time, and answers with that. Samples that are older than `kept` slots are forgotten.
    pub fn take(&mut self, slot: Slot, now: [Buckets; N], kept: u64) -> [Buckets; N] {
        let gained: [Buckets; N] = std::array::from_fn(|at| now[at].since(&self.before[at]));
        *self.before = now;
        let percentiles = gained.each_ref().map(percentiles);
        if percentiles.iter().any(Option::is_some) {
            self.samples.push_back((slot, percentiles));
        }
        while self
            .samples
            .front()
            .is_some_and(|(first, _)| first + kept <= slot)
        {
            self.samples.pop_front();
        }
        gained
    }

    /// The slot of the last sample; the first one, while there is none.
    pub fn changed(&self) -> Slot {
        self.samples.back().map_or(self.began, |(slot, _)| *slot)
    }

    /// The percentiles of one sort in the latest slot from `since` on that has some, in milliseconds.
    pub fn latest(&self, sort: usize, since: Slot) -> Percentiles {
        let recent = self.samples.iter().rev().take_while(|(slot, _)| *slot >= since);
        recent.map(|(_, sample)| sample[sort]).find_map(|found| found)
    }

    /// The latest of all sorts, as an object.
    pub fn latest_shown(&self, names: &[&str; N], since: Slot) -> Value {
        let shown = |at: usize| self.latest(at, since).map(object);
        let rows = names.iter().enumerate();
        rows.map(|(at, name)| ((*name).to_owned(), shown(at).into()))
            .collect::<Map<_, _>>()
            .into()
    }

    /// All samples of each sort, the oldest first.
    pub fn shown(&self, names: &[&str; N]) -> Value {
        let mut all = Map::new();
        for (at, name) in names.iter().enumerate() {
            let samples = self.samples.iter().filter_map(|(slot, sample)| {
                let mut shown = object(sample[at]?);
                shown["timestamp"] = (slot * SLOT_S * 1000).into();
                Some(shown)
            });
            all.insert((*name).to_owned(), samples.collect());
        }
        all.into()
    }
}

/// The place of a percentile by its name.
pub fn part(name: &str) -> Option<usize> {
    PARTS.iter().position(|(_, known)| *known == name)
}

fn percentiles(times: &Buckets) -> Percentiles {
    times.quantile_s(0.5)?;
    Some(PARTS.map(|(part, _)| times.quantile_s(part).unwrap_or_default() as f32 * 1000.0))
}

fn object(percentiles: [f32; PARTS.len()]) -> Value {
    let mut shown = json!({});
    for ((_, name), ms) in PARTS.iter().zip(percentiles) {
        // Three digits are what there is to know; more of them are only text.
        shown[*name] = ((f64::from(ms) * 1000.0).round() / 1000.0).into();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker::sight::Histogram;

    #[test]
    fn a_slot_has_the_times_that_came_in_it_and_an_idle_one_has_none() {
        let histogram = Histogram::default();
        histogram.record(5_000_000);
        let mut times = Times::after(1, [histogram.buckets()]);
        (0..100).for_each(|_| histogram.record(1_000));
        times.take(10, [histogram.buckets()], 120);
        times.take(11, [histogram.buckets()], 120);
        histogram.record(80_000);
        times.take(12, [histogram.buckets()], 120);
        let shown = times.shown(&["sync"]);
        let samples = shown["sync"].as_array().unwrap();
        assert_eq!(samples.len(), 2, "{shown}");
        assert_eq!(samples[0]["timestamp"], 50_000);
        assert!(samples[0]["p99_ms"].as_f64().unwrap() < 1.3, "{shown}");
        assert!(samples[1]["p50_ms"].as_f64().unwrap() >= 80.0, "{shown}");
        assert!(times.latest(0, 12).unwrap()[0] >= 80.0);
        assert_eq!(times.latest(0, 13), None);
    }

    #[test]
    fn old_samples_are_forgotten() {
        let histogram = Histogram::default();
        let mut times = Times::after(1, [histogram.buckets()]);
        for slot in 1..=300 {
            histogram.record(slot);
            times.take(slot, [histogram.buckets()], 120);
        }
        assert_eq!(times.shown(&["x"])["x"].as_array().unwrap().len(), 120);
        assert_eq!(times.changed(), 300);
    }
}
