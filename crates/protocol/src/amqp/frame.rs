//! Frames: what a byte stream is cut into (AMQP 0-9-1 section 4.2.3).

use super::header::ContentHeader;
use super::method::MethodId;
use super::reply::{Exception, ReplyCode};
use model::table::text::Term;
use std::fmt;

/// The frame type of methods.
pub const METHOD: u8 = 1;
/// The frame type of content headers.
pub const HEADER: u8 = 2;
/// The frame type of content bodies.
pub const BODY: u8 = 3;
/// The frame type of heartbeats.
pub const HEARTBEAT: u8 = 8;
/// The octet that every frame ends with.
pub const END: u8 = 0xce;
/// Type, channel and size before the payload, in bytes.
pub const HEAD: usize = 7;
/// What a frame has beside its payload, in bytes.
pub const OVERHEAD: usize = HEAD + 1;
/// A heartbeat frame.
pub const HEARTBEAT_FRAME: [u8; OVERHEAD] = [HEARTBEAT, 0, 0, 0, 0, 0, 0, END];
/// RabbitMQ lets a payload be this much too large, since clients get it wrong by the size of an empty frame.
const FUDGE: u32 = OVERHEAD as u32;

/// One frame where it lies in the read buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// One of [`METHOD`], [`HEADER`], [`BODY`], [`HEARTBEAT`], or anything else a peer may send.
    pub kind: u8,
    /// 0 is the connection itself.
    pub channel: u16,
    /// What stands between head and end.
    pub payload: &'a [u8],
}

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A method: its number and its arguments, not decoded yet.
    Method(MethodId, &'a [u8]),
    /// A content header.
    Header(ContentHeader<'a>),
    /// A piece of a body.
    Body(&'a [u8]),
    /// A sign of life.
    Heartbeat,
}

/// Why bytes are not a frame. After one of these the two sides have lost step: nothing more can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The payload is larger than was agreed.
    TooLarge {
        /// The frame's type.
        kind: u8,
        /// The claimed size of its payload, in bytes.
        size: u32,
        /// The largest payload that keeps to `frame_max`, in bytes.
        limit: u32,
    },
    /// The frame does not end with [`END`].
    BadEnd {
        /// The frame's type.
        kind: u8,
        /// What stands there instead.
        marker: u8,
        /// The beginning of the payload.
        snippet: Snippet,
    },
}

/// The first 16 bytes of a payload, as RabbitMQ shows them in its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snippet {
    bytes: [u8; 16],
    length: usize,
}

impl Snippet {
    fn of(payload: &[u8]) -> Self {
        let mut bytes = [0; 16];
        let shown = payload.len().min(16);
        bytes[..shown].copy_from_slice(&payload[..shown]);
        Self {
            bytes,
            length: payload.len(),
        }
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.bytes[..self.length.min(16)];
        let which = if self.length > 16 { "first 16" } else { "all" };
        write!(f, "{which} octets = {}", Term(shown))
    }
}

impl FrameError {
    /// The connection error that RabbitMQ answers with.
    pub fn exception(&self) -> Exception {
        let text = match self {
            Self::TooLarge { kind, size, limit } => {
                format!("type {kind}, all octets = <<>>: {{frame_too_large,{size},{limit}}}")
            }
            Self::BadEnd {
                kind,
                marker,
                snippet,
            } => {
                format!("type {kind}, {snippet}: {{invalid_frame_end_marker,{marker}}}")
            }
        };
        Exception::new(ReplyCode::FrameError, text, MethodId::NONE)
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.exception().explanation)
    }
}

impl std::error::Error for FrameError {}

/// The first frame in `bytes` and how many of them it takes; `None` if it is not all there yet.
///
/// The claimed size is checked as soon as the head is there, so nobody waits for a payload that would be
/// refused. `frame_max` counts the whole frame; 0 means no limit.
///
/// # Errors
/// If the payload is too large or the frame end is not there.
#[inline]
pub fn next_frame(bytes: &[u8], frame_max: u32) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let [kind, c0, c1, s0, s1, s2, s3] = *head;
    let size = u32::from_be_bytes([s0, s1, s2, s3]);
    if frame_max != 0 && size > largest_payload(frame_max).saturating_add(FUDGE) {
        return Err(FrameError::TooLarge {
            kind,
            size,
            limit: largest_payload(frame_max),
        });
    }
    let Some((payload, rest)) = rest.split_at_checked(size as usize) else {
        return Ok(None);
    };
    let Some(&marker) = rest.first() else {
        return Ok(None);
    };
    if marker != END {
        return Err(FrameError::BadEnd {
            kind,
            marker,
            snippet: Snippet::of(payload),
        });
    }
    let frame = Frame {
        kind,
        channel: u16::from_be_bytes([c0, c1]),
        payload,
    };
    Ok(Some((frame, size as usize + OVERHEAD)))
}

/// How many bytes the first frame in `bytes` takes, its head included, once the head is there. What it says is
/// only to be believed after [`next_frame`] has not complained.
pub fn frame_length(bytes: &[u8]) -> Option<usize> {
    let [_, _, _, s0, s1, s2, s3] = *bytes.first_chunk::<HEAD>()?;
    Some(u32::from_be_bytes([s0, s1, s2, s3]) as usize + OVERHEAD)
}

/// The largest payload of a frame that keeps to `frame_max`, in bytes.
pub fn largest_payload(frame_max: u32) -> u32 {
    if frame_max == 0 {
        u32::MAX
    } else {
        frame_max.saturating_sub(OVERHEAD as u32)
    }
}

impl<'a> Frame<'a> {
    /// What the frame is.
    ///
    /// # Errors
    /// 501, if it is of no known type or too short for its type.
    pub fn part(&self) -> Result<Part<'a>, Exception> {
        let part = match self.kind {
            METHOD => MethodId::split(self.payload).map(|(id, fields)| Part::Method(id, fields)),
            HEADER => ContentHeader::decode(self.payload).map(Part::Header),
            BODY => Some(Part::Body(self.payload)),
            HEARTBEAT if self.payload.is_empty() => Some(Part::Heartbeat),
            _ => None,
        };
        part.ok_or_else(|| {
            let text = format!("type {}, {}: unknown_frame", self.kind, Snippet::of(self.payload));
            Exception::new(ReplyCode::FrameError, text, MethodId::NONE)
        })
    }

    /// The 505 for a frame that has no business on its channel: a heartbeat on a channel, content on channel 0,
    /// anything on a channel before the connection is open.
    pub fn unexpected(&self) -> Exception {
        let text = format!("type {}, {}", self.kind, Snippet::of(self.payload));
        Exception::new(ReplyCode::UnexpectedFrame, text, MethodId::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_one_after_the_other() {
        let bytes = b"\x01\0\x07\0\0\0\x04\0\x14\0\x29\xce\x08\0\0\0\0\0\0\xce\x03\0";
        let (frame, used) = next_frame(bytes, 4096).unwrap().unwrap();
        assert_eq!((frame.channel, used), (7, 12));
        assert_eq!(
            frame.part(),
            Ok(Part::Method(
                MethodId {
                    class: 20,
                    method: 41
                },
                b""
            ))
        );
        assert_eq!(frame_length(bytes), Some(12));
        let (frame, more) = next_frame(&bytes[used..], 4096).unwrap().unwrap();
        assert_eq!(frame.part(), Ok(Part::Heartbeat));
        assert_eq!(next_frame(&bytes[used + more..], 4096), Ok(None));
        for cut in 0..12 {
            assert_eq!(next_frame(&bytes[..cut], 4096), Ok(None));
        }
    }

    #[test]
    fn the_size_is_checked_before_the_payload_is_there() {
        let error = next_frame(b"\x01\0\x01\0\x02\0\x01", 131_072).unwrap_err();
        assert_eq!(
            error.exception().reply_text(),
            "FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,131073,131064}"
        );
        // RabbitMQ tolerates eight bytes more than were agreed.
        assert_eq!(next_frame(b"\x01\0\x01\0\x02\0\0", 131_072), Ok(None));
        assert_eq!(next_frame(b"\x01\0\x01\xff\xff\xff\xff", 0), Ok(None));
    }

    #[test]
    fn a_wrong_end_is_an_error() {
        let error = next_frame(b"\x01\0\x01\0\0\0\x04\0\x32\0\x0a\0", 4096).unwrap_err();
        assert_eq!(
            error.exception().reply_text(),
            "FRAME_ERROR - type 1, all octets = <<0,50,0,10>>: {invalid_frame_end_marker,0}"
        );
    }

    #[test]
    fn what_is_no_part_is_unknown() {
        let text = |kind, payload| {
            Frame {
                kind,
                channel: 1,
                payload,
            }
            .part()
            .unwrap_err()
            .reply_text()
        };
        assert_eq!(
            text(9, b"abc"),
            "FRAME_ERROR - type 9, all octets = <<\"abc\">>: unknown_frame"
        );
        assert_eq!(
            text(8, b"x"),
            "FRAME_ERROR - type 8, all octets = <<\"x\">>: unknown_frame"
        );
        assert_eq!(
            text(1, b"\0\x3c\0"),
            "FRAME_ERROR - type 1, all octets = <<0,60,0>>: unknown_frame"
        );
        assert_eq!(
            text(9, b"aaaaaaaaaaaaaaaaaaaa"),
            "FRAME_ERROR - type 9, first 16 octets = <<\"aaaaaaaaaaaaaaaa\">>: unknown_frame"
        );
        let heartbeat = Frame {
            kind: 8,
            channel: 1,
            payload: b"",
        };
        assert_eq!(
            heartbeat.unexpected().reply_text(),
            "UNEXPECTED_FRAME - type 8, all octets = <<>>"
        );
    }
}
