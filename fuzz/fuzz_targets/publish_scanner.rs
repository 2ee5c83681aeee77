//! The fast way and the general way must see the same publish, and the fast way must see every publish that has
//! at most one body frame. The input is the frames of one, with a few bytes overwritten.
#![no_main]

use leveret_fuzz::Source;
use libfuzzer_sys::fuzz_target;
use model::properties::Properties;
use model::{Limits, Message, RouteBuf};
use protocol::amqp::method::BasicPublish;
use protocol::amqp::{
    Assembler, Content, Method, Publish, PublishScanner, Step, encode, next_frame, scan_ack,
};
use std::sync::LazyLock;

const FRAME_MAX: u32 = 512;
static LIMITS: LazyLock<Limits> = LazyLock::new(|| Limits {
    message_bytes: 200,
    ..Limits::default()
});

fn publish_frames(source: &mut Source<'_>) -> Vec<u8> {
    let bits = source.byte();
    let method = BasicPublish {
        exchange: source.bytes(),
        routing_key: source.bytes(),
        mandatory: bits & 1 != 0,
        immediate: bits & 2 != 0,
    };
    let properties = source.properties(bits >> 2);
    let frame_max = if bits & 16 != 0 { 20 } else { FRAME_MAX };
    let mut out = Vec::new();
    if bits == 0xff {
        encode::ack(&mut out, 1, u64::from(source.byte()), source.byte() & 1 == 1);
    }
    encode::content(
        &mut out,
        u16::from(bits >> 5) + 1,
        &method,
        properties,
        source.bytes(),
        frame_max,
    );
    out
}

/// What the general way makes of the first publish, if it is flawless, on which channel, and how many bytes it
/// took.
fn general<'a>(
    bytes: &'a [u8],
    assembler: &'a mut Assembler,
    limits: &Limits,
) -> Option<(Content<'a>, u16, usize)> {
    // The content points into the assembler that held its method and header, so a scout looks for the last frame
    // and the assembler is fed up to there.
    let mut scout = Assembler::new();
    let mut end = 0;
    let last = loop {
        let start = end;
        let (frame, used) = next_frame(&bytes[start..], FRAME_MAX).ok()??;
        // The first frame's channel is the publish's; the front end gives each channel an assembler of its own.
        if frame.channel != u16::from_be_bytes([bytes[1], bytes[2]]) {
            return None;
        }
        end += used;
        match scout.feed(&frame, limits).ok()? {
            Step::More => {}
            Step::Content(_) => break start,
            Step::Method(_) | Step::Refused(_) => return None,
        }
    };
    let mut fed = 0;
    while fed < last {
        let (frame, used) = next_frame(&bytes[fed..], FRAME_MAX).ok()??;
        assembler.feed(&frame, limits).ok()?;
        fed += used;
    }
    let (frame, _) = next_frame(&bytes[last..], FRAME_MAX).ok()??;
    match assembler.feed(&frame, limits).ok()? {
        Step::Content(content) => Some((content, frame.channel, end)),
        _ => None,
    }
}

/// Frames that only the general way takes: more than one body frame, or larger than agreed by the tolerated 8.
fn out_of_scope(bytes: &[u8], used: usize) -> bool {
    let mut at = 0;
    let mut frames = 0;
    while at < used {
        let Ok(Some((_, length))) = next_frame(&bytes[at..], FRAME_MAX) else {
            return true;
        };
        if length > FRAME_MAX as usize {
            return true;
        }
        frames += 1;
        at += length;
    }
    frames > 3
}

fuzz_target!(|input: &[u8]| {
    let mut source = Source::new(input);
    let mut bytes = publish_frames(&mut source);
    // What the scanner remembers of a publish must not make it see another one in bytes that differ.
    let mut scanner = PublishScanner::new(FRAME_MAX, LIMITS.clone());
    let _ = scanner.scan(&bytes);
    source.spoil(&mut bytes);

    if let Some((ack, used)) = scan_ack(&bytes) {
        let frame = next_frame(&bytes, FRAME_MAX);
        let mut assembler = Assembler::new();
        let Ok(Some((frame, length))) = frame else {
            panic!("{frame:?}")
        };
        let step = assembler.feed(&frame, &LIMITS);
        assert_eq!(
            (step, frame.channel, length),
            (Ok(Step::Method(ack.method.into())), ack.channel, used)
        );
    }
    let fast = scanner.scan(&bytes);
    let mut assembler = Assembler::new();
    match (fast, general(&bytes, &mut assembler, &LIMITS)) {
        (Some((publish, used)), Some((content, channel, general_used))) => {
            let Method::BasicPublish(method) = content.method else {
                panic!("{content:?}")
            };
            let route = RouteBuf::new(method.exchange, method.routing_key);
            let expected = Publish {
                channel,
                mandatory: method.mandatory,
                immediate: method.immediate,
                message: Message::new(
                    route.as_route(),
                    Properties::amqp091(content.properties),
                    content.body,
                ),
            };
            assert_eq!((publish, used), (expected, general_used));
        }
        (Some(fast), None) => panic!("only the fast way sees {fast:?}"),
        (None, Some((content, channel, used))) => {
            let publish = matches!(content.method, Method::BasicPublish(_));
            let reserved = bytes[11..13] != [0, 0];
            assert!(
                !publish || channel == 0 || reserved || out_of_scope(&bytes, used),
                "only the general way sees {content:?}"
            );
        }
        (None, None) => {}
    }
});
