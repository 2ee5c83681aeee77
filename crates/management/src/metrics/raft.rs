//! This node's members of quorum queues, whether they lead or follow.

use super::collect::Collector;
use super::family::RAFT;
use super::page::{Number, labels};

impl Collector<'_> {
    /// Each of them.
    pub fn members_of_queues(&mut self) {
        if !self.wanted.has("ra_metrics") {
            return;
        }
        let view = self.broker.view();
        let all = view.vhosts().flat_map(|vhost| crate::call::queues_of(vhost));
        let wanted = all.filter(|queue| self.wanted.has_queue(&queue.vhost, &queue.name));
        let own = wanted.filter_map(|queue| {
            let own = self.broker.shared_standing(queue)?.own?;
            // Indices are applied as soon as they are committed, and none is told of that is not synced.
            let numbers = [own.term, own.committed, own.committed, own.last, own.base];
            let labels = labels(&[("vhost", &queue.vhost), ("queue", &queue.name)]);
            Some((labels, numbers.map(Number::Whole)))
        });
        let mut rows: Vec<_> = own.collect();
        self.note_left_out("members", rows.len().saturating_sub(self.limit));
        rows.truncate(self.limit);
        self.many(RAFT, &rows);
    }
}
