//! What is the same on every node of a cluster; on the detailed page only.

use super::collect::Collector;
use super::page::{Type, labels};

impl Collector<'_> {
    /// Which virtual hosts and exchanges there are.
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
}
