//! How AMQP 0-9-1 is spoken.

pub use crate::login::AnonymousLogin;
use listener::LoginFrom;
pub use protocol::amqp::handshake::Mechanism;

/// How AMQP 0-9-1 is spoken.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which name of a client's certificate is the user's, with [`Mechanism::External`].
    pub certificate_login: LoginFrom,
    /// The heartbeat interval offered to clients, in seconds; 0 is off (RabbitMQ: 60).
    pub heartbeat: u16,
    /// The ways to log in, in the order in which they are offered.
    pub mechanisms: Vec<Mechanism>,
    /// Who logs in with [`Mechanism::Anonymous`], which is not offered without.
    pub anonymous: Option<AnonymousLogin>,
    /// The product name announced to clients. Several client libraries do without features unless it is `RabbitMQ`.
    pub product: String,
    /// The version announced to clients, RabbitMQ's whose behaviour they may expect. At 4.3 PerfTest begins to turn
    /// transient queues into durable ones.
    pub version: String,
    /// Our own version, announced as `leveret_version`.
    pub leveret_version: String,
}

impl Default for Options {
    /// RabbitMQ's.
    fn default() -> Self {
        Self {
            certificate_login: LoginFrom::default(),
            heartbeat: 60,
            mechanisms: vec![Mechanism::Plain, Mechanism::AmqPlain, Mechanism::Anonymous],
            anonymous: Some(AnonymousLogin::default()),
            product: "RabbitMQ".into(),
            version: "4.2.0".into(),
            leveret_version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}
