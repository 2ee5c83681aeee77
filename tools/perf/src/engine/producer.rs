//! One producer: a channel that publishes when its schedule, its confirms and the window let it.

use super::confirms::Confirms;
use super::shared::{Shared, lock};
use crate::failure::Failure;
use crate::measure::Recorder;
use crate::message::Messages;
use crate::pace::{Due, Pacer};
use crate::plan::{LatencyFrom, Plan, Schedule};
use crate::topology::Route;
use protocol::amqp::encode;
use protocol::amqp::method::TxCommit;
use std::sync::atomic::Ordering::Relaxed;

/// A producer stops filling the socket's buffer here, in bytes: others on the same thread have their turn.
const CHUNK: usize = 64 * 1024;

/// What a producer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Nothing: it would go on at once.
    Turn,
    /// This moment, in nanoseconds of the monotonic clock.
    Moment(u64),
    /// The window of unconsumed messages.
    Window,
    /// A frame from the broker: a confirm, the end of a transaction.
    Broker,
    /// Nothing any more.
    Nothing,
}

/// A producer and what it has published.
pub struct Producer {
    /// Among all producers of the load.
    pub index: u32,
    pub channel: u16,
    messages: Messages,
    /// Made when the load begins, so that all producers count from one moment.
    pacer: Option<Pacer>,
    schedule: Schedule,
    /// All producers of the load.
    of: u64,
    delay: u64,
    confirms: Option<Confirms>,
    /// The number of the first message on this channel, which has delivery tag 1.
    tagged_from: u64,
    window: usize,
    limit: u64,
    transaction: u32,
    in_transaction: u32,
    committing: bool,
    /// The window was full when it was asked last.
    starved: bool,
    /// Since when no confirm came although the confirm window is full; 0: it is not full.
    stuck_since: u64,
    counted_down: bool,
    from_intended: bool,
    verify: bool,
}

impl Producer {
    /// # Errors
    /// If the bodies can't be read.
    pub fn new(
        plan: &Plan,
        index: u32,
        channel: u16,
        route: &Route,
        frame_max: u32,
        start: u64,
    ) -> Result<Self, Failure> {
        Ok(Self {
            index,
            channel,
            messages: Messages::new(plan, index, channel, route, frame_max, start)?,
            pacer: None,
            schedule: plan.producing.schedule.clone(),
            of: (plan.producing.producers * plan.producing.channels).max(1) as u64,
            delay: random_delay(plan),
            confirms: plan.producing.confirm.map(|_| Confirms::new()),
            tagged_from: 0,
            // 0 and below mean confirms without a window, as in PerfTest.
            window: match plan.producing.confirm {
                Some(limit) if limit > 0 => limit as usize,
                _ => usize::MAX,
            },
            limit: plan.producing.messages.unwrap_or(u64::MAX),
            transaction: plan.producing.transaction,
            in_transaction: 0,
            committing: false,
            starved: false,
            stuck_since: 0,
            counted_down: false,
            from_intended: plan.producing.latency_from == LatencyFrom::Intended,
            verify: plan.verify,
        })
    }

    /// From `start` on messages are due; a second start (of a new connection) changes nothing.
    pub fn start(&mut self, start: u64) {
        if self.pacer.is_none() {
            let pacer = Pacer::new(&self.schedule, start + self.delay, u64::from(self.index), self.of);
            self.pacer = Some(pacer);
        }
    }

    /// Publishes what is due and allowed, at most about [`CHUNK`] bytes, and tells what it waits for then.
    pub fn publish(
        &mut self,
        out: &mut Vec<u8>,
        now: u64,
        recorder: &mut Recorder,
        shared: &Shared,
    ) -> Wants {
        if self.counted_down {
            return Wants::Nothing;
        }
        if self.committing {
            return Wants::Broker;
        }
        if shared.producers_stop.load(Relaxed) || self.messages.sequence() >= self.limit {
            return self.finish(shared);
        }
        let Some(pacer) = &mut self.pacer else {
            return Wants::Broker;
        };
        let due = pacer.due(now);
        if due == 0 {
            return match pacer.next() {
                Due::At(moment) => Wants::Moment(moment),
                Due::Now => Wants::Turn,
                Due::Never => Wants::Broker,
            };
        }
        let room = shared.room(self.starved);
        self.starved = room == 0;
        if room == 0 {
            return Wants::Window;
        }
        let confirmable = self
            .confirms
            .as_ref()
            .map_or(usize::MAX, |it| self.window.saturating_sub(it.open()));
        if confirmable == 0 {
            self.stuck_since = if self.stuck_since == 0 {
                now
            } else {
                self.stuck_since
            };
            return Wants::Broker;
        }
        let left = self.limit - self.messages.sequence();
        let transaction = if self.transaction > 0 {
            u64::from(self.transaction - self.in_transaction)
        } else {
            u64::MAX
        };
        let most = due.min(room).min(confirmable as u64).min(left).min(transaction);
        let published = self.append(out, now, most, shared);
        recorder.published += published;
        shared.published.fetch_add(published, Relaxed);
        if self.transaction > 0 {
            self.in_transaction += published as u32;
            if self.in_transaction == self.transaction {
                self.in_transaction = 0;
                self.committing = true;
                encode::method(out, self.channel, &TxCommit {});
                return Wants::Broker;
            }
        }
        Wants::Turn
    }

    /// Appends up to `most` messages and tells how many.
    fn append(&mut self, out: &mut Vec<u8>, now: u64, most: u64, shared: &Shared) -> u64 {
        let mut ledger = if self.verify {
            shared.ledger.as_ref().map(lock)
        } else {
            None
        };
        let enough = out.len() + CHUNK;
        let mut published = 0;
        while published < most && out.len() < enough {
            let intended = self.pacer.as_mut().map_or(now, |pacer| pacer.take(now));
            let sequence = self.messages.sequence();
            self.messages.append(out, now, intended);
            if let Some(confirms) = &mut self.confirms {
                confirms.published(if self.from_intended { intended } else { now });
            }
            if let Some(ledger) = &mut ledger {
                ledger.published(self.index, sequence);
            }
            published += 1;
        }
        published
    }

    /// The broker confirms (or, with `refused`, does not take) a message or all up to it.
    pub fn settled(
        &mut self,
        tag: u64,
        multiple: bool,
        refused: bool,
        now: u64,
        recorder: &mut Recorder,
        shared: &Shared,
    ) {
        let Some(confirms) = &mut self.confirms else {
            return;
        };
        let mut ledger = shared.ledger.as_ref().map(lock);
        let (index, from) = (self.index, self.tagged_from);
        let mut run = Run::default();
        let before = confirms.open();
        confirms.settle(tag, multiple, |tag, stamp| {
            if let Some(ledger) = &mut ledger {
                let sequence = from + tag - 1;
                if refused {
                    ledger.nacked(index, sequence)
                } else {
                    ledger.confirmed(index, sequence)
                }
            }
            if refused {
                recorder.nacked += 1;
            } else {
                recorder.confirmed += 1;
                if let Some((stamp, times)) = run.push(stamp) {
                    recorder.confirm_latency_n(now.saturating_sub(stamp), times);
                }
            }
        });
        if let Some((stamp, times)) = run.end() {
            recorder.confirm_latency_n(now.saturating_sub(stamp), times);
        }
        recorder.confirm_size((before - confirms.open()) as u64);
        self.stuck_since = 0;
    }

    /// The broker has committed the transaction.
    pub fn committed(&mut self) {
        self.committing = false;
    }

    /// The channel is a new one, on a new connection: what was not confirmed never will be.
    pub fn reconnected(&mut self, shared: &Shared) {
        if let Some(ledger) = &shared.ledger {
            lock(ledger).lost_connection(self.index);
        }
        self.tagged_from = self.messages.sequence();
        self.confirms = self.confirms.as_ref().map(|_| Confirms::new());
        self.in_transaction = 0;
        self.committing = false;
        self.stuck_since = 0;
    }

    /// True if the confirm window has been full for longer than `--confirm-timeout` without an answer.
    pub fn is_stuck(&self, now: u64, timeout_ns: u64) -> bool {
        self.stuck_since > 0 && now.saturating_sub(self.stuck_since) > timeout_ns
    }

    /// The producer can't go on; told once.
    pub fn fail(&mut self, reason: &str, failure: Failure, shared: &Shared) {
        if !std::mem::replace(&mut self.counted_down, true) {
            shared.fail(reason, failure);
        }
    }

    /// All is published: the producer is done when all is confirmed, too.
    fn finish(&mut self, shared: &Shared) -> Wants {
        if self.confirms.as_ref().is_some_and(|it| it.open() > 0) {
            return Wants::Broker;
        }
        let at_limit = self.messages.sequence() >= self.limit;
        if at_limit && !std::mem::replace(&mut self.counted_down, true) {
            shared.count_down("Producer reached message limit");
        }
        Wants::Nothing
    }
}

/// `--producer-random-start-delay`, in nanoseconds.
fn random_delay(plan: &Plan) -> u64 {
    let longest = plan.producing.random_start_delay.as_nanos() as u64;
    if longest == 0 {
        0
    } else {
        fastrand::u64(0..longest)
    }
}

/// Equal values in a row: a batch's messages have one stamp, and one look at a histogram serves all of them.
#[derive(Debug, Default)]
pub struct Run {
    value: u64,
    times: u64,
}

impl Run {
    /// One more value; returns the run that it ends.
    #[inline]
    pub fn push(&mut self, value: u64) -> Option<(u64, u64)> {
        if self.value == value && self.times > 0 {
            self.times += 1;
            return None;
        }
        let ended = self.end();
        (self.value, self.times) = (value, 1);
        ended
    }

    /// Ends the run.
    pub fn end(&mut self) -> Option<(u64, u64)> {
        let ended = (self.times > 0).then_some((self.value, self.times));
        self.times = 0;
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_where_the_value_changes() {
        let mut run = Run::default();
        assert_eq!([5, 5, 7].map(|value| run.push(value)), [None, None, Some((5, 2))]);
        assert_eq!(run.end(), Some((7, 1)));
        assert_eq!(run.end(), None);
    }
}
