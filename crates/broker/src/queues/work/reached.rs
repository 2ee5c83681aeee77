//! Another node, as this one reaches its queues: their handles here, and whether it can be spoken to.

use super::Here;
use super::alarm::PeerAlarm;
use super::away::{Away, Brought};
use super::handles::{Handles, begins, goes_nowhere};
use crate::clients::alarms::AlarmReason;
use crate::clients::pressure::Pressure;
use crate::groups::NodeId;
use crate::groups::handle::{Frame, ToNode};
use crate::queues::Handle;
use crate::queues::remote::{Remote, Request, StreamAddresses};
use model::QueueId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A node without a link for so many ticks, of 100 ms each, cannot be reached: its queues have no owner. Handles tell their
/// clients at about the same time.
const GONE_AFTER: u32 = 50;

/// See the module.
pub(super) struct Reached {
    pub node: NodeId,
    here: Arc<Here>,
    handles: Handles,
    link: Mutex<Link>,
    alarm: PeerAlarm,
    /// Where clients of the stream protocol reach it, as it has said.
    streams: RwLock<Option<StreamAddresses>>,
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
            handles: Handles::new(here.clone()),
            here,
            link: Mutex::new(Link {
                start: 0,
                is_up: false,
                down: GONE_AFTER,
            }),
            alarm: PeerAlarm::default(),
            streams: RwLock::default(),
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
        self.handles.tell_all(|| Brought::Up(self.node));
        (before, was_reached)
    }

    /// The link is lost.
    pub fn down(&self) {
        self.link().is_up = false;
        self.alarm.end();
        self.handles.tell_all(|| Brought::Down(self.node));
    }

    /// Which start of the node was heard of last; 0 if none was.
    pub fn start(&self) -> u64 {
        self.link().start
    }

    /// How many of its queues have handles.
    pub fn handles(&self) -> usize {
        self.handles.count()
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
        self.handles.tick();
        is_lost
    }

    /// The node has an alarm, or none any more. It may have been so before.
    pub fn alarm(&self, reason: Option<AlarmReason>) {
        self.alarm.said(reason, || self.here.name_of(self.node));
    }

    /// Clients of the stream protocol reach it there.
    pub fn serves_streams(&self, at: StreamAddresses) {
        *self.streams.write().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// See [`Self::serves_streams`].
    pub fn stream_addresses(&self) -> Option<StreamAddresses> {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.clone()
    }

    /// Publishers to a queue that it leads wait, as long as it has an alarm and leads it.
    pub fn alarm_of(&self, led: QueueId) -> Option<Pressure> {
        self.alarm.pressure(Some(led))
    }

    /// It does not lead this queue.
    pub fn does_not_lead(&self, queue: QueueId) {
        self.alarm.ends_of(queue);
    }

    /// The node says this of a queue. It comes back if there is no handle of it.
    pub fn receive(&self, id: QueueId, frame: Frame<ToNode>) -> Result<(), Frame<ToNode>> {
        self.handles.receive(id, self.node, frame)
    }

    /// Makes a handle, and brings it this.
    fn begin(&self, id: QueueId, request: Request) {
        // Several nodes may have it by now, and its handle be among the others.
        let new = || {
            let is_home = self.here.followed(id).is_none();
            let queue = is_home.then(|| Arc::new(Away::of_home(&self.here, id)))?;
            Some((queue, self.is_up().then_some(Brought::Up(self.node))))
        };
        let left = self.handles.begin(id, new, Some(Brought::Asked(request)));
        if let Some(Brought::Asked(request)) = left {
            match self.here.followed(id) {
                Some(followed) => followed.submit(id, request),
                None => goes_nowhere(request),
            }
        }
    }

    /// True if there is a handle of the queue.
    pub fn has(&self, id: QueueId) -> bool {
        self.handles.has(id)
    }

    /// Takes out the handle of a queue that several nodes have from now on.
    pub fn take(&self, id: QueueId) -> Option<Arc<Away>> {
        self.handles.take(id)
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
        if let Err(Brought::Asked(request)) = self.handles.bring(queue, Brought::Asked(request)) {
            match self.here.followed(queue) {
                Some(followed) => followed.submit(queue, request),
                None if begins(&request, self.is_reached()) => self.begin(queue, request),
                None => Handle::decline(request),
            }
        }
    }

    fn pressure(&self, queue: QueueId) -> Option<Pressure> {
        let of_queue = || self.handles.pressure(queue);
        self.alarm.pressure(None).or_else(of_queue)
    }

    fn deleted(&self, queue: QueueId) {
        let _ = self.handles.bring(queue, Brought::Deleted);
    }
}

impl std::fmt::Debug for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "queues of node {}", self.node.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Existing, SharedQueue, Work, WorkLinks};
    use super::*;
    use crate::clients::outbox::{ChannelId, Event, Outbox};
    use crate::node::ends::Receipt;
    use crate::queues::Queue;
    use bytes::Bytes;
    use model::properties::Properties;
    use model::{BlockBuilder, Message, QueueSettings, Ranges, RouteBuf};
    use std::sync::Weak;
    use std::sync::atomic::{AtomicBool, Ordering};

    const HOME: NodeId = NodeId(2);

    #[derive(Debug)]
    struct Nowhere;

    impl WorkLinks for Nowhere {
        fn work(&self, _: NodeId, _: Vec<Bytes>) {}
    }

    /// A queue of several nodes that is deleted once somebody has looked for it.
    struct Deleted(AtomicBool);

    impl Existing for Deleted {
        fn here(&self, _: QueueId) -> Option<Arc<Queue>> {
            None
        }

        fn version(&self) -> u64 {
            0
        }

        fn shared(&self, _: QueueId) -> Option<SharedQueue> {
            let is_deleted = self.0.swap(true, Ordering::Relaxed);
            (!is_deleted).then(|| SharedQueue {
                home: HOME,
                members: vec![HOME],
                settings: QueueSettings::default(),
                leader: None,
                numbers: None,
                is_refounded: false,
            })
        }

        fn moved(&self) {}
    }

    #[test]
    fn what_is_published_to_a_queue_that_is_deleted_meanwhile_goes_nowhere_and_is_confirmed() {
        let deleted = Arc::new(Deleted(AtomicBool::new(false)));
        let existing: Weak<dyn Existing> = Arc::downgrade(&deleted) as Weak<dyn Existing>;
        let work = Work::new(NodeId(1), 1, Arc::new(Nowhere), existing, Arc::default());
        let outbox = Arc::new(Outbox::new());
        let mut block = BlockBuilder::default();
        let route = RouteBuf::new(b"", b"q");
        block.push_message(&Message::new(route.as_route(), Properties::amqp091(b""), b"body"));
        let receipt = Receipt {
            outbox: outbox.clone(),
            channel: ChannelId(1),
            numbers: Ranges::one(5),
            queue: None,
            timed: None,
        };
        let request = Request::Enqueue {
            block: Arc::new(block.finish(false, Default::default())),
            receipt: Some(receipt),
        };
        work.node(HOME).begin(QueueId(7), request);
        let mut events = Vec::new();
        outbox.take_now(&mut events);
        assert!(
            matches!(&events[..], [Event::Confirm { numbers, .. }] if *numbers == Ranges::one(5)),
            "{events:?}"
        );
    }
}
