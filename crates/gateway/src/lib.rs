//! The doors for messages: listeners, connections, channels.
//!
//! This room translates between bytes and the hall. It holds no message longer than it takes to write it, decides nothing
//! about queues, exchanges or users, never touches queue, catalog, storage or cluster, and never waits for the disk. What is
//! under `amqp/connection` and `amqp/channel` knows no socket, no clock and no async; no task is spawned outside
//! [`threads`](self).
//!
//! Reading order: [`Gateway`] (start and stop), `threads`, `balance`, `load` (which thread serves whom), `amqp/serve` (the loop around one
//! socket), `amqp/connection` (bytes in, bytes out), `amqp/channel` (methods), `incomplete` (what begun messages take), `pool` (whose memory they use meanwhile).

mod amqp;
mod balance;
mod connections;
mod gateway;
mod incomplete;
mod load;
mod options;
mod pool;
mod threads;

pub use gateway::Gateway;
pub use listener::{Door, Opened, StartError};
pub use options::{AnonymousLogin, Mechanism, Options};
pub use threads::SideDoor;
