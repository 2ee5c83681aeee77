//! AMQP 0-9-1. [`connection`] and [`channel`] know neither socket nor clock.

mod channel;
mod connection;
mod front_end;
mod options;
mod refusal;

pub(crate) use front_end::Amqp;
pub use front_end::PROTOCOL;
pub use options::{AnonymousLogin, Mechanism, Options};
