//! One consumer: a channel that takes messages, times and acknowledges them.

use super::producer::Run;
use super::shared::{Shared, lock};
use crate::clock;
use crate::failure::Failure;
use crate::measure::Recorder;
use crate::message::stamp::{self, Stamp};
use crate::pace::Phases;
use crate::plan::{BodyPlan, LatencyFrom, Plan, Verbose};
use model::table::Table;
use protocol::amqp::RawTable;
use protocol::amqp::encode;
use protocol::amqp::method::{BasicConsume, BasicGet, BasicNack, TxCommit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A message as it came.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    pub delivery_tag: u64,
    pub redelivered: bool,
    pub routing_key: &'a [u8],
    pub properties: &'a [u8],
    pub body: &'a [u8],
}

/// What a consumer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It takes the next message.
    Message,
    /// It is busy until this moment.
    Pause(u64),
}

/// A consumer and what it has seen.
pub struct Consumer {
    pub channel: u16,
    /// Among all consumers of the load.
    index: usize,
    queues: Vec<String>,
    arguments: Vec<u8>,
    auto_ack: bool,
    every: u64,
    nack: Option<bool>,
    transaction: u64,
    limit: u64,
    seen: u64,
    /// `--consumer-rate`: nanoseconds between messages; 0: no limit.
    gap: u64,
    /// When the next message may be taken.
    free_at: u64,
    work: Option<Phases<Duration>>,
    started: u64,
    polling: Option<Polling>,
    stamps: Stamps,
    run: Run,
    counted_down: bool,
    verbose: Verbose,
    told: Arc<AtomicU64>,
}

/// How stamps are to be read.
#[derive(Debug, Clone, Copy)]
struct Stamps {
    in_header: bool,
    millis: bool,
    intended: bool,
}

/// `basic.get` in turn from each queue.
#[derive(Debug)]
struct Polling {
    pause: u64,
    queue: usize,
    asked: bool,
    next_at: u64,
}

impl Consumer {
    pub fn new(plan: &Plan, index: usize, channel: u16, queues: Vec<String>, told: Arc<AtomicU64>) -> Self {
        let consuming = &plan.consuming;
        Self {
            channel,
            index,
            queues,
            arguments: encoded(&consuming.arguments),
            auto_ack: consuming.auto_ack,
            every: u64::from(consuming.multi_ack_every),
            nack: consuming.nack,
            transaction: u64::from(consuming.transaction),
            limit: consuming.messages.unwrap_or(u64::MAX),
            seen: 0,
            gap: consuming
                .rate
                .filter(|rate| *rate > 0.0)
                .map_or(0, |rate| (1e9 / rate) as u64),
            free_at: 0,
            work: (!consuming.latency.is_empty()).then(|| Phases::new(consuming.latency.clone())),
            started: 0,
            polling: consuming.polling.map(|pause| Polling {
                pause: pause.as_nanos() as u64,
                queue: 0,
                asked: false,
                next_at: 0,
            }),
            stamps: Stamps {
                in_header: matches!(plan.message.body, BodyPlan::Files(_) | BodyPlan::Json { .. }),
                millis: plan.report.millis,
                intended: plan.producing.latency_from == LatencyFrom::Intended,
            },
            run: Run::default(),
            counted_down: false,
            verbose: plan.report.verbose,
            told,
        }
    }

    /// Asks for messages: once at the start, and again on a new connection.
    pub fn start(&mut self, out: &mut Vec<u8>, now: u64) {
        self.started = if self.started == 0 { now } else { self.started };
        if let Some(polling) = &mut self.polling {
            polling.asked = false;
            polling.next_at = now;
            return;
        }
        for at in 0..self.queues.len() {
            self.consume(at, out);
        }
    }

    /// On a new connection: its queues may have other names.
    pub fn consumes_from(&mut self, queues: Vec<String>) {
        self.queues = queues;
    }

    fn consume(&self, at: usize, out: &mut Vec<u8>) {
        encode::method(
            out,
            self.channel,
            &BasicConsume {
                queue: &self.queues[at],
                consumer_tag: &self.tag(at),
                no_ack: self.auto_ack,
                arguments: RawTable(&self.arguments),
                ..BasicConsume::default()
            },
        );
    }

    fn tag(&self, queue: usize) -> String {
        format!("consumer-{}-{queue}", self.index)
    }

    /// The broker cancelled a consumer (its queue is gone, or moved): consume again, as PerfTest does.
    pub fn cancelled(&mut self, tag: &str, out: &mut Vec<u8>, shared: &Shared) {
        let queue = (0..self.queues.len()).find(|&at| self.tag(at) == tag);
        match queue {
            Some(at) => {
                shared.tell(format!(
                    "Consumer cancelled by broker for tag: {tag}. Re-consuming. Queue: {} for Tag: {tag}",
                    self.queues[at]
                ));
                self.consume(at, out);
            }
            None => shared.tell(format!("Could not find queue for consumer tag: {tag}")),
        }
    }

    /// Takes a message: counts, times, acknowledges.
    #[inline]
    pub fn received(
        &mut self,
        message: &Received<'_>,
        now: u64,
        out: &mut Vec<u8>,
        recorder: &mut Recorder,
        shared: &Shared,
    ) -> Next {
        self.seen += 1;
        if self.seen > self.limit {
            // As in PerfTest, what comes after the last one wanted is neither counted nor acknowledged.
            return Next::Message;
        }
        recorder.consumed += 1;
        recorder.redelivered += u64::from(message.redelivered);
        if let Some(ledger) = &shared.ledger {
            lock(ledger).consumed(message.body, message.redelivered);
        }
        self.time(message, now, recorder);
        self.acknowledge(message.delivery_tag, out);
        if self.verbose != Verbose::No {
            self.tell(message, shared);
        }
        if self.seen == self.limit && !std::mem::replace(&mut self.counted_down, true) {
            shared.count_down("Consumer reached message limit");
        }
        self.next(now)
    }

    /// Notes how long the message was on its way. Equal stamps in a row are noted together, by [`Self::flush`].
    #[inline]
    fn time(&mut self, message: &Received<'_>, now: u64, recorder: &mut Recorder) {
        let stamp = if self.stamps.in_header {
            stamp::from_header(message.properties)
        } else {
            stamp::read(message.body)
        };
        let Some(Stamp { sent, lag_us, .. }) = stamp else {
            return;
        };
        let (now, sent) = if self.stamps.millis {
            (clock::unix_ms() * 1_000_000, sent.saturating_mul(1_000_000))
        } else {
            (now, sent)
        };
        if lag_us == 0 || !self.stamps.intended {
            if let Some((sent, times)) = self.run.push(sent) {
                note(sent, times, now, recorder);
            }
        } else if sent > now {
            recorder.early += 1;
        } else {
            recorder.latency_both(now - sent + u64::from(lag_us) * 1000, now - sent);
        }
    }

    /// Writes down what was timed; called at the end of a batch, with the batch's `now`.
    pub fn flush(&mut self, now: u64, recorder: &mut Recorder) {
        let now = if self.stamps.millis {
            clock::unix_ms() * 1_000_000
        } else {
            now
        };
        if let Some((sent, times)) = self.run.end() {
            note(sent, times, now, recorder);
        }
    }

    #[inline]
    fn acknowledge(&self, tag: u64, out: &mut Vec<u8>) {
        if self.auto_ack {
            return;
        }
        let multiple = self.every > 0;
        if !multiple || self.seen.is_multiple_of(self.every) {
            match self.nack {
                None => encode::ack(out, self.channel, tag, multiple),
                Some(requeue) => encode::method(
                    out,
                    self.channel,
                    &BasicNack {
                        delivery_tag: tag,
                        multiple,
                        requeue,
                    },
                ),
            }
        }
        if self.transaction > 0 && self.seen.is_multiple_of(self.transaction) {
            encode::method(out, self.channel, &TxCommit {});
        }
    }

    /// The rate and the work that each message is said to take.
    #[inline]
    fn next(&mut self, now: u64) -> Next {
        if self.gap == 0 && self.work.is_none() {
            return Next::Message;
        }
        let elapsed = Duration::from_nanos(now.saturating_sub(self.started));
        let work = self.work.as_ref().and_then(|work| work.at(elapsed));
        let work = work.map_or(0, |work| work.as_nanos() as u64);
        let gap = self.gap.max(work);
        if gap == 0 {
            return Next::Message;
        }
        // Arrears of up to a tenth of a second are made good, so that the rate holds although threads sleep a little long.
        self.free_at = self.free_at.max(now.saturating_sub(100_000_000)) + gap;
        if self.free_at > now {
            Next::Pause(self.free_at)
        } else {
            Next::Message
        }
    }

    fn tell(&self, message: &Received<'_>, shared: &Shared) {
        let from = shared.published.load(Relaxed);
        // Without --verbose-full one message of each thousand published ones is told.
        if self.verbose == Verbose::Sampled && self.told.swap(from / 1000 + 1, Relaxed) == from / 1000 + 1 {
            return;
        }
        shared.tell(format!(
            "consumer {}: message received, routing key = '{}', redelivered = {}, {} bytes: '{}'",
            self.index,
            String::from_utf8_lossy(message.routing_key),
            message.redelivered,
            message.body.len(),
            message.body[..message.body.len().min(64)].escape_ascii()
        ));
    }

    /// Polling: asks for a message if it is time; tells when it will be.
    pub fn poll(&mut self, now: u64, out: &mut Vec<u8>) -> Option<u64> {
        let polling = self.polling.as_mut()?;
        if polling.asked || self.seen >= self.limit {
            return None;
        }
        let at = polling.next_at.max(self.free_at);
        if at > now {
            return Some(at);
        }
        polling.asked = true;
        polling.queue = (polling.queue + 1) % self.queues.len().max(1);
        encode::method(
            out,
            self.channel,
            &BasicGet {
                queue: &self.queues[polling.queue],
                no_ack: self.auto_ack,
            },
        );
        None
    }

    /// Polling: the answer came, a message or none.
    pub fn polled(&mut self, now: u64) {
        if let Some(polling) = &mut self.polling {
            polling.asked = false;
            polling.next_at = now + polling.pause;
        }
    }

    /// The consumer can't go on; told once.
    pub fn fail(&mut self, failure: Failure, shared: &Shared) {
        if !std::mem::replace(&mut self.counted_down, true) {
            shared.fail("Consumer closed by the broker", failure);
        }
    }
}

/// `times` messages sent at `sent` have come by `now`.
fn note(sent: u64, times: u64, now: u64, recorder: &mut Recorder) {
    if sent > now {
        recorder.early += times;
    } else {
        recorder.latency_n(now - sent, times);
    }
}

/// A table without its length.
fn encoded(table: &Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.encode(&mut bytes);
    bytes
}
