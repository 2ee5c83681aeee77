//! Queues that several nodes have, as clients of this node reach them: their handles follow whoever leads, which may be this
//! node.

use super::away::{Away, Brought};
use super::handles::{Handles, begins, goes_nowhere};
use super::{Here, SharedQueue, Work};
use crate::clients::pressure::Pressure;
use crate::groups::NodeId;
use crate::groups::handle::{Frame, ToNode};
use crate::node::ends::Ends;
use crate::queues::Handle;
use crate::queues::remote::{Remote, Request};
use model::{QueueId, QueueSettings};
use queue::OwnConsumer;
use std::sync::{Arc, Weak};

/// See the module.
pub(super) struct Followed {
    here: Arc<Here>,
    work: Weak<Work>,
    handles: Handles,
}

impl Followed {
    /// No handles yet.
    pub fn new(here: Arc<Here>, work: Weak<Work>) -> Self {
        Self {
            handles: Handles::new(here.clone()),
            here,
            work,
        }
    }

    /// How many handles there are.
    pub fn count(&self) -> usize {
        self.handles.count()
    }

    /// A node can be spoken to from now on.
    pub fn up(&self, node: NodeId) {
        self.handles.tell_all(|| Brought::Up(node));
    }

    /// A node can be spoken to no longer.
    pub fn down(&self, node: NodeId) {
        self.handles.tell_all(|| Brought::Down(node));
    }

    /// A tick of the clock.
    pub fn tick(&self) {
        self.handles.tick();
    }

    /// This node leads the queue from now on, or none does, as this node's member knows.
    pub fn led(&self, queue: QueueId, leader: Option<NodeId>) {
        let _ = self.handles.bring(queue, Brought::Leads(leader));
    }

    /// This one leads it, as far as a node knows that does not.
    pub fn named(&self, queue: QueueId, leader: NodeId) {
        let _ = self.handles.bring(queue, Brought::Named(leader));
    }

    /// A node says this of a queue. It comes back if there is no handle of it.
    pub fn receive(&self, from: NodeId, id: QueueId, frame: Frame<ToNode>) -> Result<(), Frame<ToNode>> {
        self.handles.receive(id, from, frame)
    }

    fn begin(&self, id: QueueId, request: Request) {
        let existing = self.here.existing.upgrade();
        let Some(queue) = existing.and_then(|existing| existing.shared(id)) else {
            return goes_nowhere(request);
        };
        let new = || Some(self.make(id, &queue));
        self.handles.begin(id, new, Some(Brought::Asked(request)));
    }

    /// A new handle, or the one that this node had of the queue while that was on its home node alone.
    fn make(&self, id: QueueId, queue: &SharedQueue) -> (Arc<Away>, Option<Brought>) {
        let home = || self.work.upgrade()?.known(queue.home)?.take(id);
        if let Some(before) = home() {
            return (before, Some(Brought::Several(queue.settings.clone())));
        }
        let leader = queue.leader.map(|leader| Brought::Leads(Some(leader)));
        (
            Arc::new(Away::of_members(
                &self.here,
                id,
                (&queue.settings, queue.numbers.is_some()),
            )),
            leader,
        )
    }

    /// The queue was on its home node alone until now: what this node's clients have of it goes on here.
    pub fn move_in(&self, id: QueueId) {
        let existing = self.here.existing.upgrade();
        let has_some = |home| self.work.upgrade()?.known(home).filter(|home| home.has(id));
        if let Some(queue) = existing.and_then(|existing| existing.shared(id))
            && has_some(queue.home).is_some()
        {
            self.handles.begin(id, || Some(self.make(id, &queue)), None);
        }
    }

    /// The queue was converted, and has these settings from now on.
    pub fn set(&self, id: QueueId, settings: QueueSettings) {
        let _ = self.handles.bring(id, Brought::Set(settings));
    }

    /// The queue was this node's own until now, and had these clients.
    pub fn adopt(&self, id: QueueId, settings: (&QueueSettings, bool), own: Vec<OwnConsumer<Ends>>) {
        let new = || Some((Arc::new(Away::of_members(&self.here, id, settings)), None));
        self.handles.begin(id, new, Some(Brought::Adopted(own)));
    }
}

impl Remote for Followed {
    fn submit(&self, queue: QueueId, request: Request) {
        if let Err(Brought::Asked(request)) = self.handles.bring(queue, Brought::Asked(request)) {
            match begins(&request, true) {
                true => self.begin(queue, request),
                false => Handle::decline(request),
            }
        }
    }

    fn pressure(&self, queue: QueueId) -> Option<Pressure> {
        let alarm = || self.work.upgrade()?.alarm_where_led(queue);
        self.handles.pressure(queue).or_else(alarm)
    }

    fn deleted(&self, queue: QueueId) {
        let _ = self.handles.bring(queue, Brought::Deleted);
        if let Some(work) = self.work.upgrade() {
            work.leads_no_more(queue);
            work.leaders.forget(queue);
        }
    }
}

impl std::fmt::Debug for Followed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("queues that several nodes have")
    }
}
