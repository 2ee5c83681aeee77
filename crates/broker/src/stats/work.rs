//! How long the node's own work takes.

use super::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};

/// What kind of change of what exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Of a queue or an exchange.
    Declare,
    /// Of a queue or an exchange.
    Delete,
    /// To a queue or an exchange.
    Bind,
    /// From a queue or an exchange.
    Unbind,
    /// Of users, virtual hosts and so on.
    Other,
}

impl Change {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Declare, Self::Delete, Self::Bind, Self::Unbind, Self::Other];

    /// As labels name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Declare => "declare",
            Self::Delete => "delete",
            Self::Bind => "bind",
            Self::Unbind => "unbind",
            Self::Other => "other",
        }
    }
}

/// Times of the log and the catalog.
#[derive(Debug, Default)]
pub struct Work {
    /// Of the log's syncs.
    pub sync: Histogram,
    changes: [Histogram; 5],
    batches: AtomicU64,
    batched: AtomicU64,
}

impl Work {
    /// Changes of what exists, from the request to the decision; a durable one is answered after the next sync.
    pub fn changes(&self, change: Change) -> &Histogram {
        &self.changes[change as usize]
    }

    /// How many syncs confirmed something, and how many publishes they did together.
    pub fn batches(&self) -> (u64, u64) {
        (
            self.batches.load(Ordering::Relaxed),
            self.batched.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn batch(&self, confirmed: u64) {
        if confirmed > 0 {
            self.batches.fetch_add(1, Ordering::Relaxed);
            self.batched.fetch_add(confirmed, Ordering::Relaxed);
        }
    }
}
