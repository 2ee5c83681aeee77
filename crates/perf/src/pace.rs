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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn moments(pacer: &mut Pacer, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| match pacer.next() {
                Due::At(moment) => pacer.take(moment),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn four_messages_a_second_are_a_quarter_apart() {
        let mut pacer = Pacer::new(&Schedule::Rate(4.0), 100, 0, 1);
        let quarter = SECOND / 4;
        assert_eq!(
            moments(&mut pacer, 4),
            [100, 100 + quarter, 100 + 2 * quarter, 100 + 3 * quarter]
        );
    }

    #[test]
    fn what_was_held_up_stays_due_with_its_moment() {
        let mut pacer = Pacer::new(&Schedule::Rate(1000.0), 0, 0, 1);
        assert_eq!(pacer.due(0), 1);
        assert_eq!(pacer.take(0), 0);
        // For a second nothing could be sent.
        assert_eq!(pacer.due(SECOND), 1000);
        assert_eq!(pacer.take(SECOND), 1_000_000);
        assert_eq!(pacer.take(SECOND), 2_000_000);
        assert_eq!(pacer.due(SECOND), 998);
    }

    #[test]
    fn many_producers_take_turns_within_a_period() {
        let of = 14_000;
        let mut all: Vec<u64> = (0..of)
            .flat_map(|index| {
                let mut pacer = Pacer::new(&Schedule::Interval(Duration::from_secs(1)), 0, index, of);
                moments(&mut pacer, 3)
            })
            .collect();
        all.sort_unstable();
        assert_eq!(all.len() as u64, 3 * of);
        for slot in 0..300 {
            let (from, to) = (slot * SECOND / 100, (slot + 1) * SECOND / 100);
            let here = all.partition_point(|at| *at < to) - all.partition_point(|at| *at < from);
            assert!(
                here.abs_diff(140) <= 2,
                "{here} messages in a hundredth of a second"
            );
        }
    }

    #[test]
    fn without_a_limit_everything_is_due_at_any_moment() {
        let mut pacer = Pacer::new(&Schedule::Unlimited, 5, 0, 1);
        assert_eq!(
            (pacer.due(5), pacer.next(), pacer.take(77)),
            (u64::MAX, Due::Now, 77)
        );
        assert_eq!(pacer.due(4), 0);
    }

    #[test]
    fn a_rate_of_nothing_is_never_due() {
        let mut pacer = Pacer::new(&Schedule::Rate(0.0), 0, 0, 1);
        assert_eq!((pacer.due(u64::MAX), pacer.next()), (0, Due::Never));
    }

    #[test]
    fn a_variable_rate_changes_at_its_moments_and_begins_again() {
        let parts = vec![
            (2.0, Duration::from_secs(1)),
            (0.0, Duration::from_secs(1)),
            (-1.0, Duration::from_secs(1)),
        ];
        let mut pacer = Pacer::new(&Schedule::Variable(parts), 0, 0, 1);
        assert_eq!(pacer.due(SECOND - 1), 2);
        assert_eq!((pacer.take(SECOND - 1), pacer.take(SECOND - 1)), (0, SECOND / 2));
        assert_eq!((pacer.due(SECOND), pacer.next()), (0, Due::At(2 * SECOND)));
        assert_eq!((pacer.due(2 * SECOND), pacer.next()), (u64::MAX, Due::Now));
        assert_eq!(pacer.due(3 * SECOND), 1);
        assert_eq!(pacer.take(3 * SECOND), 3 * SECOND);
    }

    #[test]
    fn arrears_of_a_part_are_due_before_the_next_one_begins() {
        let parts = vec![(10.0, Duration::from_secs(1)), (1.0, Duration::from_secs(10))];
        let mut pacer = Pacer::new(&Schedule::Variable(parts), 0, 0, 1);
        assert_eq!(pacer.due(5 * SECOND), 10);
        for k in 0..10 {
            assert_eq!(pacer.take(5 * SECOND), k * SECOND / 10);
        }
        assert_eq!(pacer.due(5 * SECOND), 5);
        assert_eq!(pacer.take(5 * SECOND), SECOND);
    }

    #[test]
    fn parts_shorter_than_a_period_publish_no_more_than_their_rate_says() {
        let parts = vec![(0.5, Duration::from_secs(1)), (0.25, Duration::from_secs(1))];
        let mut pacer = Pacer::new(&Schedule::Variable(parts), 0, 0, 1);
        // Two parts together are three quarters of a message.
        let (mut now, mut taken) = (0, Vec::new());
        while now <= 16 * SECOND {
            if pacer.due(now) > 0 {
                taken.push(pacer.take(now));
            }
            now = match pacer.next() {
                Due::At(moment) => moment.max(now + 1),
                other => panic!("{other:?}"),
            };
        }
        let halves: Vec<u64> = taken.iter().map(|at| at * 2 / SECOND).collect();
        assert_eq!(halves, [0, 5, 10, 16, 21, 26, 32]);
    }

    #[test]
    fn no_schedule_is_too_fast_to_be_looked_at() {
        let schedules = [
            Schedule::Interval(Duration::ZERO),
            Schedule::Rate(f64::MAX),
            Schedule::Rate(f64::NAN),
        ];
        for schedule in schedules {
            let mut pacer = Pacer::new(&schedule, 0, 0, 1);
            assert_eq!(pacer.due(999), 1000, "{schedule:?}");
            assert_eq!((pacer.take(999), pacer.take(999)), (0, 1));
        }
    }

    #[test]
    fn phases_hold_for_their_time_in_turn() {
        let phases = Phases::new(vec![(10, Duration::from_secs(2)), (100, Duration::from_secs(1))]);
        let at = |ms| *phases.at(Duration::from_millis(ms)).unwrap();
        assert_eq!(
            [0, 1999, 2000, 2999, 3000, 5500].map(at),
            [10, 10, 100, 100, 10, 100]
        );
        assert_eq!(Phases::<u8>::new(vec![]).at(Duration::ZERO), None);
    }

    /// The moments of producer `index` of `of` up to `until`, in whole numbers: rates and seconds are whole, so a message is due
    /// exactly where a fraction says.
    fn naive(parts: &[(u32, u32)], index: u64, of: u64, until: u64) -> Vec<u64> {
        let (mut moments, mut began) = (Vec::new(), 0);
        for &(rate, seconds) in parts.iter().cycle() {
            let (rate, end) = (u64::from(rate), began + u64::from(seconds) * SECOND);
            moments.extend((0..rate * u64::from(seconds)).map(|k| {
                let exact = u128::from(k * of + index) * u128::from(SECOND) / u128::from(of * rate);
                began + exact as u64
            }));
            if end > until {
                break;
            }
            began = end;
        }
        moments.retain(|at| *at <= until);
        moments
    }

    fn variable(parts: &[(u32, u32)]) -> Schedule {
        let parts = parts
            .iter()
            .map(|(rate, seconds)| (f64::from(*rate), Duration::from_secs(u64::from(*seconds))));
        Schedule::Variable(parts.collect())
    }

    proptest! {
        #[test]
        fn a_variable_rate_does_what_a_list_of_moments_says(
            parts in prop::collection::vec((0u32..40, 1u32..4), 1..5),
            index in 0u64..4,
            steps in prop::collection::vec(1u64..2 * SECOND, 1..20),
        ) {
            let mut pacer = Pacer::new(&variable(&parts), 0, index, 4);
            let until = steps.iter().sum::<u64>();
            let expected = naive(&parts, index, 4, until + 1);
            let (mut now, mut taken) = (0, Vec::new());
            for step in steps {
                now += step;
                while pacer.due(now) > 0 {
                    taken.push(pacer.take(now));
                }
                // Fractions of a nanosecond may be rounded to either side.
                let least = expected.partition_point(|at| at + 1 < now);
                let most = expected.partition_point(|at| *at <= now + 1);
                prop_assert!((least..=most).contains(&taken.len()), "{} at {now}: {least}..={most}", taken.len());
                if let Due::At(next) = pacer.next() {
                    prop_assert!(next > now);
                    prop_assert!(expected.get(taken.len()).is_none_or(|at| next <= at + 1));
                }
            }
            for (moment, exact) in taken.iter().zip(&expected) {
                prop_assert!(moment.abs_diff(*exact) <= 1, "{moment}, not {exact}");
            }
        }

        #[test]
        fn after_days_a_message_is_due_where_a_fraction_says(
            rate in 1u64..1_000_000, seconds in 0u64..10 * 86_400, part in 0u64..1_000_000, index in 0u64..9,
        ) {
            let mut pacer = Pacer::new(&Schedule::Rate(rate as f64), 0, index, 9);
            pacer.taken = seconds * rate + part % rate;
            let moment = pacer.take(u64::MAX);
            let exact = u128::from((seconds * rate + part % rate) * 9 + index) * u128::from(SECOND) / u128::from(9 * rate);
            prop_assert!(u128::from(moment).abs_diff(exact) <= 1, "{moment}, not {exact}");
        }

        #[test]
        fn over_any_time_as_many_are_due_as_the_rate_says(
            rate in 0.1f64..1e6, seconds in 0u64..1_000_000, index in 0u64..50, of in 50u64..100,
        ) {
            let mut pacer = Pacer::new(&Schedule::Rate(rate), 7, index, of);
            let due = pacer.due(7 + seconds * SECOND) as f64;
            prop_assert!((due - rate * seconds as f64).abs() <= 1.0 + rate * seconds as f64 * 1e-12);
        }

        #[test]
        fn nothing_is_due_before_its_moment_and_all_at_it(rate in 0.5f64..1e5, step in 1u64..SECOND) {
            let mut pacer = Pacer::new(&Schedule::Rate(rate), 0, 1, 3);
            let mut now = 0;
            for _ in 0..50 {
                now += step;
                let due = pacer.due(now);
                for _ in 0..due.min(1000) {
                    prop_assert!(pacer.take(now) <= now);
                }
                if due <= 1000 {
                    prop_assert_eq!(pacer.due(now), 0);
                    let Due::At(next) = pacer.next() else { panic!() };
                    prop_assert!(next > now);
                    prop_assert_eq!(pacer.due(next), 1);
                }
            }
        }
    }
}
