//! The stream protocol as one of the gateway's protocols.

use super::connection::StreamConnection;
use super::options::Options;
use super::streams::Source;
use crate::connection::{Connection, FrontEnd, Millis, Name};
use broker::Broker;
use listener::{Protocol, Security};
use std::sync::Arc;

/// What listeners for the stream protocol name.
pub const PROTOCOL: Protocol = Protocol {
    name: "stream",
    plain: "stream",
    secured: "stream/ssl",
};

/// What operators see of connections.
pub const SHOWN: broker::stats::Protocol = broker::stats::Protocol {
    name: PROTOCOL.name,
    label: "stream",
};

/// What all connections share.
pub struct Stream {
    /// The broker.
    pub broker: Arc<Broker>,
    /// How the protocol is spoken.
    pub options: Options,
    /// The streams.
    pub source: Arc<dyn Source>,
}

impl FrontEnd for Stream {
    fn protocol(&self) -> Protocol {
        PROTOCOL
    }

    fn connect(self: Arc<Self>, name: Name, security: Option<Security>, now: Millis) -> Box<dyn Connection> {
        Box::new(StreamConnection::new(self, name, security, now))
    }
}
