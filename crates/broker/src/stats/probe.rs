//! How long messages of a queue take, by sample: a few messages at a time are followed.
//!
//! Two are followed from their publish to the acknowledgement, and two more from a delivery on: where messages wait
//! long, those that were followed from their publish come to few acknowledgements. What is delivered late is measured
//! at its delivery, by the time that its block came; so a long queue has as many samples as a short one.
//!
//! Under the queue's lock, so there is one writer. Most turns cost a branch.

use super::{Count, Histogram};
use model::{Ranges, Seq};
use std::sync::{Arc, OnceLock};

/// One in so many publishing turns begins a sample, and one in so many deliveries.
const ONE_IN: u64 = 16;

/// What was on its way for so long, in milliseconds, is late: it is measured to a millisecond, at its delivery.
const LATE_MS: u64 = 1_000;

/// How long a message may stay unacknowledged while others are to be followed, in microseconds; then that is taken for its time.
const TIMEOUT: u64 = 60_000_000;

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

/// How long the messages take by now that are followed, in microseconds: the one of each sort that is the oldest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Since its publish.
    pub deliver: Option<u64>,
    /// Since its delivery.
    pub ack: Option<u64>,
}

/// A message that is followed.
#[derive(Debug, Default)]
struct Followed {
    /// `NOBODY`, `TO_DELIVER` or `TO_ACK`.
    stage: Count,
    seq: Count,
    /// When the stage began, in microseconds.
    since: Count,
}

/// The messages that are followed.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// Publishing turns.
    turns: Count,
    /// Deliveries.
    deliveries: Count,
    /// How many messages are followed. All that most turns look at.
    busy: Count,
    /// From their publish.
    published: [Followed; 2],
    /// From their delivery.
    delivered: [Followed; 2],
    /// Messages cannot be followed from their publish: all are measured at their delivery.
    sorted: Count,
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

    /// Messages are published whose numbers are not known yet.
    pub(crate) fn published_sorted(&self) {
        self.sorted.set(1);
    }

    #[cold]
    fn begin(&self, seq: Seq, now: u64) -> (Arc<Latencies>, u64) {
        self.follow(&self.published, TO_DELIVER, seq, now);
        (self.init().clone(), now)
    }

    fn init(&self) -> &Arc<Latencies> {
        self.latencies.get_or_init(Arc::default)
    }

    /// Follows one more message, if there is a place for it.
    fn follow(&self, places: &[Followed], stage: u64, seq: Seq, now: u64) {
        let free = places.iter().find(|it| it.stage.get() == NOBODY);
        let Some(place) = free.or_else(|| self.give_up_one(places, now)) else {
            return;
        };
        if place.stage.get() == NOBODY {
            self.busy.add(1);
        }
        place.stage.set(stage);
        place.seq.set(seq);
        place.since.set(now);
    }

    /// A place of a message that stays unacknowledged for very long: it took as long as it was followed, or longer.
    fn give_up_one<'a>(&self, places: &'a [Followed], now: u64) -> Option<&'a Followed> {
        let overdue =
            |it: &&Followed| it.stage.get() == TO_ACK && now.saturating_sub(it.since.get()) > TIMEOUT;
        let place = places.iter().find(overdue)?;
        self.init().ack.record(now.saturating_sub(place.since.get()));
        Some(place)
    }

    fn all(&self) -> impl Iterator<Item = &Followed> {
        self.published.iter().chain(&self.delivered)
    }

    fn release(&self, place: &Followed) {
        place.stage.set(NOBODY);
        self.busy.set(self.busy.get().saturating_sub(1));
    }

    /// These messages go to a client. True if they are to be measured now, with [`Probe::handed`].
    #[inline]
    pub(crate) fn delivered(&self, seqs: &Ranges, no_ack: bool, now: impl FnOnce() -> u64) -> bool {
        if self.busy.get() > 0 {
            self.look_for_delivered(seqs, no_ack, now);
        }
        let deliveries = self.deliveries.get();
        self.deliveries.set(deliveries.wrapping_add(1));
        deliveries.is_multiple_of(ONE_IN)
    }

    fn look_for_delivered(&self, seqs: &Ranges, no_ack: bool, now: impl FnOnce() -> u64) {
        let mut now = Some(now);
        let mut known = 0;
        for place in &self.published {
            if place.stage.get() != TO_DELIVER || !seqs.contains(place.seq.get()) {
                continue;
            }
            known = now.take().map_or(known, |now| now());
            self.init()
                .deliver
                .record(known.saturating_sub(place.since.get()));
            match no_ack {
                true => self.release(place),
                false => {
                    place.stage.set(TO_ACK);
                    place.since.set(known);
                }
            }
        }
    }

    /// A message goes to a client for the first time, `age_ms` after it came. `seq` is to be followed to its
    /// acknowledgement, if it will have one.
    #[cold]
    pub(crate) fn handed(&self, seq: Option<Seq>, age_ms: u64, now: u64) {
        if age_ms >= LATE_MS || self.sorted.get() > 0 {
            self.init().deliver.record(age_ms.max(1) * 1_000);
        }
        if let Some(seq) = seq {
            self.follow(&self.delivered, TO_ACK, seq, now);
        }
    }

    /// These messages are acknowledged.
    #[inline]
    pub(crate) fn acked(&self, seqs: &Ranges, now: impl FnOnce() -> u64) {
        if self.busy.get() > 0 {
            self.look_for_acked(seqs, now);
        }
    }

    fn look_for_acked(&self, seqs: &Ranges, now: impl FnOnce() -> u64) {
        let mut now = Some(now);
        let mut known = 0;
        for place in self.all() {
            if place.stage.get() == TO_ACK && seqs.contains(place.seq.get()) {
                known = now.take().map_or(known, |now| now());
                self.init().ack.record(known.saturating_sub(place.since.get()));
                self.release(place);
            }
        }
    }

    /// After a turn: what is followed may be gone some other way.
    #[inline]
    pub(crate) fn look(&self, ready: u64, unacked: u64) {
        if self.busy.get() > 0 && (ready == 0 || unacked == 0) {
            self.look_for_lost(ready, unacked);
        }
    }

    fn look_for_lost(&self, ready: u64, unacked: u64) {
        for place in self.all() {
            let lost = match place.stage.get() {
                TO_DELIVER => ready == 0,
                TO_ACK => unacked == 0,
                _ => false,
            };
            if lost {
                self.release(place);
            }
        }
    }

    /// How long those take by now that are followed. Anybody may ask; a message may be counted for a sort that it has just left.
    pub(crate) fn pending(&self, now: u64) -> Pending {
        let oldest = |stage| {
            let those = self.all().filter(|it| it.stage.get() == stage);
            those.map(|it| now.saturating_sub(it.since.get())).max()
        };
        Pending {
            deliver: oldest(TO_DELIVER),
            ack: oldest(TO_ACK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_followed_and_forgotten_when_it_cannot_come_back() {
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
        assert_eq!(probe.pending(9_000), Pending::default());
    }

    #[test]
    fn a_message_that_nobody_acknowledges_does_not_end_the_sampling() {
        let probe = Probe::default();
        let publish = |seq, now| (0..ONE_IN).for_each(|_| drop(probe.published(seq, || now)));
        publish(1, 0);
        probe.delivered(&Ranges::one(1), false, || 10);
        for seq in 2..50 {
            publish(seq, seq * 100);
            probe.delivered(&Ranges::one(seq), false, || seq * 100 + 10);
            probe.acked(&Ranges::one(seq), || seq * 100 + 30);
        }
        let found = probe.latencies().unwrap();
        assert_eq!(found.ack.count(), 48);
        assert_eq!(probe.pending(5_000_010).ack, Some(5_000_000));
        // Nor do as many as there are places, for ever.
        publish(60, 6_000);
        probe.delivered(&Ranges::one(60), false, || 6_010);
        publish(70, TIMEOUT + 7_000);
        assert_eq!(found.ack.count(), 49);
        assert!(found.ack.buckets().quantile_s(1.0).unwrap() >= 60.0);
    }

    #[test]
    fn what_is_late_is_measured_at_its_delivery() {
        let probe = Probe::default();
        assert!(probe.published(1, || 0).is_some());
        let mut asked = 0;
        for at in 0..160 {
            let seqs = Ranges::one(1 + at);
            if probe.delivered(&seqs, false, || 134_000_000) {
                asked += 1;
                probe.handed(Some(1 + at), 134_000, 134_000_000);
            }
        }
        let found = probe.latencies().unwrap();
        assert_eq!((asked, found.deliver.count()), (10, 11));
        assert!(found.deliver.buckets().quantile_s(0.5).unwrap() >= 134.0);
        probe.acked(&Ranges::span(1, 160), || 134_000_500);
        assert_eq!(found.ack.count(), 3);
        // What is quick is not: its publish says more exactly when it came.
        probe.handed(None, 3, 0);
        assert_eq!(found.deliver.count(), 11);
        probe.published_sorted();
        probe.handed(None, 3, 0);
        assert_eq!(found.deliver.count(), 12);
    }
}
