//! What is published comes into the queue, unless the queue is full and refuses (`x-overflow: reject-publish`).

use super::{Classic, Effect, Ends, FifoOutcome, Loss, Overflow};
use model::{Block, Ranges, Timestamp};
use std::sync::Arc;

impl<E: Ends> Classic<E> {
    pub(super) fn publish(
        &mut self,
        block: Arc<Block>,
        receipt: Option<E::Receipt>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        if self.settings.deduplicates {
            self.publish_once(&block, receipt, now, outcome);
        } else {
            self.publish_new(block, receipt, now, outcome);
        }
    }

    pub(super) fn publish_new(
        &mut self,
        block: Arc<Block>,
        receipt: Option<E::Receipt>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        if self.settings.overflow == Overflow::DropHead || self.fits(&block, 0, block.len()) == block.len() {
            let durably = self.enqueue(block, now, outcome);
            confirm(receipt, durably, outcome);
        } else {
            self.admit(&block, receipt, now, outcome);
        }
        if self.wakes_at_ms() <= now.0 {
            // A time to live of zero: what nobody took at once is gone.
            self.due(now, outcome);
        }
    }

    /// How many of the block's messages from `from` on, up to `end`, have room. As in RabbitMQ a message is refused if the queue
    /// would be over a limit with it, whether or not a consumer is waiting.
    fn fits(&self, block: &Block, from: usize, end: usize) -> usize {
        let count = self
            .settings
            .max_length
            .map_or(u64::MAX, |limit| limit.saturating_sub(self.lanes.ready()));
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(end - from);
        let Some(limit) = self.settings.max_length_bytes else {
            return count;
        };
        let mut room = limit.saturating_sub(self.lanes.ready_bytes());
        for at in from..from + count {
            match room.checked_sub(block.message(at).body.len() as u64) {
                Some(left) => room = left,
                None => return at - from,
            }
        }
        count
    }

    /// Takes those of the block's messages that have room, in order; what consumers take meanwhile makes room for more.
    fn admit(
        &mut self,
        block: &Arc<Block>,
        receipt: Option<E::Receipt>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut refused = Ranges::new();
        let mut durably = false;
        let mut at = 0;
        while at < block.len() {
            let count = self.fits(block, at, block.len());
            if count == 0 {
                // Without room for one there is none for the next either, unless it is smaller.
                let full = self
                    .settings
                    .max_length
                    .is_some_and(|limit| self.lanes.ready() >= limit);
                let last = if full { block.len() - 1 } else { at };
                refused.push_span(at as u64, last as u64);
                at = last + 1;
                continue;
            }
            let part = block.slice(at, count).to_vec();
            if let Some(part) = Block::from_bytes(part, block.persistent(), block.received()) {
                durably |= self.enqueue(Arc::new(part), now, outcome);
            }
            at += count;
        }
        self.lanes.lost(Loss::Refused, refused.count());
        if self.settings.overflow == Overflow::RejectAndDeadLetter {
            self.lanes.dead_letter_refused(block, &refused, outcome);
        }
        let Some(mut receipt) = receipt else { return };
        outcome
            .effects
            .push(Effect::Reject(E::split(&mut receipt, &refused, block.len())));
        if refused.count() < block.len() as u64 {
            confirm(Some(receipt), durably, outcome);
        }
    }
}

fn confirm<E: Ends>(receipt: Option<E::Receipt>, durably: bool, outcome: &mut FifoOutcome<E>) {
    let Some(receipt) = receipt else { return };
    match durably {
        true => outcome.promises.push(Effect::Confirm(receipt)),
        false => outcome.effects.push(Effect::Confirm(receipt)),
    }
}
