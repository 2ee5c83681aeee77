//! The percentiles of several intervals together, from each interval's own.
//!
//! The load generator reports a histogram's percentiles for each interval and for the whole run, and the whole run has the
//! warm-up in it. Between two known percentiles an interval's values are taken to be spread evenly; where all intervals
//! are alike, the result is exact at the known ones.

use crate::results::{Latency, MaxInterval};

/// Halvings of the range of values when a percentile is looked for: more than a double has digits for.
const STEPS: u32 = 64;

/// All intervals as one. `None` if there is no value in any.
pub fn merged(intervals: &[Latency]) -> Option<Latency> {
    let parts: Vec<Latency> = intervals.iter().filter(|l| l.count > 0).copied().collect();
    if let [only] = parts.as_slice() {
        return Some(*only);
    }
    let count: u64 = parts.iter().map(|l| l.count).sum();
    let min = parts.iter().map(|l| l.min).reduce(f64::min)?;
    let max = parts.iter().map(|l| l.max).reduce(f64::max)?;
    let mean = parts.iter().map(|l| l.mean * l.count as f64).sum::<f64>() / count as f64;
    let quantile = |wanted: f64| {
        let (mut low, mut high) = (min, max);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if share_below(&parts, middle, count) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        // As many digits as the intervals have.
        (high * 10.0).round() / 10.0
    };
    Some(Latency {
        count,
        min,
        mean,
        p50: quantile(0.5),
        p75: quantile(0.75),
        p90: quantile(0.9),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p99_9: quantile(0.999),
        p99_99: quantile(0.9999),
        max,
    })
}

/// The worst interval's percentiles, which the sources' tables call "Max 99th" and so on.
pub fn worst(intervals: &[Latency]) -> Option<MaxInterval> {
    let parts: Vec<&Latency> = intervals.iter().filter(|l| l.count > 0).collect();
    let worst = |percentile: fn(&Latency) -> f64| parts.iter().map(|l| percentile(l)).reduce(f64::max);
    Some(MaxInterval {
        p75: worst(|l| l.p75)?,
        p95: worst(|l| l.p95)?,
        p99: worst(|l| l.p99)?,
    })
}

/// Which share of all values is not above `value`.
fn share_below(parts: &[Latency], value: f64, count: u64) -> f64 {
    let below: f64 = parts.iter().map(|l| share(l, value) * l.count as f64).sum();
    below / count as f64
}

fn share(latency: &Latency, value: f64) -> f64 {
    let knots = [
        (latency.min, 0.0),
        (latency.p50, 0.5),
        (latency.p75, 0.75),
        (latency.p90, 0.9),
        (latency.p95, 0.95),
        (latency.p99, 0.99),
        (latency.p99_9, 0.999),
        (latency.p99_99, 0.9999),
        (latency.max, 1.0),
    ];
    let above = knots.partition_point(|(v, _)| *v <= value);
    let Some(&(v1, share1)) = knots.get(above) else {
        return 1.0;
    };
    let Some(&(v0, share0)) = above.checked_sub(1).and_then(|i| knots.get(i)) else {
        return 0.0;
    };
    share0 + (share1 - share0) * (value - v0) / (v1 - v0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The percentiles of these values.
    fn of(mut values: Vec<f64>) -> Latency {
        values.sort_by(f64::total_cmp);
        let at =
            |share: f64| values[((values.len() as f64 * share).ceil() as usize).clamp(1, values.len()) - 1];
        Latency {
            count: values.len() as u64,
            min: values[0],
            mean: values.iter().sum::<f64>() / values.len() as f64,
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: values[values.len() - 1],
        }
    }

    #[test]
    fn intervals_that_are_alike_are_as_each_of_them() {
        let one = of((1..=10_000).map(f64::from).collect());
        let all = merged(&[one, one, one]).unwrap();
        assert_eq!(
            (all.count, all.min, all.max, all.mean),
            (30_000, 1.0, 10_000.0, one.mean)
        );
        for (found, expected) in [(all.p50, one.p50), (all.p99, one.p99), (all.p99_9, one.p99_9)] {
            assert!((found - expected).abs() < 1.0, "{found} {expected}");
        }
    }

    #[test]
    fn a_slow_interval_counts_as_much_as_it_has_values() {
        let mut random = fastrand::Rng::with_seed(3);
        let quick: Vec<f64> = (0..9_000).map(|_| 100.0 + 50.0 * random.f64()).collect();
        let slow: Vec<f64> = (0..1_000).map(|_| 5_000.0 + 500.0 * random.f64()).collect();
        let truth = of(quick.iter().chain(&slow).copied().collect());
        let found = merged(&[of(quick), of(slow)]).unwrap();
        for (found, truth) in [
            (found.p50, truth.p50),
            (found.p75, truth.p75),
            (found.p95, truth.p95),
            (found.p99, truth.p99),
        ] {
            assert!(
                (found / truth - 1.0).abs() < 0.05,
                "{found} where {truth} is true"
            );
        }
    }

    #[test]
    fn one_interval_is_kept_to_the_digit_and_none_is_none() {
        let one = of(vec![3.0, 4.0, 9.0]);
        assert_eq!(merged(&[Latency::default(), one]), Some(one));
        assert_eq!(merged(&[Latency::default()]), None);
        assert_eq!(worst(&[]), None);
    }

    #[test]
    fn equal_values_do_not_divide_by_zero() {
        let same = of(vec![7.0; 5]);
        let all = merged(&[same, same]).unwrap();
        assert_eq!((all.p50, all.p99_99), (7.0, 7.0));
    }

    #[test]
    fn the_worst_interval_is_taken_for_each_percentile_apart() {
        let (a, b) = (of(vec![1.0, 1.0, 1.0, 90.0]), of(vec![5.0, 5.0, 5.0, 5.0]));
        let found = worst(&[a, b]).unwrap();
        assert_eq!((found.p75, found.p99), (5.0, 90.0));
    }
}
