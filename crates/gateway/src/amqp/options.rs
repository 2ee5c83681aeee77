//! How AMQP 0-9-1 is spoken.

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

/// The user as whom nobody in particular logs in. Its debug form keeps the password to itself.
#[derive(Clone, PartialEq, Eq)]
pub struct AnonymousLogin {
    /// The name.
    pub user: String,
    /// The user's password; if the user has another one by now, nobody gets in.
    pub password: String,
}

impl Default for AnonymousLogin {
    /// RabbitMQ's: `guest`, who may come from this machine only.
    fn default() -> Self {
        Self {
            user: "guest".into(),
            password: "guest".into(),
        }
    }
}

impl std::fmt::Debug for AnonymousLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnonymousLogin")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
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
