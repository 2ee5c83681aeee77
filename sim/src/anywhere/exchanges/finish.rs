//! The end of a seed: everything heals, and what was promised must be there.

use super::super::ledger::Id;
use super::super::node::Node;
use super::{Exchanges, NODES, Theme, pairs};
use crate::world::until_power_cut;

/// Once everything has healed, all publishes are answered and what is held comes back within so many ticks.
const SERVES_WITHIN: usize = 100;

/// And everything that exchanges kept has arrived within so many: it is tried again after half a minute at the most, and may have
/// a delay by a clock that shows less than before.
const ARRIVES_WITHIN: usize = 400;

/// Nobody needs handles and sessions that have been idle for so many ticks.
const IDLE: usize = 150;

impl Exchanges {
    /// Everything heals. All are answered, all arrives, the queue is emptied, and nothing is left of those who have nothing
    /// more to ask.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        for at in 0..NODES {
            // The power that is to fail has failed by then.
            if self.places[at].node.is_some() && self.places[at].fails {
                self.end(at, false)?;
            }
        }
        self.hear()?;
        for at in 0..NODES {
            if self.places[at].node.is_none() {
                self.start(at)?;
            }
        }
        pairs().for_each(|pair| self.cut(pair));
        let through_third = self.random.below(2 * NODES as u64) as usize;
        for (at, pair) in pairs().enumerate() {
            // These two reach each other through the third one, and no other way.
            if at != through_third || self.theme == Theme::Blinks {
                self.link(pair);
            }
        }
        self.within(SERVES_WITHIN, "nobody answers", |run| {
            run.nodes().all(|it| it.open.is_empty() && it.asked.is_empty())
        })?;
        for at in 0..NODES {
            self.give_all_back(at)?;
        }
        self.within(SERVES_WITHIN, "what was given back is still held", |run| {
            run.queue_home()
                .is_some_and(|it| it.has_nothing_held() && it.asked.is_empty())
        })?;
        self.within(ARRIVES_WITHIN, "exchanges still keep something", |run| {
            run.nodes().all(Node::has_nothing_kept)
        })?;
        let left = self.drain()?;
        let starts = self.places[self.ledger.exchanges.homes[2].0 as usize - 1].starts;
        self.ledger.judge(&left, starts)?;
        self.count(&left);
        for _ in 0..IDLE {
            self.settle_down()?;
        }
        let counts: Vec<_> = self.nodes().map(|it| it.work.counts()).collect();
        match counts.iter().all(|it| *it == (0, 0)) {
            true => Ok(()),
            false => Err(format!("handles and sessions remain: {counts:?}")),
        }
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.places.iter().filter_map(|place| place.node.as_ref())
    }

    fn queue_home(&self) -> Option<&Node> {
        let home = self.ledger.exchanges.homes[2];
        self.places[home.0 as usize - 1].node.as_ref()
    }

    /// Waits for something, for so many turns at the most.
    fn within(&mut self, turns: usize, else_: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        for _ in 0..turns {
            if is_so(self) {
                return Ok(());
            }
            self.settle_down()?;
        }
        Err(format!("after everything has healed, {else_}"))
    }

    /// A client ends its consumers, and gives back what it holds.
    fn give_all_back(&mut self, at: usize) -> Result<(), String> {
        while let Some(node) = self.places[at]
            .node
            .as_mut()
            .filter(|it| !it.consumers.is_empty())
        {
            node.cancel();
        }
        self.settle_down()?;
        if let Some(node) = &mut self.places[at].node {
            let held = std::mem::take(&mut node.held);
            held.iter().for_each(|held| node.settle(held, true));
        }
        self.settle_down()
    }

    /// A turn in which everything arrives and everything is synced.
    fn settle_down(&mut self) -> Result<(), String> {
        self.turn(0)?;
        loop {
            let next = self.wire.lock().pop_front();
            if let Some((from, to, bytes)) = next {
                self.deliver(from, to, &bytes)?;
                continue;
            }
            let mut stepped = false;
            for node in self.nodes() {
                stepped |= until_power_cut(|| node.world.step()) == Some(true);
            }
            if !stepped && self.wire.lock().is_empty() {
                (0..NODES).for_each(|at| self.look_at_clock(at));
                return self.hear();
            }
        }
    }

    /// All that is in the queue, in order.
    fn drain(&mut self) -> Result<Vec<Id>, String> {
        let mut left = Vec::new();
        for _ in 0..10_000 {
            self.places[0].node.iter_mut().for_each(Node::get);
            self.within(SERVES_WITHIN, "a get has no answer", |run| {
                run.nodes().all(|it| it.asked.is_empty())
            })?;
            let held = self.places[0].node.as_mut().and_then(|it| it.held.pop());
            let Some(held) = held else {
                return self.settle_down().map(|()| left);
            };
            left.push(held.id);
            if let Some(node) = &self.places[0].node {
                node.settle(&held, false);
            }
        }
        Err("the queue has no end".to_owned())
    }

    fn count(&mut self, left: &[Id]) {
        for id in self.ledger.arrived.keys() {
            let through = self.ledger.sent.get(id).and_then(|sent| sent.through);
            let has_key = through.is_some_and(|it| it.key().is_some());
            self.counts[if has_key { 5 } else { 6 }] += 1;
        }
        let mut there = self.ledger.accepted.clone();
        self.counts[7] += left.iter().filter(|id| !there.insert(**id)).count() as u64;
    }
}
