//! The way to a collector: datagrams, a connection in clear text or with TLS, or a socket of this machine.

use crate::logs::SyslogOptions;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::fmt;
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::Duration;

/// How long a collector may take to accept a connection, and to take a message.
const TIMEOUT: Duration = Duration::from_secs(5);

/// `log.syslog.transport`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
    Tls,
}

impl Transport {
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        }
    }
}

/// Where messages go, and what is open to there.
pub struct Wire {
    host: String,
    port: u16,
    transport: Transport,
    tls: Option<Arc<ClientConfig>>,
    /// Whom a certificate must name.
    name: String,
    open: Option<Open>,
}

enum Open {
    Datagrams(UdpSocket),
    Local(UnixDatagram),
    /// Each message has its length before it (RFC 6587, section 3.4.1).
    Stream(Box<dyn Write + Send>),
}

impl Wire {
    /// Opens nothing yet.
    ///
    /// # Errors
    /// The certificates can't be read.
    pub fn new(options: &SyslogOptions) -> io::Result<Self> {
        let tls = match options.transport {
            Transport::Tls => Some(Arc::new(options.trust.client().map_err(io::Error::other)?)),
            Transport::Udp | Transport::Tcp => None,
        };
        Ok(Self {
            host: options.host.clone(),
            port: options.port,
            transport: options.transport,
            tls,
            name: options.trust.name_of(&options.host).to_owned(),
            open: None,
        })
    }

    /// Sends a message. After an error the way is opened anew the next time.
    ///
    /// # Errors
    /// The collector is not reached or doesn't take it.
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.connect()?,
        };
        match &mut open {
            Open::Datagrams(socket) => drop(socket.send(message)?),
            Open::Local(socket) => drop(socket.send(message)?),
            Open::Stream(stream) => {
                let mut framed = format!("{} ", message.len()).into_bytes();
                framed.extend_from_slice(message);
                stream.write_all(&framed)?;
                stream.flush()?;
            }
        }
        self.open = Some(open);
        Ok(())
    }

    fn connect(&self) -> io::Result<Open> {
        if self.host.starts_with('/') {
            let socket = UnixDatagram::unbound()?;
            socket.connect(&self.host)?;
            socket.set_write_timeout(Some(TIMEOUT))?;
            return Ok(Open::Local(socket));
        }
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            if self.transport == Transport::Udp {
                let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                return Ok(Open::Datagrams(socket));
            }
            match TcpStream::connect_timeout(&address, TIMEOUT) {
                Ok(socket) => return self.stream(socket),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn stream(&self, socket: TcpStream) -> io::Result<Open> {
        socket.set_write_timeout(Some(TIMEOUT))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        let Some(tls) = &self.tls else {
            return Ok(Open::Stream(Box::new(socket)));
        };
        let name = ServerName::try_from(self.name.clone()).map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
        Ok(Open::Stream(Box::new(StreamOwned::new(session, socket))))
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.starts_with('/') {
            true => write!(f, "the syslog socket {}", self.host),
            false => write!(
                f,
                "the syslog collector {}:{} ({})",
                self.host,
                self.port,
                self.transport.name()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    fn to(host: &str, port: u16, transport: Transport) -> Wire {
        Wire::new(&SyslogOptions {
            host: host.to_owned(),
            port,
            transport,
            ..SyslogOptions::default()
        })
        .unwrap()
    }

    #[test]
    fn datagrams_hold_a_message_each() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut wire = to(
            "127.0.0.1",
            collector.local_addr().unwrap().port(),
            Transport::Udp,
        );
        let mut buffer = [0; 100];
        for message in ["<1>a", "<1>b"] {
            wire.send(message.as_bytes()).unwrap();
            let count = collector.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], message.as_bytes());
        }
    }

    #[test]
    fn a_connection_has_lengths_before_messages_and_is_opened_anew() {
        let collector = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut wire = to(
            "127.0.0.1",
            collector.local_addr().unwrap().port(),
            Transport::Tcp,
        );
        wire.send(b"<1>a").unwrap();
        let (mut socket, _) = collector.accept().unwrap();
        let mut buffer = [0; 6];
        socket.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"4 <1>a");
        drop(socket);
        // The first write to a closed connection may still go through.
        while wire.send(b"<1>b").is_ok() {}
        wire.send(b"<1>c").unwrap();
        let (mut socket, _) = collector.accept().unwrap();
        socket.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"4 <1>c");
    }

    #[test]
    fn a_path_is_a_socket_of_this_machine() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut wire = to(path.to_str().unwrap(), 514, Transport::Udp);
        assert!(wire.send(b"<1>a").is_err());
        let collector = UnixDatagram::bind(&path).unwrap();
        wire.send(b"<1>a").unwrap();
        let mut buffer = [0; 10];
        assert_eq!(collector.recv(&mut buffer).unwrap(), 4);
    }
}
