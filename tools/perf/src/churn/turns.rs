//! When the next turn is due, and how many are left. Reads no clock: moments come in.

use crate::failure::Failure;
use crate::pace::Pacer;
use crate::plan::Schedule;
use std::sync::{Mutex, PoisonError};

/// How late the system wakes a thread that slept until a turn was due. This much isn't the broker's, so it does not count.
pub const TIMER_NS: u64 = 200_000;

/// The turns of a run, taken by all workers. A worker takes a turn when it is free and waits until it is due, so a turn is
/// late only if all workers are busy, as in a pool of channels.
pub struct Turns {
    end: Option<u64>,
    rest: Mutex<Rest>,
}

struct Rest {
    pacer: Pacer,
    left: Option<u64>,
}

impl Turns {
    /// `rate` in turns a second, `None`: as soon as somebody is free. Moments are nanoseconds.
    pub fn new(rate: Option<f64>, start: u64, end: Option<u64>, count: Option<u64>) -> Self {
        let schedule = rate.map_or(Schedule::Unlimited, Schedule::Rate);
        let pacer = Pacer::new(&schedule, start, 0, 1);
        Self {
            end,
            rest: Mutex::new(Rest { pacer, left: count }),
        }
    }

    /// Whether there is none any more.
    pub fn is_over(&self, now: u64) -> bool {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.left == Some(0) || self.end.is_some_and(|end| now >= end)
    }

    /// Takes the next turn and says when it is due; `None`: there is none any more.
    pub fn next(&self, now: u64) -> Option<u64> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if rest.left == Some(0) || self.end.is_some_and(|end| now >= end) {
            return None;
        }
        let due = rest.pacer.take(now);
        if self.end.is_some_and(|end| due >= end) {
            rest.left = Some(0);
            return None;
        }
        rest.left = rest.left.map(|left| left - 1);
        Some(due)
    }
}

/// From when a turn's first operation counts: the worker was free at `free`, the turn due at `due`, and the worker awake at
/// `woke`. `prepared`: it needed something that was ready only at `free`, so it was not due before.
pub fn begin(due: u64, free: u64, woke: u64, prepared: bool) -> u64 {
    if due > free {
        woke.clamp(due, due.saturating_add(TIMER_NS))
    } else if prepared {
        free
    } else {
        due
    }
}

/// What a run is told when no worker is left.
pub fn all_gave_up(first: &str) -> Failure {
    Failure::Lost(format!(
        "every connection failed again and again; the first time: {first}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Workers on a simulated clock: each turn takes `service` of its number; returns the latencies in milliseconds.
    fn simulate(rate: Option<f64>, workers: usize, end: u64, service: impl Fn(usize) -> u64) -> Vec<u64> {
        let turns = Turns::new(rate, 0, Some(end), None);
        let mut free = vec![0u64; workers];
        let mut latencies = Vec::new();
        loop {
            let (worker, &now) = free.iter().enumerate().min_by_key(|(_, at)| **at).unwrap();
            let Some(due) = turns.next(now) else { break };
            let from = begin(due, now, due, false);
            let done = due.max(now) + service(latencies.len());
            latencies.push((done - from) / MS);
            free[worker] = done;
        }
        latencies
    }

    #[test]
    fn a_rate_is_held_by_any_number_of_workers() {
        for workers in [1, 3, 256] {
            let latencies = simulate(Some(1_000.0), workers, 1_000 * MS, |_| MS / 2);
            assert!(
                (999..=1_001).contains(&latencies.len()),
                "{workers}: {}",
                latencies.len()
            );
            assert!(latencies.iter().all(|&ms| ms == 0));
        }
    }

    #[test]
    fn turns_that_were_due_while_the_broker_stood_still_count_their_waiting() {
        // One worker, 100 a second, and the eleventh turn takes half a second.
        let latencies = simulate(
            Some(100.0),
            1,
            1_000 * MS,
            |turn| if turn == 10 { 500 * MS } else { MS },
        );
        let late = latencies.iter().filter(|&&ms| ms >= 100).count();
        assert!(late > 40, "{late} of {}", latencies.len());
        assert_eq!(*latencies.iter().max().unwrap(), 500);
        assert!(
            (99..=101).contains(&latencies.len()),
            "arrears are made up for: {}",
            latencies.len()
        );
    }

    #[test]
    fn a_stall_of_one_worker_does_not_delay_the_others() {
        let latencies = simulate(
            Some(100.0),
            2,
            1_000 * MS,
            |turn| if turn == 10 { 500 * MS } else { MS },
        );
        assert_eq!(latencies.iter().filter(|&&ms| ms >= 100).count(), 1);
    }

    #[test]
    fn without_a_rate_each_worker_goes_on_as_soon_as_it_is_answered() {
        let latencies = simulate(None, 4, 100 * MS, |_| 10 * MS);
        assert_eq!(latencies.len(), 40);
        assert!(latencies.iter().all(|&ms| ms == 10));
    }

    #[test]
    fn the_count_is_exact_over_all_workers() {
        let turns = Turns::new(Some(10.0), 0, None, Some(3));
        let taken: Vec<_> = std::iter::from_fn(|| turns.next(0)).collect();
        assert_eq!(taken.len(), 3);
        assert_eq!(turns.next(u64::MAX), None);
        assert!(turns.is_over(0));
    }

    #[test]
    fn the_timers_lateness_does_not_count_and_any_more_does() {
        assert_eq!(begin(1_000, 0, 51_000, false), 51_000);
        assert_eq!(begin(1_000, 0, 1_000 + 5 * TIMER_NS, false), 1_000 + TIMER_NS);
        assert_eq!(begin(1_000, 2_000, 2_000, false), 1_000);
        assert_eq!(begin(1_000, 2_000, 2_000, true), 2_000);
    }
}
