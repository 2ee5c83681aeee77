//! Of a queue with a single active consumer one is active at a time, and stays so until it goes: by its own wish, or because
//! nodes can't know that it is still there. Nobody else is given anything, and who it is stands on record before.

use crate::cluster::ledger::Ledger;
use cluster::GroupId;
use queue::NodeConsumer;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a leader heard just before a node was cut off arrives so late.
const UNDER_WAY: Duration = Duration::from_secs(3);

/// Who consumes from a queue, and who of them was active.
#[derive(Default)]
pub struct Actives {
    /// Consumers that have not gone, and their nodes.
    there: BTreeMap<u64, u32>,
    /// All that were ever active.
    ever: BTreeSet<u64>,
    last: Option<Active>,
}

#[derive(Debug, Clone, Copy)]
struct Active {
    consumer: u64,
    node: Option<u32>,
    since: Duration,
}

impl Actives {
    /// The last one that was said to be active, if it is still there, and its node.
    pub fn active(&self) -> Option<(u64, u32)> {
        let number = self.last?.consumer;
        self.there.get(&number).map(|node| (number, *node))
    }

    /// All consumers of a node are gone.
    pub fn forget(&mut self, node: u32) {
        self.there.retain(|_, of| *of != node);
    }
}

/// Somebody begins to consume.
pub fn came(ledger: &mut Ledger, group: GroupId, node: u32, consumer: u64) {
    if let Some(book) = ledger.books.get_mut(&group) {
        book.actives.there.insert(consumer, node);
    }
}

/// Somebody consumes no more, or wants to.
pub fn went(ledger: &mut Ledger, group: GroupId, consumer: u64) {
    if let Some(book) = ledger.books.get_mut(&group) {
        book.actives.there.remove(&consumer);
    }
}

/// The leader of a term has said that this one is active from now on.
pub fn became(ledger: &mut Ledger, group: GroupId, term: u64, of: NodeConsumer) {
    let since = ledger.now;
    let leader = ledger.leaders.get(&(group, term)).map(|member| member.node.0);
    let Some(book) = ledger.books.get_mut(&group) else {
        return;
    };
    let consumer = of.consumer.0;
    let actives = &mut book.actives;
    actives.ever.insert(consumer);
    let node = actives.there.get(&consumer).copied();
    let now = Active {
        consumer,
        node,
        since,
    };
    let before = actives.last.replace(now);
    let there = |active: &Active| actives.there.contains_key(&active.consumer);
    let Some((before, of_it)) = before.filter(there).and_then(|it| Some((it, it.node?))) else {
        return;
    };
    let begun = before.since.saturating_sub(UNDER_WAY);
    if [Some(of_it), leader]
        .iter()
        .flatten()
        .all(|node| ledger.is_well_since(*node, begun))
    {
        let what = format!("{group:?}: {now:?} in term {term} after {before:?}, which is still there");
        ledger.violated("one consumer is active until it goes", what);
    }
}

/// A consumer is given something.
pub fn served(ledger: &mut Ledger, group: GroupId, consumer: u64) {
    let book = ledger.books.get(&group);
    let only = book.filter(|book| book.terms.settings.single_active);
    if only.is_some_and(|book| !book.actives.ever.contains(&consumer)) {
        let what = format!("{group:?} serves {consumer}");
        ledger.violated("only the active consumer is served", what);
    }
}
