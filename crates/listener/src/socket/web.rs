//! A connection inside a WebSocket (RFC 6455), which is how programs in browsers reach a broker: its bytes are what
//! clients' binary messages carry, wherever one message ends and the next begins.
//!
//! What a frame's head says is read and written by `tungstenite`. Its messages are not used: it collects each whole,
//! and clients put a publish of megabytes into one. Here payloads are handed on as they come and never collected, so
//! their lengths cost no memory; whoever reads the bytes has limits of its own.

use super::Socket;
use crate::stream::Stream;
use std::io::{self, Cursor};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

/// How much is read from a socket at a time, in bytes.
const READ: usize = 16 * 1024;
/// The longest frame that is written, in bytes.
const FRAME: usize = 32 * 1024;
/// The longest control frame (RFC 6455, 5.5).
const CONTROL: u64 = 125;
/// When so many bytes wait to be written, pings get no answer: their sender does not read.
const UNSENT_MOST: usize = 2 * FRAME;

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

    fn say_goodbye(&mut self, code: CloseCode) {
        if !std::mem::replace(&mut self.closing, true) {
            let code = u16::from(code).to_be_bytes();
            write_frame(&mut self.unsent, OpCode::Control(Control::Close), &code);
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
                    write_frame(&mut self.unsent, OpCode::Control(Control::Pong), &payload);
                }
                Some(Event::Ping(_)) => {}
                Some(Event::Close) => {
                    self.say_goodbye(CloseCode::Normal);
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
        write_frame(&mut this.unsent, OpCode::Data(Data::Binary), &bytes[..count]);
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
        this.say_goodbye(CloseCode::Normal);
        ready!(this.flush(cx))?;
        Pin::new(&mut this.socket).poll_shutdown(cx)
    }
}

/// A frame of the server's: whole and without a mask.
fn write_frame(out: &mut Vec<u8>, opcode: OpCode, payload: &[u8]) {
    let head = FrameHeader {
        opcode,
        ..FrameHeader::default()
    };
    // Memory takes everything.
    let _ = head.format(payload.len() as u64, out);
    out.extend_from_slice(payload);
}

/// By what a server shows that it has read a client's key (RFC 6455, 1.3).
pub fn accept_key(key: &str) -> String {
    tungstenite::handshake::derive_accept_key(key.as_bytes())
}

/// Something else than bytes for the reader.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Ping(Vec<u8>),
    Close,
    /// The client breaks the rules: the code to say.
    Wrong(CloseCode),
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
    opcode: OpCode,
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
        if matches!(frame.opcode, OpCode::Data(_)) {
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
        let wrong = Some(Event::Wrong(CloseCode::Protocol));
        // What is wrong with the first two bytes is said without waiting for the others.
        if let [_, second, ..] = self.head[..]
            && second & 0x80 == 0
        {
            return wrong;
        }
        let (head, left) = match FrameHeader::parse(&mut Cursor::new(&self.head)) {
            Ok(None) => return None,
            Ok(Some(found)) => found,
            Err(_) => return wrong,
        };
        let reserved = head.rsv1 || head.rsv2 || head.rsv3;
        // No extension was agreed on, clients mask (5.1), and lengths have 63 bits (5.2).
        let Some(mask) = head.mask.filter(|_| !reserved && left <= i64::MAX as u64) else {
            return wrong;
        };
        match head.opcode {
            // Control frames are short and whole (5.5).
            OpCode::Control(_) if !head.is_final || left > CONTROL => return wrong,
            OpCode::Control(_) => {}
            OpCode::Data(Data::Text) => return Some(Event::Wrong(CloseCode::Unsupported)),
            OpCode::Data(kind) if (kind == Data::Continue) != self.inside => return wrong,
            OpCode::Data(_) => self.inside = !head.is_final,
        }
        self.frame = Some(Frame {
            opcode: head.opcode,
            mask,
            read: 0,
            left,
            control: Vec::new(),
        });
        self.head.clear();
        self.end()
    }

    /// What a frame means once it is whole.
    fn end(&mut self) -> Option<Event> {
        let frame = self.frame.take_if(|frame| frame.left == 0)?;
        match frame.opcode {
            OpCode::Control(Control::Ping) => Some(Event::Ping(frame.control)),
            OpCode::Control(Control::Close) => Some(Event::Close),
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
        write_frame(&mut frame, OpCode::Data(Data::Binary), payload);
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
            write_frame(&mut frame, OpCode::Data(Data::Binary), b"no mask");
            frame
        };
        let cases = [
            (bare, CloseCode::Protocol),
            (masked(0x81, b"text"), CloseCode::Unsupported),
            (masked(0x80, b"continues nothing"), CloseCode::Protocol),
            (
                [masked(0x02, b""), masked(0x82, b"inside")].concat(),
                CloseCode::Protocol,
            ),
            (masked(0xc2, b"extension"), CloseCode::Protocol),
            (masked(0x83, b"reserved"), CloseCode::Protocol),
            (masked(0x09, b"broken ping"), CloseCode::Protocol),
            (masked(0x89, &[0; 126]), CloseCode::Protocol),
            (
                vec![0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4],
                CloseCode::Protocol,
            ),
        ];
        for (sent, code) in cases {
            let goodbye = [&[0x88, 2][..], &u16::from(code).to_be_bytes()].concat();
            assert_eq!(talk(&sent), (Vec::new(), goodbye), "{sent:?}");
        }
    }

    #[test]
    fn a_message_may_be_longer_than_any_memory() {
        let mut sent = vec![0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        sent.extend(b"AMQP and more");
        assert_eq!(talk(&sent).0, b"AMQP and more");
    }

    #[test]
    fn keys_are_answered_as_in_the_standard() {
        assert_eq!(
            accept_key("dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }

    proptest! {
        #[test]
        fn bytes_arrive_however_messages_are_cut(payload in prop::collection::vec(any::<u8>(), 0..2_000), cut in 1usize..700, whole in any::<bool>()) {
            let mut sent = Vec::new();
            let pieces: Vec<&[u8]> = payload.chunks(cut).collect();
            for (at, piece) in pieces.iter().enumerate() {
                let (first, last) = (whole || at == 0, whole || at + 1 == pieces.len());
                let opcode = if first { 2 } else { 0 };
                sent.extend(masked(opcode | if last { 0x80 } else { 0 }, piece));
            }
            prop_assert_eq!(talk(&sent).0, payload);
        }
    }
}
