//! A machine made anew of what this node has of it: its last checkpoint, the entries behind that, and where its store has
//! moved bytes since.

use super::member_journal::Kept;
use super::member_record::{Head, Remembered};
use super::replicated::Replicated;
use crate::node::journal::NodeLog;
use crate::node::paging::Nearby;
use cluster::{GroupId, entry_of};
use model::{Block, Index, Journaled, Outcome, Timestamp};
use queue::store::{self, LogPlace};
use std::sync::Arc;
use storage::StorageError;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 1 << 20;

/// What makes a machine of checkpoint and log.
pub struct Replay<M: Replicated> {
    settings: M::Settings,
    group: GroupId,
    kept: Kept,
    to: Index,
    memory: Option<usize>,
}

impl<M: Replicated> Replay<M> {
    /// It has everything up to `to`, which is committed.
    pub(super) fn new(settings: M::Settings, group: GroupId, kept: Kept, to: Index) -> Self {
        Self {
            settings,
            group,
            kept,
            to,
            memory: None,
        }
    }

    /// Bodies may take so many bytes of memory.
    pub(super) fn within(self, memory: Option<usize>) -> Self {
        Self { memory, ..self }
    }

    /// Up to which entry.
    pub(super) fn to(&self) -> Index {
        self.to
    }

    /// Makes the machine, which follows.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn run(self, log: &NodeLog) -> Result<M, StorageError> {
        let end = self.to + 1;
        let mut replayed = self.begin(log)?;
        replayed.rest(log, end, &mut |_| Ok(()))?;
        Ok(replayed.finish())
    }

    /// Makes the machine that the checkpoint has, to which entries come now.
    pub(super) fn begin(self, log: &NodeLog) -> Result<ReplayedMember<M>, StorageError> {
        let mut machine: M = replaying(self.settings, self.memory);
        let mut next = 1;
        if let Some((position, head)) = &self.kept.checkpoint {
            next = head.at.index + 1;
            let record = log.read(*position)?;
            restore(&mut machine, &record).ok_or_else(|| {
                let what = format!("the last checkpoint of group {} is not in the log", self.group.0);
                StorageError::Gone { what }
            })?;
        }
        Ok(ReplayedMember {
            machine,
            group: self.group,
            moved: self.kept.moved,
            next,
            to: self.to,
        })
    }
}

/// A machine to which the entries of its group come, one after the other.
pub(super) struct ReplayedMember<M> {
    machine: M,
    group: GroupId,
    moved: Vec<Vec<u8>>,
    /// The entry that comes next.
    next: Index,
    /// Up to here they are committed: the machine applies no others.
    to: Index,
}

impl<M: Replicated> ReplayedMember<M> {
    /// The index of the entry that comes next.
    pub(super) fn next(&self) -> Index {
        self.next
    }

    /// Here it is.
    pub(super) fn entry(&mut self, payload: &[u8]) -> Result<(), StorageError> {
        if self.next <= self.to {
            let applied = apply(&mut self.machine, self.next, payload);
            applied.ok_or_else(|| unreadable(self.group, self.next))?;
        }
        self.next += 1;
        Ok(())
    }

    /// Reads what it lacks of the entries before `end`, and shows each.
    pub(super) fn rest(
        &mut self,
        log: &NodeLog,
        end: Index,
        show: &mut dyn FnMut(Vec<u8>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        while self.next < end {
            let before = self.next;
            for payload in log.group_entries(self.group.0, self.next, end, READ_BYTES)? {
                self.entry(&payload)?;
                show(payload)?;
            }
            if self.next == before {
                return Err(unreadable(self.group, self.next));
            }
        }
        Ok(())
    }

    /// The machine, which follows.
    pub(super) fn finish(mut self) -> M {
        for moved in &self.moved {
            if let Some(record) = M::Local::decode(moved) {
                self.machine.apply_local(record);
            }
        }
        self.machine.follow();
        self.machine
    }
}

/// An empty machine that something is replayed to. Bodies may take so many bytes of memory.
pub(super) fn replaying<M: Replicated>(settings: M::Settings, memory: Option<usize>) -> M {
    let mut machine = M::new(settings);
    if let Some(memory) = memory {
        let shrink = M::ask_store(store::Request::Shrink { memory });
        machine.handle(Timestamp(0), shrink, &mut Outcome::default());
    }
    machine.replay();
    machine
}

fn restore<M: Replicated>(machine: &mut M, record: &[u8]) -> Option<()> {
    let (_, Remembered::Checkpoint(contents)) = Head::decode(record)? else {
        return None;
    };
    machine.apply_local(M::Local::decode(contents)?).map(drop)
}

fn apply<M: Replicated>(machine: &mut M, index: Index, payload: &[u8]) -> Option<()> {
    let (at, record) = entry_of(payload)?;
    if at.index != index {
        return None;
    }
    if record.is_empty() {
        return Some(());
    }
    let record = M::Record::decode(record)?;
    let first = M::brings(&record).map(|(first, _)| first);
    machine.apply(index, record, &mut Outcome::default());
    if let Some(first) = first {
        machine.appended(first, LogPlace(index));
    }
    Some(())
}

/// The block that the record at this index of a group brought.
///
/// # Errors
/// The log can't be read, or has something else there.
pub fn block_at(
    log: &NodeLog,
    group: GroupId,
    at: LogPlace,
    nearby: &mut Nearby,
    block: impl FnOnce(&[u8]) -> Option<Arc<Block>>,
) -> Result<Arc<Block>, StorageError> {
    let payload = nearby.entry(at.0, || log.group_entries_near(group.0, at.0))?;
    payload
        .and_then(entry_of)
        .and_then(|(_, record)| block(record))
        .ok_or_else(|| unreadable(group, at.0))
}

fn unreadable(group: GroupId, index: Index) -> StorageError {
    StorageError::Gone {
        what: format!("entry {index} of group {} is not in the log", group.0),
    }
}
