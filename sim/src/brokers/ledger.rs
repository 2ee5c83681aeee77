//! What clients know of the messages that they sent to the queue, and what follows from that.

use model::Ranges;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A node that cannot be reached for so long counts as down, and what it says later of what its clients held may count no more.
const COUNTS_AS_DOWN: Duration = Duration::from_millis(1_800);

/// On which node it was published, and its number there.
pub type Id = (u32, u64);

/// A start of a node.
pub type Run = (u32, u64);

/// A delivery as for the first time.
#[derive(Debug)]
struct First {
    was_confirmed: bool,
    /// So many processes had ended by then.
    ends: u64,
}

/// A client was done with it.
#[derive(Debug)]
struct Accepted {
    by: Run,
    /// So much had ended and changed by when it was delivered.
    before: (u64, u64),
    /// When that was.
    since: Duration,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Ledger {
    pub sent: BTreeSet<Id>,
    pub confirmed: BTreeSet<Id>,
    pub refused: BTreeSet<Id>,
    accepted: BTreeMap<Id, Accepted>,
    first: BTreeMap<Id, First>,
    /// How often each was delivered.
    arrived: BTreeMap<Id, u64>,
    /// So many processes have ended.
    pub ends: u64,
    /// So often something else decides what becomes of the queue on a node: its own journal, or a group.
    pub changes: u64,
    /// When nodes could be reached again after so long that what their clients had till then may count no more.
    back: Vec<(u32, Duration)>,
    /// The queue is alone on a node at times, whose start is forgotten with what it had not written.
    pub is_alone_at_times: bool,
}

impl Ledger {
    /// The node says that these are safe.
    pub fn confirm(&mut self, node: u32, numbers: &Ranges) {
        self.confirmed.extend(numbers.iter().map(|it| (node, it)));
    }

    /// The node says that these are not.
    pub fn refuse(&mut self, node: u32, numbers: &Ranges) {
        self.refused.extend(numbers.iter().map(|it| (node, it)));
    }

    /// A client is given this.
    ///
    /// # Errors
    /// It was never sent, or comes as for the first time again.
    pub fn given(&mut self, id: Id, redelivered: bool) -> Result<(), String> {
        if !self.sent.contains(&id) {
            return Err(format!("{id:?} was invented"));
        }
        let ends = self.ends;
        *self.arrived.entry(id).or_default() += 1;
        if redelivered {
            return Ok(());
        }
        let was_confirmed = self.confirmed.contains(&id);
        let first = First { was_confirmed, ends };
        match self.first.insert(id, first) {
            // What was not written down may be sent again by its node.
            Some(before) if before.was_confirmed || before.ends == ends => {
                Err(format!("{id:?} comes as for the first time once more"))
            }
            _ => Ok(()),
        }
    }

    /// A node can be reached by another one again, after it could not for this time.
    pub fn is_back(&mut self, node: u32, after: Duration, now: Duration) {
        if after >= COUNTS_AS_DOWN {
            self.back.push((node, now));
        }
    }

    /// How often it was delivered.
    pub fn deliveries(&self, id: Id) -> u64 {
        self.arrived.get(&id).copied().unwrap_or(0)
    }

    /// So much has ended and changed.
    pub fn now(&self) -> (u64, u64) {
        (self.ends, self.changes)
    }

    /// A client is done with it, of which it has this delivery: it may have been given another one since.
    pub fn accept(&mut self, id: Id, (by, since): (Run, Duration), before: (u64, u64)) {
        let last = self.accepted.get(&id).map(|it| it.before);
        if last.is_none_or(|last| last <= before) {
            self.accepted.insert(id, Accepted { by, before, since });
        }
    }

    /// What was confirmed, nobody was done with, and is not among these.
    pub fn missing(&self, left: &[Id]) -> Vec<Id> {
        let is_known = |id: &&Id| left.contains(id) || self.accepted.contains_key(id);
        self.confirmed
            .iter()
            .filter(|id| !is_known(id))
            .copied()
            .collect()
    }

    /// What is in the queue in the end, in order, is what was promised: nothing that was confirmed is lost, nothing is there
    /// twice, what a client was done with is not there again if its node `runs` still, and what each node published stands in
    /// its order.
    ///
    /// # Errors
    /// It is not.
    pub fn judge(&self, left: &[Id], runs: impl Fn(Run) -> bool) -> Result<(), String> {
        let mut there = BTreeSet::new();
        if let Some(id) = left.iter().find(|id| !there.insert(**id)) {
            return Err(format!("{id:?} is there twice: {left:?}"));
        }
        let is_there = |id: &Id| there.contains(id) || self.accepted.contains_key(id);
        if let Some(id) = self.confirmed.iter().find(|id| !is_there(id)) {
            return Err(format!("{id:?} was confirmed and is lost; left are {left:?}"));
        }
        for id in left {
            // What a node that has the queue alone did not write before it ended is void.
            let now = self.now();
            // Nor does it count what a node says, also later, of what its clients had while it counted as down.
            let was_cut_off = |it: &Accepted| {
                let mut back = self.back.iter();
                back.any(|(node, at)| *node == it.by.0 && *at > it.since)
            };
            let lasts = |it: &Accepted| !self.is_alone_at_times || it.before == now;
            let counts = |it: &&Accepted| runs(it.by) && lasts(it) && !was_cut_off(it);
            if let Some(accepted) = self.accepted.get(id).filter(counts) {
                return Err(format!(
                    "{id:?} was done with by {:?}, and is there again",
                    accepted.by
                ));
            }
        }
        self.in_order(left)
    }

    /// What nobody was ever given stands where it was put.
    fn in_order(&self, left: &[Id]) -> Result<(), String> {
        let mut last = BTreeMap::<u32, Id>::new();
        for id in left.iter().filter(|id| self.deliveries(**id) == 1) {
            let before = last.insert(id.0, *id);
            if before.is_some_and(|before| before > *id) {
                return Err(format!("{before:?} and {id:?} have changed places: {left:?}"));
            }
        }
        Ok(())
    }
}
