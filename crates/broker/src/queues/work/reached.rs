//! Another node, as this one reaches its queues: their handles here, and whether it can be spoken to.

use super::Here;
use super::alarm::PeerAlarm;
use super::away::{Away, Brought};
use crate::clients::alarms::AlarmReason;
use crate::clients::pressure::Pressure;
use crate::groups::NodeId;
use crate::groups::handle::{Frame, Sessions, ToNode};
use crate::queues::Handle;
use crate::queues::remote::{Remote, Request};
use model::QueueId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A node without a link for so many ticks, of 100 ms each, cannot be reached: its queues have no owner. Handles tell their
/// clients at about the same time.
const GONE_AFTER: u32 = 50;

/// See the module.
pub(super) struct Reached {
    pub node: NodeId,
    here: Arc<Here>,
    /// In order, as what a tick or the link makes them say goes out in it: the simulator does the same each time.
    queues: RwLock<BTreeMap<QueueId, Arc<Away>>>,
    link: Mutex<Link>,
    alarm: PeerAlarm,
}

/// The way to the node.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Which start of the node was heard of last; 0 before the first.
    start: u64,
    is_up: bool,
    /// Since so many ticks it is down.
    down: u32,
}

impl Reached {
    /// A node that has not been heard of.
    pub fn new(node: NodeId, here: Arc<Here>) -> Self {
        Self {
            node,
            here,
            queues: RwLock::default(),
            link: Mutex::new(Link {
                start: 0,
                is_up: false,
                down: GONE_AFTER,
            }),
            alarm: PeerAlarm::default(),
        }
    }

    /// The link works from now on. Returns which start of the node was heard of last, and whether it could be reached before.
    pub fn up(&self, start: u64) -> (u64, bool) {
        let mut link = self.link();
        let (before, was_reached) = (link.start, link.is_reached());
        *link = Link {
            start,
            is_up: true,
            down: 0,
        };
        drop(link);
        // It says so again if there is one.
        self.alarm.end();
        self.tell_all(|| Brought::Up);
        (before, was_reached)
    }

    /// The link is lost.
    pub fn down(&self) {
        self.link().is_up = false;
        self.alarm.end();
        self.tell_all(|| Brought::Down);
    }

    /// Which start of the node was heard of last; 0 if none was.
    pub fn start(&self) -> u64 {
        self.link().start
    }

    /// How many of its queues have handles.
    pub fn handles(&self) -> usize {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// True if there is a link.
    pub fn is_up(&self) -> bool {
        self.link().is_up
    }

    /// True if its queues have an owner, as far as this node knows.
    pub fn is_reached(&self) -> bool {
        self.link().is_reached()
    }

    /// A tick of the clock. True if the node can be reached no longer by it.
    pub fn tick(&self) -> bool {
        let mut link = self.link();
        let was_reached = link.is_reached();
        if !link.is_up {
            link.down = link.down.saturating_add(1);
        }
        let is_lost = was_reached && !link.is_reached();
        drop(link);
        self.alarm.tick();
        self.tell_all(|| Brought::Tick);
        // Whoever brings something holds this lock meanwhile.
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, queue| !queue.is_unneeded(&self.here));
        is_lost
    }

    /// The node has an alarm, or none any more. It may have been so before.
    pub fn alarm(&self, reason: Option<AlarmReason>) {
        self.alarm.said(reason, || self.here.name_of(self.node));
    }

    /// The node says this of a queue.
    pub fn receive(
        &self,
        id: QueueId,
        frame: Frame<ToNode>,
    ) -> Option<Frame<crate::groups::handle::ToLeader>> {
        if let Err(Brought::Said(frame)) = self.bring(id, Brought::Said(frame)) {
            let asked = matches!(frame.messages[..], [ToNode::Speak | ToNode::Closed]);
            return asked.then(|| Sessions::nothing(self.here.incarnation, &frame));
        }
        None
    }

    fn tell_all(&self, brought: impl Fn() -> Brought) {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<Arc<Away>> = queues.values().cloned().collect();
        all.iter().for_each(|queue| queue.put(brought()));
        drop(queues);
        all.iter().for_each(|queue| queue.turn(&self.here));
    }

    /// Brings something to the handle of a queue, if there is one; else it comes back.
    #[allow(clippy::result_large_err, reason = "the caller has made it")]
    fn bring(&self, id: QueueId, brought: Brought) -> Result<(), Brought> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = queues.get(&id).cloned() else {
            return Err(brought);
        };
        queue.put(brought);
        drop(queues);
        queue.turn(&self.here);
        Ok(())
    }

    /// Makes a handle, and brings it this.
    #[cold]
    fn begin(&self, id: QueueId, brought: Brought) {
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let queue = Away::new(&self.here, id, self.node, self.here.count_behind());
            if self.is_up() {
                queue.put(Brought::Up);
            }
            Arc::new(queue)
        };
        let queue = queues.entry(id).or_insert_with(new).clone();
        queue.put(brought);
        drop(queues);
        queue.turn(&self.here);
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    fn is_reached(&self) -> bool {
        self.is_up || self.down < GONE_AFTER
    }
}

impl Remote for Reached {
    fn submit(&self, queue: QueueId, request: Request) {
        if let Err(Brought::Asked(request)) = self.bring(queue, Brought::Asked(request)) {
            match begins(&request, self.is_reached()) {
                true => self.begin(queue, Brought::Asked(request)),
                false => Handle::decline(request),
            }
        }
    }

    fn pressure(&self, queue: QueueId) -> Option<Pressure> {
        if let Some(pressure) = self.alarm.pressure() {
            return Some(pressure);
        }
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.get(&queue).and_then(|queue| queue.pressure())
    }

    fn deleted(&self, queue: QueueId) {
        let _ = self.bring(queue, Brought::Deleted);
    }
}

/// Whether a client needs a handle for this of a node that can be `reached` or not. Who has nothing of the queue is done with
/// nothing.
fn begins(request: &Request, reached: bool) -> bool {
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

impl std::fmt::Debug for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "queues of node {}", self.node.0)
    }
}
