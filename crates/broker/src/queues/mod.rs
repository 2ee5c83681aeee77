//! The queues that the catalog knows: their handles, those that are on this node, and who holds them.

pub mod alone;
mod events;
mod handle;
mod handover;
mod holding;
mod host;
mod journal;
mod kinds;
mod local;
mod look;
mod paging;
mod registry;
mod remote;
mod replay;
mod replica;
mod status;
pub mod streams;
mod throttle;
mod unused;
mod work;

pub use events::{DeadLetters, OtherCopies, QueueEvents};
pub use handle::{Handle, Shared};
pub use handover::{Heir, taken_back};
pub use host::QueueHost;
pub use journal::QueueJournal;
pub use kinds::{JournalOf, QueueType, queue_type};
pub use local::{OwnTerm, Queue};
pub use paging::Paging;
pub use registry::Registry;
pub use remote::{HostAndPort, Peers, Remote, Request, StreamAddresses};
pub use replay::{Missing, Replaying};
pub use replica::{Follower, OfQueue, Replica, StartingMember, group_of, groups_of, queue_of};
pub use status::Status;
pub use unused::Unused;
pub use work::{Alone, Envelope, Existing, SharedQueue, Work, WorkLinks};
