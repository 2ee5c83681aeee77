//! Links for the groups of a node.

use super::receiver::Receiver;
use broker::groups::{NodeGroups, NodeId};
use bytes::Bytes;
use protocol::link::Lane;
use std::sync::Arc;

/// Hands what comes to a node's groups; what is clients' work to somebody else.
pub struct ToGroups {
    groups: Arc<NodeGroups>,
    work: Arc<dyn Receiver>,
}

impl ToGroups {
    /// For these groups. `work` is told everything of [`Lane::Work`], and nothing else.
    pub fn new(groups: Arc<NodeGroups>, work: Arc<dyn Receiver>) -> Arc<Self> {
        Arc::new(Self { groups, work })
    }
}

impl Receiver for ToGroups {
    fn up(&self, peer: NodeId, lane: Lane, incarnation: u64) {
        // The groups hear of a peer by its first frame.
        if lane == Lane::Work {
            self.work.up(peer, lane, incarnation);
        }
    }

    fn frame(&self, from: NodeId, lane: Lane, frame: Bytes) {
        match lane {
            Lane::Consensus => self.groups.receive(from, frame),
            Lane::Bulk => self.groups.bulk(from, frame),
            Lane::Work => self.work.frame(from, lane, frame),
        }
    }

    fn down(&self, peer: NodeId, lane: Lane, replaced: bool) {
        match lane {
            // A peer that has just made another link lives.
            Lane::Consensus if !replaced => self.groups.suspect(peer),
            Lane::Consensus | Lane::Bulk => {}
            Lane::Work => self.work.down(peer, lane, replaced),
        }
    }

    fn room(&self, peer: NodeId, lane: Lane) {
        // Groups and transfers say again what found no room.
        if lane == Lane::Work {
            self.work.room(peer, lane);
        }
    }
}
