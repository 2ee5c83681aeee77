//! AMQP 0-9-1 as one of the gateway's protocols.

use super::connection::AmqpConnection;
use super::options::Options;
use crate::connection::{Connection, FrontEnd, Millis, Name};
use crate::incomplete::Incomplete;
use broker::Broker;
use listener::{Protocol, Security};
use std::sync::Arc;

/// What listeners for AMQP 0-9-1 name.
pub const PROTOCOL: Protocol = Protocol {
    name: "AMQP 0-9-1",
    plain: "amqp",
    secured: "amqp/ssl",
};

/// What operators see of connections.
pub const SHOWN: broker::stats::Protocol = broker::stats::Protocol {
    name: PROTOCOL.name,
    label: "amqp091",
};

/// What all connections share.
pub struct Amqp {
    /// The broker.
    pub broker: Arc<Broker>,
    /// How the protocol is spoken.
    pub options: Options,
    /// What connections hold of messages that are still coming in.
    pub incomplete: Arc<Incomplete>,
}

impl Amqp {
    /// Without any connection.
    pub fn new(broker: Arc<Broker>, options: Options, incomplete: Arc<Incomplete>) -> Self {
        Self {
            broker,
            options,
            incomplete,
        }
    }
}

impl FrontEnd for Amqp {
    fn protocol(&self) -> Protocol {
        PROTOCOL
    }

    fn connect(self: Arc<Self>, name: Name, security: Option<Security>, now: Millis) -> Box<dyn Connection> {
        Box::new(AmqpConnection::new(self, name, security, now))
    }
}
