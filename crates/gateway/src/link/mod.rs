//! Links between nodes: one authenticated connection for each lane of each pair, whoever dials.
//!
//! `protocol::link` is what is said on them. Here it gets sockets, on threads of their own beside those that serve clients: what
//! nodes agree on does not wait behind a publisher. What clients want of queues of other nodes goes by the threads of clients,
//! once there are some: from one of their connections to the link without waking anybody. Frames are handed over as bytes;
//! nothing here knows what is in them.
//!
//! Reading order: [`Links`] (start, send, stop), [`Receiver`] (who is told what comes), [`Reply`] (what a node asks that has no
//! link), `connection` (one end of a link, without its socket), `lane` (which link a lane has, what waits for it, and the order
//! in which things are told), `node` (who the peers are), `places` (which threads serve clients' work), `dial` (making links),
//! `outgoing` (frames on their way into a buffer), [`PeerStatus`] (what operators see), [`ToGroups`] (links for the groups of a
//! node), `work` (what travels in the lane for clients' work).

mod connection;
mod dial;
mod groups;
mod lane;
mod links;
mod node;
mod options;
mod outgoing;
mod places;
mod question;
mod receiver;
mod status;
#[cfg(test)]
mod tests;
mod told;
mod work;

pub use groups::ToGroups;
pub use links::{Links, PROTOCOL};
pub use options::{LaneLimits, LinkLimits, LinkOptions, PeerAddress, SILENCE, host_of};
pub use protocol::link::{ClusterId, Lane, Secret};
pub use question::{QUESTION_LIMIT, Reply};
pub use receiver::{Receiver, Sent};
pub use status::{Counts, LaneStatus, LinkStatus, PeerStatus};
pub(crate) use work::Topic;
