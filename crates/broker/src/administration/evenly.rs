//! Which leaders are to move, so that nodes lead as evenly as they can.

use catalog::NodeId;
use model::QueueId;
use std::collections::{BTreeMap, BTreeSet};

/// A queue that several nodes have, and who may lead it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Led {
    /// Which queue.
    pub queue: QueueId,
    /// Who leads it.
    pub leader: NodeId,
    /// Who else could.
    pub others: Vec<NodeId>,
}

/// A leader that is to be on another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// Which queue.
    pub queue: QueueId,
    /// Who leads it.
    pub from: NodeId,
    /// Who is to.
    pub to: NodeId,
}

/// The moves after which these nodes lead these queues as evenly as their members allow, each queue moved once at the most: no
/// node that leads two more than another one could do without. What others lead stays there.
pub fn moves(led: &[Led], nodes: &BTreeSet<NodeId>) -> Vec<Move> {
    let mut draft = Draft::of(led, nodes);
    while draft.improve() {}
    let led = draft.queues.into_iter().filter_map(|(queue, place)| {
        let moves = place.first != place.now;
        moves.then_some(Move {
            queue,
            from: place.first,
            to: place.now,
        })
    });
    led.collect()
}

struct Place<'a> {
    first: NodeId,
    now: NodeId,
    /// All who could lead it.
    able: Vec<&'a NodeId>,
}

struct Draft<'a> {
    /// How many each node leads.
    counts: BTreeMap<NodeId, usize>,
    queues: BTreeMap<QueueId, Place<'a>>,
    /// What could move from one node to another one.
    movable: BTreeMap<(NodeId, NodeId), BTreeSet<QueueId>>,
}

impl<'a> Draft<'a> {
    fn of(led: &'a [Led], nodes: &BTreeSet<NodeId>) -> Self {
        let mut draft = Draft {
            counts: nodes.iter().map(|node| (*node, 0)).collect(),
            queues: BTreeMap::new(),
            movable: BTreeMap::new(),
        };
        for queue in led.iter().filter(|it| nodes.contains(&it.leader)) {
            let able = queue.others.iter().filter(|node| nodes.contains(node));
            let place = Place {
                first: queue.leader,
                now: queue.leader,
                able: able.chain([&queue.leader]).collect(),
            };
            draft.queues.insert(queue.queue, place);
            draft.arrive(queue.queue, queue.leader);
        }
        draft
    }

    fn arrive(&mut self, queue: QueueId, at: NodeId) {
        let Some(place) = self.queues.get_mut(&queue) else {
            return;
        };
        place.now = at;
        *self.counts.entry(at).or_default() += 1;
        for node in place.able.iter().filter(|node| ***node != at) {
            self.movable.entry((at, **node)).or_default().insert(queue);
        }
    }

    fn leave(&mut self, queue: QueueId) {
        let Some(place) = self.queues.get(&queue) else {
            return;
        };
        let from = place.now;
        if let Some(count) = self.counts.get_mut(&from) {
            *count -= 1;
        }
        for node in &place.able {
            if let Some(movable) = self.movable.get_mut(&(from, **node)) {
                movable.remove(&queue);
            }
        }
    }

    /// Has one node lead one less and another one, which led at least two less, one more; those in between lead as many as
    /// before. False if that cannot be.
    fn improve(&mut self) -> bool {
        let mut sources: Vec<(usize, NodeId)> =
            self.counts.iter().map(|(node, count)| (*count, *node)).collect();
        sources.sort_unstable_by_key(|(count, node)| (std::cmp::Reverse(*count), *node));
        let found = sources
            .into_iter()
            .find_map(|(count, node)| self.way_from(node, count));
        let Some(way) = found else { return false };
        for pair in way.windows(2) {
            let (&[from, to], true) = (pair, pair.len() == 2) else {
                continue;
            };
            let queue = self.movable.get(&(from, to)).and_then(BTreeSet::first).copied();
            if let Some(queue) = queue {
                self.leave(queue);
                self.arrive(queue, to);
            }
        }
        true
    }

    /// The shortest way from a node that leads so many to that of those within reach which leads the fewest, if it is worth it.
    fn way_from(&self, from: NodeId, count: usize) -> Option<Vec<NodeId>> {
        let mut before: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let mut reached = vec![from];
        let mut looked = 0;
        while let Some(at) = reached.get(looked).copied() {
            looked += 1;
            for next in self.counts.keys() {
                let way = self.movable.get(&(at, *next));
                if *next != from && !before.contains_key(next) && way.is_some_and(|it| !it.is_empty()) {
                    before.insert(*next, at);
                    reached.push(*next);
                }
            }
        }
        let led = |node: &NodeId| self.counts.get(node).copied().unwrap_or_default();
        let to = *reached.iter().min_by_key(|node| led(node))?;
        if led(&to) + 2 > count {
            return None;
        }
        let mut way = vec![to];
        while let Some(at) = way.last().and_then(|node| before.get(node)) {
            way.push(*at);
        }
        way.reverse();
        Some(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(queue: u64, leader: u64, others: &[u64]) -> Led {
        Led {
            queue: QueueId(queue),
            leader: NodeId(leader),
            others: others.iter().map(|node| NodeId(*node)).collect(),
        }
    }

    fn nodes(nodes: &[u64]) -> BTreeSet<NodeId> {
        nodes.iter().map(|node| NodeId(*node)).collect()
    }

    /// How many each node leads once all have moved, and how many have.
    fn after(led: &[Led], among: &[u64]) -> (Vec<usize>, usize) {
        let moves = moves(led, &nodes(among));
        for it in &moves {
            let queue = led.iter().find(|queue| queue.queue == it.queue).unwrap();
            assert_eq!(it.from, queue.leader);
            assert!(queue.others.contains(&it.to) && among.contains(&it.to.0));
        }
        let now = |queue: &Led| {
            let moved = moves.iter().find(|it| it.queue == queue.queue);
            moved.map_or(queue.leader, |it| it.to)
        };
        let led_by = |node: &u64| led.iter().filter(|queue| now(queue).0 == *node).count();
        (among.iter().map(led_by).collect(), moves.len())
    }

    #[test]
    fn what_one_node_leads_is_spread_over_all_with_no_more_moves_than_that_takes() {
        let led: Vec<Led> = (1..=10).map(|it| queue(it, 1, &[2, 3])).collect();
        let (mut counts, moved) = after(&led, &[1, 2, 3]);
        counts.sort_unstable();
        assert_eq!((counts, moved), (vec![3, 3, 4], 6));
        assert_eq!(after(&led, &[1, 2]), (vec![5, 5], 5), "the third node is down");
        assert!(moves(&led[..1], &nodes(&[1, 2, 3])).is_empty());
        assert!(moves(&[], &nodes(&[])).is_empty());
    }

    #[test]
    fn what_is_even_stays_and_what_a_node_that_takes_no_part_leads_too() {
        let led = [queue(1, 1, &[2, 3]), queue(2, 2, &[1, 3]), queue(3, 2, &[1, 3])];
        assert!(moves(&led, &nodes(&[1, 2])).is_empty());
        assert_eq!(after(&led, &[1, 2, 3]), (vec![1, 1, 1], 1));
        assert!(moves(&led, &nodes(&[3])).is_empty());
    }

    #[test]
    fn a_node_gives_to_one_with_which_it_shares_nothing_by_way_of_a_third() {
        // Node 1 shares with node 2 only, node 2 with node 3.
        let mut led: Vec<Led> = (1..=4).map(|it| queue(it, 1, &[2])).collect();
        led.extend((5..=6).map(|it| queue(it, 2, &[3])));
        assert_eq!(after(&led, &[1, 2, 3]), (vec![2, 2, 2], 4));
    }

    #[test]
    fn no_single_or_longer_exchange_is_left_that_would_be_worth_it() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let (all, count) = (2 + random(5), random(30));
            let led: Vec<Led> = (0..count)
                .map(|it| {
                    let leader = 1 + random(all);
                    let others: Vec<u64> = (1..=all)
                        .filter(|node| *node != leader && random(2) == 0)
                        .collect();
                    queue(it, leader, &others)
                })
                .collect();
            let among = nodes(&(1..=all).collect::<Vec<u64>>());
            let planned = moves(&led, &among);
            let mut again = led.clone();
            for it in &planned {
                let queue = again.iter_mut().find(|queue| queue.queue == it.queue).unwrap();
                queue.others.retain(|node| *node != it.to);
                queue.others.push(queue.leader);
                queue.leader = it.to;
            }
            assert!(moves(&again, &among).is_empty());
            assert!(planned.len() <= led.len());
        }
    }
}
