//! A queue's settings in force: what its arguments and policies mean together.
//!
//! The catalog makes them (`catalog::arguments::table` says which argument sets which), the machine that holds the messages acts
//! on them.

use crate::{Mutant, RetryDelay};
use std::sync::Arc;

/// A queue's settings in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// Records go to a journal: persistent messages survive a restart.
    pub durable: bool,
    /// The journal is one that other nodes follow: every message is on record, transient ones too, and what was refused
    /// as well. A durable queue's machine is told so when it is made.
    pub replicated: bool,
    /// Retire when the last consumer is gone.
    pub auto_delete: bool,
    /// `x-single-active-consumer`: one consumer gets everything until it is gone.
    pub single_active: bool,
    /// `x-max-priority`, `x-fair-key`: which messages leave first.
    pub sorting: Sorting,
    /// `x-max-length`: at most so many ready messages; the oldest are dropped.
    pub max_length: Option<u64>,
    /// `x-max-length-bytes`: at most so many bytes of ready bodies.
    pub max_length_bytes: Option<u64>,
    /// `x-overflow`: what happens at these limits.
    pub overflow: Overflow,
    /// `x-message-ttl`: how long messages may be ready, in milliseconds.
    pub message_ttl_ms: Option<u64>,
    /// `x-delivery-limit`: a message that came back more often than this leaves.
    pub delivery_limit: Option<DeliveryLimit>,
    /// `x-retry-delay`: messages that came back wait before they are delivered again.
    pub retry_delay: Option<RetryDelay>,
    /// Messages wait here as long as their header `x-delay` says, and then go to `dead_letter`; their own expiration counts
    /// afterwards.
    pub delays: bool,
    /// `x-message-deduplication`: a message is taken only if none with the same header `x-deduplication-header` is there.
    pub deduplicates: bool,
    /// `x-consumer-timeout`: how long a delivery may stay unacknowledged, in milliseconds; 0 for as long as it likes.
    pub consumer_timeout_ms: Option<u64>,
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
        self.durable && (persistent || self.replicated && !Mutant::ForgetsTransient.is_on())
    }

    /// True if it matters how often a message came back.
    #[inline]
    pub fn counts_returns(&self) -> bool {
        self.delivery_limit.is_some() || self.retry_delay.is_some()
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
    /// `x-fair-key`: by the value of this header; all values with a backlog take turns by bytes.
    FairKey(Arc<str>),
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
}
