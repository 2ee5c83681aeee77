//! What links are made with.

use broker::groups::NodeId;
use listener::{Endpoint, SocketOptions, Tls};
use protocol::link::{ClusterId, Lane, Secret};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The links of a node.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// The node's name, such as `rabbit@n1`: 1 to 255 letters, digits and signs of ASCII. No other node of the cluster has it.
    pub name: String,
    /// Which start of the node this is; higher than that of any earlier start.
    pub incarnation: u64,
    /// The cluster that it belongs to; `None` as long as it is in none.
    pub cluster: Option<ClusterId>,
    /// What all nodes of the cluster know.
    pub secret: Secret,
    /// There is no secret: a node is who its certificate says, which has to be of the host in the node's name. TLS looks at the
    /// certificates of both ends then.
    pub is_certified: bool,
    /// Where other nodes dial this one.
    pub endpoints: Vec<Endpoint>,
    /// Peers are dialled with TLS and these settings, which should be those of the endpoints.
    pub tls: Option<Arc<Tls>>,
    pub sockets: SocketOptions,
    /// How many threads serve links; `None` is as many as there are processors.
    pub threads: Option<usize>,
    pub limits: LinkLimits,
    /// After so long without a byte a link is lost. Each end sends a heartbeat four times in it.
    pub silence: Duration,
}

impl LinkOptions {
    /// A node of no cluster that listens nowhere, with the usual bounds.
    pub fn new(name: &str, incarnation: u64, secret: Secret) -> Self {
        Self {
            name: name.to_owned(),
            incarnation,
            cluster: None,
            secret,
            is_certified: false,
            endpoints: Vec::new(),
            tls: None,
            sockets: SocketOptions::default(),
            threads: None,
            limits: LinkLimits::default(),
            silence: SILENCE,
        }
    }
}

/// After so long without a byte a link is lost, if it is not said otherwise: both ends know of a cut within two seconds.
pub const SILENCE: Duration = Duration::from_millis(1_600);

/// Bounds of all lanes. Both ends of a link should have the same: a frame that is longer than the other end allows costs the
/// link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    pub consensus: LaneLimits,
    pub work: LaneLimits,
    pub bulk: LaneLimits,
}

/// Bounds of a lane with one peer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLimits {
    /// The longest frame.
    pub frame: usize,
    /// What may wait to be written, but for one frame, which may always.
    pub backlog: usize,
}

impl Default for LinkLimits {
    /// A frame of groups may bring a message of the largest size, and pieces of contents have theirs
    /// (`broker::groups::transfer::BULK_LIMIT`).
    fn default() -> Self {
        let lane = |frame, backlog| LaneLimits { frame, backlog };
        Self {
            consensus: lane(1 << 30, 64 << 20),
            work: lane(1 << 30, 64 << 20),
            bulk: lane(broker::groups::transfer::BULK_LIMIT, 16 << 20),
        }
    }
}

impl LinkLimits {
    /// Those of a lane.
    pub fn of(&self, lane: Lane) -> LaneLimits {
        match lane {
            Lane::Consensus => self.consensus,
            Lane::Work => self.work,
            Lane::Bulk => self.bulk,
        }
    }
}

/// Another node of the cluster, and where it is dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    pub id: NodeId,
    pub name: String,
    /// A name of the network or an address, without brackets.
    pub host: String,
    pub port: u16,
}

/// The host that a node's name ends with.
pub fn host_of(name: &str) -> &str {
    name.split_once('@').map_or(name, |(_, host)| host)
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}
