//! Answers that wait to be read: how many bytes of them there may be, and how long somebody may take.
//!
//! A large list is text in memory until its asker has read it. So an asker with much unread has to read that first, and
//! whoever stops reading loses the connection.

use http_body_util::Either;
use http_body_util::channel::Channel;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// How much of a body is handed to the connection at a time, in bytes.
const SLICE: usize = 64 * 1024;
/// How many bytes may wait for one address, and for all. One answer may be larger.
const OF_AN_ADDRESS: usize = 32 * 1024 * 1024;
const OF_ALL: usize = 256 * 1024 * 1024;
/// An answer that is still to be made counts as so many bytes.
const EXPECTED: usize = 4 * 1024 * 1024;
/// How long a request waits until its asker has read enough of what was asked before.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(30);
/// Somebody who reads takes at least so many bytes in such a time.
const SLOWEST: (u64, Duration) = (64 * 1024, Duration::from_secs(30));

/// A body that is whole, or one that grows.
pub type Answer = Either<Whole, Channel<Bytes, io::Error>>;

/// What waits to be read.
#[derive(Debug, Default)]
pub struct Unread {
    waiting: Mutex<Waiting>,
    less: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Unread {
    /// Memory for an answer to this address, once there is some. `None` if there is none in time.
    pub async fn reserve(self: &Arc<Self>, address: IpAddr) -> Option<Reservation> {
        let over = sleep(RESERVE_TIMEOUT);
        let mut over = std::pin::pin!(over);
        loop {
            let less = self.less.notified();
            let mut less = std::pin::pin!(less);
            // From here on nothing that becomes free is missed.
            less.as_mut().enable();
            if self.take(address) {
                return Some(Reservation {
                    unread: self.clone(),
                    address,
                    bytes: EXPECTED,
                });
            }
            tokio::select! {
                () = less => {}
                () = over.as_mut() => return None,
            }
        }
    }

    fn take(&self, address: IpAddr) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let own = waiting.by_address.get(&address).copied().unwrap_or(0);
        let fits = own + EXPECTED <= OF_AN_ADDRESS && waiting.bytes + EXPECTED <= OF_ALL;
        // Whoever has nothing unread may have one answer, however much of others waits short of the limit.
        let takes = fits || own == 0 && waiting.bytes <= OF_ALL;
        if takes {
            waiting.change(address, |bytes| bytes + EXPECTED);
        }
        takes
    }
}

impl Waiting {
    fn change(&mut self, address: IpAddr, change: impl Fn(usize) -> usize) {
        let own = self.by_address.entry(address).or_insert(0);
        self.bytes -= *own;
        *own = change(*own);
        self.bytes += *own;
        if *own == 0 {
            self.by_address.remove(&address);
        }
    }
}

/// The memory that an answer takes, until it is dropped.
#[derive(Debug)]
pub struct Reservation {
    unread: Arc<Unread>,
    address: IpAddr,
    bytes: usize,
}

impl Reservation {
    /// The answer is of this size.
    pub fn resize(&mut self, bytes: usize) {
        let old = std::mem::replace(&mut self.bytes, bytes);
        let mut waiting = self.unread.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.change(self.address, |own| (own + bytes).saturating_sub(old));
        drop(waiting);
        if bytes < old {
            self.unread.less.notify_waiters();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.resize(0);
    }
}

/// A body that is there as a whole, handed on in slices as the connection takes them: all of it takes memory until the
/// last one has gone.
#[derive(Debug, Default)]
pub struct Whole {
    rest: Bytes,
    reserved: Option<Reservation>,
}

impl Whole {
    /// The body, and the memory that was reserved for it, if it was.
    pub fn new(bytes: impl Into<Bytes>, reserved: Option<Reservation>) -> Self {
        let rest = bytes.into();
        let mut reserved = reserved;
        if let Some(reserved) = &mut reserved {
            reserved.resize(rest.len());
        }
        Self { rest, reserved }
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self { rest, reserved } = self.get_mut();
        if rest.is_empty() {
            return Poll::Ready(None);
        }
        let slice = rest.split_to(SLICE.min(rest.len()));
        if rest.is_empty() {
            *reserved = None;
        }
        Poll::Ready(Some(Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// A connection whose other end has to read what is written to it.
#[derive(Debug)]
pub struct Watched<S> {
    socket: S,
    /// Runs while something can't be written.
    until: Pin<Box<Sleep>>,
    is_held_up: bool,
    /// Bytes that were taken since it began to run.
    taken: u64,
}

impl<S> Watched<S> {
    /// This connection. Must be called inside a runtime.
    pub fn new(socket: S) -> Self {
        Self {
            socket,
            until: Box::pin(sleep(SLOWEST.1)),
            is_held_up: false,
            taken: 0,
        }
    }

    /// The connection itself.
    pub fn into_inner(self) -> S {
        self.socket
    }

    /// Something was written, or could not be.
    fn wrote(&mut self, cx: &mut Context<'_>, bytes: Poll<u64>) -> io::Result<()> {
        match bytes {
            // Whoever reads slowly takes some, and is then waited for again: only time that passes with too little counts.
            Poll::Ready(bytes) => {
                self.taken += bytes;
                return Ok(());
            }
            Poll::Pending if !self.is_held_up => {
                (self.is_held_up, self.taken) = (true, 0);
                self.until.as_mut().reset(Instant::now() + SLOWEST.1);
            }
            Poll::Pending => {}
        }
        while self.until.as_mut().poll(cx).is_ready() {
            if self.taken < SLOWEST.0 {
                let text = "what was sent is not read";
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            self.taken = 0;
            self.until.set(sleep_until(Instant::now() + SLOWEST.1));
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let watched = self.get_mut();
        match Pin::new(&mut watched.socket).poll_write(cx, bytes) {
            Poll::Ready(outcome) => {
                let taken = outcome.as_ref().map_or(0, |taken| *taken as u64);
                watched.wrote(cx, Poll::Ready(taken))?;
                Poll::Ready(outcome)
            }
            Poll::Pending => {
                watched.wrote(cx, Poll::Pending)?;
                Poll::Pending
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let watched = self.get_mut();
        let outcome = Pin::new(&mut watched.socket).poll_flush(cx);
        match outcome.is_pending() {
            true => watched.wrote(cx, Poll::Pending)?,
            // Everything has gone: the next answer begins anew.
            false => watched.is_held_up = false,
        }
        outcome
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use tokio::io::AsyncWriteExt;
    use tokio::runtime::Builder;

    fn run<T>(future: impl Future<Output = T>) -> T {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(future)
    }

    #[test]
    fn who_reads_nothing_gets_no_more_answers_and_others_do() {
        run(async {
            let unread = Arc::new(Unread::default());
            let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
            let mut held = Vec::new();
            for _ in 0..OF_AN_ADDRESS / EXPECTED {
                let reserved = unread.reserve(one).await.unwrap();
                held.push(Whole::new(vec![0; EXPECTED], Some(reserved)));
            }
            assert!(unread.reserve(one).await.is_none());
            assert!(unread.reserve(other).await.is_some());
            let waits = tokio::spawn({
                let unread = unread.clone();
                async move { unread.reserve(one).await.is_some() }
            });
            let body = held.pop().unwrap();
            assert_eq!(body.collect().await.unwrap().to_bytes().len(), EXPECTED);
            assert!(waits.await.unwrap());
            held.clear();
            assert_eq!(unread.waiting.lock().unwrap().bytes, 0);
            assert!(unread.waiting.lock().unwrap().by_address.is_empty());
        });
    }

    #[test]
    fn who_stops_reading_loses_the_connection_and_who_reads_slowly_does_not() {
        run(async {
            let (stopped, _kept) = tokio::io::duplex(1024);
            let outcome = Watched::new(stopped).write_all(&[0; 4096]).await;
            assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
            let (socket, mut reader) = tokio::io::duplex(16 * 1024);
            let reads = tokio::spawn(async move {
                let mut buffer = vec![0; 16 * 1024];
                loop {
                    sleep(Duration::from_secs(5)).await;
                    match tokio::io::AsyncReadExt::read(&mut reader, &mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(_) => {}
                    }
                }
            });
            let mut slow = Watched::new(socket);
            slow.write_all(&[0; 512 * 1024]).await.unwrap();
            drop(slow);
            reads.await.unwrap();
        });
    }
}
