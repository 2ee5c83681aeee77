//! What the node that leads knows of other nodes' readers in groups, and of those nodes.

use super::{AGAIN_MS, DOWN_MS, Others, SILENT_MS};
use crate::stream::asked::GroupWord;
use crate::stream::groups::{Groups, Update};
use model::ConsumerId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A group, as far as it is on this node.
pub(super) type OfNode = (u32, Arc<[u8]>);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Far {
    groups: BTreeMap<OfNode, Readers>,
    /// Whose reader has this name.
    whose: BTreeMap<ConsumerId, (OfNode, ConsumerId)>,
    /// That of the last word. It rises in all terms.
    number: u64,
    /// Those that are to be said something of.
    due: BTreeSet<OfNode>,
    /// When this node began to lead.
    since_ms: u64,
    /// When nodes were lost last.
    lost_ms: BTreeMap<u32, u64>,
    /// The nodes that have said that nobody reads there by an earlier term's word.
    follow: BTreeSet<u32>,
    /// Those are asked that have not.
    asks: Option<Asks>,
    /// When one of the readers' nodes counts as silent.
    silent_at_ms: u64,
}

#[derive(Debug)]
struct Readers {
    /// Of their node's names this one's.
    names: BTreeMap<ConsumerId, ConsumerId>,
    /// The number of its node's last word.
    heard: u64,
    /// That of the last word to it, and who was active by it.
    number: u64,
    said: Option<ConsumerId>,
    /// They are gone then.
    ends_at_ms: u64,
}

#[derive(Debug)]
struct Asks {
    nodes: BTreeSet<u32>,
    since_ms: u64,
    again_at_ms: u64,
}

/// What a node says of its readers in a group: see [`GroupWord::Members`].
pub(super) struct Said<'a> {
    pub partition: Option<u32>,
    pub number: u64,
    pub heard: u64,
    pub readers: &'a [(ConsumerId, bool)],
}

impl Far {
    /// A term begins, or is over: nobody is known.
    pub fn begin(&mut self, now_ms: u64) {
        *self = Self {
            number: self.number,
            lost_ms: std::mem::take(&mut self.lost_ms),
            since_ms: now_ms,
            silent_at_ms: u64::MAX,
            ..Self::default()
        };
    }

    /// Nobody reads on this node by an earlier term's word.
    pub fn follows(&mut self, node: u32) {
        self.follow.insert(node);
        if let Some(asks) = &mut self.asks
            && asks.nodes.remove(&node)
            && asks.nodes.is_empty()
        {
            asks.again_at_ms = 0;
        }
    }

    /// A node says which of its readers are in a group.
    pub fn hear(
        &mut self,
        of: OfNode,
        said: &Said<'_>,
        now_ms: u64,
        groups: &mut Groups,
        others: &mut dyn Others,
        updates: &mut Vec<Update>,
    ) {
        let readers = self.groups.entry(of.clone()).or_insert_with(|| {
            self.number += 1;
            Readers {
                names: BTreeMap::new(),
                heard: 0,
                number: self.number,
                said: None,
                ends_at_ms: 0,
            }
        });
        if said.number < readers.heard {
            return;
        }
        readers.heard = said.number;
        readers.ends_at_ms = now_ms + SILENT_MS;
        self.silent_at_ms = self.silent_at_ms.min(readers.ends_at_ms);
        let here: BTreeMap<ConsumerId, bool> = said.readers.iter().copied().collect();
        for (_, name) in readers
            .names
            .extract_if(.., |reader, _| !here.contains_key(reader))
        {
            self.whose.remove(&name);
            updates.extend(groups.leave(name));
        }
        for (reader, reads) in said.readers {
            let name = *readers.names.entry(*reader).or_insert_with(|| {
                let name = others.name();
                self.whose.insert(name, (of.clone(), *reader));
                name
            });
            updates.extend(groups.join(name, &of.1, said.partition));
            // It has heard the last word, so also that it must not read.
            if !reads && said.heard == readers.number {
                updates.extend(groups.stepped_down(name));
            }
        }
        self.due.insert(of);
    }

    /// A node cannot be spoken to: its readers are gone unless it says something soon.
    pub fn lost(&mut self, node: u32, now_ms: u64) {
        self.lost_ms.insert(node, now_ms);
        for (_, readers) in self.groups.iter_mut().filter(|(of, _)| of.0 == node) {
            readers.ends_at_ms = readers.ends_at_ms.min(now_ms + DOWN_MS);
            self.silent_at_ms = self.silent_at_ms.min(readers.ends_at_ms);
        }
    }

    /// Those of these that are other nodes' are told next.
    pub fn tell(&mut self, updates: &[Update]) {
        let whose = updates.iter().filter_map(|it| self.whose.get(&it.reader));
        self.due.extend(whose.map(|(of, _)| of.clone()));
    }

    /// Whoever is silent is gone, and whoever is to be asked is.
    pub fn settle(
        &mut self,
        term: u64,
        now_ms: u64,
        groups: &mut Groups,
        others: &mut dyn Others,
        updates: &mut Vec<Update>,
    ) {
        if self.silent_at_ms <= now_ms {
            let silent = |_: &OfNode, readers: &mut Readers| readers.ends_at_ms <= now_ms;
            let names = self.groups.extract_if(.., silent);
            for name in names.flat_map(|(_, readers)| readers.names.into_values()) {
                self.whose.remove(&name);
                updates.extend(groups.leave(name));
            }
            let ends = self.groups.values().map(|readers| readers.ends_at_ms);
            self.silent_at_ms = ends.min().unwrap_or(u64::MAX);
        }
        if groups.waits() && self.all_follow(term, now_ms, others) {
            self.asks = None;
            updates.extend(groups.let_go());
        }
    }

    /// True if nobody reads on any node by an earlier term's word. If that is not known, nodes are asked.
    fn all_follow(&mut self, term: u64, now_ms: u64, others: &mut dyn Others) -> bool {
        let (follow, since_ms, lost_ms) = (&self.follow, self.since_ms, &self.lost_ms);
        let asks = self.asks.get_or_insert_with(|| Asks {
            nodes: others
                .nodes()
                .into_iter()
                .filter(|it| !follow.contains(it))
                .collect(),
            since_ms: now_ms,
            again_at_ms: 0,
        });
        if asks.again_at_ms <= now_ms {
            asks.again_at_ms = now_ms + AGAIN_MS;
            let asked_ms = asks.since_ms;
            asks.nodes.retain(|node| {
                let waits_until_ms = match others.say(*node, GroupWord::Leads { term }) {
                    true => asked_ms + SILENT_MS,
                    false => since_ms.max(lost_ms.get(node).copied().unwrap_or(0)) + DOWN_MS,
                };
                now_ms < waits_until_ms
            });
        }
        asks.nodes.is_empty()
    }

    /// Tells nodes who of their readers are active, where that is due.
    pub fn say(&mut self, term: u64, groups: &Groups, others: &mut dyn Others) {
        for of in std::mem::take(&mut self.due) {
            let Some(readers) = self.groups.get_mut(&of) else {
                continue;
            };
            let active = groups.active(&of.1).and_then(|name| self.whose.get(&name));
            let active = active.filter(|(it, _)| *it == of).map(|(_, reader)| *reader);
            if readers.said != active {
                self.number += 1;
                (readers.number, readers.said) = (self.number, active);
            }
            let word = GroupWord::Active {
                term,
                group: of.1.clone(),
                number: readers.number,
                heard: readers.heard,
                reader: active,
            };
            others.say(of.0, word);
            if readers.names.is_empty() {
                self.groups.remove(&of);
            }
        }
    }

    /// When something is due, `u64::MAX` for never.
    pub fn wakes_at_ms(&self, groups: &Groups) -> u64 {
        let asks_at_ms = match (&self.asks, groups.waits()) {
            (Some(asks), true) => asks.again_at_ms,
            (None, true) => 0,
            (_, false) => u64::MAX,
        };
        match self.due.is_empty() {
            true => asks_at_ms.min(self.silent_at_ms),
            false => 0,
        }
    }
}
