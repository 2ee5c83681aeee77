//! Which threads serve the links for clients' work: those of links, or those of clients. With few messages a second each costs
//! what it wakes, and a client and a link that are served by one thread wake nobody
//! ([0005](../../../../docs/decisions/0005-wake-ups.md)).

use crate::connection::OtherThreads;
use crate::threads::Acceptor;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// See the module.
#[derive(Default)]
pub(super) struct Places {
    /// How often the threads have changed.
    changes: AtomicU64,
    /// Those that links are to be at. New ones begin on the threads of links.
    threads: Mutex<Option<Acceptor>>,
}

impl Places {
    /// Links for clients' work are to be served by these threads from now on.
    pub fn change(&self, to: Acceptor) {
        *self.threads.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// There are no links any more: the threads know who served them, who knows these places.
    pub fn clear(&self) {
        *self.threads.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Where a link has to go that knows of so many changes, of which it knows then; `None` if it may stay.
    pub fn left_for(&self, known: &mut u64) -> Option<OtherThreads> {
        let changes = self.changes.load(Ordering::Acquire);
        if changes == std::mem::replace(known, changes) {
            return None;
        }
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads that have stopped would drop it.
        let open = threads.clone().filter(Acceptor::is_open);
        open.map(|threads| Arc::new(threads) as OtherThreads)
    }
}
