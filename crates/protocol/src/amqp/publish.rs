//! The fast way in: a whole `basic.publish` in one pass over the read buffer.

use super::frame::{BODY, END, HEAD, HEADER, METHOD, OVERHEAD, largest_payload};
use model::properties::{BasicProperties, Properties};
use model::{Limits, Message, Route};
use std::ops::Range;

/// Where the route begins in a method frame.
const ROUTE: usize = HEAD + 6;

/// How long the frames before a body may be to be remembered, in bytes: a connection keeps no more than this of a message.
const REMEMBERED: usize = 256;

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
    last: Last,
}

/// The frames before the body of the publish before this one. Publishes that follow each other mostly have the same
/// route, the same properties and bodies of the same length: what was found flawless once is then compared only.
#[derive(Clone, Debug, Default)]
struct Last {
    /// From the method frame to the head of the one body frame; empty if there is nothing to compare.
    frames: Vec<u8>,
    channel: u16,
    mandatory: bool,
    immediate: bool,
    route: Range<usize>,
    properties: Range<usize>,
    /// The body's length in bytes, above 0.
    body: usize,
}

impl Last {
    /// The publish that `bytes` begin with, if it is like the one before.
    #[inline]
    fn repeated<'a>(&self, bytes: &'a [u8]) -> Option<(Publish<'a>, usize)> {
        let (frames, rest) = bytes.split_at_checked(self.frames.len())?;
        if frames.is_empty() || frames != self.frames {
            return None;
        }
        let (body, rest) = rest.split_at_checked(self.body)?;
        if rest.first() != Some(&END) {
            return None;
        }
        let route = Route::stored(frames.get(self.route.clone())?);
        let message = Message::new(
            route,
            Properties::amqp091(frames.get(self.properties.clone())?),
            body,
        );
        let publish = Publish {
            channel: self.channel,
            mandatory: self.mandatory,
            immediate: self.immediate,
            message,
        };
        Some((publish, frames.len() + body.len() + 1))
    }

    /// Keeps what `bytes` began with: a flawless publish that took `length` of them.
    fn remember(&mut self, bytes: &[u8], length: usize, publish: &Publish<'_>) {
        self.frames.clear();
        let message = &publish.message;
        let (route, properties, body) = (
            message.route.as_bytes().len(),
            message.properties.len(),
            message.body.len(),
        );
        // The body's end mark, too, is behind the frames.
        let before = length - body - 1;
        if body == 0 || before > REMEMBERED {
            return;
        }
        self.frames.extend_from_slice(&bytes[..before]);
        // The head, the method's number and two reserved bytes come before the route; the properties end before their
        // frame's end mark.
        self.route = ROUTE..ROUTE + route;
        self.properties = before - OVERHEAD - properties..before - OVERHEAD;
        (self.channel, self.body) = (publish.channel, body);
        (self.mandatory, self.immediate) = (publish.mandatory, publish.immediate);
    }
}

impl PublishScanner {
    /// For a connection that agreed on this `frame_max` (0: no limit).
    pub fn new(frame_max: u32, limits: Limits) -> Self {
        Self {
            limits,
            largest_payload: largest_payload(frame_max) as usize,
            last: Last::default(),
        }
    }

    /// The publish that `bytes` begin with and how many of them it takes; `None` if they do not begin with one
    /// that is complete and flawless.
    #[inline]
    pub fn scan<'a>(&mut self, bytes: &'a [u8]) -> Option<(Publish<'a>, usize)> {
        if let Some(found) = self.last.repeated(bytes) {
            return Some(found);
        }
        let found = self.read(bytes)?;
        self.last.remember(bytes, found.1, &found.0);
        Some(found)
    }

    /// The same of a publish that is not like the one before.
    fn read<'a>(&self, bytes: &'a [u8]) -> Option<(Publish<'a>, usize)> {
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
    fn a_publish_like_the_one_before_is_seen_as_a_scanner_sees_it_that_knows_none() {
        let mut keeps = scanner();
        let mut all = Vec::new();
        for body in [&b"hello"[..], b"world", b"", b"longer", &[7; 3000]] {
            all.push(published(body, 4096));
        }
        let (properties, route) = (&[9; 300][..], RouteBuf::new(b"", b"q"));
        let mut large = Vec::new();
        let method = BasicPublish {
            exchange: route.as_route().exchange(),
            routing_key: route.as_route().routing_key(),
            mandatory: false,
            immediate: true,
        };
        encode::content(&mut large, 9, &method, b"\0\0", b"hello", 4096);
        all.push(large.clone());
        encode::content(&mut large, 9, &method, properties, b"hello", 4096);
        all.push(large);
        for step in 0..all.len() {
            let mut at = 0;
            for _ in 0..all.len() {
                let whole = &all[at];
                for cut in whole.len() - 2..=whole.len() {
                    assert_eq!(keeps.scan(&whole[..cut]), scanner().scan(&whole[..cut]));
                }
                let mut wrong = whole.clone();
                for changed in 0..wrong.len() {
                    wrong[changed] ^= 0x11;
                    assert_eq!(
                        keeps.clone().scan(&wrong),
                        scanner().scan(&wrong),
                        "byte {changed}"
                    );
                    wrong[changed] ^= 0x11;
                }
                at = (at + step) % all.len();
            }
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
