//! A queue's settings in force: what its arguments and policies mean together.
//!
//! The catalog makes them (`catalog::arguments::table` says which argument sets which), the machine that holds the messages acts
//! on them.

use crate::{DelayedRetry, Mutant, RetryDelay};
use std::sync::Arc;

/// A queue's settings in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// Records go to a journal: persistent messages survive a restart.
    pub durable: bool,
    /// The journal is one that other nodes follow: every message is on record, transient ones too, and what was refused
    /// as well. A durable queue's machine is told so when it is made.
    pub replicated: bool,
    /// Transient messages are kept as persistent ones (quorum queues).
    pub keeps_transient: bool,
    /// Retire when the last consumer is gone.
    pub auto_delete: bool,
    /// `x-single-active-consumer`: one consumer gets everything until it is gone.
    pub single_active: bool,
    /// A new consumer of a higher priority becomes the active one, once the one before it holds nothing (quorum queues).
    pub active_by_priority: bool,
    /// `x-max-priority`, `x-fair-key`: which messages leave first.
    pub sorting: Sorting,
    /// `x-max-length`: at most so many ready messages; the oldest are dropped.
    pub max_length: Option<u64>,
    /// `x-max-length-bytes`: at most so many bytes of ready bodies.
    pub max_length_bytes: Option<u64>,
    /// `x-max-age`: segments of a stream go whose last chunk is older, in milliseconds.
    pub max_age_ms: Option<u64>,
    /// `x-stream-max-segment-size-bytes`: a segment of a stream is closed once it has so many.
    pub segment_bytes: Option<u64>,
    /// `x-stream-filter-size-bytes`: how large the filter of a stream's chunks is, in bytes.
    pub filter_bytes: Option<u8>,
    /// `x-overflow`: what happens at these limits.
    pub overflow: Overflow,
    /// `x-message-ttl`: how long messages may be ready, in milliseconds.
    pub message_ttl_ms: Option<u64>,
    /// `x-delivery-limit`: a message that came back more often than this leaves.
    pub delivery_limit: Option<DeliveryLimit>,
    /// What is given back (`basic.nack`) is counted apart, and does not count for the limit: only what was rejected or whose
    /// consumer was lost does (quorum queues since RabbitMQ 4.3).
    pub counts_failures: bool,
    /// `x-retry-delay`: messages that came back wait before they are delivered again.
    pub retry_delay: Option<RetryDelay>,
    /// `x-delayed-retry-type`, `-min`, `-max`: the same as RabbitMQ's quorum queues have it; it comes first.
    pub delayed_retry: Option<DelayedRetry>,
    /// Messages wait here as long as their header `x-delay` says, and then go to `dead_letter`; their own expiration counts
    /// afterwards.
    pub delays: bool,
    /// `x-message-deduplication`: a message is taken only if none with the same header `x-deduplication-header` is there.
    pub deduplicates: bool,
    /// `x-consumer-timeout`: how long a delivery may stay unacknowledged, in milliseconds; 0 for as long as it likes.
    pub consumer_timeout_ms: Option<u64>,
    /// `x-consumer-disconnected-timeout`: how long the consumers of a node that cannot be reached keep what they hold, in
    /// milliseconds.
    pub consumer_disconnected_ms: Option<u64>,
    /// `x-expires`: how long nobody may use the queue (by consuming, getting or declaring it again) before it is deleted, in
    /// milliseconds.
    pub expires_ms: Option<u64>,
    /// `x-dead-letter-exchange`: where messages go that are rejected, expire or find the queue full.
    pub dead_letter: Option<Arc<DeadLetterTo>>,
}

impl QueueSettings {
    /// True if a message is on record; `persistent` is what its publisher wanted.
    #[inline]
    pub fn journals(&self, persistent: bool) -> bool {
        let all = self.replicated || self.keeps_transient;
        self.durable && (persistent || all && !Mutant::ForgetsTransient.is_on())
    }

    /// The same of a queue whose journal other nodes follow.
    #[must_use]
    pub fn of_several(self) -> Self {
        Self {
            durable: true,
            replicated: true,
            ..self
        }
    }

    /// True if it matters how often a message came back.
    #[inline]
    pub fn counts_returns(&self) -> bool {
        self.delivery_limit.is_some() || self.waits() || self.counts_failures
    }

    /// True if what came back may have to wait.
    #[inline]
    pub fn waits(&self) -> bool {
        self.retry_delay.is_some() || self.delayed_retry.is_some()
    }

    /// How long a message waits that came back, in milliseconds, if it does: `failed` if it was rejected or its consumer was
    /// lost.
    /// `times` is how often it came back, and `failures` how often like that; `seed` as in [`RetryDelay::delay_ms`].
    pub fn retry_ms(&self, failed: bool, times: u32, failures: u32, seed: u64) -> Option<u64> {
        match (&self.delayed_retry, &self.retry_delay) {
            (Some(delayed), _) => delayed.delay_ms(failed, failures),
            (None, Some(delay)) => Some(delay.delay_ms(times, seed)),
            (None, None) => None,
        }
    }
}

/// How a queue sorts its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sorting {
    /// Not at all: they leave in the order in which they came.
    #[default]
    Arrival,
    /// `x-max-priority`: by priority, the highest first. None is 0, and what is higher than this is this.
    Priority(u8),
    /// By 32 levels of priority, the highest first, as RabbitMQ 4.3's quorum queues do: none is level 4, and what is higher than
    /// 31 is 31. A queue begins to sort with the first message of another level than 4.
    Levels,
    /// `x-fair-key`: by the value of this header; all values with a backlog take turns by bytes.
    FairKey(Arc<str>),
}

impl Sorting {
    /// True if a queue has several lanes whatever is in it.
    pub fn sorts_always(&self) -> bool {
        !matches!(self, Self::Arrival | Self::Levels)
    }
}

/// How often a message may come back. Wherever it is counted, deliveries say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryLimit {
    /// As often as it likes.
    Unlimited,
    /// So often.
    Returns(u32),
}

/// What happens to messages beyond a queue's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest ready messages are dropped.
    #[default]
    DropHead,
    /// New messages are refused.
    Reject,
    /// New messages are refused and go to the dead-letter exchange.
    RejectAndDeadLetter,
}

/// Where dead letters go. The machine hands it on and does not look into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterTo {
    /// The exchange's name, in the queue's virtual host; empty for the default exchange.
    pub exchange: String,
    /// The routing key instead of the message's own ones.
    pub routing_key: Option<Vec<u8>>,
    /// A dead letter stays until all queues that it was routed to have taken it, and there is one (`x-dead-letter-strategy`).
    pub at_least_once: bool,
}
