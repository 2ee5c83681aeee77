//! The bar of a bounded run on a terminal.

use super::figures::{Figures, rate};
use crate::measure::{Latency, Sample};
use crate::plan::Plan;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// The bar counts in thousandths of the whole.
const WHOLE: u64 = 1_000;

/// A line at the bottom of the terminal, on stderr.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    bounds: Bounds,
    consuming: bool,
}

/// What bounds a run; the bound that is nearest counts.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    time: Option<Duration>,
    /// Over all producers.
    messages: Option<u64>,
}

impl Progress {
    /// `None` if nothing bounds the run.
    pub fn new(plan: &Plan) -> Option<Self> {
        let producing = &plan.producing;
        let producers = (producing.producers.saturating_mul(producing.channels)) as u64;
        let messages = producing.messages.map(|each| each.saturating_mul(producers));
        Self::over(plan.stopping.time, messages, plan.consuming.consumers > 0)
    }

    /// For a run of this length, or of so many messages that are published; `None` if nothing bounds it.
    pub fn over(time: Option<Duration>, messages: Option<u64>, consuming: bool) -> Option<Self> {
        let messages = messages.filter(|&all| all > 0);
        let bounds = Bounds { time, messages };
        if bounds.time.is_none() && bounds.messages.is_none() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:10} {percent:>3} %  {wide_msg}") {
            bar.set_style(style);
        }
        Some(Self {
            bar,
            bounds,
            consuming,
        })
    }

    /// Shows the empty bar.
    pub fn start(&self) {
        self.show(0.0, self.bounds.words(Duration::ZERO, 0.0));
    }

    /// Shows how far the run is, with what happened in the last interval.
    pub fn advance(&self, sample: &Sample, published: u64) {
        let figures = Figures::of(&sample.recorder, sample.interval, sample.elapsed);
        let part = self.bounds.part(sample.elapsed, published);
        let mut words = self.bounds.words(sample.elapsed, part);
        words += &format!("  sent {}/s", rate(figures.published));
        if self.consuming {
            words += &format!(", received {}/s", rate(figures.received));
        }
        if figures.latency.count > 0 {
            words += &format!(", p99 {}", readable(&figures.latency));
        }
        self.show(part, words);
    }

    fn show(&self, part: f64, words: String) {
        self.bar.set_position((part * WHOLE as f64) as u64);
        self.bar.set_message(words);
        self.bar.tick();
    }

    /// Prints what must stand above the bar.
    pub fn above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Bounds {
    /// How much of the run is over, from 0 to 1.
    fn part(&self, elapsed: Duration, published: u64) -> f64 {
        let of_time = self
            .time
            .map_or(0.0, |time| fraction(elapsed.as_secs_f64(), time.as_secs_f64()));
        let of_messages = self
            .messages
            .map_or(0.0, |all| fraction(published as f64, all as f64));
        of_time.max(of_messages)
    }

    fn words(&self, elapsed: Duration, part: f64) -> String {
        let mut words = format!("{} gone", clock(elapsed));
        let by_time = self.time.map(|time| time.saturating_sub(elapsed));
        let by_pace = (part > 0.0 && self.messages.is_some())
            .then(|| Duration::try_from_secs_f64(elapsed.as_secs_f64() * (1.0 - part) / part).ok())
            .flatten();
        if let Some(rest) = by_time.into_iter().chain(by_pace).min() {
            words += &format!(", {} left", clock(rest));
        }
        words
    }
}

fn fraction(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (part / whole).clamp(0.0, 1.0)
    } else {
        1.0
    }
}

/// `1:02:03` or `2:03`.
fn clock(span: Duration) -> String {
    let seconds = span.as_secs_f64().round() as u64;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// The 99th percentile in the unit a reader expects.
fn readable(latency: &Latency) -> String {
    match latency.p99 {
        ns @ 0..1_000_000 => format!("{} µs", ns / 1_000),
        ns @ 1_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        ns => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_nearest_bound_says_how_far_a_run_is() {
        let both = Bounds {
            time: Some(100 * SECOND),
            messages: Some(1_000),
        };
        assert_eq!(both.part(10 * SECOND, 50), 0.1);
        assert_eq!(both.part(10 * SECOND, 500), 0.5);
        assert_eq!(both.part(200 * SECOND, 0), 1.0);
    }

    #[test]
    fn the_rest_is_estimated_from_the_pace_and_never_longer_than_the_time() {
        let both = Bounds {
            time: Some(100 * SECOND),
            messages: Some(1_000),
        };
        assert_eq!(both.words(10 * SECOND, 0.5), "0:10 gone, 0:10 left");
        let time = Bounds {
            messages: None,
            ..both
        };
        assert_eq!(time.words(10 * SECOND, 0.1), "0:10 gone, 1:30 left");
        let messages = Bounds { time: None, ..both };
        assert_eq!(messages.words(10 * SECOND, 0.0), "0:10 gone");
        assert_eq!(messages.words(4_000 * SECOND, 0.5), "1:06:40 gone, 1:06:40 left");
        assert_eq!(messages.words(SECOND, 1e-300), "0:01 gone");
    }

    #[test]
    fn a_percentile_is_told_in_the_unit_a_reader_expects() {
        let p99 = |p99| {
            readable(&Latency {
                p99,
                ..Latency::default()
            })
        };
        assert_eq!(
            [999_999, 1_250_000, 12_000_000_000].map(p99),
            ["999 µs", "1.2 ms", "12.0 s"]
        );
    }
}
