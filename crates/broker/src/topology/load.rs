//! Which of several nodes a new queue is led by, so that all lead as many.

use crate::queues::Registry;
use catalog::{NodeId, QueueKind, View};
use std::collections::BTreeMap;

/// From so many queues on nobody counts whose they are (RabbitMQ's `queue_count_start_random_selection`).
const COUNTED: usize = 1000;

/// How many queues nodes lead, as far as this one knows, and are about to.
#[derive(Default)]
pub(super) struct Load {
    /// What this decides is not seen before it decides again.
    is_blind: bool,
    counts: BTreeMap<(QueueKind, NodeId), usize>,
    /// Of which kinds they are counted.
    counted: Vec<QueueKind>,
    decided: usize,
}

impl Load {
    /// For many queues that are declared at once.
    pub fn of_many() -> Self {
        Self {
            is_blind: true,
            ..Self::default()
        }
    }

    /// Leaves those nodes that lead the fewest queues of this kind; of many queues, of which nobody counts them, one by the name.
    pub fn choose(
        &mut self,
        homes: &mut Vec<NodeId>,
        (kind, name): (QueueKind, &str),
        view: &View,
        registry: &Registry,
    ) {
        homes.sort_unstable();
        let all: usize = view.vhosts().map(|vhost| vhost.queue_count()).sum();
        if all + self.decided >= COUNTED {
            let place = by_name(name, homes.len());
            *homes = homes.get(place).copied().into_iter().collect();
            return;
        }
        self.count(kind, view, registry);
        let led = |node: &NodeId| self.counts.get(&(kind, *node)).copied().unwrap_or_default();
        let fewest = homes.iter().map(led).min();
        homes.retain(|node| Some(led(node)) == fewest);
        if self.is_blind {
            homes.truncate(1);
            self.decided += 1;
            for node in homes {
                *self.counts.entry((kind, *node)).or_default() += 1;
            }
        }
    }

    fn count(&mut self, kind: QueueKind, view: &View, registry: &Registry) {
        if self.counted.contains(&kind) {
            return;
        }
        self.counted.push(kind);
        let queues = view.vhosts().flat_map(|vhost| vhost.queues());
        for queue in queues.filter(|queue| queue.kind == kind) {
            // One that was declared a moment ago is about to be led there.
            let leader = registry.leader(queue.id).unwrap_or(queue.home);
            *self.counts.entry((kind, leader)).or_default() += 1;
        }
    }
}

/// One of so many places, by a name: about as many names have each.
fn by_name(name: &str, places: usize) -> usize {
    ((model::fnv(name.as_bytes()) >> 32) as usize)
        .checked_rem(places)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_at_once_is_spread_though_nobody_sees_it_in_between() {
        let (view, registry) = (View::default(), Registry::default());
        let nodes = || (1..=3).map(NodeId).collect::<Vec<_>>();
        let mut load = Load::of_many();
        let mut next = |kind| {
            let mut homes = nodes();
            load.choose(&mut homes, (kind, "q"), &view, &registry);
            homes.iter().map(|node| node.0).collect::<Vec<_>>()
        };
        let quorum: Vec<_> = (0..4).map(|_| next(QueueKind::Quorum)).collect();
        assert_eq!(quorum, [[1], [2], [3], [1]]);
        assert_eq!(next(QueueKind::Classic), [1], "these are counted by themselves");
        let mut homes = nodes();
        Load::default().choose(&mut homes, (QueueKind::Quorum, "q"), &view, &registry);
        assert_eq!(homes, nodes(), "whoever decides knows more");
        let mut none = Vec::new();
        load.choose(&mut none, (QueueKind::Quorum, "q"), &view, &registry);
        assert!(none.is_empty());
    }

    #[test]
    fn names_are_spread_over_places() {
        let mut counts = [0; 3];
        for number in 0..3000 {
            counts[by_name(&format!("orders.{number}"), 3)] += 1;
        }
        assert!(counts.iter().all(|it| (800..1200).contains(it)), "{counts:?}");
        assert_eq!(by_name("q", 0), 0);
    }
}
