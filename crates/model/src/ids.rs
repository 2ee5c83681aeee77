//! Identities. All are plain numbers that a node hands out once and never uses again while it runs.

/// A queue's position number: every message of a queue has one, they rise by one from 1, and they are never
/// reused, not even after a restart. FIFO order *is* the order of these numbers.
pub type Seq = u64;

/// A queue, and at the same time the journal that remembers it. Handed out by the catalog, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId(pub u64);

/// A client's connection to this node; unique for the run of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// A consumer; unique for the run of the process (a consumer tag is only unique within its channel).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerId(pub u64);

/// One start of a node, as the catalog has numbered it: a node that starts again is another one. Handed out once in a
/// cluster's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation(pub u64);

impl std::fmt::Display for QueueId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}
