//! How a member starts: from what its node's log has of it.
//!
//! A first pass over the log looks at all groups, and keeps of each the place of its last checkpoint and a few numbers. Then
//! the contents are made of the checkpoint and of the entries up to what is known to be committed: of many groups in a
//! second pass ([`Starting`]). The bodies of what is behind that are in memory; there is little of it, since the member's
//! journal says often how far it is.

use super::member_journal::{Kept, member_journal};
use super::member_record::{Head, Remembered, decode_spares};
use super::node_groups::NodeGroups;
use super::refounding::LastCopy;
use super::replay::Replay;
use super::replicated::Replicated;
use super::starting::Starting;
use crate::node::journal::NodeLog;
use cluster::{Damage, GroupId, Mark, MemberId, Membership, NodeId, Recovered};
use std::collections::VecDeque;
use std::sync::Arc;
use storage::{GroupEntry, HardState, JournalId, Kind, Position, StorageError};

/// What a node's log has of a group, apart from its entries.
#[derive(Debug, Default)]
pub struct Found {
    promise: Vec<u8>,
    /// By the highest entry that is known to be committed.
    known: Option<Head>,
    kept: Kept,
    /// Records of its own journal that can't be read.
    unreadable: u64,
    terms: Terms,
    /// The log was told to forget what it had of the group before.
    of_another: bool,
}

/// Why a member isn't opened. It is damaged, and must not vote: it comes back as its node's next life, once its group has
/// changed the members.
#[derive(Debug)]
pub enum NotOpened {
    /// What it has answered for, or its contents, are not whole.
    Damaged(Damage),
    /// Something of it can't be read.
    Unreadable(StorageError),
}

/// Who a member is.
#[derive(Debug, Clone)]
pub struct Identity {
    pub group: GroupId,
    pub me: MemberId,
    /// Who the members were when the group began.
    pub members: Membership,
}

impl Found {
    /// What a node has of a group whose last member here was given up ([`handover::renounce`](super::handover::renounce)):
    /// nothing. What was damaged of that one does not concern this one, which has answered for nothing.
    pub fn of_another() -> Self {
        Self {
            of_another: true,
            ..Self::default()
        }
    }

    /// The same for one that is about to begin as this life of its node's, which is on record.
    pub fn of_life(life: u32) -> Self {
        let mut found = Self::of_another();
        found.kept.life = Some(life);
        found
    }

    /// Which life of its node's member this is, which is to be `wanted` by now: as long as the group has the earlier one, that
    /// goes on. If it is not on record, the members that it knew say so, or it is the first one.
    pub fn life(&self, node: NodeId, wanted: u32) -> u32 {
        let known = || {
            let mut known = self.known.as_ref()?.members.members();
            Some(known.find(|it| it.node == node)?.life)
        };
        match self.kept.life {
            Some(life) => life,
            None if self.has_begun() || self.has_answered() => known().unwrap_or(0).min(wanted),
            None => wanted,
        }
    }

    /// The log has this of the group. The last record of a kind counts.
    pub fn take(&mut self, kind: Kind, position: Position, payload: &[u8]) {
        match kind {
            Kind::GROUP => {
                if let Some((entry, _)) = GroupEntry::decode(payload) {
                    self.terms.note(entry);
                }
            }
            Kind::HARD_STATE => self.promise = payload.to_vec(),
            Kind::MEMBER => match Head::decode(payload) {
                Some((head, what)) => self.remember(position, head, what),
                None => self.unreadable += 1,
            },
            _ => {}
        }
    }

    fn remember(&mut self, position: Position, head: Head, what: Remembered<'_>) {
        // Which life it is says nothing of how far it has come.
        if let Remembered::Life(life) = what {
            self.kept.life = Some(life);
            return;
        }
        if self
            .known
            .as_ref()
            .is_none_or(|known| known.at.index <= head.at.index)
        {
            self.known = Some(head.clone());
        }
        match what {
            Remembered::Known | Remembered::Life(_) => {}
            Remembered::Store(bytes) => self.kept.moved.push(bytes.to_vec()),
            Remembered::Spare(bytes) => self.kept.spares.extend(decode_spares(bytes)),
            Remembered::Segments(segments) => self.kept.segments = Some(segments),
            Remembered::Checkpoint(_) => {
                let checkpoint = Some((position, head));
                self.kept = Kept {
                    checkpoint,
                    segments: self.kept.segments,
                    life: self.kept.life,
                    ..Kept::default()
                };
            }
        }
    }

    /// The bodies of the checkpoint that comes lie in segments of this name.
    pub(super) fn lie_in(&mut self, segments: JournalId) {
        self.kept.segments = Some(segments);
    }

    /// Whose name the segments of the member bear.
    pub fn segments(&self, group: GroupId) -> JournalId {
        self.kept.segments.unwrap_or(member_journal(group))
    }

    /// Whether there are contents: the member has begun.
    pub fn has_begun(&self) -> bool {
        self.kept.checkpoint.is_some()
    }

    /// Whether the member has answered for anything: it has entries, or has promised something.
    pub fn has_answered(&self) -> bool {
        !self.promise.is_empty() || !self.terms.0.is_empty() || self.unreadable > 0
    }

    /// Whether it is on record which life of the node's this is: the member was given another one's place, or its group was
    /// founded anew with what this node had ([`LastCopy::refound`]), and nothing is missing of that.
    pub fn is_on_record(&self) -> bool {
        self.kept.life.is_some()
    }

    /// What the log has of a group that goes on as another one.
    ///
    /// # Errors
    /// It is damaged.
    pub fn last_copy(self, log: &NodeLog, identity: &Identity) -> Result<LastCopy, NotOpened> {
        self.check(log, identity)?;
        let promise = HardState::decode(&self.promise);
        Ok(LastCopy {
            group: identity.group,
            kept: self.kept,
            known: self.known.map(|known| known.at).unwrap_or_default(),
            term: promise.map_or(0, |promise| promise.term),
        })
    }

    /// Makes what the member has in its checkpoint. The entries behind that come next.
    ///
    /// # Errors
    /// It is damaged: nothing was changed, and nothing counts that it has promised.
    pub fn begin<M: Replicated>(
        self,
        groups: &Arc<NodeGroups>,
        identity: Identity,
        settings: M::Settings,
    ) -> Result<Starting<M>, NotOpened> {
        self.check(&groups.node().log, &identity)?;
        let Identity { group, me, members } = identity;
        let mut recovered = match &self.kept.checkpoint {
            Some((_, head)) => Recovered::at(me, head.at, head.at.index, head.members.clone()),
            None => Recovered::new_group(me, members.clone()),
        };
        let known = self.known.unwrap_or(Head {
            at: Mark::default(),
            members,
        });
        recovered.known(known.at.index, known.members.clone());
        if !self.promise.is_empty() {
            recovered.promise(&self.promise).map_err(NotOpened::Damaged)?;
        }
        let replay = Replay::new(settings.clone(), group, self.kept.clone(), known.at.index);
        let replayed = replay.begin(&groups.node().log).map_err(NotOpened::Unreadable)?;
        Ok(Starting {
            groups: groups.clone(),
            group,
            settings,
            replayed,
            recovered,
            known,
            kept: self.kept,
            terms: self.terms,
            at_start: true,
        })
    }

    /// Whether everything is there that the member has ever answered for.
    fn check(&self, log: &NodeLog, identity: &Identity) -> Result<(), NotOpened> {
        let group = identity.group.0;
        let of_group = |kind| matches!(kind, Kind::GROUP | Kind::HARD_STATE | Kind::MEMBER);
        let mut damage = log.recovery().damage.iter().filter(|_| !self.of_another);
        let lost = damage.find(|damage| {
            damage
                .journal
                .is_none_or(|it| it.number == group && of_group(it.kind))
        });
        if let Some(lost) = lost {
            return Err(NotOpened::Unreadable(lost.error()));
        }
        if self.unreadable > 0 {
            let what = format!(
                "{} records of {}",
                self.unreadable,
                member_journal(identity.group)
            );
            return Err(NotOpened::Unreadable(StorageError::Gone { what }));
        }
        let begin = self.kept.checkpoint.as_ref().map_or(0, |(_, head)| head.at.index);
        let needed = self.known.as_ref().map_or(begin, |known| known.at.index);
        let (first, last) = log.group_span(group).unwrap_or((begin + 1, begin));
        let last = last.max(begin);
        match () {
            () if last < needed => Err(NotOpened::Damaged(Damage::LostTail { last, needed })),
            () if last > begin && first > begin + 1 => Err(NotOpened::Damaged(Damage::Gap {
                last: begin,
                next: first,
            })),
            () => Ok(()),
        }
    }
}

/// The terms of a group's entries: from which index on.
#[derive(Debug, Default)]
pub(super) struct Terms(VecDeque<Mark>);

impl Terms {
    /// An entry was written. What had its index before, and what followed that, is void.
    fn note(&mut self, entry: GroupEntry) {
        let GroupEntry { term, index } = entry;
        while self.0.back().is_some_and(|since| since.index >= index) {
            self.0.pop_back();
        }
        if self.0.back().is_none_or(|since| since.term != term) {
            self.0.push_back(Mark { index, term });
        }
    }

    /// Whether this entry is the one that counts.
    pub(super) fn has(&self, entry: GroupEntry) -> bool {
        let behind = self.0.partition_point(|since| since.index <= entry.index);
        let since = behind.checked_sub(1).and_then(|at| self.0.get(at));
        since.is_some_and(|since| since.term == entry.term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_entries_with_one_index_the_term_that_was_written_last_counts() {
        let mut terms = Terms::default();
        let written = [(1, 5), (1, 6), (1, 7), (3, 6), (3, 7), (4, 8), (3, 7)];
        for (term, index) in written {
            terms.note(GroupEntry { term, index });
        }
        let counts = |term, index| terms.has(GroupEntry { term, index });
        assert!(counts(1, 5) && counts(3, 6) && counts(3, 7));
        assert!(!counts(1, 6) && !counts(4, 8) && !counts(1, 4));
    }
}
