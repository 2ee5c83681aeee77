//! A connection's bytes, secured or not.

pub mod web;

use crate::secured::Secured;
use crate::stream::{Parked, Stream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use web::Web;

/// A connection, of this thread's runtime or ([`Parked`]) on its way to another thread's.
#[derive(Debug)]
pub enum Socket<T = Stream> {
    /// Bytes as they are.
    Plain(T),
    /// TLS.
    Secured(Box<Secured<T>>),
    /// Inside a WebSocket.
    Web(Box<Web<T>>),
}

impl<T> Socket<T> {
    /// True if something that was written is still held back, until the socket takes it: flush it when it is writable.
    pub fn has_unsent(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Secured(secured) => secured.has_unsent(),
            Self::Web(web) => web.has_unsent(),
        }
    }

    pub(crate) fn change<U>(self, change: impl FnOnce(T) -> io::Result<U>) -> io::Result<Socket<U>> {
        Ok(match self {
            Self::Plain(stream) => Socket::Plain(change(stream)?),
            Self::Secured(secured) => Socket::Secured(Box::new(secured.change(change)?)),
            Self::Web(web) => Socket::Web(Box::new(web.change(change)?)),
        })
    }
}

impl Socket {
    /// The same, free of its runtime.
    ///
    /// # Errors
    /// The socket cannot be taken out of its runtime.
    pub fn into_std(self) -> io::Result<Socket<Parked>> {
        self.change(Stream::into_std)
    }
}

impl Socket<Parked> {
    /// The same, in this thread's runtime.
    ///
    /// # Errors
    /// The runtime does not take the socket.
    pub fn from_std(self) -> io::Result<Socket> {
        self.change(Parked::from_std)
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
            Self::Web(web) => Pin::new(web.as_mut()).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secured(secured) => Pin::new(secured.as_mut()).poll_write(cx, bytes),
            Self::Web(web) => Pin::new(web.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            // These copy what they are given in any case.
            other => {
                let first = pieces.iter().find(|piece| !piece.is_empty());
                Pin::new(other).poll_write(cx, first.map_or(&[], |piece| piece))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secured(secured) => Pin::new(secured.as_mut()).poll_flush(cx),
            Self::Web(web) => Pin::new(web.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secured(secured) => Pin::new(secured.as_mut()).poll_shutdown(cx),
            Self::Web(web) => Pin::new(web.as_mut()).poll_shutdown(cx),
        }
    }
}
