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
    /// What stands behind it: the groups that it has been.
    pub epoch: Epoch,
    /// Is deleted when its last consumer is gone.
    pub auto_delete: bool,
    /// What it was declared with. What that means, together with policies, says [`crate::Vhost::settings`].
    pub arguments: Arc<Table>,
    /// What it had in the place of that before it was converted to another kind. Who declares it so means this queue, too, and if
    /// it is converted back it has that again.
    pub other_arguments: Option<Arc<Table>>,
}

impl Queue {
    /// True if the queue comes back after a restart. An exclusive one never does: its connection is gone by then.
    pub fn is_durable(&self) -> bool {
        self.lifetime.is_durable()
    }

    /// True if several nodes have its messages, and agree on what becomes of them; or have had, since what was begun so stays
    /// so. Of a replicated queue that one node has from the beginning, that node is the majority: it is as any other one's own.
    pub fn is_shared(&self) -> bool {
        let is_anew = self.epoch.number > 0 && !self.founders.is_empty();
        self.founders.len() > 1 || !self.changed.is_empty() || is_anew
    }

    /// The node that it began on alone, as long as nobody has said that it is a group's by now: others are to have it, and may
    /// have nothing of it yet. Its log knows nothing of a queue that nobody has sent anything, and nothing of one that it was a
    /// member of and left, so it must not leave before.
    pub fn only_copy(&self) -> Option<NodeId> {
        match self.founders[..] {
            [home] if !self.epoch.is_refounded && self.last_of(home).is_none() => Some(home),
            _ => None,
        }
    }

    /// True if a policy may say that several nodes are to have it.
    pub fn is_mirrorable(&self) -> bool {
        self.kind == QueueKind::Classic && !self.is_exclusive()
    }

    /// The same queue, which exactly these nodes have. Of several of them the node that it was on is one, if it has not been of
    /// several before.
    pub(crate) fn of_members(&self, nodes: &[NodeId]) -> Self {
        let mut queue = self.clone();
        if queue.founders.is_empty() {
            queue.founders = [self.home].into();
        }
        let leaving = queue
            .members()
            .map(|it| it.node)
            .filter(|node| !nodes.contains(node));
        let leaving: Vec<NodeId> = leaving.collect();
        for node in nodes {
            if queue.member(*node).is_none() {
                queue = queue.with_member(*node, true);
            }
        }
        for node in leaving {
            queue = queue.with_member(node, false);
        }
        queue
    }

    /// The queue as it was when its home was the last member of the group that it was last.
    #[must_use]
    pub fn before(&self) -> Self {
        Self {
            founders: [self.home].into(),
            changed: Arc::default(),
            epoch: Epoch {
                number: self.epoch.number.saturating_sub(1),
                ..self.epoch
            },
            ..self.clone()
        }
    }

    /// The same queue, which is on this node alone again. Terms up to this one have been.
    pub(crate) fn of_one(&self, home: NodeId, lifetime: Lifetime, behind: u64) -> Self {
        Self {
            home,
            lifetime,
            founders: Arc::default(),
            changed: Arc::default(),
            epoch: Epoch {
                number: self.epoch.number.saturating_add(1),
                behind: behind.max(self.epoch.behind),
                is_refounded: false,
            },
            ..self.clone()
        }
    }

    /// True if it was made a queue of several nodes by its kind, and it is not on record yet which nodes these are: the node that
    /// has it names them once it is that node's own. Nothing is converted to a stream, and one that was declared before several
    /// nodes could have one stays where it is.
    pub fn awaits_members(&self) -> bool {
        self.kind.is_replicated() && self.kind != QueueKind::Stream && self.founders.is_empty()
    }

    /// True if it stays on the one node that has it: what a stream has there is in files, which no journal can take over.
    pub fn stays_alone(&self) -> bool {
        self.kind == QueueKind::Stream && !self.is_shared()
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
    pub fn places(&self) -> impl Iterator<Item = NodeId> + '_ {
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
            epoch: Epoch {
                number: generation,
                is_refounded: true,
                ..self.epoch
            },
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

/// Whose numbers a queue's next group and next terms go on behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// So many groups it has been that are over. None of them has the number of the one that it is, or is next.
    pub number: u16,
    /// Whoever decided what becomes of it before did so in terms up to this one.
    pub behind: u64,
    /// The group that it is goes on with one node's copy of the one before, whose majority was lost; otherwise the queue was its
    /// node's own between the two.
    pub is_refounded: bool,
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
