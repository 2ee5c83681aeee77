//! All queues of this node by id. Filled and emptied by the topology's turns; read once per route, never per message.

use super::Queue;
use model::QueueId;
use std::collections::HashMap;
use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};

/// All queues of this node.
#[derive(Default)]
pub struct Registry {
    queues: RwLock<HashMap<QueueId, Arc<Queue>>>,
    removals: AtomicU64,
}

impl Registry {
    /// The queue, unless it is deleted.
    pub fn get(&self, id: QueueId) -> Option<Arc<Queue>> {
        self.queues
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned()
    }

    /// Adds a queue.
    pub fn insert(&self, queue: Arc<Queue>) {
        self.queues
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(queue.id, queue);
    }

    /// How many queues have been taken out: what refers to queues may have to let go of some when it has risen.
    pub fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// Takes a queue out.
    pub fn remove(&self, id: QueueId) -> Option<Arc<Queue>> {
        self.removals.fetch_add(1, Ordering::AcqRel);
        self.queues
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id)
    }

    /// Looks at all queues, in no order; nobody may be waited for meanwhile.
    pub fn for_each(&self, mut look: impl FnMut(&Queue)) {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.values().for_each(|queue| look(queue));
    }

    /// All queues, in no order.
    pub fn all(&self) -> Vec<Arc<Queue>> {
        self.queues
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }
}
