//! What RabbitMQ doesn't tell: how long messages take, who is held up and why, how long the log and the catalog take.

use super::collect::Collector;
use super::page::{Type, labels};
use super::pages::Endpoint;
use broker::Reason;
use broker::queues::Queue;
use broker::stats::{Change, Connection, Histogram, Latencies, LossCounts};
use std::sync::Arc;

/// What losses are.
const LOST: &str =
    "Messages that left queues other than to consumers, or that queues did not take, by what became of them";

/// Times shorter and longer than this, in seconds, are not told apart.
const TIMES: (f64, f64) = (0.000_016, 120.0);
/// From one bound of a histogram to the next: a doubling for the node, two for single objects, of which there may be many.
const NODE_DOUBLINGS: usize = 1;
const OBJECT_DOUBLINGS: usize = 2;

impl Collector<'_> {
    /// What concerns the node as a whole.
    pub fn own_work(&mut self) {
        let work = self.broker.work();
        self.page.family(
            "leveret_log_sync_seconds",
            Type::Histogram,
            "How long syncs of the write-ahead log take",
        );
        self.times("", &work.sync, NODE_DOUBLINGS);
        let (batches, batched) = work.batches();
        self.page.family(
            "leveret_log_confirms_per_sync",
            Type::Summary,
            "Publishes that were confirmed by one sync",
        );
        self.page.part("_sum", "", batched);
        self.page.part("_count", "", batches);
        self.page.family(
            "leveret_catalog_change_seconds",
            Type::Histogram,
            "How long declarations, bindings and the like take, without the sync that a durable one waits for",
        );
        for change in Change::ALL {
            let labels = labels(&[("change", change.name())]);
            self.times(&labels, work.changes(change), NODE_DOUBLINGS);
        }
        self.held_sum();
        self.page
            .family("leveret_messages_lost_total", Type::Counter, LOST);
        let losses = self.broker.losses().numbers();
        for (name, count) in LossCounts::NAMES.into_iter().zip(losses) {
            self.page.labelled(&labels(&[("reason", name)]), count);
        }
    }

    /// How long all connections were not read from.
    fn held_sum(&mut self) {
        let now_ms = self.broker.now_ms();
        let connections = self.broker.stats().connections();
        self.page.family(
            "leveret_connections_held_seconds",
            Type::Gauge,
            "How long connections that are open were not read from, by what was short",
        );
        for reason in Reason::ALL {
            let held = connections.iter().map(|it| it.held().total_ms(reason, now_ms));
            let seconds = held.sum::<u64>() as f64 / 1000.0;
            self.page.labelled(&labels(&[("reason", reason.name())]), seconds);
        }
    }

    /// How long messages of each queue take, and how long the oldest one has waited.
    pub fn own_queues(&mut self, queues: &[(String, Arc<Queue>)]) {
        if self.wanted.endpoint == Endpoint::Aggregated || !self.wanted.has("leveret_queue_metrics") {
            return;
        }
        let now_ms = self.broker.now_ms();
        self.page.family(
            "leveret_queue_oldest_message_age_seconds",
            Type::Gauge,
            "How long the first ready message has been there",
        );
        for (labels, queue) in queues {
            let oldest_ms = queue.status().oldest_ms;
            if oldest_ms > 0 {
                let age = now_ms.saturating_sub(oldest_ms) as f64 / 1000.0;
                self.page.labelled(labels, age);
            }
        }
        self.page
            .family("leveret_queue_messages_lost_total", Type::Counter, LOST);
        for (labels, queue) in queues {
            let Some(losses) = queue.losses() else { continue };
            let some = LossCounts::NAMES.into_iter().zip(losses.numbers());
            for (name, count) in some.filter(|(_, count)| *count > 0) {
                self.page.labelled(&format!("{labels},reason=\"{name}\""), count);
            }
        }
        type Which = fn(&Latencies) -> &Histogram;
        let times: [(&str, &str, Which); 3] = [
            (
                "leveret_queue_deliver_latency_seconds",
                "From the publish to the first delivery, of one message in many",
                |it| &it.deliver,
            ),
            (
                "leveret_queue_ack_latency_seconds",
                "From the delivery to the acknowledgement, of one message in many",
                |it| &it.ack,
            ),
            (
                "leveret_queue_confirm_latency_seconds",
                "From the publish to the confirm, of one message in many",
                |it| &it.confirm,
            ),
        ];
        for (name, help, which) in times {
            self.page.family(name, Type::Histogram, help);
            for (labels, queue) in queues {
                if let Some(latencies) = queue.latencies() {
                    self.times(labels, which(latencies), OBJECT_DOUBLINGS);
                }
            }
        }
    }

    /// How long each connection was not read from.
    pub fn own_connections(&mut self, connections: &[Arc<Connection>]) {
        if !self.wanted.has("leveret_connection_metrics") {
            return;
        }
        let now_ms = self.broker.now_ms();
        self.page.family(
            "leveret_connection_held_seconds_total",
            Type::Counter,
            "How long a connection was not read from, by what was short",
        );
        for connection in connections {
            for reason in Reason::ALL {
                let ms = connection.held().total_ms(reason, now_ms);
                if ms > 0 {
                    let labels = labels(&[("connection", &connection.name), ("reason", reason.name())]);
                    self.page.labelled(&labels, ms as f64 / 1000.0);
                }
            }
        }
    }

    /// A histogram of times.
    fn times(&mut self, labels: &str, times: &Histogram, doublings: usize) {
        // Read before the buckets, so that it isn't ahead of them.
        let sum = times.sum_s();
        let buckets = times.buckets();
        let all = buckets.count();
        let comma = if labels.is_empty() { "" } else { "," };
        let mut bucket = |bound: &str, count: u64| {
            let labels = format!("{labels}{comma}le=\"{bound}\"");
            self.page.part("_bucket", &labels, count);
        };
        let told = |(bound, _): &(f64, u64)| (TIMES.0..TIMES.1).contains(bound);
        for (bound, count) in buckets.below(doublings).filter(told) {
            bucket(&bound.to_string(), count);
        }
        bucket("+Inf", all);
        self.page.part("_sum", labels, sum);
        self.page.part("_count", labels, all);
    }
}
