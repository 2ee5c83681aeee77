//! How long something took: counts in buckets, four to each doubling.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Buckets to a doubling: a time is known to about a tenth.
const STEPS: usize = 4;
/// So many doublings of a microsecond are told apart: up to some 70 minutes.
const DOUBLINGS: usize = 32;

/// Times, from a microsecond to an hour. Anybody may add to it at any time.
pub struct Histogram {
    buckets: [AtomicU32; STEPS * DOUBLINGS],
    sum_micros: AtomicU64,
    count: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU32::new(0)),
            sum_micros: AtomicU64::new(0),
            count: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Something took so many microseconds.
    pub fn record(&self, micros: u64) {
        self.buckets[bucket(micros)].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Their sum, in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// The times as they are now.
    pub fn buckets(&self) -> Buckets {
        Buckets(
            self.buckets
                .each_ref()
                .map(|bucket| bucket.load(Ordering::Relaxed)),
        )
    }
}

/// The times that a histogram had at one moment, or between two.
#[derive(Clone, Debug)]
pub struct Buckets([u32; STEPS * DOUBLINGS]);

impl Default for Buckets {
    fn default() -> Self {
        Self([0; STEPS * DOUBLINGS])
    }
}

impl Buckets {
    /// Those that came after an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut gained = self.clone();
        let pairs = gained.0.iter_mut().zip(earlier.0);
        pairs.for_each(|(now, before)| *now = now.wrapping_sub(before));
        gained
    }

    /// What a part of them stayed below, in seconds; `None` if there are none. `part` is from 0 to 1.
    pub fn quantile_s(&self, part: f64) -> Option<f64> {
        Weights::of(self, self.count()).quantile_s(part)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|count| u64::from(*count)).sum()
    }

    /// How many stayed below some bounds, in seconds, each so many doublings above the one before. What lies above the last is in
    /// [`Self::count`] alone.
    pub fn below(&self, doublings: usize) -> impl Iterator<Item = (f64, u64)> {
        let steps = doublings.max(1) * STEPS;
        let mut below = 0;
        self.0.chunks_exact(steps).enumerate().map(move |(at, times)| {
            below += times.iter().map(|count| u64::from(*count)).sum::<u64>();
            (upper_micros((at + 1) * steps - 1) / 1e6, below)
        })
    }
}

/// Times that count unequally: each for as many messages as it stands for.
#[derive(Clone, Debug)]
pub struct Weights([f64; STEPS * DOUBLINGS]);

impl Default for Weights {
    fn default() -> Self {
        Self([0.0; STEPS * DOUBLINGS])
    }
}

impl Weights {
    /// These times stand for so many messages, each for as many as any other. Nothing, if there are none.
    pub fn of(times: &Buckets, messages: u64) -> Self {
        let each = match times.count() {
            0 => 0.0,
            count => messages as f64 / count as f64,
        };
        Self(times.0.map(|count| f64::from(count) * each))
    }

    /// So many messages took so many microseconds.
    pub fn add_time(&mut self, micros: u64, messages: u64) {
        self.0[bucket(micros)] += messages as f64;
    }

    /// Adds others.
    pub fn add(&mut self, others: &Self) {
        self.0
            .iter_mut()
            .zip(others.0)
            .for_each(|(sum, more)| *sum += more);
    }

    /// What a part of the messages stayed below, in seconds; `None` if there are none. `part` is from 0 to 1.
    pub fn quantile_s(&self, part: f64) -> Option<f64> {
        let all: f64 = self.0.iter().sum();
        // What a sum of fractions lacks of a whole must not lead beyond the last of them.
        let wanted = all * (part - 1e-9).max(0.0);
        let mut below = 0.0;
        let found = self.0.iter().position(|weight| {
            below += weight;
            *weight > 0.0 && below >= wanted
        });
        found.map(|at| upper_micros(at) / 1e6)
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} times, {} s together", self.count(), self.sum_s())
    }
}

fn bucket(micros: u64) -> usize {
    // In quarters, so that the first doublings have their steps too.
    let quarters = micros.clamp(1, 1 << 40) * STEPS as u64;
    let doubling = quarters.ilog2() as usize - 2;
    let step = (quarters >> doubling) as usize - STEPS;
    (doubling * STEPS + step).min(STEPS * DOUBLINGS - 1)
}

/// The upper end of a bucket, in microseconds.
fn upper_micros(at: usize) -> f64 {
    let (doubling, step) = (at / STEPS, at % STEPS);
    (1_u64 << doubling) as f64 * (1.0 + (step + 1) as f64 / STEPS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_a_bucket_that_ends_just_above_it() {
        for micros in [1, 2, 3, 5, 7, 100, 999, 1_000, 65_536, 3_600_000_000] {
            let upper = upper_micros(bucket(micros));
            assert!(
                upper > micros as f64 && upper <= micros as f64 * 2.0,
                "{micros} {upper}"
            );
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, STEPS * DOUBLINGS - 1));
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        let times = Histogram::default();
        assert_eq!(times.buckets().quantile_s(0.5), None);
        (1..=1000).for_each(|micros| times.record(micros * 10));
        let near = |part: f64, seconds: f64| {
            let found = times.buckets().quantile_s(part).unwrap();
            assert!(found >= seconds && found <= seconds * 1.26, "{part}: {found}");
        };
        near(0.5, 0.005);
        near(0.99, 0.0099);
        near(1.0, 0.01);
        assert_eq!((times.count(), times.sum_s()), (1000, 5.005));
    }

    #[test]
    fn below_each_bound_are_all_times_that_are_shorter() {
        let times = Histogram::default();
        for micros in [10, 20, 3_000, 5_000_000] {
            times.record(micros);
        }
        let below: Vec<(f64, u64)> = times.buckets().below(2).collect();
        let count = |bound: f64| {
            below
                .iter()
                .find(|(upper, _)| *upper == bound)
                .map(|found| found.1)
        };
        assert_eq!(
            [0.000_004, 0.000_016, 0.000_064, 0.004_096, 4.194_304, 16.777_216].map(count),
            [0, 1, 2, 3, 3, 4].map(Some)
        );
        assert!(below.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    }

    #[test]
    fn times_between_two_moments_are_those_that_came_in_between() {
        let times = Histogram::default();
        times.record(1_000_000);
        let earlier = times.buckets();
        assert_eq!(times.buckets().since(&earlier).quantile_s(0.5), None);
        times.record(10);
        let gained = times.buckets().since(&earlier);
        assert_eq!(gained.count(), 1);
        assert!(gained.quantile_s(1.0).unwrap() < 0.000_013);
    }

    #[test]
    fn a_time_counts_for_the_messages_that_it_stands_for() {
        let (quick, slow) = (Histogram::default(), Histogram::default());
        (0..1_000).for_each(|_| quick.record(50));
        slow.record(134_000_000);
        let mut all = Weights::of(&quick.buckets(), 7_000);
        all.add(&Weights::of(&slow.buckets(), 1_000));
        assert!(all.quantile_s(0.87).unwrap() < 0.000_1);
        assert!(all.quantile_s(0.88).unwrap() >= 134.0);
        assert_eq!(Weights::of(&Buckets::default(), 5).quantile_s(0.5), None);
        all.add_time(600_000_000, 1_000_000);
        assert!(all.quantile_s(0.5).unwrap() >= 600.0);
    }
}
