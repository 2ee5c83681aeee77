//! Frames: what a byte stream is cut into, and what stands at their head.

use super::field::Field;
use super::key::Key;
use std::fmt;

/// The size before a frame, in bytes.
pub const HEAD: usize = 4;
/// What marks the key of an answer.
pub const ANSWER: u16 = 0x8000;
/// RabbitMQ's `stream.frame_max`, in bytes.
pub const FRAME_MAX: u32 = 1_048_576;

/// One frame where it lies in the read buffer: a command's key and version, and what follows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The command's number, with [`ANSWER`] if it is an answer.
    pub key: u16,
    /// The command's version.
    pub version: u16,
    /// What stands behind the version.
    pub payload: &'a [u8],
}

/// Why bytes are not a frame. After that the two sides have lost step: nothing more can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// It is larger than was agreed.
    TooLarge {
        /// The claimed size, in bytes.
        size: u32,
        /// The agreed one.
        limit: u32,
    },
    /// It has no room for a key and a version.
    TooSmall {
        /// The claimed size, in bytes.
        size: u32,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { size, limit } => {
                write!(f, "a frame of {size} bytes is larger than the agreed {limit}")
            }
            Self::TooSmall { size } => write!(f, "a frame of {size} bytes has no command in it"),
        }
    }
}

impl std::error::Error for FrameError {}

/// The first frame in `bytes` and how many of them it takes, its size included; `None` if it is not all there yet.
///
/// The claimed size is checked as soon as it is there, so nobody waits for what would be refused. `frame_max` counts what
/// follows the size, as in RabbitMQ; 0 means no limit.
///
/// # Errors
/// If the frame is too large, or too small for a command.
#[inline]
pub fn next_frame(bytes: &[u8], frame_max: u32) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((size, rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let size = u32::from_be_bytes(*size);
    if frame_max != 0 && size > frame_max {
        return Err(FrameError::TooLarge {
            size,
            limit: frame_max,
        });
    }
    if size < 4 {
        return Err(FrameError::TooSmall { size });
    }
    let Some(content) = rest.get(..size as usize) else {
        return Ok(None);
    };
    let Some((&[k0, k1, v0, v1], payload)) = content.split_first_chunk() else {
        return Err(FrameError::TooSmall { size });
    };
    let frame = Frame {
        key: u16::from_be_bytes([k0, k1]),
        version: u16::from_be_bytes([v0, v1]),
        payload,
    };
    Ok(Some((frame, HEAD + size as usize)))
}

/// How many bytes the first frame in `bytes` takes, its size included, once that is there. What it says is only to be
/// believed after [`next_frame`] has not complained.
pub fn frame_length(bytes: &[u8]) -> Option<usize> {
    let size = u32::from_be_bytes(*bytes.first_chunk::<HEAD>()?);
    Some(HEAD + size as usize)
}

/// Appends a frame: its size, the key, the version, and what `fields` appends.
pub(super) fn put_frame(out: &mut Vec<u8>, key: u16, version: u16, fields: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; HEAD]);
    key.write(out);
    version.write(out);
    fields(out);
    let size = (out.len() - at - HEAD) as u32;
    out[at..at + HEAD].copy_from_slice(&size.to_be_bytes());
}

/// A heartbeat.
pub const HEARTBEAT_FRAME: [u8; 8] = [0, 0, 0, 4, 0, Key::Heartbeat as u8, 0, 1];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_complete_with_its_last_byte() {
        let bytes = b"\0\0\0\x06\x80\x15\0\x02ab\0\0";
        for end in 0..10 {
            assert_eq!(next_frame(&bytes[..end], 6), Ok(None));
        }
        let frame = Frame {
            key: 0x8015,
            version: 2,
            payload: b"ab",
        };
        assert_eq!(next_frame(bytes, 6), Ok(Some((frame, 10))));
        assert_eq!(frame_length(bytes), Some(10));
        assert_eq!(frame_length(b"\0\0\0"), None);
    }

    #[test]
    fn sizes_are_refused_as_soon_as_they_are_there() {
        assert_eq!(
            next_frame(b"\x16\x03\x01\x02", 8_192),
            Err(FrameError::TooLarge {
                size: 0x1603_0102,
                limit: 8_192
            })
        );
        assert_eq!(
            next_frame(b"\0\0\0\x03", 0),
            Err(FrameError::TooSmall { size: 3 })
        );
        assert_eq!(next_frame(b"\xff\xff\xff\xff", 0), Ok(None));
    }

    #[test]
    fn a_heartbeat_is_a_frame_without_fields() {
        let mut out = Vec::new();
        put_frame(&mut out, Key::Heartbeat.number(), 1, |_| {});
        assert_eq!(out, HEARTBEAT_FRAME);
    }
}
