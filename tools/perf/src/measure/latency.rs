//! What a histogram tells a reader.

use hdrhistogram::Histogram;

/// Nanoseconds of a histogram's count, at the points that reports show. All 0 if nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Latency {
    pub count: u64,
    pub min: u64,
    pub mean: f64,
    pub p50: u64,
    pub p75: u64,
    pub p90: u64,
    pub p95: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub p99_99: u64,
    pub max: u64,
}

impl Latency {
    /// Reads all points. A histogram knows a value to three digits; the middle of what it may have been is told.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let middle = |value| histogram.median_equivalent(value);
        let at = |quantile| middle(histogram.value_at_quantile(quantile));
        Self {
            count: histogram.len(),
            min: middle(histogram.min()),
            mean: histogram.mean(),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: middle(histogram.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Recorder;

    #[test]
    fn an_empty_histogram_reads_as_zeros() {
        assert_eq!(Latency::of(&Recorder::new().latency), Latency::default());
    }

    #[test]
    fn the_points_of_ten_thousand_even_values_are_where_they_belong() {
        let mut recorder = Recorder::new();
        for us in 1..=10_000u64 {
            recorder.latency(us * 1_000);
        }
        let latency = Latency::of(&recorder.latency);
        assert_eq!(latency.count, 10_000);
        let close = |got: u64, us: u64| got.abs_diff(us * 1_000) <= us + 1;
        assert!(close(latency.min, 1) && close(latency.p50, 5_000) && close(latency.p75, 7_500));
        assert!(close(latency.p90, 9_000) && close(latency.p95, 9_500) && close(latency.p99, 9_900));
        assert!(close(latency.p99_9, 9_990) && close(latency.p99_99, 9_999) && close(latency.max, 10_000));
        assert!((latency.mean / 5_000_500.0 - 1.0).abs() < 0.002);
    }

    #[test]
    fn no_point_lies_above_the_maximum() {
        let mut recorder = Recorder::new();
        recorder.latency(u64::MAX);
        let latency = Latency::of(&recorder.latency);
        assert!(latency.min <= latency.p50 && latency.p99_99 <= latency.max);
    }
}
