//! Queues that take a message only if none with the same header `x-deduplication-header` is there (`x-message-deduplication`).
//!
//! A message is there until it is settled or dropped: with a consumer, or waiting for its next try, it still is. On its way to
//! the dead-letter exchange it is not, or it could not come back to its queue. Whoever publishes a duplicate is told that the
//! queue has it, once the message that is there is as safe as the duplicate would have been.

use super::{Classic, Effect, Ends, FifoOutcome, Lane, Loss, Origin, Record};
use model::{Block, DeduplicationKey, Ranges, Seq, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Messages of a block that follow each other: all of them new, or all of them duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub from: usize,
    pub count: usize,
    pub new: bool,
}

/// The key of message number `at`.
pub(super) fn key_of(block: &Block, at: usize) -> Option<DeduplicationKey> {
    DeduplicationKey::of(block.message(at).properties)
}

/// The stretch of the block that begins at `from`, if `is_there` says what the queue has. It ends before a message
/// whose duplicate is in the stretch itself: whether that is there by then is seen when it has been taken.
fn stretch(block: &Block, from: usize, is_there: impl Fn(DeduplicationKey) -> bool) -> Stretch {
    let mut seen = BTreeSet::new();
    let mut is_new = |at: usize| match key_of(block, at) {
        None => Some(true),
        Some(key) if is_there(key) => Some(false),
        Some(key) => seen.insert(key).then_some(true),
    };
    let new = is_new(from).unwrap_or(true);
    let count = 1
        + (from + 1..block.len())
            .take_while(|at| is_new(*at) == Some(new))
            .count();
    Stretch { from, count, new }
}

/// The stretch's messages, and the part of the receipt for them. The receipt was for everything from the stretch on.
pub(super) fn cut<E: Ends>(
    block: &Arc<Block>,
    stretch: Stretch,
    receipt: &mut Option<E::Receipt>,
) -> (Option<Arc<Block>>, Option<E::Receipt>) {
    let Stretch { from, count, new } = stretch;
    let rest = block.len() - from;
    let part = match receipt {
        Some(whole) if count < rest => Some(E::split(whole, &Ranges::span(0, count as u64 - 1), rest)),
        _ => receipt.take(),
    };
    let piece = match (new, count == block.len()) {
        (false, _) => None,
        (true, true) => Some(block.clone()),
        (true, false) => {
            let bytes = block.slice(from, count).to_vec();
            Block::from_bytes(bytes, block.persistent(), block.received()).map(Arc::new)
        }
    };
    (piece, part)
}

impl<E: Ends> Classic<E> {
    /// Takes those of the block's messages that are not there yet, in order.
    #[cold]
    pub(super) fn publish_once(
        &mut self,
        block: &Arc<Block>,
        mut receipt: Option<E::Receipt>,
        origin: Option<Origin>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut at = 0;
        while at < block.len() {
            let stretch = stretch(block, at, |key| self.lanes.has(key));
            let (piece, part) = cut::<E>(block, stretch, &mut receipt);
            let origin = origin.map(|origin| origin.after(at));
            match piece {
                Some(piece) => self.publish_new(piece, part, origin, now, outcome),
                None => {
                    self.lanes.lost(Loss::Duplicate, stretch.count as u64);
                    self.decline(origin, stretch.count, block.persistent(), false, outcome);
                    self.confirm_present(block, part, outcome);
                }
            }
            at += stretch.count;
        }
    }

    /// What is there is as safe as what was sent just now would have been: once the journal has synced all that came
    /// before. Promises wait for records, so an empty one is written.
    pub(super) fn confirm_present(
        &mut self,
        block: &Block,
        receipt: Option<E::Receipt>,
        outcome: &mut FifoOutcome<E>,
    ) {
        let Some(receipt) = receipt else { return };
        if self.settings.journals(block.persistent()) {
            if outcome.records.is_empty() && !self.settings.replicated {
                let seqs = Ranges::new();
                outcome.records.push(Record::Settled { seqs });
            }
            outcome.promises.push(Effect::Confirm(receipt));
        } else {
            outcome.effects.push(Effect::Confirm(receipt));
        }
    }
}

impl Lane {
    /// True if a message with this key is there.
    pub(super) fn has(&self, key: DeduplicationKey) -> bool {
        self.contents.keys.get(key).is_some_and(|seq| self.counts(seq))
    }

    fn counts(&self, seq: Seq) -> bool {
        let leaving = || self.dispatch.leaving.overlap(seq, seq).is_some();
        self.store.lives(seq) && (!leaving() || self.contents.retries.waits(seq))
    }

    /// Notes the keys of messages `from..` of the block, which became `first`, `first + 1`, ….
    #[cold]
    pub(super) fn note_keys(&mut self, block: &Block, from: u32, first: Seq) {
        self.contents.note_keys(block, from, first);
        if self.contents.keys.is_crowded(self.store.live()) {
            self.contents.forget_keys(&self.store);
        }
    }
}
