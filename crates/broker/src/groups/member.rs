//! What a node's groups speak to: peers, members, and who decides what exists.

use super::transfer::Bulk;
use bytes::Bytes;
use cluster::{Committed, Event, GroupId, Mark, MemberId, Membership, NodeId};
use model::Ranges;
use std::sync::Arc;
use storage::Position;

/// The way to other nodes.
pub trait Links: Send + Sync {
    /// Sends a frame to a peer, behind those before it; it may be lost. Called under the lock of the groups: it waits
    /// for nothing and brings the groups nothing.
    fn send(&self, to: NodeId, frame: Bytes);

    /// The same for contents and bodies, in a lane of their own: what is sent here delays no frame of the other one.
    fn bulk(&self, to: NodeId, frame: Bytes);
}

/// Who decides which groups and members there are, and what becomes of peers.
pub trait Observer: Send + Sync {
    /// This node's member of the group can't read what it has answered for. It votes and leads no more: what this node has of it
    /// is to be forgotten ([`handover::renounce`](super::handover::renounce)), and the group to have another member in its place.
    /// Called without a lock.
    fn damaged(&self, group: GroupId);

    /// Takes note of it: [`Event::Lost`], [`Event::Gone`], [`Event::Unknown`], [`Event::Suspected`] or
    /// [`Event::Heard`]. Called without a lock.
    fn observe(&self, event: Event);
}

/// Whose a group's member on this node is.
pub trait Member: Send + Sync {
    /// Puts this into its inbox. Called under the lock of the groups.
    fn tell(&self, news: Vec<News>);

    /// Looks into its inbox, unless somebody has it who will look afterwards. Called without a lock.
    fn turn(self: Arc<Self>);

    /// The same on the log's thread, for which everything waits that is to be synced: what may take long is left to others.
    fn turn_shortly(self: Arc<Self>) {
        self.turn();
    }

    /// The group is open here no more: nothing is stored for it from now on, whatever was ordered before. Only the one is told
    /// that it was opened with. Called under the lock of the groups.
    fn closed(&self) {}
}

/// What a member is told, in the order in which it is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// This is committed, and synced here. Its record is empty if it is none of the host's.
    Committed(Committed),
    /// It leads, in this term, and everything that was committed before has been told.
    Leads { term: u64 },
    /// A majority had elected nobody else when this was asked with [`NodeGroups::prove`](super::NodeGroups::prove).
    Proven { term: u64 },
    /// It leads no longer. What was proposed and is not committed may never be.
    Deposed,
    /// Somebody else leads, or nobody.
    Leader(Option<MemberId>),
    /// These are the members from this index on. Told before the entries that the same turn commits.
    Members { index: u64, members: Membership },
    /// The log wants to use the file again that ends here: what it has of the group before is to be needed no more.
    Reclaim(Position),
    /// A member elsewhere needs contents, and the last checkpoint's are too old for it: a later one is to be taken.
    Checkpoint,
    /// The entries up to here can't be had any more: the contents are to be fetched, from this member or from another
    /// one. Once they are durable, [`NodeGroups::installed`](super::NodeGroups::installed) is called.
    Fetch {
        from: MemberId,
        at: Mark,
        members: Membership,
    },
    /// The member was removed from its group.
    Removed,
    /// These messages are there, and their bytes can't be read here.
    Lacks(Ranges),
    /// What a peer's member of the group sent beside entries.
    Bulk(Bulk),
    /// So much time has passed: for what is asked again, or given up. Told while it wants ticks.
    Tick,
}
