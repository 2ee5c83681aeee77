//! Bytes to and from the broker, in the clear or over TLS.

use rustls::{ClientConnection, Connection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A connected socket. While a [`super::Client`] has it, it blocks for as long as its timeouts say; after
/// [`super::Client::hand_over`] it does not block, and says [`ErrorKind::WouldBlock`].
pub enum Transport {
    Plain(TcpStream),
    Tls(Box<Secured>),
}

/// A socket and the TLS session on it.
pub struct Secured {
    session: Connection,
    socket: TcpStream,
}

impl Transport {
    /// Completes nothing: the session's handshake goes on with the first reads and writes.
    pub(super) fn secured(session: ClientConnection, socket: TcpStream) -> Self {
        Self::Tls(Box::new(Secured {
            session: session.into(),
            socket,
        }))
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(secured) => &secured.socket,
        }
    }

    /// Reads what is there. `Ok(0)`: the broker has closed the connection.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if nothing is there (yet, or within the timeout); anything else is final.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(secured) => secured.read(buffer),
        }
    }

    /// Writes as much as goes. TLS takes some of it into buffers of its own; see [`Self::wants_write`].
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if nothing could be taken; anything else is final.
    pub fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(buffer),
            Self::Tls(secured) => secured.write(buffer),
        }
    }

    /// True if bytes that were taken are still to be written: call [`Self::flush`] when the socket is writable.
    pub fn wants_write(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(secured) => secured.session.wants_write(),
        }
    }

    /// Writes what [`Self::wants_write`] speaks of.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if something is left; anything else is final.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(secured) => secured.flush(),
        }
    }

    /// Whether reads and writes may wait.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.socket().set_nonblocking(on)
    }

    /// How long a read may wait; at least a millisecond, since zero would mean for ever.
    pub(crate) fn set_read_timeout(&self, wait: Duration) -> io::Result<()> {
        self.socket()
            .set_read_timeout(Some(wait.max(Duration::from_millis(1))))
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

impl Secured {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The broker closed the socket without a word; in AMQP that is no attack, the frames say what is missing.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            self.session.read_tls(&mut self.socket)?;
            if let Err(error) = self.session.process_new_packets() {
                // An alert may be waiting to be sent, which tells the broker why.
                let _ = self.flush();
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            // Answers of the handshake, key updates. If they do not fit now, `wants_write` says so.
            match self.flush() {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
    }

    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        loop {
            let taken = self.session.writer().write(buffer)?;
            let flushed = self.flush();
            match flushed {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                // Nothing was taken because the session's buffer was full; it is not any more.
                Ok(()) if taken == 0 && !buffer.is_empty() => {}
                Err(error) if taken == 0 => return Err(error),
                _ => return Ok(taken),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            if self.session.write_tls(&mut self.socket)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}
