//! Writing frames: methods, and contents with their bodies cut to the agreed frame size.

use super::frame::{BODY, END, HEAD, HEADER, METHOD, OVERHEAD, largest_payload};
use super::method::{Arguments, Method, MethodId};

/// Appends a method frame.
pub fn method<'a, A: Arguments<'a>>(out: &mut Vec<u8>, channel: u16, arguments: &A) {
    method_frame(out, channel, A::ID, |out| arguments.encode(out));
}

/// Appends the method frame of any method.
pub fn any_method(out: &mut Vec<u8>, channel: u16, method: &Method<'_>) {
    method_frame(out, channel, method.id(), |out| method.encode(out));
}

/// Appends a method frame, a header frame and as many body frames as `frame_max` asks for (0: one).
///
/// `properties` are flags and list. An empty body has no body frame.
pub fn content<'a, A: Arguments<'a>>(
    out: &mut Vec<u8>,
    channel: u16,
    arguments: &A,
    properties: &[u8],
    body: &[u8],
    frame_max: u32,
) {
    method(out, channel, arguments);
    out.extend_from_slice(&header_frame_head(channel, properties.len(), body.len()));
    out.extend_from_slice(properties);
    body_frames(out, channel, body, largest_piece(frame_max));
}

/// Appends `basic.ack`: what a publisher is confirmed with and a consumer acknowledges with.
pub fn ack(out: &mut Vec<u8>, channel: u16, delivery_tag: u64, multiple: bool) {
    let mut frame = [0; HEAD + 4 + 9 + 1];
    frame[..HEAD].copy_from_slice(&frame_head(METHOD, channel, 13));
    frame[HEAD..HEAD + 4].copy_from_slice(&[0, 60, 0, 80]);
    frame[HEAD + 4..HEAD + 12].copy_from_slice(&delivery_tag.to_be_bytes());
    frame[HEAD + 12] = u8::from(multiple);
    frame[HEAD + 13] = END;
    out.extend_from_slice(&frame);
}

/// Appends a `basic.nack` of one publish, as a broker sends it: `requeue` means nothing to publishers.
pub fn nack(out: &mut Vec<u8>, channel: u16, delivery_tag: u64) {
    ack(out, channel, delivery_tag, false);
    // It differs from an acknowledgement in the method's number only: the other bits are unset.
    let id = out.len() - (4 + 9 + 1);
    out[id..id + 4].copy_from_slice(&[0, 60, 0, 120]);
}

fn method_frame(out: &mut Vec<u8>, channel: u16, id: MethodId, fields: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&frame_head(METHOD, channel, 0));
    out.extend_from_slice(&id.to_bytes());
    fields(out);
    let size = (out.len() - at - HEAD) as u32;
    out[at + 3..at + HEAD].copy_from_slice(&size.to_be_bytes());
    out.push(END);
}

/// Type, channel and payload size.
#[inline]
pub(super) fn frame_head(kind: u8, channel: u16, size: u32) -> [u8; HEAD] {
    let ([c0, c1], [s0, s1, s2, s3]) = (channel.to_be_bytes(), size.to_be_bytes());
    [kind, c0, c1, s0, s1, s2, s3]
}

/// The header frame up to its properties; its end and the body follow from [`body_frames`].
#[inline]
pub(super) fn header_frame_head(channel: u16, properties: usize, body: usize) -> [u8; HEAD + 12] {
    let mut head = [0; HEAD + 12];
    head[..HEAD].copy_from_slice(&frame_head(HEADER, channel, 12 + properties as u32));
    head[HEAD + 1] = 60;
    head[HEAD + 4..].copy_from_slice(&(body as u64).to_be_bytes());
    head
}

/// The most that one body frame takes, in bytes; at least one.
pub(super) fn largest_piece(frame_max: u32) -> usize {
    largest_payload(frame_max).max(1) as usize
}

/// The longest properties that a header frame which keeps to `frame_max` has room for, in bytes.
pub fn largest_properties(frame_max: u32) -> usize {
    (largest_payload(frame_max) as usize).saturating_sub(12)
}

/// The end of the header frame and the body frames, with `largest` bytes at most in each: each frame's end is written
/// with the next one's head.
#[inline(always)]
pub(super) fn body_frames(out: &mut Vec<u8>, channel: u16, body: &[u8], largest: usize) {
    for piece in body.chunks(largest) {
        let mut head = [END; OVERHEAD];
        head[1..].copy_from_slice(&frame_head(BODY, channel, piece.len() as u32));
        out.extend_from_slice(&head);
        out.extend_from_slice(piece);
    }
    out.push(END);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::method::{BasicAck, BasicGetOk, QueueDeclareOk};

    #[test]
    fn a_method_frame_has_its_golden_bytes() {
        let mut out = vec![0xaa];
        method(
            &mut out,
            258,
            &QueueDeclareOk {
                queue: "q",
                message_count: 1,
                consumer_count: 2,
            },
        );
        assert_eq!(
            out,
            b"\xaa\x01\x01\x02\0\0\0\x0e\0\x32\0\x0b\x01q\0\0\0\x01\0\0\0\x02\xce"
        );
    }

    #[test]
    fn the_short_way_to_an_ack_writes_the_same() {
        for multiple in [false, true] {
            let (mut short, mut long) = (Vec::new(), Vec::new());
            ack(&mut short, 9, u64::MAX - 5, multiple);
            method(
                &mut long,
                9,
                &BasicAck {
                    delivery_tag: u64::MAX - 5,
                    multiple,
                },
            );
            assert_eq!(short, long);
        }
    }

    #[test]
    fn bodies_are_cut_to_the_frame_size() {
        let get_ok = BasicGetOk {
            delivery_tag: 1,
            routing_key: b"k",
            ..Default::default()
        };
        let mut out = Vec::new();
        content(&mut out, 1, &get_ok, b"\0\0", b"0123456789", 12);
        let tail = b"\x02\0\x01\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\x0a\0\0\xce\
            \x03\0\x01\0\0\0\x040123\xce\x03\0\x01\0\0\0\x044567\xce\x03\0\x01\0\0\0\x0289\xce";
        assert!(out.ends_with(tail));
        out.clear();
        content(&mut out, 1, &get_ok, b"\0\0", b"", 12);
        assert!(out.ends_with(b"\0\0\xce"));
    }
}
