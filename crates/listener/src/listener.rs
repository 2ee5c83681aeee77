//! Binding and accepting.

use crate::arrival::Arrival;
use crate::descriptors::{self, NowAndThen};
use crate::endpoint::{Address, Endpoint, unmapped};
use crate::stream::Stream;
use crate::{StartError, local_socket};
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpSocket, UnixListener};

/// How long nothing is accepted after the system refused (mostly: too many open files).
const PAUSE: Duration = Duration::from_millis(250);

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

/// A socket that clients connect to.
#[derive(Debug)]
pub struct Listener {
    /// `None` while it is shut.
    socket: Option<Bound>,
    endpoint: Arc<Endpoint>,
    options: SocketOptions,
    /// A connection whose descriptor has this number or a higher one is refused.
    ceiling: u64,
    refused: NowAndThen,
    failed: NowAndThen,
}

#[derive(Debug)]
enum Bound {
    Tcp(TcpListener),
    Local { socket: UnixListener, _file: File },
}

/// A socket's name in the file system, which goes with it.
#[derive(Debug)]
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        // Whoever took it away already has done what was to be done.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Binds the address. Must be called inside the runtime that will accept.
    ///
    /// # Errors
    /// [`StartError::Listen`] or [`StartError::Local`].
    pub fn open(mut endpoint: Endpoint, options: &SocketOptions) -> Result<Self, StartError> {
        let socket =
            Bound::open(&endpoint.address, options).map_err(|error| match endpoint.address.clone() {
                Address::Network(address) => StartError::Listen { address, error },
                Address::Local { path, .. } => StartError::Local { path, error },
            })?;
        if let Bound::Tcp(socket) = &socket {
            endpoint.address = Address::Network(socket.local_addr().map_err(StartError::Thread)?);
        }
        Ok(Self {
            socket: Some(socket),
            endpoint: Arc::new(endpoint),
            options: options.clone(),
            ceiling: descriptors::for_clients(),
            refused: NowAndThen::default(),
            failed: NowAndThen::default(),
        })
    }

    /// Where it listens, and how.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Stops to listen: the system refuses new connections, and those that were not accepted yet.
    pub fn shut(&mut self) {
        self.socket = None;
    }

    /// Listens again, at the same address. Another process may have taken it meanwhile: that is logged once, and tried
    /// until it is free.
    pub async fn reopen(&mut self) {
        let mut told = false;
        while self.socket.is_none() {
            match Bound::open(&self.endpoint.address, &self.options) {
                Ok(socket) => self.socket = Some(socket),
                Err(error) => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::error!(
                            area = "connection",
                            "{} cannot be listened on again yet: {error}",
                            self.endpoint.address
                        );
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// The next connection; none while it is shut. Those that would take the descriptors that the log needs are closed at once.
    /// What the system refuses is waited out. Both are logged now and then.
    pub async fn next(&self) -> Arrival {
        loop {
            let accepted = match &self.socket {
                None => pending().await,
                Some(socket) => socket.accept(self.options.nodelay).await,
            };
            match accepted {
                Ok((stream, ..)) if number(&stream) >= self.ceiling => {
                    drop(stream);
                    if let Some(times) = self.refused.again(Instant::now()) {
                        tracing::error!(
                            area = "connection",
                            "{times} connections to {} were closed at once: all file descriptors but those that the node itself needs are in use ({} for clients); \
                             raise the limit (LimitNOFILE, ulimit -n)",
                            self.endpoint.address,
                            self.ceiling
                        );
                    }
                }
                Ok((stream, peer, local)) => return Arrival::new(stream, peer, local, self.endpoint.clone()),
                Err(error) => {
                    let address = &self.endpoint.address;
                    if let Some(times) = self.failed.again(Instant::now()) {
                        tracing::error!(
                            area = "connection",
                            "a connection to {address} could not be accepted: {error} ({times} times)"
                        );
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

impl Bound {
    fn open(address: &Address, options: &SocketOptions) -> io::Result<Self> {
        Ok(match address {
            Address::Network(address) => Self::Tcp(bind(*address, options)?),
            Address::Local { path, mode } => {
                let socket = local_socket::bind(path, *mode)?;
                let _file = File(path.clone());
                let socket = UnixListener::from_std(socket)?;
                Self::Local { socket, _file }
            }
        })
    }

    /// The next connection with its two ends, as [`unmapped`] has them.
    async fn accept(&self, nodelay: bool) -> io::Result<(Stream, SocketAddr, SocketAddr)> {
        match self {
            Self::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                stream.set_nodelay(nodelay)?;
                let local = stream.local_addr()?;
                Ok((Stream::Tcp(stream), unmapped(peer), unmapped(local)))
            }
            Self::Local { socket, .. } => {
                let (stream, _) = socket.accept().await?;
                let (peer, local) = within_this_machine();
                Ok((Stream::Local(stream), peer, local))
            }
        }
    }
}

/// The number of a connection's descriptor.
fn number(stream: &Stream) -> u64 {
    let number: RawFd = match stream {
        Stream::Tcp(stream) => stream.as_raw_fd(),
        Stream::Local(stream) => stream.as_raw_fd(),
    };
    u64::try_from(number).unwrap_or(0)
}

/// The ends of a connection that has no addresses: this machine, with a number instead of the client's port by which it
/// is told from others, and 0 instead of ours, which no port of the network is.
fn within_this_machine() -> (SocketAddr, SocketAddr) {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let at = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    (at(NEXT.fetch_add(1, Ordering::Relaxed)), at(0))
}

fn bind(address: SocketAddr, options: &SocketOptions) -> io::Result<TcpListener> {
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
    use crate::Protocol;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    use tokio::runtime::Builder;

    const TEST: Protocol = Protocol {
        name: "Test",
        plain: "test",
        secured: "test/ssl",
    };

    #[test]
    fn an_address_that_is_taken_is_named() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let endpoint = Endpoint::plain(TEST, "127.0.0.1:0".parse().unwrap());
        let first = Listener::open(endpoint, &SocketOptions::default()).unwrap();
        let Some(address) = first.endpoint().address.network() else {
            panic!("a port was asked for");
        };
        let again = Listener::open(Endpoint::plain(TEST, address), &SocketOptions::default());
        let text = again.unwrap_err().to_string();
        assert!(
            text.contains(&address.to_string()) && text.contains("listens there already"),
            "{text}"
        );
    }

    #[test]
    fn who_would_take_what_the_log_needs_is_shut_out() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = Endpoint::plain(TEST, "127.0.0.1:0".parse().unwrap());
            let mut listener = Listener::open(endpoint, &SocketOptions::default()).unwrap();
            let Some(address) = listener.endpoint().address.network() else {
                panic!("a port was asked for");
            };
            listener.ceiling = 0;
            let mut shut_out = std::net::TcpStream::connect(address).unwrap();
            tokio::select! {
                biased;
                _ = listener.next() => panic!("it was let in"),
                closed = tokio::task::spawn_blocking(move || shut_out.read(&mut [0])) => {
                    assert_eq!(closed.unwrap().unwrap_or(0), 0);
                }
            }
            listener.ceiling = u64::MAX;
            let client = std::net::TcpStream::connect(address).unwrap();
            assert_eq!(listener.next().await.peer(), client.local_addr().unwrap());
        });
    }

    #[test]
    fn clients_of_ipv4_have_ipv4_addresses_at_a_listener_for_ipv4_and_ipv6() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = Endpoint::plain(TEST, "[::]:0".parse().unwrap());
            let listener = Listener::open(endpoint, &SocketOptions::default()).unwrap();
            let Some(address) = listener.endpoint().address.network() else {
                panic!("a port was asked for");
            };
            for home in ["127.0.0.1", "::1"] {
                let at: std::net::IpAddr = home.parse().unwrap();
                let client = std::net::TcpStream::connect((at, address.port())).unwrap();
                let arrival = listener.next().await;
                assert_eq!(arrival.peer(), client.local_addr().unwrap());
                let connection = arrival.enter().await.unwrap();
                assert_eq!(connection.peer, client.local_addr().unwrap());
                assert_eq!(connection.local, client.peer_addr().unwrap());
            }
        });
        let scoped = "[fe80::1%3]:1".parse().unwrap();
        assert_eq!(unmapped(scoped), scoped);
    }

    #[test]
    fn clients_of_a_listener_that_is_shut_are_refused_and_it_opens_again_at_the_same_address() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("amqp");
        let endpoints = [
            Endpoint::plain(TEST, "127.0.0.1:0".parse().unwrap()),
            Endpoint::local(TEST, path.clone(), 0o600),
        ];
        runtime.block_on(async {
            for endpoint in endpoints {
                let mut listener = Listener::open(endpoint, &SocketOptions::default()).unwrap();
                let address = listener.endpoint().address.clone();
                let come = || -> io::Result<Box<dyn Read>> {
                    Ok(match &address {
                        Address::Network(address) => Box::new(std::net::TcpStream::connect(address)?),
                        Address::Local { path, .. } => {
                            Box::new(std::os::unix::net::UnixStream::connect(path)?)
                        }
                    })
                };
                let _in = come().unwrap();
                listener.next().await;
                listener.shut();
                assert!(come().is_err(), "{address}");
                listener.reopen().await;
                let _in = come().unwrap();
                assert!(listener.next().await.peer().ip().is_loopback());
            }
        });
        assert!(!path.exists(), "a listener that is gone leaves no file");
    }

    #[test]
    fn a_socket_that_nobody_listens_on_is_replaced_and_nothing_else_is() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("amqp");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let open = |path: &std::path::Path| {
            Listener::open(
                Endpoint::local(TEST, path.into(), 0o640),
                &SocketOptions::default(),
            )
        };
        let first = open(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let text = open(&path).unwrap_err().to_string();
        assert!(text.contains("listens there already"), "{text}");
        drop(first);
        let file = dir.path().join("file");
        std::fs::write(&file, "precious").unwrap();
        assert!(open(&file).unwrap_err().to_string().contains("is not a socket"));
        assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    }
}
