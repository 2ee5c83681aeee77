//! Where the numbers of the pages come from. Nothing here asks a queue or a connection: it reads what they show.

use super::family::{
    ALARMS, CHANNEL, CHANNEL_COUNTS, CHURN, CONNECTION, CONNECTION_COARSE, EXCHANGE, EXCHANGE_OUTCOMES,
    GLOBAL, GLOBAL_QUEUES, LOG, Metric, NODE, NODE_COARSE, PEERS, QUEUE, QUEUE_COARSE, QUEUE_CONSUMERS,
    QUEUE_DELIVERY, QUEUE_HEAD, TOTALS,
};
use super::page::{Number, Page, Type, labels};
use super::pages::{Endpoint, Wanted};
use crate::nodes::{file_limit, open_files};
use broker::Broker;
use broker::queues::{Queue, Status};
use broker::sight::{Channel, Connection, KINDS, Totals};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Puts together one page.
pub struct Collector<'a> {
    pub(super) broker: &'a Broker,
    pub(super) wanted: &'a Wanted,
    /// So many objects of a kind are shown at most.
    pub(super) limit: usize,
    /// How many of each kind were not.
    left_out: BTreeMap<&'static str, usize>,
    /// What was written.
    pub page: Page,
}

/// A node's names.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Such as `leveret@host`.
    pub node: String,
    /// The cluster's.
    pub cluster: String,
    /// The version of RabbitMQ whose behaviour clients may expect.
    pub rabbitmq_version: String,
    /// When it started, in seconds since 1970.
    pub started: u64,
}

/// One object: its labels, and what is written after them for each metric of a family.
pub(super) type Rows<const N: usize> = Vec<(String, [Number; N])>;

impl<'a> Collector<'a> {
    /// For an empty page.
    pub fn new(broker: &'a Broker, wanted: &'a Wanted, limit: usize, page: Page) -> Self {
        Self {
            broker,
            wanted,
            limit,
            left_out: BTreeMap::new(),
            page,
        }
    }

    fn prefix(&self) -> &'static str {
        match self.wanted.endpoint {
            Endpoint::Detailed => "rabbitmq_detailed_",
            _ => "rabbitmq_",
        }
    }

    fn begin(&mut self, (name, kind, help): Metric) {
        let name = format!("{}{name}", self.prefix());
        self.page.family(&name, kind, help);
    }

    /// A family with one sample a metric.
    pub(super) fn single<const N: usize>(&mut self, metrics: [Metric; N], values: [Number; N], labels: &str) {
        for (metric, value) in metrics.into_iter().zip(values) {
            self.begin(metric);
            self.page.labelled(labels, value);
        }
    }

    /// A family with one sample a metric and object.
    pub(super) fn many<const N: usize>(&mut self, metrics: [Metric; N], rows: &Rows<N>) {
        for (at, metric) in metrics.into_iter().enumerate() {
            self.begin(metric);
            for (labels, values) in rows {
                self.page.labelled(labels, values[at]);
            }
        }
    }

    /// Which node this is; dashboards join it with everything else. Their names are the same on all pages.
    pub fn identity(&mut self, identity: &Identity) {
        let untyped = Type::Untyped;
        self.page.family(
            "rabbitmq_build_info",
            untyped,
            "RabbitMQ & Erlang/OTP version info",
        );
        let product = env!("CARGO_PKG_VERSION");
        self.page.labelled(
            &labels(&[
                ("rabbitmq_version", &identity.rabbitmq_version),
                ("prometheus_plugin_version", product),
                ("prometheus_client_version", product),
                ("erlang_version", ""),
                ("product_version", product),
                ("product_name", "Leveret"),
            ]),
            1_u64,
        );
        self.page.family(
            "rabbitmq_identity_info",
            untyped,
            "RabbitMQ node & cluster identity info",
        );
        self.page.labelled(
            &labels(&[
                ("rabbitmq_node", &identity.node),
                ("rabbitmq_cluster", &identity.cluster),
                ("rabbitmq_cluster_permanent_id", &self.broker.cluster_id()),
                ("rabbitmq_endpoint", self.wanted.endpoint.name()),
            ]),
            1_u64,
        );
        if matches!(self.wanted.endpoint, Endpoint::Aggregated | Endpoint::PerObject) {
            self.started(identity.started);
        }
    }

    /// What concerns the node as a whole.
    pub fn node(&mut self) {
        let status = self.broker.status();
        if self.wanted.has("connection_churn_metrics") {
            let churn = self.broker.sight().churn().named();
            self.single(CHURN, churn.map(|(_, count)| count.into()), "");
        }
        if self.wanted.has("auth_attempt_metrics") {
            self.login_attempts();
        }
        if self.wanted.has("node_coarse_metrics") {
            let values = [
                Number::Whole(open_files()),
                status.memory.into(),
                status.disk_free.into(),
            ];
            self.single(NODE_COARSE, values, "");
        }
        if self.wanted.has("node_metrics") {
            let values = [
                Number::Whole(file_limit()),
                status.memory_limit.into(),
                status.disk_free_limit.into(),
                (status.uptime_ms as f64 / 1000.0).into(),
            ];
            self.single(NODE, values, "");
        }
        if self.wanted.has("node_persister_metrics") {
            self.single(LOG, [status.log_syncs.into()], "");
        }
        if self.wanted.endpoint != Endpoint::Detailed {
            let on = |alarm: bool| Number::Whole(alarm.into());
            self.single(PEERS, [0_u64.into()], "");
            self.single(ALARMS, [on(status.memory_alarm), on(status.disk_alarm)], "");
            self.totals();
            self.own_work();
        }
    }

    /// How much there is, and what happened since the start.
    fn totals(&mut self) {
        let connections = self.broker.sight().connections();
        let (mut channels, mut publishers) = (0_usize, 0_u64);
        for channel in connections.iter().flat_map(|connection| connection.channels()) {
            channels += 1;
            publishers += u64::from(channel.counts.messages.publish.get() > 0);
        }
        let mut consumers = 0;
        self.broker
            .queues()
            .for_each(|queue| consumers += queue.status().consumers);
        // Not those that exchanges keep for themselves.
        let queues: usize = self.broker.view().vhosts().map(|vhost| vhost.queue_count()).sum();
        let values = [
            connections.len().into(),
            channels.into(),
            consumers.into(),
            queues.into(),
        ];
        self.single(TOTALS, values, "");
        let mut sum = Totals::default();
        self.broker
            .sight()
            .totals()
            .values()
            .for_each(|totals| sum.add(totals));
        let [
            publish,
            confirm,
            returned,
            dropped,
            deliver,
            deliver_no_ack,
            get,
            get_no_ack,
            get_empty,
            ack,
            redeliver,
        ] = sum.messages;
        let routed = self.broker.sight().exchanges().routed();
        let values = [
            publish,
            sum.to_confirm,
            routed,
            dropped,
            returned,
            confirm,
            publishers,
            consumers,
        ];
        let protocol = labels(&[("protocol", "amqp091")]);
        self.single(GLOBAL, values.map(Number::Whole), &protocol);
        self.sizes(&sum.sizes);
        let handed = deliver + deliver_no_ack + get + get_no_ack;
        let values = [
            handed,
            deliver,
            deliver_no_ack,
            get,
            get_no_ack,
            get_empty,
            redeliver,
            ack,
        ];
        let both = labels(&[("protocol", "amqp091"), ("queue_type", "rabbit_classic_queue")]);
        self.single(GLOBAL_QUEUES, values.map(Number::Whole), &both);
        self.dead_letters();
    }

    /// Queues, channels and connections added up.
    pub fn sums(&mut self) {
        let mut coarse = [0; 3];
        let (mut consumers, mut more, mut delivery) = (0, [0; 11], [0; 8]);
        self.broker.queues().for_each(|queue| {
            let status = queue.status();
            add(
                &mut coarse,
                [status.ready, status.unacked, status.ready + status.unacked],
            );
            consumers += status.consumers;
            add(&mut more, holdings(&status));
            add(&mut delivery, queue.counts().numbers());
        });
        self.single(QUEUE_COARSE, coarse.map(Number::Whole), "");
        self.single(QUEUE_CONSUMERS, [consumers.into()], "");
        let [_, _, held @ ..] = QUEUE;
        self.single(held, more.map(Number::Whole), "");
        self.single(QUEUE_DELIVERY, delivery.map(Number::Whole), "");
        let mut channels = [0; 7];
        let mut packets = [0; 3];
        for connection in self.broker.sight().connections() {
            add(
                &mut packets,
                [
                    connection.reads.get(),
                    connection.writes.get(),
                    connection.channel_count() as u64,
                ],
            );
            connection
                .channels()
                .iter()
                .for_each(|channel| add(&mut channels, gauges(channel)));
        }
        let mut sum = Totals::default();
        self.broker
            .sight()
            .totals()
            .values()
            .for_each(|totals| sum.add(totals));
        self.single(CHANNEL, channels.map(Number::Whole), "");
        self.single(CHANNEL_COUNTS, sum.messages.map(Number::Whole), "");
        self.single(
            CONNECTION_COARSE,
            [sum.received_bytes.into(), sum.sent_bytes.into()],
            "",
        );
        self.single(CONNECTION, packets.map(Number::Whole), "");
        let exchanges = self.broker.sight().exchanges().all();
        let published: u64 = exchanges.iter().map(|(_, _, counts)| counts.publish_in()).sum();
        self.single(EXCHANGE, [published.into()], "");
        let [_, confirmed, returned, dropped, ..] = sum.messages;
        let outcomes = [confirmed, returned, dropped].map(Number::Whole);
        self.single(EXCHANGE_OUTCOMES, outcomes, "");
    }

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
        for queue in wanted {
            if queues.len() >= self.limit {
                left_out += 1;
            } else if let Some(queue) = self.broker.queues().get(queue.id) {
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
            for (labels, ..) in &queues {
                let more = format!("{labels},queue_type=\"rabbit_classic_queue\",membership=\"leader\"");
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
        let mut connections = self.broker.sight().connections();
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
        let connections = self.broker.sight().connections();
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
            labels(&[("channel", &crate::channels::name(connection, channel.number))])
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
        let mut exchanges = self.broker.sight().exchanges().all();
        exchanges.retain(|(vhost, ..)| self.wanted.has_vhost(vhost));
        self.note_left_out("exchanges", exchanges.len().saturating_sub(self.limit));
        exchanges.truncate(self.limit);
        let rows = exchanges.iter().map(|(vhost, name, counts)| {
            let labels = labels(&[("vhost", vhost), ("exchange", name)]);
            (labels, [counts.publish_in().into()])
        });
        self.many(EXCHANGE, &rows.collect());
    }

    /// What is the same on every node of a cluster; on the detailed page only.
    pub fn cluster(&mut self) {
        let view = self.broker.view();
        let vhosts: Vec<_> = view
            .vhosts()
            .filter(|vhost| self.wanted.has_vhost(&vhost.name))
            .collect();
        if self.wanted.has("vhost_status") {
            let help = "Whether a given vhost is running";
            self.page
                .family("rabbitmq_cluster_vhost_status", Type::Gauge, help);
            for vhost in &vhosts {
                self.page.labelled(&labels(&[("vhost", &vhost.name)]), 1_u64);
            }
        }
        if self.wanted.has("exchange_names") {
            let help = "Enumerates exchanges without any additional info. This value is cluster-wide.";
            self.page
                .family("rabbitmq_cluster_exchange_name", Type::Gauge, help);
            for exchange in vhosts.iter().flat_map(|vhost| vhost.exchanges()).take(self.limit) {
                let kind = ("type", exchange.kind.name());
                let names = labels(&[("vhost", &exchange.vhost), ("exchange", &exchange.name), kind]);
                self.page.labelled(&names, 1_u64);
            }
        }
    }

    /// How many objects there was no room for.
    pub fn left_out(&mut self) {
        let help = "Objects beyond prometheus.object_limit, which are not on this page";
        self.page.family("leveret_metrics_left_out", Type::Gauge, help);
        for (kind, count) in std::mem::take(&mut self.left_out) {
            self.page.labelled(&labels(&[("objects", kind)]), count);
        }
    }

    fn note_left_out(&mut self, kind: &'static str, count: usize) {
        self.left_out.insert(kind, count);
    }
}

fn add<const N: usize>(sums: &mut [u64; N], numbers: [u64; N]) {
    sums.iter_mut()
        .zip(numbers)
        .for_each(|(sum, number)| *sum += number);
}

/// What a queue holds, in the order of `QUEUE` after the first two.
fn holdings(status: &Status) -> [u64; 11] {
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

fn gauges(channel: &Channel) -> [u64; 7] {
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
