//! What clients know of the messages that they sent to a queue, and what follows from that: directly as here, or through
//! exchanges that keep something (`kept`).

use super::kept::{Exchanges, Through};
use model::Ranges;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// On which node it was published, and its number there.
pub type Id = (u32, u64);

/// What a client has sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    pub persistent: bool,
    /// The exchange, if it went through one that keeps something.
    pub through: Option<Through>,
}

/// See the module.
#[derive(Debug)]
pub struct Ledger {
    pub sent: BTreeMap<Id, Sent>,
    pub confirmed: BTreeSet<Id>,
    pub refused: BTreeSet<Id>,
    pub accepted: BTreeSet<Id>,
    /// What was delivered as for the first time, in which start of the queue's node.
    seen: BTreeMap<Id, u64>,
    /// What was confirmed, and lasts, when a start of the queue's node began: what was delivered of the rest may be sent again.
    safe: BTreeMap<u64, BTreeSet<Id>>,
    /// When clients saw each message first.
    pub arrived: BTreeMap<Id, Duration>,
    /// The exchanges that messages go through, and what became of them.
    pub exchanges: Exchanges,
}

impl Ledger {
    /// Nothing was sent, and messages may go through these exchanges.
    pub fn new(exchanges: Exchanges) -> Self {
        Self {
            sent: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            refused: BTreeSet::new(),
            accepted: BTreeSet::new(),
            seen: BTreeMap::new(),
            safe: BTreeMap::new(),
            arrived: BTreeMap::new(),
            exchanges,
        }
    }

    /// The node says that these are safe.
    pub fn confirm(&mut self, node: u32, numbers: &Ranges) {
        self.confirmed.extend(numbers.iter().map(|it| (node, it)));
    }

    /// The node says that these are not.
    pub fn refuse(&mut self, node: u32, numbers: &Ranges) {
        self.refused.extend(numbers.iter().map(|it| (node, it)));
    }

    /// The queue's node is about to begin this start.
    pub fn begins(&mut self, start: u64) {
        let lasts = |id: &&Id| self.sent.get(id).is_some_and(|sent| sent.persistent);
        let safe = self.confirmed.iter().filter(lasts).copied().collect();
        self.safe.insert(start, safe);
    }

    /// A client is given this by that start of the queue's node.
    ///
    /// # Errors
    /// It was never sent, comes as for the first time again, or an exchange should have kept it.
    pub fn given(&mut self, id: Id, redelivered: bool, start: u64, now: Duration) -> Result<(), String> {
        let Some(sent) = self.sent.get(&id) else {
            return Err(format!("{id:?} was invented"));
        };
        if let Some(through) = &sent.through {
            self.exchanges.lets_through(id, through)?;
        }
        self.arrived.entry(id).or_insert(now);
        if redelivered {
            return Ok(());
        }
        let seen = self.seen.entry(id).or_insert(0);
        let (one, other) = (start.min(*seen), start.max(*seen));
        *seen = other;
        let is_safe = self.safe.get(&other).is_some_and(|safe| safe.contains(&id));
        if (one == other || one > 0 && is_safe)
            && !sent.through.is_some_and(|it| self.exchanges.may_double(&it))
        {
            return Err(format!("{id:?} comes as for the first time once more"));
        }
        Ok(())
    }

    /// What is in the queue in the end, in order, after so many starts of its node, must be what was promised: nothing that was
    /// confirmed is lost, nothing is there twice, and what each node published stands in its order.
    ///
    /// # Errors
    /// It is not.
    pub fn judge(&self, left: &[Id], starts: u64) -> Result<(), String> {
        let there: BTreeSet<Id> = left.iter().chain(&self.accepted).copied().collect();
        self.nothing_twice(left)?;
        for id in &self.confirmed {
            let sent = self.sent.get(id).copied().unwrap_or_default();
            let is_lost = match &sent.through {
                Some(through) => self.is_lost(*id, &sent, through, &there),
                None => (sent.persistent || starts == 1) && !there.contains(id),
            };
            if is_lost {
                return Err(format!("{id:?} was confirmed and is lost; left are {left:?}"));
            }
        }
        self.passed_once()?;
        self.in_order(left)
    }

    fn nothing_twice(&self, left: &[Id]) -> Result<(), String> {
        let mut there = BTreeSet::new();
        for id in left.iter().filter(|id| !there.insert(**id)) {
            let through = self.sent.get(id).and_then(|sent| sent.through);
            if !through.is_some_and(|it| self.exchanges.may_double(&it)) {
                return Err(format!("{id:?} is there twice: {left:?}"));
            }
        }
        Ok(())
    }

    fn in_order(&self, left: &[Id]) -> Result<(), String> {
        // Of what went through a delayed exchange each has a time of its own. What was accepted may stand there once more, behind
        // others, if it came twice.
        let keeps_its_place = |id: &&Id| {
            let through = self.sent.get(id).and_then(|sent| sent.through);
            through.is_none_or(|it| it.key().is_some() && !self.accepted.contains(id))
        };
        let mut last = BTreeMap::<u32, Id>::new();
        let mut there = BTreeSet::new();
        for id in left.iter().filter(keeps_its_place) {
            if !there.insert(*id) {
                continue;
            }
            let before = last.insert(id.0, *id);
            let through = self.sent.get(id).and_then(|sent| sent.through);
            if before.is_some_and(|before| before > *id)
                && !through.is_some_and(|it| self.may_be_overtaken(id, &it))
            {
                return Err(format!("{before:?} and {id:?} have changed places: {left:?}"));
            }
        }
        Ok(())
    }
}
