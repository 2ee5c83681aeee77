//! Sets of conditions as paths of a trie: the conditions of a set, in order, lead from node to node.
//!
//! Conditions have numbers here, and those that nobody branches off between are one step and lie side by side. So a set that
//! has little in common with others costs no node for each of its conditions, and a message reads them in one go.

use super::index::Walked;
use crate::binding::Target;
use crate::routing::branches::Branches;
use crate::routing::{Found, Targets};
use smallvec::SmallVec;
use std::sync::Arc;

/// From so many conditions in a step on, it pays to have those that a message fulfils as bits.
const LONG: usize = 16;

/// Where the conditions on the way here have led.
#[derive(Clone, Debug, Default)]
pub(super) struct PathNode {
    /// What is wanted besides the condition that led here, before anything here counts.
    also: Option<Arc<[u32]>>,
    further: Branches<u32, PathNode>,
    targets: Targets,
}

impl PathNode {
    /// The end of a path that these conditions lead along.
    fn ending(also: &[u32], target: &Target) -> Self {
        let mut targets = Targets::default();
        targets.add(target);
        Self {
            also: kept(also),
            further: Branches::None,
            targets,
        }
    }

    fn also(&self) -> &[u32] {
        self.also.as_deref().unwrap_or_default()
    }

    /// Adds a target that wants these conditions. Depth is at most the number of entries in a table of arguments, here and below.
    pub(super) fn add(&mut self, conditions: &[u32], target: &Target) {
        let pairs = self.also().iter().zip(conditions);
        let common = pairs.take_while(|(known, wanted)| known == wanted).count();
        self.split(common);
        match conditions[common..].split_first() {
            None => self.targets.add(target),
            Some((first, rest)) => match self.further.get_mut(first) {
                Some(node) => Arc::make_mut(node).add(rest, target),
                None => *Arc::make_mut(self.further.get_or_insert(first)) = Self::ending(rest, target),
            },
        }
    }

    /// Only the first `length` conditions lead here from now on; the others lead on to what was here.
    fn split(&mut self, length: usize) {
        let Some(all) = self.also.take() else { return };
        let Some((first, rest)) = all[length..].split_first() else {
            self.also = Some(all);
            return;
        };
        let behind = Self {
            also: kept(rest),
            ..std::mem::take(self)
        };
        self.also = kept(&all[..length]);
        *Arc::make_mut(self.further.get_or_insert(first)) = behind;
    }

    /// Takes out a target that wanted these conditions.
    pub(super) fn remove(&mut self, conditions: &[u32], target: &Target) {
        let Some(rest) = conditions.strip_prefix(self.also()) else {
            return;
        };
        match rest.split_first() {
            None => self.targets.remove(target),
            Some((first, rest)) => self.further.prune(first, |node| {
                node.remove(rest, target);
                node.is_nothing()
            }),
        }
        self.join();
    }

    /// What nobody ends at or branches off from is no step of its own any more.
    fn join(&mut self) {
        if !self.targets.is_empty() {
            return;
        }
        match &mut self.further {
            Branches::None => self.also = None,
            Branches::One(first, behind) => {
                let behind = std::mem::take(Arc::make_mut(behind));
                let also = self.also.as_deref().unwrap_or_default();
                let also = [also, &[*first], behind.also()].concat();
                *self = Self {
                    also: kept(&also),
                    ..behind
                };
            }
            Branches::Many(_) => {}
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.further.is_empty() && self.targets.is_empty()
    }

    /// Visits every node whose conditions are all among these, which are in order, each once: there is one way to each.
    pub(super) fn walk(&self, fulfilled: &[u32], found: &mut Found<'_>, walked: &mut Walked) {
        let mut bits = Bits::default();
        let mut open: SmallVec<[(&PathNode, &[u32]); 16]> = SmallVec::new();
        open.push((self, fulfilled));
        while let Some((node, rest)) = open.pop() {
            let also = node.also();
            let passed = if also.len() < LONG {
                let passed = also
                    .iter()
                    .take_while(|number| rest.binary_search(number).is_ok());
                passed.count()
            } else {
                let bits = bits.of(fulfilled);
                also.iter().take_while(|number| bits.has(**number)).count()
            };
            walked.nodes += 1 + passed;
            if passed < also.len() {
                continue;
            }
            let rest = match also.last() {
                Some(last) => &rest[rest.partition_point(|number| number <= last)..],
                None => rest,
            };
            node.targets.give(found);
            match &node.further {
                Branches::None => {}
                Branches::One(number, behind) => {
                    if let Ok(at) = rest.binary_search(number) {
                        open.push((behind, &rest[at + 1..]));
                    }
                }
                Branches::Many(map) if map.len() < rest.len() => {
                    walked.lookups += map.len();
                    for (number, behind) in map {
                        if let Ok(at) = rest.binary_search(number) {
                            open.push((behind, &rest[at + 1..]));
                        }
                    }
                }
                Branches::Many(map) => {
                    walked.lookups += rest.len();
                    for (at, number) in rest.iter().enumerate() {
                        if let Some(behind) = map.get(number) {
                            open.push((behind, &rest[at + 1..]));
                        }
                    }
                }
            }
        }
    }

    /// How many nodes there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        let behind: Vec<&Arc<Self>> = match &self.further {
            Branches::None => Vec::new(),
            Branches::One(_, node) => vec![node],
            Branches::Many(map) => map.values().collect(),
        };
        1 + behind.into_iter().map(|node| node.count()).sum::<usize>()
    }
}

fn kept(conditions: &[u32]) -> Option<Arc<[u32]>> {
    (!conditions.is_empty()).then(|| conditions.into())
}

/// Numbers as bits, once somebody wants them.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    /// Of these numbers, which are in order.
    fn of(&mut self, numbers: &[u32]) -> &Self {
        if self.0.is_empty() {
            let words = numbers.last().map_or(0, |last| *last as usize / 64 + 1);
            self.0.resize(words, 0);
            for number in numbers {
                self.0[*number as usize / 64] |= 1 << (number % 64);
            }
        }
        self
    }

    fn has(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}
