//! Ratios in words that people use.

use crate::statistics::Ratio;
use charts::shown;

/// A ratio of so many pairs of rounds in words: `1/42 of the CPU [1/52–1/40]`, `5.30 times the rate`, or that no
/// difference was shown where the interval includes 1.
pub fn ratio(ratio: Ratio, pairs: usize, noun: &str) -> String {
    if pairs < 2 {
        return format!("{} {noun} (one round)", of_the(ratio.median));
    }
    let interval = interval(ratio);
    if ratio.low <= 1.0 && ratio.high >= 1.0 {
        return format!("no difference shown {interval}");
    }
    format!("{} {noun} {interval}", of_the(ratio.median))
}

/// `5.3 times the`, or `about the same` where the digits show no more.
fn of_the(value: f64) -> String {
    if factor(value) == "1" {
        "about the same".to_owned()
    } else {
        times(value) + " the"
    }
}

/// The same for a narrow column whose heading names the figure.
pub fn short_ratio(ratio: Ratio, pairs: usize) -> (String, Option<String>) {
    if pairs < 2 {
        return (factor(ratio.median), Some("(one round)".to_owned()));
    }
    let interval = Some(interval(ratio));
    if ratio.low <= 1.0 && ratio.high >= 1.0 {
        return ("no difference shown".to_owned(), interval);
    }
    (factor(ratio.median), interval)
}

/// `1/42 of`, `83 % of` or `5.30 times`.
fn times(value: f64) -> String {
    if value < 1.0 {
        format!("{} of", factor(value))
    } else {
        factor(value) + " times"
    }
}

/// Before a name in the genitive: `1/42 of`, `5.3 times`, `as much as`.
pub fn multiple(value: f64) -> String {
    if factor(value) == "1" {
        "as much as".to_owned()
    } else {
        times(value)
    }
}

/// `1/42`, `83 %` or `5.30×` without the sign: one style for the figure and both ends of its interval.
pub fn factor(value: f64) -> String {
    match value {
        value if value <= 0.0 || !value.is_finite() => shown::NONE.to_owned(),
        value if value < 0.6667 => format!("1/{}", digits(1.0 / value)),
        value if value < 1.0 => format!("{:.0} %", (value * 100.0).min(99.0)),
        value => digits(value),
    }
}

fn interval(ratio: Ratio) -> String {
    let (low, high) = (factor(ratio.low), factor(ratio.high));
    format!("[{low}–{high}]")
}

/// `[4.00–4.40 µs]`, with the unit once if it is the same; none where both ends look alike.
pub fn range(low: f64, high: f64, show: fn(f64) -> String) -> Option<String> {
    let (low, high) = (show(low), show(high));
    if low == high {
        return None;
    }
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => Some(format!("[{number}–{high}]")),
        _ => Some(format!("[{low}–{high}]")),
    }
}

/// Two digits that mean something, and no zeros behind the point.
fn digits(value: f64) -> String {
    let decimals = match value {
        value if value >= 9.95 => 0,
        value if value >= 2.0 => 1,
        _ => 2,
    };
    if value >= 1_000.0 {
        return shown::number(value);
    }
    shown::shortest(value, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(median: f64, low: f64, high: f64) -> Ratio {
        Ratio { median, low, high }
    }

    #[test]
    fn small_ratios_are_fractions_and_large_ones_times() {
        let cpu = ratio(of(1.0 / 42.0, 1.0 / 52.0, 1.0 / 40.0), 5, "CPU");
        assert_eq!(cpu, "1/42 of the CPU [1/52–1/40]");
        let rate = ratio(of(5.3, 5.0, 6.14), 5, "rate");
        assert_eq!(rate, "5.3 times the rate [5–6.1]");
        assert_eq!(
            ratio(of(0.83, 0.8, 0.9), 3, "rate"),
            "83 % of the rate [80 %–90 %]"
        );
        assert_eq!(factor(1234.0), "1,234");
    }

    #[test]
    fn an_interval_that_includes_one_shows_no_difference() {
        let words = ratio(of(1.3, 0.9, 1.5), 5, "rate");
        assert_eq!(words, "no difference shown [90 %–1.5]");
        assert_eq!(short_ratio(of(1.3, 0.9, 1.5), 5).0, "no difference shown");
        assert_eq!(short_ratio(of(1.3, 1.1, 1.5), 5).0, "1.3");
    }

    #[test]
    fn a_range_has_its_unit_once_if_it_is_the_same() {
        assert_eq!(range(4.0, 4.4, shown::time_us).as_deref(), Some("[4.00–4.40 µs]"));
        assert_eq!(
            range(900.0, 1_100.0, shown::time_us).as_deref(),
            Some("[900 µs–1.10 ms]")
        );
        assert_eq!(range(4.0, 4.001, shown::time_us), None);
    }

    #[test]
    fn one_round_has_no_interval_and_says_so() {
        assert_eq!(
            ratio(of(2.5, 2.5, 2.5), 1, "p99"),
            "2.5 times the p99 (one round)"
        );
        assert_eq!(
            ratio(of(1.0, 1.0, 1.0), 1, "p99"),
            "about the same p99 (one round)"
        );
        assert_eq!(short_ratio(of(0.25, 0.25, 0.25), 1).1.unwrap(), "(one round)");
    }

    #[test]
    fn a_ratio_below_one_never_rounds_up_to_a_hundred_per_cent() {
        assert_eq!(factor(0.999), "99 %");
        assert_eq!(factor(0.0), shown::NONE);
    }
}
