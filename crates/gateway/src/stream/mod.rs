//! RabbitMQ's stream protocol. [`connection`] knows neither socket nor clock, and nothing of how streams are kept: that is behind
//! the traits of [`streams`].

mod connection;
mod front_end;
mod inbox;
#[cfg(test)]
mod memory;
mod options;
mod refusal;
#[cfg(test)]
mod served;
#[cfg(test)]
mod stories;
mod streams;

use front_end::PROTOCOL;
