//! Which queues were turned, so that who samples them need not look at those that rest.

use crate::broker::Broker;
use crate::queues::Queue;
use model::QueueId;
use std::sync::{
    Arc, Mutex, PoisonError,
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

    fn take(&self) -> Vec<QueueId> {
        std::mem::take(&mut *self.queues.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A queue that was turned.
#[derive(Debug)]
pub struct Turned {
    /// Its id.
    pub id: QueueId,
    /// `None` if it is deleted.
    pub queue: Option<Arc<Queue>>,
    /// It was seen here before.
    pub known: bool,
}

impl Broker {
    /// The queues that were turned since this was called last; at the first call all there are. One caller at a time.
    pub fn turned_queues(&self) -> Vec<Turned> {
        let touched = &self.node().touched;
        let turned = |queue: Arc<Queue>| Turned {
            id: queue.id,
            known: queue.look(),
            queue: Some(queue),
        };
        if !touched.watched.swap(true, Ordering::SeqCst) {
            return self.queues().all().into_iter().map(turned).collect();
        }
        let gone = |id| Turned {
            id,
            queue: None,
            known: true,
        };
        let each = touched.take().into_iter();
        each.map(|id| self.queues().here(id).map_or_else(|| gone(id), turned))
            .collect()
    }
}
