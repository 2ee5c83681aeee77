//! How the stream protocol is spoken.

use crate::connection::Millis;
use crate::login::AnonymousLogin;
use broker::StreamAddresses;
use listener::LoginFrom;
use protocol::amqp::handshake::Mechanism;
use protocol::stream::frame::FRAME_MAX;

/// How the stream protocol is spoken. The names in brackets are RabbitMQ's keys.
#[derive(Clone, Debug)]
pub struct Options {
    /// The largest frame offered to clients, in bytes; 0 is no limit (`stream.frame_max`).
    pub frame_max: u32,
    /// The heartbeat interval offered to clients, in seconds; 0 is off (`stream.heartbeat`).
    pub heartbeat_s: u32,
    /// So many messages of a connection may be unconfirmed before nothing more is read from it (`stream.initial_credits`).
    pub initial_credits: u32,
    /// So many of these must be left before it is read from again (`stream.credits_required_for_unblocking`).
    pub credits_required_for_unblocking: u32,
    /// Where clients reach this node, if not at its own name (`stream.advertised_host`, `stream.advertised_port`).
    pub advertised: Advertised,
    /// The same for those who come by TLS (`stream.advertised_tls_host`, `stream.advertised_tls_port`).
    pub advertised_tls: Advertised,
    /// How long a client may take to answer what it is asked, in milliseconds (RabbitMQ's `request_timeout`).
    pub request_timeout_ms: Millis,
    /// The ways to log in, in the order in which they are offered.
    pub mechanisms: Vec<Mechanism>,
    /// Who logs in with [`Mechanism::Anonymous`], which is not offered without.
    pub anonymous: Option<AnonymousLogin>,
    /// Which name of a client's certificate is the user's, with [`Mechanism::External`].
    pub certificate_login: LoginFrom,
    /// The product name announced to clients.
    pub product: String,
    /// The version announced to clients, RabbitMQ's: by it they decide what they may ask for.
    pub version: String,
    /// Our own version, announced as `leveret_version`.
    pub leveret_version: String,
}

/// Where clients reach a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// A name or an address.
    pub host: String,
    /// A port.
    pub port: u16,
}

impl Options {
    /// Where clients reach this node, for other nodes.
    pub fn addresses(&self) -> StreamAddresses {
        let at = |it: &Advertised| (it.host.as_str().into(), it.port);
        StreamAddresses {
            plain: at(&self.advertised),
            tls: at(&self.advertised_tls),
        }
    }

    /// RabbitMQ's, for a node that is reached at this host and these ports.
    pub fn new(host: &str, port: u16, tls_port: u16) -> Self {
        let at = |port| Advertised {
            host: host.into(),
            port,
        };
        Self {
            frame_max: FRAME_MAX,
            heartbeat_s: 60,
            initial_credits: 50_000,
            credits_required_for_unblocking: 12_500,
            advertised: at(port),
            advertised_tls: at(tls_port),
            request_timeout_ms: 60_000,
            mechanisms: vec![Mechanism::Plain, Mechanism::AmqPlain, Mechanism::Anonymous],
            anonymous: Some(AnonymousLogin::default()),
            certificate_login: LoginFrom::default(),
            product: "RabbitMQ".into(),
            version: "4.2.0".into(),
            leveret_version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}
