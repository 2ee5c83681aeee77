//! How many bindings exchanges have.

use super::collect::Collector;
use super::page::{Type, labels};
use std::collections::HashMap;

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
            let mut counts: HashMap<&str, u64> = HashMap::new();
            vhost
                .bindings()
                .for_each(|binding| *counts.entry(&binding.source).or_default() += 1);
            for exchange in vhost.exchanges().take(room) {
                room -= 1;
                let kind = ("type", exchange.kind.name());
                let names = labels(&[("vhost", &exchange.vhost), ("exchange", &exchange.name), kind]);
                let count = counts.get(&*exchange.name).copied().unwrap_or_default();
                self.page.labelled(&names, count);
            }
        }
    }
}
