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

impl Incarnation {
    /// What queues call a start tells its node in so many bits; those above are the number of the start.
    pub const NODE_BITS: u32 = 16;

    /// This start of a node, as queues call it. Both numbers fit, or others are meant.
    #[must_use]
    pub fn of(node: u32, start: u64) -> Self {
        Self(start << Self::NODE_BITS | u64::from(node) & Self::NODE_MASK)
    }

    /// Which node it is a start of.
    pub fn node(self) -> u32 {
        (self.0 & Self::NODE_MASK) as u32
    }

    /// Which start of its node it is: later ones have higher numbers.
    pub fn start(self) -> u64 {
        self.0 >> Self::NODE_BITS
    }

    const NODE_MASK: u64 = (1 << Self::NODE_BITS) - 1;
}

impl std::fmt::Display for QueueId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}
