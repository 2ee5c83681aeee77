//! Nodes as the catalog knows them, and how long objects live that are not durable.

use crate::Name;
use model::ConnectionId;

/// A node of the cluster: a process with a data directory. The number stays, whatever the node is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The node that began the cluster; a node alone is this one.
    pub const FIRST: Self = Self(1);
}

/// One start of a node: what it held in memory before is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// Which node.
    pub node: NodeId,
    /// Which of its starts, from 1.
    pub number: u64,
}

/// A client's connection, among those of all nodes and all their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeConnection {
    /// The run of a node that it is to.
    pub incarnation: Incarnation,
    /// Which of that run's connections; 0 for what the node does by itself.
    pub connection: ConnectionId,
}

impl NodeConnection {
    /// The node itself, where it asks for something on nobody's behalf.
    pub fn of_node(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            connection: ConnectionId(0),
        }
    }
}

/// With what an object ends if nobody deletes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lifetime {
    /// With nothing: it survives restarts.
    Durable,
    /// With the run of the node on which it was declared.
    Incarnation(Incarnation),
    /// With the connection that declared it and that alone may use it: RabbitMQ's exclusive queues.
    Connection(NodeConnection),
}

impl Lifetime {
    /// That of an object which is durable, or not.
    pub fn of(durable: bool, incarnation: Incarnation) -> Self {
        match durable {
            true => Self::Durable,
            false => Self::Incarnation(incarnation),
        }
    }

    /// True if it survives restarts.
    pub fn is_durable(self) -> bool {
        self == Self::Durable
    }

    /// The run of a node that it does not outlive.
    pub fn incarnation(self) -> Option<Incarnation> {
        match self {
            Self::Durable => None,
            Self::Incarnation(it) => Some(it),
            Self::Connection(it) => Some(it.incarnation),
        }
    }
}

/// What the catalog knows of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is called at present.
    pub name: Name,
    /// Its last start; 0 before the first.
    pub started: u64,
    /// That run has not ended, as far as anybody knows.
    pub is_running: bool,
    /// New queues may get their home there, as the node's configuration says.
    pub takes_queues: bool,
    /// This run of it is in maintenance (RabbitMQ's `rabbitmq-upgrade drain`): it leads nothing and gets nothing new that others
    /// can have.
    pub is_drained: bool,
    /// Whether it is one of several.
    pub membership: Membership,
}

/// Whether a node is one of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Membership {
    /// It has been alone so far, and nobody was told where it is.
    #[default]
    Alone,
    /// It is a member of the cluster.
    Joined(Joined),
    /// It was one. It stays on record so that its number means nothing else, and is told so if it comes back.
    Forgotten {
        /// As it was.
        token: [u8; 16],
    },
}

/// A node of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Where the host that its name ends with is dialled by other nodes.
    pub port: u16,
    /// What it is recognised by: random bytes that are in its data directory.
    pub token: [u8; 16],
}

impl Node {
    /// How it is one of several, if it is.
    pub fn joined(&self) -> Option<Joined> {
        match self.membership {
            Membership::Joined(joined) => Some(joined),
            _ => None,
        }
    }

    /// What it is recognised by, if it is or was one of several.
    pub fn token(&self) -> Option<[u8; 16]> {
        match self.membership {
            Membership::Alone => None,
            Membership::Joined(Joined { token, .. }) | Membership::Forgotten { token } => Some(token),
        }
    }

    /// True if it was one of several and is no more.
    pub fn is_forgotten(&self) -> bool {
        matches!(self.membership, Membership::Forgotten { .. })
    }

    /// True if new queues may get their home there just now.
    pub fn is_open_to_queues(&self) -> bool {
        self.takes_queues && !self.is_drained && !self.is_forgotten()
    }

    /// True if this start of it has not ended.
    pub fn runs(&self, number: u64) -> bool {
        self.is_running && self.started == number
    }
}
