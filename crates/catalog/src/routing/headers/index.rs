//! All bindings of a headers exchange, by their conditions.
//!
//! Each condition that some binding wants is there once, with a number. A binding that wants any of its conditions lies under
//! each of them. One that wants all of them is a path in a trie: their numbers, in order, lead from node to node. A message,
//! broken down into the conditions that it fulfils, walks every path that these allow: a node is visited only if the message
//! fulfils everything on the way to it.

use super::HeaderMatch;
use super::condition::{self, Kind};
use super::paths::PathNode;
use crate::binding::Target;
use crate::routing::{Found, Key, Sought, Targets};
use imbl::{OrdMap, OrdSet};
use model::table::{Entries, RawValue};
use smallvec::SmallVec;
use std::sync::Arc;

/// The bindings of one headers exchange. Cloning shares everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderIndex {
    /// How many conditions there are on headers of each name.
    names: OrdMap<Key, ConditionCounts>,
    conditions: OrdMap<Key, Condition>,
    /// Numbers that conditions had, to be given again: those of all conditions and these have no gap.
    free: OrdSet<u32>,
    /// Where all bindings together lead that want any of their conditions.
    reached: Targets,
    all: Arc<PathNode>,
}

/// What some binding wants.
#[derive(Clone, Debug)]
struct Condition {
    number: u32,
    /// How many bindings want it.
    bindings: u32,
    /// Where it leads by itself.
    targets: Targets,
}

/// How many conditions of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct ConditionCounts {
    values: usize,
    existences: usize,
    timestamps: usize,
}

impl HeaderIndex {
    pub(crate) fn add(&mut self, wanted: &HeaderMatch, target: &Target) {
        let mut numbers = Numbers::new();
        for key in &wanted.conditions {
            let condition = self.condition(key);
            condition.bindings += 1;
            numbers.push(condition.number);
            if wanted.any {
                condition.targets.add(target);
            }
        }
        if wanted.any {
            self.reached.add(target);
        } else {
            numbers.sort_unstable();
            Arc::make_mut(&mut self.all).add(&numbers, target);
        }
    }

    /// The condition, which may be a new one.
    fn condition(&mut self, key: &Key) -> &mut Condition {
        if !self.conditions.contains_key(key) {
            let number = match self.free.get_min().copied() {
                Some(number) => number,
                // Memory ends long before numbers do.
                None => self.conditions.len() as u32,
            };
            self.free.remove(&number);
            let name = Key::new(condition::name(key));
            *self.names.entry(name).or_default().of(key) += 1;
            let condition = Condition {
                number,
                bindings: 0,
                targets: Targets::default(),
            };
            self.conditions.insert(key.clone(), condition);
        }
        &mut self.conditions[key]
    }

    pub(crate) fn remove(&mut self, wanted: &HeaderMatch, target: &Target) {
        let mut numbers = Numbers::new();
        for key in &wanted.conditions {
            let Some(condition) = self.conditions.get_mut(key) else {
                continue;
            };
            numbers.push(condition.number);
            if wanted.any {
                condition.targets.remove(target);
            }
            condition.bindings -= 1;
            if condition.bindings == 0 {
                self.free.insert(condition.number);
                self.forget(key);
            }
        }
        if wanted.any {
            self.reached.remove(target);
        } else {
            numbers.sort_unstable();
            Arc::make_mut(&mut self.all).remove(&numbers, target);
        }
    }

    /// Nobody wants this condition any more.
    fn forget(&mut self, key: &Key) {
        self.conditions.remove(key);
        if self.conditions.is_empty() {
            self.free.clear();
        }
        let name = Sought::new(condition::name(key));
        if let Some(asked) = self.names.get_mut(&name) {
            *asked.of(key) -= 1;
            if asked.is_nothing() {
                self.names.remove(&name);
            }
        }
    }

    /// True if there is no binding.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
            && self.conditions.is_empty()
            && self.free.is_empty()
            && self.reached.is_empty()
            && self.all.is_nothing()
    }

    /// How many nodes the paths have.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.all.count()
    }

    /// Gives the targets of all bindings that a message with these encoded headers goes through, perhaps repeated; returns
    /// what that took. Of a header that comes twice the first one counts.
    pub(crate) fn find(&self, headers: &[u8], found: &mut Found<'_>) -> Walked {
        let mut walked = Walked::default();
        let mut numbers = Numbers::new();
        let mut bytes = Vec::new();
        let begin = found.mark();
        let reached = self.reached.len();
        let mut all_found = reached == 0;
        for (name, value, asked) in self.asked_for(headers) {
            for kind in asked.kinds() {
                bytes.clear();
                if !condition::fulfilled(kind, name, value, &mut bytes) {
                    continue;
                }
                walked.lookups += 1;
                let Some(condition) = self.conditions.get(&Sought::new(&bytes)) else {
                    continue;
                };
                numbers.push(condition.number);
                if all_found {
                    continue;
                }
                condition.targets.give(found);
                // Who fulfils very many conditions comes to the same few targets again and again.
                let given = found.since(begin);
                if given >= 2 * reached {
                    let distinct = found.distinct_since(begin);
                    walked.repeated += given - distinct;
                    all_found = distinct == reached;
                }
            }
        }
        numbers.sort_unstable();
        self.all.walk(&numbers, found, &mut walked);
        walked
    }

    /// The headers that some binding asks for.
    fn asked_for<'a>(&self, headers: &'a [u8]) -> SmallVec<[(&'a [u8], RawValue<'a>, ConditionCounts); 16]> {
        let mut asked_for = SmallVec::new();
        if self.names.is_empty() {
            return asked_for;
        }
        for (name, value) in Entries::new(headers).map_while(Result::ok) {
            if let Some(asked) = self.names.get(&Sought::new(name)) {
                asked_for.push((name, value, *asked));
            }
        }
        // Stable: the first one of a name stays the first.
        if asked_for.len() > 1 {
            asked_for.sort_by_key(|(name, ..)| *name);
            asked_for.dedup_by_key(|(name, ..)| *name);
        }
        asked_for
    }
}

/// Numbers of conditions.
type Numbers = SmallVec<[u32; 16]>;

/// What it took to find the bindings of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Nodes that were visited, and conditions that were passed on the way.
    pub(crate) nodes: usize,
    /// Conditions that were looked for, at all of them.
    pub(crate) lookups: usize,
    /// Targets that were found once more and dropped.
    pub(crate) repeated: usize,
}

impl Walked {
    /// All of it.
    pub(crate) fn steps(self) -> usize {
        self.nodes + self.lookups + self.repeated
    }
}

impl ConditionCounts {
    fn of(&mut self, condition: &Key) -> &mut usize {
        match condition::kind_of(condition) {
            Kind::Value => &mut self.values,
            Kind::Exists => &mut self.existences,
            Kind::Timestamp => &mut self.timestamps,
        }
    }

    fn is_nothing(&self) -> bool {
        self.values + self.existences + self.timestamps == 0
    }

    /// What has to be asked of a header. A message's timestamp is a value that a binding's timestamp wants.
    fn kinds(self) -> impl Iterator<Item = Kind> {
        [
            (Kind::Value, self.values + self.timestamps),
            (Kind::Exists, self.existences),
            (Kind::Timestamp, self.timestamps),
        ]
        .into_iter()
        .filter_map(|(kind, count)| (count > 0).then_some(kind))
    }
}
