//! This node's members of quorum queues, whether they lead or follow.

use super::collect::Collector;
use super::family::{RAFT, RAFT_LOG, RAFT_MOST};
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
            let (segments, latency_us) = self.broker.copy_figures(queue.id)?;
            // Indices are applied as soon as they are committed, and none is told of that is not synced.
            let numbers = [
                own.term,
                own.committed,
                own.committed,
                own.last,
                own.base,
                segments,
            ];
            let [a, b, c, d, e, f] = numbers.map(Number::Whole);
            let labels = labels(&[("vhost", &queue.vhost), ("queue", &queue.name)]);
            Some((labels, [a, b, c, d, e, f, seconds(latency_us)]))
        });
        let mut rows: Vec<_> = own.collect();
        self.note_left_out("members", rows.len().saturating_sub(self.limit));
        rows.truncate(self.limit);
        self.many(RAFT, &rows);
        self.shared_log();
    }

    /// The highest numbers of all members together, if there are any.
    pub(super) fn most_of_members(&mut self) {
        let view = self.broker.view();
        let all = view.vhosts().flat_map(|vhost| crate::call::queues_of(vhost));
        let figures = all.filter(|queue| queue.is_shared());
        let figures = figures.filter_map(|queue| self.broker.copy_figures(queue.id));
        let most = figures.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)));
        if let Some((segments, latency_us)) = most {
            let of = labels(&[("ra_system", "quorum_queues")]);
            self.single(RAFT_MOST, [segments.into(), seconds(latency_us)], &of);
            self.shared_log();
        }
    }

    /// What was written to the log that all queues of the node share, since that was made.
    fn shared_log(&mut self) {
        let (files, bytes) = self.broker.log_written();
        let of = labels(&[("ra_system", "quorum_queues"), ("module", "ra_log_wal")]);
        self.single(RAFT_LOG, [files.into(), bytes.into()], &of);
    }
}

fn seconds(us: u64) -> Number {
    Number::Real(us as f64 / 1e6)
}
