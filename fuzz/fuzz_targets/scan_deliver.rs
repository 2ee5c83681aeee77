//! A client's fast way and the general way must see the same delivery, and the fast way must see every delivery that has at
//! most one body frame. The input is the frames of one, with a few bytes overwritten.
#![no_main]

use leveret_fuzz::Source;
use libfuzzer_sys::fuzz_target;
use model::Limits;
use model::properties::BasicProperties;
use protocol::amqp::method::BasicDeliver;
use protocol::amqp::{Assembler, Content, Delivery, Method, Step, encode, next_frame, scan_deliver};
use std::sync::LazyLock;

static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);

fn delivery_frames(source: &mut Source<'_>) -> Vec<u8> {
    let bits = source.byte();
    let method = BasicDeliver {
        consumer_tag: std::str::from_utf8(source.bytes()).unwrap_or("tag"),
        delivery_tag: u64::from(source.byte()) << (bits & 31),
        redelivered: bits & 1 != 0,
        exchange: source.bytes(),
        routing_key: source.bytes(),
    };
    let properties = source.properties(bits >> 2);
    let frame_max = if bits & 16 != 0 { 20 } else { 0 };
    let mut out = Vec::new();
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

/// Bytes and frames of the first message, if all of its frames are there and of one channel, and its content is flawless.
fn extent(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut assembler = Assembler::new();
    let (mut end, mut frames) = (0, 0);
    loop {
        let (frame, used) = next_frame(&bytes[end..], 0).ok()??;
        if frame.channel != u16::from_be_bytes([bytes[1], bytes[2]]) {
            return None;
        }
        end += used;
        frames += 1;
        match assembler.feed(&frame, &LIMITS).ok()? {
            Step::More => {}
            Step::Content(Content {
                method: Method::BasicDeliver(_),
                ..
            }) => return Some((end, frames)),
            _ => return None,
        }
    }
}

/// Feeds the frames of a message that is all there, and compares it with what the fast way saw.
fn compare(fast: Delivery<'_>, bytes: &[u8]) {
    let mut assembler = Assembler::new();
    let mut at = 0;
    while let Ok(Some((frame, used))) = next_frame(&bytes[at..], 0) {
        at += used;
        if let Ok(Step::Content(content)) = assembler.feed(&frame, &LIMITS) {
            let Method::BasicDeliver(method) = content.method else {
                panic!("{content:?}")
            };
            let general = Delivery {
                channel: frame.channel,
                consumer_tag: method.consumer_tag.as_bytes(),
                delivery_tag: method.delivery_tag,
                redelivered: method.redelivered,
                exchange: method.exchange,
                routing_key: method.routing_key,
                properties: content.properties,
                body: content.body,
            };
            assert_eq!(fast, general);
            return;
        }
    }
    panic!("only the fast way sees {fast:?}");
}

fuzz_target!(|input: &[u8]| {
    let mut source = Source::new(input);
    let mut bytes = delivery_frames(&mut source);
    source.spoil(&mut bytes);

    match (scan_deliver(&bytes), extent(&bytes)) {
        (Some((fast, used)), Some((general_used, _))) => {
            assert_eq!(used, general_used);
            compare(fast, &bytes[..used]);
        }
        (Some((fast, _)), None) => {
            // Names and properties are all that the fast way does not look at.
            let flawless = std::str::from_utf8(fast.consumer_tag).is_ok()
                && BasicProperties::check(fast.properties, &LIMITS).is_ok();
            assert!(!flawless, "only the fast way sees {fast:?}");
        }
        (None, Some((_, frames))) => assert!(
            frames > 3,
            "only the general way sees a message of {frames} frames"
        ),
        (None, None) => {}
    }
});
