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
    use model::properties::BasicProperties;
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    /// A delivery as the general way sees it, with copies of what it points to.
    #[derive(Debug, PartialEq)]
    struct Assembled {
        channel: u16,
        consumer_tag: Vec<u8>,
        delivery_tag: u64,
        redelivered: bool,
        exchange: Vec<u8>,
        routing_key: Vec<u8>,
        properties: Vec<u8>,
        body: Vec<u8>,
        used: usize,
        frames: usize,
    }

    /// What the general way makes of the first message of `bytes`: `None` if that is no flawless delivery of one channel.
    fn assembled(bytes: &[u8]) -> Option<Assembled> {
        let mut assembler = Assembler::new();
        let channel = u16::from_be_bytes([*bytes.get(1)?, *bytes.get(2)?]);
        let (mut used, mut frames) = (0, 0);
        loop {
            let (frame, length) = next_frame(&bytes[used..], 0).ok()??;
            if frame.channel != channel {
                return None;
            }
            used += length;
            frames += 1;
            match assembler.feed(&frame, &Limits::default()).ok()? {
                Step::More => {}
                Step::Content(Content {
                    method: Method::BasicDeliver(it),
                    properties,
                    body,
                }) => {
                    return Some(Assembled {
                        channel,
                        consumer_tag: it.consumer_tag.as_bytes().to_vec(),
                        delivery_tag: it.delivery_tag,
                        redelivered: it.redelivered,
                        exchange: it.exchange.to_vec(),
                        routing_key: it.routing_key.to_vec(),
                        properties: properties.to_vec(),
                        body: body.to_vec(),
                        used,
                        frames,
                    });
                }
                _ => return None,
            }
        }
    }

    /// Makes sure that both ways see the same in `bytes`.
    fn compare(bytes: &[u8]) -> Result<(), TestCaseError> {
        match (scan_deliver(bytes), assembled(bytes)) {
            (Some((it, used)), Some(general)) => {
                let fast = Assembled {
                    channel: it.channel,
                    consumer_tag: it.consumer_tag.to_vec(),
                    delivery_tag: it.delivery_tag,
                    redelivered: it.redelivered,
                    exchange: it.exchange.to_vec(),
                    routing_key: it.routing_key.to_vec(),
                    properties: it.properties.to_vec(),
                    body: it.body.to_vec(),
                    used,
                    frames: if it.body.is_empty() { 2 } else { 3 },
                };
                prop_assert_eq!(fast, general);
            }
            (Some((it, _)), None) => {
                // Names and properties are all that the fast way does not look at.
                let flawless = std::str::from_utf8(it.consumer_tag).is_ok()
                    && BasicProperties::check(it.properties, &Limits::default()).is_ok();
                prop_assert!(!flawless, "only the fast way sees {it:?}");
            }
            (None, Some(it)) => prop_assert!(it.frames > 3, "only the general way sees {it:?}"),
            (None, None) => {}
        }
        Ok(())
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

    #[test]
    fn with_any_byte_changed_both_ways_still_see_the_same() {
        for body in [&b""[..], b"hello"] {
            let flawless = message(6, b"key", body);
            for at in 0..flawless.len() {
                for value in 0..=255 {
                    let mut bytes = flawless.clone();
                    bytes[at] = value;
                    compare(&bytes).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_header_without_flags_goes_the_general_way() {
        for properties in [&[][..], &[0]] {
            let mut bytes = Vec::new();
            encode::content(
                &mut bytes,
                3,
                &BasicDeliver::default(),
                properties,
                b"hello",
                4096,
            );
            assert_eq!(scan_deliver(&bytes), None);
        }
    }

    proptest! {
        #[test]
        fn the_fast_way_sees_what_the_general_way_sees(
            (channel, tag, redelivered) in (1u16.., any::<u64>(), any::<bool>()),
            consumer_tag in "[a-zé]{0,20}",
            names in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..=255), 2),
            persistent: bool,
            body in prop::collection::vec(any::<u8>(), 0..600),
            frame_max in prop_oneof![Just(0u32), Just(4096), 30u32..300],
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            more in prop::collection::vec(any::<u8>(), 0..30),
        ) {
            let deliver = BasicDeliver {
                consumer_tag: &consumer_tag,
                delivery_tag: tag,
                redelivered,
                exchange: &names[0],
                routing_key: &names[1],
            };
            let properties: &[u8] = if persistent { &[0x10, 0, 2] } else { &[0, 0] };
            let mut bytes = Vec::new();
            encode::content(&mut bytes, channel, &deliver, properties, &body, frame_max);
            for cut in 0..bytes.len() {
                prop_assert_eq!(scan_deliver(&bytes[..cut]), None);
            }
            let in_scope = frame_max == 0 || body.len() <= frame_max as usize - 8;
            prop_assert_eq!(scan_deliver(&bytes).is_some(), in_scope);
            compare(&bytes)?;
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
                compare(&bytes)?;
            }
            bytes.extend_from_slice(&more);
            compare(&bytes)?;
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            compare(&bytes)?;
        }
    }
}
