//! What the HTTP API is started with, and why it may not start.

use std::net::SocketAddr;
use std::path::PathBuf;

/// How the door for people is set up, and what it tells about its node.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen for HTTP, if at all; port 0 lets the system choose.
    pub address: Option<SocketAddr>,
    /// The node's admin socket, if there is to be one.
    pub admin_socket: Option<PathBuf>,
    /// The largest body of a request, in bytes (RabbitMQ: 10,485,760).
    pub body_limit: usize,
    /// The node's name, as `leveret@host`.
    pub node: String,
    /// The version of RabbitMQ whose behaviour clients may expect.
    pub rabbitmq_version: String,
    /// The other doors that are open.
    pub listeners: Vec<Listener>,
    /// The configuration files that were read.
    pub config_files: Vec<PathBuf>,
    /// Where the data lies.
    pub data_dir: PathBuf,
    /// Where the log goes.
    pub log_files: Vec<String>,
    /// How `/api/overview` should answer when it is asked for nothing special: without counts of messages.
    pub disable_stats: bool,
    /// Lists of queues have their counts even so.
    pub enable_queue_totals: bool,
}

/// One open door, as health checks name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// `amqp`, `http`.
    pub protocol: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Options {
    /// RabbitMQ's defaults for this address.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address: Some(address),
            admin_socket: None,
            body_limit: 10_485_760,
            node: "leveret@localhost".into(),
            rabbitmq_version: "4.2.0".into(),
            listeners: Vec::new(),
            config_files: Vec::new(),
            data_dir: PathBuf::new(),
            log_files: Vec::new(),
            disable_stats: false,
            enable_queue_totals: false,
        }
    }
}

/// Why the HTTP API cannot start. The text tells an operator what to do.
#[derive(Debug)]
pub enum StartError {
    /// This address cannot be listened on.
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// The admin socket cannot be made.
    AdminSocket {
        /// Where it was to be.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A thread or its runtime cannot be started.
    Thread(std::io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen { address, error } if error.kind() == std::io::ErrorKind::AddrInUse => write!(
                f,
                "the HTTP API cannot listen on {address}: another process listens there already; set management.tcp.port, or \
                 management.listener = none"
            ),
            Self::Listen { address, error } => write!(f, "the HTTP API cannot listen on {address}: {error}"),
            Self::AdminSocket { path, error } => {
                write!(f, "the admin socket {} cannot be made: {error}", path.display())
            }
            Self::Thread(error) => write!(f, "the HTTP API's threads cannot be started: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
