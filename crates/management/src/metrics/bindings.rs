//! How many bindings exchanges have.

use super::collect::Collector;
use super::page::{Type, labels};

impl Collector<'_> {
    /// How many bindings each exchange is the source of; on the detailed page only.
    pub(super) fn bindings(&mut self) {
        if !self.wanted.has("exchange_bindings") {
            return;
        }
        let help = "Number of bindings for an exchange. This value is cluster-wide.";
        self.page
            .family("rabbitmq_cluster_exchange_bindings", Type::Gauge, help);
        let view = self.broker.view();
        let wanted = view.vhosts().filter(|vhost| self.wanted.has_vhost(&vhost.name));
        let mut room = self.limit;
        for vhost in wanted {
            for exchange in vhost.exchanges().take(room) {
                room -= 1;
                let kind = ("type", exchange.kind.name());
                let names = labels(&[("vhost", &exchange.vhost), ("exchange", &exchange.name), kind]);
                self.page.labelled(&names, exchange.binding_count() as u64);
            }
        }
    }
}
