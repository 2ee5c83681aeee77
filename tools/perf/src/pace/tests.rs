//! Schedules on a clock that the tests move; `tests/stories` has more of them, for readers.

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
