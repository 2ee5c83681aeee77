//! Groups: journals that several nodes agree on, by Raft, over each node's one log.
//!
//! A *group* is a replicated journal. A node has one *member* of it; one of the members leads. What the leader is given
//! is *committed* once a majority has it on its synced disk, and comes out on every member in the same order.
//!
//! What never happens here: no socket, no file, no clock, no thread, no random number. A host brings what peers said,
//! which turns its log has synced, and ticks; it carries away what belongs into the log, what peers are to be told, and
//! what is committed. So a simulator turns the same code. Nothing is known of queues, and the library of the algorithm
//! is named nowhere else.
//!
//! What a crash costs: nothing that was answered. A vote, a term and an entry are answered only when the turn that
//! wrote them is synced; only a leader's entries go to its followers before, and its own copy counts when it is synced.
//!
//! A group that has nothing to do sleeps: no message and no timer. Peers are watched node by node; suspecting one wakes
//! what it led.
//!
//! To read: `identity`, `membership`, `record`, `tail` (what of a log is in memory), `recovery`, `frame` (what nodes
//! say), `group` (one member), `node` (all of a node's members).

mod encoding;
mod frame;
mod group;
mod identity;
mod membership;
#[cfg(any(test, feature = "mutants"))]
pub mod mutant;
mod node;
mod record;
mod recovery;
mod settings;
#[cfg(test)]
mod simulation;
mod tail;
pub mod trace;
#[cfg(test)]
mod trial;

pub use encoding::Malformed;
pub use frame::FRAME_LIMIT;
pub use group::{Committed, Event, Lie, Refused};
pub use identity::{GroupId, MemberId, NodeId};
pub use membership::{Membership, Step};
pub use node::{Disk, Groups, Rejected, Status, Turn};
pub use record::{Mark, Record, entry_of};
pub use recovery::{Damage, Recovered};
pub use settings::Settings;
