//! A client on a socket: listener, threads and broker serve the stream protocol like any other.

use super::front_end::{PROTOCOL, Stream};
use super::memory::Memory;
use super::options::Options;
use crate::Gateway;
use broker::Broker;
use listener::Endpoint;
use protocol::stream::request::{
    Create, DeclarePublisher, Open, PeerProperties, SaslAuthenticate, SaslHandshake,
};
use protocol::stream::{Body, Command, EntriesBuf, Opaque, Publish, Request, next_frame};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

struct Client(TcpStream, Vec<u8>);

impl Client {
    fn say(&mut self, command: &Command<'_>) {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        self.0.write_all(&bytes).unwrap();
    }

    fn ask<'a>(&mut self, request: impl Into<Request<'a>>) {
        self.say(&Command::Request {
            correlation_id: 1,
            request: request.into(),
        });
    }

    /// The key of the next frame, and how many bytes follow its version.
    fn hear(&mut self) -> (u16, usize) {
        loop {
            if let Some((frame, length)) = next_frame(&self.1, 0).unwrap() {
                let heard = (frame.key, frame.payload.len());
                self.1.drain(..length);
                return heard;
            }
            let mut piece = [0; 4096];
            let count = self.0.read(&mut piece).unwrap();
            assert!(count > 0, "the connection was closed");
            self.1.extend_from_slice(&piece[..count]);
        }
    }
}

#[test]
fn a_client_publishes_over_a_socket() {
    let data = tempfile::tempdir().unwrap();
    let broker = Broker::open(broker::Options::new(data.path())).unwrap();
    let endpoint = Endpoint::plain(PROTOCOL, "127.0.0.1:0".parse().unwrap());
    let mut options = crate::Options::new(vec![endpoint]);
    options.threads = Some(2);
    let stream = Stream {
        broker: broker.clone(),
        options: Options::new("localhost", 5552, 5551),
        source: Arc::new(Memory::default()),
    };
    let gateway = Gateway::start_with(&broker, options, vec![Arc::new(stream)]).unwrap();
    let endpoint = &gateway.endpoints()[0];
    assert_eq!(endpoint.listed_protocol(), "stream");
    let socket = TcpStream::connect(endpoint.address.network().unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut client = Client(socket, Vec::new());

    client.ask(PeerProperties {
        properties: Default::default(),
    });
    client.ask(SaslHandshake {});
    client.ask(SaslAuthenticate {
        mechanism: "PLAIN".into(),
        response: Opaque(b"\0guest\0guest"),
    });
    client.say(&Command::Tune {
        frame_max: 0,
        heartbeat_s: 0,
    });
    client.ask(Open {
        virtual_host: "/".into(),
    });
    client.ask(Create {
        stream: "s".into(),
        arguments: Default::default(),
    });
    client.ask(DeclarePublisher {
        publisher_id: 1,
        reference: "".into(),
        stream: "s".into(),
    });
    for key in [0x8011, 0x8012, 0x8013, 0x14, 0x8015, 0x800d, 0x8001] {
        assert_eq!(client.hear().0, key);
    }
    // Frames that no single read brings.
    let body = vec![7; 200_000];
    let mut entries = EntriesBuf::new(false);
    for id in 1..=4 {
        entries.push(id, None, &Body::Message(&body));
    }
    client.say(&Command::Publish(Publish {
        publisher_id: 1,
        entries: entries.as_entries(),
    }));
    assert_eq!(client.hear(), (3, 1 + 4 + 4 * 8));

    gateway.stop();
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0, "the node hangs up");
    broker.close();
}
