//! A stream: an append-only log of chunks that many readers follow, each at its own place
//! ([decision 70](../../../../docs/decisions/0070-streams.md)).
//!
//! The machine, [`Stream`], decides what stands in a chunk and which offset it has, recognises what a publisher sends again,
//! knows what is tracked, and which segments go. Its record is a chunk, as it is written, replicated and read. It never has a
//! message in memory longer than until the end of a turn.
//!
//! Beside it, and no part of it, is what one node knows by itself and nobody agrees on: who reads where ([`Reading`]), and who
//! is the active one of a group ([`Groups`]; [`SharedGroups`], if the stream is on several nodes). The host has both next to
//! the machine, tells readers what is safe and the machine where the last of them stands, and does the reading.
//!
//! Reading order: this file, [`record`], `publish` (chunks are made), [`segments`], [`senders`], [`contents`]; [`reading`],
//! [`groups`], [`shared`]; `asked`.

mod asked;
pub mod contents;
pub mod groups;
mod publish;
pub mod reading;
pub mod record;
pub mod segments;
pub mod senders;
pub mod shared;
#[cfg(test)]
mod tests;

pub use asked::{GroupWord, Start, StreamRequest};
pub use contents::Contents;
pub use groups::{Groups, Update};
pub use reading::{ReadEffect, ReadRequest, Reading};
pub use record::Record;
pub use segments::Segment;
pub use shared::{GroupOrders, SharedGroups};

use crate::ends::Ends;
use model::chunk::{Batch, ChunkKind, Tracking};
use model::{Index, Machine, Outcome, Timestamp};
use publish::Draft;
use segments::Segments;
use std::sync::Arc;

/// The most publishers whose sequences are known, and the most consumers whose offsets are.
pub const TRACKED_MOST: usize = 4_096;

/// A chunk is finished when its entries have so many bytes, or when the turn ends. One entry that is larger is a chunk by itself.
pub const CHUNK_BYTES: usize = 1 << 20;

/// A segment without messages is replaced by one that begins with all that is tracked, once its chunks have so many bytes.
pub const TRACKING_BYTES: u64 = 16 << 20;

/// What was declared of a stream. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// `x-max-length-bytes`: the oldest segments go while all together have more.
    pub max_bytes: Option<u64>,
    /// `x-max-age`, in milliseconds: segments go whose last chunk is older.
    pub max_age_ms: Option<u64>,
    /// `x-stream-max-segment-size-bytes`: a segment is closed once it has so many.
    pub segment_bytes: u64,
    /// `x-stream-filter-size-bytes`: how large the filter of a chunk is, see [`model::chunk::FILTER_SIZES`].
    pub filter_bytes: u8,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            max_bytes: None,
            max_age_ms: None,
            segment_bytes: 500_000_000,
            filter_bytes: 16,
        }
    }
}

/// What may be asked of a stream. Imperative.
#[derive(Debug)]
pub enum Request<E: Ends> {
    /// Take these entries, in order. Of a publisher with a reference those are dropped whose numbers are not above its last one.
    /// The receipt comes back as a promise, [`Effect::Confirm`], when all are safe, the dropped ones included.
    Publish {
        reference: Option<Arc<[u8]>>,
        batch: Batch,
        receipt: Option<E::Receipt>,
    },
    /// The consumer of this reference has come to this offset. References longer than
    /// [`model::chunk::REFERENCE_BYTES`] are not tracked.
    StoreOffset { reference: Arc<[u8]>, offset: u64 },
    /// All that came in this turn is to be written.
    EndTurn,
    /// The last number of this publisher? Answered with [`Answer::Number`] or [`Answer::Unknown`].
    Sequence { reference: Arc<[u8]>, reply: E::Reply },
    /// The offset of this consumer? Answered in the same way.
    Offset { reference: Arc<[u8]>, reply: E::Reply },
    /// Whoever is furthest behind of those who read on this node stands at this offset; nobody reads, if it is `None`. It holds
    /// until it is said anew, and no other node hears of it: what a reader stands in is kept longer, here.
    Pinned { lowest: Option<u64> },
    /// Of a stream of several nodes: what this node's files have.
    HasFiles(FilesHere),
    /// Other settings are in force.
    Configure { settings: StreamSettings },
    /// Look at what is too old.
    Wake,
    /// The stream is deleted: everything later is ignored. Receipts come back as refused.
    Retire,
}

/// What a node's files have of a stream of several nodes. Each node's retention is its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesHere {
    /// They begin with this offset.
    pub first: u64,
    /// Everything up to the chunk that was put on record under this index is in them, synced.
    pub synced: Index,
}

/// What a stream orders its host to do. Imperative.
#[derive(Debug, PartialEq)]
pub enum Effect<E: Ends> {
    /// The entries are safe (as a promise).
    Confirm(E::Receipt),
    /// The entries are not taken: there is no stream any more.
    Reject(E::Receipt),
    /// Answer a question.
    Reply(E::Reply, Answer),
    /// Segments that end at or below this offset may go.
    DropBelow { offset: u64 },
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This.
    Number(u64),
    /// There is none.
    Unknown,
}

/// A stream's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The first offset that is there, or the next one if there is none.
    pub first_offset: u64,
    /// The offset of the next message.
    pub next_offset: u64,
    /// How many segments there are.
    pub segments: usize,
    /// All chunks, in bytes.
    pub bytes: u64,
}

/// The machine of a stream.
pub struct Stream<E: Ends> {
    settings: StreamSettings,
    /// What is tracked, by the chunks that are on record.
    tracking: Tracking,
    /// Whose leadership this is.
    epoch: u64,
    /// The last chunk's time: later ones have no earlier time.
    last_time: Timestamp,
    next_offset: u64,
    segments: Segments,
    /// What came in this turn.
    draft: Draft<E>,
    /// See [`Request::Pinned`].
    pinned: Option<u64>,
    /// Of a stream of several nodes. Closed segments are each node's own affair then, and nothing is dropped by the machine.
    files: Option<FilesHere>,
    retired: bool,
}

impl<E: Ends> Stream<E> {
    /// An empty stream.
    pub fn new(settings: StreamSettings) -> Self {
        Self {
            draft: Draft::new(settings.filter_bytes),
            settings,
            tracking: Tracking::default(),
            epoch: 0,
            last_time: Timestamp(0),
            next_offset: 0,
            segments: Segments::default(),
            pinned: None,
            files: None,
            retired: false,
        }
    }

    /// An empty stream of which several nodes have a copy.
    pub fn of_several(settings: StreamSettings) -> Self {
        Self {
            files: Some(FilesHere::default()),
            ..Self::new(settings)
        }
    }

    /// A stream whose closed segments are these, in order, and whose newest one begins at `first`. The chunks of that are to be
    /// applied next: the first one of them is a snapshot of what is tracked, unless it is the stream's first segment.
    pub fn of_segments(
        settings: StreamSettings,
        closed: impl IntoIterator<Item = Segment>,
        first: u64,
    ) -> Self {
        let mut stream = Self::new(settings);
        stream.segments = Segments::of(closed, first);
        stream.next_offset = stream.segments.next_offset();
        stream.last_time = stream.segments.last_time();
        stream
    }

    /// Whoever decides now does so in this epoch, if it is above that of the last chunk; otherwise in the next one.
    pub fn lead(&mut self, epoch: u64) {
        self.epoch = epoch.max(self.epoch + 1);
    }

    /// The newest segment goes on with a chunk that tracks nothing, of which only this is known. Not the last one: that is to be
    /// applied as it is.
    pub fn pass_over(&mut self, next: u64, bytes: u64, at: Timestamp) {
        self.next_offset = next;
        self.last_time = self.last_time.max(at);
        self.segments.grow(next, bytes, self.last_time);
    }

    /// Of a stream of several nodes: what this node's files have, as far as it was told.
    pub fn files_here(&self) -> FilesHere {
        self.files.unwrap_or_default()
    }

    /// What is tracked, as far as it is on record.
    pub fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    /// The segments that are closed, from the oldest on, and the one that is written to.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Takes over what a chunk says, wherever it was decided.
    fn take_over(&mut self, record: &Record) {
        let chunk = record.chunk();
        let header = *chunk.header();
        self.epoch = self.epoch.max(header.epoch);
        self.last_time = self.last_time.max(header.timestamp);
        if let Some(snapshot) = chunk.snapshot() {
            self.tracking = snapshot;
            self.segments.close(header.first_offset);
            if self.files.is_some() {
                self.segments.forget_closed();
            }
        }
        for tracked in chunk.tracked() {
            self.tracking.track(tracked, header.timestamp);
        }
        while self.tracking.sequences_len() > TRACKED_MOST {
            senders::forget_one(&mut self.tracking);
        }
        while self.tracking.offsets_len() > TRACKED_MOST {
            self.tracking.forget_lowest_offset();
        }
        self.next_offset = header.next_offset();
        let bytes = record.bytes().len() as u64;
        self.segments.grow(self.next_offset, bytes, self.last_time);
    }

    /// The first offset that is there, on this node.
    fn first_offset(&self) -> u64 {
        self.files
            .map_or_else(|| self.segments.first_offset(), |files| files.first)
    }

    fn drop_segments(&mut self, now: Timestamp, effects: &mut Vec<Effect<E>>) {
        if self.files.is_none() && self.segments.drop_old(&self.settings, now, self.pinned) {
            let offset = self.segments.first_offset();
            effects.push(Effect::DropBelow { offset });
        }
    }

    fn question(&mut self, reply: E::Reply, number: Option<u64>, effects: &mut Vec<Effect<E>>) {
        let answer = number.map_or(Answer::Unknown, Answer::Number);
        effects.push(Effect::Reply(reply, answer));
    }

    fn retire(&mut self, outcome: &mut Outcome<Record, Effect<E>>) {
        self.retired = true;
        let waiting = self.draft.give_up();
        outcome.effects.extend(waiting.map(Effect::Reject));
    }
}

impl<E: Ends> Machine for Stream<E> {
    type Request = Request<E>;
    type Record = Record;
    type Effect = Effect<E>;
    type Status = Status;

    fn handle(&mut self, now: Timestamp, request: Request<E>, outcome: &mut Outcome<Record, Effect<E>>) {
        if self.retired {
            self.refuse(request, outcome);
            return;
        }
        match request {
            Request::Publish {
                reference,
                batch,
                receipt,
            } => self.publish(now, reference, batch, receipt, outcome),
            Request::StoreOffset { reference, offset } => self.store_offset(reference, offset),
            Request::EndTurn => self.end_turn(now, outcome),
            Request::Sequence { reference, reply } => {
                let known = self.sequence(&reference);
                self.question(reply, known, &mut outcome.effects);
            }
            Request::Offset { reference, reply } => {
                let known = self.draft.offset(&reference);
                let known = known.or_else(|| self.tracking.offset(&reference));
                self.question(reply, known, &mut outcome.effects);
            }
            Request::Pinned { lowest } => self.pinned = lowest,
            Request::HasFiles(files) => self.files = self.files.map(|_| files),
            Request::Configure { settings } => {
                self.settings = settings;
                self.drop_segments(now, &mut outcome.effects);
            }
            Request::Wake => self.drop_segments(now, &mut outcome.effects),
            Request::Retire => self.retire(outcome),
        }
    }

    fn apply(&mut self, _: Index, record: Record, outcome: &mut Outcome<Record, Effect<E>>) {
        let header = *record.chunk().header();
        // What was applied before, or does not follow, would bear offsets that are taken or leave some out.
        if header.first_offset != self.next_offset {
            return;
        }
        self.take_over(&record);
        if header.kind == ChunkKind::TrackingSnapshot {
            self.drop_segments(header.timestamp, &mut outcome.effects);
        }
    }

    fn recovered(&mut self, _: bool) {
        self.lead(0);
    }

    fn follow(&mut self) {}

    fn wakes_at_ms(&self) -> u64 {
        self.segments.expires_at_ms(&self.settings)
    }

    fn status(&self) -> Status {
        Status {
            first_offset: self.first_offset(),
            next_offset: self.next_offset,
            segments: self.segments.len(),
            bytes: self.segments.bytes(),
        }
    }
}
