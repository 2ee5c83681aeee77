//! Queues through any node, in one thread: clients of several nodes use a queue that is at home on one of them while links break
//! and lose frames, and nodes stop and start again.
//!
//! [`queue`](self::run) has clients of two nodes publish to a queue of a third one and consume from it. [`exchanges`] has
//! clients of three whole brokers publish through a deduplicating and a delayed exchange, each with a home of its own. Both
//! have the same links (`wire`) and the same `ledger`; what exchanges that keep something may do to messages stands in `kept`.

pub mod exchanges;
mod kept;
mod ledger;
mod node;
mod queue;
mod wire;

pub use queue::{Anywhere, run};
