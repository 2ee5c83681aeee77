//! What a client has read and not used, cut into what it has to act on.

use super::transport::Transport;
use crate::failure::Failure;
use protocol::amqp::frame::{HEAD, METHOD};
use protocol::amqp::{Method, MethodId, Part, next_frame};
use std::io;
use std::time::Duration;

/// What one read may bring, in bytes.
const READ: usize = 16 * 1024;
/// No frame is larger, even if the broker agreed to frames of any size, in bytes.
const LARGEST_FRAME: u32 = 16 * 1024 * 1024;

/// What a frame led to.
#[derive(Debug, PartialEq)]
pub enum Event<T> {
    /// What was waited for.
    Picked(T),
    /// Nothing that concerns anybody: heartbeats, messages, answers that nobody waits for.
    Passed,
    /// Channel, code, text, and the method that caused it.
    ChannelClosed(u16, u16, String, MethodId),
    ConnectionClosed(u16, String, MethodId),
    /// The broker takes no messages, with its reason; or takes them again.
    Blocked(Option<String>),
    /// `channel.flow`: it asks for an answer.
    Flow(u16, bool),
}

/// See the module.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    used: usize,
    /// The largest frame that was agreed; 0: no limit but ours.
    pub frame_max: u32,
}

impl Inbox {
    /// Nothing read, frames of up to `frame_max` bytes expected.
    pub fn new(frame_max: u32) -> Self {
        Self {
            bytes: Vec::new(),
            used: 0,
            frame_max,
        }
    }

    /// What was read and not used.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// The same, for whoever goes on.
    pub fn into_unread(mut self) -> Vec<u8> {
        self.bytes.drain(..self.used);
        self.bytes
    }

    /// Reads once, for at most `timeout`. `false`: the broker has closed the connection.
    ///
    /// # Errors
    /// As [`Transport::read`].
    pub fn fill(&mut self, transport: &mut Transport, timeout: Duration) -> io::Result<bool> {
        transport.set_read_timeout(timeout)?;
        self.bytes.drain(..self.used);
        self.used = 0;
        let unread = self.bytes.len();
        self.bytes.resize(unread + READ, 0);
        let read = transport.read(&mut self.bytes[unread..]);
        self.bytes.truncate(unread + *read.as_ref().unwrap_or(&0));
        read.map(|read| read > 0)
    }

    /// The next frame, if it is all there: methods of `channel` are shown to `pick`.
    ///
    /// # Errors
    /// [`Failure::Lost`] if the bytes are no AMQP, or a frame is larger than agreed.
    pub fn next<T>(
        &mut self,
        channel: u16,
        pick: &mut impl FnMut(&Method<'_>) -> Option<T>,
        place: &str,
    ) -> Result<Option<Event<T>>, Failure> {
        let broken = |why: &dyn std::fmt::Display| {
            Failure::Lost(format!(
                "the server at {place} sent what is not AMQP 0-9-1: {why}"
            ))
        };
        let limit = if self.frame_max == 0 {
            LARGEST_FRAME
        } else {
            self.frame_max
        };
        let rest = &self.bytes[self.used..];
        // A server of another kind sends what would be a huge frame; its first byte says so at once.
        if rest.len() >= HEAD && !matches!(rest[0], 1..=3 | 8) {
            return Err(broken(&format!("a frame of type {}", rest[0])));
        }
        let Some((frame, length)) = next_frame(rest, limit).map_err(|error| broken(&error))? else {
            return Ok(None);
        };
        self.used += length;
        if frame.kind != METHOD {
            return Ok(Some(Event::Passed));
        }
        let part = frame.part().map_err(|error| broken(&error.reply_text()))?;
        let Part::Method(id, fields) = part else {
            return Ok(Some(Event::Passed));
        };
        let method = Method::decode(id, fields).map_err(|error| broken(&error.exception().reply_text()))?;
        Ok(Some(match method {
            Method::ConnectionClose(close) => {
                let cause = MethodId {
                    class: close.class_id,
                    method: close.method_id,
                };
                Event::ConnectionClosed(close.reply_code, close.reply_text.to_owned(), cause)
            }
            Method::ChannelClose(close) => {
                let cause = MethodId {
                    class: close.class_id,
                    method: close.method_id,
                };
                Event::ChannelClosed(
                    frame.channel,
                    close.reply_code,
                    close.reply_text.to_owned(),
                    cause,
                )
            }
            Method::ConnectionBlocked(blocked) => Event::Blocked(Some(blocked.reason.to_owned())),
            Method::ConnectionUnblocked(_) => Event::Blocked(None),
            Method::ChannelFlow(flow) => Event::Flow(frame.channel, flow.active),
            method if frame.channel == channel => pick(&method).map_or(Event::Passed, Event::Picked),
            _ => Event::Passed,
        }))
    }
}
