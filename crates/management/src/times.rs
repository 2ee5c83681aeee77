//! How long things took, slot by slot: percentiles of the times that came in each.

use crate::history::{SLOT_S, Slot};
use broker::stats::Weights;
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

/// Samples that are so many slots apart are kept for so many slots.
#[derive(Clone, Copy, Debug)]
struct Pace {
    every: u64,
    kept: u64,
}

/// Each slot for ten minutes, then one sample a minute for an hour and one in ten minutes for a day.
const PACES: [Pace; 3] = [
    Pace {
        every: 1,
        kept: 600 / SLOT_S,
    },
    Pace {
        every: 60 / SLOT_S,
        kept: 3_600 / SLOT_S,
    },
    Pace {
        every: 600 / SLOT_S,
        kept: 86_400 / SLOT_S,
    },
];
/// How long each slot is kept.
pub const FINE: u64 = PACES[0].kept;
/// How long samples are kept at all, in slots.
pub const OLDEST: u64 = PACES[2].kept;

type Sample<const N: usize> = (Slot, [Option<Percentiles>; N]);

/// Times of `N` sorts. There is no sample for a slot in which nothing was timed. A sample of many slots has of each percentile
/// the worst: what was slow for some seconds is not lost among hours.
#[derive(Debug)]
pub struct Times<const N: usize> {
    /// The slot that it began with.
    began: Slot,
    /// By pace.
    samples: [VecDeque<Sample<N>>; PACES.len()],
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
            samples: Default::default(),
        }
    }

    /// Adds the times of a slot.
    pub fn push(&mut self, slot: Slot, times: &[Weights; N]) {
        let percentiles = times.each_ref().map(percentiles);
        if percentiles.iter().any(Option::is_some) {
            for (pace, samples) in PACES.iter().zip(&mut self.samples) {
                let begins = slot - slot % pace.every;
                match samples.back_mut().filter(|(known, _)| *known == begins) {
                    Some((_, sample)) => worst(sample, &percentiles),
                    None => samples.push_back((begins, percentiles)),
                }
            }
        }
        self.age(slot);
    }

    /// Forgets samples that are too old.
    pub fn age(&mut self, now: Slot) {
        for (pace, samples) in PACES.iter().zip(&mut self.samples) {
            while samples.front().is_some_and(|(first, _)| first + pace.kept <= now) {
                samples.pop_front();
            }
        }
    }

    /// The slot of the last sample, or the first slot of it if it is one of many; where it began, while there is none.
    pub fn changed(&self) -> Slot {
        let last = self.samples.iter().find_map(VecDeque::back);
        last.map_or(self.began, |(slot, _)| *slot)
    }

    /// The percentiles of one sort in the latest slot from `since` on that has some, and which slot that is.
    pub fn latest(&self, sort: usize, since: Slot) -> Option<(Slot, Percentiles)> {
        let recent = self.samples[0]
            .iter()
            .rev()
            .take_while(|(slot, _)| *slot >= since);
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

    /// The samples of each sort that reach so many seconds back, the oldest first.
    pub fn shown(&self, names: &[&str; N], age_s: u64) -> Map<String, Value> {
        let mut all = Map::new();
        let known = &self.samples[pace(age_s)];
        for (at, name) in names.iter().enumerate() {
            let samples = known.iter();
            let samples = samples.filter_map(|(slot, sample)| Some(object(*slot, sample[at]?)));
            all.insert((*name).to_owned(), samples.collect());
        }
        all
    }
}

/// The finest pace that reaches so many seconds back.
fn pace(age_s: u64) -> usize {
    let reaches = |pace: &Pace| pace.kept * SLOT_S >= age_s;
    PACES.iter().position(reaches).unwrap_or(PACES.len() - 1)
}

/// The distance of the samples that reach so many seconds back, in milliseconds.
pub fn step_ms(age_s: u64) -> u64 {
    moment_ms(PACES[pace(age_s)].every)
}

/// Of each percentile the larger one.
fn worst<const N: usize>(sample: &mut [Option<Percentiles>; N], more: &[Option<Percentiles>; N]) {
    for (known, more) in sample.iter_mut().zip(more) {
        *known = match (*known, *more) {
            (Some(a), Some(b)) => Some(std::array::from_fn(|at| a[at].max(b[at]))),
            (known, more) => known.or(more),
        };
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
        times.push(10, &slot(1_000));
        times.push(11, &[Weights::default()]);
        times.push(12, &slot(80_000));
        let shown = times.shown(&["sync"], 600);
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
        times.push(10, &slot(1_000));
        let latest = |now| times.latest_shown(&["sync"], now)["sync"].clone();
        assert_eq!(latest(10 + LATEST)["timestamp"], 50_000);
        assert_eq!(latest(11 + LATEST), Value::Null);
    }

    #[test]
    fn old_samples_are_forgotten() {
        let mut times = Times::new(1);
        for now in 1..=300 {
            times.push(now, &slot(now));
        }
        assert_eq!(times.shown(&["x"], 600)["x"].as_array().unwrap().len(), 120);
        assert_eq!(times.changed(), 300);
        times.age(400);
        assert_eq!(times.shown(&["x"], 600)["x"].as_array().unwrap().len(), 20);
        times.age(300 + OLDEST);
        assert_eq!(times.shown(&["x"], 86_400)["x"], Value::from(Vec::<Value>::new()));
    }

    #[test]
    fn a_sample_of_many_slots_has_the_worst_of_each_percentile() {
        let mut times = Times::new(1);
        for now in 1..=1_000 {
            let micros = if now == 500 { 700_000 } else { 1_000 };
            times.push(now, &slot(micros));
        }
        for (age_s, every, many) in [(3_600, 60, 60), (28_800, 600, 9), (86_400, 600, 9)] {
            assert_eq!(step_ms(age_s), every * 1_000);
            let shown = times.shown(&["x"], age_s);
            let samples = shown["x"].as_array().unwrap();
            assert_eq!(samples.len(), many, "{age_s}");
            let slow = samples.iter().filter(|it| it["p50_ms"].as_f64().unwrap() > 600.0);
            assert_eq!(slow.count(), 1, "{age_s}");
            assert!(
                samples
                    .iter()
                    .all(|it| it["timestamp"].as_u64().unwrap() % (every * 1_000) == 0)
            );
        }
    }
}
