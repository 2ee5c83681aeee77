//! The numbers of one interval or of a whole run, as lines show them.

use super::parts::Parts;
use crate::measure::{Latency, Recorder};
use std::time::Duration;

/// Messages a second and latencies over a span of time.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Since the start of the run, at the end of the span.
    pub elapsed: Duration,
    pub published: f64,
    pub returned: f64,
    pub confirmed: f64,
    pub nacked: f64,
    pub received: f64,
    pub latency: Latency,
    pub confirm_latency: Latency,
}

impl Figures {
    /// What a recorder counted in `span`.
    pub fn of(recorder: &Recorder, span: Duration, elapsed: Duration) -> Self {
        let each = |count| per_second(count, span);
        Self {
            elapsed,
            published: each(recorder.published),
            returned: each(recorder.returned),
            confirmed: each(recorder.confirmed),
            nacked: each(recorder.nacked),
            received: each(recorder.consumed),
            latency: Latency::of(&recorder.latency),
            confirm_latency: Latency::of(&recorder.confirm_latency),
        }
    }
}

/// A rate; 0 when no time went by.
pub fn per_second(count: u64, span: Duration) -> f64 {
    if span.is_zero() {
        0.0
    } else {
        count as f64 / span.as_secs_f64()
    }
}

/// A rate as PerfTest writes it: two digits below 1, one below 10, none above, and what is cut off is cut off.
pub fn rate(rate: f64) -> String {
    if rate == 0.0 || rate.is_nan() {
        "0".into()
    } else if rate < 1.0 {
        format!("{rate:.2}")
    } else if rate < 10.0 {
        format!("{rate:.1}")
    } else {
        (rate as i64).to_string()
    }
}

/// Seconds with milliseconds.
pub fn seconds(span: Duration) -> String {
    format!("{:.3}", span.as_secs_f64())
}

/// The names of the values in [`six`].
pub const SIX: &str = "min/median/75th/95th/99th/max";

/// Six points and their unit. PerfTest has shown the maximum, too, since 2.23.
pub fn six(latency: &Latency, parts: &Parts) -> String {
    let [min, p50, p75, p95, p99, max] = [
        latency.min,
        latency.p50,
        latency.p75,
        latency.p95,
        latency.p99,
        latency.max,
    ]
    .map(|ns| parts.shown(ns));
    format!("{min}/{p50}/{p75}/{p95}/{p99}/{max} {}", parts.unit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_have_perftests_digits() {
        let shown = [
            0.0,
            0.004,
            0.5,
            0.999,
            1.0,
            2.45,
            9.96,
            10.0,
            101.99,
            1_248.2,
            f64::NAN,
        ];
        assert_eq!(
            shown.map(rate),
            [
                "0", "0.00", "0.50", "1.00", "1.0", "2.5", "10.0", "10", "101", "1248", "0"
            ]
        );
    }

    #[test]
    fn time_that_did_not_go_by_gives_no_rate() {
        assert_eq!(per_second(5, Duration::ZERO), 0.0);
        assert_eq!(seconds(Duration::from_millis(1_001)), "1.001");
    }

    proptest! {
        #[test]
        fn no_number_is_too_odd_to_be_written(count: u64, ns: u64, number: f64, point: u64, millis: bool) {
            let span = Duration::from_nanos(ns);
            let parts = Parts { published: true, received: true, returned: true, confirm_asked: true, millis };
            let latency = Latency { max: point, mean: number, ..Latency::default() };
            for text in [rate(per_second(count, span)), rate(number), seconds(span), six(&latency, &parts)] {
                prop_assert!(!text.is_empty() && !text.contains('\n'));
            }
        }
    }
}
