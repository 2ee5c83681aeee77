//! The gateway with real sockets: what only they show.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use broker::Broker;
use gateway::{Endpoint, Gateway, Options, StartError, amqp};
use protocol::amqp::handshake::PROTOCOL_HEADER;
use protocol::amqp::method::{
    BasicPublish, ChannelOpen, ConnectionCloseOk, ConnectionOpen, ConnectionStartOk, ConnectionTuneOk,
    QueueDeclare,
};
use protocol::amqp::{LongStr, Part, RawTable, encode, next_frame};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

struct Node {
    gateway: Gateway,
    broker: Arc<Broker>,
    _data: tempfile::TempDir,
}

fn node() -> Node {
    let data = tempfile::tempdir().unwrap();
    let broker = Broker::open(broker::Options::new(data.path())).unwrap();
    let mut options = Options::new(vec![Endpoint::plain(
        amqp::PROTOCOL,
        "127.0.0.1:0".parse().unwrap(),
    )]);
    options.threads = Some(2);
    let gateway = Gateway::start(broker.clone(), options).unwrap();
    Node {
        gateway,
        broker,
        _data: data,
    }
}

struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    fn open(node: &Node) -> Self {
        let stream = TcpStream::connect(node.gateway.endpoints()[0].address.network().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut client = Self {
            stream,
            unread: Vec::new(),
        };
        let mut bytes = PROTOCOL_HEADER.to_vec();
        let start_ok = ConnectionStartOk {
            client_properties: RawTable(&[]),
            mechanism: "PLAIN",
            response: LongStr(b"\0guest\0guest"),
            locale: "en_US",
        };
        encode::method(&mut bytes, 0, &start_ok);
        encode::method(
            &mut bytes,
            0,
            &ConnectionTuneOk {
                channel_max: 7,
                frame_max: 131_072,
                heartbeat: 0,
            },
        );
        encode::method(&mut bytes, 0, &ConnectionOpen { virtual_host: "/" });
        encode::method(&mut bytes, 1, &ChannelOpen {});
        client.write(&bytes);
        for expected in [
            "connection.start",
            "connection.tune",
            "connection.open-ok",
            "channel.open-ok",
        ] {
            assert_eq!(client.next().as_deref(), Some(expected));
        }
        client
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next method's name; `None` at the end.
    fn next(&mut self) -> Option<String> {
        loop {
            if let Some((frame, length)) = next_frame(&self.unread, 0).unwrap() {
                let name = match frame.part().unwrap() {
                    Part::Method(id, _) => id.to_string(),
                    other => format!("{other:?}"),
                };
                self.unread.drain(..length);
                return Some(name);
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer).unwrap() {
                0 => return None,
                count => self.unread.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

#[test]
fn a_stop_closes_connections_with_a_word_and_then_listens_no_more() {
    let node = node();
    let mut polite = Client::open(&node);
    let address = node.gateway.endpoints()[0].address.network().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| node.gateway.stop());
        assert_eq!(polite.next().as_deref(), Some("connection.close"));
        let mut bytes = Vec::new();
        encode::method(&mut bytes, 0, &ConnectionCloseOk {});
        polite.write(&bytes);
        assert_eq!(polite.next(), None);
    });
    assert!(TcpStream::connect(address).is_err());
    node.gateway.stop();
    node.broker.close();
}

#[test]
fn an_address_in_use_is_named() {
    let node = node();
    let address = node.gateway.endpoints()[0].address.network().unwrap();
    let error = Gateway::start(
        node.broker.clone(),
        Options::new(vec![Endpoint::plain(amqp::PROTOCOL, address)]),
    )
    .unwrap_err();
    assert!(matches!(error, StartError::Listen { address: named, .. } if named == address));
    assert!(error.to_string().contains("another process"), "{error}");
}

#[test]
fn a_message_in_small_pieces_and_a_frame_beyond_the_read_buffer_arrive() {
    let node = node();
    let mut client = Client::open(&node);
    let mut bytes = Vec::new();
    encode::method(
        &mut bytes,
        1,
        &QueueDeclare {
            queue: "q",
            exclusive: true,
            ..Default::default()
        },
    );
    let publish = BasicPublish {
        routing_key: b"q",
        ..Default::default()
    };
    for size in [0, 1, 5_000, 131_064, 131_065, 1_000_000] {
        encode::content(&mut bytes, 1, &publish, b"\0\0", &vec![7; size], 131_072);
    }
    encode::method(
        &mut bytes,
        1,
        &QueueDeclare {
            queue: "q",
            passive: true,
            ..Default::default()
        },
    );
    for piece in bytes.chunks(777) {
        client.write(piece);
    }
    assert_eq!(client.next().as_deref(), Some("queue.declare-ok"));
    assert_eq!(client.next().as_deref(), Some("queue.declare-ok"));
}

#[test]
fn many_connections_come_and_go() {
    let node = node();
    let mut clients: Vec<Client> = (0..50).map(|_| Client::open(&node)).collect();
    clients.truncate(25);
    let mut bytes = Vec::new();
    encode::method(
        &mut bytes,
        1,
        &QueueDeclare {
            exclusive: true,
            ..Default::default()
        },
    );
    for client in &mut clients {
        client.write(&bytes);
        assert_eq!(client.next().as_deref(), Some("queue.declare-ok"));
    }
}
