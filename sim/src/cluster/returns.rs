//! What clients give back: what they reject, what they do not want to have any more, what they have had for too long.

use super::clients::Given;
use super::exercised::Deed;
use super::invariants::counts;
use super::ledger::Held;
use super::nodes::Cluster;
use cluster::GroupId;
use model::ConsumerId;
use queue::Request;
use std::collections::BTreeMap;
use std::time::Duration;

/// One message in so many is poison, where there is some, and so often somebody tries it where nobody gives up.
const POISON_ONE_IN: u64 = 16;
const MOST_FAILURES: u32 = 24;

/// How clients give messages back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// They have not seen them.
    Unseen,
    /// `basic.nack`, or they had them for too long.
    GivenBack,
    /// `basic.reject`, or their channel ended.
    Failed,
}

impl Cluster {
    /// Somebody gives back what it has, or has something to give back the next time.
    pub fn gives_back(&mut self) {
        let ways: Vec<(u32, GroupId)> = self.accesses.keys().copied().collect();
        for (node, group) in ways {
            if self.random.below(20) > 0 || !self.node(node).goes_on() {
                continue;
            }
            match self.held(node, group).is_empty() {
                true => self.get(node, group),
                false => self.give_back(node, group),
            }
        }
    }

    /// Somebody does.
    pub fn give_back(&mut self, node: u32, group: GroupId) {
        if let Some((consumer, some)) = self.some_held(node, group) {
            let way = match self.random.below(3) {
                0 => Way::GivenBack,
                _ => Way::Failed,
            };
            self.return_these(node, group, consumer, &some, way);
        }
    }

    /// A client gives these back.
    pub fn return_these(&mut self, node: u32, group: GroupId, from: Option<u64>, some: &[Given], way: Way) {
        for (seq, _) in some.iter().filter(|_| way != Way::Unseen) {
            let book = self.ledger.books.get(&group);
            let held = book.and_then(|book| book.hands.get(seq)).copied();
            if let Some(held) = held.filter(|held| held.node == node) {
                counts::gives_back(&mut self.ledger, group, *seq, &held, way == Way::Failed);
            }
        }
        let seqs = self.let_go(group, some);
        self.ledger
            .tell(|| format!("{group:?} on {node} is given back {some:?}, {way:?}"));
        let consumer = from.map(ConsumerId);
        let failed = way == Way::Failed;
        let request = match way {
            Way::GivenBack => Request::Requeue { consumer, seqs },
            Way::Unseen | Way::Failed => Request::Return {
                consumer,
                seqs,
                failed,
            },
        };
        self.ask(node, group, request);
    }

    /// What clients of a node hold for longer than the queue lets them goes back, and they consume no more: that is what a
    /// connection asks for then.
    pub fn time_out(&mut self, node: u32, group: GroupId) {
        let Some(most) = self.known_settings(node, group).consumer_timeout_ms else {
            return;
        };
        let late = |held: &Held| held.since + Duration::from_millis(most) <= self.ledger.now;
        let all = self.held(node, group).into_iter().filter(|(_, held)| late(held));
        let mut by_consumer: BTreeMap<Option<u64>, Vec<Given>> = BTreeMap::new();
        for (seq, held) in all {
            by_consumer.entry(held.consumer).or_default().push((seq, held.id));
        }
        for (consumer, some) in by_consumer {
            self.return_these(node, group, consumer, &some, Way::GivenBack);
            if let Some(number) = consumer.filter(|it| self.clients.stays(*it)) {
                self.ledger.exercised(Deed::Timeout);
                self.cancel(node, group, number);
            }
        }
    }

    /// Of some messages nobody can make anything.
    pub fn reject_poison(&mut self, node: u32, group: GroupId, from: Option<u64>, given: &[Given]) {
        if !self.terms[&group].has_poison {
            return;
        }
        let hands = self.ledger.books.get(&group).map(|book| &book.hands);
        let is_poison = |(seq, id): &&Given| {
            let held = hands.and_then(|hands| hands.get(seq));
            id % POISON_ONE_IN == 0 && held.is_some_and(|held| held.failures < MOST_FAILURES)
        };
        let poison: Vec<Given> = given.iter().filter(is_poison).copied().collect();
        if !poison.is_empty() {
            self.return_these(node, group, from, &poison, Way::Failed);
        }
    }
}
