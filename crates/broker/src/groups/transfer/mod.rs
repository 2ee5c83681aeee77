//! Contents and bodies for members that lag behind the log, are new, or have lost something.
//!
//! A member that needs them asks, one question at a time, and any member may answer, whoever leads: what a checkpoint
//! says at an index is the same everywhere, and so is a message's body. So either side may vanish at any moment, and
//! answers may be lost, late or doubled. Reading order: `frame` (what is said), `asking` (whom, and how long), `fetch`
//! (the side that asks), `answer` (the side that answers); none of these does any I/O. Then `transfers` and `hosting` (what
//! a host does about them), `next` (the machine that is made of fetched contents), `disk` (what is read and
//! stored), `progress` (what operators see of it).

mod answer;
mod asking;
mod disk;
mod fetch;
mod frame;
mod hosting;
mod next;
mod progress;
mod transfers;

pub(super) use disk::{Written, read_entries};
pub(super) use hosting::part;
pub(super) use next::{Next, without_places};
pub(super) use transfers::{Order, Transfers};

pub use answer::{Answers, Standing, Task};
pub use fetch::{Brought, Ended, Fetch, Lie};
pub use progress::{CopyPhase, CopyProgress};

pub use frame::{Asked, BULK_LIMIT, Bulk, Entry, Head, PIECE_BYTES, Said, Why, read_header};

#[cfg(test)]
mod tests;
