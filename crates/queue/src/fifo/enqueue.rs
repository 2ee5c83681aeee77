//! Publishing: straight through to consumers if nothing stands in the way, into the contents otherwise.

use super::dispatch::Span;
use super::{DropReason, Effect, Ends, Fifo, FifoOutcome, Record};
use model::{Block, Ranges};
use std::sync::Arc;

impl<E: Ends> Fifo<E> {
    pub(super) fn enqueue(
        &mut self,
        block: Arc<Block>,
        receipt: Option<E::Receipt>,
        outcome: &mut FifoOutcome<E>,
    ) {
        let count = block.len() as u64;
        let journaled = self.settings.durable && block.persistent();
        let gone = self.straight_through(&block, outcome);
        let gone = gone + self.overflow_before(count - gone, outcome);
        if gone > 0 {
            // Numbers are used up all the same: a number is a message's place in the queue's life.
            self.contents.skip(gone);
            if self.dispatch.ready == 0 {
                self.dispatch.cursor = self.contents.next();
            }
        }
        if gone < count {
            let (first, from) = (self.contents.next(), gone as u32);
            let bytes = block.body_bytes_of(from as usize, (count - gone) as usize);
            let index = journaled.then_some(self.next_index);
            if journaled {
                self.record(
                    Record::Enqueued {
                        first,
                        block: block.clone(),
                        from,
                    },
                    outcome,
                );
            }
            self.contents.enqueue(first, block, from, index);
            self.dispatch.ready += count - gone;
            self.dispatch.ready_bytes += bytes;
            self.deliver(outcome);
            self.overflow(outcome);
            self.relieve(outcome);
        }
        if let Some(receipt) = receipt {
            match journaled && gone < count {
                true => outcome.promises.push(Effect::Confirm(receipt)),
                false => outcome.effects.push(Effect::Confirm(receipt)),
            }
        }
    }

    /// Hands messages from the front of the block to consumers that do not acknowledge, so that they never become contents
    /// and need no record. Returns how many went.
    fn straight_through(&mut self, block: &Arc<Block>, outcome: &mut FifoOutcome<E>) -> u64 {
        if block.is_empty() || self.dispatch.ready > 0 || !self.dispatch.ring.is_straight() {
            return 0;
        }
        let first = self.contents.next();
        let last = first + block.len() as u64 - 1;
        let span = Span {
            first,
            last,
            block,
            base: first,
            redelivered: false,
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
        let wanted = !self.dispatch.gets.is_empty() || self.dispatch.ring.is_hungry();
        if self.dispatch.ready + incoming <= limit || wanted {
            return 0;
        }
        let excess = self.dispatch.ready + incoming - limit;
        let dropped = self.drop_ready(excess, u64::MAX, DropReason::MaxLength, outcome);
        excess - dropped
    }
}
