//! When messages are due. No clock: moments are nanoseconds that come in.
//!
//! The schedule is *open*: what was due stays due until it is sent, however long that takes, and its moment is remembered as
//! the intended one. PerfTest's limiter instead lets a producer that was held up go on as if nothing had been due meanwhile
//! (and allows a second's worth in one burst), so a stalled broker looks better than it is.

use crate::plan::Schedule;
use std::time::Duration;

/// A message each nanosecond is the most that moments can tell apart.
const FASTEST: f64 = 1e9;

/// When the next message is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// At once, and so is the one after it.
    Now,
    /// At this moment, in nanoseconds; it may be past.
    At(u64),
    /// Never: the schedule asks for connections without messages.
    Never,
}

/// The schedule of one producer.
///
/// With a rate, message *k* is due exactly *k* periods after the first: nothing drifts. The first messages of many
/// producers are spread over a period, so that they do not all publish at once.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Rates (messages a second; below 0: unlimited; 0: none) and how long they hold.
    parts: Vec<(f64, u64)>,
    /// Which part holds.
    part: usize,
    /// When it began.
    began: u64,
    /// Messages taken in it.
    taken: u64,
    /// Where in its period this producer publishes its first message of the part, from 0 to 1.
    place: f64,
}

impl Pacer {
    /// Producer `index` of `of`, from the moment `start` on.
    pub fn new(schedule: &Schedule, start: u64, index: u64, of: u64) -> Self {
        let parts = match schedule {
            Schedule::Unlimited => vec![(-1.0, u64::MAX)],
            Schedule::Rate(rate) => vec![(*rate, u64::MAX)],
            Schedule::Interval(interval) => vec![(1.0 / interval.as_secs_f64(), u64::MAX)],
            Schedule::Variable(parts) => parts
                .iter()
                .map(|(rate, time)| (*rate, nanoseconds(*time).max(1)))
                .collect(),
        };
        let parts: Vec<(f64, u64)> = parts
            .into_iter()
            .map(|(rate, time)| (rate.min(FASTEST), time))
            .collect();
        Self {
            parts: if parts.is_empty() {
                vec![(-1.0, u64::MAX)]
            } else {
                parts
            },
            part: 0,
            began: start,
            taken: 0,
            place: index as f64 / of.max(1) as f64,
        }
    }

    /// How many messages are due; `u64::MAX` where the schedule sets no limit.
    pub fn due(&mut self, now: u64) -> u64 {
        self.go_on(now);
        let (rate, length) = self.parts[self.part];
        if now < self.began {
            return 0;
        }
        if rate < 0.0 {
            return if now - self.began < length { u64::MAX } else { 0 };
        }
        self.scheduled((now - self.began).saturating_add(1).min(length))
            .saturating_sub(self.taken)
    }

    /// When the next message is due.
    pub fn next(&self) -> Due {
        let (rate, length) = self.parts[self.part];
        if rate < 0.0 {
            return Due::Now;
        }
        let offset = self.offset(self.taken);
        if rate > 0.0 && offset < length as f64 {
            return Due::At(self.began.saturating_add(offset as u64));
        }
        if length == u64::MAX {
            return Due::Never;
        }
        // When the part ends somebody has to look again.
        Due::At(self.began.saturating_add(length))
    }

    /// Takes one of the messages that are due and tells when it was: `now` where the schedule sets no limit.
    pub fn take(&mut self, now: u64) -> u64 {
        let (rate, _) = self.parts[self.part];
        if rate < 0.0 {
            return now;
        }
        let moment = self.began.saturating_add(self.offset(self.taken) as u64);
        self.taken += 1;
        if self.parts.len() > 1 {
            self.go_on(now);
        }
        moment
    }

    /// Goes on to the part that holds now, but not past messages that are still due.
    fn go_on(&mut self, now: u64) {
        loop {
            let (rate, length) = self.parts[self.part];
            let over = now >= self.began.saturating_add(length) && length < u64::MAX;
            if !over || (rate > 0.0 && self.scheduled(length) > self.taken) {
                return;
            }
            if rate > 0.0 {
                // What is left of a period is waited for at the next rate, so that no part rounds up its messages.
                self.place = (self.place + self.taken as f64 - rate * (length as f64 / 1e9)).max(0.0);
            }
            self.began += length;
            self.part = (self.part + 1) % self.parts.len();
            self.taken = 0;
        }
    }

    /// How many messages are due within the first `span` nanoseconds of the part.
    fn scheduled(&self, span: u64) -> u64 {
        let (rate, _) = self.parts[self.part];
        if rate <= 0.0 {
            return 0;
        }
        let guess = (span as f64 * rate / 1e9 - self.place).max(0.0) as u64;
        // Rounding may be off by one either way; the offsets decide.
        let mut count = guess.saturating_sub(1);
        while (self.offset(count) as u64) < span {
            count += 1;
        }
        count
    }

    /// When message `k` of the part is due, in nanoseconds from its beginning.
    fn offset(&self, k: u64) -> f64 {
        let (rate, _) = self.parts[self.part];
        (k as f64 + self.place) * 1e9 / rate
    }
}

/// Values that hold for a time each, in turn and for ever.
#[derive(Debug, Clone)]
pub struct Phases<T> {
    parts: Vec<(T, u64)>,
    all: u64,
}

impl<T> Phases<T> {
    /// A time of 0 counts as a nanosecond. Without any part [`Self::at`] has nothing to say.
    pub fn new(parts: Vec<(T, Duration)>) -> Self {
        let parts: Vec<(T, u64)> = parts
            .into_iter()
            .map(|(value, time)| (value, nanoseconds(time).max(1)))
            .collect();
        let all = parts
            .iter()
            .fold(0u64, |sum, (_, time)| sum.saturating_add(*time));
        Self { parts, all }
    }

    /// The value that holds after so much time.
    pub fn at(&self, elapsed: Duration) -> Option<&T> {
        let mut left = nanoseconds(elapsed) % self.all.max(1);
        for (value, time) in &self.parts {
            if left < *time {
                return Some(value);
            }
            left -= time;
        }
        None
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
