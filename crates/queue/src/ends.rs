//! What requests carry that is none of a machine's business, and what consumers ask for.

use model::Ranges;

/// What the host ties to requests and finds again in effects. The machine carries these and never looks into
/// them; tests use plain numbers.
pub trait Ends {
    /// Handed in with published messages, handed back when the queue has taken responsibility for them.
    type Receipt;
    /// Handed in with a question, handed back with its answer.
    type Reply;
    /// Where a consumer's deliveries go. Cloned once per delivered batch.
    type Outlet: Clone;

    /// Splits a receipt for `count` messages: takes out the part for those at `positions` (from 0).
    fn split(receipt: &mut Self::Receipt, positions: &Ranges, count: usize) -> Self::Receipt;
}

/// What a consumer asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerSettings {
    /// Messages count as settled when delivered.
    pub no_ack: bool,
    /// Nobody else may consume.
    pub exclusive: bool,
    /// How many unacknowledged messages it may hold; 0 is no limit. Ignored with `no_ack`.
    pub prefetch: u32,
    /// `x-priority`: those of a higher one are served first, as long as they may get messages.
    pub priority: i64,
    /// How many bytes may be on their way to its socket: the window that `Request::Flow` replenishes. Once used up it must
    /// be open again by a quarter before anything is delivered. With 0 nothing ever is.
    pub window: u32,
    /// It begins as after `Request::Pause`.
    pub paused: bool,
}
