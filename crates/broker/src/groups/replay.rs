//! A machine made anew of what the node's log has of its group.

use crate::node::ends::Ends;
use crate::node::journal::NodeLog;
use cluster::{GroupId, entry_of};
use model::{Block, Index, Journaled, Outcome, QueueSettings};
use queue::QueueMachine;
use queue::store::LogPlace;
use std::marker::PhantomData;
use std::sync::Arc;
use storage::StorageError;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 1 << 20;

/// What makes a machine of the log.
pub struct Replay<M> {
    settings: QueueSettings,
    group: GroupId,
    to: Index,
    machine: PhantomData<M>,
}

impl<M: QueueMachine<Ends>> Replay<M> {
    /// It has everything up to `to`, which is committed.
    pub(super) fn new(settings: QueueSettings, group: GroupId, to: Index) -> Self {
        Self {
            settings,
            group,
            to,
            machine: PhantomData,
        }
    }

    /// A machine without anything, which follows.
    pub(super) fn empty(settings: QueueSettings) -> M {
        let mut machine = M::new(settings);
        machine.replay();
        machine.follow();
        machine
    }

    /// Makes the machine, which follows.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn run(self, log: &NodeLog) -> Result<M, StorageError> {
        let mut machine = M::new(self.settings);
        machine.replay();
        let mut next = 1;
        while next <= self.to {
            let payloads = log.group_entries(self.group.0, next, self.to + 1, READ_BYTES)?;
            let before = next;
            for payload in &payloads {
                apply(&mut machine, next, payload).ok_or_else(|| unreadable(self.group, next))?;
                next += 1;
            }
            if next == before {
                return Err(unreadable(self.group, next));
            }
        }
        machine.follow();
        Ok(machine)
    }
}

fn apply<M: QueueMachine<Ends>>(machine: &mut M, index: Index, payload: &[u8]) -> Option<()> {
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
    block: impl FnOnce(&[u8]) -> Option<Arc<Block>>,
) -> Result<Arc<Block>, StorageError> {
    let payloads = log.group_entries(group.0, at.0, at.0 + 1, READ_BYTES)?;
    let payload = payloads.first().and_then(|payload| entry_of(payload));
    payload
        .and_then(|(_, record)| block(record))
        .ok_or_else(|| unreadable(group, at.0))
}

fn unreadable(group: GroupId, index: Index) -> StorageError {
    StorageError::Gone {
        what: format!("entry {index} of group {} is not in the log", group.0),
    }
}
