//! Publishing: straight through to consumers if nothing stands in the way, into the contents otherwise.

use super::dispatch::Span;
use super::lanes::Lanes;
use super::{Classic, DropReason, Ends, FifoOutcome, Lane, Loss, Overflow, Record};
use model::{Block, Ranges, Timestamp};
use std::sync::Arc;

impl<E: Ends> Classic<E> {
    /// Takes a block that has room. True if it must be durable before it is confirmed.
    pub(super) fn enqueue(
        &mut self,
        block: Arc<Block>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) -> bool {
        let count = block.len() as u64;
        let gone = self.straight_through(&block, outcome);
        let gone = gone + self.overflow_before(count - gone, outcome);
        let durably = match &mut self.lanes {
            Lanes::One(lane) => {
                lane.skip(gone);
                gone < count && lane.enqueue(block, gone as u32, now, outcome)
            }
            Lanes::Sorted(lanes) => lanes.enqueue(&block, now, outcome),
        };
        if gone < count {
            self.deliver(outcome);
            self.overflow(outcome);
            self.lanes.relieve();
        }
        durably
    }

    /// Hands messages from the front of the block to consumers that do not acknowledge, so that they never become contents
    /// and need no record. Returns how many went.
    fn straight_through(&mut self, block: &Arc<Block>, outcome: &mut FifoOutcome<E>) -> u64 {
        let Lanes::One(lane) = &mut self.lanes else {
            return 0;
        };
        if block.is_empty() || lane.dispatch.ready > 0 || !self.consumers.ring.is_straight() {
            return 0;
        }
        let first = lane.store.next();
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
            .consumers
            .ring
            .deal(span, &mut Ranges::new(), &mut outcome.effects);
        lane.dispatch.handed += gone;
        gone
    }

    /// Makes room for `incoming` messages that nobody can take now, and says how many of them have to go themselves: in a
    /// short queue most of a block never becomes contents, nor needs a record.
    fn overflow_before(&mut self, incoming: u64, outcome: &mut FifoOutcome<E>) -> u64 {
        let (Some(limit), Lanes::One(lane)) = (self.settings.max_length, &mut self.lanes) else {
            return 0;
        };
        // Dead letters must be contents first, and a queue that refuses has made room before.
        if self.settings.dead_letter.is_some() || self.settings.overflow != Overflow::DropHead {
            return 0;
        }
        let excess = (lane.dispatch.ready + incoming).saturating_sub(limit);
        if excess == 0 || self.consumers.want() {
            return 0;
        }
        let dropped = lane.drop_ready(excess, u64::MAX, DropReason::MaxLength, outcome);
        lane.lost(Loss::Dropped(DropReason::MaxLength), excess - dropped);
        excess - dropped
    }
}

impl Lane {
    /// Numbers are used up by messages that never became contents, too: a number is a message's place in the queue's life.
    fn skip(&mut self, count: u64) {
        if count > 0 {
            self.store.skip(count);
            if self.dispatch.ready == 0 {
                self.dispatch.cursor = self.store.next();
            }
        }
    }

    /// Messages `from..` of the block become contents, and are ready. True if there is a record of it.
    pub(super) fn enqueue<E: Ends>(
        &mut self,
        block: Arc<Block>,
        from: u32,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) -> bool {
        let count = block.len() as u64 - u64::from(from);
        let journaled = self.settings.durable && block.persistent();
        let first = self.store.next();
        let bytes = block.body_bytes_of(from as usize, count as usize);
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
        self.dispatch.ready += count;
        self.dispatch.ready_bytes += bytes;
        journaled
    }

    /// Pages out what memory is too small for.
    #[inline]
    pub(super) fn relieve(&mut self) {
        self.store.relieve(self.dispatch.demand());
    }
}
