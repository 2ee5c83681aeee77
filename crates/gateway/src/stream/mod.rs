//! RabbitMQ's stream protocol. [`connection`] knows neither socket nor clock, and nothing of how streams are kept: that is behind
//! the traits of [`streams`].

mod catalog_steps;
mod connection;
mod front_end;
mod inbox;
#[cfg(test)]
mod memory;
mod node;
mod options;
mod refusal;
#[cfg(test)]
mod served;
#[cfg(test)]
mod stories;
mod streams;

pub use front_end::{PROTOCOL, SHOWN, Stream};
pub use node::NodeStreams;
pub use options::{Advertised, Options};
