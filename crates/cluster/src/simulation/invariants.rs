//! What holds at every moment, over all nodes.

use crate::{Committed, GroupId, Mark, MemberId, NodeId};
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Invariants {
    leaders: BTreeMap<(GroupId, u64), MemberId>,
    committed: BTreeMap<(GroupId, u64), (u64, Bytes)>,
    /// What was told to become the entry of an index in a term.
    promised: BTreeMap<(GroupId, u64, u64), (MemberId, Bytes)>,
    /// What each member has applied, of this start of it.
    applied: BTreeMap<(GroupId, NodeId), u64>,
}

impl Invariants {
    /// Election safety: one leader a term.
    pub fn leads(&mut self, group: GroupId, term: u64, leader: MemberId) {
        let first = *self.leaders.entry((group, term)).or_insert(leader);
        assert_eq!(first, leader, "two leaders of {group:?} in term {term}");
    }

    /// A leader told a proposal its index; nothing else has it in that term.
    pub fn promised(&mut self, group: GroupId, leader: MemberId, at: Mark, record: Bytes) {
        let promise = (leader, record);
        let twice = self.promised.insert((group, at.term, at.index), promise);
        assert_eq!(twice, None, "{group:?} at {at:?}");
    }

    /// What a leader told ends with its start: if its term was not synced, it may lead in it once more.
    pub fn crashed(&mut self, node: NodeId) {
        self.promised.retain(|_, (leader, _)| leader.node != node);
    }

    /// State-machine safety: one entry at an index, on whatever member it comes out; and none is left out.
    pub fn committed(&mut self, node: NodeId, entry: &Committed) {
        let Mark { index, term } = entry.at;
        let first = self
            .committed
            .entry((entry.group, index))
            .or_insert((term, entry.record.clone()));
        assert_eq!(
            *first,
            (term, entry.record.clone()),
            "{:?} at {index} on {node:?}",
            entry.group
        );
        if let Some((_, promised)) = self.promised.get(&(entry.group, term, index)) {
            assert_eq!(*promised, entry.record, "{:?} at {:?}", entry.group, entry.at);
        }
        let applied = self.applied.entry((entry.group, node)).or_default();
        assert_eq!(index, *applied + 1, "{:?} skips on {node:?}", entry.group);
        *applied = index;
    }

    /// A member's contents begin here, after a start or with a snapshot.
    pub fn begins(&mut self, node: NodeId, group: GroupId, at: Mark) {
        if at.index > 0 {
            let known = self.committed.get(&(group, at.index)).map(|(term, _)| *term);
            assert_eq!(known, Some(at.term), "{group:?} begins at {at:?} on {node:?}");
        }
        self.applied.insert((group, node), at.index);
    }

    pub fn last(&self, group: GroupId) -> u64 {
        let all = self.committed.range((group, 0)..=(group, u64::MAX));
        all.last().map_or(0, |((_, index), _)| *index)
    }

    pub fn applied(&self, group: GroupId, node: NodeId) -> u64 {
        self.applied.get(&(group, node)).copied().unwrap_or_default()
    }

    pub fn term_at(&self, group: GroupId, index: u64) -> Option<u64> {
        self.committed.get(&(group, index)).map(|(term, _)| *term)
    }
}
