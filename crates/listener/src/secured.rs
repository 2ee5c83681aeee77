//! A socket with TLS around it: rustls decides what the bytes are, this moves them.

use crate::certificate::Certificate;
use crate::ciphers;
use crate::stream::Stream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ProtocolVersion, ServerConfig, ServerConnection};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What the binding is made with: the label of RFC 9266.
const BINDING: &[u8] = b"EXP\x4fRTER-Channel-Binding";

/// How much is read from a socket at a time, in bytes: four records of the largest size.
const READ: usize = 64 * 1024;
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
    /// What only the two ends of this session know (the binding `tls-exporter` of RFC 9266): whoever sits between two sessions
    /// has another one with each.
    pub binding: [u8; 32],
}

/// The least that is read, in bytes, however little room the reader has.
const LEAST: usize = 4 * 1024;

thread_local! {
    /// What was read from a socket on its way into its session; shared, because it is empty again after each read.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A TLS session and its socket.
#[derive(Debug)]
pub struct Secured<S = Stream> {
    stream: S,
    session: Box<Connection>,
    /// What was read and found no room behind the session yet.
    stash: Vec<u8>,
    /// The peer sends nothing more.
    ended: bool,
}

impl<S> Secured<S> {
    pub(crate) fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// The same session around the same socket in another form.
    pub(crate) fn change<T>(self, change: impl FnOnce(S) -> io::Result<T>) -> io::Result<Secured<T>> {
        Ok(Secured {
            stream: change(self.stream)?,
            session: self.session,
            stash: self.stash,
            ended: self.ended,
        })
    }

    /// Hands decrypted bytes over. True if there were some, or there will never be more.
    fn hand_over(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let before = buffer.filled().len();
        while buffer.remaining() > 0 {
            match self.session.reader().read(buffer.initialize_unfilled()) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(count) => buffer.advance(count),
                // Nothing yet; or the end without TLS's goodbye, which `pull` notices. Frames say their length, so a
                // cut one shows.
                Err(_) => break,
            }
        }
        self.ended || buffer.filled().len() > before
    }

    /// Decrypts as much as the reader has room for; the rest is kept.
    fn feed(&mut self, bytes: &[u8], buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.session.read_tls(&mut rest)? == 0 {
                return Ok(());
            }
            let state = self
                .session
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if state.plaintext_bytes_to_read() > 0 {
                self.hand_over(buffer);
                if buffer.remaining() == 0 {
                    self.stash.extend_from_slice(rest);
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Secured {
    /// Shakes hands with a client.
    ///
    /// # Errors
    /// The client and we agree on nothing, its certificate is not good, or the connection broke.
    pub(crate) async fn accept(stream: Stream, config: Arc<ServerConfig>) -> io::Result<Self> {
        let session = ServerConnection::new(config).map_err(io::Error::other)?;
        Self::secure(stream, session.into()).await
    }

    /// Shakes hands with a server, whose certificate must be of this name if the configuration asks for that.
    ///
    /// # Errors
    /// The server and we agree on nothing, its certificate is not good, or the connection broke.
    pub(crate) async fn connect(
        stream: Stream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Self> {
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Self::secure(stream, session.into()).await
    }

    async fn secure(stream: Stream, session: Connection) -> io::Result<Self> {
        let mut secured = Self {
            stream,
            session: Box::new(session),
            stash: Vec::new(),
            ended: false,
        };
        poll_fn(|cx| secured.shake(cx)).await?;
        Ok(secured)
    }

    fn shake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // No room: what a client sends behind its handshake waits in the session and the stash.
        let mut nothing = ReadBuf::new(&mut []);
        while self.session.is_handshaking() {
            ready!(self.flush(cx))?;
            if let Err(error) = ready!(self.pull(cx, &mut nothing)) {
                // The alert that tells the client why.
                let _ = self.flush(cx);
                return Poll::Ready(Err(error));
            }
            if self.ended {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        self.flush(cx)
    }

    /// What the handshake agreed on.
    ///
    /// # Errors
    /// The session has no secret to make the binding of.
    pub(crate) fn security(&self) -> io::Result<Security> {
        let protocol = match self.session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "tlsv1.2",
            _ => "tlsv1.3",
        };
        let certificate = self.session.peer_certificates().and_then(|chain| chain.first());
        let binding = self
            .session
            .export_keying_material([0; 32], BINDING, Some(b""))
            .map_err(io::Error::other)?;
        Ok(Security {
            protocol,
            cipher: self
                .session
                .negotiated_cipher_suite()
                .map(ciphers::parts)
                .unwrap_or_default(),
            certificate: certificate.and_then(|certificate| Certificate::parse(certificate)),
            server_name: match &*self.session {
                Connection::Server(session) => session.server_name().map(str::to_owned),
                Connection::Client(_) => None,
            },
            binding,
        })
    }

    /// Reads from the socket once, and decrypts it.
    fn pull(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.stash.is_empty() {
            let stash = std::mem::take(&mut self.stash);
            return Poll::Ready(self.feed(&stash, buffer));
        }
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(READ, 0);
            let most = buffer.remaining().clamp(LEAST, READ);
            let mut space = ReadBuf::new(&mut scratch[..most]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut space))?;
            let count = space.filled().len();
            self.ended = count == 0;
            Poll::Ready(self.feed(&scratch[..count], buffer))
        })
    }

    /// Writes what the session has ready.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            let mut writing = Writing {
                stream: &mut self.stream,
                cx: &mut *cx,
            };
            match self.session.write_tls(&mut writing) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while !this.hand_over(buffer) && buffer.remaining() > 0 {
            let before = buffer.filled().len();
            let pulled = ready!(this.pull(cx, buffer));
            // Answers to renewed keys, and the alert that says what was wrong.
            let flushed = this.flush(cx);
            pulled?;
            if let Poll::Ready(flushed) = flushed {
                flushed?;
            }
            if buffer.filled().len() > before {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Secured {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.flush(cx))?;
        let count = this.session.writer().write(bytes)?;
        // What the socket does not take now is `has_unsent`; it wakes the task when it will.
        match this.flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(count)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.session.send_close_notify();
        ready!(this.flush(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

/// The socket as rustls writes to it.
struct Writing<'a, 'b> {
    stream: &'a mut Stream,
    cx: &'a mut Context<'b>,
}

impl Write for Writing<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Pin::new(&mut *self.stream).poll_write(self.cx, bytes) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match Pin::new(&mut *self.stream).poll_write_vectored(self.cx, pieces) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
