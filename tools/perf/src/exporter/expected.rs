//! How many messages a second a run should publish and consume, as far as its command line says so.

use crate::plan::{Plan, Schedule};
use std::time::Duration;

/// What the gauges `expected_published` and `expected_consumed` show.
#[derive(Debug, Clone)]
pub struct Expected {
    producers: f64,
    schedule: Schedule,
    consumed: Option<f64>,
}

impl Expected {
    pub fn of(plan: &Plan) -> Self {
        let consuming = &plan.consuming;
        let consumers = (consuming.consumers * consuming.channels) as f64;
        Self {
            producers: (plan.producing.producers * plan.producing.channels) as f64,
            schedule: plan.producing.schedule.clone(),
            consumed: consuming
                .rate
                .filter(|rate| *rate > 0.0)
                .map(|rate| rate * consumers),
        }
    }

    /// Messages a second at this moment; `None` if nothing limits producers, not a number while nothing does.
    pub fn published(&self, elapsed: Duration) -> Option<f64> {
        let each = match &self.schedule {
            Schedule::Unlimited => return None,
            Schedule::Rate(rate) => *rate,
            Schedule::Interval(interval) => 1.0 / interval.as_secs_f64(),
            Schedule::Variable(rates) => current(rates, elapsed),
        };
        Some(if each < 0.0 {
            f64::NAN
        } else {
            each * self.producers
        })
    }

    /// Messages a second; `None` if nothing limits consumers.
    pub fn consumed(&self) -> Option<f64> {
        self.consumed
    }
}

/// The rate that holds: each for its time, for ever in turn.
fn current(rates: &[(f64, Duration)], elapsed: Duration) -> f64 {
    let round: u128 = rates.iter().map(|(_, holds)| holds.as_nanos()).sum();
    let mut at = elapsed.as_nanos().checked_rem(round).unwrap_or(0);
    for (rate, holds) in rates {
        match at.checked_sub(holds.as_nanos()) {
            Some(rest) => at = rest,
            None => return *rate,
        }
    }
    rates.first().map_or(f64::NAN, |(rate, _)| *rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn expected(schedule: Schedule) -> Expected {
        Expected {
            producers: 4.0,
            schedule,
            consumed: None,
        }
    }

    #[test]
    fn every_producer_is_expected_to_keep_its_rate() {
        assert_eq!(expected(Schedule::Unlimited).published(SECOND), None);
        assert_eq!(expected(Schedule::Rate(2.5)).published(SECOND), Some(10.0));
        assert_eq!(
            expected(Schedule::Interval(2 * SECOND)).published(SECOND),
            Some(2.0)
        );
    }

    #[test]
    fn a_rate_that_varies_is_expected_while_it_holds() {
        let expected = expected(Schedule::Variable(vec![
            (10.0, 5 * SECOND),
            (-1.0, SECOND),
            (20.0, 4 * SECOND),
        ]));
        let at = |seconds| expected.published(seconds * SECOND).unwrap();
        assert_eq!(
            (at(0), at(4), at(6), at(9), at(10), at(26)),
            (40.0, 40.0, 80.0, 80.0, 40.0, 80.0)
        );
        assert!(at(5).is_nan() && at(25).is_nan());
    }

    #[test]
    fn rates_that_hold_for_no_time_end_nothing() {
        assert_eq!(current(&[(3.0, Duration::ZERO)], SECOND), 3.0);
        assert!(current(&[], SECOND).is_nan());
    }
}
