//! The fast way out: `basic.deliver` with its content, copied together from what the message is stored as.

use super::encode::{body_frames, frame_head, header_frame_head, largest_piece, largest_properties};
use super::field::{Field, FieldWriter};
use super::frame::{END, HEAD, METHOD, OVERHEAD};
use super::method::{Arguments, BasicDeliver};
use model::Message;

/// What all deliveries of one consumer begin with. Made once, when the consumer is; a delivery copies it and
/// patches a length and a tag.
#[derive(Clone, Debug)]
pub struct DeliverTemplate {
    /// Frame head, method number, consumer tag.
    head: Vec<u8>,
    channel: u16,
    /// What one body frame takes at most, in bytes.
    piece: usize,
    /// What a header frame has room for, in bytes.
    properties_most: usize,
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
    /// The message's parts are trusted to be what they are said to be, and its properties to be AMQP's. Part of the hot way out, however many others use it.
    #[inline(always)]
    pub fn deliver(&self, out: &mut Vec<u8>, delivery_tag: u64, redelivered: bool, message: &Message<'_>) {
        let (route, body) = (message.route.as_bytes(), message.body);
        let properties = message.properties.bytes();
        let at = out.len();
        out.reserve(self.length(message));
        out.extend_from_slice(&self.head);
        let size = (self.head.len() - HEAD + 9 + route.len()) as u32;
        out[at + 3..at + HEAD].copy_from_slice(&size.to_be_bytes());
        let mut tag = [0; 9];
        tag[..8].copy_from_slice(&delivery_tag.to_be_bytes());
        tag[8] = u8::from(redelivered);
        out.extend_from_slice(&tag);
        out.extend_from_slice(route);
        let mut header = [END; HEAD + 13];
        header[1..].copy_from_slice(&header_frame_head(self.channel, properties.len(), body.len()));
        out.extend_from_slice(&header);
        out.extend_from_slice(properties);
        body_frames(out, self.channel, body, self.piece);
    }

    /// How many bytes [`DeliverTemplate::deliver`] will append.
    pub fn length(&self, message: &Message<'_>) -> usize {
        let body = message.body.len();
        // Mostly there is one, and a division takes as long as the rest of this.
        let bodies = match body <= self.piece {
            true => usize::from(body > 0),
            false => body.div_ceil(self.piece),
        };
        let method = self.head.len() + 9 + message.route.as_bytes().len() + 1;
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
                let template = DeliverTemplate::new(3, "ctag", frame_max);
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
    fn a_delivery_has_its_golden_bytes() {
        let mut out = Vec::new();
        let route = RouteBuf::new(b"", b"q");
        DeliverTemplate::new(1, "c", 4096).deliver(&mut out, 1, false, &message(&route, b"\0\0", b"hi"));
        let golden = b"\x01\0\x01\0\0\0\x12\0\x3c\0\x3c\x01c\0\0\0\0\0\0\0\x01\0\0\x01q\xce\
            \x02\0\x01\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\x02\0\0\xce\x03\0\x01\0\0\0\x02hi\xce";
        assert_eq!(out, golden);
    }
}
