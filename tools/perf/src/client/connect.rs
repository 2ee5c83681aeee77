//! From an address to a socket that is ready for AMQP.

use super::tls;
use super::transport::Transport;
use crate::failure::Failure;
use crate::plan::Connecting;
use crate::uri::Uri;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// PerfTest's, from its client library.
const CONNECT: Duration = Duration::from_secs(60);
/// How long a write may wait for a broker that does not read.
const WRITE: Duration = Duration::from_secs(60);

/// Connects and, for `amqps`, begins TLS. Each of a host's addresses is tried until one answers.
///
/// # Errors
/// [`Failure::Connect`] if nobody is there; [`Failure::File`] for certificates that can't be read.
pub fn connect(uri: &Uri, how: &Connecting) -> Result<Transport, Failure> {
    let secured = if uri.tls {
        Some(tls::session(uri, how)?)
    } else {
        None
    };
    let socket = open(uri, how)?;
    let prepared = socket.set_write_timeout(Some(WRITE));
    prepared.map_err(|error| Failure::Connect(format!("a socket can't be prepared: {error}")))?;
    Ok(match secured {
        Some(session) => Transport::secured(session, socket),
        None => Transport::Plain(socket),
    })
}

fn open(uri: &Uri, how: &Connecting) -> Result<TcpStream, Failure> {
    let place = uri.place();
    let found = (uri.host.as_str(), uri.port).to_socket_addrs();
    let addresses: Vec<SocketAddr> = found.map(Iterator::collect).map_err(|error| {
        Failure::Connect(format!(
            "the host '{}' is unknown ({error}): check its name in --uri",
            uri.host
        ))
    })?;
    let deadline = Instant::now() + uri.query.connect_timeout.unwrap_or(CONNECT);
    let mut failed: Option<io::Error> = None;
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            failed.get_or_insert_with(|| ErrorKind::TimedOut.into());
            break;
        }
        match open_one(address, how, left) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = Some(error),
        }
    }
    let why = failed.map_or_else(|| "it has no address".to_owned(), |error| error.to_string());
    let advice = if why.contains("open files") {
        "raise the limit with `ulimit -n`"
    } else {
        "is the broker running there, and is a firewall in between?"
    };
    Err(Failure::Connect(format!(
        "can't connect to {place}: {why}; {advice}"
    )))
}

fn open_one(address: SocketAddr, how: &Connecting, timeout: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // The receive buffer's size decides what is offered in the first packet: it has to be set before.
    if let Some(bytes) = how.receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    if let Some(bytes) = how.send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    socket.set_tcp_nodelay(how.no_delay)?;
    socket.connect_timeout(&address.into(), timeout)?;
    Ok(socket.into())
}

/// Writes all of it.
///
/// # Errors
/// A timeout ([`is_timeout`]) if the broker does not read; anything else is final.
pub fn write_all(transport: &mut Transport, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match transport.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    while transport.wants_write() {
        transport.flush()?;
    }
    Ok(())
}

/// True if the system says that it has waited long enough.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
