//! A connection of the system's: over the network, or within this machine.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connection, of this thread's runtime or ([`Parked`]) of none.
#[derive(Debug)]
pub enum Stream<T = TcpStream, U = UnixStream> {
    /// Over the network.
    Tcp(T),
    /// By a socket in the file system.
    Local(U),
}

/// A connection on its way from one thread to another.
pub type Parked = Stream<std::net::TcpStream, std::os::unix::net::UnixStream>;

impl Stream {
    /// The same, free of its runtime.
    ///
    /// # Errors
    /// The socket cannot be taken out of its runtime.
    pub fn into_std(self) -> io::Result<Parked> {
        Ok(match self {
            Self::Tcp(stream) => Stream::Tcp(stream.into_std()?),
            Self::Local(stream) => Stream::Local(stream.into_std()?),
        })
    }
}

impl Parked {
    /// The same, in this thread's runtime.
    ///
    /// # Errors
    /// The runtime does not take the socket.
    pub fn from_std(self) -> io::Result<Stream> {
        Ok(match self {
            Self::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            Self::Local(stream) => Stream::Local(UnixStream::from_std(stream)?),
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Local(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Local(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Self::Local(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Neither holds anything back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Local(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
