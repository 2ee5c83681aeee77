//! A connection inside a WebSocket (RFC 6455), which is how programs in browsers reach a broker: its bytes are what clients' binary
//! messages carry, wherever one message ends and the next begins.
//!
//! Frames are taken apart as they come and never collected, so their lengths cost no memory; whoever reads the bytes has limits of
//! its own.

use crate::Socket;
use crate::stream::Stream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is read from a socket at a time, in bytes.
const READ: usize = 16 * 1024;
/// The longest frame that is written, in bytes.
const FRAME: usize = 32 * 1024;
/// The longest control frame (RFC 6455, 5.5).
const CONTROL: usize = 125;
/// When so many bytes wait to be written, pings get no answer: their sender does not read.
const UNSENT_MOST: usize = 2 * FRAME;

const CONTINUATION: u8 = 0;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Codes of goodbyes (RFC 6455, 7.4.1).
const NORMAL: u16 = 1000;
const PROTOCOL_ERROR: u16 = 1002;
const UNACCEPTABLE: u16 = 1003;

/// A WebSocket after its handshake.
#[derive(Debug)]
pub struct Web<S = Stream> {
    socket: Socket<S>,
    decoder: Decoder,
    /// What came and is not decoded yet: from `at` on.
    raw: Vec<u8>,
    at: usize,
    /// Whole frames that the socket has not taken yet.
    unsent: Vec<u8>,
    /// The goodbye was said.
    closing: bool,
    /// The client sends nothing more.
    ended: bool,
}

impl<S> Web<S> {
    /// Around a socket whose handshake is done. `came` is what the client sent behind it.
    pub fn new(socket: Socket<S>, came: &[u8]) -> Self {
        Self {
            socket,
            decoder: Decoder::default(),
            raw: came.to_vec(),
            at: 0,
            unsent: Vec::new(),
            closing: false,
            ended: false,
        }
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.socket.has_unsent()
    }

    pub(crate) fn change<T>(self, change: impl FnOnce(S) -> io::Result<T>) -> io::Result<Web<T>> {
        Ok(Web {
            socket: self.socket.change(change)?,
            decoder: self.decoder,
            raw: self.raw,
            at: self.at,
            unsent: self.unsent,
            closing: self.closing,
            ended: self.ended,
        })
    }

    fn say_goodbye(&mut self, code: u16) {
        if !std::mem::replace(&mut self.closing, true) {
            write_frame(&mut self.unsent, CLOSE, &code.to_be_bytes());
        }
    }

    /// Decodes what came, as far as the reader has room.
    fn decode(&mut self, buffer: &mut ReadBuf<'_>) {
        while self.at < self.raw.len() && buffer.remaining() > 0 && !self.ended {
            let (taken, event) = self.decoder.step(&self.raw[self.at..], buffer);
            self.at += taken;
            match event {
                None => {}
                Some(Event::Ping(payload)) if self.unsent.len() < UNSENT_MOST && !self.closing => {
                    write_frame(&mut self.unsent, PONG, &payload);
                }
                Some(Event::Ping(_)) => {}
                Some(Event::Close) => {
                    self.say_goodbye(NORMAL);
                    self.ended = true;
                }
                Some(Event::Wrong(code)) => {
                    self.say_goodbye(code);
                    self.ended = true;
                }
            }
        }
        if self.at == self.raw.len() {
            self.raw.clear();
            self.at = 0;
        }
    }
}

impl Web {
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut sent = 0;
        let outcome = loop {
            if sent == self.unsent.len() {
                break Pin::new(&mut self.socket).poll_flush(cx);
            }
            match Pin::new(&mut self.socket).poll_write(cx, &self.unsent[sent..]) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => sent += count,
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        self.unsent.drain(..sent);
        outcome
    }
}

impl AsyncRead for Web {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        loop {
            this.decode(buffer);
            if !this.unsent.is_empty() {
                // What the socket does not take now is `has_unsent`.
                if let Poll::Ready(Err(error)) = this.flush(cx) {
                    return Poll::Ready(Err(error));
                }
            }
            if this.ended || buffer.filled().len() > before || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            this.raw.resize(READ, 0);
            let mut space = ReadBuf::new(&mut this.raw);
            let polled = Pin::new(&mut this.socket).poll_read(cx, &mut space);
            let count = space.filled().len();
            this.raw.truncate(count);
            match polled {
                Poll::Pending => {
                    // Nobody holds memory while they are silent.
                    this.raw = Vec::new();
                    return Poll::Pending;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) if count == 0 => this.ended = true,
                Poll::Ready(Ok(())) => {}
            }
        }
    }
}

impl AsyncWrite for Web {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.flush(cx))?;
        if this.closing {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = bytes.len().min(FRAME);
        write_frame(&mut this.unsent, BINARY, &bytes[..count]);
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
        this.say_goodbye(NORMAL);
        ready!(this.flush(cx))?;
        Pin::new(&mut this.socket).poll_shutdown(cx)
    }
}

/// A frame of the server's: whole and without a mask.
fn write_frame(out: &mut Vec<u8>, opcode: u8, payload: &[u8]) {
    out.push(0x80 | opcode);
    match payload.len() {
        short @ 0..=125 => out.push(short as u8),
        middle @ 126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// Something else than bytes for the reader.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Ping(Vec<u8>),
    Close,
    /// The client breaks the rules: the code to say.
    Wrong(u16),
}

/// Takes a client's frames apart.
#[derive(Debug, Default)]
struct Decoder {
    /// The frame's head as far as it came.
    head: Vec<u8>,
    /// The frame whose payload is being read.
    frame: Option<Frame>,
    /// A message has begun whose last frame has not come.
    inside: bool,
}

#[derive(Debug)]
struct Frame {
    opcode: u8,
    mask: [u8; 4],
    /// Bytes of the payload that were read, and those that are missing.
    read: u64,
    left: u64,
    /// The payload of a control frame.
    control: Vec<u8>,
}

impl Decoder {
    /// Takes bytes of one frame's head or payload. Says how many it took, at least one.
    fn step(&mut self, bytes: &[u8], buffer: &mut ReadBuf<'_>) -> (usize, Option<Event>) {
        let Some(frame) = &mut self.frame else {
            let Some(byte) = bytes.first() else {
                return (0, None);
            };
            self.head.push(*byte);
            return (1, self.begin());
        };
        let mut count = usize::try_from(frame.left).unwrap_or(usize::MAX).min(bytes.len());
        let masked =
            |frame: &Frame, at: usize| bytes[at] ^ frame.mask[((frame.read + at as u64) % 4) as usize];
        if frame.opcode < CLOSE {
            count = count.min(buffer.remaining());
            let space = buffer.initialize_unfilled_to(count);
            for (at, byte) in space.iter_mut().enumerate() {
                *byte = masked(frame, at);
            }
            buffer.advance(count);
        } else {
            let plain: Vec<u8> = (0..count).map(|at| masked(frame, at)).collect();
            frame.control.extend(plain);
        }
        frame.read += count as u64;
        frame.left -= count as u64;
        (count, self.end())
    }

    /// Looks whether the head is whole, and what frame it begins.
    fn begin(&mut self) -> Option<Event> {
        let (first, second) = (*self.head.first()?, *self.head.get(1)?);
        let (last, opcode, length) = (first & 0x80 != 0, first & 0x0f, second & 0x7f);
        // No extension was agreed on, clients mask (5.1), and control frames are short and whole (5.5).
        let control = opcode >= CLOSE;
        if first & 0x70 != 0 || second & 0x80 == 0 || (control && (!last || usize::from(length) > CONTROL)) {
            return Some(Event::Wrong(PROTOCOL_ERROR));
        }
        match opcode {
            CONTINUATION if !self.inside => return Some(Event::Wrong(PROTOCOL_ERROR)),
            BINARY if self.inside => return Some(Event::Wrong(PROTOCOL_ERROR)),
            CONTINUATION | BINARY | CLOSE | PING | PONG => {}
            1 => return Some(Event::Wrong(UNACCEPTABLE)),
            _ => return Some(Event::Wrong(PROTOCOL_ERROR)),
        }
        let extended = match length {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if self.head.len() < 6 + extended {
            return None;
        }
        let (size, mask) = self.head[2..].split_at(extended);
        let left = match extended {
            0 => u64::from(length),
            _ => size.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        if left > i64::MAX as u64 {
            return Some(Event::Wrong(PROTOCOL_ERROR));
        }
        self.frame = Some(Frame {
            opcode,
            mask: [mask[0], mask[1], mask[2], mask[3]],
            read: 0,
            left,
            control: Vec::new(),
        });
        self.head.clear();
        if !control {
            self.inside = !last;
        }
        self.end()
    }

    /// What a frame means once it is whole.
    fn end(&mut self) -> Option<Event> {
        let frame = self.frame.take_if(|frame| frame.left == 0)?;
        match frame.opcode {
            PING => Some(Event::Ping(frame.control)),
            CLOSE => Some(Event::Close),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        write_frame(&mut frame, 0, payload);
        frame[0] = first;
        frame[1] |= 0x80;
        let at = frame.len() - payload.len();
        let mask = [1, 2, 3, 250];
        frame.splice(at..at, mask);
        for (number, byte) in frame[at + 4..].iter_mut().enumerate() {
            *byte ^= mask[number % 4];
        }
        frame
    }

    /// What a client that sends this makes us read, and what it gets.
    fn talk(sent: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let (ours, mut theirs) = tokio::net::UnixStream::pair().unwrap();
            let mut web = Web::new(Socket::Plain(Stream::Local(ours)), &sent[..sent.len() / 3]);
            theirs.write_all(&sent[sent.len() / 3..]).await.unwrap();
            theirs.shutdown().await.unwrap();
            let mut read = Vec::new();
            web.read_to_end(&mut read).await.unwrap();
            web.shutdown().await.unwrap();
            // What was not read would cut off the goodbye.
            let mut got = Vec::new();
            theirs.read_to_end(&mut got).await.unwrap();
            drop(web);
            (read, got)
        })
    }

    #[test]
    fn pings_are_answered_and_goodbyes_returned() {
        let sent = [
            masked(0x02, b"AM"),
            masked(0x89, b"still there?"),
            masked(0x80, b"QP"),
            masked(0x88, &1000u16.to_be_bytes()),
            masked(0x82, b"late"),
        ];
        let (read, got) = talk(&sent.concat());
        assert_eq!(read, b"AMQP");
        assert_eq!(
            got,
            [&[0x8a, 12][..], b"still there?", &[0x88, 2, 0x03, 0xe8]].concat()
        );
    }

    #[test]
    fn whoever_breaks_the_rules_is_told_which_and_heard_no_more() {
        let bare = {
            let mut frame = Vec::new();
            write_frame(&mut frame, BINARY, b"no mask");
            frame
        };
        let cases = [
            (bare, PROTOCOL_ERROR),
            (masked(0x81, b"text"), UNACCEPTABLE),
            (masked(0x80, b"continues nothing"), PROTOCOL_ERROR),
            (
                [masked(0x02, b""), masked(0x82, b"inside")].concat(),
                PROTOCOL_ERROR,
            ),
            (masked(0xc2, b"extension"), PROTOCOL_ERROR),
            (masked(0x83, b"reserved"), PROTOCOL_ERROR),
            (masked(0x09, b"broken ping"), PROTOCOL_ERROR),
            (masked(0x89, &[0; 126]), PROTOCOL_ERROR),
            (
                vec![0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4],
                PROTOCOL_ERROR,
            ),
        ];
        for (sent, code) in cases {
            let goodbye = [&[0x88, 2][..], &code.to_be_bytes()].concat();
            assert_eq!(talk(&sent), (Vec::new(), goodbye), "{sent:?}");
        }
    }

    proptest! {
        #[test]
        fn bytes_arrive_however_messages_are_cut(payload in prop::collection::vec(any::<u8>(), 0..2_000), cut in 1usize..700, whole in any::<bool>()) {
            let mut sent = Vec::new();
            let pieces: Vec<&[u8]> = payload.chunks(cut).collect();
            for (at, piece) in pieces.iter().enumerate() {
                let (first, last) = (whole || at == 0, whole || at + 1 == pieces.len());
                let opcode = if first { BINARY } else { CONTINUATION };
                sent.extend(masked(opcode | if last { 0x80 } else { 0 }, piece));
            }
            prop_assert_eq!(talk(&sent).0, payload);
        }
    }
}
