use super::*;
use crate::amqp::method::{ChannelOpen, ConnectionClose, ConnectionOpen, ConnectionTuneOk};

fn handshake() -> Handshake {
    let offer = Offer {
        server_properties: Table::new()
            .with("product", "RabbitMQ")
            .with("capabilities", Table::new()),
        mechanisms: vec![Mechanism::AmqPlain, Mechanism::Plain],
        tuning: Tuning {
            channel_max: 2047,
            frame_max: 131_072,
            heartbeat_s: 60,
        },
    };
    Handshake::new(offer, Limits::default())
}

fn frame<'a>(method: &impl Arguments<'a>) -> Vec<u8> {
    let mut out = Vec::new();
    encode::method(&mut out, 0, method);
    out
}

/// Feeds everything, which must be taken to the last byte, and gives what was written back as method names.
fn feed(handshake: &mut Handshake, bytes: &[u8]) -> (Vec<String>, Option<Event>) {
    let mut out = Vec::new();
    let (taken, event) = handshake.advance(bytes, &mut out);
    assert_eq!(taken, bytes.len());
    (methods_in(&out), event)
}

fn methods_in(mut bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((frame, used)) = next_frame(bytes, 0).unwrap() {
        let Ok(Part::Method(id, fields)) = frame.part() else {
            panic!("{frame:?}")
        };
        names.push(match Method::decode(id, fields).unwrap() {
            Method::ConnectionClose(close) => format!("{} {}", close.reply_code, close.reply_text),
            method => method.id().to_string(),
        });
        bytes = &bytes[used..];
    }
    assert!(bytes.is_empty());
    names
}

fn start_ok(mechanism: &str, response: &[u8], knows_failure: bool) -> Vec<u8> {
    let mut properties = Vec::new();
    let capabilities = Table::new().with("authentication_failure_close", knows_failure);
    Table::new()
        .with("capabilities", capabilities)
        .with("connection_name", "mine")
        .encode(&mut properties);
    let client_properties = RawTable(&properties);
    frame(&ConnectionStartOk {
        client_properties,
        mechanism,
        response: LongStr(response),
        locale: "en_US",
    })
}

/// A handshake that has come as far as `connection.tune`.
fn logged_in() -> Handshake {
    let mut handshake = handshake();
    feed(&mut handshake, &PROTOCOL_HEADER);
    let (_, event) = feed(&mut handshake, &start_ok("PLAIN", b"\0guest\0guest", true));
    assert!(matches!(event, Some(Event::Authenticate(_))));
    handshake.accept(&mut Vec::new());
    handshake
}

#[test]
fn a_client_comes_in() {
    let mut handshake = handshake();
    assert_eq!(
        feed(&mut handshake, &PROTOCOL_HEADER),
        (vec!["connection.start".into()], None)
    );
    let (written, event) = feed(&mut handshake, &start_ok("PLAIN", b"\0guest\0secret", true));
    assert!(written.is_empty());
    let Some(Event::Authenticate(credentials)) = event else {
        panic!("{event:?}")
    };
    assert_eq!(
        (credentials.user.as_str(), credentials.password.as_slice()),
        ("guest", &b"secret"[..])
    );
    let mut out = Vec::new();
    handshake.accept(&mut out);
    assert_eq!(methods_in(&out), ["connection.tune"]);
    let mut bytes = frame(&ConnectionTuneOk {
        channel_max: 100,
        frame_max: 8_192,
        heartbeat: 5,
    });
    bytes.extend_from_slice(&super::super::frame::HEARTBEAT_FRAME);
    bytes.extend(frame(&ConnectionOpen { virtual_host: "/" }));
    assert_eq!(
        feed(&mut handshake, &bytes),
        (vec![], Some(Event::Open { vhost: "/".into() }))
    );
    let mut out = Vec::new();
    handshake.open(&mut out);
    assert_eq!(methods_in(&out), ["connection.open-ok"]);
    assert!(handshake.is_running());
    // What follows is the connection's.
    assert_eq!(handshake.advance(b"abc", &mut out), (0, None));
    let (client, tuned) = handshake.finish();
    assert_eq!(client.connection_name(), Some("mine"));
    assert_eq!(
        tuned,
        Tuning {
            channel_max: 100,
            frame_max: 8_192,
            heartbeat_s: 5
        }
    );
}

#[test]
fn single_bytes_are_enough() {
    let mut handshake = handshake();
    let mut bytes = PROTOCOL_HEADER.to_vec();
    bytes.extend(start_ok(
        "AMQPLAIN",
        b"\x05LOGINS\0\0\0\x01a\x08PASSWORDS\0\0\0\x01b",
        true,
    ));
    let mut pending = Vec::new();
    let mut events = Vec::new();
    for byte in bytes {
        pending.push(byte);
        let (taken, event) = handshake.advance(&pending, &mut Vec::new());
        pending.drain(..taken);
        events.extend(event);
    }
    assert!(
        matches!(&events[..], [Event::Authenticate(login)] if login.user == "a"),
        "{events:?}"
    );
}

#[test]
fn the_server_properties_are_sorted() {
    let mut out = Vec::new();
    handshake().advance(&PROTOCOL_HEADER, &mut out);
    let (frame, _) = next_frame(&out, 0).unwrap().unwrap();
    let Ok(Part::Method(_, fields)) = frame.part() else {
        panic!("{frame:?}")
    };
    let start = ConnectionStart::decode(fields).unwrap();
    let names: Vec<_> = start
        .server_properties
        .entries()
        .map(|entry| entry.unwrap().0)
        .collect();
    assert_eq!(names, [&b"capabilities"[..], b"product"]);
    assert_eq!((start.version_major, start.version_minor), (0, 9));
    assert_eq!(start.mechanisms.0, b"AMQPLAIN PLAIN");
}

#[test]
fn other_protocols_are_told_ours() {
    for header in [b"AMQP\0\x01\0\0", b"AMQP\x03\x01\0\0", b"GET / HT"] {
        let mut handshake = handshake();
        let mut out = Vec::new();
        let (_, event) = handshake.advance(header, &mut out);
        assert_eq!(event, Some(Event::WrongProtocol(*header)));
        assert_eq!(out, PROTOCOL_HEADER);
    }
    let (written, _) = feed(&mut handshake(), b"AMQP\x01\x01\0\x09");
    assert_eq!(written, ["connection.start"]);
}

#[test]
fn a_wrong_login_is_told_to_those_who_understand() {
    for knows in [true, false] {
        let mut handshake = handshake();
        feed(&mut handshake, &PROTOCOL_HEADER);
        feed(&mut handshake, &start_ok("PLAIN", b"\0guest\0wrong", knows));
        let mut out = Vec::new();
        let event = handshake.refuse(&mut out);
        assert!(matches!(event, Event::Failed { told, .. } if told == knows));
        let text = "403 ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. \
                    For details see the broker logfile.";
        assert_eq!(
            methods_in(&out),
            if knows { vec![text.to_owned()] } else { vec![] }
        );
        let (_, event) = handshake.advance(&frame(&ConnectionCloseOk {}), &mut out);
        assert_eq!(event, if knows { Some(Event::Closed) } else { None });
    }
}

#[test]
fn mistakes_before_the_login_are_refused() {
    let cases: [(Vec<u8>, &str); 6] = [
        (
            start_ok("NOPE", b"", true),
            "503 COMMAND_INVALID - unknown authentication mechanism 'NOPE'",
        ),
        (
            start_ok("PLAIN", b"guest", true),
            "502 SYNTAX_ERROR - PLAIN response invalid",
        ),
        (
            frame(&ConnectionOpen { virtual_host: "/" }),
            "504 CHANNEL_ERROR - unexpected method in connection state starting",
        ),
        (
            b"\x01\0\0\0\0\x20\x01".to_vec(),
            "501 FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,8193,8184}",
        ),
        (
            b"\x01\0\x01\0\0\0\x05\0\x14\0\x0a\0\xce".to_vec(),
            "505 UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,0>>",
        ),
        (
            b"\x01\0\0\0\0\0\x04\0\x0a\0\x0b\xce".to_vec(),
            "501 FRAME_ERROR - cannot decode <<>>",
        ),
    ];
    for (bytes, text) in cases {
        let mut handshake = handshake();
        feed(&mut handshake, &PROTOCOL_HEADER);
        let (written, event) = feed(&mut handshake, &bytes);
        assert_eq!(written, [text]);
        assert!(matches!(event, Some(Event::Failed { told: true, .. })));
    }
}

#[test]
fn a_tuning_beyond_the_offer_is_refused() {
    let mut handshake = logged_in();
    let (written, _) = feed(
        &mut handshake,
        &frame(&ConnectionTuneOk {
            channel_max: 2047,
            frame_max: 4_096,
            heartbeat: 0,
        }),
    );
    let text = "530 NOT_ALLOWED - negotiated frame_max = 4096 is lower than the minimum allowed value (8192)";
    assert_eq!(written, [text]);
    // What the client had already sent is passed over until it confirms.
    let mut bytes = frame(&ConnectionOpen { virtual_host: "/" });
    encode::method(&mut bytes, 1, &ChannelOpen {});
    bytes.extend(frame(&ConnectionCloseOk {}));
    assert_eq!(feed(&mut handshake, &bytes), (vec![], Some(Event::Closed)));
}

#[test]
fn a_client_may_leave_before_it_is_in() {
    let mut handshake = logged_in();
    let (written, event) = feed(&mut handshake, &frame(&ConnectionClose::default()));
    assert_eq!(
        (written, event),
        (vec!["connection.close-ok".to_owned()], Some(Event::Closed))
    );
}

#[test]
fn an_unknown_vhost_is_the_front_ends_to_refuse() {
    let mut handshake = logged_in();
    let mut bytes = frame(&ConnectionTuneOk {
        channel_max: 2047,
        frame_max: 131_072,
        heartbeat: 0,
    });
    bytes.extend(frame(&ConnectionOpen { virtual_host: "nope" }));
    feed(&mut handshake, &bytes);
    let mut out = Vec::new();
    let exception = Exception::new(ReplyCode::NotAllowed, "vhost nope not found", ConnectionOpen::ID);
    handshake.refuse_open(exception, &mut out);
    assert_eq!(methods_in(&out), ["530 NOT_ALLOWED - vhost nope not found"]);
}
