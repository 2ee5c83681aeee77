//! What is now so. Past tense; journaled, replayed, versioned.

mod codec;

use crate::node::{Incarnation, Joined, NodeId};
use crate::{
    DeclaredExchange, Member, Metadata, Name, NamedBinding, PasswordHash, Permission, Policy, PolicyKind,
    Queue, Quota, QuotaOf, TopicPermission,
};
use model::table::Value;
use model::{Journaled, QueueId};
use std::sync::Arc;

/// A fact about what exists. Deleting a thing includes deleting its bindings; applying a record again changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A virtual host and its predeclared exchanges exist.
    VhostCreated { name: Name },
    /// A virtual host is gone, with everything in it and all permissions on it.
    VhostDeleted { name: Name },
    /// A user exists, with this password and these tags.
    UserPut {
        name: Name,
        password: Option<PasswordHash>,
        tags: Vec<String>,
    },
    /// A user is gone, with all its permissions.
    UserDeleted { name: Name },
    /// A user's permissions in a virtual host.
    PermissionsSet(Arc<Permission>),
    /// A user has no permissions in a virtual host.
    PermissionsCleared { user: Name, vhost: Name },
    /// An exchange exists.
    ExchangeDeclared(DeclaredExchange),
    /// An exchange is gone.
    ExchangeDeleted { vhost: Name, name: Name, durable: bool },
    /// A queue exists.
    QueueDeclared(Arc<Queue>),
    /// These have copies of a queue, or had. See [`Queue::changed`].
    MembersChanged { id: QueueId, changed: Arc<[Member]> },
    /// A queue is in another place than before, or of another kind: it is as it says here.
    QueueChanged(Arc<Queue>),
    /// A queue goes on with this node's copy alone, in the epoch of this number. See [`crate::Request::RefoundQueue`].
    QueueRefounded {
        id: QueueId,
        node: NodeId,
        generation: u16,
    },
    /// A queue is being deleted, some of its bindings at a time, and will be gone whatever happens.
    QueueDoomed { id: QueueId, durable: bool },
    /// A queue is gone.
    QueueDeleted { id: QueueId, durable: bool },
    /// A binding exists.
    Bound(NamedBinding),
    /// A binding is gone. Nobody waits for one of a doomed queue, which is not `durable` here: the queue's end takes it along.
    Unbound(NamedBinding),
    /// A policy exists, in place of any of its kind and name.
    PolicyPut(Arc<Policy>),
    /// A policy is gone.
    PolicyDeleted {
        vhost: Name,
        kind: PolicyKind,
        name: Name,
    },
    /// The limits of a user or a virtual host: these and no others.
    QuotaSet { of: QuotaOf, quota: Quota },
    /// A global parameter has this value, or is gone.
    GlobalSet { name: Name, value: Option<Value> },
    /// What is said about a virtual host.
    VhostDescribed { vhost: Name, metadata: Metadata },
    /// A user's permission on the routing keys of a topic exchange.
    TopicPermissionSet(Arc<TopicPermission>),
    /// A user has no topic permission on an exchange, or on all of a virtual host.
    TopicPermissionsCleared {
        user: Name,
        vhost: Name,
        exchange: Option<Name>,
    },
    /// A run of a node has begun.
    NodeStarted {
        incarnation: Incarnation,
        name: Name,
        /// New queues may get their home there.
        takes_queues: bool,
    },
    /// A run of a node is over: nothing of it is used any more that ends with it, and it is deleted by and by.
    IncarnationEnded(Incarnation),
    /// A node is a member of the cluster, called and reached so.
    NodeJoined {
        node: NodeId,
        name: Name,
        joined: Joined,
    },
    /// A node is no member of the cluster any more, and never will be.
    NodeForgotten { node: NodeId },
    /// This run of a node is in maintenance from now on, or no more. The next one is not.
    NodeDrained { node: NodeId, drained: bool },
    /// Queue ids below this one have been used, by queues that may be gone: said by snapshots.
    QueueIdsUsed { below: u64 },
    /// Everything that exists at this moment follows, as `Snapshotted` records up to `SnapshotFinished`: replay may
    /// start here. Changes go on meanwhile; they stand between the snapshot's records and count after all of these.
    SnapshotStarted,
    /// This was so when the snapshot started. Never a record of a snapshot itself.
    Snapshotted(Box<Record>),
    /// See `SnapshotStarted`. Without this one the snapshot is not complete, and replay needs what came before it.
    SnapshotFinished,
}

impl Record {
    /// True if whoever asked for it is answered once it is durable. The rest concerns things that do not survive a restart, and a
    /// node alone need not wait for the disk with those.
    pub fn is_durable(&self) -> bool {
        match self {
            Self::ExchangeDeleted { durable, .. }
            | Self::QueueDoomed { durable, .. }
            | Self::QueueDeleted { durable, .. } => *durable,
            Self::ExchangeDeclared(exchange) => exchange.lifetime.is_durable(),
            Self::Bound(binding) | Self::Unbound(binding) => binding.durable,
            Self::QueueDeclared(queue) => queue.is_durable(),
            _ => true,
        }
    }
}

impl Journaled for Record {
    /// The size is bounded by what a declaration may carry.
    fn encode(&self, out: &mut Vec<u8>) {
        codec::encode(self, out);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        codec::decode(bytes)
    }
}
