//! The client against scripted brokers on loopback sockets: real bytes both ways.

use super::scripted::{Offer, Peer, connecting, start};
use super::{Agreed, Client};
use crate::failure::Failure;
use crate::uri::Uri;
use model::table::Value;
use protocol::amqp::frame::HEARTBEAT_FRAME;
use protocol::amqp::method::*;
use protocol::amqp::{Method, encode};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

fn open(uri: &Uri) -> Result<Client, Failure> {
    Client::open(uri, &connecting(), "perf-test-producer-0", "test-1", None)
}

fn refused(uri: &Uri) -> String {
    let failure = open(uri).err().expect("a failure");
    assert!(matches!(failure, Failure::Connect(_)), "{failure:?}");
    let text = failure.to_string();
    assert!(!text.contains('\n') && !text.contains("s3cret"), "{text}");
    text
}

fn close(code: u16, text: &str) -> ConnectionClose<'_> {
    ConnectionClose {
        reply_code: code,
        reply_text: text,
        class_id: 0,
        method_id: 0,
    }
}

#[test]
fn a_login_says_who_we_are_and_what_we_understand() {
    let (mut uri, broker) = start(|mut peer| peer.log_in(&Offer::default()));
    (uri.user, uri.password, uri.vhost) = ("u".into(), "s3cret".into(), "v/w".into());
    let client = open(&uri).unwrap();
    let seen = broker.join().unwrap();
    assert_eq!(
        (seen.mechanism.as_str(), seen.response.as_slice()),
        ("PLAIN", &b"\0u\0s3cret"[..])
    );
    assert_eq!(seen.vhost, "v/w");
    assert_eq!(
        seen.properties.get("connection_name").and_then(Value::as_str),
        Some("perf-test-producer-0")
    );
    assert_eq!(seen.properties.get("id").and_then(Value::as_str), Some("test-1"));
    let capabilities = seen
        .properties
        .get("capabilities")
        .and_then(Value::as_table)
        .unwrap();
    for name in [
        "publisher_confirms",
        "basic.nack",
        "connection.blocked",
        "authentication_failure_close",
    ] {
        assert_eq!(
            capabilities.get(name).and_then(Value::as_bool),
            Some(true),
            "{name}"
        );
    }
    assert_eq!(client.server_version(), Some((4, 2)));
}

#[test]
fn a_token_takes_the_place_of_user_and_password() {
    let (uri, broker) = start(|mut peer| peer.log_in(&Offer::default()));
    Client::open(&uri, &connecting(), "n", "i", Some("t0ken")).unwrap();
    assert_eq!(broker.join().unwrap().response, b"\0\0t0ken");
}

#[test]
fn sasl_external_sends_no_password() {
    let (uri, broker) = start(|mut peer| peer.log_in(&Offer::default()));
    let how = crate::plan::Connecting {
        sasl_external: true,
        ..connecting()
    };
    Client::open(&uri, &how, "n", "i", None).unwrap();
    let seen = broker.join().unwrap();
    assert_eq!(
        (seen.mechanism.as_str(), seen.response.as_slice()),
        ("EXTERNAL", &b""[..])
    );
}

#[test]
fn a_broker_that_does_not_take_passwords_is_told_of() {
    let offer = Offer {
        mechanisms: "EXTERNAL",
        ..Default::default()
    };
    let (uri, _broker) = start(move |mut peer| peer.greet(&offer));
    assert!(refused(&uri).contains("--sasl-external"));
}

#[test]
fn the_smaller_limit_counts_and_zero_is_none() {
    let table = [
        // asked for: frame_max, heartbeat; offered: channel_max, frame_max, heartbeat; agreed
        ((0, 0), (2047, 131_072, 60), (2047, 131_072, 0)),
        ((8192, 10), (100, 131_072, 60), (100, 8192, 10)),
        ((262_144, 90), (4000, 131_072, 60), (2047, 131_072, 60)),
        ((0, 7), (0, 0, 0), (2047, 0, 7)),
        ((9000, 0), (0, 0, 0), (2047, 9000, 0)),
    ];
    for ((frame_max, heartbeat_s), (channel_max, offered, heartbeat), wanted) in table {
        let tune = ConnectionTune {
            channel_max,
            frame_max: offered,
            heartbeat,
        };
        let offer = Offer {
            tune,
            ..Default::default()
        };
        let (uri, broker) = start(move |mut peer| peer.log_in(&offer));
        let how = crate::plan::Connecting {
            frame_max,
            heartbeat_s,
            ..connecting()
        };
        let agreed = Client::open(&uri, &how, "n", "i", None).unwrap().agreed();
        let (channel_max, frame_max, heartbeat_s) = wanted;
        assert_eq!(
            agreed,
            Agreed {
                frame_max,
                channel_max,
                heartbeat_s
            }
        );
        let told = broker.join().unwrap().tune;
        assert_eq!((told.channel_max, told.frame_max, told.heartbeat), wanted);
    }
}

#[test]
fn nobody_there_is_told_with_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text = refused(&Uri::parse(&format!("amqp://u:s3cret@{address}")).unwrap());
    assert!(
        text.contains(&address.to_string()) && text.contains("refused"),
        "{text}"
    );
    assert!(text.contains("is the broker running"), "{text}");
}

#[test]
fn wrong_credentials_name_the_user_and_not_the_password() {
    let (mut uri, _broker) = start(|mut peer| {
        peer.greet(&Offer::default());
        peer.next(|_, _| ());
        peer.send(0, &close(403, "ACCESS_REFUSED - Login was refused"));
        peer.next(|_, _| ());
    });
    uri.password = "s3cret".into();
    let text = refused(&uri);
    assert!(
        text.contains("'guest'") && text.contains("403") && text.contains("own machine only"),
        "{text}"
    );
}

#[test]
fn a_broker_that_hangs_up_at_the_login_is_told_of_as_such() {
    let (mut uri, _broker) = start(|mut peer| {
        peer.greet(&Offer::default());
        peer.next(|_, _| ());
    });
    (uri.user, uri.password) = ("bob".into(), "s3cret".into());
    let text = refused(&uri);
    assert!(text.contains("hung up at the login of the user 'bob'"), "{text}");
}

#[test]
fn a_missing_virtual_host_is_told_with_how_to_create_it() {
    for (vhost, said, advice) in [
        (
            "shop",
            "NOT_ALLOWED - vhost shop not found",
            "rabbitmqctl add_vhost 'shop'",
        ),
        (
            "",
            "NOT_ALLOWED - vhost  not found",
            "leave out the '/' at the end",
        ),
        (
            "shop",
            "NOT_ALLOWED - access to vhost 'shop' refused for user 'guest'",
            "set_permissions -p 'shop' 'guest'",
        ),
    ] {
        let (mut uri, _broker) = start(move |mut peer| {
            peer.until_vhost(&Offer::default());
            peer.send(0, &close(530, said));
            peer.next(|_, _| ());
        });
        uri.vhost = vhost.into();
        let text = refused(&uri);
        assert!(text.contains(advice), "{text}");
    }
}

#[test]
fn a_frame_size_that_the_broker_hangs_up_at_is_named() {
    let (uri, _broker) = start(|mut peer| peer.until_vhost(&Offer::default()));
    let how = crate::plan::Connecting {
        frame_max: 100,
        ..connecting()
    };
    let text = Client::open(&uri, &how, "n", "i", None)
        .err()
        .unwrap()
        .to_string();
    assert!(
        text.contains("100 bytes") && text.contains("--framemax 8192"),
        "{text}"
    );
}

#[test]
fn servers_that_speak_something_else_are_recognised() {
    for (greeting, wanted) in [
        (&b"\x15\x03\x01\x00\x02\x02\x46"[..], "use amqps://"),
        (b"AMQP\x00\x01\x00\x00", "another version of AMQP"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP"),
        (b"220 smtp ready\r\n", "not an AMQP broker"),
        (b"", "may be a TLS port"),
    ] {
        let (uri, _broker) = start(move |mut peer| {
            peer.header();
            peer.socket.write_all(greeting).unwrap();
        });
        let text = refused(&uri);
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn a_refused_call_closes_its_channel_and_not_the_connection() {
    let (uri, broker) = start(|mut peer| {
        peer.log_in(&Offer::default());
        peer.serve(|method| match method {
            Method::QueueDeclare(it) if it.queue == "q" => Some((
                406,
                "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q'".into(),
            )),
            _ => None,
        })
    });
    let mut client = open(&uri).unwrap();
    client.open_channel(1).unwrap();
    let declare = QueueDeclare {
        queue: "q",
        ..Default::default()
    };
    let failure = client.declare_queue(1, &declare).unwrap_err();
    assert!(matches!(failure, Failure::Refused { code: 406, .. }));
    let text = failure.to_string();
    assert!(
        text.contains("inequivalent arg 'durable'") && text.contains("--predeclared"),
        "{text}"
    );
    assert!(!client.is_open(1));
    client.open_channel(1).unwrap();
    let declared = client
        .declare_queue(
            1,
            &QueueDeclare {
                queue: "r",
                ..Default::default()
            },
        )
        .unwrap();
    assert_eq!(
        (declared.name.as_str(), declared.messages, declared.consumers),
        ("r", 3, 2)
    );
    client.close();
    broker.join().unwrap();
}

#[test]
fn a_channel_that_closes_unasked_fails_the_next_call_on_it_alone() {
    let (uri, _broker) = start(|mut peer| {
        peer.log_in(&Offer::default());
        peer.next(|_, _| ());
        peer.send(1, &ChannelOpenOk {});
        peer.next(|_, _| ());
        let text = "NOT_FOUND - no exchange";
        peer.send(
            1,
            &ChannelClose {
                reply_code: 404,
                reply_text: text,
                class_id: 60,
                method_id: 40,
            },
        );
        peer.send(2, &ChannelOpenOk {});
        peer.serve(|_| None)
    });
    let mut client = open(&uri).unwrap();
    client.open_channel(1).unwrap();
    client.open_channel(2).unwrap();
    assert!(matches!(
        client.confirm_select(1),
        Err(Failure::Refused { code: 404, .. })
    ));
    client.confirm_select(2).unwrap();
}

#[test]
fn what_comes_before_an_answer_is_kept_out_of_the_way() {
    let (uri, _broker) = start(|mut peer| {
        peer.log_in(&Offer::default());
        peer.next(|_, _| ());
        let mut bytes = HEARTBEAT_FRAME.to_vec();
        let deliver = BasicDeliver {
            consumer_tag: "t",
            delivery_tag: 1,
            ..Default::default()
        };
        encode::content(&mut bytes, 2, &deliver, b"\0\0", b"body", 131_072);
        let returned = BasicReturn {
            reply_code: 312,
            ..Default::default()
        };
        encode::content(&mut bytes, 1, &returned, b"\0\0", b"", 131_072);
        encode::method(&mut bytes, 1, &ChannelOpenOk {});
        // What follows the answer belongs to whoever goes on.
        encode::ack(&mut bytes, 1, 7, false);
        peer.socket.write_all(&bytes).unwrap();
        peer.next(|_, _| ());
    });
    let mut client = open(&uri).unwrap();
    client.open_channel(1).unwrap();
    let (_transport, agreed, unused) = client.hand_over().unwrap();
    let mut ack = Vec::new();
    encode::ack(&mut ack, 1, 7, false);
    assert_eq!((agreed.frame_max, unused), (131_072, ack));
}

#[test]
fn a_broker_that_dies_in_the_middle_is_a_lost_connection() {
    let (uri, broker) = start(|mut peer| {
        peer.log_in(&Offer::default());
        peer.next(|_, _| ());
    });
    let mut client = open(&uri).unwrap();
    let failure = client.open_channel(1).unwrap_err();
    assert!(matches!(failure, Failure::Lost(_)), "{failure:?}");
    broker.join().unwrap();
}

#[test]
fn a_closed_connection_is_refused_with_the_brokers_words() {
    let (uri, _broker) = start(|mut peer| {
        peer.log_in(&Offer::default());
        peer.next(|_, _| ());
        peer.send(
            0,
            &close(320, "CONNECTION_FORCED - broker forced connection closure"),
        );
        peer.next(|_, _| ());
    });
    let failure = open(&uri).unwrap().open_channel(1).unwrap_err();
    assert!(
        matches!(&failure, Failure::Refused { code: 320, text } if text.contains("CONNECTION_FORCED")),
        "{failure:?}"
    );
}

#[test]
fn frames_above_the_agreed_size_are_refused() {
    let (uri, _broker) = start(|mut peer| {
        peer.log_in(&Offer::default());
        peer.next(|_, _| ());
        peer.socket.write_all(&[1, 0, 1, 0, 2, 0, 1]).unwrap();
        peer.next(|_, _| ());
    });
    let failure = open(&uri).unwrap().open_channel(1).unwrap_err();
    assert!(
        matches!(&failure, Failure::Lost(text) if text.contains("frame_too_large")),
        "{failure:?}"
    );
}

#[test]
fn more_channels_than_the_broker_has_are_refused_before_it_is_asked() {
    let tune = ConnectionTune {
        channel_max: 2,
        frame_max: 131_072,
        heartbeat: 0,
    };
    let (uri, _broker) = start(move |mut peer| {
        peer.log_in(&Offer {
            tune,
            ..Default::default()
        })
    });
    let failure = open(&uri).unwrap().open_channel(3).unwrap_err();
    assert!(
        matches!(&failure, Failure::Usage(text) if text.contains("2 channels")),
        "{failure:?}"
    );
}

/// A TLS server with a certificate of its own making; the script sees what is decrypted.
fn start_tls<T: Send + 'static>(
    script: impl FnOnce(Peer<StreamOwned<ServerConnection, TcpStream>>) -> T + Send + 'static,
) -> (Uri, thread::JoinHandle<T>, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let pem = made.cert.pem();
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || {
        let session = ServerConnection::new(Arc::new(config)).unwrap();
        script(Peer::new(StreamOwned::new(session, listener.accept().unwrap().0)))
    });
    (
        Uri::parse(&format!("amqps://localhost:{port}")).unwrap(),
        thread,
        pem,
    )
}

#[test]
fn over_tls_everything_is_as_in_the_clear() {
    let (uri, broker, _pem) = start_tls(|mut peer| {
        peer.log_in(&Offer::default());
        // More than one TLS record and more than the session's buffer, both ways.
        let mut large = Vec::new();
        peer.next(|_, _| ());
        peer.send(1, &ChannelOpenOk {});
        peer.socket.write_all(&vec![b'd'; 300_000]).unwrap();
        let mut buffer = [0; 4096];
        while large.len() < 300_000 {
            let read = peer.socket.read(&mut buffer).unwrap();
            large.extend_from_slice(&buffer[..read]);
        }
        large.iter().filter(|byte| **byte == b'u').count()
    });
    let mut client = open(&uri).unwrap();
    client.open_channel(1).unwrap();
    let (mut transport, _, mut down) = client.hand_over().unwrap();
    let (mut sent, mut buffer) = (0, [0; 4096]);
    // The socket does not block: both directions make progress whenever they can.
    while sent < 300_000 || transport.wants_write() || down.len() < 300_000 {
        if sent < 300_000
            && let Ok(written) = transport.write(&vec![b'u'; 300_000 - sent])
        {
            sent += written;
        }
        let flushed = transport.flush();
        assert!(
            flushed.is_ok() || flushed.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        );
        match transport.read(&mut buffer) {
            Ok(read) => down.extend_from_slice(&buffer[..read]),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        thread::yield_now();
    }
    assert!(down.len() == 300_000 && down.iter().all(|byte| *byte == b'd'));
    assert_eq!(broker.join().unwrap(), 300_000);
}

#[test]
fn a_certificate_is_verified_only_if_that_was_asked_for() {
    let how = crate::plan::Connecting {
        verify_peer: true,
        ..connecting()
    };
    let folder = tempfile::tempdir().unwrap();
    let (uri, broker, _pem) = start_tls(|mut peer| peer.socket.read(&mut [0; 8]).is_err());
    let failure = Client::open(&uri, &how, "n", "i", None)
        .err()
        .unwrap()
        .to_string();
    assert!(
        failure.contains("not trusted") && failure.contains("cacertfile="),
        "{failure}"
    );
    assert!(broker.join().unwrap());
    // With its authority named it is trusted.
    let (mut uri, broker, pem) = start_tls(|mut peer| peer.log_in(&Offer::default()));
    let path = folder.path().join("authority.pem");
    std::fs::write(&path, pem).unwrap();
    uri.query.authorities = Some(path);
    Client::open(&uri, &how, "n", "i", None).unwrap();
    broker.join().unwrap();
}

#[test]
fn tls_to_a_plain_port_is_recognised() {
    let (mut uri, _broker) = start(|mut peer| {
        let mut hello = [0; 8];
        peer.socket.read_exact(&mut hello).unwrap();
        peer.socket.write_all(b"AMQP\0\0\x09\x01").unwrap();
        // Until the client gives up, so that what was written is not lost with a reset.
        while peer.socket.read(&mut hello).is_ok_and(|read| read > 0) {}
    });
    uri.tls = true;
    let text = refused(&uri);
    assert!(text.contains("does not speak TLS"), "{text}");
}

#[test]
fn a_server_that_hangs_up_in_the_tls_handshake_is_told_of() {
    let (mut uri, broker) = start(|mut peer| peer.socket.read(&mut [0; 4096]).unwrap());
    uri.tls = true;
    let text = refused(&uri);
    assert!(text.contains("is it a broker's TLS port?"), "{text}");
    assert!(broker.join().unwrap() > 0);
}

#[test]
fn certificates_that_are_missing_are_named() {
    let mut uri = Uri::parse("amqps://localhost:1").unwrap();
    uri.query.certificate = Some("/nowhere/me.pem".into());
    uri.query.key = Some("/nowhere/me.key".into());
    let failure = open(&uri).err().unwrap();
    assert!(
        matches!(&failure, Failure::File(text) if text.contains("/nowhere/me.pem")),
        "{failure:?}"
    );
}
