//! What exchanges that keep something may do to messages, and what they may not: the ledger's invariants for what goes through
//! a deduplicating or a delayed exchange. Both have a home node, as the queue has. If the queue is on the home of a
//! deduplicating exchange, clients there ask what it remembers in the call; all other messages go to the exchange's home whole,
//! and on from there as dead letters do.
//!
//! | Invariant | Where |
//! |---|---|
//! | nothing confirmed is lost: it arrives, or one of its key that may have come before it | [`Ledger::is_lost`] |
//! | nothing is invented, and what was told to be a duplicate does not come | [`Ledger::given`], [`Exchanges::lets_through`] |
//! | of one key one message passes, and that is the first one of its publisher's | [`Ledger::passed_once`], [`Ledger::is_lost`] |
//! | the same message comes once | [`Ledger::given`] and [`Ledger::judge`], but for [`Exchanges::may_double`] |
//! | what passes keeps its publisher's order | [`Ledger::judge`], but for [`Ledger::may_be_overtaken`] |
//! | nothing comes before its time by the clock of the exchange's home | [`Exchanges::lets_through`] |

use super::ledger::{Id, Ledger, Sent};
use broker::groups::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Clocks count in milliseconds, and make up for small differences: something may be due so much earlier.
const EARLY_MS: u64 = 20;

/// A key is on record so long after its message has arrived: two looks of the monitor later, whose thread gets its turn among
/// others here.
const ON_RECORD_WITHIN: Duration = Duration::from_secs(3);

/// And as long as what was under way is not given up, the exchange's home hears within so many milliseconds that it has arrived.
const HEARD_WITHIN_MS: u64 = 4_000 + CLOCKS_APART_MS;

/// A node's clock goes on with the others' when it starts again, of which its threads may have been ahead.
const CLOCKS_APART_MS: u64 = 2_000;

/// What an exchange is to keep of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// That one of this key has passed.
    Key(u64),
    /// The message, for so many milliseconds.
    Delay(u64),
}

/// How a message went through an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Through {
    pub kept: Kept,
    /// When it was published.
    pub at: Duration,
    /// It goes straight to the queue if it is no duplicate: it was published on the home of both.
    pub direct: bool,
    /// What the home's clock showed then.
    pub home_ms: u64,
}

impl Through {
    /// Its key, if the exchange deduplicates.
    pub fn key(&self) -> Option<u64> {
        match self.kept {
            Kept::Key(key) => Some(key),
            Kept::Delay(_) => None,
        }
    }
}

/// The two exchanges, and what became of their nodes and of the queue's.
#[derive(Debug)]
pub struct Exchanges {
    /// The homes of the deduplicating exchange, of the delayed one and of the queue.
    pub homes: [NodeId; 3],
    /// What the clocks of the first two show, or showed when they stopped.
    pub clocks_ms: [u64; 2],
    /// How long a key is remembered, in milliseconds, if not for good.
    ttl_ms: Option<u64>,
    /// What is remembered is on record.
    on_disk: bool,
    /// What deduplicating exchanges said to be duplicates, in the call.
    pub duplicates: BTreeSet<Id>,
    /// When a delayed message may come at the earliest.
    due_ms: BTreeMap<Id, u64>,
    /// Which node stopped, and when, and whether in good order.
    stops: Vec<(NodeId, Duration, bool)>,
    /// Which two nodes had no link for so long that what was under way was given up, and until when at the last.
    breaks: BTreeMap<[NodeId; 2], Duration>,
    /// What clients saw first of a key's messages, by the clock of the exchange's home.
    passed_ms: BTreeMap<Id, u64>,
}

impl Exchanges {
    /// Nothing has gone through them.
    pub fn new(homes: [NodeId; 3], ttl_ms: Option<u64>, on_disk: bool) -> Self {
        Self {
            homes,
            ttl_ms,
            on_disk,
            clocks_ms: [0; 2],
            duplicates: BTreeSet::new(),
            due_ms: BTreeMap::new(),
            stops: Vec::new(),
            breaks: BTreeMap::new(),
            passed_ms: BTreeMap::new(),
        }
    }

    fn home(&self, through: &Through) -> NodeId {
        self.homes[usize::from(through.key().is_none())]
    }

    /// This has been published.
    pub fn takes(&mut self, id: Id, through: &Through) {
        if let Kept::Delay(ms) = through.kept {
            self.due_ms.insert(id, self.clocks_ms[1] + ms);
        }
    }

    /// A node stops, in good order or not. What was due there by its clock may be on its way.
    pub fn stops(&mut self, node: NodeId, at: Duration, in_order: bool) {
        self.stops.push((node, at, in_order));
        if node == self.homes[1] {
            let now_ms = self.clocks_ms[1];
            let due = self.due_ms.values_mut();
            due.filter(|due_ms| **due_ms <= now_ms + EARLY_MS)
                .for_each(|due_ms| *due_ms = 0);
        }
    }

    /// A node starts, and its clock shows this. What has not come to it yet has its delay from now on; `delay` knows it.
    pub fn starts(&mut self, node: NodeId, clock_ms: u64, delay: impl Fn(&Id) -> u64) {
        for at in 0..2 {
            if self.homes[at] == node {
                self.clocks_ms[at] = clock_ms;
            }
        }
        if self.homes[1] == node {
            for (id, due_ms) in &mut self.due_ms {
                *due_ms = (*due_ms).min(clock_ms + delay(id));
            }
        }
    }

    /// Two nodes, the lower one first, have had no link until now, for so long that what was under way was given up.
    pub fn breaks(&mut self, nodes: [NodeId; 2], until: Duration) {
        let known = self.breaks.entry(nodes).or_insert(until);
        *known = until.max(*known);
    }

    /// True if they have, and nobody knows that they speak with each other again.
    pub fn is_broken(&self, nodes: [NodeId; 2], now: Duration) -> bool {
        self.breaks.get(&nodes).is_some_and(|until| *until > now)
    }

    /// From now on things go through them: what has been before does not count.
    pub fn begins(&mut self) {
        self.breaks.clear();
    }

    /// A client is given this. It was no duplicate, and its time has come.
    pub fn lets_through(&mut self, id: Id, through: &Through) -> Result<(), String> {
        if self.duplicates.contains(&id) {
            return Err(format!("{id:?} was said to be a duplicate, and comes"));
        }
        if let Some(due_ms) = self.due_ms.get(&id)
            && self.clocks_ms[1] + EARLY_MS < *due_ms
        {
            let early_ms = due_ms - self.clocks_ms[1];
            return Err(format!("{id:?} comes {early_ms} ms before its time"));
        }
        if through.key().is_some() {
            self.passed_ms.entry(id).or_insert(self.clocks_ms[0]);
        }
        Ok(())
    }

    /// What went on from the exchange's home may come twice if that node or the queue's has stopped since, or if the two had no
    /// link for so long that nobody knows whether it had arrived (docs/clustering.md, decision 54).
    pub fn may_double(&self, through: &Through) -> bool {
        if through.direct {
            return false;
        }
        let nodes = [self.home(through), self.homes[2]];
        let stopped = |(node, at, _): &(NodeId, Duration, bool)| *at >= through.at && nodes.contains(node);
        self.stops.iter().any(stopped) || self.was_given_up(through)
    }

    fn was_given_up(&self, through: &Through) -> bool {
        let nodes = [self.home(through), self.homes[2]];
        let between = [nodes[0].min(nodes[1]), nodes[0].max(nodes[1])];
        let until = self.breaks.get(&between);
        until.is_some_and(|until| *until >= through.at)
    }
}

impl Ledger {
    /// This was confirmed: is it lost? `there` is what has arrived and stayed.
    pub(super) fn is_lost(&self, id: Id, sent: &Sent, through: &Through, there: &BTreeSet<Id>) -> bool {
        if there.contains(&id) {
            return false;
        }
        let nodes = [self.exchanges.home(through), self.exchanges.homes[2]];
        let stops = &self.exchanges.stops;
        if !sent.persistent && stops.iter().any(|(node, _, _)| nodes.contains(node)) {
            return false;
        }
        let Some(key) = through.key() else {
            return true;
        };
        // What came later of the same publisher was not there to be a duplicate of: the first one passes. If it was a duplicate
        // of another one's, and the home has stopped since, the later one may have passed before that one was sent on again.
        let stopped = |(node, at, _): &(NodeId, Duration, bool)| *node == nodes[0] && *at >= through.at;
        let stopped = stops.iter().any(stopped);
        let before = |other: &Id| other.0 != id.0 || other.1 < id.1 || stopped;
        let of_key = |other: &Id| self.through(other).is_some_and(|it| it.key() == Some(key));
        // One that passed so long ago was not known any more, if the home knew soon that it had arrived: its key lasts until
        // then.
        let was_known = |other: &Id| {
            let passed_ms = self.exchanges.passed_ms.get(other).copied();
            let heard_ms = match self.through(other) {
                Some(it) if self.exchanges.was_given_up(&it) => u64::MAX,
                _ => passed_ms.unwrap_or(u64::MAX).saturating_add(HEARD_WITHIN_MS),
            };
            let ttl_ms = self.exchanges.ttl_ms.unwrap_or(u64::MAX);
            heard_ms.saturating_add(ttl_ms) >= through.home_ms
        };
        let mut others = there.iter().filter(|other| of_key(other) && before(other));
        if others.any(was_known) {
            return false;
        }
        // Whoever is told of a duplicate in the call does not know that the first one is safe (docs/exchanges.md): it was not,
        // and is gone with that start of its node.
        let was_unsafe = |other: &Id| of_key(other) && before(other) && !self.confirmed.contains(other);
        !self.exchanges.duplicates.contains(&id) || !self.sent.keys().any(was_unsafe)
    }

    /// What went on while the queue's node could not be reached is sent again later, when others may have gone before. And what
    /// was a duplicate, and had not left the exchange when that forgot its key, is none any more.
    pub(super) fn may_be_overtaken(&self, id: &Id, through: &Through) -> bool {
        let is_like_it = |other: &Id| {
            let key = self.through(other).and_then(|it| it.key());
            other != id && key.is_some() && key == through.key()
        };
        self.exchanges.was_given_up(through)
            || self.exchanges.may_double(through) && self.arrived.keys().any(is_like_it)
    }

    fn through(&self, id: &Id) -> Option<Through> {
        self.sent.get(id).and_then(|sent| sent.through)
    }

    /// Of each key one message passes, as long as it is remembered that one has.
    pub(super) fn passed_once(&self) -> Result<(), String> {
        let mut by_key = BTreeMap::<u64, Vec<Id>>::new();
        for id in self.arrived.keys() {
            if let Some(key) = self.through(id).and_then(|it| it.key()) {
                by_key.entry(key).or_default().push(*id);
            }
        }
        for (key, ids) in by_key {
            for (at, one) in ids.iter().enumerate() {
                for other in &ids[at + 1..] {
                    let forgotten = self.may_be_forgotten(one) || self.may_be_forgotten(other);
                    if !forgotten && !self.are_apart(one, other) {
                        return Err(format!(
                            "{one:?} and {other:?} have the key {key}, and both have passed"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The exchange's home may have stopped before it was on record that this one has passed.
    fn may_be_forgotten(&self, id: &Id) -> bool {
        let (Some(through), Some(arrived)) = (self.through(id), self.arrived.get(id)) else {
            return false;
        };
        let [home, _, queue] = self.exchanges.homes;
        // What went on from there is on record once the home knows that it has arrived: soon, unless others have to say so.
        let until = match self.exchanges.on_disk && home == queue {
            true => *arrived + ON_RECORD_WITHIN,
            false => Duration::MAX,
        };
        let stops = self.exchanges.stops.iter();
        // Who stops in good order writes down what has passed, but for what is on its way.
        let forgets = |in_order: bool| !in_order || !self.exchanges.on_disk || !through.direct;
        let mut stops = stops.filter(|(node, at, _)| *node == home && *at >= through.at && *at <= until);
        stops.any(|(_, _, in_order)| forgets(*in_order))
    }

    /// The one may have passed after the time was over for which the other one was remembered.
    fn are_apart(&self, one: &Id, other: &Id) -> bool {
        let Some(ttl_ms) = self.exchanges.ttl_ms else {
            return false;
        };
        let came_ms = |id| self.through(id).map_or(0, |it| it.home_ms);
        let passed_ms = |id| self.exchanges.passed_ms.get(id).copied().unwrap_or(0);
        let between = |first, then| passed_ms(then).saturating_sub(came_ms(first)) + CLOCKS_APART_MS;
        between(one, other).max(between(other, one)) >= ttl_ms
    }
}
