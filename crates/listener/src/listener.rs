//! Binding and accepting.

use crate::arrival::{Arrival, Entrance};
use crate::{Proxies, StartError, Tls};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};

/// How long nothing is accepted after the system refused (mostly: too many open files).
const PAUSE: Duration = Duration::from_millis(250);

/// Where to listen, and what a newcomer goes through.
#[derive(Clone, Debug)]
pub struct Door {
    /// The address; port 0 lets the system choose.
    pub address: SocketAddr,
    /// TLS, if it is spoken there.
    pub tls: Option<Arc<Tls>>,
    /// Who has to say first for whom it connects, if anybody has.
    pub proxies: Option<Arc<Proxies>>,
}

impl Door {
    /// A door without TLS.
    pub fn plain(address: SocketAddr) -> Self {
        Self {
            address,
            tls: None,
            proxies: None,
        }
    }

    /// A door behind which TLS is spoken.
    pub fn secured(address: SocketAddr, tls: Arc<Tls>) -> Self {
        Self {
            address,
            tls: Some(tls),
            proxies: None,
        }
    }
}

/// A door that is open.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Where it listens; a port that the system chose is filled in.
    pub address: SocketAddr,
    /// TLS, if it is spoken there.
    pub tls: Option<Arc<Tls>>,
}

impl Opened {
    /// True if TLS is spoken there.
    pub fn is_secured(&self) -> bool {
        self.tls.is_some()
    }
}

/// Options of the system for sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// How many connections the system may hold ready before they are accepted (RabbitMQ: 128).
    pub backlog: u32,
    /// Small writes leave at once (RabbitMQ: on).
    pub nodelay: bool,
    /// Bytes that the system may hold for a client that does not read; `None` leaves it to the system.
    pub send_buffer: Option<u32>,
    /// Bytes that the system may hold of what a client has sent; `None` leaves it to the system.
    pub receive_buffer: Option<u32>,
}

impl Default for SocketOptions {
    /// RabbitMQ's.
    fn default() -> Self {
        Self {
            backlog: 128,
            nodelay: true,
            send_buffer: None,
            receive_buffer: None,
        }
    }
}

/// A bound address.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    entrance: Arc<Entrance>,
}

impl Listener {
    /// Binds the door's address. Must be called inside the runtime that will accept.
    ///
    /// # Errors
    /// [`StartError::Listen`].
    pub fn open(door: Door, options: &SocketOptions) -> Result<Self, StartError> {
        let asked = door.address;
        let failed = |error| StartError::Listen {
            address: asked,
            error,
        };
        let socket = bind(asked, options).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let entrance = Entrance {
            nodelay: options.nodelay,
            tls: door.tls,
            proxies: door.proxies,
        };
        Ok(Self {
            socket,
            address,
            entrance: Arc::new(entrance),
        })
    }

    /// Where it listens, and how.
    pub fn opened(&self) -> Opened {
        Opened {
            address: self.address,
            tls: self.entrance.tls.clone(),
        }
    }

    /// The next connection. What the system refuses is logged and waited out.
    pub async fn next(&self) -> Arrival {
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => return Arrival::new(stream, peer, self.entrance.clone()),
                Err(error) => {
                    let address = self.address;
                    tracing::error!(
                        area = "connection",
                        "a connection to {address} could not be accepted: {error}"
                    );
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

fn bind(address: SocketAddr, options: &SocketOptions) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    // Connections inherit the sizes from the socket that they come in by.
    if let Some(bytes) = options.send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = options.receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(address)?;
    socket.listen(options.backlog)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    #[test]
    fn an_address_that_is_taken_is_named() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let door = Door::plain("127.0.0.1:0".parse().unwrap());
        let first = Listener::open(door, &SocketOptions::default()).unwrap();
        let again = Listener::open(Door::plain(first.opened().address), &SocketOptions::default());
        let text = again.unwrap_err().to_string();
        assert!(
            text.contains(&first.opened().address.to_string()) && text.contains("listens there already"),
            "{text}"
        );
    }
}
