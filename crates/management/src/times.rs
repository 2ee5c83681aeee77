//! How long things took, slot by slot: percentiles of the times that came in each.

use crate::history::{SLOT_S, Slot};
use broker::sight::Weights;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// Which parts of the times are kept, and how they are called.
const PARTS: [(f64, &str); 4] = [
    (0.5, "p50_ms"),
    (0.95, "p95_ms"),
    (0.99, "p99_ms"),
    (1.0, "max_ms"),
];

/// What a queue's times are.
pub const QUEUE_TIMES: [&str; 3] = ["publish_to_deliver", "deliver_to_ack", "publish_to_confirm"];
/// And the node's: those of all queues together, and the log's.
pub const NODE_TIMES: [&str; 4] = [
    "publish_to_deliver",
    "deliver_to_ack",
    "publish_to_confirm",
    "log_sync",
];

/// How far back times may lie that are called the latest, in slots: a minute. Older ones say nothing about now.
pub const LATEST: u64 = 12;

/// Percentiles in milliseconds.
type Percentiles = [f32; PARTS.len()];

/// Times of `N` sorts. There is no sample for a slot in which nothing was timed.
#[derive(Debug)]
pub struct Times<const N: usize> {
    /// The slot that it began with.
    began: Slot,
    samples: VecDeque<(Slot, [Option<Percentiles>; N])>,
}

impl<const N: usize> Default for Times<N> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<const N: usize> Times<N> {
    /// None yet.
    pub fn new(began: Slot) -> Self {
        Self {
            began,
            samples: VecDeque::new(),
        }
    }

    /// Adds the times of a slot. Samples that are older than `kept` slots are forgotten.
    pub fn push(&mut self, slot: Slot, times: &[Weights; N], kept: u64) {
        let percentiles = times.each_ref().map(percentiles);
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
    }

    /// The slot of the last sample; the first one, while there is none.
    pub fn changed(&self) -> Slot {
        self.samples.back().map_or(self.began, |(slot, _)| *slot)
    }

    /// The percentiles of one sort in the latest slot from `since` on that has some, and which slot that is.
    pub fn latest(&self, sort: usize, since: Slot) -> Option<(Slot, Percentiles)> {
        let recent = self.samples.iter().rev().take_while(|(slot, _)| *slot >= since);
        recent
            .map(|(slot, sample)| Some((*slot, sample[sort]?)))
            .find_map(|found| found)
    }

    /// The latest of all sorts, as an object; null where there was nothing in the minute before `now`.
    pub fn latest_shown(&self, names: &[&str; N], now: Slot) -> Map<String, Value> {
        let since = now.saturating_sub(LATEST);
        let shown = |at: usize| self.latest(at, since).map(|(slot, found)| object(slot, found));
        let rows = names.iter().enumerate();
        rows.map(|(at, name)| ((*name).to_owned(), shown(at).into()))
            .collect()
    }

    /// All samples of each sort, the oldest first.
    pub fn shown(&self, names: &[&str; N]) -> Map<String, Value> {
        let mut all = Map::new();
        for (at, name) in names.iter().enumerate() {
            let samples = self.samples.iter();
            let samples = samples.filter_map(|(slot, sample)| Some(object(*slot, sample[at]?)));
            all.insert((*name).to_owned(), samples.collect());
        }
        all
    }
}

/// The place of a percentile by its name.
pub fn part(name: &str) -> Option<usize> {
    PARTS.iter().position(|(_, known)| *known == name)
}

/// When a slot began, in milliseconds since the Unix epoch.
pub fn moment_ms(slot: Slot) -> u64 {
    slot * SLOT_S * 1000
}

fn percentiles(times: &Weights) -> Option<Percentiles> {
    times.quantile_s(0.5)?;
    Some(PARTS.map(|(part, _)| times.quantile_s(part).unwrap_or_default() as f32 * 1000.0))
}

fn object(slot: Slot, percentiles: Percentiles) -> Value {
    let mut shown = json!({"timestamp": moment_ms(slot)});
    for ((_, name), ms) in PARTS.iter().zip(percentiles) {
        // Three digits are what there is to know; more of them are only text.
        shown[*name] = ((f64::from(ms) * 1000.0).round() / 1000.0).into();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(micros: u64) -> [Weights; 1] {
        let mut times = Weights::default();
        times.add_time(micros, 100);
        [times]
    }

    #[test]
    fn a_slot_has_the_times_that_came_in_it_and_an_idle_one_has_none() {
        let mut times = Times::new(1);
        times.push(10, &slot(1_000), 120);
        times.push(11, &[Weights::default()], 120);
        times.push(12, &slot(80_000), 120);
        let shown = times.shown(&["sync"]);
        let samples = shown["sync"].as_array().unwrap();
        assert_eq!(samples.len(), 2, "{shown:?}");
        assert_eq!(samples[0]["timestamp"], 50_000);
        assert!(samples[0]["p99_ms"].as_f64().unwrap() < 1.3, "{shown:?}");
        assert!(samples[1]["p50_ms"].as_f64().unwrap() >= 80.0, "{shown:?}");
        assert!(times.latest(0, 12).unwrap().1[0] >= 80.0);
        assert_eq!(times.latest(0, 13), None);
    }

    #[test]
    fn the_latest_times_say_when_they_were_taken_and_old_ones_are_none() {
        let mut times = Times::new(1);
        times.push(10, &slot(1_000), 120);
        let latest = |now| times.latest_shown(&["sync"], now)["sync"].clone();
        assert_eq!(latest(10 + LATEST)["timestamp"], 50_000);
        assert_eq!(latest(11 + LATEST), Value::Null);
    }

    #[test]
    fn old_samples_are_forgotten() {
        let mut times = Times::new(1);
        for now in 1..=300 {
            times.push(now, &slot(now), 120);
        }
        assert_eq!(times.shown(&["x"])["x"].as_array().unwrap().len(), 120);
        assert_eq!(times.changed(), 300);
    }
}
