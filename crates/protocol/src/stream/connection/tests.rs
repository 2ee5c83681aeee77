use super::*;
use crate::stream::answer::Content;
use crate::stream::field::{List, ListBuf, Opaque, Property, Text};
use crate::stream::offset::OffsetSpec;
use crate::stream::request::{ConsumerUpdate, Create, Open, PeerProperties, SaslAuthenticate, SaslHandshake};
use proptest::collection::vec;
use proptest::prelude::*;

fn connection() -> Connection {
    let offer = Offer {
        properties: vec![("product".into(), "RabbitMQ".into())],
        mechanisms: vec![Mechanism::Plain, Mechanism::AmqPlain],
        frame_max: 1_048_576,
        heartbeat_s: 60,
    };
    Connection::new(offer, Limits::default())
}

fn ask<'a>(request: impl Into<Request<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    let command = Command::Request {
        correlation_id: 7,
        request: request.into(),
    };
    command.encode(&mut out);
    out
}

fn say(command: &Command<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    command.encode(&mut out);
    out
}

fn peer_properties() -> Vec<u8> {
    let named = ListBuf::of([Property {
        key: "connection_name".into(),
        value: "mine".into(),
    }]);
    ask(PeerProperties {
        properties: named.as_list(),
    })
}

fn login(mechanism: &str, response: &[u8]) -> Vec<u8> {
    ask(SaslAuthenticate {
        mechanism: mechanism.into(),
        response: Opaque(response),
    })
}

fn tune(frame_max: u32, heartbeat_s: u32) -> Vec<u8> {
    say(&Command::Tune {
        frame_max,
        heartbeat_s,
    })
}

fn enter(vhost: &[u8]) -> Vec<u8> {
    ask(Open {
        virtual_host: Text(vhost),
    })
}

/// Feeds everything, which must be taken to the last byte, and gives what was written back. The bytes are kept for ever, so
/// that what came of them may be looked at later.
fn feed(connection: &mut Connection, bytes: &[u8]) -> (Vec<String>, Option<Event<'static>>) {
    let bytes: &'static [u8] = bytes.to_vec().leak();
    let mut out = Vec::new();
    let (taken, event) = connection.advance(bytes, &mut out);
    assert_eq!(taken, bytes.len());
    (heard(&out), event)
}

fn heard(mut bytes: &[u8]) -> Vec<String> {
    let mut said = Vec::new();
    while let Some((frame, used)) = next_frame(bytes, 0).unwrap() {
        said.push(match Command::decode(&frame).unwrap() {
            Command::Answer {
                correlation_id,
                answer,
            } => match answer.content {
                Content::Nothing => format!("{correlation_id} {}: {}", answer.key, answer.code),
                Content::Names(names) => format!("{correlation_id} {}: {names:?}", answer.key),
                Content::Properties(of) => format!("{correlation_id} {}: {of:?}", answer.key),
                other => panic!("{other:?}"),
            },
            Command::Request {
                correlation_id,
                request: Request::Close(close),
            } => format!("{correlation_id} close: {} {}", close.code, close.reason),
            Command::Tune {
                frame_max,
                heartbeat_s,
            } => format!("tune: {frame_max} {heartbeat_s}"),
            other => panic!("{other:?}"),
        });
        bytes = &bytes[used..];
    }
    assert!(bytes.is_empty());
    said
}

/// Logged in; the offer of frame size and heartbeat is out.
fn logged_in() -> Connection {
    let mut connection = connection();
    feed(&mut connection, &peer_properties());
    feed(&mut connection, &ask(SaslHandshake {}));
    feed(&mut connection, &login("PLAIN", b"\0guest\0guest"));
    connection.accept(&mut Vec::new());
    connection
}

fn opened() -> Connection {
    let mut connection = logged_in();
    feed(&mut connection, &tune(1_048_576, 60));
    feed(&mut connection, &enter(b"/"));
    connection.open(&[], &mut Vec::new());
    assert!(connection.is_open());
    connection
}

/// How it ended, and whether the client was told.
fn failure(event: Option<Event<'_>>) -> (ResponseCode, bool) {
    match event {
        Some(Event::Failed(failure)) => (failure.code, failure.told),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_comes_in() {
    let mut connection = connection();
    let (said, event) = feed(&mut connection, &peer_properties());
    assert_eq!(
        said,
        ["7 peer_properties: [Property { key: \"product\", value: \"RabbitMQ\" }]"]
    );
    assert_eq!(event, None);
    let name = connection.properties().get("connection_name");
    assert_eq!(name.and_then(|name| name.as_str()), Some("mine"));
    let (said, _) = feed(&mut connection, &ask(SaslHandshake {}));
    assert_eq!(said, ["7 sasl_handshake: [\"PLAIN\", \"AMQPLAIN\"]"]);
    let (said, event) = feed(&mut connection, &login("PLAIN", b"\0guest\0secret"));
    assert!(said.is_empty());
    let Some(Event::Authenticate(credentials)) = event else {
        panic!("{event:?}")
    };
    assert_eq!(
        (&credentials.user[..], &credentials.password[..]),
        ("guest", &b"secret"[..])
    );
    let mut out = Vec::new();
    connection.accept(&mut out);
    assert_eq!(heard(&out), ["7 sasl_authenticate: 1 (ok)", "tune: 1048576 60"]);
    let (said, event) = feed(&mut connection, &tune(0, 30));
    assert!(said.is_empty() && event.is_none());
    assert_eq!(
        (connection.frame_max(), connection.heartbeat_s()),
        (1_048_576, 30)
    );
    let (said, event) = feed(&mut connection, &enter(b"/"));
    assert!(said.is_empty());
    assert_eq!(event, Some(Event::Open { vhost: "/".into() }));
    let mut out = Vec::new();
    connection.open(&[("advertised_port", "5552")], &mut out);
    assert_eq!(
        heard(&out),
        ["7 open: [Property { key: \"advertised_port\", value: \"5552\" }]"]
    );
    assert!(connection.is_open());
}

#[test]
fn what_was_asked_is_answered_before_anything_more_is_read() {
    let mut connection = connection();
    feed(&mut connection, &peer_properties());
    feed(&mut connection, &ask(SaslHandshake {}));
    let mut out = Vec::new();
    let both = [login("PLAIN", b"\0guest\0guest"), tune(9_000, 0), enter(b"/")].concat();
    let (taken, event) = connection.advance(&both, &mut out);
    assert!(matches!(event, Some(Event::Authenticate(_))));
    assert_eq!(connection.advance(&both[taken..], &mut out), (0, None));
    connection.accept(&mut out);
    let (more, event) = connection.advance(&both[taken..], &mut out);
    assert_eq!(
        (taken + more, event),
        (both.len(), Some(Event::Open { vhost: "/".into() }))
    );
    assert_eq!(connection.frame_max(), 9_000);
}

#[test]
fn who_comes_too_early_or_twice_is_told_nothing() {
    for early in [
        ask(SaslHandshake {}),
        login("PLAIN", b"\0guest\0guest"),
        tune(0, 0),
        enter(b"/"),
        ask(Close::because(ResponseCode::Ok)),
        b"\0\0\0\x04\x7f\xff\0\x01".to_vec(),
        b"\0\0\0\x03abc".to_vec(),
    ] {
        let mut connection = connection();
        let (said, event) = feed(&mut connection, &early);
        assert!(said.is_empty());
        assert_eq!(failure(event), (ResponseCode::UnknownFrame, false), "{early:?}");
        assert_eq!(connection.advance(&early, &mut Vec::new()), (early.len(), None));
    }
    let mut connection = logged_in();
    let (_, event) = feed(&mut connection, &ask(SaslHandshake {}));
    assert_eq!(failure(event), (ResponseCode::UnknownFrame, false));
}

#[test]
fn refusals_have_their_codes() {
    let refused = |message: &[u8]| {
        let mut connection = connection();
        feed(&mut connection, &peer_properties());
        feed(&mut connection, &ask(SaslHandshake {}));
        let (mut said, event) = feed(&mut connection, message);
        let event = match event {
            Some(Event::Authenticate(_)) => {
                let mut out = Vec::new();
                let code = ResponseCode::AuthenticationFailureLoopback;
                let event = connection.refuse(code, "not from there", &mut out);
                said.extend(heard(&out));
                Some(event)
            }
            other => other,
        };
        let (_, told) = failure(event);
        assert!(!told);
        said
    };
    assert_eq!(
        refused(&login("SCRAM-SHA-256", b"")),
        ["7 sasl_authenticate: 7 (SASL mechanism not supported)"]
    );
    assert_eq!(
        refused(&login("PLAIN", b"guest")),
        ["7 sasl_authenticate: 9 (SASL error)"]
    );
    let loopback = refused(&login("PLAIN", b"\0guest\0guest"));
    assert!(
        loopback[0].starts_with("7 sasl_authenticate: 11 "),
        "{loopback:?}"
    );
    let mut connection = logged_in();
    let (said, event) = feed(&mut connection, &enter(b"\xff"));
    assert_eq!(said, ["7 open: 12 (virtual host access failure)"]);
    assert_eq!(failure(event), (ResponseCode::VirtualHostAccessFailure, false));
}

#[test]
fn frames_are_bounded_before_and_after_the_login() {
    let limits = Limits::default();
    let claim = |size: u32| size.to_be_bytes();
    let mut before = connection();
    assert_eq!(
        before.advance(&claim(limits.initial_frame_max), &mut Vec::new()),
        (0, None)
    );
    let (said, event) = feed(&mut before, &claim(limits.initial_frame_max + 1));
    assert!(said.is_empty());
    assert_eq!(failure(event), (ResponseCode::FrameTooLarge, false));

    let mut after = opened();
    assert_eq!(after.advance(&claim(1_048_576), &mut Vec::new()), (0, None));
    let (said, event) = feed(&mut after, &claim(1_048_577));
    assert_eq!(said, ["1 close: 14 frame too large"]);
    assert_eq!(failure(event), (ResponseCode::FrameTooLarge, true));
    // What follows is in the middle of something, whatever it looks like.
    let confirmed = say(&Command::Answer {
        correlation_id: 1,
        answer: Answer::code(Key::Close, ResponseCode::Ok),
    });
    assert_eq!(feed(&mut after, &confirmed), (vec![], None));
    let mut after = opened();
    let (said, event) = feed(&mut after, b"\0\0\0\x02\0\x02");
    assert_eq!(said, ["1 close: 13 unknown frame"]);
    assert_eq!(failure(event), (ResponseCode::UnknownFrame, true));
    assert_eq!(feed(&mut after, &confirmed), (vec![], None));
}

#[test]
fn the_smaller_frame_size_counts_and_none_is_no_limit() {
    for (client, agreed) in [(0, 1_048_576), (9_000, 9_000), (u32::MAX, 1_048_576)] {
        let mut connection = logged_in();
        feed(&mut connection, &tune(client, 0));
        assert_eq!(connection.frame_max(), agreed);
    }
}

#[test]
fn commands_are_handed_on_once_it_is_open() {
    let mut connection = opened();
    let create = Create {
        stream: "s".into(),
        arguments: List::default(),
    };
    assert_eq!(
        feed(&mut connection, &ask(create)).1,
        Some(Event::Request {
            correlation_id: 7,
            request: create.into()
        })
    );
    let credit = Command::Credit {
        subscription_id: 1,
        credit: 2,
    };
    assert_eq!(
        feed(&mut connection, &say(&credit)).1,
        Some(Event::Command(credit))
    );
    let answer = Answer::ok(Key::ConsumerUpdate, Content::From(Some(OffsetSpec::Offset(5))));
    let update = Command::Answer {
        correlation_id: 3,
        answer,
    };
    assert_eq!(
        feed(&mut connection, &say(&update)).1,
        Some(Event::Answer {
            correlation_id: 3,
            answer
        })
    );
    assert_eq!(feed(&mut connection, &say(&Command::Heartbeat)), (vec![], None));
}

#[test]
fn what_only_servers_say_or_comes_too_late_closes_the_connection() {
    let names = Content::Names(List::default());
    for wrong in [
        peer_properties(),
        ask(SaslHandshake {}),
        enter(b"/"),
        tune(0, 0),
        ask(ConsumerUpdate {
            subscription_id: 1,
            active: true,
        }),
        say(&Command::Answer {
            correlation_id: 1,
            answer: Answer::ok(Key::Partitions, names),
        }),
        say(&Command::MetadataUpdate {
            code: ResponseCode::StreamNotAvailable,
            stream: "s".into(),
        }),
        b"\0\0\0\x04\0\x02\0\x03".to_vec(),
    ] {
        let mut connection = opened();
        let (said, event) = feed(&mut connection, &wrong);
        assert_eq!(said, ["1 close: 13 unknown frame"], "{wrong:?}");
        assert_eq!(failure(event), (ResponseCode::UnknownFrame, true));
        // Whatever else comes is dropped until the client confirms.
        assert_eq!(feed(&mut connection, &wrong[..0]), (vec![], None));
        let confirmed = say(&Command::Answer {
            correlation_id: 1,
            answer: Answer::code(Key::Close, ResponseCode::Ok),
        });
        assert_eq!(feed(&mut connection, &confirmed).1, Some(Event::Closed));
    }
}

#[test]
fn a_client_that_closes_is_answered() {
    let mut connection = opened();
    let close = Close {
        code: 1,
        reason: "OK".into(),
    };
    let (said, event) = feed(&mut connection, &ask(close));
    assert_eq!(said, ["7 close: 1 (ok)"]);
    assert_eq!(event, Some(Event::Closed));
}

#[test]
fn new_credentials_come_by_the_same_mechanism() {
    let mut connection = opened();
    let again = login("PLAIN", b"\0guest\0new");
    assert!(matches!(
        feed(&mut connection, &again).1,
        Some(Event::Authenticate(_))
    ));
    let mut out = Vec::new();
    connection.accept(&mut out);
    assert_eq!(
        heard(&out),
        ["7 sasl_authenticate: 1 (ok)"],
        "nothing is tuned again"
    );
    assert!(connection.is_open());
    let (said, event) = feed(&mut connection, &login("AMQPLAIN", b""));
    assert_eq!(said, ["7 sasl_authenticate: 20 (SASL cannot change mechanism)"]);
    assert_eq!(failure(event), (ResponseCode::SaslCannotChangeMechanism, false));
}

#[test]
fn the_node_closes_whom_it_has_let_in_and_hangs_up_on_others() {
    let mut connection = opened();
    let close = Close {
        code: ResponseCode::Ok.number(),
        reason: "shutdown".into(),
    };
    let mut out = Vec::new();
    assert!(connection.close(&close, &mut out));
    assert_eq!(heard(&out), ["1 close: 1 shutdown"]);
    let mut out = Vec::new();
    assert!(!logged_in().close(&close, &mut out) && out.is_empty());
}

/// Every message of the opening, and some that come later, in any order and with any bytes between them.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let good = prop_oneof![
        Just(peer_properties()),
        Just(ask(SaslHandshake {})),
        Just(login("PLAIN", b"\0guest\0guest")),
        Just(tune(4_096, 9)),
        Just(enter(b"/")),
        Just(say(&Command::Heartbeat)),
        Just(ask(Close::because(ResponseCode::Ok))),
    ];
    let piece = prop_oneof![7 => good, 1 => vec(any::<u8>(), 0..30), 1 => Just(b"\x7f\0\0\0".to_vec())];
    // Half of them begin as they should.
    let opening = [
        peer_properties(),
        ask(SaslHandshake {}),
        login("PLAIN", b"\0guest\0guest"),
        tune(4_096, 9),
        enter(b"/"),
    ];
    (any::<bool>(), vec(piece, 0..12)).prop_map(move |(opens, pieces)| match opens {
        true => opening.iter().cloned().chain(pieces).collect(),
        false => pieces,
    })
}

/// What came of all bytes, fed in pieces of so many bytes at most.
fn run(bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>) {
    let (mut connection, mut events, mut out) = (connection(), Vec::new(), Vec::new());
    let (mut kept, mut end) = (0, 0);
    while end < bytes.len() {
        end = (end + piece).min(bytes.len());
        loop {
            let (taken, event) = connection.advance(&bytes[kept..end], &mut out);
            kept += taken;
            match &event {
                None => break,
                Some(Event::Authenticate(_)) => connection.accept(&mut out),
                Some(Event::Open { .. }) => connection.open(&[("a", "b")], &mut out),
                Some(_) => {}
            }
            // How much is thrown away after an error depends on how much came with it; that it is one doesn't.
            events.push(format!("{event:?}"));
        }
    }
    (events, out)
}

proptest! {
    #[test]
    fn it_means_the_same_in_whatever_pieces_it_comes(pieces in pieces(), piece in 1..40_usize) {
        let bytes = pieces.concat();
        prop_assert_eq!(run(&bytes, piece), run(&bytes, usize::MAX / 2));
    }

    #[test]
    fn answers_are_no_longer_than_a_few_times_the_questions(pieces in pieces()) {
        let bytes = pieces.concat();
        let (_, out) = run(&bytes, usize::MAX / 2);
        prop_assert!(out.len() <= 20 * bytes.len() + 100);
    }
}
