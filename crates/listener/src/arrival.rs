//! From an accepted connection to a socket that can be used.

use crate::endpoint::unmapped;
use crate::proxy::{self, Origin};
use crate::secured::{Secured, Security};
use crate::stream::{Parked, Stream};
use crate::{Endpoint, Protocol, Socket, Tls};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A connection that was just accepted: one of this thread's runtime, or ([`Parked`]) one on its way to another.
#[derive(Debug)]
pub struct Arrival<S = Stream> {
    stream: S,
    peer: SocketAddr,
    /// Where it came to.
    local: SocketAddr,
    /// Of the listener.
    endpoint: Arc<Endpoint>,
}

/// A client that can be spoken with: on this thread or ([`Parked`]) on the way to another.
#[derive(Debug)]
pub struct ClientConnection<S = Stream> {
    /// What it is to be spoken with.
    pub protocol: Protocol,
    /// Its socket.
    pub socket: Socket<S>,
    /// Where the client is.
    pub peer: SocketAddr,
    /// The address that it connected to.
    pub local: SocketAddr,
    /// How TLS secures the connection, if it does.
    pub security: Option<Security>,
}

impl Arrival {
    pub(crate) fn new(stream: Stream, peer: SocketAddr, local: SocketAddr, endpoint: Arc<Endpoint>) -> Self {
        Self {
            stream,
            peer,
            local,
            endpoint,
        }
    }

    /// The same, free of its runtime.
    ///
    /// # Errors
    /// The socket cannot be taken out of its runtime.
    pub fn into_std(self) -> io::Result<Arrival<Parked>> {
        Ok(Arrival {
            stream: self.stream.into_std()?,
            peer: self.peer,
            local: self.local,
            endpoint: self.endpoint,
        })
    }

    /// Takes the connection through what the listener asks for: the PROXY protocol, TLS.
    ///
    /// # Errors
    /// The connection broke, the TLS handshake failed, or it took too long; the text is for the log.
    pub async fn enter(self) -> io::Result<ClientConnection> {
        let own = (self.peer, self.local);
        let (peer, local) = match (&self.stream, &self.endpoint.proxies) {
            (Stream::Tcp(stream), Some(proxies)) if proxies.trust(self.peer.ip()) => {
                introduced(stream, own).await?
            }
            _ => own,
        };
        let (socket, security) = match &self.endpoint.tls {
            None => (Socket::Plain(self.stream), None),
            Some(tls) => {
                let (secured, security) = handshake(self.stream, tls).await?;
                (Socket::Secured(Box::new(secured)), Some(security))
            }
        };
        Ok(ClientConnection {
            protocol: self.endpoint.protocol,
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
            endpoint: self.endpoint,
        })
    }
}

impl ClientConnection {
    /// The same, free of its runtime.
    ///
    /// # Errors
    /// The socket cannot be taken out of its runtime.
    pub fn into_std(self) -> io::Result<ClientConnection<Parked>> {
        Ok(ClientConnection {
            protocol: self.protocol,
            socket: self.socket.into_std()?,
            peer: self.peer,
            local: self.local,
            security: self.security,
        })
    }
}

impl ClientConnection<Parked> {
    /// The same, in this thread's runtime.
    ///
    /// # Errors
    /// The runtime does not take the socket.
    pub fn from_std(self) -> io::Result<ClientConnection> {
        Ok(ClientConnection {
            protocol: self.protocol,
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
    let timeout = tls.options().handshake_timeout;
    within(timeout, Secured::accept(stream, tls.current())).await
}

/// Makes a TLS session, unless that takes too long.
pub(crate) async fn within(
    timeout: Duration,
    shaking: impl Future<Output = io::Result<Secured>>,
) -> io::Result<(Secured, Security)> {
    let secured = match tokio::time::timeout(timeout, shaking).await {
        Ok(shaken) => {
            shaken.map_err(|error| io::Error::new(error.kind(), format!("TLS handshake failed: {error}")))?
        }
        Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "TLS handshake timeout")),
    };
    let security = secured.security()?;
    Ok((secured, security))
}
