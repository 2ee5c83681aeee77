//! How deep the queues are: what the broker said, and what was counted since.

use super::script::Depth;
use std::time::{Duration, Instant};

/// The broker is asked this often.
const EVERY: Duration = Duration::from_secs(1);
/// It is asked at most this often when the counters say that a phase may be over.
const EAGER: Duration = Duration::from_millis(20);

/// The depth during one phase.
pub struct Gauge {
    started: Instant,
    wanted: Option<Depth>,
    pub start: u64,
    asked: Instant,
    depth: u64,
    /// Messages published and consumed when it was asked.
    totals: (u64, u64),
    /// What the broker said, with the time since the phase began.
    pub readings: Vec<(Duration, u64)>,
}

impl Gauge {
    /// `wanted`: when the phase is over; `start`: the depth now.
    pub fn new(now: Instant, wanted: Option<Depth>, start: u64) -> Self {
        let readings = vec![(Duration::ZERO, start)];
        Self {
            started: now,
            wanted,
            start,
            asked: now,
            depth: start,
            totals: (0, 0),
            readings,
        }
    }

    /// What the depth should be by now.
    pub fn estimate(&self, (published, consumed): (u64, u64)) -> u64 {
        let came = published.saturating_sub(self.totals.0);
        let went = consumed.saturating_sub(self.totals.1);
        self.depth.saturating_add(came).saturating_sub(went)
    }

    /// Whether the broker is to be asked now.
    pub fn asks(&self, now: Instant, totals: (u64, u64)) -> bool {
        let since = now.saturating_duration_since(self.asked);
        let near = self
            .wanted
            .is_some_and(|wanted| wanted.is_met(self.estimate(totals)));
        since >= EVERY || (near && since >= EAGER)
    }

    /// The broker said this; true if the phase is over by it.
    pub fn answered(&mut self, now: Instant, totals: (u64, u64), depth: u64) -> bool {
        (self.asked, self.totals, self.depth) = (now, totals, depth);
        self.readings
            .push((now.saturating_duration_since(self.started), depth));
        self.wanted.is_some_and(|wanted| wanted.is_met(depth))
    }

    /// The broker did not answer; it is asked again after a while.
    pub fn unanswered(&mut self, now: Instant) {
        self.asked = now;
    }

    /// What the broker said last.
    pub fn depth(&self) -> u64 {
        self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn the_broker_is_asked_once_a_second_and_when_the_counters_say_it_is_time() {
        let start = Instant::now();
        let gauge = Gauge::new(start, Some(Depth::AtMost(10)), 1_000);
        assert!(!gauge.asks(after(start, 999), (0, 500)));
        assert!(gauge.asks(after(start, 1_000), (0, 500)));
        assert!(gauge.asks(after(start, 20), (0, 990)));
        assert!(
            !gauge.asks(after(start, 19), (0, 990)),
            "not more often than that"
        );
    }

    #[test]
    fn counts_go_on_from_what_the_broker_said() {
        let start = Instant::now();
        let mut gauge = Gauge::new(start, Some(Depth::AtLeast(100)), 0);
        assert_eq!(gauge.estimate((120, 0)), 120);
        // Messages that the queue dropped at its head make the counters wrong.
        assert!(!gauge.answered(after(start, 100), (120, 0), 90));
        assert_eq!(gauge.estimate((125, 0)), 95);
        assert!(gauge.answered(after(start, 200), (130, 0), 100));
        assert_eq!(gauge.readings.len(), 3);
        assert_eq!(gauge.estimate((130, 500)), 0);
    }
}
