//! The thin shell around a connection: its socket, its clock, its memory for reading and writing.
//!
//! One task a connection, which reads and writes. Everything that is ready is done before anything is written, and written
//! at once: a wake-up costs as much as a hundred messages.

use crate::connection::{Connection, Millis, OtherThreads};
use crate::output::{Output, PIECE};
use crate::{load, pool};
use listener::{Parked, Socket};
use std::future::{Future, poll_fn};
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How many rounds a connection makes before the others of its thread get their turn.
const ROUNDS: usize = 4;

/// How many pieces are written before the others get their turn.
const WRITES: usize = 16;

/// What is written before the others get their turn, in bytes: about what one read may bring, or readers of streams, whose chunks
/// are many pieces long, would leave nothing to who publishes on the same thread.
const WRITTEN: usize = 4 * PIECE;

/// A read that brought so much is followed by the others' turn before the next one, in bytes.
const LARGE_READ: usize = 64 * 1024;

/// The beginning of a frame that is this small is copied aside, so that the connection holds no large buffer while it
/// waits for the rest, in bytes.
const SMALL: usize = 4 * 1024;

/// How long the peer may take to read what is written last, in milliseconds.
const FLUSH_TIMEOUT: Millis = 10_000;

/// How long the peer may take to hang up after we did. Closing at once could take from it what was just written.
const LINGER: Duration = Duration::from_secs(1);

/// A connection with its socket: one of this thread's, or one that is on its way to another thread.
pub struct Served<S = Socket> {
    core: Box<dyn Connection>,
    stream: S,
    out: Output,
    /// The beginning of a frame; all of `small`, or the first `kept` bytes of `large`.
    small: Vec<u8>,
    large: Option<Large>,
    /// The core did not want what is kept; it is offered again when it does.
    refused: bool,
    /// The last read brought much, or what takes the core long: the others are next.
    satisfied: bool,
    /// So much may be written in this turn, in bytes.
    room: usize,
    epoch: Instant,
    /// When to hang up though the peer has not taken everything; set once the core is finished.
    give_up_at: Option<Millis>,
    timer: Option<Pin<Box<Sleep>>>,
    timer_at: Millis,
    /// When the last round began.
    now: Millis,
    /// The window of [`load`] in which it had its last turn.
    window: u32,
}

/// How serving ended.
pub enum Ended {
    /// The connection is over.
    Over,
    /// It goes on, on the thread of this number.
    Elsewhere(usize, Box<Served<Socket<Parked>>>),
    /// It goes on, on one of these threads, which serve others.
    Among(OtherThreads, Box<Served<Socket<Parked>>>),
}

/// Why a connection is not served any more where it was.
enum Left {
    Over,
    For(usize),
    ForOthers(OtherThreads),
}

struct Large {
    buffer: Vec<u8>,
    kept: usize,
}

/// Whether to go on with the next round.
enum Round {
    Again,
    /// Wait until something happens.
    Wait,
    /// Let others have their turn, and whoever has become ready meanwhile, then go on.
    Yield,
    Over,
}

/// Serves a connection until it is over or must go on elsewhere.
///
/// # Errors
/// The socket cannot be taken out of its runtime; the connection is gone then.
pub async fn serve(mut served: Served) -> std::io::Result<Ended> {
    let left = poll_fn(|cx| served.poll(cx)).await;
    let parked = |served: Served| served.with_socket(Socket::into_std).map(Box::new);
    match left {
        Left::For(thread) => Ok(Ended::Elsewhere(thread, parked(served)?)),
        Left::ForOthers(threads) => Ok(Ended::Among(threads, parked(served)?)),
        Left::Over => {
            served.forget_input();
            end(served.core, served.stream, served.epoch).await;
            Ok(Ended::Over)
        }
    }
}

/// Hangs up, and gives back what is left.
async fn end(core: Box<dyn Connection>, mut stream: Socket, epoch: Instant) {
    let settling = async {
        if !core.is_over() {
            settle_remains(core, epoch).await;
        }
    };
    let hanging_up = async {
        // However it ends, the socket is closed then.
        let _ = tokio::time::timeout(LINGER, poll_fn(|cx| hang_up(&mut stream, cx))).await;
        drop(stream);
    };
    let mut both = (Box::pin(settling), Box::pin(hanging_up));
    let mut done = (false, false);
    poll_fn(|cx| {
        done.0 = done.0 || both.0.as_mut().poll(cx).is_ready();
        done.1 = done.1 || both.1.as_mut().poll(cx).is_ready();
        if done == (true, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

impl<S> Served<S> {
    /// A new connection. `epoch` is the moment from which its clock counts.
    pub fn new(stream: S, core: Box<dyn Connection>, epoch: Instant) -> Self {
        Self {
            core,
            stream,
            out: Output::default(),
            small: Vec::new(),
            large: None,
            refused: false,
            satisfied: false,
            room: 0,
            epoch,
            give_up_at: None,
            timer: None,
            timer_at: Millis::MAX,
            now: 0,
            window: 0,
        }
    }

    /// The same connection with its socket in another form, and without a timer: both belong to a thread. Its first round
    /// there takes what the broker sent meanwhile, which woke nobody.
    ///
    /// # Errors
    /// What `change` says.
    pub fn with_socket<T>(self, change: impl FnOnce(S) -> std::io::Result<T>) -> std::io::Result<Served<T>> {
        let fresh = Served::new(change(self.stream)?, self.core, self.epoch);
        Ok(Served {
            out: self.out,
            small: self.small,
            large: self.large,
            refused: self.refused,
            satisfied: self.satisfied,
            give_up_at: self.give_up_at,
            ..fresh
        })
    }
}

impl Served {
    /// Ready once the connection is over, or must go elsewhere.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Left> {
        let mut waits = false;
        self.room = WRITTEN;
        for _ in 0..ROUNDS {
            match self.round(cx) {
                Round::Again if self.room == 0 => break,
                Round::Again => {}
                Round::Wait => {
                    waits = true;
                    break;
                }
                Round::Yield => break,
                Round::Over => return Poll::Ready(Left::Over),
            }
        }
        if let Some(threads) = self.core.leaves_for() {
            return Poll::Ready(Left::ForOthers(threads));
        }
        if let Some(to) = load::turned(self.now, &mut self.window, self.core.take_done()) {
            return Poll::Ready(Left::For(to));
        }
        if !waits {
            // Woken by itself, a task is run up to sixty times before its runtime looks at sockets: for whoever shares the thread
            // with a publisher at full speed that is 30 reads of 132 KiB, milliseconds. This costs a look at the sockets each.
            let others = std::pin::pin!(tokio::task::yield_now());
            let _ = others.poll(cx);
        }
        Poll::Pending
    }

    fn round(&mut self, cx: &mut Context<'_>) -> Round {
        let now = self.epoch.elapsed().as_millis() as Millis;
        self.now = now;
        if self.timer_is_due(now) {
            self.core.tick(now, &mut self.out);
        }
        self.core.turn(cx.waker(), now, &mut self.out);
        let more = self.write(cx, now);
        if self.core.is_finished() {
            let until = *self.give_up_at.get_or_insert(now + FLUSH_TIMEOUT);
            if (self.out.is_empty() && !self.stream.has_unsent()) || now >= until {
                return Round::Over;
            }
        }
        self.arm_timer(now, cx);
        if std::mem::take(&mut self.satisfied) || self.core.is_giving_back() {
            return Round::Yield;
        }
        if !self.core.wants_input(&self.out) {
            return if more { Round::Yield } else { Round::Wait };
        }
        if std::mem::take(&mut self.refused) {
            self.offer_again(now);
            return Round::Again;
        }
        match self.read(cx, now) {
            Round::Wait if more => Round::Yield,
            round => round,
        }
    }

    /// Writes what there is. True if the socket would take more.
    fn write(&mut self, cx: &mut Context<'_>, now: Millis) -> bool {
        for _ in 0..WRITES {
            if self.room == 0 {
                return true;
            }
            self.core.fill(&mut self.out);
            let (out, behind) = (self.out.unwritten(), self.core.behind());
            let (out, rest) = out.split_at(out.len().min(self.room));
            let behind = match rest.is_empty() {
                true => &behind[..behind.len().min(self.room - out.len())],
                false => &[],
            };
            if out.is_empty() && behind.is_empty() {
                if self.stream.has_unsent() {
                    self.flush(cx, now);
                }
                return false;
            }
            let stream = Pin::new(&mut self.stream);
            let written = match behind.is_empty() {
                true => stream.poll_write(cx, out),
                false => stream.poll_write_vectored(cx, &[IoSlice::new(out), IoSlice::new(behind)]),
            };
            match written {
                Poll::Ready(Ok(count)) => {
                    let of_out = count.min(out.len());
                    if count > of_out {
                        self.core.wrote_behind(count - of_out);
                    }
                    self.out.wrote(of_out);
                    self.core.sent(count);
                    self.room = self.room.saturating_sub(count);
                }
                Poll::Pending => return false,
                Poll::Ready(Err(error)) => {
                    self.unwritable(&error, now);
                    return false;
                }
            }
        }
        true
    }

    /// Sends on what TLS holds back of what was written.
    fn flush(&mut self, cx: &mut Context<'_>, now: Millis) {
        if let Poll::Ready(Err(error)) = Pin::new(&mut self.stream).poll_flush(cx) {
            self.unwritable(&error, now);
        }
    }

    fn unwritable(&mut self, error: &std::io::Error, now: Millis) {
        let why = format!("the client cannot be written to: {error}");
        self.core.hung_up(&why, now, &mut self.out);
    }

    /// Reads once.
    fn read(&mut self, cx: &mut Context<'_>, now: Millis) -> Round {
        let mut large = self.large.take().unwrap_or_else(|| {
            let mut buffer = pool::take_read(0);
            buffer[..self.small.len()].copy_from_slice(&self.small);
            Large {
                buffer,
                kept: self.small.len(),
            }
        });
        if large.kept == large.buffer.len() {
            large.grow(self.core.frame_length(&large.buffer));
        }
        let mut space = ReadBuf::new(&mut large.buffer[large.kept..]);
        let poll = Pin::new(&mut self.stream).poll_read(cx, &mut space);
        let count = space.filled().len();
        match poll {
            Poll::Pending => {
                self.keep(large);
                Round::Wait
            }
            Poll::Ready(Ok(())) if count > 0 => {
                self.core.received(count);
                large.kept += count;
                self.satisfied = count >= LARGE_READ;
                self.feed(large, now);
                Round::Again
            }
            ended => {
                self.keep(large);
                let why = match ended {
                    Poll::Ready(Err(error)) => format!("the client cannot be read from: {error}"),
                    _ => "client unexpectedly closed TCP connection".into(),
                };
                self.core.hung_up(&why, now, &mut self.out);
                Round::Over
            }
        }
    }

    fn offer_again(&mut self, now: Millis) {
        if let Some(large) = self.large.take() {
            self.feed(large, now);
        } else if !self.small.is_empty() {
            let mut buffer = pool::take_read(0);
            let kept = self.small.len();
            buffer[..kept].copy_from_slice(&self.small);
            self.feed(Large { buffer, kept }, now);
        }
    }

    /// Hands what is in the buffer to the core, and keeps what it leaves.
    fn feed(&mut self, mut large: Large, now: Millis) {
        let taken = self.core.input(&large.buffer[..large.kept], now, &mut self.out);
        large.buffer.copy_within(taken..large.kept, 0);
        large.kept -= taken;
        self.refused = large.kept > 0 && !self.core.wants_input(&self.out);
        self.satisfied |= self.refused && self.core.is_tired();
        self.keep(large);
    }

    fn keep(&mut self, large: Large) {
        if large.kept > SMALL {
            self.large = Some(large);
            self.small = Vec::new();
            return;
        }
        self.small.clear();
        if self.small.capacity() > 4 * large.kept {
            self.small = Vec::new();
        }
        self.small.extend_from_slice(&large.buffer[..large.kept]);
        pool::give_read(large.buffer);
    }

    fn forget_input(&mut self) {
        if let Some(large) = self.large.take() {
            pool::give_read(large.buffer);
        }
        self.small = Vec::new();
    }

    fn timer_is_due(&self, now: Millis) -> bool {
        now >= self.timer_at
    }

    /// Has the task woken for the core's next tick. A timer that is too early is left as it is: it is cheaper to wake
    /// once for nothing than to move it with every frame.
    fn arm_timer(&mut self, now: Millis, cx: &mut Context<'_>) {
        let Some(at) = self.core.next_tick().into_iter().chain(self.give_up_at).min() else {
            self.timer_at = Millis::MAX;
            return;
        };
        if at >= self.timer_at && self.timer_at > now {
            return;
        }
        self.timer_at = at;
        let deadline = tokio::time::Instant::from_std(self.epoch + Duration::from_millis(at));
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(deadline),
            None => self.timer = Some(Box::pin(tokio::time::sleep_until(deadline))),
        }
        if let Some(timer) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
        {
            cx.waker().wake_by_ref();
        }
    }
}

impl Large {
    /// The frame is larger than the buffer; its size was checked against the agreed one. The buffer grows with what has come,
    /// not to what is announced.
    fn grow(&mut self, frame: Option<usize>) {
        let needed = frame
            .unwrap_or(0)
            .clamp(self.buffer.len() + 1, 2 * self.buffer.len());
        let mut buffer = pool::take_read(needed);
        buffer[..self.kept].copy_from_slice(&self.buffer[..self.kept]);
        pool::give_read(std::mem::replace(&mut self.buffer, buffer));
    }
}

/// Tells the peer that nothing more comes, then drops what it still sends until it hangs up too.
fn hang_up(stream: &mut Socket, cx: &mut Context<'_>) -> Poll<()> {
    match Pin::new(&mut *stream).poll_shutdown(cx) {
        Poll::Ready(Ok(())) => {}
        Poll::Ready(Err(_)) => return Poll::Ready(()),
        Poll::Pending => return Poll::Pending,
    }
    let mut dropped = pool::take_read(0);
    let poll = loop {
        let mut space = ReadBuf::new(&mut dropped);
        match Pin::new(&mut *stream).poll_read(cx, &mut space) {
            Poll::Ready(Ok(())) if !space.filled().is_empty() => {}
            Poll::Pending => break Poll::Pending,
            Poll::Ready(_) => break Poll::Ready(()),
        }
    };
    pool::give_read(dropped);
    poll
}

/// Waits for what the broker may still send to a connection that is gone; the core gives it back.
async fn settle_remains(mut core: Box<dyn Connection>, epoch: Instant) {
    let now = || epoch.elapsed().as_millis() as Millis;
    while core.is_giving_back() {
        core.turn(Waker::noop(), now(), &mut Output::default());
        tokio::task::yield_now().await;
    }
    while let (false, Some(at)) = (core.is_over(), core.next_tick()) {
        let deadline = tokio::time::Instant::from_std(epoch + Duration::from_millis(at));
        let mut timer = Box::pin(tokio::time::sleep_until(deadline));
        poll_fn(|cx| {
            core.turn(cx.waker(), now(), &mut Output::default());
            timer.as_mut().poll(cx)
        })
        .await;
        core.tick(now(), &mut Output::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::{Amqp, Options};
    use crate::balance::Moves;
    use crate::connection::{Done, FrontEnd, Name};
    use broker::Outbox;
    use listener::Stream;
    use protocol::amqp::handshake::PROTOCOL_HEADER;
    use std::io::{Read, Write};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::net::TcpStream;
    use tokio::runtime::{Builder, Runtime};

    fn thread() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn a_connection_takes_with_it_what_came_on_the_way_to_another_thread() {
        let data = tempfile::tempdir().unwrap();
        let broker = broker::Broker::open(broker::Options::new(data.path())).unwrap();
        let amqp = Arc::new(Amqp::new(broker, Options::default(), Arc::default()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let name = Name { peer, local: peer };

        let first = thread();
        let ended = first.block_on(async {
            let core = amqp.connect(name, None, 0);
            let served = Served::new(
                Socket::Plain(Stream::Tcp(TcpStream::from_std(socket).unwrap())),
                core,
                Instant::now(),
            );
            load::order(Moves { to: 1, left: 1 });
            serve(served).await.unwrap()
        });
        drop(first);
        let Ended::Elsewhere(1, served) = ended else {
            panic!("it stayed");
        };
        client.write_all(&PROTOCOL_HEADER).unwrap();
        let client = std::thread::spawn(move || {
            let mut start = [0; 11];
            client.read_exact(&mut start).unwrap();
            start
        });
        let ended = thread().block_on(async {
            serve(served.with_socket(Socket::from_std).unwrap())
                .await
                .unwrap()
        });
        assert!(matches!(ended, Ended::Over));
        let start = client.join().unwrap();
        assert_eq!(
            (start[0], &start[7..]),
            (1, &[0, 10, 0, 10][..]),
            "connection.start"
        );
    }

    /// Writes for ever, in large pieces.
    struct Flood {
        outbox: Arc<Outbox>,
        sent: Arc<AtomicUsize>,
    }

    const LARGE: usize = 16 * PIECE;

    impl Connection for Flood {
        fn outbox(&self) -> &Arc<Outbox> {
            &self.outbox
        }

        fn wants_input(&self, _: &Output) -> bool {
            true
        }

        fn is_tired(&self) -> bool {
            false
        }

        fn is_giving_back(&self) -> bool {
            false
        }

        fn received(&mut self, _: usize) {}

        fn sent(&mut self, bytes: usize) {
            self.sent.fetch_add(bytes, Ordering::Relaxed);
        }

        fn take_done(&mut self) -> Done {
            Done::Other
        }

        fn input(&mut self, bytes: &[u8], _: Millis, _: &mut Output) -> usize {
            bytes.len()
        }

        fn frame_length(&self, _: &[u8]) -> Option<usize> {
            None
        }

        fn turn(&mut self, _: &Waker, _: Millis, _: &mut Output) {}

        fn fill(&mut self, out: &mut Output) {
            if out.is_empty() {
                out.bytes().resize(LARGE, 7);
            }
        }

        fn next_tick(&self) -> Option<Millis> {
            None
        }

        fn tick(&mut self, _: Millis, _: &mut Output) {}

        fn hung_up(&mut self, _: &str, _: Millis, _: &mut Output) {}

        fn is_finished(&self) -> bool {
            false
        }

        fn is_over(&self) -> bool {
            true
        }
    }

    #[test]
    fn who_has_much_to_write_lets_others_have_their_turn_and_goes_on() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        // Credit, as readers give: there is always something to read, too.
        client.write_all(&[0; 1_000]).unwrap();
        let client = std::thread::spawn(move || {
            let mut all = vec![0; 5 * WRITTEN];
            client.read_exact(&mut all).unwrap();
        });
        let sent = Arc::new(AtomicUsize::new(0));
        thread().block_on(async {
            let core = Flood {
                outbox: Arc::default(),
                sent: sent.clone(),
            };
            let socket = Socket::Plain(Stream::Tcp(TcpStream::from_std(socket).unwrap()));
            let mut served = Served::new(socket, Box::new(core), Instant::now());
            let mut before = 0;
            poll_fn(|cx| {
                let _ = served.poll(cx);
                let all = sent.load(Ordering::Relaxed);
                assert!(all - before <= WRITTEN, "{} bytes at once", all - before);
                before = all;
                match all < 5 * WRITTEN {
                    true => Poll::Pending,
                    false => Poll::Ready(()),
                }
            })
            .await;
        });
        client.join().unwrap();
    }
}
