//! How a page is put together. Where its numbers come from: the [`node`](super::node), its [`sums`](super::sums),
//! [object by object](super::objects), the [`cluster`](super::cluster), [`ours`](super::ours). Nothing there asks a queue or a
//! connection: it reads what they show.

use super::family::Metric;
use super::page::{Number, Page, Type, labels};
use super::pages::{Endpoint, PageQuery};
use crate::options::{Member, Members};
use broker::Broker;
use std::collections::BTreeMap;

/// Puts together one page.
pub struct Collector<'a> {
    pub(super) broker: &'a Broker,
    pub(super) wanted: &'a PageQuery,
    /// So many objects of a kind are shown at most.
    pub(super) limit: usize,
    /// The members of the cluster, this node among them; none if it is alone.
    pub(super) members: Vec<Member>,
    /// How many of each kind were not.
    left_out: BTreeMap<&'static str, usize>,
    /// What was written.
    pub page: Page,
}

/// A node's names.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Such as `rabbit@host`.
    pub node: String,
    /// The version of RabbitMQ whose behaviour clients may expect.
    pub rabbitmq_version: String,
    /// When it started, in seconds since 1970.
    pub started: u64,
    /// Who is of the node's cluster, if it is one of several.
    pub members: Option<Members>,
}

/// One object: its labels, and what is written after them for each metric of a family.
pub(super) type Rows<const N: usize> = Vec<(String, [Number; N])>;

impl<'a> Collector<'a> {
    /// For an empty page.
    pub fn new(broker: &'a Broker, wanted: &'a PageQuery, limit: usize, members: Vec<Member>) -> Self {
        Self {
            broker,
            wanted,
            limit,
            members,
            left_out: BTreeMap::new(),
            page: Page::default(),
        }
    }

    fn prefix(&self) -> &'static str {
        match self.wanted.endpoint {
            Endpoint::Detailed => "rabbitmq_detailed_",
            _ => "rabbitmq_",
        }
    }

    /// Starts one metric.
    pub(super) fn begin(&mut self, (name, kind, help): Metric) {
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
                ("rabbitmq_cluster", &self.broker.cluster_name()),
                ("rabbitmq_cluster_permanent_id", &self.broker.cluster_id()),
                ("rabbitmq_endpoint", self.wanted.endpoint.name()),
            ]),
            1_u64,
        );
        if matches!(self.wanted.endpoint, Endpoint::Aggregated | Endpoint::PerObject) {
            self.started(identity.started);
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

    /// So many objects of a kind are not shown.
    pub(super) fn note_left_out(&mut self, kind: &'static str, count: usize) {
        self.left_out.insert(kind, count);
    }
}
