//! Conversations with a real broker and streams in memory, without a socket.

mod coming;
mod existing;
mod language;
mod publishing;
mod shown;
mod subscribing;

use super::connection::StreamConnection;
use super::front_end::Stream;
use super::memory::Memory;
use super::options::Options;
use crate::connection::{Connection, Millis, Name};
use crate::output::Output;
use broker::Broker;
use language::described;
use protocol::stream::request::*;
use protocol::stream::{
    Body, Command, CommandVersions, Content, EntriesBuf, Key, ListBuf, OffsetSpec, Opaque, Property, Publish,
    Request, Trailing, next_frame,
};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

/// Woken by the broker.
#[derive(Default)]
struct Woken(Mutex<bool>, Condvar);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

struct World {
    broker: Arc<Broker>,
    memory: Memory,
    options: Options,
    _data: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        Self {
            broker: Broker::open(broker::Options::new(data.path())).unwrap(),
            memory: Memory::default(),
            options: Options::new("here", 5552, 5551),
            _data: data,
        }
    }

    fn client(&self) -> Client {
        let front_end = Arc::new(Stream {
            broker: self.broker.clone(),
            options: self.options.clone(),
            source: Arc::new(self.memory.clone()),
        });
        let name = Name {
            peer: "127.0.0.1:40000".parse().unwrap(),
            local: "127.0.0.1:5552".parse().unwrap(),
        };
        Client {
            core: StreamConnection::new(front_end, name, None, 0),
            out: Output::default(),
            unsaid: Vec::new(),
            heard: VecDeque::new(),
            woken: Arc::default(),
            now: 0,
        }
    }

    /// One that has opened the virtual host.
    fn open(&self) -> Client {
        let mut client = self.client();
        client.log_in("guest", "guest");
        client.hears("7 sasl_authenticate: 1 (ok)");
        client.hears("tune 1048576 60");
        client.say(&Command::Tune {
            frame_max: 1_048_576,
            heartbeat_s: 60,
        });
        client.ask(Open {
            virtual_host: "/".into(),
        });
        client.hears("7 open: [advertised_host=here, advertised_port=5552]");
        client
    }

    fn with_stream(&self) -> Client {
        self.with_stream_of("s")
    }

    /// One that has made a stream of this name.
    fn with_stream_of(&self, stream: &str) -> Client {
        let mut client = self.open();
        client.ask(create(stream));
        client.hears("7 create_stream: 1 (ok)");
        client
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.broker.close();
    }
}

struct Client {
    core: StreamConnection,
    out: Output,
    /// What was said and has not been taken.
    unsaid: Vec<u8>,
    heard: VecDeque<String>,
    woken: Arc<Woken>,
    now: Millis,
}

impl Client {
    fn say(&mut self, command: &Command<'_>) {
        command.encode(&mut self.unsaid);
        self.turn();
    }

    /// Reads stream `s` from its beginning, as a single active consumer of group `n`.
    fn subscribes_in_group(&mut self) {
        let single = ListBuf::of([property("single-active-consumer", "true"), property("name", "n")]);
        self.ask(Subscribe {
            properties: Trailing(single.as_list()),
            ..subscribe(1, "s", OffsetSpec::First, 10)
        });
        self.hears("7 subscribe: 1 (ok)");
    }

    fn ask<'a>(&mut self, request: impl Into<Request<'a>>) {
        self.say(&Command::Request {
            correlation_id: 7,
            request: request.into(),
        });
    }

    fn turn(&mut self) {
        let waker = Waker::from(self.woken.clone());
        self.core.turn(&waker, self.now, &mut self.out);
        if self.core.wants_input(&self.out) && !self.unsaid.is_empty() {
            self.core.received(self.unsaid.len());
            let taken = self.core.input(&self.unsaid, self.now, &mut self.out);
            self.unsaid.drain(..taken);
            self.core.turn(&waker, self.now, &mut self.out);
        }
        self.listen();
    }

    fn listen(&mut self) {
        self.core.fill(&mut self.out);
        let bytes = self.out.unwritten().to_vec();
        let mut at = 0;
        while let Some((frame, length)) = next_frame(&bytes[at..], 0).unwrap() {
            at += length;
            self.heard.push_back(described(&Command::decode(&frame).unwrap()));
        }
        assert_eq!(at, bytes.len(), "only whole frames are written here");
        self.core.sent(at);
        self.out.wrote(at);
    }

    /// So much time passes.
    fn wait(&mut self, millis: Millis) {
        self.now += millis;
        self.core.tick(self.now, &mut self.out);
        self.turn();
    }

    /// The next thing that is heard, for which it waits.
    #[track_caller]
    fn hears(&mut self, expected: &str) {
        for _ in 0..200 {
            if let Some(heard) = self.heard.pop_front() {
                return assert_eq!(heard, expected);
            }
            self.sleep();
        }
        panic!("nothing is heard, but should be: {expected}");
    }

    /// Waits for news from the broker until this is so.
    #[track_caller]
    fn awaits(&mut self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..200 {
            if is_so(self) {
                return;
            }
            self.sleep();
        }
        panic!("it is never so");
    }

    /// Until it is woken, or for a moment.
    fn sleep(&mut self) {
        let rung = self.woken.0.lock().unwrap();
        let timeout = Duration::from_millis(100);
        let waited = self.woken.1.wait_timeout_while(rung, timeout, |rung| !*rung);
        *waited.unwrap().0 = false;
        self.turn();
    }

    fn alarmed(&self) -> bool {
        self.core.is_alarmed()
    }

    #[track_caller]
    fn hears_nothing(&mut self) {
        self.turn();
        assert_eq!(self.heard.pop_front(), None);
    }

    fn log_in(&mut self, user: &str, password: &str) {
        let nothing = ListBuf::default();
        self.ask(PeerProperties {
            properties: nothing.as_list(),
        });
        let heard = self.heard.pop_front().unwrap();
        assert!(heard.contains("product=RabbitMQ"), "{heard}");
        self.ask(SaslHandshake {});
        self.hears("7 sasl_handshake: [PLAIN, AMQPLAIN, ANONYMOUS]");
        self.authenticate(user, password);
    }

    fn authenticate(&mut self, user: &str, password: &str) {
        let response = format!("\0{user}\0{password}");
        self.ask(SaslAuthenticate {
            mechanism: "PLAIN".into(),
            response: Opaque(response.as_bytes()),
        });
    }

    fn publish(&mut self, publisher_id: u8, messages: &[(u64, &str)]) {
        let mut entries = EntriesBuf::new(false);
        for (id, message) in messages {
            entries.push(*id, None, &Body::Message(message.as_bytes()));
        }
        self.say(&Command::Publish(Publish {
            publisher_id,
            entries: entries.as_entries(),
        }));
    }

    fn credit(&mut self, subscription_id: u8, credit: u16) {
        self.say(&Command::Credit {
            subscription_id,
            credit,
        });
    }

    fn is_gone(&self) -> bool {
        self.core.is_finished()
    }
}

fn create(stream: &str) -> Create<'_> {
    Create {
        stream: stream.into(),
        arguments: Default::default(),
    }
}

fn declare<'a>(publisher_id: u8, reference: &'a str, stream: &'a str) -> DeclarePublisher<'a> {
    DeclarePublisher {
        publisher_id,
        reference: reference.into(),
        stream: stream.into(),
    }
}

fn subscribe(subscription_id: u8, stream: &str, from: OffsetSpec, credit: u16) -> Subscribe<'_> {
    Subscribe {
        subscription_id,
        stream: stream.into(),
        from,
        credit,
        properties: Trailing::default(),
    }
}

fn property<'a>(key: &'a str, value: &'a str) -> Property<'a> {
    Property {
        key: key.into(),
        value: value.into(),
    }
}
