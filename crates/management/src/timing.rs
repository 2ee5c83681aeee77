//! The times of the node and of those queues whose messages were timed lately.
//!
//! A slot's times are those of its messages, not of its samples: each sample counts for as many messages as it stands
//! for, and what still waits counts with its age. Else a few quick queues, which have many samples, would hide a slow
//! one, which has few.

use crate::history::Slot;
use crate::times::{FINE, NODE_TIMES, OLDEST, QUEUE_TIMES, Times};
use broker::Broker;
use broker::queues::Queue;
use broker::stats::{Buckets, Weights};
use model::QueueId;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// How many queues have samples at a time, some 25 kB each at most. Of others there is what their histograms say since the start.
const QUEUES: usize = 2_000;
/// What waits for less than this may be done before the slot that comes is over, in microseconds: it is no time yet.
const LATE: u64 = 1_000_000;

/// How many sorts of times queues have.
const SORTS: usize = QUEUE_TIMES.len();

/// What a queue shows of one sort of times.
#[derive(Clone, Debug, Default)]
pub struct TimesSample {
    /// The samples since the start.
    pub times: Buckets,
    /// How many messages came to where the time begins, since the start.
    pub began: u64,
    /// How many came to where it ends.
    pub ended: u64,
    /// How long the oldest message takes by now that has begun and not ended, in microseconds.
    pub oldest: Option<u64>,
}

/// A queue's times.
#[derive(Debug)]
pub struct Timed {
    before: Box<[TimesSample; SORTS]>,
    /// How many messages ended since there was a sample that could stand for them.
    uncounted: [u64; SORTS],
    /// Something waits: it is looked at though the queue may rest.
    waits: bool,
    looked: Slot,
    /// The samples.
    pub times: Times<SORTS>,
}

impl Timed {
    fn after(slot: Slot, before: [TimesSample; SORTS]) -> Self {
        Self {
            before: Box::new(before),
            uncounted: [0; SORTS],
            waits: false,
            looked: slot,
            times: Times::new(slot),
        }
    }

    /// Takes what has come since the last time, and answers with its messages' times.
    fn take(&mut self, slot: Slot, now: [TimesSample; SORTS]) -> [Weights; SORTS] {
        self.looked = slot;
        self.waits = now.iter().any(|seen| seen.oldest.is_some());
        let weights = std::array::from_fn(|at| self.weigh(at, &now[at]));
        *self.before = now;
        self.times.push(slot, &weights);
        weights
    }

    fn weigh(&mut self, sort: usize, now: &TimesSample) -> Weights {
        let (before, uncounted) = (&self.before[sort], &mut self.uncounted[sort]);
        let gained = now.times.since(&before.times);
        let began = now.began.saturating_sub(before.began);
        let ended = now.ended.saturating_sub(before.ended);
        let late = now.oldest.filter(|age| *age >= LATE);
        *uncounted += ended;
        let mut weights = Weights::default();
        if gained.count() > 0 {
            weights = Weights::of(&gained, std::mem::take(uncounted).max(gained.count()));
        } else if let (Some(age), 0) = (late, sort) {
            // Messages leave in the order in which they came: those before the oldest that waits were no quicker.
            weights.add_time(age, std::mem::take(uncounted));
        }
        if let Some(age) = late
            && (sort == 0 || ended == 0)
        {
            weights.add_time(age, began.saturating_sub(ended).max(1));
        }
        weights
    }
}

/// Samples of times.
#[derive(Debug, Default)]
pub struct Timing {
    /// Of queues.
    pub queues: HashMap<QueueId, Timed>,
    /// Of the node.
    pub node: Times<{ NODE_TIMES.len() }>,
    /// What queues gained in this slot, together.
    gained: [Weights; SORTS],
    /// Syncs of the log up to the last slot.
    synced: Buckets,
}

impl Timing {
    /// Samples a queue that was turned. `known`: it was looked at before, so its times of before are not of this slot.
    pub fn queue(&mut self, id: QueueId, queue: &Queue, known: bool, slot: Slot) {
        let seen = seen(queue);
        let timed = queue.latencies().is_some() || seen.iter().any(|it| it.oldest.is_some());
        if timed || self.queues.contains_key(&id) {
            self.take(id, seen, known, slot);
        }
    }

    fn take(&mut self, id: QueueId, seen: [TimesSample; SORTS], known: bool, slot: Slot) {
        let room = self.queues.len() < QUEUES;
        let timed = match self.queues.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) if room => {
                let before = if known { seen.clone() } else { Default::default() };
                place.insert(Timed::after(slot, before))
            }
            Entry::Vacant(_) => return,
        };
        let weights = timed.take(slot, seen);
        self.gained
            .iter_mut()
            .zip(&weights)
            .for_each(|(sum, more)| sum.add(more));
    }

    /// A queue is gone.
    pub fn forget(&mut self, id: QueueId) {
        self.queues.remove(&id);
    }

    /// Ends a slot: queues that were not turned though something waits in them, then the node's own times. Queues that
    /// rest are forgotten.
    pub fn close(&mut self, broker: &Broker, slot: Slot) {
        let waiting = self
            .queues
            .iter()
            .filter(|(_, timed)| timed.waits && timed.looked < slot);
        let waiting: Vec<QueueId> = waiting.map(|(id, _)| *id).collect();
        for id in waiting {
            if let Some(queue) = broker.queues().here(id) {
                self.take(id, seen(&queue), true, slot);
            }
        }
        self.end(broker.work().sync.buckets(), slot);
    }

    fn end(&mut self, synced: Buckets, slot: Slot) {
        let [deliver, ack, confirm] = std::mem::take(&mut self.gained);
        let gained = synced.since(&self.synced);
        let sync = Weights::of(&gained, gained.count());
        self.synced = synced;
        self.node.push(slot, &[deliver, ack, confirm, sync]);
        // Those that rest are in the way of others only if there is no more room.
        let kept = if self.queues.len() < QUEUES { OLDEST } else { FINE };
        self.queues.retain(|_, timed| {
            timed.times.age(slot);
            timed.times.changed() + kept > slot
        });
    }
}

/// What a queue shows of its times, in the order of [`QUEUE_TIMES`]. Where nobody consumes nothing is late: that has a
/// name of its own.
fn seen(queue: &Queue) -> [TimesSample; SORTS] {
    let times = queue
        .latencies()
        .map(|found| [&found.deliver, &found.ack, &found.confirm]);
    let [deliver, ack, confirm] = times.map(|all| all.map(|it| it.buckets())).unwrap_or_default();
    let (status, counts, pending) = (queue.status(), queue.counts(), queue.pending());
    let settled_later = counts.deliver.get() + counts.get.get();
    let handed = settled_later + counts.deliver_no_ack.get() + counts.get_no_ack.get();
    let age = (status.oldest_ms > 0).then(|| queue.age_ms(status.oldest_ms) * 1_000);
    let awaited = status.ready > 0 && status.consumers > 0;
    [
        TimesSample {
            times: deliver,
            began: counts.publish.get(),
            ended: handed.saturating_sub(counts.redeliver.get()),
            oldest: age.max(pending.deliver).filter(|_| awaited),
        },
        TimesSample {
            times: ack,
            began: settled_later,
            ended: counts.ack.get(),
            oldest: pending.ack.filter(|_| status.unacked > 0),
        },
        TimesSample {
            times: confirm,
            began: counts.publish.get(),
            ended: counts.publish.get(),
            oldest: None,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker::stats::Histogram;

    fn p99(times: &Times<{ NODE_TIMES.len() }>, slot: Slot) -> Option<f32> {
        times.latest(0, slot).map(|(_, sample)| sample[2])
    }

    /// A queue to which messages come and leave, and what it shows.
    #[derive(Default)]
    struct World {
        samples: Histogram,
        seen: TimesSample,
    }

    impl World {
        fn shows(&self) -> [TimesSample; SORTS] {
            let deliver = TimesSample {
                times: self.samples.buckets(),
                ..self.seen.clone()
            };
            [deliver, TimesSample::default(), TimesSample::default()]
        }
    }

    #[test]
    fn a_late_queue_with_an_eighth_of_all_deliveries_shows_in_the_nodes_percentiles() {
        let mut timing = Timing::default();
        let mut worlds: Vec<World> = (0..8).map(|_| World::default()).collect();
        for slot in 1..=3 {
            for (at, world) in worlds.iter_mut().enumerate() {
                world.seen.began += 5_000;
                world.seen.ended += 5_000;
                // The quick ones have many samples; the late one has none: the message that it follows is not there yet.
                match at {
                    0 => world.seen.oldest = Some(134_000_000),
                    _ => (0..300).for_each(|_| world.samples.record(50)),
                }
                timing.take(QueueId(at as u64), world.shows(), false, slot);
            }
            timing.end(Buckets::default(), slot);
            assert!(p99(&timing.node, slot).unwrap() >= 134_000.0, "{slot}");
            let (_, sample) = timing.node.latest(0, slot).unwrap();
            assert!(sample[0] < 0.1, "half of all are quick: {sample:?}");
        }
        // And so it is when there are a few samples of it, at last.
        for (at, world) in worlds.iter_mut().enumerate() {
            world.seen.ended += 5_000;
            world.samples.record(if at == 0 { 134_000_000 } else { 50 });
            world.seen.oldest = None;
            timing.take(QueueId(at as u64), world.shows(), false, 4);
        }
        timing.end(Buckets::default(), 4);
        assert!(p99(&timing.node, 4).unwrap() >= 134_000.0);
    }

    #[test]
    fn a_queue_whose_consumers_stand_still_gets_later_and_later() {
        let mut timing = Timing::default();
        let mut world = World::default();
        for slot in 1..=3 {
            world.seen.oldest = Some(slot * 5_000_000);
            timing.take(QueueId(1), world.shows(), false, slot);
            timing.end(Buckets::default(), slot);
            let shown = p99(&timing.node, slot).unwrap();
            assert!(shown >= slot as f32 * 5_000.0, "{shown}");
        }
        world.seen.oldest = None;
        timing.take(QueueId(1), world.shows(), false, 4);
        timing.end(Buckets::default(), 4);
        assert_eq!(p99(&timing.node, 4), None);
    }

    #[test]
    fn messages_without_a_sample_are_counted_with_the_next_one() {
        let mut timing = Timing::default();
        let (mut rare, mut other) = (World::default(), World::default());
        for slot in 1..=10 {
            rare.seen.ended += 100;
            other.seen.ended += 100;
            other.samples.record(50);
            if slot == 10 {
                rare.samples.record(900_000);
            }
            timing.take(QueueId(1), rare.shows(), false, slot);
            timing.take(QueueId(2), other.shows(), false, slot);
            timing.end(Buckets::default(), slot);
        }
        let (_, sample) = timing.node.latest(0, 10).unwrap();
        assert!(sample[0] >= 900.0, "1,000 of 1,100 messages: {sample:?}");
    }
}
