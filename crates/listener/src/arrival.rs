//! From an accepted connection to a socket that can be used.

use crate::certificate::Certificate;
use crate::ciphers;
use crate::listener::unmapped;
use crate::proxy::{self, Origin};
use crate::secured::Secured;
use crate::stream::{Parked, Stream};
use crate::{Proxies, Socket, Tls};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// What newcomers of one listener go through.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) proxies: Option<Arc<Proxies>>,
}

/// A connection that was just accepted: one of this thread's runtime, or ([`Parked`]) one on its way to another.
#[derive(Debug)]
pub struct Arrival<S = Stream> {
    stream: S,
    peer: SocketAddr,
    /// Where it came to.
    local: SocketAddr,
    entrance: Arc<Entrance>,
}

/// Somebody who came in, on this thread or ([`Parked`]) on the way to another.
#[derive(Debug)]
pub struct Guest<S = Stream> {
    /// To talk with them.
    pub socket: Socket<S>,
    /// Where they come from.
    pub peer: SocketAddr,
    /// Where they came to.
    pub local: SocketAddr,
    /// How the talk is secured, if it is.
    pub security: Option<Security>,
}

/// What a TLS handshake agreed on, in RabbitMQ's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// `tlsv1.2`, `tlsv1.3`.
    pub protocol: &'static str,
    /// The cipher suite.
    pub cipher: ciphers::Parts,
    /// The certificate that the client proved to own, verified; `None` without one.
    pub certificate: Option<Certificate>,
    /// The name that the client asked for (SNI).
    pub server_name: Option<String>,
}

impl Arrival {
    pub(crate) fn new(stream: Stream, peer: SocketAddr, local: SocketAddr, entrance: Arc<Entrance>) -> Self {
        Self {
            stream,
            peer,
            local,
            entrance,
        }
    }

    /// The same, free of its runtime.
    ///
    /// # Errors
    /// The system does not let go of the socket.
    pub fn into_std(self) -> io::Result<Arrival<Parked>> {
        Ok(Arrival {
            stream: self.stream.into_std()?,
            peer: self.peer,
            local: self.local,
            entrance: self.entrance,
        })
    }

    /// Takes the newcomer through whatever the door asks.
    ///
    /// # Errors
    /// The connection broke, the TLS handshake failed, or it took too long; the text is for the log.
    pub async fn enter(self) -> io::Result<Guest> {
        let own = (self.peer, self.local);
        let (peer, local) = match (&self.stream, &self.entrance.proxies) {
            (Stream::Tcp(stream), Some(proxies)) if proxies.trust(self.peer.ip()) => {
                introduced(stream, own).await?
            }
            _ => own,
        };
        let (socket, security) = match &self.entrance.tls {
            None => (Socket::Plain(self.stream), None),
            Some(tls) => {
                let (secured, security) = handshake(self.stream, tls).await?;
                (Socket::Secured(Box::new(secured)), Some(security))
            }
        };
        Ok(Guest {
            socket,
            peer,
            local,
            security,
        })
    }
}

impl Arrival<Parked> {
    /// The same, in this thread's runtime.
    ///
    /// # Errors
    /// The runtime does not take the socket.
    pub fn from_std(self) -> io::Result<Arrival> {
        Ok(Arrival {
            stream: self.stream.from_std()?,
            peer: self.peer,
            local: self.local,
            entrance: self.entrance,
        })
    }
}

impl Guest {
    /// The same, free of its runtime.
    ///
    /// # Errors
    /// The system does not let go of the socket.
    pub fn into_std(self) -> io::Result<Guest<Parked>> {
        Ok(Guest {
            socket: self.socket.into_std()?,
            peer: self.peer,
            local: self.local,
            security: self.security,
        })
    }
}

impl Guest<Parked> {
    /// The same, in this thread's runtime.
    ///
    /// # Errors
    /// The runtime does not take the socket.
    pub fn from_std(self) -> io::Result<Guest> {
        Ok(Guest {
            socket: self.socket.from_std()?,
            peer: self.peer,
            local: self.local,
            security: self.security,
        })
    }
}

impl<S> Arrival<S> {
    /// Where it comes from.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }
}

/// Both ends of the connection that a load balancer passes on.
async fn introduced(
    stream: &tokio::net::TcpStream,
    own: (SocketAddr, SocketAddr),
) -> io::Result<(SocketAddr, SocketAddr)> {
    let loopback = |address: SocketAddr| unmapped(address).ip().is_loopback();
    match proxy::read(stream).await? {
        Origin::Itself => Ok(own),
        // Some users may come from this machine only; nobody elsewhere can say that they do.
        Origin::Client { source, .. } if loopback(source) && !loopback(own.0) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "PROXY protocol: {} says that its client is on this machine",
                own.0
            ),
        )),
        Origin::Client { source, destination } => Ok((unmapped(source), unmapped(destination))),
    }
}

async fn handshake(stream: Stream, tls: &Tls) -> io::Result<(Secured, Security)> {
    let patience = tls.options().handshake_timeout;
    let shaking = Secured::accept(stream, tls.current());
    let secured = match tokio::time::timeout(patience, shaking).await {
        Ok(shaken) => {
            shaken.map_err(|error| io::Error::new(error.kind(), format!("TLS handshake failed: {error}")))?
        }
        Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "TLS handshake timeout")),
    };
    let security = secured.security();
    Ok((secured, security))
}
