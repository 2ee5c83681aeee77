//! The classic queue as a machine: first in, first out.

pub mod effect;
pub mod record;
pub mod request;

pub use effect::{Answer, Delivery, Effect, Piece, Source};
pub use record::{DropReason, Record, Snapshot, Stored};
pub use request::{ConsumerSettings, Disposal, QueueSettings, Request};

/// What the host ties to requests and finds again in effects. The machine carries these and never looks into
/// them; tests use plain numbers.
pub trait Ends {
    /// Handed in with published messages, handed back when the queue has taken responsibility for them.
    type Receipt;
    /// Handed in with a question, handed back with its answer.
    type Reply;
    /// Where a consumer's deliveries go. Cloned once per delivered batch.
    type Outlet: Clone;
}

/// Where an entry lies in the queue's own segments (the storage room's words, carried as plain numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the segment file.
    pub segment: u32,
    /// Byte offset in it.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}
