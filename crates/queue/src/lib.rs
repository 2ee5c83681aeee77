//! The machines that hold messages: [`fifo`], the classic queue, and [`stream`]; and [`seen`], which knows what has passed an
//! exchange that lets nothing pass twice. Beside them [`store`], which knows where the bytes of messages are.
//!
//! This crate has no I/O, no clock, no randomness, no thread, no async. It never sees a frame, a socket, a file or
//! a client: what the host ties to requests ([`Ends`]) is carried through and never looked into.
//!
//! Reading order: [`request`] and [`effect`], what is asked of a queue of whatever kind and what it orders;
//! [`QueueMachine`], what its host calls; [`fifo::record`], then
//! `contents` (what is known of messages; journaled) and `dispatch` (who gets them; never journaled), and `fifo` itself; then
//! [`store::grammar`] and `store`; [`stream`] stands by itself, but for `subscriber`: who takes messages of a stream.

pub mod effect;
pub mod encoding;
mod ends;
pub mod fifo;
mod glance;
mod losses;
mod machine;
#[cfg(any(test, feature = "second-kind"))]
pub mod newest;
pub mod request;
pub mod seen;
pub mod seq_set;
mod status;
pub mod store;
pub mod stream;
mod subscriber;

pub use effect::{Answer, Delivery, Effect};
pub use ends::{ConsumerSettings, Ends};
pub use glance::{Glance, Glimpse, Standing};
pub use losses::{DropReason, LOSSES, Loss, Losses};
pub use machine::{HandOver, Inspect, OwnConsumer, QueueMachine};
pub use request::{Disposal, Held, NodeConsumer, Origin, Request};
pub use status::Status;
pub use subscriber::Subscriber;
