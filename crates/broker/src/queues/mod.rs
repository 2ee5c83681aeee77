//! The queues that the catalog knows: their handles, those that are on this node, and who holds them.

mod events;
mod handle;
mod holding;
mod journal;
mod local;
mod look;
mod paging;
mod registry;
mod remote;
mod status;
mod throttle;

pub use events::{DeadLetters, QueueEvents};
pub use handle::Handle;
pub use journal::QueueJournal;
pub use local::Queue;
pub use look::Spot;
pub use paging::Paging;
pub use registry::Registry;
pub use remote::{Peers, Remote, Request};
pub use status::Status;
