//! Dropping what is ready: too much of it, or purged.

use super::{Answer, DropReason, Effect, Ends, Fifo, FifoOutcome, Loss, Overflow, QueueSettings};
use model::{Ranges, Seq, Timestamp};

impl<E: Ends> Fifo<E> {
    /// Drops the oldest ready messages until the limits are kept. Only ready messages count, as in RabbitMQ. A consumer may have
    /// waited for one of them to be read back, with the next one in memory: that goes out.
    pub(super) fn overflow(&mut self, outcome: &mut FifoOutcome<E>) {
        // Which of several lanes has to give is not for one of them to say.
        if self.settings.overflow != Overflow::DropHead || self.dispatch.is_closed() {
            return;
        }
        let excess = self
            .settings
            .max_length
            .map_or(0, |limit| self.dispatch.ready.saturating_sub(limit));
        let mut dropped = 0;
        if excess > 0 {
            dropped += self.drop_ready(excess, u64::MAX, DropReason::MaxLength, outcome);
        }
        let limit = self.settings.max_length_bytes.unwrap_or(u64::MAX);
        if self.dispatch.ready_bytes > limit {
            let bytes = self.dispatch.ready_bytes - limit;
            dropped += self.drop_ready(u64::MAX, bytes, DropReason::MaxLength, outcome);
        }
        if dropped > 0 {
            self.deliver(outcome);
        }
    }

    pub(super) fn purge(&mut self, reply: E::Reply, outcome: &mut FifoOutcome<E>) {
        self.wait_no_more(0, Seq::MAX);
        let dropped = self.drop_ready(u64::MAX, u64::MAX, DropReason::Purged, outcome);
        outcome
            .effects
            .push(Effect::Reply(reply, Answer::Purged(dropped)));
    }

    pub(super) fn configure(
        &mut self,
        settings: QueueSettings,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        // Durability is what a queue was declared with; its journal would not know of a change.
        self.settings = QueueSettings {
            durable: self.settings.durable,
            ..settings
        };
        self.dispatch.ring.set_single(self.settings.single_active);
        self.record_suspicion(outcome);
        self.unused_at_ms = u64::MAX;
        self.used(now);
        self.drop_spent(outcome);
        // What is due leaves by the new settings: a queue that comes from the log has no others, and would know of no
        // dead-letter exchange for what expired meanwhile.
        if self.wakes_at_ms() <= now.0 {
            self.due(now, outcome);
        }
        self.overflow(outcome);
    }

    /// Drops the oldest ready messages: at most `count`, and no more than it takes to get rid of `bytes` of bodies. Returns
    /// how many.
    pub(super) fn drop_ready(
        &mut self,
        count: u64,
        bytes: u64,
        reason: DropReason,
        outcome: &mut FifoOutcome<E>,
    ) -> u64 {
        let leaving = self.dead_letters_to(reason).is_some();
        let mut journaled = Ranges::new();
        let mut going = Vec::new();
        let (mut dropped, mut won) = (0, 0);
        while dropped < count && won < bytes {
            let Some(ready) = self.next_ready() else { break };
            let Some(run) = self.store.run(ready.slot) else {
                break;
            };
            let last = ready.last.min(ready.first.saturating_add(count - dropped - 1));
            let (last, size) = match bytes {
                u64::MAX => (last, run.body_bytes(ready.first, last)),
                _ => enough(ready.first, last, bytes - won, |seq| run.body_bytes(seq, seq)),
            };
            self.store.passed(ready.slot, last, self.dispatch.cursor);
            self.dispatch.take(ready.first, last, size);
            match leaving {
                true => going.push((ready.first, last)),
                false => {
                    let store = &mut self.store;
                    self.contents.remove(store, ready.first, last, &mut journaled);
                }
            }
            dropped += last + 1 - ready.first;
            won += size;
        }
        self.record_dropped(journaled, reason, outcome);
        match leaving {
            true => self.let_leave(going, reason, outcome),
            false => self.lost(Loss::Dropped(reason), dropped),
        }
        self.end_waiting(outcome);
        dropped
    }
}

/// The shortest prefix of `first..=last` whose sizes add up to `bytes`: its last number and its size.
pub(super) fn enough(first: Seq, last: Seq, bytes: u64, size: impl Fn(Seq) -> u64) -> (Seq, u64) {
    let mut sum = 0;
    for seq in first..=last {
        sum += size(seq);
        if sum >= bytes {
            return (seq, sum);
        }
    }
    (last, sum)
}
