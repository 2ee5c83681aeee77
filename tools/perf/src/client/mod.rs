//! A blocking client of the broker: login, set-up, single operations.
//!
//! What never happens here: a message's latency is measured. For that a [`Client`] that has set things up is handed over to
//! the engine, which goes on with its [`Transport`] and waits for nobody.
//!
//! Reading order: [`addresses`] says where to connect; [`connect`] opens the socket and, with [`tls`], secures it;
//! [`login`] brings the connection up; [`Client`] then calls methods; [`operations`] are the calls with names of their own;
//! [`inbox`] is what it reads, [`refusal`] what users are told when the broker says no.

mod addresses;
#[expect(
    clippy::module_inception,
    reason = "the main type of the room has the room's name"
)]
mod client;
mod connect;
mod inbox;
mod login;
mod operations;
mod refusal;
#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;
mod tls;
mod transport;

pub use addresses::{Addresses, wait_for_servers};
pub use client::{Agreed, Client};
pub(crate) use connect::{connect, is_timeout, write_all};
pub use operations::Declared;
pub use transport::Transport;
