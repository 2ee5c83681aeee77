//! A stream: an append-only log of chunks that many readers follow, each at its own place
//! ([decision 70](../../../../docs/decisions/0070-streams.md)).
//!
//! The machine decides what stands in a chunk and which offset it has, recognises what a publisher sends again, knows what is
//! tracked, who reads where, who is the active one of a group, and which segments go. Its record is a chunk, as it is written,
//! replicated and read. It never has a message in memory longer than until the end of a turn: reading is the host's, who is told
//! from where to where.
//!
//! Reading order: this file, [`record`], `publish` (chunks are made), [`readers`], [`groups`],
//! [`segments`], `asked`.

mod asked;
pub mod groups;
mod publish;
pub mod readers;
pub mod record;
pub mod segments;
#[cfg(test)]
mod tests;

pub use asked::{Start, StreamRequest};
pub use readers::From;
pub use record::Record;
pub use segments::Segment;

use crate::ends::Ends;
use groups::Groups;
use model::chunk::{Batch, ChunkKind, Tracking};
use model::{ConsumerId, Index, Machine, Outcome, Timestamp};
use publish::Draft;
use readers::Readers;
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
    /// Everything below this offset is safe, and may be read.
    Committed { below: u64 },
    /// The last number of this publisher? Answered with [`Answer::Number`] or [`Answer::Unknown`].
    Sequence { reference: Arc<[u8]>, reply: E::Reply },
    /// The offset of this consumer? Answered in the same way.
    Offset { reference: Arc<[u8]>, reply: E::Reply },
    /// Add a reader, which may be sent so many chunks. Whoever asks is answered with [`Answer::Number`]: the offset where it
    /// begins.
    Attach {
        reader: ConsumerId,
        outlet: E::Outlet,
        from: From,
        credit: u32,
        reply: Option<E::Reply>,
    },
    /// It may be sent so many chunks more.
    Credit { reader: ConsumerId, chunks: u32 },
    /// What [`Effect::Read`] ordered was done: the reader stands at `next`, and was sent so many chunks.
    Sent {
        reader: ConsumerId,
        next: u64,
        chunks: u32,
    },
    /// It reads no more. It leaves its group, too.
    Detach { reader: ConsumerId },
    /// It reads nothing, and is told when the stream is gone.
    Watch { reader: ConsumerId, outlet: E::Outlet },
    /// It belongs to this group, of which one at a time is active. `partition` is the stream's place among those of a super
    /// stream, over which the active ones are spread.
    Join {
        reader: ConsumerId,
        group: Arc<[u8]>,
        partition: Option<u32>,
    },
    /// It has heard that it is active no more.
    SteppedDown { reader: ConsumerId },
    /// Other settings are in force.
    Configure { settings: StreamSettings },
    /// Look at what is too old.
    Wake,
    /// The stream is deleted: readers are told, and everything later is ignored. Receipts come back as refused.
    Retire,
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
    /// Send the reader chunks of messages: from the one with offset `from` on, or the first that is there, none that begins at
    /// `below` or later, and `chunks` at most. Those that its filter passes over cost nothing. Answered by [`Request::Sent`].
    Read {
        reader: ConsumerId,
        outlet: E::Outlet,
        from: u64,
        below: u64,
        chunks: u32,
    },
    /// Tell the reader that it is its group's active one, or is it no longer; the latter is answered by
    /// [`Request::SteppedDown`].
    Update { reader: ConsumerId, active: bool },
    /// Segments that end at or below this offset may go.
    DropBelow { offset: u64 },
    /// Tell the reader that the stream is gone.
    Gone { reader: ConsumerId, outlet: E::Outlet },
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
    /// Everything below is safe.
    pub committed: u64,
    /// Where the last chunk that is safe begins; [`Status::committed`] if there is none since the start.
    pub last_chunk: u64,
    /// How many segments there are.
    pub segments: usize,
    /// All chunks, in bytes.
    pub bytes: u64,
    /// How many read.
    pub readers: usize,
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
    readers: Readers<E>,
    groups: Groups,
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
            readers: Readers::default(),
            groups: Groups::default(),
            retired: false,
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
        stream.readers.commit(stream.next_offset, &mut Vec::new());
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
        self.readers.commit(next, &mut Vec::new());
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
        }
        for tracked in chunk.tracked() {
            self.tracking.track(tracked, header.timestamp);
        }
        while self.tracking.sequences_len() > TRACKED_MOST {
            self.tracking.forget_oldest_sequence();
        }
        while self.tracking.offsets_len() > TRACKED_MOST {
            self.tracking.forget_lowest_offset();
        }
        self.next_offset = header.next_offset();
        let bytes = record.bytes().len() as u64;
        self.segments.grow(self.next_offset, bytes, self.last_time);
        if header.records > 0 {
            self.readers.wrote(header.first_offset, self.next_offset);
        }
    }

    fn drop_segments(&mut self, now: Timestamp, effects: &mut Vec<Effect<E>>) {
        let pinned = self.readers.lowest();
        if self.segments.drop_old(&self.settings, now, pinned) {
            let offset = self.segments.first_offset();
            effects.push(Effect::DropBelow { offset });
        }
    }

    fn question(&mut self, reply: E::Reply, number: Option<u64>, effects: &mut Vec<Effect<E>>) {
        let answer = number.map_or(Answer::Unknown, Answer::Number);
        effects.push(Effect::Reply(reply, answer));
    }

    fn attach(&mut self, reader: ConsumerId, outlet: E::Outlet, from: From, credit: u32) -> u64 {
        let at = match from {
            From::First => self.segments.first_offset(),
            From::Last => self.readers.last_chunk().max(self.segments.first_offset()),
            From::Next => self.readers.committed(),
            From::Offset(offset) => offset
                .max(self.segments.first_offset())
                .min(self.readers.committed()),
        };
        self.readers.attach(reader, outlet, at, credit);
        at
    }

    fn retire(&mut self, outcome: &mut Outcome<Record, Effect<E>>) {
        self.retired = true;
        let waiting = self.draft.give_up();
        outcome.effects.extend(waiting.map(Effect::Reject));
        self.readers.end(&mut outcome.effects);
        self.groups = Groups::default();
    }

    fn handle_reader(&mut self, request: Request<E>, outcome: &mut Outcome<Record, Effect<E>>) {
        match request {
            Request::Attach {
                reader,
                outlet,
                from,
                credit,
                reply,
            } => {
                let at = self.attach(reader, outlet, from, credit);
                if let Some(reply) = reply {
                    self.question(reply, Some(at), &mut outcome.effects);
                }
                self.readers.go_on(reader, &mut outcome.effects);
            }
            Request::Watch { reader, outlet } => self.readers.watch(reader, outlet),
            Request::Credit { reader, chunks } => {
                self.readers.credit(reader, chunks);
                self.readers.go_on(reader, &mut outcome.effects);
            }
            Request::Sent { reader, next, chunks } => {
                self.readers.sent(reader, next, chunks);
                self.readers.go_on(reader, &mut outcome.effects);
            }
            Request::Detach { reader } => {
                self.readers.detach(reader);
                self.groups.leave(reader, &mut outcome.effects);
            }
            Request::Join {
                reader,
                group,
                partition,
            } => self.groups.join(reader, &group, partition, &mut outcome.effects),
            Request::SteppedDown { reader } => self.groups.stepped_down(reader, &mut outcome.effects),
            Request::Committed { below } => {
                self.readers
                    .commit(below.min(self.next_offset), &mut outcome.effects);
            }
            _ => {}
        }
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
            Request::Configure { settings } => {
                self.settings = settings;
                self.drop_segments(now, &mut outcome.effects);
            }
            Request::Wake => self.drop_segments(now, &mut outcome.effects),
            Request::Retire => self.retire(outcome),
            other => self.handle_reader(other, outcome),
        }
    }

    fn apply(&mut self, _: Index, record: Record, outcome: &mut Outcome<Record, Effect<E>>) {
        let header = *record.chunk().header();
        // What was applied before, or does not follow, would bear offsets that are taken or leave some out.
        if header.first_offset != self.next_offset {
            return;
        }
        self.take_over(&record);
        // What is applied is safe.
        self.readers.commit(self.next_offset, &mut outcome.effects);
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
            first_offset: self.segments.first_offset(),
            next_offset: self.next_offset,
            committed: self.readers.committed(),
            last_chunk: self.readers.last_chunk(),
            segments: self.segments.len(),
            bytes: self.segments.bytes(),
            readers: self.readers.len(),
        }
    }
}
