//! What a gateway is started with.

use crate::{amqp, stream};
use listener::{Endpoint, SocketOptions};

/// The listeners and threads for clients, and how each protocol is spoken.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen, and for which protocol.
    pub endpoints: Vec<Endpoint>,
    /// How the system is to treat the sockets.
    pub sockets: SocketOptions,
    /// How many threads serve connections; `None` is as many as there are processors.
    pub threads: Option<usize>,
    /// AMQP 0-9-1.
    pub amqp: amqp::Options,
    /// The stream protocol.
    pub stream: stream::Options,
}

impl Options {
    /// RabbitMQ's defaults for these listeners.
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self {
            endpoints,
            sockets: SocketOptions::default(),
            threads: None,
            amqp: amqp::Options::default(),
            stream: stream::Options::new("localhost", 5552, 5551),
        }
    }
}
