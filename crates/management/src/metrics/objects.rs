//! Object by object: each queue, connection, channel and exchange.

use super::collect::{Collector, Rows};
use super::family::{
    CHANNEL, CHANNEL_COUNTS, CONNECTION, CONNECTION_COARSE, EXCHANGE, QUEUE, QUEUE_COARSE, QUEUE_CONSUMERS,
    QUEUE_DELIVERY, QUEUE_HEAD,
};
use super::page::{Number, Type, labels};
use broker::queues::{Queue, Status};
use broker::stats::{Channel, Connection, KINDS};
use std::sync::Arc;

impl Collector<'_> {
    /// Each queue.
    pub fn queues(&mut self) {
        let families = [
            "queue_coarse_metrics",
            "queue_consumer_count",
            "queue_metrics",
            "queue_delivery_metrics",
            "leveret_queue_metrics",
        ];
        let [coarse, count, metrics, delivery, own] = families.map(|family| self.wanted.has(family));
        if !(coarse || count || metrics || delivery || own) {
            return;
        }
        let view = self.broker.view();
        let all = view.vhosts().flat_map(|vhost| crate::call::queues_of(vhost));
        let wanted = all.filter(|queue| self.wanted.has_queue(&queue.vhost, &queue.name));
        let mut queues = Vec::new();
        let mut left_out = 0;
        // Other nodes show their own.
        for queue in wanted.filter_map(|queue| self.broker.queues().here(queue.id)) {
            if queues.len() >= self.limit {
                left_out += 1;
            } else {
                let labels = labels(&[("vhost", &queue.vhost), ("queue", &queue.name)]);
                queues.push((labels, queue.status(), queue));
            }
        }
        self.note_left_out("queues", left_out);
        let rows = queues.iter();
        if coarse {
            let numbers = |status: &Status| [status.ready, status.unacked, status.ready + status.unacked];
            let rows = rows
                .clone()
                .map(|(labels, status, _)| (labels.clone(), numbers(status).map(Number::Whole)));
            self.many(QUEUE_COARSE, &rows.collect());
        }
        if count || metrics {
            let rows = rows
                .clone()
                .map(|(labels, status, _)| (labels.clone(), [status.consumers.into()]));
            self.many(QUEUE_CONSUMERS, &rows.collect());
        }
        if metrics {
            let rows = rows
                .clone()
                .map(|(labels, status, _)| (labels.clone(), details(status)));
            self.many(QUEUE, &rows.collect());
            self.heads(&queues);
        }
        if delivery {
            let numbers = |queue: &Queue| queue.counts().numbers().map(Number::Whole);
            let rows = rows
                .clone()
                .map(|(labels, _, queue)| (labels.clone(), numbers(queue)));
            self.many(QUEUE_DELIVERY, &rows.collect());
        }
        if coarse || count || metrics {
            let what = "A metric with a constant '1' value and labels that provide some queue details";
            self.begin(("queue_info", Type::Gauge, what));
            for (labels, _, queue) in &queues {
                let module = queue.kind().module();
                let more = format!("{labels},queue_type=\"{module}\",membership=\"leader\"");
                self.page.labelled(&more, 1_u64);
            }
        }
        let queues: Vec<_> = queues
            .into_iter()
            .map(|(labels, _, queue)| (labels, queue))
            .collect();
        self.own_queues(&queues);
    }

    /// Of queues whose first message says when it was made; as in RabbitMQ, no sum of those is told.
    fn heads(&mut self, queues: &[(String, Status, Arc<Queue>)]) {
        self.begin(QUEUE_HEAD);
        for (labels, status, _) in queues {
            if let Some(timestamp) = status.head_timestamp {
                self.page.labelled(labels, timestamp);
            }
        }
    }

    /// Each connection.
    pub fn connections(&mut self) {
        let (coarse, more) = (
            self.wanted.has("connection_coarse_metrics"),
            self.wanted.has("connection_metrics"),
        );
        if !(coarse || more || self.wanted.has("leveret_connection_metrics")) {
            return;
        }
        let mut connections = self.broker.stats().connections();
        connections.retain(|connection| self.wanted.has_vhost(&connection.vhost));
        self.note_left_out("connections", connections.len().saturating_sub(self.limit));
        connections.truncate(self.limit);
        let named = |connection: &Connection| labels(&[("connection", &connection.name)]);
        if coarse {
            let numbers = |it: &Connection| [it.received_bytes.get(), it.sent_bytes.get()].map(Number::Whole);
            let rows = connections.iter().map(|it| (named(it), numbers(it)));
            self.many(CONNECTION_COARSE, &rows.collect());
        }
        if more {
            let numbers = |it: &Connection| {
                [it.reads.get(), it.writes.get(), it.channel_count() as u64].map(Number::Whole)
            };
            let rows = connections.iter().map(|it| (named(it), numbers(it)));
            self.many(CONNECTION, &rows.collect());
        }
        self.own_connections(&connections);
    }

    /// Each channel.
    pub fn channels(&mut self) {
        let families = [
            "channel_metrics",
            "channel_exchange_metrics",
            "channel_queue_metrics",
        ];
        let [gauges_wanted, exchange, queue] = families.map(|family| self.wanted.has(family));
        if !(gauges_wanted || exchange || queue) {
            return;
        }
        let connections = self.broker.stats().connections();
        let mut channels: Vec<_> = connections
            .iter()
            .filter(|connection| self.wanted.has_vhost(&connection.vhost))
            .flat_map(|connection| {
                connection
                    .channels()
                    .into_iter()
                    .map(move |channel| (connection, channel))
            })
            .collect();
        self.note_left_out("channels", channels.len().saturating_sub(self.limit));
        channels.truncate(self.limit);
        let named = |connection: &Connection, channel: &Channel| {
            labels(&[(
                "channel",
                &crate::connections::channel_name(connection, channel.number),
            )])
        };
        let rows = channels
            .iter()
            .map(|(connection, channel)| (named(connection, channel), channel));
        if gauges_wanted {
            let rows = rows
                .clone()
                .map(|(labels, channel)| (labels, gauges(channel).map(Number::Whole)));
            self.many(CHANNEL, &rows.collect());
        }
        if exchange || queue {
            let counts = |channel: &Channel| channel.counts.numbers().map(Number::Whole);
            let rows: Rows<KINDS> = rows.map(|(labels, channel)| (labels, counts(channel))).collect();
            let chosen = CHANNEL_COUNTS.into_iter().enumerate();
            for (at, metric) in chosen.filter(|(at, _)| if *at < 4 { exchange } else { queue }) {
                self.begin(metric);
                for (labels, values) in &rows {
                    self.page.labelled(labels, values[at]);
                }
            }
        }
    }

    /// Each exchange that was published to.
    pub fn exchanges(&mut self) {
        if !self.wanted.has("exchange_metrics") {
            return;
        }
        let mut exchanges = self.broker.stats().exchanges().all();
        exchanges.retain(|(vhost, ..)| self.wanted.has_vhost(vhost));
        self.note_left_out("exchanges", exchanges.len().saturating_sub(self.limit));
        exchanges.truncate(self.limit);
        let rows = exchanges.iter().map(|(vhost, name, counts)| {
            let labels = labels(&[("vhost", vhost), ("exchange", name)]);
            (labels, [counts.publish_in().into()])
        });
        self.many(EXCHANGE, &rows.collect());
    }
}

/// What a queue holds, in the order of `QUEUE` after the first two.
pub fn holdings(status: &Status) -> [u64; 11] {
    [
        status.memory as u64,
        status.in_memory(),
        status.bytes_in_memory(),
        status.ready_in_memory(),
        status.in_memory().saturating_sub(status.ready_in_memory()),
        status.persistent,
        status.persistent_bytes,
        status.bytes(),
        status.ready_bytes,
        status.unacked_bytes,
        status.paged,
    ]
}

fn details(status: &Status) -> [Number; 13] {
    let capacity = crate::queues::capacity(status);
    let mut numbers = [Number::from(capacity); 13];
    let held = numbers[2..].iter_mut();
    held.zip(holdings(status))
        .for_each(|(number, held)| *number = held.into());
    numbers
}

pub fn gauges(channel: &Channel) -> [u64; 7] {
    [
        channel.consumer_count() as u64,
        channel.unacked(),
        channel.unconfirmed(),
        channel.uncommitted.get(),
        channel.acks_uncommitted.get(),
        channel.prefetch.get(),
        channel.global_prefetch.get(),
    ]
}
