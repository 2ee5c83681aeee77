//! A queue's numbers, as its machine says them after each turn.

use model::{ConsumerId, Seq};

/// A queue's numbers. All are kept as they change; asking costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Messages that may be delivered.
    pub ready: u64,
    /// Messages delivered and not settled. What is on its way to a dead-letter exchange is neither ready nor unacked.
    pub unacked: u64,
    /// Consumers.
    pub consumers: usize,
    /// The sum of the lengths of ready bodies, in bytes. After a restart from a snapshot it is right for the queue as a
    /// whole and estimated for parts of it, until they are read back.
    pub ready_bytes: u64,
    /// The same of unacked messages.
    pub unacked_bytes: u64,
    /// Messages that the journal knows, wherever they stand: RabbitMQ calls those persistent, and in a transient queue none is.
    pub persistent: u64,
    /// Their bodies, in bytes.
    pub persistent_bytes: u64,
    /// How many messages went to consumers since the start, less those that came back.
    pub handed: u64,
    /// Memory held by message blocks, in bytes.
    pub memory: usize,
    /// Messages whose bytes are not in memory.
    pub paged: u64,
    /// Their bodies, in bytes.
    pub paged_bytes: u64,
    /// The number of the next message; of a queue that sorts its messages, one more than how many came since the start.
    pub next_seq: Seq,
    /// When the first ready message came, in milliseconds since the Unix epoch; 0 if there is none, or it is not in memory.
    pub oldest_ms: u64,
    /// What is consumed stays (streams): nobody waits for consumers.
    pub keeps: bool,
    /// The only consumer that is served, where one at a time is.
    pub active: Option<ConsumerId>,
}
