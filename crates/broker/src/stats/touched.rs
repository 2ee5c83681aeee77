//! Which queues were turned, so that who samples them need not look at those that rest.

use model::QueueId;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// The queues that were turned since somebody looked, each once. Nothing is noted before anybody watches.
#[derive(Debug, Default)]
pub struct Touched {
    watched: AtomicBool,
    queues: Mutex<Vec<QueueId>>,
}

impl Touched {
    /// True if somebody watches.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, queue: QueueId) {
        self.queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(queue);
    }

    /// From now on somebody watches. Returns whether somebody did before.
    pub(crate) fn watch(&self) -> bool {
        self.watched.swap(true, Ordering::SeqCst)
    }

    /// Those that were turned since this was called last.
    pub(crate) fn take(&self) -> Vec<QueueId> {
        std::mem::take(&mut *self.queues.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
