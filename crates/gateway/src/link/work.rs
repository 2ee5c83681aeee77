//! Links for queues of other nodes. Of the work of clients what an octet says that stands first is the queues'.

use super::links::Links;
use super::receiver::Receiver;
use broker::groups::NodeId;
use broker::queues::{Work, WorkLinks};
use bytes::Bytes;
use protocol::link::Lane;
use std::sync::Arc;

/// What stands before frames of queues in [`Lane::Work`].
const QUEUES: u8 = 2;

/// Hands what comes in [`Lane::Work`] to the queues of a node.
pub struct ToWork(Arc<Work>);

impl ToWork {
    /// For these.
    pub fn new(work: Arc<Work>) -> Arc<Self> {
        Arc::new(Self(work))
    }
}

impl Receiver for ToWork {
    fn up(&self, peer: NodeId, lane: Lane, incarnation: u64) {
        if lane == Lane::Work {
            self.0.up(peer, incarnation);
        }
    }

    fn frame(&self, from: NodeId, lane: Lane, frame: Bytes) {
        if lane == Lane::Work
            && let Some((&QUEUES, rest)) = frame.split_first()
        {
            self.0.receive(from, rest);
        }
    }

    fn down(&self, peer: NodeId, lane: Lane, _: bool) {
        if lane == Lane::Work {
            self.0.down(peer);
        }
    }

    fn room(&self, _: NodeId, _: Lane) {
        // Sessions miss what found no room, and begin anew.
    }
}

impl WorkLinks for Links {
    fn work(&self, to: NodeId, mut parts: Vec<Bytes>) {
        parts.insert(0, Bytes::from_static(&[QUEUES]));
        // What is lost is missed by its session.
        let _ = self.send(to, Lane::Work, parts);
    }
}
