//! What a gateway is started with, and why it may not start.

pub use protocol::amqp::handshake::Mechanism;
use std::net::SocketAddr;

/// How the doors for messages are set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen for AMQP; port 0 lets the system choose.
    pub listeners: Vec<SocketAddr>,
    /// How many connections the system may hold ready before they are accepted (RabbitMQ: 128).
    pub backlog: u32,
    /// Small writes leave at once (RabbitMQ: on).
    pub nodelay: bool,
    /// Bytes that the system may hold for a client that does not read; `None` leaves it to the system.
    pub send_buffer: Option<u32>,
    /// Bytes that the system may hold of what a client has sent; `None` leaves it to the system.
    pub receive_buffer: Option<u32>,
    /// The heartbeat interval offered to clients, in seconds; 0 is off (RabbitMQ: 60).
    pub heartbeat: u16,
    /// The ways to log in, in the order in which they are offered.
    pub mechanisms: Vec<Mechanism>,
    /// Who logs in with [`Mechanism::Anonymous`], which is not offered without.
    pub anonymous: Option<AnonymousLogin>,
    /// How many threads serve connections; `None` is as many as there are processors.
    pub threads: Option<usize>,
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

impl Options {
    /// RabbitMQ's defaults for these addresses.
    pub fn new(listeners: Vec<SocketAddr>) -> Self {
        Self {
            listeners,
            backlog: 128,
            nodelay: true,
            send_buffer: None,
            receive_buffer: None,
            heartbeat: 60,
            mechanisms: vec![Mechanism::Plain, Mechanism::AmqPlain, Mechanism::Anonymous],
            anonymous: Some(AnonymousLogin::default()),
            threads: None,
            product: "RabbitMQ".into(),
            version: "4.2.0".into(),
            leveret_version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// Why a gateway cannot start. The text tells an operator what to do.
#[derive(Debug)]
pub enum StartError {
    /// This address cannot be listened on.
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// A thread or its runtime cannot be started.
    Thread(std::io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen { address, error } if error.kind() == std::io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "cannot listen on {address}: another process (perhaps another broker) listens there already"
                )
            }
            Self::Listen { address, error } => write!(f, "cannot listen on {address}: {error}"),
            Self::Thread(error) => write!(f, "a thread for connections cannot be started: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
