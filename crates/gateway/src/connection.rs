//! What the shell knows of a connection, whatever protocol is spoken on it.

use crate::output::Output;
use broker::Outbox;
use broker::stats::UNIX;
use listener::{Protocol, Security};
use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

/// Milliseconds since some fixed moment; never goes back.
pub type Millis = u64;

/// What a connection did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing that would be less work elsewhere.
    Nothing,
    Published,
    Other,
}

/// Threads that serve connections; `threads` knows what they are.
pub type OtherThreads = Arc<dyn Any + Send + Sync>;

/// A protocol: makes a connection of a socket that was just accepted.
pub trait FrontEnd: Send + Sync {
    /// What is spoken. Listeners that name it bring their clients here.
    fn protocol(&self) -> Protocol;

    /// A client has connected.
    fn connect(self: Arc<Self>, name: Name, security: Option<Security>, now: Millis) -> Box<dyn Connection>;
}

/// One connection without its socket and without a clock: bytes in, bytes out, and what the broker has for it in between.
pub trait Connection: Send {
    /// Where the broker puts what it has for the connection.
    fn outbox(&self) -> &Arc<Outbox>;

    /// True if bytes may be fed now.
    fn wants_input(&self, out: &Output) -> bool;

    /// True if enough was done for this turn: others are next.
    fn is_tired(&self) -> bool;

    /// True if what it held is going back, a part in each turn: others are next after each of them.
    fn is_giving_back(&self) -> bool;

    /// Bytes came from the socket. They are a sign of life even if nothing can be done with them yet.
    fn received(&mut self, bytes: usize);

    /// Bytes left for the socket.
    fn sent(&mut self, bytes: usize);

    /// What it did since this was asked last.
    fn take_done(&mut self) -> Done;

    /// The threads that are to serve it from now on, if these are others.
    fn leaves_for(&mut self) -> Option<OtherThreads> {
        None
    }

    /// Takes what it can of `bytes` and says how many it took: all but the beginning of a frame that is not whole, unless it
    /// does not want more now.
    fn input(&mut self, bytes: &[u8], now: Millis, out: &mut Output) -> usize;

    /// How many bytes the frame has that these begin with, as far as they tell. What the protocol allows was checked before.
    fn frame_length(&self, beginning: &[u8]) -> Option<usize>;

    /// The end of a turn: hands on what came, takes what the broker has, and writes what is due. `waker` is woken when there
    /// is more.
    fn turn(&mut self, waker: &Waker, now: Millis, out: &mut Output);

    /// Writes deliveries, if the output has room for them.
    fn fill(&mut self, out: &mut Output);

    /// What comes next behind the output and is written from where it is; empty if there is nothing of the kind. Asked behind
    /// [`Connection::fill`].
    fn behind(&self) -> &[u8] {
        &[]
    }

    /// So many bytes of what is behind the output have left.
    fn wrote_behind(&mut self, _: usize) {}

    /// When [`Connection::tick`] must be called next; `None` if never.
    fn next_tick(&self) -> Option<Millis>;

    /// Does what is due at `now`.
    fn tick(&mut self, now: Millis, out: &mut Output);

    /// The socket is gone, or must be left. Everything held goes back.
    fn hung_up(&mut self, why: &str, now: Millis, out: &mut Output);

    /// True if there is nothing more to read or to expect; hang up once the output is written.
    fn is_finished(&self) -> bool;

    /// True if nothing is left to be done, not even without a socket.
    fn is_over(&self) -> bool;
}

/// A connection's two ends, as RabbitMQ names it in its logs.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The client.
    pub peer: SocketAddr,
    /// The listener.
    pub local: SocketAddr,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.local.port() {
            // No port of the network: a socket in the file system.
            0 => write!(f, "{UNIX}:{} -> {UNIX}", self.peer.port()),
            _ => write!(f, "{} -> {}", self.peer, self.local),
        }
    }
}
