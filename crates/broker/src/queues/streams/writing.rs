//! What a stream's writing thread does: rounds of one write and one sync for all that has come by then. A full disk is waited
//! for: what is not safe stays in memory, and is written again once there is room. Any other failure of a write or a sync is
//! final, as that of the node's log.

use super::log::{Io, StreamLog, entry};
use crate::node::Node;
use crate::node::streams::Written;
use model::QueueId;
use queue::stream::Record;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use storage::{StorageError, StreamEntry};

/// What could not be written or opened for want of room or of descriptors is tried again after so long, in milliseconds.
pub(super) const TRY_AGAIN_MS: u64 = 1_000;

/// What the writing thread is to do, and has done.
#[derive(Default)]
pub(super) struct Writing {
    /// In order. Those of the round that is under way are not among them.
    pending: Vec<Record>,
    /// Of all that are not safe, those of the round included.
    pub(super) pending_bytes: usize,
    drop_below: Option<u64>,
    /// The thread has something to do, or waits until the disk has room.
    is_busy: bool,
    /// When a round is tried again for which there was no room, in milliseconds since the Unix epoch.
    try_again_at_ms: Option<u64>,
    /// There was no room in the last round.
    is_stalled: bool,
    /// So many records are synced since the start.
    synced: u64,
    /// Everything below this offset is.
    below: u64,
    /// The stream's declaration in the node's log is safe.
    is_declared: bool,
    /// Nothing is written any more.
    has_failed: bool,
    /// Nor is that of interest: the stream is deleted.
    is_removed: bool,
}

/// How far the writing thread has come.
pub(super) struct Progress {
    /// So many records are safe since the start.
    pub records: u64,
    /// Everything below this offset is.
    pub below: u64,
    /// Nothing is written any more.
    pub has_failed: bool,
    /// The disk is full: it goes on by itself.
    pub is_stalled: bool,
}

/// Why a round did not succeed.
pub(super) enum Trouble {
    /// The same may succeed later.
    Passing(StorageError),
    Final(StorageError),
}

impl Writing {
    /// Before anything is written: everything below this offset is safe.
    pub(super) fn new(below: u64) -> Self {
        Self {
            below,
            ..Self::default()
        }
    }

    /// Nothing is written any more.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The thread has something to do from now on. False if it had before.
    pub(super) fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.is_busy, true)
    }

    /// Which segments are to go.
    pub(super) fn take_drop_below(&mut self) -> Option<u64> {
        self.drop_below.take()
    }

    /// All that was to be written in this round was.
    pub(super) fn succeeded(&mut self, name: &str) {
        if std::mem::take(&mut self.is_stalled) {
            tracing::warn!(area = "storage", "{name} can be written to again");
        }
    }

    /// The round is over, and these segments are still to go; `has_more` says whether something else is to be written. Whether
    /// the next round is due at once.
    pub(super) fn ends_round(&mut self, drop_below: Option<u64>, has_more: bool) -> bool {
        self.drop_below = self.drop_below.max(drop_below);
        let waits = self.try_again_at_ms.is_some();
        self.is_busy = waits || has_more || self.drop_below.is_some();
        self.is_busy && !waits
    }
}

impl StreamLog {
    /// The writing thread has something to do, and turns the queue when it has done it.
    pub(super) fn is_busy(&self) -> bool {
        self.io().writing.is_busy
    }

    /// How far the writing thread has come.
    pub(super) fn written(&self) -> Progress {
        let writing = &self.io().writing;
        Progress {
            records: writing.synced,
            below: writing.below,
            has_failed: writing.has_failed,
            is_stalled: writing.is_stalled,
        }
    }

    /// Has records written and synced, and the queue turned then.
    pub(super) fn write(self: &Arc<Self>, records: &mut Vec<Record>) {
        self.order(|writing| {
            writing.pending_bytes += bytes(records);
            writing.pending.append(records);
        });
        // If nothing is written any more.
        records.clear();
    }

    /// Has segments removed that end at or below this offset.
    pub(super) fn drop_below(self: &Arc<Self>, offset: u64) {
        self.order(|writing| writing.drop_below = Some(offset));
    }

    fn order(self: &Arc<Self>, order: impl FnOnce(&mut Writing)) {
        let mut io = self.io();
        if io.writing.has_failed {
            return;
        }
        order(&mut io.writing);
        if !std::mem::replace(&mut io.writing.is_busy, true) {
            drop(io);
            self.go_on();
        }
    }

    /// Writes what there was no room for, if it is time to try that again.
    pub(super) fn try_again(self: &Arc<Self>, now_ms: u64) {
        let mut io = self.io();
        if io.writing.try_again_at_ms.take_if(|at| *at <= now_ms).is_some() {
            drop(io);
            self.go_on();
        }
    }

    /// When [`try_again`](Self::try_again) is to be called, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub(super) fn wakes_at_ms(&self) -> u64 {
        self.io().writing.try_again_at_ms.unwrap_or(u64::MAX)
    }

    pub(super) fn go_on(self: &Arc<Self>) {
        let log = self.clone();
        self.node.streams.write(self.id, move || match log.group {
            None => log.guarded(Self::write_round),
            Some(group) => log.guarded(|log| log.feed_round(group)),
        });
    }

    /// Does this on the writing thread, which does the same for others: a panic ends what is written to this stream, and no more.
    fn guarded(self: &Arc<Self>, work: impl FnOnce(&Arc<Self>)) {
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_ok() {
            return;
        }
        let mut io = self.io();
        self.fail(&mut io, "its writing thread has panicked (a bug)");
        io.writing.is_busy = false;
        drop(io);
        // Clients are told, unless it is just that which panics.
        let _ = catch_unwind(AssertUnwindSafe(|| self.turn()));
    }

    /// One write and one sync for all that has come by now. Others of the thread's streams have their turn before the next one.
    fn write_round(self: &Arc<Self>) {
        let (records, drop_below, is_declared, synced) = {
            let writing = &mut self.io().writing;
            (
                std::mem::take(&mut writing.pending),
                writing.drop_below.take(),
                writing.is_declared,
                writing.synced,
            )
        };
        // A round that failed may have made some of them safe.
        let safe = self.files.safe_entries().saturating_sub(synced) as usize;
        let is_declared = is_declared || records.is_empty();
        let outcome = self.write_out(records.get(safe..).unwrap_or_default(), is_declared);
        if outcome.is_ok() {
            self.keep_newest(records.iter());
        }
        let kept = match &outcome {
            Err(Trouble::Final(_)) => None,
            outcome => self.remove_old(drop_below, outcome.is_ok()),
        };
        let mut io = self.io();
        let writing = &mut io.writing;
        match outcome {
            Ok(()) => self.wrote(writing, &records),
            Err(Trouble::Passing(error)) => self.waits(writing, records, &error),
            Err(Trouble::Final(error)) => self.fail(&mut io, &error.to_string()),
        }
        let writing = &mut io.writing;
        let has_more = !writing.pending.is_empty();
        let goes_on = writing.ends_round(kept, has_more);
        drop(io);
        self.wrote_round();
        if goes_on {
            self.go_on();
        }
        self.turn();
    }

    /// The stream's files stay open for a while.
    pub(super) fn wrote_round(self: &Arc<Self>) {
        let written: Arc<dyn Written> = self.clone();
        self.node.streams.wrote(&written);
    }

    fn wrote(&self, writing: &mut Writing, records: &[Record]) {
        writing.pending_bytes -= bytes(records);
        writing.is_declared |= !records.is_empty();
        writing.synced += records.len() as u64;
        if let Some(last) = records.last() {
            writing.below = last.chunk().header().next_offset();
            self.is_committed(writing.below);
        }
        writing.succeeded(&self.name);
    }

    /// Nothing of it is confirmed, and all of it is written again.
    fn waits(&self, writing: &mut Writing, mut records: Vec<Record>, error: &StorageError) {
        records.append(&mut writing.pending);
        writing.pending = records;
        self.stalls(writing, error);
    }

    /// There was no room.
    pub(super) fn stalls(&self, writing: &mut Writing, error: &StorageError) {
        writing.try_again_at_ms = Some(self.node.now().0 + TRY_AGAIN_MS);
        if !std::mem::replace(&mut writing.is_stalled, true) {
            tracing::error!(
                area = "storage",
                "{} cannot be written to: {error}; publishers wait, nothing is lost, and it goes on by itself",
                self.name
            );
        }
    }

    /// Nothing is written any more.
    pub(super) fn fail(&self, io: &mut Io, why: &str) {
        io.feeding.ends();
        let writing = &mut io.writing;
        if !writing.is_removed && !writing.has_failed {
            tracing::error!(
                area = "storage",
                "{} cannot be written to any more, until the node is restarted: {why}",
                self.name
            );
        }
        writing.has_failed = true;
        writing.pending = Vec::new();
        writing.pending_bytes = 0;
        (writing.drop_below, writing.try_again_at_ms) = (None, None);
    }

    fn write_out(&self, records: &[Record], is_declared: bool) -> Result<(), Trouble> {
        if !records.is_empty() {
            let entries: Vec<StreamEntry<'_>> = records.iter().map(entry).collect();
            let written = self.files.append(&entries).and_then(|()| self.files.sync());
            written.map_err(|error| match error {
                error if error.may_pass() && !self.files.has_failed() => Trouble::Passing(error),
                error => Trouble::Final(error),
            })?;
        }
        if !is_declared {
            // What is confirmed outlives a crash only if the stream itself does.
            self.node.log.sync().map_err(Trouble::Final)?;
        }
        Ok(())
    }

    /// Removes old segments, also while there is no room: that makes some. Returns what is to be tried again.
    pub(super) fn remove_old(&self, below: Option<u64>, has_room: bool) -> Option<u64> {
        let below = below?;
        match self.files.drop_below(below) {
            // It is tried again with the next ones that go.
            Err(error) if has_room => {
                tracing::warn!(area = "storage", "old segments of {} remain: {error}", self.name);
                None
            }
            // Some may have to be written first.
            _ => Some(below).filter(|_| !has_room),
        }
    }

    /// The stream is deleted: so are its files, once that is durable.
    pub(crate) fn remove(self: &Arc<Self>) {
        self.io().writing.is_removed = true;
        let log = self.clone();
        let name = self.name.to_string();
        remove_behind(&self.node, self.id, name, move |synced| {
            let removed = synced.and_then(|()| log.files.remove());
            log.fail(&mut log.io(), "it is deleted");
            removed
        });
    }
}

/// The same for a stream whose files are not open.
pub(crate) fn remove_closed(node: &Arc<Node>, stream: QueueId) {
    let of = node.clone();
    remove_behind(node, stream, format!("stream {}", stream.0), move |synced| {
        synced.and_then(|()| of.streams.remove_closed(stream))
    });
}

/// Has the files of a stream removed, behind everything that is still to be written to them. `remove` is told what came of the
/// sync of the node's log: a deletion that a crash undoes must not leave an empty stream.
fn remove_behind(
    node: &Arc<Node>,
    stream: QueueId,
    name: String,
    remove: impl FnOnce(Result<(), StorageError>) -> Result<(), StorageError> + Send + 'static,
) {
    let of = node.clone();
    node.streams.remove(stream, move || {
        let removed = remove(of.log.sync());
        of.streams.is_removed(stream);
        if let Err(error) = removed {
            tracing::warn!(
                area = "storage",
                "files of {name}, which is deleted, remain until the next start: {error}"
            );
        }
    });
}

impl Written for StreamLog {
    fn stream(&self) -> QueueId {
        self.id
    }

    fn rest(&self) {
        if self.is_busy() {
            return;
        }
        if let Err(error) = self.files.rest() {
            self.complain(&error);
            if self.group.is_some() && error.may_pass() && !self.files.has_failed() {
                // What was not synced is written again once there is room.
                let next = self.next_in_files();
                let mut io = self.io();
                self.take_back(&mut io, next);
                self.stalls(&mut io.writing, &error);
                io.writing.ends_round(None, true);
                drop(io);
                self.turn();
            }
        }
    }
}

fn bytes(records: &[Record]) -> usize {
    records.iter().map(|record| record.bytes().len()).sum()
}
