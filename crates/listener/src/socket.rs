//! A connection's bytes, secured or not.

use crate::secured::Secured;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection, of this thread's runtime or (with `std`'s socket) on its way to another thread's.
#[derive(Debug)]
pub enum Socket<T = TcpStream> {
    /// Bytes as they are.
    Plain(T),
    /// TLS.
    Secured(Box<Secured<T>>),
}

impl<T> Socket<T> {
    /// True if something that was written is still held back, until the socket takes it: flush it when it is writable.
    pub fn has_unsent(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Secured(secured) => secured.has_unsent(),
        }
    }

    fn change<U>(self, change: impl FnOnce(T) -> io::Result<U>) -> io::Result<Socket<U>> {
        Ok(match self {
            Self::Plain(stream) => Socket::Plain(change(stream)?),
            Self::Secured(secured) => Socket::Secured(Box::new(secured.change(change)?)),
        })
    }
}

impl Socket {
    /// The same, free of its runtime.
    ///
    /// # Errors
    /// The system does not let go of the socket.
    pub fn into_std(self) -> io::Result<Socket<std::net::TcpStream>> {
        self.change(TcpStream::into_std)
    }
}

impl Socket<std::net::TcpStream> {
    /// The same, in this thread's runtime.
    ///
    /// # Errors
    /// The runtime does not take the socket.
    pub fn from_std(self) -> io::Result<Socket> {
        self.change(TcpStream::from_std)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Secured(secured) => Pin::new(secured.as_mut()).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secured(secured) => Pin::new(secured.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secured(secured) => Pin::new(secured.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secured(secured) => Pin::new(secured.as_mut()).poll_shutdown(cx),
        }
    }
}
