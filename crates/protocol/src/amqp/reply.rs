//! Reply codes and exceptions: how AMQP says no.

use super::encode;
use super::method::{ChannelClose, ConnectionClose, MethodId};
use std::borrow::Cow;
use std::fmt;

/// Why a channel or connection is closed, or a message returned (AMQP 0-9-1 section 1.2, with RabbitMQ's
/// division into errors that cost the channel and errors that cost the connection).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ReplyCode {
    /// A clean close.
    Success = 200,
    /// A message is larger than somebody takes.
    ContentTooLarge = 311,
    /// A mandatory message has no queue to go to.
    NoRoute = 312,
    /// An immediate message has no consumer to go to; RabbitMQ never says it.
    NoConsumers = 313,
    /// An operator closes the connection, or the node shuts down.
    ConnectionForced = 320,
    /// An unknown virtual host; RabbitMQ says 530 instead.
    InvalidPath = 402,
    /// No permission, or a wrong login.
    AccessRefused = 403,
    /// There is no such queue or exchange.
    NotFound = 404,
    /// Another connection has the queue to itself.
    ResourceLocked = 405,
    /// Arguments that do not fit what is there, and most other mistakes.
    PreconditionFailed = 406,
    /// Bytes that are no frame, or a frame that is no method.
    FrameError = 501,
    /// Arguments that cannot be read.
    SyntaxError = 502,
    /// A method that makes no sense there.
    CommandInvalid = 503,
    /// A channel that is not in the right state.
    ChannelError = 504,
    /// A frame of another kind was due.
    UnexpectedFrame = 505,
    /// The server is short of something.
    ResourceError = 506,
    /// Forbidden by a limit, or an unknown virtual host.
    NotAllowed = 530,
    /// The server does not do that.
    NotImplemented = 540,
    /// The server's own fault.
    InternalError = 541,
}

impl ReplyCode {
    /// The number on the wire.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The name that every reply text begins with.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::ContentTooLarge => "CONTENT_TOO_LARGE",
            Self::NoRoute => "NO_ROUTE",
            Self::NoConsumers => "NO_CONSUMERS",
            Self::ConnectionForced => "CONNECTION_FORCED",
            Self::InvalidPath => "INVALID_PATH",
            Self::AccessRefused => "ACCESS_REFUSED",
            Self::NotFound => "NOT_FOUND",
            Self::ResourceLocked => "RESOURCE_LOCKED",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::FrameError => "FRAME_ERROR",
            Self::SyntaxError => "SYNTAX_ERROR",
            Self::CommandInvalid => "COMMAND_INVALID",
            Self::ChannelError => "CHANNEL_ERROR",
            Self::UnexpectedFrame => "UNEXPECTED_FRAME",
            Self::ResourceError => "RESOURCE_ERROR",
            Self::NotAllowed => "NOT_ALLOWED",
            Self::NotImplemented => "NOT_IMPLEMENTED",
            Self::InternalError => "INTERNAL_ERROR",
        }
    }

    /// True if it closes the connection and not just the channel.
    pub fn is_hard(self) -> bool {
        match self {
            Self::ConnectionForced | Self::InvalidPath => true,
            other => other.number() >= 500,
        }
    }
}

/// An error that the peer is told of by closing its channel or connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// What kind of error.
    pub code: ReplyCode,
    /// What went wrong, without the code's name.
    pub explanation: Cow<'static, str>,
    /// The method that caused it; [`MethodId::NONE`] if it was none.
    pub method: MethodId,
}

impl Exception {
    /// An exception that `method` caused.
    pub fn new(code: ReplyCode, explanation: impl Into<Cow<'static, str>>, method: MethodId) -> Self {
        Self {
            code,
            explanation: explanation.into(),
            method,
        }
    }

    /// `NAME - explanation`, cut to the 255 bytes of a short string, as RabbitMQ does it: 252 and three dots.
    /// Just the name if there is no explanation.
    pub fn reply_text(&self) -> String {
        let mut text = self.code.name().to_owned();
        if !self.explanation.is_empty() {
            text.push_str(" - ");
            text.push_str(&self.explanation);
        }
        if text.len() > 255 {
            text.truncate(text.floor_char_boundary(252));
            text.push_str("...");
        }
        text
    }

    /// True if the connection must be closed: for hard errors, and for all on channel 0.
    pub fn closes_connection(&self, channel: u16) -> bool {
        channel == 0 || self.code.is_hard()
    }

    /// Appends the `connection.close` or the `channel.close` that tells the peer.
    pub fn encode_close(&self, channel: u16, out: &mut Vec<u8>) {
        let reply_text = self.reply_text();
        let (reply_code, reply_text) = (self.code.number(), reply_text.as_str());
        let MethodId {
            class: class_id,
            method: method_id,
        } = self.method;
        if self.closes_connection(channel) {
            encode::method(
                out,
                0,
                &ConnectionClose {
                    reply_code,
                    reply_text,
                    class_id,
                    method_id,
                },
            );
        } else {
            encode::method(
                out,
                channel,
                &ChannelClose {
                    reply_code,
                    reply_text,
                    class_id,
                    method_id,
                },
            );
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code.number(), self.reply_text())
    }
}

impl std::error::Error for Exception {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_rabbitmqs_form() {
        let exception = Exception::new(ReplyCode::NotFound, "no queue 'q' in vhost '/'", MethodId::NONE);
        assert_eq!(exception.reply_text(), "NOT_FOUND - no queue 'q' in vhost '/'");
        assert_eq!(
            Exception::new(ReplyCode::InternalError, "", MethodId::NONE).reply_text(),
            "INTERNAL_ERROR"
        );
        let long = Exception::new(ReplyCode::NotFound, "é".repeat(200), MethodId::NONE).reply_text();
        assert!(long.len() <= 255 && long.ends_with("é..."), "{long}");
    }

    #[test]
    fn soft_errors_close_the_channel_and_hard_ones_the_connection() {
        let soft = Exception::new(
            ReplyCode::NotFound,
            "x",
            MethodId {
                class: 60,
                method: 20,
            },
        );
        let mut out = Vec::new();
        soft.encode_close(5, &mut out);
        assert_eq!(
            out,
            b"\x01\0\x05\0\0\0\x18\0\x14\0\x28\x01\x94\x0dNOT_FOUND - x\0\x3c\0\x14\xce"
        );
        out.clear();
        soft.encode_close(0, &mut out);
        assert_eq!(&out[7..11], b"\0\x0a\0\x32");
        assert!(ReplyCode::NotAllowed.is_hard() && ReplyCode::ConnectionForced.is_hard());
        assert!(!ReplyCode::NoRoute.is_hard() && !ReplyCode::PreconditionFailed.is_hard());
    }
}
