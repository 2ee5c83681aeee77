//! The fast way in for a client that consumes: a whole `basic.deliver` with its header and body in one pass.

use super::frame::{BODY, END, HEAD, HEADER, METHOD};

/// A message as it was delivered. Slices point into the buffer; nobody has checked names or properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// The channel that it came on.
    pub channel: u16,
    pub consumer_tag: &'a [u8],
    pub delivery_tag: u64,
    pub redelivered: bool,
    pub exchange: &'a [u8],
    pub routing_key: &'a [u8],
    /// Flags and list, as the header has them.
    pub properties: &'a [u8],
    pub body: &'a [u8],
}

/// The delivery that `bytes` begin with and how many of them it takes.
///
/// `None` if they do not begin with a whole `basic.deliver` whose body is empty or in one frame: another frame, a larger
/// body, a message that has not all come, or something malformed. The caller then goes the general way, frame by frame
/// ([`super::next_frame`], [`super::Assembler`]), which also says what is wrong. Like [`super::scan_ack()`] it is for
/// channels on which nothing is half received.
#[inline]
pub fn scan_deliver(bytes: &[u8]) -> Option<(Delivery<'_>, usize)> {
    let (channel, method, rest) = take_frame(bytes, METHOD)?;
    let [0, 60, 0, 60, fields @ ..] = method else {
        return None;
    };
    let (consumer_tag, fields) = short_string(fields)?;
    let (tag, fields) = fields.split_first_chunk::<8>()?;
    let (&bits, fields) = fields.split_first()?;
    let (exchange, fields) = short_string(fields)?;
    let (routing_key, fields) = short_string(fields)?;
    let (header_channel, header, rest) = take_frame(rest, HEADER)?;
    let [0, 60, 0, 0, header @ ..] = header else {
        return None;
    };
    let (size, properties) = header.split_first_chunk::<8>()?;
    let size = u64::from_be_bytes(*size);
    // What the general way would refuse is left to it.
    if !fields.is_empty() || properties.len() < 2 || header_channel != channel || size > u64::from(u32::MAX) {
        return None;
    }
    let (body, rest) = if size == 0 {
        (&rest[..0], rest)
    } else {
        let (body_channel, body, rest) = take_frame(rest, BODY)?;
        if body.len() as u64 != size || body_channel != channel {
            return None;
        }
        (body, rest)
    };
    let delivery = Delivery {
        channel,
        consumer_tag,
        delivery_tag: u64::from_be_bytes(*tag),
        redelivered: bits & 1 == 1,
        exchange,
        routing_key,
        properties,
        body,
    };
    Some((delivery, bytes.len() - rest.len()))
}

/// Channel and payload of the frame that `bytes` begin with, if it is of this kind and all there; and what follows it.
#[inline]
fn take_frame(bytes: &[u8], kind: u8) -> Option<(u16, &[u8], &[u8])> {
    let (&[its_kind, c0, c1, s0, s1, s2, s3], rest) = bytes.split_first_chunk::<HEAD>()?;
    let size = u32::from_be_bytes([s0, s1, s2, s3]) as usize;
    if its_kind != kind || rest.len() <= size || rest[size] != END {
        return None;
    }
    Some((u16::from_be_bytes([c0, c1]), &rest[..size], &rest[size + 1..]))
}

#[inline]
fn short_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::method::{BasicDeliver, Method};
    use crate::amqp::{Assembler, Content, Step, encode, next_frame};
    use model::Limits;
    use proptest::prelude::*;

    /// What the general way makes of the first message of `bytes`, and how many bytes it takes.
    fn assembled(bytes: &[u8]) -> Option<(Vec<u8>, u64, Vec<u8>, Vec<u8>, usize)> {
        let mut assembler = Assembler::new();
        let mut at = 0;
        loop {
            let (frame, used) = next_frame(&bytes[at..], 0).ok()??;
            at += used;
            match assembler.feed(&frame, &Limits::default()).ok()? {
                Step::More => {}
                Step::Content(Content {
                    method: Method::BasicDeliver(it),
                    properties,
                    body,
                }) => {
                    let (key, properties) = (it.routing_key.to_vec(), properties.to_vec());
                    return Some((key, it.delivery_tag, properties, body.to_vec(), at));
                }
                _ => return None,
            }
        }
    }

    fn message(tag: u64, key: &[u8], body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let deliver = BasicDeliver {
            consumer_tag: "ctag",
            delivery_tag: tag,
            redelivered: tag.is_multiple_of(2),
            exchange: b"direct",
            routing_key: key,
        };
        encode::content(&mut bytes, 3, &deliver, &[0x10, 0, 2], body, 4096);
        bytes
    }

    #[test]
    fn a_whole_message_is_read_in_one_go() {
        let bytes = [message(6, b"key", b"hello"), message(7, b"", b"")].concat();
        let (first, used) = scan_deliver(&bytes).unwrap();
        let expected = Delivery {
            channel: 3,
            consumer_tag: b"ctag",
            delivery_tag: 6,
            redelivered: true,
            exchange: b"direct",
            routing_key: b"key",
            properties: &[0x10, 0, 2],
            body: b"hello",
        };
        assert_eq!(first, expected);
        let (second, more) = scan_deliver(&bytes[used..]).unwrap();
        assert_eq!(
            (second.delivery_tag, second.redelivered, second.body),
            (7, false, &b""[..])
        );
        assert_eq!(used + more, bytes.len());
    }

    #[test]
    fn a_message_that_is_not_all_there_is_left_for_later() {
        let bytes = message(1, b"key", b"hello");
        for cut in 0..bytes.len() {
            assert_eq!(scan_deliver(&bytes[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_body_of_several_frames_goes_the_general_way() {
        assert_eq!(scan_deliver(&message(1, b"key", &[7; 5000])), None);
    }

    proptest! {
        #[test]
        fn the_fast_way_reads_what_the_general_way_reads(
            tag: u64,
            key in prop::collection::vec(any::<u8>(), 0..200),
            body in prop::collection::vec(any::<u8>(), 0..600),
            change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut bytes = message(tag, &key, &body);
            if let Some((at, value)) = change {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if let Some((fast, used)) = scan_deliver(&bytes)
                && let Some((key, tag, properties, body, general)) = assembled(&bytes)
            {
                prop_assert_eq!(used, general);
                prop_assert_eq!(fast.routing_key, &key[..]);
                prop_assert_eq!(fast.delivery_tag, tag);
                prop_assert_eq!(fast.properties, &properties[..]);
                prop_assert_eq!(fast.body, &body[..]);
            } else if change.is_none() {
                prop_assert!(false, "a message was not read");
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = scan_deliver(&bytes);
        }
    }
}
