//! All bindings of a headers exchange, by their conditions.
//!
//! A binding that wants any of its conditions lies under each of them. One that wants all of them is a path in a trie: its
//! conditions in order lead from node to node. A message, broken down into the conditions that it fulfils, walks every path
//! that these allow: a node is visited only if the message fulfils everything on the way to it.

use super::HeaderMatch;
use super::condition::{self, Kind};
use crate::binding::Target;
use crate::routing::branches::Branches;
use crate::routing::{Found, Key, Sought, Targets};
use equivalent::Comparable;
use imbl::OrdMap;
use model::table::{Entries, RawValue};
use smallvec::SmallVec;
use std::sync::Arc;

/// The bindings of one headers exchange. Cloning shares everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderIndex {
    /// How many conditions there are on headers of each name.
    names: OrdMap<Key, Asked>,
    any: OrdMap<Key, Targets>,
    all: Arc<Node>,
}

/// How many conditions of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    values: usize,
    existences: usize,
    timestamps: usize,
}

/// Where the conditions on the way here have led.
#[derive(Clone, Debug, Default)]
struct Node {
    further: Branches<Node>,
    targets: Targets,
}

impl HeaderIndex {
    pub(crate) fn add(&mut self, wanted: &HeaderMatch, target: &Target) {
        for condition in &wanted.conditions {
            let name = Key::new(condition::name(condition));
            *self.names.entry(name).or_default().of(condition) += 1;
        }
        if wanted.any {
            for condition in &wanted.conditions {
                self.any.entry(condition.clone()).or_default().add(target);
            }
            return;
        }
        let mut node = Arc::make_mut(&mut self.all);
        for condition in &wanted.conditions {
            node = Arc::make_mut(node.further.get_or_insert(condition));
        }
        node.targets.add(target);
    }

    pub(crate) fn remove(&mut self, wanted: &HeaderMatch, target: &Target) {
        for condition in &wanted.conditions {
            let name = Sought::new(condition::name(condition));
            if let Some(asked) = self.names.get_mut(&name) {
                *asked.of(condition) -= 1;
                if asked.is_nothing() {
                    self.names.remove(&name);
                }
            }
        }
        if !wanted.any {
            Arc::make_mut(&mut self.all).remove(&wanted.conditions, target);
            return;
        }
        for condition in &wanted.conditions {
            let Some(targets) = self.any.get_mut(condition) else {
                continue;
            };
            targets.remove(target);
            if targets.is_empty() {
                self.any.remove(condition);
            }
        }
    }

    /// True if there is no binding.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.any.is_empty() && self.all.is_nothing()
    }

    /// Gives the targets of all bindings that a message with these encoded headers goes through, perhaps repeated; returns
    /// what that took. Of a header that comes twice the first one counts.
    pub(crate) fn find(&self, headers: &[u8], found: &mut Found<'_>) -> Walked {
        let mut bytes = Vec::new();
        let mut ends = SmallVec::<[usize; 32]>::new();
        for (name, value, asked) in self.asked_for(headers) {
            for kind in asked.kinds() {
                let begin = bytes.len();
                if condition::fulfilled(kind, name, value, &mut bytes) {
                    ends.push(bytes.len());
                } else {
                    bytes.truncate(begin);
                }
            }
        }
        let mut begin = 0;
        let mut fulfilled: Fulfilled<'_> = ends
            .iter()
            .map(|end| Sought::new(&bytes[std::mem::replace(&mut begin, *end)..*end]))
            .collect();
        fulfilled.sort_unstable();
        if !self.any.is_empty() {
            for condition in &fulfilled {
                if let Some(targets) = self.any.get(condition) {
                    targets.give(found);
                }
            }
        }
        walk(&self.all, &fulfilled, found)
    }

    /// The headers that some binding asks for.
    fn asked_for<'a>(&self, headers: &'a [u8]) -> SmallVec<[(&'a [u8], RawValue<'a>, Asked); 16]> {
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

/// What it took to find the bindings of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Nodes that were visited.
    pub(crate) nodes: usize,
    /// Conditions that were looked for, at all of them.
    pub(crate) lookups: usize,
}

/// What a message fulfils, in order.
type Fulfilled<'a> = SmallVec<[Sought<'a>; 16]>;

/// Visits every node whose conditions are all fulfilled, each once: there is one way to each.
fn walk(root: &Node, fulfilled: &[Sought<'_>], found: &mut Found<'_>) -> Walked {
    let mut walked = Walked {
        nodes: 0,
        lookups: fulfilled.len(),
    };
    let mut open: SmallVec<[(&Node, &[Sought<'_>]); 16]> = SmallVec::new();
    open.push((root, fulfilled));
    while let Some((node, rest)) = open.pop() {
        walked.nodes += 1;
        node.targets.give(found);
        match &node.further {
            Branches::None => {}
            Branches::One(condition, behind) => {
                if let Ok(at) = rest.binary_search_by(|sought| sought.compare(condition)) {
                    open.push((behind, &rest[at + 1..]));
                }
            }
            Branches::Many(map) => {
                walked.lookups += rest.len();
                for (at, condition) in rest.iter().enumerate() {
                    if let Some(behind) = map.get(condition) {
                        open.push((behind, &rest[at + 1..]));
                    }
                }
            }
        }
    }
    walked
}

impl Node {
    /// Depth is at most the number of entries in a table of arguments.
    fn remove(&mut self, conditions: &[Key], target: &Target) {
        match conditions.split_first() {
            None => self.targets.remove(target),
            Some((first, rest)) => self.further.prune(&first.sought(), |node| {
                node.remove(rest, target);
                node.is_nothing()
            }),
        }
    }

    fn is_nothing(&self) -> bool {
        self.further.is_empty() && self.targets.is_empty()
    }
}

impl Asked {
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
