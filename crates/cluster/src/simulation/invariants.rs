//! What holds at every moment, over all nodes.

use super::machine::place;
use crate::frame::{self, Item};
use crate::{Committed, GroupId, Mark, MemberId, Membership, NodeId, Record};
use bytes::Bytes;
use raft::eraftpb::MessageType;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Invariants {
    leaders: BTreeMap<(GroupId, u64), MemberId>,
    committed: BTreeMap<(GroupId, u64), (u64, Bytes)>,
    /// What was told to become the entry of an index in a term.
    promised: BTreeMap<(GroupId, u64, u64), (MemberId, Bytes)>,
    /// The term before each entry, and its bytes, by index and term.
    entries: BTreeMap<(GroupId, u64, u64), (u64, Bytes)>,
    /// For whom a member voted in a term.
    votes: BTreeMap<(GroupId, u64, u64), u64>,
    /// The latest members that were committed anywhere.
    members: BTreeMap<GroupId, (u64, Membership)>,
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
    pub fn crashed(&mut self, node: NodeId, lost: &[(GroupId, Mark)]) {
        self.promised.retain(|_, (leader, _)| leader.node != node);
        for (group, at) in lost {
            self.entries.remove(&(*group, at.index, at.term));
        }
    }

    /// Log matching: an entry of an index and a term is the same everywhere, and so is the one before it.
    pub fn appended(&mut self, record: &Record, term_at: &dyn Fn(GroupId, u64) -> Option<u64>) {
        let Some((group, at)) = place(record) else { return };
        let Some(before) = term_at(group, at.index - 1) else {
            return;
        };
        let entry = (before, record.payload());
        let first = self
            .entries
            .entry((group, at.index, at.term))
            .or_insert(entry.clone());
        assert_eq!(*first, entry, "{group:?} at {at:?}");
    }

    /// No member votes for two in one term, also not for itself, whatever crashes.
    pub fn said(&mut self, frame: &Bytes) {
        for item in frame::read(frame).unwrap().1 {
            let Item::Raft(group, message) = item else {
                continue;
            };
            let vote = match message.get_msg_type() {
                MessageType::MsgRequestVote => message.from,
                MessageType::MsgRequestVoteResponse if !message.reject => message.to,
                _ => continue,
            };
            let key = (group, message.from, message.term);
            let first = *self.votes.entry(key).or_insert(vote);
            assert_eq!(first, vote, "two votes of {} in {group:?}, term {}", key.1, key.2);
        }
    }

    /// Leader completeness: whoever leads a term has everything that was committed in terms before it.
    pub fn completes(&self, group: GroupId, term: u64, base: u64, term_at: &dyn Fn(u64) -> Option<u64>) {
        let all = self.committed.range((group, base + 1)..=(group, u64::MAX));
        for ((_, index), (of, _)) in all.filter(|(_, (of, _))| *of < term) {
            assert_eq!(
                term_at(*index),
                Some(*of),
                "{group:?} at {index}, led in term {term}"
            );
        }
    }

    pub fn changed(&mut self, group: GroupId, index: u64, members: Membership) {
        let latest = self.members.entry(group).or_default();
        if latest.0 <= index {
            *latest = (index, members);
        }
    }

    /// Who the members are, as far as anybody knows; nobody, as long as nothing has changed.
    pub fn members(&self, group: GroupId) -> Option<Membership> {
        self.members.get(&group).map(|(_, members)| members.clone())
    }

    /// A node has nothing any more.
    pub fn wiped(&mut self, node: NodeId) {
        self.applied.retain(|(_, of), _| *of != node);
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
