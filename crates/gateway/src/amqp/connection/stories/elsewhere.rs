//! All stories once more, with every queue on another node as far as the broker knows: what is asked of a queue arrives there a turn
//! later, and so does what comes of it.

use broker::queues::{Handle, Queue, Remote, Request};
use broker::{Broker, Pressure};
use model::QueueId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// The node that has the queues.
#[derive(Debug, Default)]
pub(super) struct OtherNode {
    queues: Mutex<BTreeMap<QueueId, Arc<Queue>>>,
    asked: Mutex<VecDeque<(QueueId, Request)>>,
}

impl OtherNode {
    /// Takes over the queues that were declared, and ends those that were deleted.
    pub(super) fn follow(self: &Arc<Self>, broker: &Broker) {
        let view = broker.view();
        let mut queues = self.queues.lock().unwrap();
        for queue in broker.queues().all() {
            let mut all = view.vhosts().flat_map(|vhost| vhost.all_queues());
            let Some(known) = all.find(|known| known.id == queue.id) else {
                continue;
            };
            let handle = Handle::Elsewhere(known.clone(), self.clone());
            broker.queues().replace(handle);
            queues.insert(queue.id, queue);
        }
        let gone = queues
            .values()
            .filter(|queue| broker.queues().get(queue.id).is_none());
        gone.for_each(|queue| queue.retire());
    }

    /// What was asked until now arrives. True if there was something.
    pub(super) fn turn(&self) -> bool {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let some = !asked.is_empty();
        for (id, request) in asked {
            let queue = self.queues.lock().unwrap().get(&id).cloned();
            match queue {
                Some(queue) => queue.submit(request),
                None => Handle::decline(request),
            }
        }
        some
    }

    /// True if something that was asked has not arrived.
    pub(super) fn is_asked(&self) -> bool {
        !self.asked.lock().unwrap().is_empty()
    }
}

impl Remote for OtherNode {
    fn submit(&self, queue: QueueId, request: Request) {
        self.asked.lock().unwrap().push_back((queue, request));
    }

    fn pressure(&self, queue: QueueId) -> Option<Pressure> {
        let queues = self.queues.lock().unwrap();
        queues.get(&queue).and_then(|queue| queue.pressure())
    }
}
