//! What a client of the stream protocol sends, cut anywhere: never a panic, never a frame beyond the limit; what is a command is
//! the same when it is written and read again; and a connection comes to the same end whether the bytes come at once or in
//! pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Limits;
use protocol::amqp::handshake::Mechanism;
use protocol::stream::frame::frame_length;
use protocol::stream::{Body, Command, Connection, Event, Frame, Offer, Request, next_frame};

const FRAME_MAX: u32 = 4096;

fn read_again(command: &Command<'_>) {
    let mut out = Vec::new();
    command.encode(&mut out);
    let (frame, length) = next_frame(&out, 0)
        .expect("it was just written")
        .expect("all of it");
    assert_eq!(length, out.len());
    assert_eq!(Command::decode(&frame).as_ref(), Ok(command));
}

/// What holds lists is walked to its ends.
fn walk(command: &Command<'_>) {
    match command {
        Command::Publish(publish) => {
            let mut bytes = 0;
            for entry in publish.entries.iter() {
                assert!(entry.records() > 0);
                let body = match entry.body().expect("it was looked at") {
                    Body::Message(message) => message,
                    Body::Batch { batch, .. } => batch,
                };
                assert!(entry.bytes.ends_with(body));
                bytes += entry.bytes.len();
            }
            assert!(bytes <= FRAME_MAX as usize);
            assert_eq!(publish.entries.iter().count(), publish.entries.len());
        }
        Command::Request {
            request: Request::CreateSuperStream(create),
            ..
        } => {
            assert_eq!(create.partitions.iter().count(), create.partitions.len());
            assert_eq!(create.binding_keys.iter().count(), create.binding_keys.len());
            let _ = create.arguments.get("max-age");
        }
        Command::Request {
            request: Request::Metadata(metadata),
            ..
        } => assert_eq!(metadata.streams.iter().count(), metadata.streams.len()),
        _ => {}
    }
}

fn frames(bytes: &[u8]) {
    let mut at = 0;
    while let Ok(Some((frame, used))) = next_frame(&bytes[at..], FRAME_MAX) {
        assert!(frame.payload.len() + 4 <= FRAME_MAX as usize && used <= bytes.len() - at);
        // A frame is complete exactly when its last byte is there.
        assert_eq!(next_frame(&bytes[at..at + used - 1], FRAME_MAX), Ok(None));
        assert_eq!(frame_length(&bytes[at..]), Some(used));
        at += used;
        if let Ok(command) = Command::decode(&frame) {
            walk(&command);
            read_again(&command);
        }
    }
}

/// What came of the bytes, fed in pieces of so many at most to a connection that lets everybody in.
fn connection(bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>) {
    let offer = Offer {
        properties: vec![("product".into(), "RabbitMQ".into())],
        mechanisms: vec![Mechanism::Plain, Mechanism::AmqPlain],
        frame_max: FRAME_MAX,
        heartbeat_s: 60,
    };
    let mut connection = Connection::new(offer, Limits::default());
    let (mut events, mut out, mut kept, mut end) = (Vec::new(), Vec::new(), 0, 0);
    while end < bytes.len() {
        end = end.saturating_add(piece).min(bytes.len());
        loop {
            let (taken, event) = connection.advance(&bytes[kept..end], &mut out);
            assert!(taken <= end - kept);
            kept += taken;
            match &event {
                None => break,
                Some(Event::Authenticate(_)) => connection.accept(&mut out),
                Some(Event::Open { .. }) => connection.open(&[("advertised_port", "5552")], &mut out),
                Some(_) => {}
            }
            events.push(format!("{event:?}"));
        }
    }
    (events, out)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&selector, rest)) = bytes.split_first() else {
        return;
    };
    match selector & 1 {
        0 => frames(rest),
        _ => {
            // Frames of the opening, so that what is random comes to an open connection, too.
            let mut input = Vec::new();
            for (key, payload) in [
                (0x11, &b"\0\0\0\x01\0\0\0\0"[..]),
                (0x12, b"\0\0\0\x02"),
                (0x13, b"\0\0\0\x03\0\x05PLAIN\0\0\0\x04\0a\0b"),
                (0x14, b"\0\0\x10\0\0\0\0\0"),
                (0x15, b"\0\0\0\x04\0\x01/"),
            ]
            .iter()
            .take(usize::from(selector >> 1 & 7))
            {
                let frame = Frame {
                    key: *key,
                    version: 1,
                    payload,
                };
                let size = 4 + frame.payload.len() as u32;
                input.extend_from_slice(&size.to_be_bytes());
                input.extend_from_slice(&frame.key.to_be_bytes());
                input.extend_from_slice(&frame.version.to_be_bytes());
                input.extend_from_slice(frame.payload);
            }
            input.extend_from_slice(rest);
            let whole = connection(&input, usize::MAX);
            assert_eq!(connection(&input, 1 + usize::from(selector >> 4)), whole);
            assert!(whole.1.len() <= 20 * input.len() + 200);
        }
    }
});
