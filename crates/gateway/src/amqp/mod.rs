//! AMQP 0-9-1. [`connection`] and [`channel`] know neither socket nor clock; [`serve`] gives them both.

mod channel;
pub mod connection;
mod refusal;
pub mod serve;
