//! Topic patterns as a trie of words.
//!
//! Words are what stands between dots; the empty key has no word at all, as in RabbitMQ. `*` is one word, `#` any
//! number of them, and both only when they stand alone. A key walks through the trie as through a
//! non-deterministic automaton: it is in a set of nodes at once, each node at most once, so the work is bounded by
//! words × nodes whatever the patterns are.

use super::branches::Branches;
use super::{Found, Key, Sought, Targets};
use crate::binding::{NamedBinding, Target};
use smallvec::SmallVec;
use std::sync::Arc;

/// The patterns of one topic exchange.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trie {
    root: Arc<TopicNode>,
}

#[derive(Clone, Debug, Default)]
struct TopicNode {
    words: Branches<Key, TopicNode>,
    /// The node behind `*`.
    star: Option<Arc<TopicNode>>,
    /// The node behind `#`.
    hash: Option<Arc<TopicNode>>,
    /// True if this is the node behind a `#`: words may pass while it stays.
    stays: bool,
    targets: Targets,
}

/// The words of a key or pattern.
fn words(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    key.split(|byte| *byte == b'.').skip(usize::from(key.is_empty()))
}

/// How many `#` a pattern may have: RabbitMQ 4.3.5's limit.
const HASHES: usize = 2;

/// # Errors
/// RabbitMQ's text if the pattern has too many `#`.
pub(crate) fn check_binding(binding: &NamedBinding) -> Result<(), String> {
    let pattern = &binding.routing_key;
    let hashes = words(pattern).filter(|word| *word == b"#").count();
    if hashes <= HASHES {
        return Ok(());
    }
    let key = String::from_utf8_lossy(pattern);
    Err(format!(
        "Topic binding key '{key}' uses {hashes} '#' wildcards, at most {HASHES} are allowed"
    ))
}

impl Trie {
    pub(crate) fn add(&mut self, pattern: &[u8], target: &Target) {
        let mut node = Arc::make_mut(&mut self.root);
        for word in words(pattern) {
            node = node.behind_mut(word);
        }
        node.targets.add(target);
    }

    pub(crate) fn remove(&mut self, pattern: &[u8], target: &Target) {
        let words: SmallVec<[&[u8]; 16]> = words(pattern).collect();
        Arc::make_mut(&mut self.root).remove(&words, target);
    }

    /// Gives the targets of all patterns that match; returns how many nodes were visited.
    pub(crate) fn find(&self, key: &[u8], found: &mut Found<'_>) -> usize {
        let mut now: Walkers<'_> = SmallVec::new();
        let mut next: Walkers<'_> = SmallVec::new();
        enter(&mut now, &self.root);
        let mut visited = now.len();
        for word in words(key) {
            let word = Sought::new(word);
            for &node in &now {
                if node.stays {
                    enter(&mut next, node);
                }
                if let Some(behind) = node.words.get(&word) {
                    enter(&mut next, behind);
                }
                if let Some(behind) = &node.star {
                    enter(&mut next, behind);
                }
            }
            // A node behind `#` is reached both from before it and by staying.
            if next.len() > 1 {
                next.sort_unstable_by_key(|node| std::ptr::from_ref(*node));
                next.dedup_by(|a, b| std::ptr::eq(*a, *b));
            }
            visited += next.len();
            std::mem::swap(&mut now, &mut next);
            next.clear();
            if now.is_empty() {
                break;
            }
        }
        now.iter().for_each(|node| node.targets.give(found));
        visited
    }
}

type Walkers<'a> = SmallVec<[&'a TopicNode; 16]>;

/// Adds a node, and those behind its `#`, which may stand for no word at all.
fn enter<'a>(walkers: &mut Walkers<'a>, mut node: &'a TopicNode) {
    walkers.push(node);
    while let Some(behind) = &node.hash {
        walkers.push(behind);
        node = behind;
    }
}

impl TopicNode {
    fn behind_mut(&mut self, word: &[u8]) -> &mut TopicNode {
        let node = match word {
            b"*" => self.star.get_or_insert_default(),
            b"#" => self.hash.get_or_insert_with(|| {
                Arc::new(TopicNode {
                    stays: true,
                    ..TopicNode::default()
                })
            }),
            _ => self.words.get_or_insert(&Key::new(word)),
        };
        Arc::make_mut(node)
    }

    /// Depth is at most the number of words in a short string.
    fn remove(&mut self, words: &[&[u8]], target: &Target) {
        let Some((word, rest)) = words.split_first() else {
            self.targets.remove(target);
            return;
        };
        match *word {
            b"*" => prune(&mut self.star, rest, target),
            b"#" => prune(&mut self.hash, rest, target),
            word => self.words.prune(&Sought::new(word), |node| {
                node.remove(rest, target);
                node.is_empty()
            }),
        }
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.star.is_none() && self.hash.is_none() && self.targets.is_empty()
    }
}

fn prune(slot: &mut Option<Arc<TopicNode>>, rest: &[&[u8]], target: &Target) {
    let Some(node) = slot else { return };
    let node = Arc::make_mut(node);
    node.remove(rest, target);
    if node.is_empty() {
        *slot = None;
    }
}

#[cfg(test)]
mod tests;
