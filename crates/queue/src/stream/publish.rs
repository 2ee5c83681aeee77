//! Chunks are made: what came in a turn is put together, and what a publisher sends again is recognised.

use super::{CHUNK_BYTES, Effect, Record, Request, Stream, TRACKED_MOST, TRACKING_BYTES};
use crate::ends::Ends;
use model::chunk::{Batch, ChunkBuilder, REFERENCE_BYTES, Tracked};
use model::{Outcome, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What came in this turn and is on no record yet.
pub(super) struct Draft<E: Ends> {
    builder: ChunkBuilder,
    /// The size that the builder's filter has.
    filter_bytes: u8,
    /// How far publishers have come by the entries in the builder, and by no later ones: it stands in the same chunk.
    sequences: BTreeMap<Arc<[u8]>, u64>,
    offsets: BTreeMap<Arc<[u8]>, u64>,
    /// All entries of these are in the builder, or on record.
    receipts: Vec<E::Receipt>,
}

impl<E: Ends> Draft<E> {
    pub(super) fn new(filter_bytes: u8) -> Self {
        Self {
            builder: ChunkBuilder::new(filter_bytes),
            filter_bytes,
            sequences: BTreeMap::new(),
            offsets: BTreeMap::new(),
            receipts: Vec::new(),
        }
    }

    /// What is furthest behind gives way if there are too many, as among those that are on record.
    pub(super) fn store_offset(&mut self, reference: Arc<[u8]>, offset: u64) {
        if reference.len() > REFERENCE_BYTES {
            return;
        }
        self.offsets.insert(reference, offset);
        if self.offsets.len() > TRACKED_MOST {
            let lowest = self.offsets.iter().min_by_key(|(_, offset)| **offset);
            if let Some(lowest) = lowest.map(|(reference, _)| reference.clone()) {
                self.offsets.remove(&lowest);
            }
        }
    }

    pub(super) fn offset(&self, reference: &[u8]) -> Option<u64> {
        self.offsets.get(reference).copied()
    }

    pub(super) fn give_up(&mut self) -> impl Iterator<Item = E::Receipt> {
        self.sequences.clear();
        self.offsets.clear();
        std::mem::take(&mut self.receipts).into_iter()
    }

    fn is_empty(&self) -> bool {
        self.builder.is_empty() && self.sequences.is_empty() && self.offsets.is_empty()
    }

    /// True if it has nothing, and nobody waits for that.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.receipts.is_empty()
    }
}

impl<E: Ends> Stream<E> {
    /// True if something came in this turn: a request to end it is due.
    pub fn has_draft(&self) -> bool {
        !self.draft.is_idle()
    }

    /// The last number of this publisher, with what came in this turn; `None` if there is none.
    pub fn sequence(&self, reference: &[u8]) -> Option<u64> {
        let drafted = self.draft.sequences.get(reference).copied();
        drafted.or_else(|| self.tracking.sequence(reference))
    }

    pub(super) fn publish(
        &mut self,
        now: Timestamp,
        reference: Option<Arc<[u8]>>,
        batch: Batch,
        receipt: Option<E::Receipt>,
        outcome: &mut Outcome<Record, Effect<E>>,
    ) {
        let reference = reference.filter(|reference| reference.len() <= REFERENCE_BYTES);
        match &reference {
            None => self.put(now, None, &batch, outcome),
            Some(reference) => {
                let last = self.sequence(reference);
                if batch.rises_above(last) {
                    self.put(now, Some(reference), &batch, outcome);
                } else {
                    self.put(now, Some(reference), &without_repeated(&batch, last), outcome);
                }
            }
        }
        self.draft.receipts.extend(receipt);
    }

    /// Puts entries into chunks, and finishes those that are full.
    fn put(
        &mut self,
        now: Timestamp,
        reference: Option<&Arc<[u8]>>,
        batch: &Batch,
        outcome: &mut Outcome<Record, Effect<E>>,
    ) {
        let mut at = 0;
        while at < batch.len() {
            let next = self.draft.builder.batch(batch, at, CHUNK_BYTES);
            if let Some(reference) = reference
                && let Some(id) = batch.id_before(next)
                && next > at
            {
                self.draft.sequences.insert(reference.clone(), id);
            }
            // A chunk has room for what is tracked of so many publishers.
            if next < batch.len() || self.draft.sequences.len() >= TRACKED_MOST {
                self.finish(now, outcome);
            }
            at = next;
        }
    }

    /// What is tracked already is not written again.
    pub(super) fn store_offset(&mut self, reference: Arc<[u8]>, offset: u64) {
        let known = self.draft.offset(&reference);
        if known.or_else(|| self.tracking.offset(&reference)) != Some(offset) {
            self.draft.store_offset(reference, offset);
        }
    }

    pub(super) fn end_turn(&mut self, now: Timestamp, outcome: &mut Outcome<Record, Effect<E>>) {
        if !self.draft.is_empty() {
            self.finish(now, outcome);
        }
        self.promise(outcome);
    }

    /// What the builder has becomes a record, and with it all that is tracked.
    fn finish(&mut self, now: Timestamp, outcome: &mut Outcome<Record, Effect<E>>) {
        let at = now.max(self.last_time);
        let active = self.segments.active();
        let most = match active.next > active.first {
            true => self.settings.segment_bytes,
            false => TRACKING_BYTES,
        };
        if active.bytes >= most {
            self.close_segment(at, outcome);
        }
        let draft = &mut self.draft;
        for (reference, id) in std::mem::take(&mut draft.sequences) {
            draft.builder.track(Tracked::Sequence {
                reference: &reference,
                id,
            });
        }
        for (reference, offset) in std::mem::take(&mut draft.offsets) {
            draft.builder.track(Tracked::Offset {
                reference: &reference,
                offset,
            });
        }
        let chunk = draft.builder.finish(at, self.epoch, self.next_offset);
        if draft.filter_bytes != self.settings.filter_bytes {
            draft.filter_bytes = self.settings.filter_bytes;
            draft.builder = ChunkBuilder::new(draft.filter_bytes);
        }
        self.record(chunk, outcome);
        self.promise(outcome);
    }

    /// The next segment begins with all that is tracked.
    fn close_segment(&mut self, at: Timestamp, outcome: &mut Outcome<Record, Effect<E>>) {
        self.tracking.forget_offsets_below(self.first_offset());
        let snapshot = self.tracking.to_chunk(at, self.epoch, self.next_offset);
        self.record(snapshot, outcome);
        self.drop_segments(at, &mut outcome.effects);
    }

    fn record(&mut self, chunk: Vec<u8>, outcome: &mut Outcome<Record, Effect<E>>) {
        let record = Record::made(chunk);
        self.take_over(&record);
        outcome.records.push(record);
    }

    /// What is complete is confirmed once all records up to here are safe.
    fn promise(&mut self, outcome: &mut Outcome<Record, Effect<E>>) {
        let receipts = self.draft.receipts.drain(..);
        outcome.promises.extend(receipts.map(Effect::Confirm));
    }

    /// The stream is gone.
    pub(super) fn refuse(&mut self, request: Request<E>, outcome: &mut Outcome<Record, Effect<E>>) {
        match request {
            Request::Publish {
                receipt: Some(receipt),
                ..
            } => outcome.effects.push(Effect::Reject(receipt)),
            Request::Sequence { reply, .. } | Request::Offset { reply, .. } => {
                outcome.effects.push(Effect::Reply(reply, super::Answer::Unknown));
            }
            _ => {}
        }
    }
}

/// The entries whose numbers are above all before them.
fn without_repeated(batch: &Batch, mut last: Option<u64>) -> Batch {
    let mut rest = Batch::default();
    for it in batch.iter() {
        if last.is_none_or(|last| it.id > last) && rest.push(it.id, it.value, it.entry).is_ok() {
            last = Some(it.id);
        }
    }
    rest
}
