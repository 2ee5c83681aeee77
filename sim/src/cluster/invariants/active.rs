//! Of a queue with a single active consumer one is active at a time, and stays so until it goes: by its own wish, or because
//! nodes can't know that it is still there. Nobody else is given anything, and who it is stands on record before.

use super::deliveries::Receiver;
use crate::cluster::exercised::Deed;
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
    there: BTreeMap<u64, Consumer>,
    /// All that were ever active.
    ever: BTreeSet<u64>,
    last: Option<Active>,
}

/// A consumer that has not gone.
#[derive(Debug, Clone, Copy)]
struct Consumer {
    node: u32,
    priority: i64,
    /// It was told that it consumes.
    since: Option<Duration>,
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
        self.there.get(&number).map(|it| (number, it.node))
    }

    /// All consumers of a node are gone.
    pub fn forget(&mut self, node: u32) {
        self.there.retain(|_, it| it.node != node);
    }
}

/// Somebody begins to consume.
pub fn came(ledger: &mut Ledger, group: GroupId, node: u32, consumer: u64, priority: i64) {
    if let Some(book) = ledger.books.get_mut(&group) {
        let since = None;
        let it = Consumer {
            node,
            priority,
            since,
        };
        book.actives.there.insert(consumer, it);
    }
}

/// It was told that it does.
pub fn stands(ledger: &mut Ledger, group: GroupId, consumer: u64) {
    let now = ledger.now;
    let book = ledger.books.get_mut(&group);
    if let Some(it) = book.and_then(|book| book.actives.there.get_mut(&consumer)) {
        it.since.get_or_insert(now);
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
    let node = actives.there.get(&consumer).map(|it| it.node);
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
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let begun = before.since.saturating_sub(UNDER_WAY);
    let priority = |consumer| book.actives.there.get(&consumer).map(|it| it.priority);
    let is_higher = priority(consumer).is_none_or(|it| Some(it) > priority(before.consumer));
    let makes_room = is_higher && book.terms.settings().active_by_priority;
    let held = book.hands.values().find(|held| {
        let is_its = held.consumer == Some(before.consumer);
        is_its && ledger.is_well_since(held.node, held.since)
    });
    let held = held.copied();
    let are_well = [Some(of_it), leader]
        .iter()
        .flatten()
        .all(|node| ledger.is_well_since(*node, begun));
    let told = format!("{group:?}: {now:?} in term {term} after {before:?}, which is still there");
    match (are_well, makes_room, held) {
        (true, false, _) => ledger.violated("one consumer is active until it goes", told),
        (true, true, Some(held)) => {
            let what = format!("{told} and has {held:?}");
            ledger.violated("the active consumer makes room once it has nothing", what);
        }
        (_, true, None) => ledger.exercised(Deed::Yields),
        _ => {}
    }
}

/// A consumer is given something. Once one of a higher priority is there, it gets nothing more.
pub fn served(ledger: &mut Ledger, group: GroupId, to: Receiver) {
    let Some(consumer) = to.consumer else { return };
    let book = ledger.books.get(&group);
    let only = book.filter(|book| book.terms.settings().single_active);
    let Some(book) = only else { return };
    if !book.actives.ever.contains(&consumer) {
        let what = format!("{group:?} serves {consumer}");
        return ledger.violated("only the active consumer is served", what);
    }
    let there = &book.actives.there;
    let priority = there.get(&consumer).map(|it| it.priority);
    let waits = |it: &&Consumer| Some(it.priority) > priority && priority.is_some();
    let begun = there.values().filter(waits).filter_map(|it| it.since).min();
    let begun = begun.filter(|_| book.terms.settings().active_by_priority);
    if let Some(begun) =
        begun.filter(|begun| *begun + UNDER_WAY < to.since && ledger.all_are_well_since(*begun))
    {
        let what = format!("{group:?} serves {consumer}, one of a higher priority is there since {begun:?}");
        return ledger.violated("the active consumer makes room once it has nothing", what);
    }
    ledger.exercised(Deed::Active);
}
