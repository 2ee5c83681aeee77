//! What is published: it comes into the queue unless the queue is full and refuses (`x-overflow: reject-publish`),
//! straight through to consumers if nothing stands in the way, into the contents otherwise.

use super::dispatch::Span;
use super::lanes::Lanes;
use super::{Classic, DropReason, Effect, Ends, FifoOutcome, Lane, Loss, Origin, Overflow, Record, Sent};
use model::{Block, Machine, Ranges, Timestamp};
use std::sync::Arc;

impl<E: Ends> Classic<E> {
    pub(super) fn publish(
        &mut self,
        block: Arc<Block>,
        receipt: Option<E::Receipt>,
        origin: Option<Origin>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        if self.settings.deduplicates {
            self.publish_once(&block, receipt, origin, now, outcome);
        } else {
            self.publish_new(block, receipt, origin, now, outcome);
        }
    }

    pub(super) fn publish_new(
        &mut self,
        block: Arc<Block>,
        receipt: Option<E::Receipt>,
        origin: Option<Origin>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        if self.settings.overflow == Overflow::DropHead || self.fits(&block, 0, block.len()) == block.len() {
            let durably = self.enqueue(block, origin, now, outcome);
            confirm(receipt, durably, outcome);
        } else {
            self.admit(&block, receipt, origin, now, outcome);
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
        origin: Option<Origin>,
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
                let origin = origin.map(|origin| origin.after(at));
                self.decline(origin, last + 1 - at, block.persistent(), true, outcome);
                at = last + 1;
                continue;
            }
            let part = block.slice(at, count).to_vec();
            if let Some(part) = Block::from_bytes(part, block.persistent(), block.received()) {
                let origin = origin.map(|origin| origin.after(at));
                durably |= self.enqueue(Arc::new(part), origin, now, outcome);
            }
            at += count;
        }
        self.lanes.lost(Loss::Refused, refused.count());
        if self.settings.overflow == Overflow::RejectAndDeadLetter {
            self.lanes.dead_letter_refused(block, &refused, outcome);
        }
        let Some(mut receipt) = receipt else { return };
        let rejected = E::split(&mut receipt, &refused, block.len());
        self.reject(rejected, outcome);
        if refused.count() < block.len() as u64 {
            confirm(Some(receipt), durably, outcome);
        }
    }

    /// Tells the publisher that the queue refused. Of a replicated queue that is so once it is committed, as with a confirm.
    pub(super) fn reject(&self, receipt: E::Receipt, outcome: &mut FifoOutcome<E>) {
        match self.settings.replicated {
            true => outcome.promises.push(Effect::Reject(receipt)),
            false => outcome.effects.push(Effect::Reject(receipt)),
        }
    }

    /// Takes a block that has room. True if it must be durable before it is confirmed.
    fn enqueue(
        &mut self,
        block: Arc<Block>,
        origin: Option<Origin>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) -> bool {
        let count = block.len() as u64;
        self.lanes.sort_if_needed(&block, outcome);
        let gone = self.straight_through(&block, outcome);
        let gone = gone + self.overflow_before(count - gone, outcome);
        let durably = match &mut self.lanes {
            Lanes::One(lane) => {
                lane.skip(gone);
                let sent = origin
                    .filter(|_| gone < count)
                    .map(|origin| Sent::all(origin.after(gone as usize), count - gone));
                gone < count && lane.enqueue(block, gone as u32, sent, now, outcome)
            }
            Lanes::Sorted(lanes) => lanes.enqueue(&block, origin, now, outcome),
        };
        if gone < count {
            self.deliver(outcome);
            self.overflow(outcome);
            self.lanes.relieve();
        }
        durably
    }

    /// Hands messages from the front of the block to consumers that do not acknowledge, so that they never become contents
    /// and need no record. Returns how many went: of a replicated queue, which has a record of every message, none.
    fn straight_through(&mut self, block: &Arc<Block>, outcome: &mut FifoOutcome<E>) -> u64 {
        let Lanes::One(lane) = &mut self.lanes else {
            return 0;
        };
        if block.is_empty() || lane.dispatch.ready > 0 || !self.consumers.ring.is_straight() {
            return 0;
        }
        if self.settings.replicated {
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
            failures: None,
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
        // A number without a record would be given to another message by whoever decides next.
        if self.settings.replicated {
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
        sent: Option<Box<Sent>>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) -> bool {
        let count = block.len() as u64 - u64::from(from);
        let journaled = self.settings.journals(block.persistent());
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
                sent,
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

fn confirm<E: Ends>(receipt: Option<E::Receipt>, durably: bool, outcome: &mut FifoOutcome<E>) {
    let Some(receipt) = receipt else { return };
    match durably {
        true => outcome.promises.push(Effect::Confirm(receipt)),
        false => outcome.effects.push(Effect::Confirm(receipt)),
    }
}
