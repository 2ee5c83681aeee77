//! The samples of all objects, and what is taken of each.

use crate::history::{History, OLDEST, Slot};
use crate::timing::Timing;
use broker::Broker;
use broker::Turned;
use broker::stats::{Channel, Connection, ExchangeCounts, KINDS, LossCounts};
use model::QueueId;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How long all samples of one object are kept, in slots: ten minutes. Older ones are thinned out.
const KEPT: u64 = 120;
/// How long those of the whole node are kept: a day.
const NODE_KEPT: u64 = 17_280;
/// How many samples all objects may have together (some hundred bytes each); beyond it each keeps ten minutes, then two.
const SAMPLES: usize = 400_000;

/// What a queue's samples are, by place: ready, unacknowledged, then the counts in their order.
pub const QUEUE_COUNTS: usize = 2;
/// What a virtual host's samples are: ready, unacknowledged, the counts in their order, then bytes received and sent.
pub const VHOST_BYTES: usize = 2 + KINDS;
/// And the node's: the same, then what comes and goes, then what the node uses.
pub const NODE_CHURN: usize = VHOST_BYTES + 2;
/// What the node uses begins here.
const NODE_USES: usize = NODE_CHURN + 7;
const NODE_NUMBERS: usize = NODE_USES + 5;

/// A channel: its connection and when on it it was opened.
pub type ChannelKey = (u64, usize);

/// The samples of all objects.
#[derive(Debug, Default)]
pub struct Samples {
    /// The slot that was sampled last.
    pub now: Slot,
    /// Of those queues that changed in the last day.
    pub queues: HashMap<QueueId, History>,
    /// What they lost, of those that lost something then.
    pub losses: HashMap<QueueId, History>,
    /// What all queues lost.
    pub node_losses: Option<History>,
    /// Of those exchanges that were published to in the last day.
    pub exchanges: HashMap<(Arc<str>, Box<str>), History>,
    /// Of connections, by id.
    pub connections: HashMap<u64, History>,
    /// Of channels.
    pub channels: HashMap<ChannelKey, History>,
    /// Of virtual hosts.
    pub vhosts: HashMap<Arc<str>, History>,
    /// Of the node.
    pub node: Option<History>,
    /// How long messages took.
    pub times: Timing,
    /// What queues that are not empty hold: ready and unacknowledged.
    depths: HashMap<QueueId, (Arc<str>, [u64; 2])>,
    /// The same by virtual host.
    sums: HashMap<Arc<str>, [u64; 2]>,
    /// Exchanges that were seen before.
    known_exchanges: HashSet<(Arc<str>, Box<str>)>,
    /// Queues that were seen to have lost something.
    known_losses: HashSet<QueueId>,
    held: usize,
}

/// A channel's name here: its counts stand at the same place in memory as long as it lives.
pub fn channel_key(connection: &Connection, channel: &Arc<Channel>) -> ChannelKey {
    (connection.id, Arc::as_ptr(channel) as usize)
}

impl Samples {
    /// How much memory samples take, in bytes, without what finds them.
    pub fn bytes(&self) -> u64 {
        let numbers = |history: &History| history.bytes();
        let all = self.queues.values().chain(self.exchanges.values());
        let all = all.chain(self.connections.values()).chain(self.channels.values());
        let all = all.chain(self.vhosts.values()).chain(&self.node);
        let all = all.chain(self.losses.values()).chain(&self.node_losses);
        all.map(numbers).sum()
    }

    /// Samples all that changed since the last time.
    pub fn take(&mut self, broker: &Broker, slot: Slot) {
        self.now = slot;
        self.sample_queues(broker.turned_queues());
        self.sample_exchanges(broker);
        self.sample_connections(&broker.stats().connections());
        self.sample_totals(broker);
        self.times.close(broker, slot);
        self.forget();
    }

    fn sample_queues(&mut self, turned: Vec<Turned>) {
        for Turned { id, queue, known } in turned {
            let Some(queue) = queue else {
                self.queues.remove(&id);
                self.losses.remove(&id);
                self.known_losses.remove(&id);
                self.set_depth(id, None);
                self.times.forget(id);
                continue;
            };
            let status = queue.status();
            let depth = [status.ready, status.unacked];
            self.set_depth(id, Some((&queue.vhost, depth)));
            let mut row = [0; 10];
            row[..2].copy_from_slice(&depth);
            row[QUEUE_COUNTS..].copy_from_slice(&queue.counts().numbers());
            self.times.queue(id, &queue, known, self.now);
            let before = if known { row } else { [0; 10] };
            record(&mut self.queues, id, self.now, &row, &before, self.held);
            if let Some(losses) = queue.losses() {
                self.sample_losses(id, losses.numbers());
            }
        }
    }

    fn sample_losses(&mut self, id: QueueId, row: [u64; LossCounts::KINDS]) {
        let known = !self.known_losses.insert(id);
        let before = if known { row } else { [0; LossCounts::KINDS] };
        record(&mut self.losses, id, self.now, &row, &before, self.held);
    }

    fn set_depth(&mut self, id: QueueId, depth: Option<(&Arc<str>, [u64; 2])>) {
        if let Some((vhost, [ready, unacked])) = self.depths.remove(&id)
            && let Some(sum) = self.sums.get_mut(&vhost)
        {
            sum[0] -= ready;
            sum[1] -= unacked;
        }
        if let Some((vhost, depth)) = depth.filter(|(_, depth)| *depth != [0, 0]) {
            let sum = self.sums.entry(vhost.clone()).or_default();
            sum[0] += depth[0];
            sum[1] += depth[1];
            self.depths.insert(id, (vhost.clone(), depth));
        }
    }

    fn sample_exchanges(&mut self, broker: &Broker) {
        let exchanges = broker.stats().exchanges();
        let view = broker.view();
        exchanges.prune(|vhost, name| view.exchange(vhost, name).is_some());
        let all = exchanges.all();
        for (vhost, name, counts) in &all {
            let key = (vhost.clone(), name.clone());
            let row = exchange_row(counts);
            let changed = self
                .exchanges
                .get(&key)
                .is_none_or(|known| known.at(Slot::MAX, &[0]) != row[0]);
            if changed {
                let known = !self.known_exchanges.insert(key.clone());
                let before = if known { row } else { [0; 2] };
                record(&mut self.exchanges, key, self.now, &row, &before, self.held);
            }
        }
        if self.known_exchanges.len() > all.len() {
            let all: HashSet<_> = all.into_iter().map(|(vhost, name, _)| (vhost, name)).collect();
            self.known_exchanges.retain(|key| all.contains(key));
            self.exchanges.retain(|key, _| all.contains(key));
        }
    }

    fn sample_connections(&mut self, connections: &[Arc<Connection>]) {
        let (mut here, mut channels) = (HashSet::new(), HashSet::new());
        for connection in connections {
            here.insert(connection.id);
            let row = [connection.received_bytes.get(), connection.sent_bytes.get()];
            record(
                &mut self.connections,
                connection.id,
                self.now,
                &row,
                &[0; 2],
                self.held,
            );
            for channel in connection.channels() {
                let key = channel_key(connection, &channel);
                channels.insert(key);
                let row = channel.counts.numbers();
                if row.iter().any(|count| *count > 0) {
                    record(&mut self.channels, key, self.now, &row, &[0; KINDS], self.held);
                }
            }
        }
        self.connections.retain(|id, _| here.contains(id));
        self.channels.retain(|key, _| channels.contains(key));
    }

    fn sample_totals(&mut self, broker: &Broker) {
        let view = broker.view();
        let totals = broker.stats().totals();
        let mut node = [0; NODE_NUMBERS];
        for vhost in view.vhosts() {
            let mut row = [0; NODE_CHURN];
            if let Some(depth) = self.sums.get(&*vhost.name) {
                row[..2].copy_from_slice(depth);
            }
            if let Some(total) = totals.get(&*vhost.name) {
                row[2..VHOST_BYTES].copy_from_slice(&total.messages);
                row[VHOST_BYTES..].copy_from_slice(&[total.received_bytes, total.sent_bytes]);
            }
            node.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
            let name: Arc<str> = (&*vhost.name).into();
            let history = self.vhosts.entry(name);
            history
                .or_insert_with(|| History::new(self.now, &[0; NODE_CHURN]))
                .push_lasting(self.now, &row, KEPT);
        }
        self.vhosts.retain(|name, _| view.vhost(name).is_some());
        self.sums.retain(|name, _| view.vhost(name).is_some());
        let changing = broker.stats().churn().named().into_iter();
        let changing = changing.chain(crate::usage::uses(&broker.status()));
        for (at, (_, count)) in node[NODE_CHURN..].iter_mut().zip(changing) {
            *at = count;
        }
        let history = self.node.get_or_insert_with(|| {
            // What the node used before it was looked at is taken to be what it uses now.
            let mut before = [0; NODE_NUMBERS];
            before[NODE_USES..].copy_from_slice(&node[NODE_USES..]);
            History::new(self.now, &before)
        });
        history.push(self.now, &node, NODE_KEPT);
        let losses = self
            .node_losses
            .get_or_insert_with(|| History::new(self.now, &[0; LossCounts::KINDS]));
        losses.push(self.now, &broker.losses().numbers(), NODE_KEPT);
    }

    /// Forgets what was: rates begin anew. What is counted since the start of the node stays.
    pub fn restart(&mut self) {
        self.each_history(History::restart);
        let totals = self.vhosts.values_mut().chain(&mut self.node);
        totals.chain(&mut self.node_losses).for_each(History::restart);
    }

    /// Forgets queues and exchanges that rest, and long histories if there are too many.
    fn forget(&mut self) {
        let now = self.now;
        // Where nothing changed at all there is nothing to chart.
        let is_kept = |history: &History| {
            let kept = if history.len() > 1 { OLDEST } else { KEPT };
            history.changed() + kept > now
        };
        self.each_history(|history| history.age(now, KEPT));
        self.queues.retain(|_, history| is_kept(history));
        self.losses.retain(|_, history| is_kept(history));
        self.exchanges.retain(|_, history| is_kept(history));
        self.count_held();
        if self.held > SAMPLES {
            self.each_history(History::forget_older);
            self.count_held();
        }
        if self.held > SAMPLES {
            self.each_history(History::shorten);
        }
    }

    /// Does this to the histories of all objects that there may be many of.
    fn each_history(&mut self, act: impl FnMut(&mut History)) {
        let all = self.queues.values_mut().chain(self.exchanges.values_mut());
        let all = all
            .chain(self.losses.values_mut())
            .chain(self.connections.values_mut())
            .chain(self.channels.values_mut());
        all.for_each(act);
    }

    fn count_held(&mut self) {
        let all = self.queues.values().chain(self.exchanges.values());
        let all = all.chain(self.losses.values());
        let all = all.chain(self.connections.values()).chain(self.channels.values());
        self.held = all.map(History::len).sum();
    }
}

fn exchange_row(counts: &ExchangeCounts) -> [u64; 2] {
    [counts.publish_in(), counts.publish_out()]
}

/// Adds a sample to an object's history, which begins with `before` if there is none yet.
fn record<K: std::hash::Hash + Eq>(
    histories: &mut HashMap<K, History>,
    key: K,
    slot: Slot,
    row: &[u64],
    before: &[u64],
    held: usize,
) {
    let history = histories.entry(key).or_insert_with(|| History::new(slot, before));
    history.push_lasting(slot, row, KEPT);
    if held > SAMPLES {
        history.shorten();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_is_sampled_with_what_it_uses_and_what_came_and_went() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(broker::Options::new(dir.path())).unwrap();
        let mut samples = Samples::default();
        samples.take(&broker, 7);
        let node = samples.node.unwrap();
        let names = broker.stats().churn().named().into_iter();
        let names = names.chain(crate::usage::uses(&broker.status()));
        let places: HashMap<&str, usize> = names.enumerate().map(|(at, (name, _))| (name, at)).collect();
        let at = |slot, name| node.at(slot, &[NODE_CHURN + places[name]]);
        assert_eq!(places.len(), NODE_NUMBERS - NODE_CHURN);
        for name in ["mem_used", "disk_free", "fd_used", "proc_used"] {
            // No rise from nothing when the node starts.
            assert!(at(7, name) > 0 && at(7, name) == at(6, name), "{name}");
        }
        assert_eq!(at(7, "connection_created"), 0);
        broker.close();
    }
}
