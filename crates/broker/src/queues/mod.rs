//! The queues of this node: their handles, and who holds them.

mod handle;
mod holding;
mod journal;
mod look;
mod registry;

pub use handle::{Queue, Status};
pub use journal::QueueJournal;
pub use registry::Registry;
