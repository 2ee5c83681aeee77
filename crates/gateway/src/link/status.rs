//! What operators see of links.

use broker::groups::NodeId;
use protocol::link::Lane;
use std::time::SystemTime;

/// A peer, and the links with it.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Its number.
    pub id: NodeId,
    /// Its name, such as `rabbit@n2`.
    pub name: String,
    /// Where it is dialled, as host and port.
    pub address: String,
    /// Its lanes, in the order of [`Lane::ALL`].
    pub lanes: Vec<LaneStatus>,
    /// The name of the node that passes on clients' work for it, if there is no link and another node has links with both.
    pub through: Option<String>,
}

/// A lane of a peer. What is counted is counted since the peer is known here, over all links of the lane.
#[derive(Clone, Debug)]
pub struct LaneStatus {
    pub lane: Lane,
    /// `None` while there is no link.
    pub link: Option<LinkStatus>,
    pub counts: Counts,
    /// When the last link was lost, or could not be made, and why.
    pub last_lost: Option<(SystemTime, String)>,
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// Rises with each link of this node, whoever is at its other end.
    pub epoch: u64,
    pub since: SystemTime,
    /// Whether the peer has dialled it.
    pub by_peer: bool,
    /// Which start of the peer it leads to.
    pub incarnation: u64,
    /// The version of the protocol that is spoken.
    pub version: u16,
    /// Whether TLS is.
    pub is_secured: bool,
    /// How far the peer's clock was ahead when the link was made, in milliseconds.
    pub clock_ahead_ms: i64,
    /// From the last heartbeat, in microseconds.
    pub round_trip_us: Option<u32>,
    /// Frames that wait to be written, and their bytes.
    pub backlog_frames: usize,
    pub backlog_bytes: usize,
}

/// Of frames that others sent: heartbeats don't count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many links there have been.
    pub links: u64,
    pub frames_in: u64,
    pub bytes_in: u64,
    pub frames_out: u64,
    pub bytes_out: u64,
    /// Frames that found no room, or no link.
    pub frames_dropped: u64,
}
