//! How far a run is: a bar with the rest's time on a terminal, a line a visit elsewhere.

use crate::schedule;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Beyond this the estimate of the rest trusts what the visits took more than what they were expected to take.
const TRUSTED: Duration = Duration::from_secs(20);

/// The progress.
#[derive(Debug)]
pub struct Progress {
    /// Absent where nobody sees it move.
    bar: Option<ProgressBar>,
    rest: Rest,
    visits: usize,
    finished: usize,
    text: String,
}

impl Progress {
    /// Of a run of so many visits that are expected to take so long, of which some are done.
    pub fn new(visits: usize, finished: usize, expected: Duration) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(millis(expected)), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:32.cyan/blue} {percent:>3} %  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self {
            bar,
            rest: Rest::new(expected),
            visits,
            finished,
            text: String::new(),
        }
    }

    /// A visit begins that is expected to take so long.
    pub fn begin(&mut self, text: &str, expected: Duration) {
        self.text = text.to_owned();
        self.rest.begin(expected, Instant::now());
        self.tick();
    }

    /// Moves the bar on.
    pub fn tick(&self) {
        if let Some(bar) = &self.bar {
            let now = Instant::now();
            bar.set_position(millis(self.rest.position(now)));
            let rest = schedule::shown(self.rest.left(now));
            bar.set_message(format!(
                "{}/{}, {rest} left: {}",
                self.finished + 1,
                self.visits,
                self.text
            ));
        }
    }

    /// The visit has ended, with a line that says how.
    pub fn end(&mut self, line: &str) {
        self.rest.end(Instant::now());
        self.finished += 1;
        self.say(&format!("{:>3}/{} {line}", self.finished, self.visits));
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What is left of a run, in time.
#[derive(Debug)]
struct Rest {
    expected: Duration,
    /// Of finished visits: what they were expected to take and what they took.
    planned: Duration,
    taken: Duration,
    current: Option<(Duration, Instant)>,
}

impl Rest {
    fn new(expected: Duration) -> Self {
        Self {
            expected,
            planned: Duration::ZERO,
            taken: Duration::ZERO,
            current: None,
        }
    }

    fn begin(&mut self, expected: Duration, now: Instant) {
        self.current = Some((expected, now));
    }

    fn end(&mut self, now: Instant) {
        if let Some((expected, begun)) = self.current.take() {
            self.planned += expected;
            self.taken += now - begun;
        }
    }

    /// How much of what was planned is done. A visit that takes longer than planned waits at its end.
    fn position(&self, now: Instant) -> Duration {
        let current = self
            .current
            .map_or(Duration::ZERO, |(expected, begun)| expected.min(now - begun));
        self.planned + current
    }

    fn left(&self, now: Instant) -> Duration {
        let planned = self.expected.saturating_sub(self.position(now));
        if self.planned < TRUSTED {
            return planned;
        }
        planned.mul_f64(self.taken.as_secs_f64() / self.planned.as_secs_f64())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn what_is_left_grows_when_visits_take_longer_than_planned() {
        let start = Instant::now();
        let mut rest = Rest::new(seconds(100));
        rest.begin(seconds(40), start);
        assert_eq!(rest.left(start + seconds(10)), seconds(90));
        assert_eq!(rest.left(start + seconds(70)), seconds(60));
        rest.end(start + seconds(80));
        assert_eq!(rest.left(start + seconds(80)), seconds(120));
        assert_eq!(rest.position(start + seconds(80)), seconds(40));
    }

    #[test]
    fn a_visit_that_overruns_does_not_move_the_bar_past_its_end() {
        let start = Instant::now();
        let mut rest = Rest::new(seconds(10));
        rest.begin(seconds(4), start);
        assert_eq!(rest.position(start + seconds(9)), seconds(4));
    }
}
