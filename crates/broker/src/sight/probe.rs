//! How long messages of a queue take, by sample: one message at a time is followed from the publish to the acknowledgement.
//!
//! Under the queue's lock, so there is one writer. Most turns cost a branch.

use super::{Count, Histogram};
use model::{Ranges, Seq};
use std::sync::{Arc, OnceLock};

/// One in so many publishing turns begins a sample.
const ONE_IN: u64 = 16;

/// How long messages of a queue take.
#[derive(Debug, Default)]
pub struct Latencies {
    /// From the publish to the first delivery.
    pub deliver: Histogram,
    /// From the delivery to the acknowledgement.
    pub ack: Histogram,
    /// From the publish to the confirm.
    pub confirm: Histogram,
}

/// The message that is followed.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// Publishing turns.
    turns: Count,
    /// `NOBODY`, `TO_DELIVER` or `TO_ACK`.
    stage: Count,
    seq: Count,
    /// When the stage began, in microseconds.
    since: Count,
    latencies: OnceLock<Arc<Latencies>>,
}

const NOBODY: u64 = 0;
const TO_DELIVER: u64 = 1;
const TO_ACK: u64 = 2;

impl Probe {
    /// What was found, if anything was sampled.
    pub(crate) fn latencies(&self) -> Option<&Arc<Latencies>> {
        self.latencies.get()
    }

    /// Messages from `seq` on are published. Some: sample the confirm too.
    #[inline]
    pub(crate) fn published(&self, seq: Seq, now: impl FnOnce() -> u64) -> Option<(Arc<Latencies>, u64)> {
        let turns = self.turns.get();
        self.turns.set(turns.wrapping_add(1));
        if !turns.is_multiple_of(ONE_IN) {
            return None;
        }
        Some(self.begin(seq, now()))
    }

    #[cold]
    fn begin(&self, seq: Seq, now: u64) -> (Arc<Latencies>, u64) {
        if self.stage.get() == NOBODY {
            self.stage.set(TO_DELIVER);
            self.seq.set(seq);
            self.since.set(now);
        }
        (self.latencies.get_or_init(Arc::default).clone(), now)
    }

    /// These messages go to a client.
    #[inline]
    pub(crate) fn delivered(&self, seqs: &Ranges, no_ack: bool, now: impl FnOnce() -> u64) {
        if self.stage.get() == TO_DELIVER && seqs.contains(self.seq.get()) {
            let now = now();
            if let Some(latencies) = self.latencies.get() {
                latencies.deliver.record(now.saturating_sub(self.since.get()));
            }
            self.stage.set(if no_ack { NOBODY } else { TO_ACK });
            self.since.set(now);
        }
    }

    /// These messages are acknowledged.
    #[inline]
    pub(crate) fn acked(&self, seqs: &Ranges, now: impl FnOnce() -> u64) {
        if self.stage.get() == TO_ACK && seqs.contains(self.seq.get()) {
            if let Some(latencies) = self.latencies.get() {
                latencies.ack.record(now().saturating_sub(self.since.get()));
            }
            self.stage.set(NOBODY);
        }
    }

    /// After a turn: what is followed may be gone some other way.
    #[inline]
    pub(crate) fn look(&self, ready: u64, unacked: u64) {
        let lost = match self.stage.get() {
            TO_DELIVER => ready == 0,
            TO_ACK => unacked == 0,
            _ => false,
        };
        if lost {
            self.stage.set(NOBODY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_is_followed_at_a_time_and_forgotten_when_it_cannot_come_back() {
        let probe = Probe::default();
        assert!(probe.published(7, || 100).is_some());
        assert!(probe.published(8, || 110).is_none());
        probe.delivered(&Ranges::one(6), false, || 120);
        probe.delivered(&Ranges::span(5, 9), false, || 150);
        probe.acked(&Ranges::one(7), || 1_150);
        let found = probe.latencies().unwrap();
        assert_eq!((found.deliver.count(), found.deliver.sum_s()), (1, 50e-6));
        assert_eq!((found.ack.count(), found.ack.sum_s()), (1, 0.001));
        (0..14).for_each(|_| assert!(probe.published(9, || 0).is_none()));
        assert!(probe.published(20, || 2_000).is_some());
        probe.look(0, 0);
        probe.delivered(&Ranges::one(20), false, || 3_000);
        assert_eq!(found.deliver.count(), 1);
    }
}
