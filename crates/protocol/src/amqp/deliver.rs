//! The fast way out: `basic.deliver` with its content, copied together from what the message is stored as.

use super::encode::{body_frames, frame_head, header_frame_head, largest_piece, largest_properties};
use super::field::{Field, FieldWriter};
use super::frame::{END, HEAD, METHOD, OVERHEAD};
use super::method::{Arguments, BasicDeliver};
use model::Message;

/// How many bytes delivery tag and `redelivered` take.
const TAG: usize = 9;

/// How long the frames before a body may be to be remembered, in bytes: a consumer keeps no more than this of a message.
const REMEMBERED: usize = 256;

/// What all deliveries of one consumer begin with. Made once, when the consumer is; a delivery copies it and
/// patches a length and a tag.
#[derive(Clone, Debug)]
pub struct DeliverTemplate {
    /// Frame head, method number, consumer tag.
    head: Vec<u8>,
    last: Last,
    channel: u16,
    /// What one body frame takes at most, in bytes.
    piece: usize,
    /// What a header frame has room for, in bytes.
    properties_most: usize,
}

/// What the delivery before this one put before its body. Messages that follow each other mostly have the same route, the same
/// properties and bodies of the same length: then these frames are copied in one go.
#[derive(Clone, Debug, Default)]
struct Last {
    /// From the method frame to the head of the one body frame; empty if there is nothing to copy.
    frames: Vec<u8>,
    /// Where delivery tag and `redelivered` are; the route is behind them.
    tag: usize,
    route: usize,
    properties: usize,
    body: usize,
}

impl Last {
    #[inline]
    fn is_like(&self, message: &Message<'_>) -> bool {
        let (route, properties) = (message.route.as_bytes(), message.properties.bytes());
        let lengths = (route.len(), properties.len(), message.body.len());
        let route_at = self.tag + TAG;
        let properties_end = self.frames.len().wrapping_sub(OVERHEAD);
        lengths == (self.route, self.properties, self.body)
            && self.frames.get(route_at..route_at + route.len()) == Some(route)
            && self
                .frames
                .get(properties_end.wrapping_sub(properties.len())..properties_end)
                == Some(properties)
    }

    /// Appends the frames with this tag, and the body.
    #[inline]
    fn repeat(&mut self, out: &mut Vec<u8>, tag: [u8; TAG], body: &[u8]) {
        out.reserve(self.frames.len() + body.len() + 1);
        if let Some(place) = self.frames.get_mut(self.tag..self.tag + TAG) {
            place.copy_from_slice(&tag);
        }
        out.extend_from_slice(&self.frames);
        out.extend_from_slice(body);
        out.push(END);
    }
}

impl DeliverTemplate {
    /// For the consumer of this tag on this channel of a connection with this `frame_max` (0: no limit).
    pub fn new(channel: u16, consumer_tag: &str, frame_max: u32) -> Self {
        let mut head = Vec::with_capacity(HEAD + 4 + 1 + consumer_tag.len());
        head.extend_from_slice(&frame_head(METHOD, channel, 0));
        head.extend_from_slice(&BasicDeliver::ID.to_bytes());
        consumer_tag.write(&mut FieldWriter::new(&mut head));
        Self {
            head,
            last: Last::default(),
            channel,
            piece: largest_piece(frame_max),
            properties_most: largest_properties(frame_max),
        }
    }

    /// The longest properties that a header frame has room for, in bytes.
    #[inline]
    pub fn properties_most(&self) -> usize {
        self.properties_most
    }

    /// The channel that it delivers on.
    pub fn channel(&self) -> u16 {
        self.channel
    }

    /// Appends one delivery: method, header and body frames.
    ///
    /// The message's parts are trusted to be what they are said to be, and its properties to be AMQP's. Part of the hot
    /// way out, however many others use it.
    #[inline(always)]
    pub fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        delivery_tag: u64,
        redelivered: bool,
        message: &Message<'_>,
    ) {
        let mut tag = [0; TAG];
        tag[..8].copy_from_slice(&delivery_tag.to_be_bytes());
        tag[8] = u8::from(redelivered);
        match self.last.is_like(message) {
            true => self.last.repeat(out, tag, message.body),
            false => self.write(out, tag, message),
        }
    }

    /// Puts a delivery together, and remembers it for the next one.
    fn write(&mut self, out: &mut Vec<u8>, tag: [u8; TAG], message: &Message<'_>) {
        let (route, body) = (message.route.as_bytes(), message.body);
        let properties = message.properties.bytes();
        let at = out.len();
        out.reserve(self.length(message));
        out.extend_from_slice(&self.head);
        let size = (self.head.len() - HEAD + TAG + route.len()) as u32;
        out[at + 3..at + HEAD].copy_from_slice(&size.to_be_bytes());
        out.extend_from_slice(&tag);
        out.extend_from_slice(route);
        let mut header = [END; HEAD + 13];
        header[1..].copy_from_slice(&header_frame_head(self.channel, properties.len(), body.len()));
        out.extend_from_slice(&header);
        out.extend_from_slice(properties);
        body_frames(out, self.channel, body, self.piece);
        let frames = &out[at..out.len() - body.len() - 1];
        self.last.frames.clear();
        if body.is_empty() || body.len() > self.piece || frames.len() > REMEMBERED {
            return;
        }
        self.last.frames.extend_from_slice(frames);
        self.last.tag = self.head.len();
        (self.last.route, self.last.properties, self.last.body) = (route.len(), properties.len(), body.len());
    }

    /// How many bytes [`DeliverTemplate::deliver`] will append.
    pub fn length(&self, message: &Message<'_>) -> usize {
        let body = message.body.len();
        // Mostly there is one, and a division takes as long as the rest of this.
        let bodies = match body <= self.piece {
            true => usize::from(body > 0),
            false => body.div_ceil(self.piece),
        };
        let method = self.head.len() + TAG + message.route.as_bytes().len() + 1;
        method + OVERHEAD + 12 + message.properties.len() + bodies * OVERHEAD + body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::encode;
    use model::RouteBuf;
    use model::properties::Properties;

    fn message<'a>(route: &'a RouteBuf, properties: &'a [u8], body: &'a [u8]) -> Message<'a> {
        Message::new(route.as_route(), Properties::amqp091(properties), body)
    }

    #[test]
    fn a_delivery_is_the_same_as_its_method_and_content() {
        for body in [&b""[..], b"hello", &[7; 100]] {
            for frame_max in [0, 32, 4096] {
                let mut template = DeliverTemplate::new(3, "ctag", frame_max);
                let (mut fast, mut slow) = (vec![1], vec![1]);
                let route = RouteBuf::new(b"e", b"rk");
                let message = message(&route, b"\x10\0\x02", body);
                template.deliver(&mut fast, 77, true, &message);
                let method = BasicDeliver {
                    consumer_tag: "ctag",
                    delivery_tag: 77,
                    redelivered: true,
                    exchange: b"e",
                    routing_key: b"rk",
                };
                encode::content(&mut slow, 3, &method, b"\x10\0\x02", body, frame_max);
                assert_eq!(fast, slow);
                assert_eq!(fast.len() - 1, template.length(&message));
            }
        }
    }

    #[test]
    fn a_delivery_like_the_one_before_is_the_same_as_one_that_is_put_together() {
        let routes = [
            RouteBuf::new(b"e", b"rk"),
            RouteBuf::new(b"er", b"k"),
            RouteBuf::new(b"", b"longer"),
        ];
        let properties: [&[u8]; 4] = [b"\0\0", b"\x10\0\x02", b"\x10\0\x01", &[1; 300]];
        let bodies: [&[u8]; 5] = [b"", b"hello", b"world", b"!", &[7; 5000]];
        let mut template = DeliverTemplate::new(3, "ctag", 4096);
        let mut tag = 0;
        // Each pair of successors occurs: the numbers step through all differences.
        let all: Vec<_> = (0..60).map(|n| (n % 3, n / 3 % 4, n / 12)).collect();
        for step in 0..all.len() {
            let mut at = 0;
            for _ in 0..all.len() {
                let (route, property, body) = all[at];
                let message = message(&routes[route], properties[property], bodies[body]);
                tag += 1;
                let (mut kept, mut fresh) = (Vec::new(), Vec::new());
                template.deliver(&mut kept, tag, tag % 2 == 0, &message);
                DeliverTemplate::new(3, "ctag", 4096).deliver(&mut fresh, tag, tag % 2 == 0, &message);
                assert_eq!(kept, fresh);
                assert_eq!(kept.len(), template.length(&message));
                at = (at + step) % all.len();
            }
        }
    }

    #[test]
    fn a_delivery_has_its_golden_bytes() {
        let mut out = Vec::new();
        let route = RouteBuf::new(b"", b"q");
        DeliverTemplate::new(1, "c", 4096).deliver(&mut out, 1, false, &message(&route, b"\0\0", b"hi"));
        let golden = b"\x01\0\x01\0\0\0\x12\0\x3c\0\x3c\x01c\0\0\0\0\0\0\0\x01\0\0\x01q\xce\
            \x02\0\x01\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\x02\0\0\xce\x03\0\x01\0\0\0\x02hi\xce";
        assert_eq!(out, golden);
    }
}
