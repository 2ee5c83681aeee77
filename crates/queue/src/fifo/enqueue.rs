//! Publishing: straight through to consumers if nothing stands in the way, into the contents otherwise.

use super::dispatch::Span;
use super::{DropReason, Ends, Fifo, FifoOutcome, Loss, Overflow, Record};
use model::{Block, Ranges, Timestamp};
use std::sync::Arc;

impl<E: Ends> Fifo<E> {
    /// Takes a block that has room. True if it must be durable before it is confirmed.
    pub(super) fn enqueue(
        &mut self,
        block: Arc<Block>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) -> bool {
        let count = block.len() as u64;
        let journaled = self.settings.durable && block.persistent();
        let gone = self.straight_through(&block, outcome);
        let gone = gone + self.overflow_before(count - gone, outcome);
        if gone > 0 {
            // Numbers are used up all the same: a number is a message's place in the queue's life.
            self.store.skip(gone);
            if self.dispatch.ready == 0 {
                self.dispatch.cursor = self.store.next();
            }
        }
        if gone < count {
            let (first, from) = (self.store.next(), gone as u32);
            let bytes = block.body_bytes_of(from as usize, (count - gone) as usize);
            let expiries = self.expiries_of(&block, from, first, now);
            if journaled {
                outcome.records.push(Record::Enqueued {
                    first,
                    block: block.clone(),
                    from,
                    expiries: expiries.clone(),
                    keyed: self.settings.deduplicates,
                });
            }
            if self.settings.deduplicates {
                self.store.enqueue(first, block.clone(), from, journaled);
                self.note_keys(&block, from, first);
            } else {
                self.store.enqueue(first, block, from, journaled);
            }
            self.contents.expire_at(&self.store, &expiries);
            self.dispatch.ready += count - gone;
            self.dispatch.ready_bytes += bytes;
            self.deliver(outcome);
            self.overflow(outcome);
            self.store.relieve(self.dispatch.demand());
        }
        journaled && gone < count
    }

    /// Hands messages from the front of the block to consumers that do not acknowledge, so that they never become contents
    /// and need no record. Returns how many went.
    fn straight_through(&mut self, block: &Arc<Block>, outcome: &mut FifoOutcome<E>) -> u64 {
        if block.is_empty()
            || self.dispatch.is_closed()
            || self.dispatch.ready > 0
            || !self.dispatch.ring.is_straight()
        {
            return 0;
        }
        let first = self.store.next();
        let last = first + block.len() as u64 - 1;
        let span = Span {
            first,
            last,
            block,
            base: first,
            redelivered: false,
            returns: 0,
        };
        let gone = self
            .dispatch
            .ring
            .deal(span, &mut Ranges::new(), &mut outcome.effects);
        self.dispatch.handed += gone;
        gone
    }

    /// Makes room for `incoming` messages that nobody can take now, and says how many of them have to go themselves: in a
    /// short queue most of a block never becomes contents, nor needs a record.
    fn overflow_before(&mut self, incoming: u64, outcome: &mut FifoOutcome<E>) -> u64 {
        let Some(limit) = self.settings.max_length else {
            return 0;
        };
        // Dead letters must be contents first, and a queue that refuses has made room before.
        if self.settings.dead_letter.is_some()
            || self.settings.overflow != Overflow::DropHead
            || self.dispatch.is_closed()
        {
            return 0;
        }
        let wanted = !self.dispatch.gets.is_empty() || self.dispatch.ring.is_hungry();
        if self.dispatch.ready + incoming <= limit || wanted {
            return 0;
        }
        let excess = self.dispatch.ready + incoming - limit;
        let dropped = self.drop_ready(excess, u64::MAX, DropReason::MaxLength, outcome);
        self.lost(Loss::Dropped(DropReason::MaxLength), excess - dropped);
        excess - dropped
    }
}
