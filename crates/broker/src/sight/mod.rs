//! What operators see of clients: connections, channels, consumers, and what they did.
//!
//! Whoever does something counts it, beside what it does: each number has one writer, a connection's thread, and is read by
//! anybody at any time without asking that thread. Nothing here decides anything.

mod channel;
mod connection;
mod consumer;
mod count;
mod happenings;
mod registry;
mod secured;

pub use channel::{Channel, ChannelSeat, MessageCounts};
pub use connection::{Card, Connection, State};
pub use consumer::{Consumer, ConsumerCard};
pub use count::Count;
pub(crate) use registry::Registry;
pub use secured::{PeerCertificate, Secured};
