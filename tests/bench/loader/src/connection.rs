//! A blocking AMQP connection with one open channel.

use crate::options::Options;
use protocol::amqp::method::*;
use protocol::amqp::{Arguments, LongStr, Method, Part, RawTable, encode, next_frame};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The only channel in use.
pub const CHANNEL: u16 = 1;
/// What one read may bring, in bytes.
const READ_BUFFER: usize = 256 * 1024;
/// How long a read waits before it gives the caller a chance to look around.
const READ_PATIENCE: Duration = Duration::from_millis(100);
/// After this time without an answer the broker counts as stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(60);

/// A socket and what was read from it.
pub struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The whole frame, as agreed; in bytes.
    pub frame_max: u32,
}

impl Connection {
    /// Connects, logs in to the vhost `/` and opens [`CHANNEL`].
    ///
    /// # Errors
    /// If the broker can't be reached or does not let us in.
    pub fn open(options: &Options) -> Result<Self, String> {
        let address = (options.host.as_str(), options.port);
        let stream = TcpStream::connect(address).map_err(|e| format!("can't connect to {address:?}: {e}"))?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        stream
            .set_read_timeout(Some(READ_PATIENCE))
            .map_err(|e| e.to_string())?;
        let buffer = vec![0; READ_BUFFER].into_boxed_slice();
        let mut connection = Self {
            stream,
            buffer,
            start: 0,
            end: 0,
            frame_max: 0,
        };
        connection.write(b"AMQP\x00\x00\x09\x01")?;
        connection.await_method(|m| matches!(m, Method::ConnectionStart(_)).then_some(()))?;
        let response = format!("\0{}\0{}", options.user, options.password);
        connection.send(
            0,
            &ConnectionStartOk {
                client_properties: RawTable(b"\x07productS\0\0\0\x14leveret-bench-loader"),
                mechanism: "PLAIN",
                response: LongStr(response.as_bytes()),
                locale: "en_US",
            },
        )?;
        let tune = connection.await_method(|m| match m {
            Method::ConnectionTune(tune) => Some(*tune),
            _ => None,
        })?;
        connection.frame_max = tune.frame_max;
        let (channel_max, frame_max) = (tune.channel_max, tune.frame_max);
        connection.send(
            0,
            &ConnectionTuneOk {
                channel_max,
                frame_max,
                heartbeat: 0,
            },
        )?;
        connection.send(0, &ConnectionOpen { virtual_host: "/" })?;
        connection.await_method(|m| matches!(m, Method::ConnectionOpenOk(_)).then_some(()))?;
        connection.send(CHANNEL, &ChannelOpen {})?;
        connection.await_method(|m| matches!(m, Method::ChannelOpenOk(_)).then_some(()))?;
        Ok(connection)
    }

    /// Sends one method.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn send<'a, A: Arguments<'a>>(&mut self, channel: u16, method: &A) -> Result<(), String> {
        let mut frame = Vec::new();
        encode::method(&mut frame, channel, method);
        self.write(&frame)
    }

    /// Writes frames.
    ///
    /// # Errors
    /// If the connection is broken; with the broker's reason, if it gave one.
    pub fn write(&mut self, frames: &[u8]) -> Result<(), String> {
        self.stream
            .write_all(frames)
            .map_err(|error| match self.reason() {
                Some(reason) => reason,
                None => format!("writing: {error}"),
            })
    }

    /// Reads what is there into the buffer, behind what is still unread. `false` if nothing came for a while.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn fill(&mut self) -> Result<bool, String> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        match self.stream.read(&mut self.buffer[self.end..]) {
            Ok(0) => Err("the broker closed the connection".to_owned()),
            Ok(n) => {
                self.end += n;
                Ok(true)
            }
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                Ok(false)
            }
            Err(e) => Err(format!("reading: {e}")),
        }
    }

    /// What was read and not used yet.
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Marks the first `bytes` of [`Self::unread`] as used.
    pub fn used(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Waits for the method that `wanted` picks; others are passed over, but for a close, which is an error.
    ///
    /// # Errors
    /// If the broker closes, sends what can't be read, or keeps silent.
    pub fn await_method<T>(&mut self, mut wanted: impl FnMut(&Method<'_>) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + STUCK_AFTER;
        loop {
            while let Some((used, picked)) = first_method(&self.buffer[self.start..self.end], &mut wanted)? {
                self.start += used;
                if let Some(picked) = picked {
                    return Ok(picked);
                }
            }
            if !self.fill()? && Instant::now() > deadline {
                return Err("the broker does not answer".to_owned());
            }
        }
    }

    /// Says goodbye and does not wait for the answer of a broker that is busy.
    pub fn close(mut self) {
        let goodbye = ConnectionClose {
            reply_code: 200,
            reply_text: "",
            class_id: 0,
            method_id: 0,
        };
        if self.send(0, &goodbye).is_ok() {
            let _ = self.await_method(|m| matches!(m, Method::ConnectionCloseOk(_)).then_some(()));
        }
    }

    /// After a failed write: the close that the broker may have sent before.
    fn reason(&mut self) -> Option<String> {
        loop {
            match first_method(&self.buffer[self.start..self.end], &mut |_| None::<()>) {
                Ok(Some((used, _))) => self.start += used,
                Ok(None) if matches!(self.fill(), Ok(true)) => {}
                Ok(None) => return None,
                Err(reason) => return Some(reason),
            }
        }
    }
}

/// The first frame of `bytes`: its length, and what `wanted` makes of it. `None` if it is not all there.
///
/// # Errors
/// If it is a close, or no frame.
pub fn first_method<T>(
    bytes: &[u8],
    wanted: &mut impl FnMut(&Method<'_>) -> Option<T>,
) -> Result<Option<(usize, Option<T>)>, String> {
    let Some((frame, used)) = next_frame(bytes, 0).map_err(|e| e.to_string())? else {
        return Ok(None);
    };
    let Part::Method(id, fields) = frame.part().map_err(|e| e.reply_text())? else {
        return Ok(Some((used, None)));
    };
    let method = Method::decode(id, fields).map_err(|e| e.exception().reply_text())?;
    let close = match method {
        Method::ConnectionClose(close) => Some((close.reply_code, close.reply_text)),
        Method::ChannelClose(close) => Some((close.reply_code, close.reply_text)),
        Method::BasicCancel(_) => Some((0, "the broker cancelled the consumer")),
        Method::BasicNack(_) => Some((0, "the broker refused a message with basic.nack")),
        _ => None,
    };
    match close {
        Some((code, text)) => Err(format!("{id}: {code} {text}")),
        None => Ok(Some((used, wanted(&method)))),
    }
}
