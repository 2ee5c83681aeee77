//! The handles of all queues that the catalog knows, by id. Filled and emptied by the topology's turns; read once per
//! route, never per message.

use super::{Handle, Queue, Shared};
use model::QueueId;
use std::collections::HashMap;
use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};

/// The handles of all queues that the catalog knows.
#[derive(Default)]
pub struct Registry {
    handles: RwLock<HashMap<QueueId, Handle>>,
    removals: AtomicU64,
}

impl Registry {
    /// The queue's handle; `None` if it is deleted.
    pub fn get(&self, id: QueueId) -> Option<Handle> {
        self.handles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned()
    }

    /// The queue, if it is on this node.
    pub fn here(&self, id: QueueId) -> Option<Arc<Queue>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.get(&id).and_then(Handle::here).cloned()
    }

    /// Adds a queue.
    pub fn insert(&self, handle: Handle) {
        self.handles
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(handle.id(), handle);
    }

    /// The queues that live on other nodes, whether these can be reached or not.
    pub fn away(&self) -> Vec<Arc<catalog::Queue>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        let away = handles.values().filter_map(|handle| match handle {
            Handle::Here(_) | Handle::Shared(_) => None,
            Handle::Elsewhere(known, _) | Handle::WithoutOwner(known) => Some(known.clone()),
        });
        away.collect()
    }

    /// The queues that several nodes have.
    pub fn shared(&self) -> Vec<Arc<Shared>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        let shared = handles.values().filter_map(|handle| match handle {
            Handle::Shared(shared) => Some(shared.clone()),
            _ => None,
        });
        shared.collect()
    }

    /// Who leads a queue that several nodes have, as this node's copy knows.
    pub fn leader(&self, id: QueueId) -> Option<catalog::NodeId> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        match handles.get(&id)? {
            Handle::Shared(shared) => shared.leader(),
            _ => None,
        }
    }

    /// Something else is so of a queue that several nodes have. False if it is deleted.
    pub fn change(&self, id: QueueId, change: impl FnOnce(&mut Shared)) -> bool {
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        let Some(Handle::Shared(shared)) = handles.get_mut(&id) else {
            return false;
        };
        change(Arc::make_mut(shared));
        self.removals.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// What this node has of the queue, whoever decides.
    pub fn copy(&self, id: QueueId) -> Option<Arc<Queue>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.get(&id).and_then(Handle::copy).cloned()
    }

    /// What this node has of all queues, whoever decides, in no order.
    pub fn copies(&self) -> Vec<Arc<Queue>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.values().filter_map(Handle::copy).cloned().collect()
    }

    /// The queue is in another place than before, unless it is deleted.
    pub fn replace(&self, handle: Handle) {
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = handles.get_mut(&handle.id()) {
            *known = handle;
            self.removals.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// How many handles have been taken out: whoever keeps some may have to let go of them when it has risen.
    pub fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// Takes a queue out.
    pub fn remove(&self, id: QueueId) -> Option<Handle> {
        self.removals.fetch_add(1, Ordering::AcqRel);
        self.handles
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id)
    }

    /// Looks at all queues of this node, in no order; nobody may be waited for meanwhile.
    pub fn for_each(&self, look: impl FnMut(&Arc<Queue>)) {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.values().filter_map(Handle::here).for_each(look);
    }

    /// All queues of this node, in no order.
    pub fn all(&self) -> Vec<Arc<Queue>> {
        let mut all = Vec::new();
        self.for_each(|queue| all.push(queue.clone()));
        all
    }
}
