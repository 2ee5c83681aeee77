//! A group whose majority is lost for good goes on as another one, which begins with what this node has of it and has this node's
//! member alone. See decision note 60.
//!
//! Entries keep their indices, so that contents and bodies that name them lie where they lay; what changed the members is left
//! out. Everything is taken over that stands in the log, whether or not it is known to be committed: the majority that is lost
//! may have confirmed it. The new group counts once its last record is in the log, which says which life of the node's it is
//! ([`Found::is_on_record`]): what stands before that alone is void, and the old one is forgotten behind it.

use super::hosted::Hosted;
use super::member_journal::{Kept, member_journal};
use super::member_record::{Head, Remembered};
use super::replicated::Replicated;
use super::start::{Found, Identity, NotOpened};
use crate::node::journal::NodeLog;
use cluster::{GroupId, Mark, entry_of};
use std::collections::BTreeMap;
use std::fmt;
use storage::{GroupEntry, HardState, JournalId, Kind, StorageError};

/// How much is read and written at once, in bytes.
const PART_BYTES: usize = 1 << 20;

/// The new group's terms go on so far behind those that this node has seen of the old one: whoever has known a leader that this
/// node has not heard of takes the new one for a later one all the same.
const TERMS_BEYOND: u64 = 1_000_000;

/// What this node has of a group that is over.
#[derive(Clone, Debug)]
pub struct LastCopy {
    pub(super) group: GroupId,
    pub(super) kept: Kept,
    /// Up to here it is known to be committed.
    pub(super) known: Mark,
    /// The latest term that it has seen.
    pub(super) term: u64,
}

/// At a start: what counts of what the log has of this group, which is the last one of several that followed each other with what
/// this node had. If a crash came before the last step was written down whole, it is written now, and the copy is returned that
/// it was made of. What is left in `of_all` is over.
///
/// # Errors
/// What this node had is damaged: the log keeps it as it is.
pub fn last_of(
    log: &NodeLog,
    identity: &Identity,
    of_all: &mut BTreeMap<u64, Found>,
) -> Result<(Found, Option<LastCopy>), NotOpened> {
    let present = of_all.remove(&identity.group.0);
    if let Some(found) = present.filter(Found::is_on_record) {
        return Ok((found, None));
    }
    // Of those before the last one counts that is whole: what follows it never was.
    let whole = of_all.iter().rev().find(|(_, it)| it.is_on_record());
    let number = whole.or(of_all.first_key_value()).map(|(number, _)| *number);
    let Some((number, found)) = number.and_then(|number| of_all.remove_entry(&number)) else {
        let what = format!("the copy that group {} begins with", identity.group.0);
        return Err(NotOpened::Unreadable(StorageError::Gone { what }));
    };
    let before = Identity {
        group: GroupId(number),
        ..identity.clone()
    };
    let copy = found.last_copy(log, &before)?;
    // Of an attempt that a crash ended nothing counts.
    log.forget_group(identity.group.0);
    let found = copy.refound(log, identity).map_err(NotOpened::Unreadable)?;
    log.forget_group(number);
    Ok((found, Some(copy)))
}

impl LastCopy {
    /// Whose name the segments bear that its bodies lie in.
    pub fn segments(&self) -> JournalId {
        self.kept.segments.unwrap_or(member_journal(self.group))
    }

    /// Has another group begin with it, which this member is alone in. What the log has of that one for a start, which is as
    /// durable as the log is. The old one is not forgotten: that comes next.
    ///
    /// # Errors
    /// Something of it can't be read. What was written of the new group is void.
    pub fn refound(&self, log: &NodeLog, identity: &Identity) -> Result<Found, StorageError> {
        let last = self.copy_entries(log, identity.group)?;
        let records = self.records(log, identity, last)?;
        let mut positions = Vec::with_capacity(records.len());
        log.append_with(std::iter::empty(), |batch| {
            for (journal, bytes) in &records {
                positions.push(batch.record(*journal, |out| out.extend_from_slice(bytes)));
            }
        });
        let mut found = Found::of_another();
        for ((journal, bytes), position) in records.iter().zip(positions) {
            found.take(journal.kind, position, bytes);
        }
        Ok(found)
    }

    /// Copies the entries, of which it returns the last one.
    fn copy_entries(&self, log: &NodeLog, to: GroupId) -> Result<Mark, StorageError> {
        let mut end = self.known;
        let Some((first, last)) = log.group_span(self.group.0) else {
            return Ok(end);
        };
        let (mut next, journal) = (first, JournalId::new(Kind::GROUP, to.0));
        while next <= last {
            let payloads = log.group_entries(self.group.0, next, last + 1, PART_BYTES)?;
            let mut entries = Vec::with_capacity(payloads.len());
            for payload in &payloads {
                let entry = entry_of(payload).filter(|(at, _)| at.index == next);
                let entry = entry.ok_or_else(|| self.gone(&format!("entry {next}")))?;
                (end, next) = (entry.0, next + 1);
                entries.push(entry);
            }
            if entries.is_empty() {
                return Err(self.gone(&format!("entry {next}")));
            }
            log.append_with(std::iter::empty(), |batch| {
                for (Mark { index, term }, record) in entries {
                    batch.record(journal, |out| {
                        GroupEntry { term, index }.encode(out);
                        // What has no bytes changes nothing.
                        out.push(0);
                        out.extend_from_slice(record);
                    });
                }
            });
        }
        Ok(end)
    }

    /// What the new member has promised and remembers beside entries; the last one makes it count.
    fn records(
        &self,
        log: &NodeLog,
        identity: &Identity,
        last: Mark,
    ) -> Result<Vec<(JournalId, Vec<u8>)>, StorageError> {
        let group = identity.group;
        let of_member = |at: Mark, what: Remembered<'_>| {
            let members = identity.members.clone();
            let mut bytes = Vec::new();
            Head { at, members }.encode(what, &mut bytes);
            (member_journal(group), bytes)
        };
        let mut promise = Vec::new();
        HardState {
            term: self.term.max(last.term) + TERMS_BEYOND,
            vote: 0,
            commit: self.known.index,
        }
        .encode(&mut promise);
        let mut records = vec![
            (JournalId::new(Kind::HARD_STATE, group.0), promise),
            of_member(Mark::default(), Remembered::Segments(self.segments())),
        ];
        if let Some((position, _)) = &self.kept.checkpoint {
            let record = log.read(*position)?;
            let Some((head, contents @ Remembered::Checkpoint(_))) = Head::decode(&record) else {
                return Err(self.gone("the last checkpoint"));
            };
            records.push(of_member(head.at, contents));
        }
        let moved = self.kept.moved.iter();
        records.extend(moved.map(|it| of_member(self.known, Remembered::Store(it))));
        records.push(of_member(self.known, Remembered::Known));
        records.push(of_member(self.known, Remembered::Life(identity.me.life)));
        Ok(records)
    }

    fn gone(&self, what: &str) -> StorageError {
        StorageError::Gone {
            what: format!("{what} of group {} is not in the log", self.group.0),
        }
    }
}

impl fmt::Display for LastCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, term) = (self.known.index, self.term);
        write!(
            f,
            "known to be committed up to entry {index}, of term {term} at the latest"
        )
    }
}

impl<M: Replicated> Hosted<M> {
    /// What this node has of its group, which is closed here by now and has seen this term; `None` if it is not whole.
    pub fn last_copy(&self, term: u64) -> Option<LastCopy> {
        let (kept, known) = self.kept()?;
        Some(LastCopy {
            group: self.group(),
            kept,
            known,
            term,
        })
    }
}
