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
    /// Where it was declared, and lives if it is not replicated.
    pub home: NodeId,
    /// The nodes with a copy, if it is replicated.
    pub members: Arc<[NodeId]>,
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

/// The name that the server makes for a queue declared without one, of random bytes (RabbitMQ: `amq.gen-…`).
pub fn server_name(unique: &[u8; 16]) -> String {
    format!("amq.gen-{}", URL_SAFE_NO_PAD.encode(unique))
}
