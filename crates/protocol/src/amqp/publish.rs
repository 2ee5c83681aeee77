//! The fast way in: a whole `basic.publish` in one pass over the read buffer.

use super::frame::{BODY, END, HEAD, HEADER, METHOD, OVERHEAD, largest_payload};
use model::properties::{BasicProperties, Properties};
use model::{Limits, Message, Route};

/// A message as a publisher sent it, where it lies in the read buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// The channel that it came on; nobody has checked that it is open.
    pub channel: u16,
    /// Return it if no queue takes it.
    pub mandatory: bool,
    /// RabbitMQ does not implement it and says so with a 540.
    pub immediate: bool,
    /// The message; its properties are checked.
    pub message: Message<'a>,
}

/// Recognises publishes that lie whole in a read buffer.
///
/// It never judges: whatever is not a complete and flawless publish with at most one body frame is left to the
/// general way, which then says what is wrong. So a caller asks it first, and only on idle channels
/// ([`super::Assembler::is_idle`]).
#[derive(Clone, Debug)]
pub struct PublishScanner {
    limits: Limits,
    /// The largest payload within the agreed frame size, in bytes.
    largest_payload: usize,
}

impl PublishScanner {
    /// For a connection that agreed on this `frame_max` (0: no limit).
    pub fn new(frame_max: u32, limits: Limits) -> Self {
        Self {
            limits,
            largest_payload: largest_payload(frame_max) as usize,
        }
    }

    /// The publish that `bytes` begin with and how many of them it takes; `None` if they do not begin with one
    /// that is complete and flawless.
    #[inline]
    pub fn scan<'a>(&self, bytes: &'a [u8]) -> Option<(Publish<'a>, usize)> {
        let (&[METHOD, c0, c1, s0, s1, s2, s3, 0, 60, 0, 40, _, _], _) = bytes.split_first_chunk::<13>()?
        else {
            return None;
        };
        let channel = [c0, c1];
        let size = u32::from_be_bytes([s0, s1, s2, s3]) as usize;
        let (fields, rest) = self.frame(bytes, size)?;
        // The two reserved bytes after the number were matched above; the route, then the bits.
        let (route, fields) = Route::split(fields.get(6..)?)?;
        let &[bits] = fields else { return None };

        let &[
            HEADER,
            c0,
            c1,
            s0,
            s1,
            s2,
            s3,
            0,
            60,
            0,
            0,
            b0,
            b1,
            b2,
            b3,
            b4,
            b5,
            b6,
            b7,
        ] = rest.first_chunk::<19>()?
        else {
            return None;
        };
        if [c0, c1] != channel || channel == [0, 0] {
            return None;
        }
        let size = u32::from_be_bytes([s0, s1, s2, s3]) as usize;
        let (header, rest_after_header) = self.frame(rest, size)?;
        let properties = header.get(12..)?;
        let body_size = u64::from_be_bytes([b0, b1, b2, b3, b4, b5, b6, b7]);
        let (body, rest) = self.body(rest_after_header, channel, body_size)?;
        BasicProperties::check(properties, &self.limits).ok()?;
        let properties = Properties::amqp091(properties);
        let publish = Publish {
            channel: u16::from_be_bytes(channel),
            mandatory: bits & 1 != 0,
            immediate: bits & 2 != 0,
            message: Message::new(route, properties, body),
        };
        Some((publish, bytes.len() - rest.len()))
    }

    /// The one body frame, or none for an empty body.
    #[inline]
    fn body<'a>(&self, bytes: &'a [u8], channel: [u8; 2], size: u64) -> Option<(&'a [u8], &'a [u8])> {
        if size == 0 {
            return Some((&[], bytes));
        }
        let &[BODY, c0, c1, s0, s1, s2, s3] = bytes.first_chunk::<HEAD>()? else {
            return None;
        };
        let frame_size = u32::from_be_bytes([s0, s1, s2, s3]);
        if [c0, c1] != channel || u64::from(frame_size) != size || size > self.limits.message_bytes {
            return None;
        }
        self.frame(bytes, frame_size as usize)
    }

    /// The payload of the frame that `bytes` begin with, and what follows the frame.
    #[inline]
    fn frame<'a>(&self, bytes: &'a [u8], size: usize) -> Option<(&'a [u8], &'a [u8])> {
        if size > self.largest_payload {
            return None;
        }
        let (frame, rest) = bytes.split_at_checked(size + OVERHEAD)?;
        let [_, _, _, _, _, _, _, payload @ .., END] = frame else {
            return None;
        };
        Some((payload, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::encode;
    use crate::amqp::method::{BasicAck, BasicPublish};
    use model::RouteBuf;

    fn published(body: &[u8], frame_max: u32) -> Vec<u8> {
        let method = BasicPublish {
            exchange: b"logs",
            routing_key: b"a.b",
            mandatory: true,
            immediate: false,
        };
        let mut out = Vec::new();
        encode::content(&mut out, 7, &method, b"\x10\0\x02", body, frame_max);
        out
    }

    fn scanner() -> PublishScanner {
        PublishScanner::new(4096, Limits::default())
    }

    #[test]
    fn a_publish_is_seen_and_what_follows_is_left() {
        for body in [&b""[..], b"hello"] {
            let mut bytes = published(body, 4096);
            let length = bytes.len();
            for cut in 0..length {
                assert_eq!(scanner().scan(&bytes[..cut]), None);
            }
            bytes.extend_from_slice(b"more");
            let (publish, used) = scanner().scan(&bytes).unwrap();
            assert_eq!(used, length);
            let route = RouteBuf::new(b"logs", b"a.b");
            let expected = Publish {
                channel: 7,
                mandatory: true,
                immediate: false,
                message: Message::new(route.as_route(), Properties::amqp091(b"\x10\0\x02"), body),
            };
            assert_eq!(publish, expected);
        }
    }

    #[test]
    fn everything_else_is_left_to_the_general_way() {
        assert_eq!(scanner().scan(&published(&[0; 100], 58)), None, "two body frames");
        let small = Limits {
            message_bytes: 99,
            ..Limits::default()
        };
        assert_eq!(
            PublishScanner::new(4096, small).scan(&published(&[0; 100], 4096)),
            None
        );
        assert_eq!(
            PublishScanner::new(58, Limits::default()).scan(&published(&[0; 100], 0)),
            None
        );
        let mut ack = Vec::new();
        encode::method(
            &mut ack,
            7,
            &BasicAck {
                delivery_tag: 1,
                multiple: false,
            },
        );
        assert_eq!(scanner().scan(&ack), None);
        let flawless = published(b"hello", 4096);
        for at in 0..flawless.len() {
            let mut bytes = flawless.clone();
            bytes[at] ^= 0x80;
            if let Some((publish, used)) = scanner().scan(&bytes) {
                // The flipped bit was part of a name, of the mode, of the reserved bits or of the body.
                assert_eq!((publish.channel, used), (7, flawless.len()));
            }
        }
    }
}
