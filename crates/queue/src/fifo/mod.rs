//! The classic queue as a machine: first in, first out.
//!
//! [`Classic`] is the queue as a whole: what is asked of it, its limits, its consumers and its end are decided here,
//! once, in files named after them. Below it is one lane, or several if the queue sorts its messages (`lanes`). A lane
//! keeps its messages' order: its store has the messages that exist, its `contents` what else the journal can rebuild,
//! and its `dispatch` knows which of them are ready, and is forgotten at a restart. In a file the queue's part stands
//! first and the lane's below it.
//!
//! A durable queue's persistent messages are *journaled*: whatever befalls them is recorded. All others live in the same
//! store and leave no record. In a queue whose journal several nodes keep all are journaled; what it knows of nodes
//! that send to it (`senders`, `recognise`) and of what their consumers hold (`reattach`) is in decision 35.

mod checkpoint;
mod classic;
mod codec;
mod consumers;
mod contents;
mod deliver;
mod discard;
mod dispatch;
mod end;
mod expire;
mod handover;
mod holders;
mod kind;
mod lane;
mod lanes;
mod look;
mod once;
mod overflow;
mod publish;
mod reattach;
mod recognise;
pub mod record;
mod retry;
mod senders;
mod settle;
mod storing;
mod take;

pub use crate::effect::{Answer, Delivery, Effect};
pub use crate::glance::{Glance, Glimpse, Standing};
pub use crate::losses::{DropReason, LOSSES, Loss, Losses};
pub use crate::request::{Disposal, Held, NodeConsumer, Origin, Request};
pub use crate::status::Status;
pub use crate::{ConsumerSettings, Ends};
pub use checkpoint::{Checkpoint, LocalRecord};
pub use classic::Classic;
pub use holders::Holders;
pub use lanes::LANE_SHIFT;
pub use model::{DeadLetterTo, DeliveryLimit, Overflow, QueueSettings, Sorting};
pub use record::{Expiry, Record, Sent, Snapshot};
pub use senders::SenderMark;

use lane::Lane;
use model::Outcome;

/// The outcome of the classic queue.
pub type FifoOutcome<E> = Outcome<Record, Effect<E>>;
