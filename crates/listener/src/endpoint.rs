//! Where to listen, what is spoken there, and what a client goes through before it speaks.

use crate::{Proxies, Tls};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// What is spoken behind a listener. The crate that speaks it says what it is called; nothing here depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Its name for people, such as `AMQP 0-9-1`.
    pub name: &'static str,
    /// RabbitMQ's name for a listener of it without TLS, such as `amqp`.
    pub plain: &'static str,
    /// RabbitMQ's name for a listener of it with TLS, such as `amqp/ssl`.
    pub secured: &'static str,
}

/// What a listener is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address of the network; port 0 lets the system choose.
    Network(SocketAddr),
    /// A socket in the file system.
    Local {
        /// Its name.
        path: PathBuf,
        /// Who may open it, as the bits of `chmod`.
        mode: u32,
    },
}

impl Address {
    /// The address and port, if it is one of the network.
    pub fn network(&self) -> Option<SocketAddr> {
        match self {
            Self::Network(address) => Some(*address),
            Self::Local { .. } => None,
        }
    }

    /// The port; 0 without one, as RabbitMQ shows sockets in the file system.
    pub fn port(&self) -> u16 {
        self.network().map_or(0, |address| address.port())
    }

    /// The address without its port, or the path.
    pub fn host(&self) -> String {
        match self {
            Self::Network(address) => address.ip().to_string(),
            Self::Local { path, .. } => path.display().to_string(),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Network(address) => address.fmt(f),
            Self::Local { path, .. } => path.display().fmt(f),
        }
    }
}

/// What one listener is to be, or is: once it is bound, a port that the system chose is filled in.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// What is spoken there.
    pub protocol: Protocol,
    /// Where it is.
    pub address: Address,
    /// TLS, if it is spoken there.
    pub tls: Option<Arc<Tls>>,
    /// The load balancers that say first for whom they connect, if there are any.
    pub proxies: Option<Arc<Proxies>>,
}

impl Endpoint {
    /// One without TLS.
    pub fn plain(protocol: Protocol, address: SocketAddr) -> Self {
        Self::at(protocol, Address::Network(address), None)
    }

    /// One with TLS.
    pub fn secured(protocol: Protocol, address: SocketAddr, tls: Arc<Tls>) -> Self {
        Self::at(protocol, Address::Network(address), Some(tls))
    }

    /// A socket in the file system, which `mode` opens to its owner, its group or all, as `chmod` does.
    pub fn local(protocol: Protocol, path: PathBuf, mode: u32) -> Self {
        Self::at(protocol, Address::Local { path, mode }, None)
    }

    fn at(protocol: Protocol, address: Address, tls: Option<Arc<Tls>>) -> Self {
        Self {
            protocol,
            address,
            tls,
            proxies: None,
        }
    }

    /// True if TLS is spoken there.
    pub fn is_secured(&self) -> bool {
        self.tls.is_some()
    }

    /// RabbitMQ's name of the protocol in lists of listeners, with or without TLS.
    pub fn listed_protocol(&self) -> &'static str {
        match self.is_secured() {
            true => self.protocol.secured,
            false => self.protocol.plain,
        }
    }
}

/// A socket that takes IPv4 and IPv6 has IPv4 addresses in the form `::ffff:192.0.2.1`. They become plain IPv4 here,
/// before anybody sees them, so that names, logs and statistics show them as RabbitMQ does.
pub(crate) fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        // Other addresses keep their scope.
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}
