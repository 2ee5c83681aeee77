//! The queues of this node: their handles, and who holds them.

mod handle;
mod holding;
mod journal;
mod look;
mod registry;
mod status;

pub use handle::Queue;
pub use journal::QueueJournal;
pub use registry::Registry;
pub use status::Status;
