//! Dropping what is ready: too much of it, or purged.

use super::{Answer, Classic, DropReason, Effect, Ends, FifoOutcome, Lane, Loss, Overflow, QueueSettings};
use model::{Machine, Mutant, Ranges, Seq, Timestamp};
use std::sync::Arc;

impl<E: Ends> Classic<E> {
    /// Drops ready messages from the head until the limits are kept. Only ready messages count, as in RabbitMQ. A
    /// consumer may have waited for one of them to be read back, with the next one in memory: that goes out.
    pub(super) fn overflow(&mut self, outcome: &mut FifoOutcome<E>) {
        // A queue that refuses new messages keeps what it took, also if it came back or the limit is a new one.
        if self.settings.overflow != Overflow::DropHead || Mutant::KeepsTooMany.is_on() {
            return;
        }
        let mut some = false;
        while let Some((count, bytes)) = self.excess() {
            if self.lanes.drop_head(count, bytes, outcome) == 0 {
                break;
            }
            some = true;
        }
        if some {
            self.deliver(outcome);
        }
    }

    /// How much has to go: so many messages, or so many bytes of bodies. `None` if the limits are kept.
    #[inline]
    fn excess(&self) -> Option<(u64, u64)> {
        if let Some(limit) = self.settings.max_length
            && self.lanes.ready() > limit
        {
            return Some((self.lanes.ready() - limit, u64::MAX));
        }
        let bytes = self.lanes.ready_bytes();
        let limit = self.settings.max_length_bytes?;
        (bytes > limit).then(|| (u64::MAX, bytes - limit))
    }

    pub(super) fn purge(&mut self, reply: E::Reply, outcome: &mut FifoOutcome<E>) {
        let mut purged = 0;
        self.lanes.each(outcome, |lane, outcome| {
            lane.wait_no_more(0, Seq::MAX);
            purged += lane.drop_ready(u64::MAX, u64::MAX, DropReason::Purged, outcome);
        });
        self.end_waiting(outcome);
        outcome.effects.push(Effect::Reply(reply, Answer::Purged(purged)));
    }

    pub(super) fn configure(
        &mut self,
        settings: QueueSettings,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        // Durability is what a queue was declared with, and its kind of journal what it was made with; the journal would not know
        // of a change.
        let settings = QueueSettings {
            durable: self.settings.durable,
            replicated: self.settings.replicated,
            ..settings
        };
        // Whoever begins to lead is told what it was made with.
        let settings = match settings == *self.settings {
            true => self.settings.clone(),
            false => Arc::new(settings),
        };
        self.settings = settings.clone();
        let ring = &mut self.consumers.ring;
        ring.set_single(settings.single_active, settings.active_by_priority);
        self.lanes.configure(&settings, outcome);
        self.unused_at_ms = u64::MAX;
        self.used(now);
        // What is due leaves by the new settings: a queue that comes from the log has no others, and would know of no
        // dead-letter exchange for what expired meanwhile.
        if self.wakes_at_ms() <= now.0 {
            self.due(now, outcome);
        }
        self.overflow(outcome);
        self.end_waiting(outcome);
    }
}

impl Lane {
    /// New settings are in force.
    pub(super) fn configure<E: Ends>(&mut self, settings: Arc<QueueSettings>, outcome: &mut FifoOutcome<E>) {
        self.settings = settings;
        self.record_suspicion(outcome);
        self.drop_spent(outcome);
    }

    /// Drops the oldest ready messages: at most `count`, and no more than it takes to get rid of `bytes` of bodies. Returns
    /// how many.
    pub(super) fn drop_ready<E: Ends>(
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
