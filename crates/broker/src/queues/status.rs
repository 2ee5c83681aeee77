//! A queue's numbers as everybody may read them: what its machine said after the last turn, without the machine's lock.

use model::ConsumerId;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A queue's numbers after its last turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Messages that may be delivered.
    pub ready: u64,
    /// Messages delivered and not acknowledged.
    pub unacked: u64,
    /// Consumers.
    pub consumers: u64,
    /// Bytes of memory held by messages.
    pub memory: usize,
    /// Bytes of ready bodies.
    pub ready_bytes: u64,
    /// Bytes of the bodies of messages delivered and not acknowledged.
    pub unacked_bytes: u64,
    /// Messages that the journal knows: persistent ones in a durable queue.
    pub persistent: u64,
    /// Bytes of their bodies.
    pub persistent_bytes: u64,
    /// Messages that went to consumers since the start, less those that came back.
    pub handed: u64,
    /// Messages that were taken since the start.
    pub taken: u64,
    /// Messages whose bytes are not in memory.
    pub paged: u64,
    /// Bytes of their bodies.
    pub paged_bytes: u64,
    /// When the first ready message came, in milliseconds since the Unix epoch; 0 if there is none, or it is not in memory.
    pub oldest_ms: u64,
    /// What the publisher wrote as the time of the first message, in seconds since the Unix epoch, if that message was
    /// in memory; as of when somebody looked at the queues that were turned.
    pub head_timestamp: Option<u64>,
    /// The only consumer that is served, where one at a time is.
    pub active: Option<ConsumerId>,
}

impl Status {
    /// Ready and unacknowledged messages.
    pub fn messages(&self) -> u64 {
        self.ready + self.unacked
    }

    /// Bytes of their bodies.
    pub fn bytes(&self) -> u64 {
        self.ready_bytes + self.unacked_bytes
    }

    /// How many of them are in memory.
    pub fn in_memory(&self) -> u64 {
        self.messages().saturating_sub(self.paged)
    }

    /// Bytes of the bodies of those.
    pub fn bytes_in_memory(&self) -> u64 {
        self.bytes().saturating_sub(self.paged_bytes)
    }

    /// How many ready ones are in memory. What is paged out is taken to be ready, as long as there are that many: what consumers
    /// hold came through memory last.
    pub fn ready_in_memory(&self) -> u64 {
        self.ready.saturating_sub(self.paged)
    }
}

/// The numbers as a turn leaves them. They are read one by one: each is right, their sums may be of two turns.
#[derive(Default)]
pub(super) struct Published {
    ready: AtomicU64,
    ready_bytes: AtomicU64,
    unacked: AtomicU64,
    unacked_bytes: AtomicU64,
    persistent: AtomicU64,
    persistent_bytes: AtomicU64,
    paged: AtomicU64,
    paged_bytes: AtomicU64,
    consumers: AtomicU64,
    handed: AtomicU64,
    next_seq: AtomicU64,
    oldest_ms: AtomicU64,
    /// One more than the timestamp, or 0.
    head_timestamp: AtomicU64,
    /// An id, or 0.
    active: AtomicU64,
    memory: AtomicUsize,
}

impl Published {
    /// After a turn. Returns how many bytes of memory it held before.
    pub(super) fn store(&self, status: &queue::Status) -> usize {
        let set = |number: &AtomicU64, now| number.store(now, Ordering::Relaxed);
        set(&self.ready, status.ready);
        set(&self.ready_bytes, status.ready_bytes);
        set(&self.unacked, status.unacked);
        set(&self.unacked_bytes, status.unacked_bytes);
        set(&self.persistent, status.persistent);
        set(&self.persistent_bytes, status.persistent_bytes);
        set(&self.paged, status.paged);
        set(&self.paged_bytes, status.paged_bytes);
        set(&self.consumers, status.consumers as u64);
        set(&self.handed, status.handed);
        set(&self.next_seq, status.next_seq);
        set(&self.oldest_ms, status.oldest_ms);
        set(&self.active, status.active.map_or(0, |consumer| consumer.0));
        self.memory.swap(status.memory, Ordering::SeqCst)
    }

    /// What the first message says of its time, when somebody has looked.
    pub(super) fn note_head(&self, timestamp: Option<u64>) {
        let known = timestamp.map_or(0, |timestamp| timestamp.saturating_add(1));
        self.head_timestamp.store(known, Ordering::Relaxed);
    }

    /// All of them, for a queue whose first message since the start has or will have the number `first_seq`.
    pub(super) fn load(&self, first_seq: u64) -> Status {
        let now = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Status {
            ready: now(&self.ready),
            unacked: now(&self.unacked),
            consumers: now(&self.consumers),
            memory: self.memory(),
            ready_bytes: now(&self.ready_bytes),
            unacked_bytes: now(&self.unacked_bytes),
            persistent: now(&self.persistent),
            persistent_bytes: now(&self.persistent_bytes),
            handed: now(&self.handed),
            taken: self.next_seq().saturating_sub(first_seq),
            paged: now(&self.paged),
            paged_bytes: now(&self.paged_bytes),
            oldest_ms: now(&self.oldest_ms),
            head_timestamp: now(&self.head_timestamp).checked_sub(1),
            active: Some(now(&self.active)).filter(|id| *id > 0).map(ConsumerId),
        }
    }

    /// The number that its next message will have.
    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq.load(Ordering::Relaxed)
    }

    /// Bytes of memory held by its messages.
    pub(super) fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }
}
