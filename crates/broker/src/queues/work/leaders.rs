//! Who leads streams that this node has no copy of. Clients of the stream protocol ask any node whom to publish to, so those that
//! have a copy say it unasked to those that have none: when it changes, and to a node that can be spoken to from now on.
//!
//! What was said may be late, or lost with a link; then clients are sent to a node that does not lead, which tells them so, and
//! ask again.

use super::Work;
use super::frame::Envelope;
use crate::groups::NodeId;
use crate::queues::Queue;
use catalog::QueueKind;
use model::QueueId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was said last of each such stream.
#[derive(Debug, Default)]
pub(super) struct Leaders(Mutex<BTreeMap<QueueId, NodeId>>);

impl Leaders {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<QueueId, NodeId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who leads the stream, if anybody has said so.
    pub fn of(&self, stream: QueueId) -> Option<NodeId> {
        self.lock().get(&stream).copied()
    }

    /// The stream is deleted.
    pub fn forget(&self, stream: QueueId) {
        self.lock().remove(&stream);
    }
}

impl Work {
    /// Another one leads a queue of which this node has a copy: of a stream those hear it who have none.
    pub(super) fn say_leader(&self, queue: &Queue, leader: Option<NodeId>) {
        let is_stream = queue.kind() == QueueKind::Stream;
        let Some(leader) = leader.filter(|_| is_stream) else {
            return;
        };
        for node in self.all_nodes().iter().filter(|node| node.is_up()) {
            self.say_leader_to(node.node, queue.id, leader);
        }
    }

    /// A node can be spoken to, and hears which streams this one leads that it has no copy of.
    pub(super) fn say_what_is_led(&self, to: NodeId) {
        let existing = self.here.existing.upgrade();
        let led = existing.map(|existing| existing.led_streams());
        for stream in led.into_iter().flatten() {
            self.say_leader_to(to, stream, self.here.node());
        }
    }

    fn say_leader_to(&self, to: NodeId, queue: QueueId, leader: NodeId) {
        let existing = self.here.existing.upgrade();
        let members = existing.and_then(|existing| existing.stream_members(queue));
        if members.is_some_and(|members| !members.contains(&to)) {
            self.here.send(to, Envelope::Led { queue, leader });
        }
    }

    /// A node says who leads a queue. This is kept of streams that exist and that this node has no copy of: of others its copy
    /// knows, or nobody asks.
    pub(super) fn heard_leader(&self, queue: QueueId, leader: NodeId) {
        let existing = self.here.existing.upgrade();
        let members = existing.and_then(|existing| existing.stream_members(queue));
        if members.is_some_and(|members| !members.contains(&self.here.node())) {
            self.leaders.lock().insert(queue, leader);
        }
        self.followed.named(queue, leader);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::remote::{Peers, StreamAddresses};
    use crate::queues::work::{Existing, WorkLinks};
    use bytes::Bytes;
    use std::collections::VecDeque;
    use std::sync::{Arc, Weak};

    const LEADS: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    /// The first node has this one, which it leads.
    const ALONE: QueueId = QueueId(7);
    /// And both have this one.
    const BOTH: QueueId = QueueId(8);

    /// What is under way between them, with the node that it is for.
    #[derive(Debug, Default)]
    struct Wire(Mutex<VecDeque<(NodeId, Vec<u8>)>>);

    impl WorkLinks for Wire {
        fn work(&self, to: NodeId, parts: Vec<Bytes>) {
            self.0.lock().unwrap().push_back((to, parts.concat()));
        }
    }

    struct Streams {
        led: Vec<QueueId>,
    }

    impl Existing for Streams {
        fn here(&self, _: QueueId) -> Option<Arc<Queue>> {
            None
        }

        fn version(&self) -> u64 {
            0
        }

        fn stream_members(&self, stream: QueueId) -> Option<Vec<NodeId>> {
            match stream {
                ALONE => Some(vec![LEADS]),
                BOTH => Some(vec![LEADS, OTHER]),
                _ => None,
            }
        }

        fn led_streams(&self) -> Vec<QueueId> {
            self.led.clone()
        }

        fn moved(&self) {}
    }

    struct Pair {
        leads: Arc<Work>,
        other: Arc<Work>,
        wire: Arc<Wire>,
        _exist: [Arc<Streams>; 2],
    }

    impl Pair {
        fn new() -> Self {
            let wire = Arc::<Wire>::default();
            let exist = [vec![ALONE, BOTH], Vec::new()].map(|led| Arc::new(Streams { led }));
            let work = |node, exist: &Arc<Streams>| {
                let exist: Weak<dyn Existing> = Arc::downgrade(exist) as Weak<dyn Existing>;
                Work::new(node, 1, wire.clone(), exist, Arc::default())
            };
            Self {
                leads: work(LEADS, &exist[0]),
                other: work(OTHER, &exist[1]),
                wire: wire.clone(),
                _exist: exist,
            }
        }

        fn arrive(&self) {
            loop {
                let next = self.wire.0.lock().unwrap().pop_front();
                match next {
                    Some((LEADS, bytes)) => self.leads.receive(OTHER, bytes),
                    Some((_, bytes)) => self.other.receive(LEADS, bytes),
                    None => return,
                }
            }
        }

        fn said(&self, stream: QueueId) -> Option<u64> {
            self.other.said_leader(stream).map(|node| node.0)
        }
    }

    #[test]
    fn a_node_hears_who_leads_the_streams_that_it_has_no_copy_of_until_they_are_deleted() {
        let pair = Pair::new();
        pair.other.up(LEADS, 1);
        pair.leads.up(OTHER, 1);
        pair.arrive();
        assert_eq!((pair.said(ALONE), pair.said(BOTH)), (Some(1), None));
        for queue in [ALONE, BOTH, QueueId(9)] {
            let leader = NodeId(3);
            let led = Envelope::Led { queue, leader }.encode();
            pair.other.receive(LEADS, led.concat());
        }
        let said = [ALONE, BOTH, QueueId(9)].map(|stream| pair.said(stream));
        assert_eq!(said, [Some(3), None, None]);
        pair.other.follow().unwrap().deleted(ALONE);
        assert_eq!(pair.said(ALONE), None);
    }

    #[test]
    fn a_node_that_sees_the_link_last_asks_and_hears_it_too() {
        let pair = Pair::new();
        pair.leads.up(OTHER, 1);
        pair.arrive();
        assert_eq!(pair.said(ALONE), None, "nobody listened yet");
        let at = || ("other".into(), 5552);
        let (plain, tls) = (at(), at());
        pair.other.serve_streams(&StreamAddresses { plain, tls });
        pair.other.up(LEADS, 1);
        pair.arrive();
        assert_eq!(pair.said(ALONE), Some(1));
    }
}
