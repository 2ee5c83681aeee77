//! The times of the node and of those queues whose messages were timed lately.

use crate::history::Slot;
use crate::times::{NODE_TIMES, QUEUE_TIMES, Times};
use broker::Broker;
use broker::queues::Queue;
use broker::sight::Buckets;
use model::QueueId;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// How long samples are kept, in slots: ten minutes.
const KEPT: u64 = 120;
/// How many queues have samples at a time, some 7 kB each at most. Of others there is what their histograms say since the start.
const QUEUES: usize = 2_000;

/// Samples of times.
#[derive(Debug)]
pub struct Timing {
    /// Of queues.
    pub queues: HashMap<QueueId, Times<{ QUEUE_TIMES.len() }>>,
    /// Of the node.
    pub node: Times<{ NODE_TIMES.len() }>,
    /// What queues gained in this slot, together.
    gained: [Buckets; QUEUE_TIMES.len()],
    /// The same since the start.
    sum: [Buckets; QUEUE_TIMES.len()],
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            node: Times::after(0, Default::default()),
            gained: Default::default(),
            sum: Default::default(),
        }
    }
}

impl Timing {
    /// Samples a queue that was turned. `known`: it was looked at before, so its times of before are not of this slot.
    pub fn queue(&mut self, id: QueueId, queue: &Queue, known: bool, slot: Slot) {
        let Some(latencies) = queue.latencies() else {
            return;
        };
        let room = self.queues.len() < QUEUES;
        let now = [&latencies.deliver, &latencies.ack, &latencies.confirm].map(|times| times.buckets());
        let times = match self.queues.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) if room => {
                let before = if known { now.clone() } else { Default::default() };
                place.insert(Times::after(slot, before))
            }
            Entry::Vacant(_) => return,
        };
        let gained = times.take(slot, now, KEPT);
        self.gained
            .iter_mut()
            .zip(&gained)
            .for_each(|(sum, more)| sum.add(more));
    }

    /// A queue is gone.
    pub fn forget(&mut self, id: QueueId) {
        self.queues.remove(&id);
    }

    /// Ends a slot: the node's own times, and queues that rest are forgotten.
    pub fn close(&mut self, broker: &Broker, slot: Slot) {
        self.sum
            .iter_mut()
            .zip(&self.gained)
            .for_each(|(sum, more)| sum.add(more));
        self.gained = Default::default();
        let [deliver, ack, confirm] = self.sum.clone();
        let sync = broker.work().sync.buckets();
        self.node.take(slot, [deliver, ack, confirm, sync], KEPT);
        let oldest = slot.saturating_sub(KEPT);
        self.queues.retain(|_, times| times.changed() > oldest);
    }
}
