//! The queues of this node: their handles, and who holds them.

mod handle;
mod holding;
mod journal;
mod look;
mod paging;
mod registry;
mod status;

pub use handle::Queue;
pub use journal::QueueJournal;
pub use paging::Paging;
pub use registry::Registry;
pub use status::Status;
