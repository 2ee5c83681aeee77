//! What serves clients that publish and consume: listeners, connections, and the protocols that are spoken on them.
//!
//! This crate translates between bytes and the broker. It holds no message longer than it takes to write it, decides nothing
//! about queues, exchanges or users, never touches queue, catalog, storage or cluster, and never waits for the disk. A
//! protocol is one folder, [`amqp`], which knows no socket, no clock and no async; what is beside it knows no protocol.
//! No task is spawned outside of `threads`.
//!
//! Reading order: [`Gateway`] (start and stop), `threads`, `balance`, `load` (which thread serves which connection),
//! `connection` (what the shell asks of a protocol), `serve` (the loop around one socket), `amqp/connection` (bytes in, bytes
//! out), `amqp/channel` (methods), `incomplete` (the memory of messages that are still coming in), `pool` and `output` (buffers
//! for reading and writing). Beside clients' connections there are those with other nodes, [`link`], for a node that is one of
//! several, [`cluster`].

mod accepted;
pub mod amqp;
mod balance;
pub mod cluster;
mod connection;
mod connections;
mod gateway;
mod heartbeat;
mod incomplete;
pub mod link;
mod load;
mod login;
mod options;
mod output;
mod pool;
#[cfg(test)]
mod second_protocol;
mod serve;
pub mod stream;
mod threads;

pub use gateway::{Gateway, PROTOCOLS};
pub use listener::{Endpoint, StartError};
pub use options::Options;
pub use threads::Acceptor;
