use super::*;
use crate::amqp::encode;
use crate::amqp::frame::next_frame;
use crate::amqp::method::{BasicAck, BasicPublish};
use crate::amqp::publish::PublishScanner;
use proptest::prelude::*;

const PUBLISH: BasicPublish<'static> = BasicPublish {
    exchange: b"e",
    routing_key: b"k",
    mandatory: false,
    immediate: false,
};

/// What came of feeding all frames: contents as (key, properties, body), refusals and errors as texts.
fn feed_all(assembler: &mut Assembler, mut bytes: &[u8], limits: &Limits) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some((frame, used)) = next_frame(bytes, 0).unwrap() {
        bytes = &bytes[used..];
        match assembler.feed(&frame, limits) {
            Ok(Step::More) => {}
            Ok(Step::Method(method)) => seen.push(method.id().to_string()),
            Ok(Step::Content(content)) => {
                let Method::BasicPublish(publish) = content.method else {
                    panic!("{content:?}")
                };
                assert_eq!(publish, PUBLISH);
                seen.push(format!(
                    "{:?} {}",
                    content.properties,
                    String::from_utf8_lossy(content.body)
                ));
            }
            Ok(Step::Refused(exception)) => seen.push(exception.reply_text()),
            Err(exception) => {
                seen.push(format!("{} at {}", exception.reply_text(), exception.method));
                return seen;
            }
        }
    }
    seen
}

fn published(body: &[u8], frame_max: u32) -> Vec<u8> {
    let mut out = Vec::new();
    encode::content(&mut out, 1, &PUBLISH, b"\x10\0\x02", body, frame_max);
    out
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = encode::frame_head(kind, 1, payload.len() as u32).to_vec();
    out.extend_from_slice(payload);
    out.push(0xce);
    out
}

fn header(class: u16, weight: u16, body_size: u64, properties: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    ContentHeader {
        class,
        weight,
        body_size,
        properties,
    }
    .encode(&mut payload);
    frame(2, &payload)
}

fn method_only() -> Vec<u8> {
    let mut out = Vec::new();
    encode::method(&mut out, 1, &PUBLISH);
    out
}

fn after_publish(frames: &[Vec<u8>]) -> Vec<String> {
    let bytes = [method_only(), frames.concat()].concat();
    feed_all(&mut Assembler::new(), &bytes, &Limits::default())
}

#[test]
fn the_frame_that_makes_a_message_whole_may_be_taken_back_and_fed_again() {
    let limits = Limits::default();
    for body in [&b""[..], b"in one", b"a body of several frames"] {
        let bytes = published(body, 20);
        let mut assembler = Assembler::new();
        let mut rest = &bytes[..];
        let mut seen = Vec::new();
        while let Some((_, used)) = next_frame(rest, 0).unwrap() {
            let (one, behind) = rest.split_at(used);
            seen = feed_all(&mut assembler, one, &limits);
            if behind.is_empty() {
                assembler.take_back();
                assert!(!assembler.is_idle());
                assert_eq!(feed_all(&mut assembler, one, &limits), seen);
            }
            rest = behind;
        }
        assert_eq!(seen.len(), 1);
        assert!(assembler.is_idle() && seen[0].ends_with(std::str::from_utf8(body).unwrap()));
        assert_eq!(feed_all(&mut assembler, &bytes, &limits), seen);
    }
}

#[test]
fn contents_come_whole_however_they_are_cut() {
    for frame_max in [0, 9, 12, 4096] {
        let mut bytes = published(b"hello", frame_max);
        bytes.extend(published(b"", frame_max));
        encode::method(
            &mut bytes,
            1,
            &BasicAck {
                delivery_tag: 1,
                multiple: false,
            },
        );
        let mut assembler = Assembler::new();
        let seen = feed_all(&mut assembler, &bytes, &Limits::default());
        assert_eq!(seen, ["[16, 0, 2] hello", "[16, 0, 2] ", "basic.ack"]);
        assert!(assembler.is_idle());
    }
}

#[test]
fn memory_grows_with_what_came_and_is_given_back_after_the_message() {
    let limits = Limits::default();
    let size = 16 * 1024 * 1024;
    let mut assembler = Assembler::new();
    feed_all(&mut assembler, &method_only(), &limits);
    feed_all(&mut assembler, &header(60, 0, size, b"\0\0"), &limits);
    assert!(assembler.held_bytes() < 100, "what was announced takes no memory");
    for sent in 1..=4 {
        feed_all(&mut assembler, &frame(3, &[7; 100_000]), &limits);
        let expected = sent * 100_000 + assembler.unfinished() % 1_000;
        assert_eq!(assembler.unfinished(), expected);
        assert!(assembler.held_bytes() < 2 * expected);
    }
    let mut assembler = Assembler::new();
    let seen = feed_all(&mut assembler, &published(&[b'x'; 100_000], 4096), &limits);
    assert_eq!(seen.len(), 1);
    assembler.finish();
    assert_eq!((assembler.unfinished(), assembler.held_bytes()), (0, 0));
}

#[test]
fn empty_body_frames_are_passed_over() {
    let frames = [header(60, 0, 2, b"\0\0"), frame(3, b""), frame(3, b"ab")];
    assert_eq!(after_publish(&frames), ["[0, 0] ab"]);
}

#[test]
fn a_message_above_the_limit_costs_the_channel_and_its_body_is_passed_over() {
    let limits = Limits {
        message_bytes: 4,
        ..Limits::default()
    };
    let bytes = [published(b"hello", 10), published(b"ok", 0)].concat();
    let mut assembler = Assembler::new();
    let seen = feed_all(&mut assembler, &bytes, &limits);
    let refusal = "PRECONDITION_FAILED - message size 5 is larger than configured max size 4";
    assert_eq!(seen, [refusal, "[16, 0, 2] ok"]);
    assert!(
        assembler.held_bytes() < 100,
        "nothing of the refused body was kept"
    );
}

#[test]
fn a_message_above_the_limit_is_refused_with_its_last_byte_and_not_before() {
    let limits = Limits {
        message_bytes: 4,
        ..Limits::default()
    };
    let whole = published(b"hello", 9);
    let begun = whole.len() - 9;
    let mut assembler = Assembler::new();
    assert!(feed_all(&mut assembler, &whole[..begun], &limits).is_empty());
    assert_eq!(feed_all(&mut assembler, &whole[begun..], &limits).len(), 1);
    assert!(feed_all(&mut assembler, &whole[..begun], &limits).is_empty());
    let more = [frame(3, b"hello"), method_only()];
    let errors = [
        "FRAME_ERROR - content body frame exceeds",
        "UNEXPECTED_FRAME - expected content body",
    ];
    for (more, error) in more.iter().zip(errors) {
        let mut assembler = Assembler::new();
        feed_all(&mut assembler, &whole[..begun], &limits);
        let seen = feed_all(&mut assembler, more, &limits);
        assert!(seen.len() == 1 && seen[0].starts_with(error), "{seen:?}");
    }
}

#[test]
fn frames_out_of_turn_are_refused_in_rabbitmqs_words() {
    let no_header = "UNEXPECTED_FRAME - expected content header for class 60, \
                     got non content header frame instead at basic.publish";
    let no_body =
        "UNEXPECTED_FRAME - expected content body, got non content body frame instead at basic.publish";
    assert_eq!(after_publish(&[frame(3, b"x")]), [no_header]);
    assert_eq!(after_publish(&[method_only()]), [no_header]);
    assert_eq!(after_publish(&[header(60, 1, 0, b"\0\0")]), [no_header]);
    assert_eq!(
        after_publish(&[header(50, 0, 0, b"\0\0")]),
        [
            "UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead at basic.publish"
        ]
    );
    assert_eq!(
        after_publish(&[header(60, 0, 5, b"\0\0"), method_only()]),
        [no_body]
    );
    assert_eq!(
        after_publish(&[header(60, 0, 5, b"\0\0"), frame(3, b"123456")]),
        ["FRAME_ERROR - content body frame exceeds remaining content size at basic.publish"]
    );
    assert_eq!(
        after_publish(&[header(60, 0, 1 << 40, b"\0\0")]),
        [
            "FRAME_ERROR - content body size 1099511627776 exceeds maximum allowed size 536870912 at basic.publish"
        ]
    );
    assert_eq!(
        feed_all(&mut Assembler::new(), &frame(3, b"x"), &Limits::default()),
        ["UNEXPECTED_FRAME - expected method frame, got non method frame instead at 0.0"]
    );
    assert_eq!(
        feed_all(&mut Assembler::new(), &frame(8, b""), &Limits::default()),
        ["UNEXPECTED_FRAME - type 8, all octets = <<>> at 0.0"]
    );
}

#[test]
fn malformed_properties_are_refused() {
    let seen = after_publish(&[header(60, 0, 0, b"\x80\0\x05a")]);
    assert_eq!(
        seen,
        ["SYNTAX_ERROR - properties end within the list at basic.publish"]
    );
}

#[test]
fn a_large_buffer_is_given_back() {
    let mut assembler = Assembler::new();
    feed_all(
        &mut assembler,
        &published(&vec![7; 300_000], 4096),
        &Limits::default(),
    );
    assert!(assembler.held_bytes() > 200_000);
    feed_all(&mut assembler, &published(b"small", 4096), &Limits::default());
    assert!(assembler.held_bytes() <= KEPT);
}

proptest! {
    /// The fast way and the general way see the same messages in the same bytes.
    #[test]
    fn the_scanner_agrees(
        body in prop::collection::vec(any::<u8>(), 0..50),
        properties in prop::collection::vec(any::<u8>(), 0..6),
        frame_max in 30u32..80,
        flip in prop::option::of((any::<prop::sample::Index>(), 0u32..8)),
    ) {
        let mut bytes = Vec::new();
        encode::content(&mut bytes, 1, &PUBLISH, &properties, &body, frame_max);
        if let Some((at, bit)) = flip {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        let limits = Limits::default();
        if let Some((publish, used)) = PublishScanner::new(80, limits.clone()).scan(&bytes) {
            let mut assembler = Assembler::new();
            let mut at = 0;
            while at < used {
                let (frame, length) = next_frame(&bytes[at..], 80).unwrap().unwrap();
                prop_assert_eq!(frame.channel, publish.channel);
                at += length;
                match assembler.feed(&frame, &limits) {
                    Ok(Step::More) => prop_assert!(at < used),
                    Ok(Step::Content(content)) => {
                        prop_assert_eq!(at, used);
                        let method = BasicPublish {
                            exchange: publish.message.route.exchange(),
                            routing_key: publish.message.route.routing_key(),
                            mandatory: publish.mandatory,
                            immediate: publish.immediate,
                        };
                        prop_assert_eq!(content.method, Method::BasicPublish(method));
                        prop_assert_eq!(content.properties, publish.message.properties.bytes());
                        prop_assert_eq!(content.body, publish.message.body);
                    }
                    other => panic!("{other:?}"),
                }
            }
        } else if flip.is_none() {
            // Flawless bytes are only left to the general way if there is more than one body frame, or if
            // the properties are malformed.
            let one_frame = body.len() <= frame_max as usize - 8;
            prop_assert!(!one_frame || BasicProperties::check(&properties, &limits).is_err());
        }
    }
}
