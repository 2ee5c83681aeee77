//! What time does to a queue: messages expire wherever they stand, and a queue that nobody uses ends.
//!
//! Time comes with each request. The host asks for the next deadline after each turn and sends `Wake` then; everything else
//! that is asked of the queue finds what is due gone as well.

use super::record::Expiry;
use super::{Classic, DropReason, Effect, Ends, FifoOutcome, Lane};
use model::{Block, LONGEST_MS, Mutant, Seq, Timestamp, delay_ms};

/// What time has done to a lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// Messages expired.
    pub gone: bool,
    /// Messages that waited for their next try are ready.
    pub again: bool,
}

impl<E: Ends> Classic<E> {
    /// Carries out what is due.
    #[cold]
    pub(super) fn due(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        let Due { gone, again } = self.lanes.due(now, outcome);
        // What stands behind the gone, too: a consumer may have waited for one of them to be read back.
        if again || gone {
            self.end_waiting(outcome);
            self.deliver(outcome);
        }
        if again {
            self.overflow(outcome);
        }
        if self.unused_at_ms <= now.0 {
            self.unused_at_ms = u64::MAX;
            outcome.effects.push(Effect::DeleteQueue);
        }
    }
}

impl Lane {
    /// When something is due here, in milliseconds since the Unix epoch; `u64::MAX` for never.
    #[inline]
    pub(super) fn wakes_at_ms(&self) -> u64 {
        self.contents
            .expiries
            .next_ms()
            .min(self.next_retry_ms())
            .min(self.store.retry_ms())
            .min(self.leaving.retry_ms())
    }

    /// Carries out what is due.
    pub(super) fn due<E: Ends>(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>) -> Due {
        let mut going = Vec::new();
        let again = self.retries_due(now);
        self.read_again(now, outcome);
        while let Some((first, last)) = self.contents.expiries.pop_due(now.0) {
            self.expire(first, last, &mut going);
        }
        let gone = !going.is_empty();
        if gone {
            self.discard(&going, DropReason::Expired, outcome);
        }
        Due { gone, again }
    }

    /// Tries again what could not be read.
    fn read_again<E: Ends>(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        if self.store.retry_ms() <= now.0 {
            self.store.retry_loads(now);
        }
        if self.leaving.retry_ms() <= now.0 {
            self.hand_over_again(now, outcome);
        }
    }

    /// Of `first..=last`, adds what is ready to `going`; what somebody holds expires if it comes back, and what is on its way
    /// to the dead-letter exchange if a crash brings it back.
    fn expire(&mut self, first: Seq, last: Seq, going: &mut Vec<(Seq, Seq)>) {
        self.wait_no_more(first, last);
        let mut late = Vec::new();
        let dispatch = &self.dispatch;
        self.store.live_spans(first, last, |_, from, to| {
            dispatch.ready_within(from, to, |from, to| going.push((from, to)));
            dispatch.held_within(from, to, |from, to| late.push((from, to)));
            dispatch.leaving_within(from, to, |from, to| late.push((from, to)));
        });
        for (from, to) in late {
            self.contents.expiries.set_late(from, to);
        }
    }

    /// Takes those of `spans`, which came back, whose deadline has passed meanwhile.
    pub(super) fn overdue(&mut self, spans: &[(Seq, Seq)]) -> Vec<(Seq, Seq)> {
        let mut overdue = Vec::new();
        if self.contents.expiries.any_late() {
            for (first, last) in spans {
                while let Some(late) = self.contents.expiries.take_late(*first, *last) {
                    overdue.push(late);
                }
            }
        }
        overdue
    }

    /// When messages `from..` of the block, which become `first`, `first + 1`, …, will expire: the queue's time to live or
    /// their own, whichever is shorter. Time runs from now, as RabbitMQ counts from a message's arrival in the queue.
    pub(super) fn expiries_of(&self, block: &Block, from: u32, first: Seq, now: Timestamp) -> Vec<Expiry> {
        let delays = self.settings.delays;
        let own = delays || block.may_expire();
        let Some(longest) = self.settings.message_ttl_ms.or(own.then_some(u64::MAX)) else {
            return Vec::new();
        };
        let last = first + (block.len() as u64 - u64::from(from)) - 1;
        if !own {
            let at_ms = deadline_ms(now, longest.min(LONGEST_MS));
            return vec![Expiry { first, last, at_ms }];
        }
        let mut expiries: Vec<Expiry> = Vec::new();
        for (seq, at) in (first..).zip(from as usize..block.len()) {
            let properties = block.message(at).properties;
            let own = match delays {
                true if Mutant::HalvesDelays.is_on() => Some(delay_ms(properties) / 2),
                true => Some(delay_ms(properties)),
                false => properties.expiration_ms().and_then(Result::ok),
            };
            let ttl = own.unwrap_or(u64::MAX).min(longest);
            if ttl == u64::MAX {
                continue;
            }
            let at_ms = deadline_ms(now, ttl);
            match expiries.last_mut() {
                Some(last) if last.at_ms == at_ms && last.last + 1 == seq => last.last = seq,
                _ => expiries.push(Expiry {
                    first: seq,
                    last: seq,
                    at_ms,
                }),
            }
        }
        expiries
    }
}

/// When something is due that may stay for so long, in milliseconds since the Unix epoch. What may not stay at all was due long
/// ago: it must not wait, and let what comes later go before it, if the node starts again with a clock that was set back.
fn deadline_ms(now: Timestamp, ttl_ms: u64) -> u64 {
    match ttl_ms {
        0 => 1,
        _ => now.0.saturating_add(ttl_ms),
    }
}
