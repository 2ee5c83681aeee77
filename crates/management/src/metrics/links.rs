//! Of a node that is one of several: its links with the others, and how it stands among those that decide what exists.

use super::collect::Collector;
use super::family::{CATALOG, LINKS};
use super::page::{Number, labels};

impl Collector<'_> {
    /// The links with each other node. Nothing is told of a round trip that nobody has measured.
    pub(super) fn links(&mut self) {
        let members = std::mem::take(&mut self.members);
        let linked = members
            .iter()
            .filter_map(|member| Some((member, member.links.as_ref()?)));
        let rows = linked.map(|(member, links)| {
            let trip = links.round_trip_us.filter(|_| member.is_running);
            let values = [
                Some(Number::Whole(member.is_running.into())),
                trip.map(|us| Number::Real(f64::from(us) / 1e6)),
                Some(links.sent_bytes.into()),
                Some(links.received_bytes.into()),
                Some(links.backlog_bytes.into()),
                Some(links.dropped_frames.into()),
            ];
            (labels(&[("peer", &member.name)]), values)
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return;
        }
        for (at, metric) in LINKS.into_iter().enumerate() {
            self.page.family(metric.0, metric.1, metric.2);
            for (labels, values) in &rows {
                if let Some(value) = values[at] {
                    self.page.labelled(labels, value);
                }
            }
        }
    }

    /// The group of nodes that decides what exists, as this one stands in it.
    pub(super) fn catalog(&mut self) {
        let Some(standing) = self.broker.catalog_standing() else {
            return;
        };
        let values = [
            u64::from(standing.leads),
            standing.term,
            standing.applied,
            standing.committed.saturating_sub(standing.applied),
            u64::from(standing.is_fresh),
        ];
        for ((name, kind, help), value) in CATALOG.into_iter().zip(values) {
            self.page.family(name, kind, help);
            self.page.labelled("", value);
        }
    }
}
