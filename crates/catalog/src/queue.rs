//! A queue as the catalog knows it: a name, an id and settings, but no messages.

use crate::{Name, Refusal};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::table::Table;
use model::{ConnectionId, QueueId, RetryDelay};
use std::sync::Arc;

/// A queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its identity; never used again once it is deleted, not even after a restart.
    pub id: QueueId,
    /// The virtual host.
    pub vhost: Name,
    /// Its name.
    pub name: Name,
    /// As declared. See [`Queue::survives_restart`].
    pub durable: bool,
    /// The connection that alone may use it, and whose end is its end.
    pub owner: Option<ConnectionId>,
    /// Is deleted when its last consumer is gone.
    pub auto_delete: bool,
    /// What it was declared with. What that means, together with policies, says [`crate::Vhost::settings`].
    pub arguments: Arc<Table>,
}

impl Queue {
    /// True if the queue comes back after a restart. An exclusive queue never does, durable or not: its connection
    /// is gone by then (RabbitMQ deletes it at boot).
    pub fn survives_restart(&self) -> bool {
        self.durable && self.owner.is_none()
    }

    /// Who may use the queue: everybody, or its owner alone.
    ///
    /// # Errors
    /// [`Refusal::ResourceLocked`] if it is exclusive to another connection.
    pub fn check_owner(&self, connection: ConnectionId) -> Result<(), Refusal> {
        match self.owner {
            Some(owner) if owner != connection => Err(self.locked()),
            _ => Ok(()),
        }
    }

    /// The delayed exchange whose messages wait here, if this is such a queue.
    pub fn delayed_exchange(&self) -> Option<&str> {
        delayed_exchange(&self.name)
    }

    /// The deduplication exchange whose keys go by this id, if this is no queue at all.
    pub fn seen_by_exchange(&self) -> Option<&str> {
        after(&SEEN, &self.name)
    }

    /// True if it is no queue of a client's, but something that an exchange keeps.
    pub fn is_hidden(&self) -> bool {
        is_hidden(&self.name)
    }

    pub(crate) fn locked(&self) -> Refusal {
        Refusal::ResourceLocked {
            queue: self.name.to_string(),
            vhost: self.vhost.to_string(),
        }
    }
}

/// The name that the server makes for a queue declared without one, of random bytes (RabbitMQ: `amq.gen-…`).
pub fn server_name(unique: &[u8; 16]) -> String {
    format!("amq.gen-{}", URL_SAFE_NO_PAD.encode(unique))
}

/// What the names of the queues begin with in which the messages of delayed exchanges wait.
const DELAYS: [u8; 256] = prefix(b"amq.delayed");

/// The same for what deduplication exchanges keep.
const SEEN: [u8; 256] = prefix(b"amq.seen");

/// The prefix of a name that no client means: it is as long as the longest one that a client can send.
const fn prefix(known: &[u8]) -> [u8; 256] {
    let mut prefix = [b'.'; 256];
    let mut at = 0;
    while at < known.len() {
        prefix[at] = known[at];
        at += 1;
    }
    prefix
}

/// The name of the queue in which the messages of a delayed exchange wait.
pub(crate) fn delays_name(exchange: &str) -> String {
    format!("{}{exchange}", String::from_utf8_lossy(&DELAYS))
}

/// The name by which a deduplication exchange keeps its keys.
pub(crate) fn seen_name(exchange: &str) -> String {
    format!("{}{exchange}", String::from_utf8_lossy(&SEEN))
}

/// The exchange whose delayed messages wait in the queue of this name, if it is such a one.
pub fn delayed_exchange(queue: &str) -> Option<&str> {
    after(&DELAYS, queue)
}

/// What the names begin with of all that exchanges keep for themselves.
pub(crate) fn hidden_names() -> [&'static str; 2] {
    [&DELAYS, &SEEN].map(|prefix| std::str::from_utf8(prefix).unwrap_or_default())
}

/// True for the names of queues that exchanges keep for themselves.
pub fn is_hidden(queue: &str) -> bool {
    queue.len() >= DELAYS.len()
}

fn after<'a>(prefix: &[u8], name: &'a str) -> Option<&'a str> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    (start.as_bytes() == prefix).then_some(rest)
}

/// What the queue machine acts on: a queue's arguments and policies, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// `x-single-active-consumer`: one consumer gets everything until it is gone.
    pub single_active: bool,
    /// `x-max-priority`; 0 if messages have none here.
    pub max_priority: u8,
    /// `x-fair-key`: the header that says which group a message belongs to.
    pub fair_key: Option<Arc<str>>,
    /// `x-max-length`: at most so many ready messages; the oldest are dropped.
    pub max_length: Option<u64>,
    /// `x-max-length-bytes`: at most so many bytes of ready bodies.
    pub max_length_bytes: Option<u64>,
    /// `x-overflow`: what happens at these limits.
    pub overflow: Overflow,
    /// `x-message-ttl`: how long messages may be ready, in milliseconds.
    pub message_ttl_ms: Option<u64>,
    /// `x-delivery-limit`: how often a message may come back, -1 for as often as it likes.
    pub delivery_limit: Option<i64>,
    /// `x-retry-delay`: how long messages wait that came back.
    pub retry_delay: Option<RetryDelay>,
    /// `x-message-deduplication`: a message is taken only if none with the same header `x-deduplication-header` is there.
    pub deduplicates: bool,
    /// `x-consumer-timeout`: how long a delivery may stay unacknowledged, in milliseconds; 0 for as long as it likes.
    pub consumer_timeout_ms: Option<u64>,
    /// `x-expires`: how long nobody may use the queue before it is deleted, in milliseconds.
    pub expires_ms: Option<u64>,
    /// `x-dead-letter-exchange`: where messages go that are rejected, expire or have no room; empty for the default exchange.
    pub dead_letter_exchange: Option<String>,
    /// `x-dead-letter-routing-key`: the key that they get.
    pub dead_letter_routing_key: Option<Vec<u8>>,
}

/// What happens to messages beyond a queue's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest ready messages are dropped.
    #[default]
    DropHead,
    /// New messages are refused.
    RejectPublish,
    /// New messages are refused and go to the dead-letter exchange.
    RejectPublishDeadLetter,
}
