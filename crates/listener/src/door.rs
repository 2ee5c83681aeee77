//! Where to listen, and what stands at a door.

use crate::{Proxies, Tls};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a door is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
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

impl Place {
    /// The address, if it is one of the network.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Network(address) => Some(*address),
            Self::Local { .. } => None,
        }
    }

    /// The port; 0 without one, as RabbitMQ shows sockets in the file system.
    pub fn port(&self) -> u16 {
        self.address().map_or(0, |address| address.port())
    }

    /// The address without its port, or the path.
    pub fn host(&self) -> String {
        match self {
            Self::Network(address) => address.ip().to_string(),
            Self::Local { path, .. } => path.display().to_string(),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Network(address) => address.fmt(f),
            Self::Local { path, .. } => path.display().fmt(f),
        }
    }
}

/// Where to listen, and what a newcomer goes through.
#[derive(Clone, Debug)]
pub struct Door {
    /// Where it is.
    pub place: Place,
    /// TLS, if it is spoken there.
    pub tls: Option<Arc<Tls>>,
    /// Who has to say first for whom it connects, if anybody has.
    pub proxies: Option<Arc<Proxies>>,
}

impl Door {
    /// A door without TLS.
    pub fn plain(address: SocketAddr) -> Self {
        Self::at(Place::Network(address), None)
    }

    /// A door behind which TLS is spoken.
    pub fn secured(address: SocketAddr, tls: Arc<Tls>) -> Self {
        Self::at(Place::Network(address), Some(tls))
    }

    /// A socket in the file system that those may open whom `mode` lets.
    pub fn local(path: PathBuf, mode: u32) -> Self {
        Self::at(Place::Local { path, mode }, None)
    }

    fn at(place: Place, tls: Option<Arc<Tls>>) -> Self {
        Self {
            place,
            tls,
            proxies: None,
        }
    }
}

/// A door that is open.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Where it is; a port that the system chose is filled in.
    pub place: Place,
    /// TLS, if it is spoken there.
    pub tls: Option<Arc<Tls>>,
}

impl Opened {
    /// True if TLS is spoken there.
    pub fn is_secured(&self) -> bool {
        self.tls.is_some()
    }
}
