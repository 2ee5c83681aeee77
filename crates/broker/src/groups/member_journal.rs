//! A member's own journal: what this node alone remembers of a group's contents. Checkpoints, where the message store
//! has moved bytes since, and how far the contents have come.
//!
//! What is written here never waits for others: it speaks of what is committed. The contents of a replicated machine are
//! those of the last checkpoint and of the entries behind it.

use super::member_record::{Head, Remembered, encode_spares};
use super::node_groups::NodeGroups;
use crate::node::closed::Closed;
use crate::node::journal::NodeLog;
use crate::node::promise::{Batches, Promise};
use cluster::{GroupId, Mark, Membership};
use model::{Index, Journaled, Mutant};
use queue::store::{LogPlace, Place, Stored};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};
use storage::{Batch, JournalId, Kind, Position, StorageError};

/// So many bytes of entries are applied before the journal says again how far the contents have come. A start keeps the bodies of
/// entries in memory that it doesn't know to be committed.
const KNOWN_BYTES: usize = 1 << 20;

/// So many bytes of entries are applied before another checkpoint is taken, whoever asks for space.
const CHECKPOINT_BYTES: usize = 64 << 20;

/// The name of the journal, and whose the segments of the member's message store are.
pub fn member_journal(group: GroupId) -> JournalId {
    JournalId::new(Kind::MEMBER, group.0)
}

/// What a member remembers beside its group's entries.
pub struct MemberJournal {
    groups: Arc<NodeGroups>,
    group: GroupId,
    kept: Kept,
    members: Memberships,
    /// Once it is, nothing is written any more: the log has been told to forget the group, or is about to be.
    closed: Closed,
    /// The last checkpoint, as long as what is older is not let go of.
    written: Weak<Written>,
    /// What was applied since the journal said how far the contents have come, in bytes.
    unsaid: usize,
    /// What was applied since a checkpoint was due, in bytes.
    applied: usize,
}

/// What the contents are made of beside entries.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The last checkpoint, and where it stands.
    pub checkpoint: Option<(Position, Head)>,
    /// What the message store has remembered since, as it was written.
    pub moved: Vec<Vec<u8>>,
    /// Bodies that were fetched for contents which are not here yet.
    pub spares: Vec<Stored>,
    /// Whose name the segments bear, if not the member's.
    pub segments: Option<JournalId>,
    /// How many members of the group the node had before, if it is on record.
    pub life: Option<u32>,
}

impl MemberJournal {
    /// The journal of a member that has kept this; `members` are those from the first entry behind the checkpoint on, or
    /// behind what is known beyond it.
    pub fn new(
        groups: Arc<NodeGroups>,
        group: GroupId,
        kept: Kept,
        members: Membership,
        known: Index,
    ) -> Self {
        let mut since = Memberships::default();
        if let Some((_, head)) = &kept.checkpoint {
            since.told(head.at.index, head.members.clone());
        }
        since.told(known, members);
        Self {
            groups,
            group,
            kept,
            members: since,
            closed: Closed::default(),
            written: Weak::new(),
            unsaid: 0,
            applied: 0,
        }
    }

    /// Whose it is.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The groups of the node.
    pub fn groups(&self) -> &Arc<NodeGroups> {
        &self.groups
    }

    /// Whether the member is open no more, for whoever closes it.
    pub fn closed(&self) -> &Closed {
        &self.closed
    }

    /// Whether a checkpoint is written of which nobody has heard yet.
    pub fn is_letting_go(&self) -> bool {
        self.written.strong_count() > 0
    }

    /// Has the log write this, and keep these promises once it is durable.
    fn append(&self, promises: impl Iterator<Item = Promise>, fill: impl FnOnce(&mut Batch<'_>)) {
        let log = &self.groups.node().log;
        self.closed.unless(|| log.append_with(promises, fill));
    }

    /// What the contents are made of beside entries.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Whose name the segments bear that the bodies lie in.
    pub fn segments(&self) -> JournalId {
        self.kept.segments.unwrap_or(member_journal(self.group))
    }

    /// How much the store has remembered since the checkpoint.
    pub fn moved(&self) -> usize {
        self.kept.moved.len()
    }

    /// These are the members from this entry on.
    pub fn joined(&mut self, index: Index, members: Membership) {
        self.members.told(index, members);
    }

    fn head(&self, at: Mark) -> Head {
        let members = self.members.at(at.index);
        Head { at, members }
    }

    /// Who the members were behind this entry.
    pub fn members(&self, at: Mark) -> Membership {
        self.head(at).members
    }

    /// An entry of so many bytes was applied. True if another checkpoint is due.
    pub fn applied(&mut self, at: Mark, bytes: usize) -> bool {
        self.unsaid += bytes;
        self.applied += bytes;
        if self.unsaid >= KNOWN_BYTES {
            self.know(at, std::iter::empty());
        }
        let due = self.applied >= CHECKPOINT_BYTES;
        if due {
            self.applied = 0;
        }
        due
    }

    /// Says how far the contents have come.
    fn know(&mut self, at: Mark, promises: impl Iterator<Item = Promise>) {
        self.unsaid = 0;
        let (head, journal) = (self.head(at), member_journal(self.group));
        self.append(promises, |batch| {
            batch.record(journal, |out| head.encode(Remembered::Known, out));
        });
    }

    /// Remembers what the store has to say.
    pub fn remember(&mut self, at: Mark, records: Vec<Vec<u8>>) {
        let (head, journal) = (self.head(at), member_journal(self.group));
        self.append(std::iter::empty(), |batch| {
            for record in &records {
                batch.record(journal, |out| head.encode(Remembered::Store(record), out));
            }
        });
        self.kept.moved.extend(records);
    }

    /// These bodies were fetched for contents to come: so much is not fetched again.
    pub fn spare(&mut self, at: Mark, spares: Vec<Stored>) {
        let (head, journal) = (self.head(at), member_journal(self.group));
        let bytes = encode_spares(&spares);
        self.append(std::iter::empty(), |batch| {
            batch.record(journal, |out| head.encode(Remembered::Spare(&bytes), out));
        });
        self.kept.spares.extend(spares);
    }

    /// Nothing is fetched any more. A start may find what was, until the next checkpoint.
    pub fn take_spares(&mut self) -> Vec<Stored> {
        std::mem::take(&mut self.kept.spares)
    }

    /// Nobody needs these places any more, since the entries up to this one are applied. They are freed once that is certain
    /// for the next start, too: a replay that ended earlier would still speak of them.
    pub fn release(&mut self, at: Mark, places: Vec<Place>) {
        let release = Promise::Release {
            owner: self.segments(),
            places,
            member: Some(self.closed.clone()),
        };
        self.know(at, std::iter::once(release));
    }

    /// Writes down the contents after an entry that is committed. What the store has remembered since they were taken, which
    /// is all but the first `moved`, is written behind them. Once that is durable, what is older is let go of:
    /// the log may forget the entries up to this one but those from `needed` on, and everything before `before` if
    /// somebody asked for that.
    pub fn checkpoint(
        &mut self,
        at: Mark,
        contents: &impl Journaled,
        needed: Option<LogPlace>,
        moved: usize,
        before: Option<Position>,
    ) {
        let (head, journal) = (self.head(at), member_journal(self.group));
        let mut bytes = Vec::new();
        contents.encode(&mut bytes);
        let since = self.kept.moved.split_off(moved.min(self.kept.moved.len()));
        let (spares, segments, life) = (self.take_spares(), self.kept.segments, self.kept.life);
        let behind = at.index + 1;
        let written = Arc::new(Written {
            groups: self.groups.clone(),
            group: self.group,
            closed: self.closed.clone(),
            below: needed
                .filter(|_| !Mutant::ReleasesBodies.is_on())
                .map_or(behind, |place| place.0.min(behind)),
            before,
        });
        self.written = Arc::downgrade(&written);
        let promise = Promise::Batch(written, at.index);
        let mut position = Position(0);
        self.append(std::iter::once(promise), |batch| {
            // What each checkpoint repeats stands before it.
            let first = life.map(Remembered::Life).into_iter();
            let first = first
                .chain(segments.map(Remembered::Segments))
                .fold(None, |first, what| {
                    let at = batch.record(journal, |out| head.encode(what, out));
                    first.or(Some(at))
                });
            position = batch.record(journal, |out| {
                head.encode(Remembered::Checkpoint(&bytes), out);
            });
            for record in &since {
                batch.record(journal, |out| head.encode(Remembered::Store(record), out));
            }
            if !spares.is_empty() {
                let bytes = encode_spares(&spares);
                batch.record(journal, |out| head.encode(Remembered::Spare(&bytes), out));
            }
            batch.release(journal, first.unwrap_or(position));
        });
        self.members.forget(at.index);
        self.unsaid = 0;
        self.kept = Kept {
            checkpoint: Some((position, head)),
            moved: since,
            spares,
            segments,
            life,
        };
    }
}

/// Who the members are from which entry on; the first is of the checkpoint, or of the beginning.
#[derive(Default)]
struct Memberships(VecDeque<(Index, Membership)>);

impl Memberships {
    /// These are the members from this entry on. Contents that were fetched, and say who the members are, may be ahead of what
    /// the group tells: that is of before then.
    fn told(&mut self, index: Index, members: Membership) {
        let at = self.0.partition_point(|(known, _)| *known < index);
        match self.0.get_mut(at) {
            Some((known, of)) if *known == index => *of = members,
            _ => self.0.insert(at, (index, members)),
        }
    }

    /// Who the members are behind this entry.
    fn at(&self, index: Index) -> Membership {
        let behind = self.0.partition_point(|(known, _)| *known <= index);
        let members = self.0.get(behind.saturating_sub(1));
        members.map(|(_, members)| members.clone()).unwrap_or_default()
    }

    /// Nobody asks any more who they were before this entry.
    fn forget(&mut self, index: Index) {
        while self.0.get(1).is_some_and(|(known, _)| *known <= index) {
            self.0.pop_front();
        }
    }
}

/// A checkpoint that is written. What is older is let go of once it is durable.
struct Written {
    groups: Arc<NodeGroups>,
    group: GroupId,
    closed: Closed,
    /// The first entry that is still needed here.
    below: Index,
    before: Option<Position>,
}

impl Batches for Written {
    fn synced(self: Arc<Self>, index: u64) {
        let pager = &self.groups.node().pager;
        let written = self.clone();
        pager.write(move |files| {
            if let Err(error) = written.let_go(&files.log, index) {
                let group = written.group;
                tracing::warn!(
                    area = "groups",
                    "{group:?} holds on to what is old in the log: {error}"
                );
            }
        });
    }
}

impl Written {
    /// Entries that members lack who were away for a moment only are moved to the group's tail.
    fn let_go(&self, log: &NodeLog, index: Index) -> Result<(), StorageError> {
        // Of what the log has of the group by now, nothing may be this member's.
        if self.closed.is_closed() {
            return Ok(());
        }
        let group = self.group.0;
        let lacked = self.groups.lacked(self.group).filter(|first| *first <= index);
        let readable = |first: &Index| log.group_entries(group, *first, *first + 1, 1).is_ok();
        let first = lacked.map(|first| match log.group_span(group) {
            Some((there, _)) if !readable(&first) => there.max(first),
            _ => first,
        });
        let keep = first.map_or(index, |first| first.saturating_sub(1).min(index));
        let kept = match keep < index {
            true => log.keep_tail(group, keep + 1, self.below),
            false => Ok(()),
        };
        log.release_tail(group, keep + 1);
        let let_go = || {
            log.release_group(group, self.below);
            self.groups.installed(self.group, index);
            self.groups.checkpointed(self.group, index, keep);
        };
        let is_open = self.closed.unless(let_go).is_some();
        self.groups.turn();
        if let Some(before) = self.before.filter(|_| is_open) {
            log.carry_group(group, before)?;
        }
        kept
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a checkpoint of {:?}", self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{MemberId, NodeId};

    #[test]
    fn what_the_group_tells_of_before_contents_that_were_fetched_does_not_undo_what_these_say() {
        let of = |node| Membership::of(&[MemberId::first(NodeId(node))]);
        let mut members = Memberships::default();
        members.told(0, of(1));
        members.told(60, of(6));
        members.told(25, of(2));
        assert_eq!(
            (members.at(24), members.at(59), members.at(60)),
            (of(1), of(2), of(6))
        );
        members.forget(60);
        members.told(33, of(3));
        assert_eq!(members.at(61), of(6));
        members.told(70, of(7));
        assert_eq!((members.at(69), members.at(70)), (of(6), of(7)));
    }
}
