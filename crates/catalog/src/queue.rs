//! A queue as the catalog knows it: a name, an id and settings, but no messages.

use crate::node::{Lifetime, NodeConnection, NodeId};
use crate::{Name, QueueKind, Refusal};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::QueueId;
use model::table::Table;
use std::sync::Arc;

/// A queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its identity; never used again once it is deleted, not even after a restart.
    pub id: QueueId,
    /// What it is.
    pub kind: QueueKind,
    /// The virtual host.
    pub vhost: Name,
    /// Its name; the exchange's, if it is what an exchange keeps for itself.
    pub name: Name,
    /// With what it ends if nobody deletes it.
    pub lifetime: Lifetime,
    /// Where it was declared, and lives if no other node has it.
    pub home: NodeId,
    /// The nodes that had it when it began, if it is replicated. What their log says of members goes by that.
    pub founders: Arc<[NodeId]>,
    /// Who has had a copy of it since. Founders that are not named are members, too.
    pub changed: Arc<[Member]>,
    /// So often it has been founded anew with one node's copy alone ([`crate::Request::RefoundQueue`]). Its members of before
    /// have no part in it.
    pub generation: u16,
    /// Is deleted when its last consumer is gone.
    pub auto_delete: bool,
    /// What it was declared with. What that means, together with policies, says [`crate::Vhost::settings`].
    pub arguments: Arc<Table>,
}

impl Queue {
    /// True if the queue comes back after a restart. An exclusive one never does: its connection is gone by then.
    pub fn is_durable(&self) -> bool {
        self.lifetime.is_durable()
    }

    /// True if several nodes have its messages, and agree on what becomes of them; or have had, since what was begun so stays
    /// so. Of a replicated queue that one node has from the beginning, that node is the majority: it is as any other one's own.
    pub fn is_shared(&self) -> bool {
        self.founders.len() > 1 || !self.changed.is_empty() || self.generation > 0
    }

    /// True if several nodes can have it.
    pub fn is_replicated(&self) -> bool {
        !self.founders.is_empty()
    }

    /// The members that it has now, the first one of the founders first.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        let of_founder = |node: &NodeId| self.last_of(*node).unwrap_or(Member::first(*node));
        let founders = self.founders.iter().map(of_founder);
        let later = self.changed.iter().filter(|it| !self.founders.contains(&it.node));
        founders.chain(later.copied()).filter(|it| !it.is_gone)
    }

    /// The nodes that have it, be it alone.
    pub(crate) fn places(&self) -> impl Iterator<Item = NodeId> + '_ {
        let alone = (!self.is_shared()).then_some(self.home);
        let members = self.members().filter(|_| self.is_shared());
        members.map(|it| it.node).chain(alone)
    }

    /// The member that this node is.
    pub fn member(&self, node: NodeId) -> Option<Member> {
        self.members().find(|it| it.node == node)
    }

    /// The last member that this node was, be it gone or not.
    pub fn last_member(&self, node: NodeId) -> Option<Member> {
        let founder = || self.founders.contains(&node).then_some(Member::first(node));
        self.last_of(node).or_else(founder)
    }

    fn last_of(&self, node: NodeId) -> Option<Member> {
        self.changed.iter().find(|it| it.node == node).copied()
    }

    /// The same queue, which this node becomes a member of, or is one no more.
    pub(crate) fn with_member(&self, node: NodeId, is_member: bool) -> Self {
        let now = match self.last_member(node) {
            Some(known) if known.is_gone && is_member => Member {
                life: known.life + 1,
                is_gone: false,
                ..known
            },
            Some(known) => Member {
                is_gone: !is_member,
                ..known
            },
            None => Member {
                is_gone: !is_member,
                ..Member::first(node)
            },
        };
        let others = self.changed.iter().filter(|it| it.node != node);
        Self {
            changed: others.copied().chain([now]).collect(),
            ..self.clone()
        }
    }

    /// The same queue, founded anew with this node's copy.
    pub(crate) fn refounded(&self, node: NodeId, generation: u16) -> Self {
        Self {
            home: node,
            founders: [node].into(),
            changed: Arc::default(),
            generation,
            ..self.clone()
        }
    }

    /// The connection that alone may use it.
    pub fn exclusive_to(&self) -> Option<NodeConnection> {
        match self.lifetime {
            Lifetime::Connection(it) => Some(it),
            Lifetime::Durable | Lifetime::Incarnation(_) => None,
        }
    }

    /// True if one connection alone may use it.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive_to().is_some()
    }

    /// Who may use the queue: everybody, or one connection alone.
    ///
    /// # Errors
    /// [`Refusal::ResourceLocked`] if it is exclusive to another connection.
    pub fn check_exclusive(&self, connection: NodeConnection) -> Result<(), Refusal> {
        match self.exclusive_to() {
            Some(alone) if alone != connection => Err(self.locked()),
            _ => Ok(()),
        }
    }

    pub(crate) fn locked(&self) -> Refusal {
        Refusal::ResourceLocked {
            queue: self.name.to_string(),
            vhost: self.vhost.to_string(),
        }
    }
}

/// A node's copy of a queue that several nodes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub node: NodeId,
    /// So many copies the node has had before that are gone. What one of them has answered for does not bind this one.
    pub life: u32,
    /// It is gone as well. It stays on record, so that its number means no other one.
    pub is_gone: bool,
}

impl Member {
    /// The first one that a node has.
    pub const fn first(node: NodeId) -> Self {
        Self {
            node,
            life: 0,
            is_gone: false,
        }
    }
}

/// The name that the server makes for a queue declared without one, of random bytes (RabbitMQ: `amq.gen-…`).
pub fn server_name(unique: &[u8; 16]) -> String {
    format!("amq.gen-{}", URL_SAFE_NO_PAD.encode(unique))
}
