//! Handles of queues, as clients of this node need them: made when one is needed, and let go of when none does.

use super::Here;
use super::away::{Away, Brought};
use crate::clients::pressure::Pressure;
use crate::groups::NodeId;
use crate::groups::handle::{Frame, ToNode};
use crate::node::ends::Receipt;
use crate::queues::Handle;
use crate::queues::remote::Request;
use model::QueueId;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// See the module.
pub(super) struct Handles {
    here: Arc<Here>,
    /// In order, as what a tick or a link makes them say goes out in it: the simulator does the same each time.
    queues: RwLock<BTreeMap<QueueId, Arc<Away>>>,
}

impl Handles {
    /// None yet.
    pub fn new(here: Arc<Here>) -> Self {
        Self {
            here,
            queues: RwLock::default(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Brings this to all of them.
    pub fn tell_all(&self, brought: impl Fn() -> Brought) {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<Arc<Away>> = queues.values().cloned().collect();
        all.iter().for_each(|queue| queue.put(brought()));
        drop(queues);
        all.iter().for_each(|queue| queue.turn(&self.here));
    }

    /// A tick of the clock: those that nobody needs are let go of.
    pub fn tick(&self) {
        self.tell_all(|| Brought::Tick);
        // Whoever brings something holds this lock meanwhile.
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, queue| !queue.is_unneeded(&self.here));
        let left = queues.values().filter(|queue| queue.is_left());
        let left: Vec<Arc<Away>> = left.cloned().collect();
        drop(queues);
        left.iter().for_each(|queue| queue.turn(&self.here));
    }

    /// Brings something to the handle of a queue, if there is one; else it comes back.
    #[allow(clippy::result_large_err, reason = "the caller has made it")]
    pub fn bring(&self, id: QueueId, brought: Brought) -> Result<(), Brought> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = queues.get(&id).cloned() else {
            return Err(brought);
        };
        queue.put(brought);
        drop(queues);
        queue.turn(&self.here);
        Ok(())
    }

    /// A node says this of a queue. It comes back if there is no handle of it.
    pub fn receive(&self, id: QueueId, from: NodeId, frame: Frame<ToNode>) -> Result<(), Frame<ToNode>> {
        match self.bring(id, Brought::Said(from, frame)) {
            Err(Brought::Said(_, frame)) => Err(frame),
            _ => Ok(()),
        }
    }

    /// Makes a handle if there is none by now, and brings it this, which comes back if none is to be made. A new one is brought
    /// something else before that.
    #[cold]
    pub fn begin(
        &self,
        id: QueueId,
        new: impl FnOnce() -> Option<(Arc<Away>, Option<Brought>)>,
        brought: Option<Brought>,
    ) -> Option<Brought> {
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        let queue = match queues.get(&id) {
            Some(queue) => queue.clone(),
            None => {
                let Some((queue, first)) = new() else {
                    return brought;
                };
                first.into_iter().for_each(|first| queue.put(first));
                queues.insert(id, queue.clone());
                queue
            }
        };
        brought.into_iter().for_each(|brought| queue.put(brought));
        drop(queues);
        queue.turn(&self.here);
        None
    }

    /// True if there is one of the queue.
    pub fn has(&self, id: QueueId) -> bool {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.contains_key(&id)
    }

    /// Takes the handle of a queue out: it goes on among others.
    pub fn take(&self, id: QueueId) -> Option<Arc<Away>> {
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        queues.remove(&id)
    }

    /// A reason to slow down for those who publish to the queue.
    pub fn pressure(&self, id: QueueId) -> Option<Pressure> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.get(&id).and_then(|queue| queue.pressure())
    }
}

/// Whether a client needs a handle for this of a queue that can be `reached` or not. Who has nothing of the queue is done with
/// nothing.
pub(super) fn begins(request: &Request, reached: bool) -> bool {
    match request {
        Request::Enqueue { .. }
        | Request::Consume { .. }
        | Request::Get { .. }
        | Request::TakeOut { .. }
        | Request::Purge { .. }
        | Request::MayRetire { .. }
        | Request::Use { .. } => reached,
        // A new handle knows that there is no such consumer any more.
        Request::Cancel { reply, .. } | Request::Pause { reply, .. } => reply.is_some(),
        _ => false,
    }
}

/// A queue was deleted just now: what is published to it goes nowhere, as on one node.
pub(super) fn goes_nowhere(request: Request) {
    match request {
        Request::Enqueue { receipt, .. } => {
            if let Some((outbox, event)) = receipt.map(Receipt::into_confirm) {
                outbox.send(event);
            }
        }
        other => Handle::decline(other),
    }
}
