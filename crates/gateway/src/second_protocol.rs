//! A second protocol, for tests only: lines of text. That it is served shows that listener, shell and broker know no protocol.
//!
//! `login USER PASSWORD`, then `publish QUEUE BODY` (answered by `safe NUMBER`) and `consume QUEUE` (`message BODY` each).

use crate::connection::{Connection, Done, FrontEnd, Millis, Name};
use crate::output::Output;
use crate::{Gateway, Options};
use broker::stats::ConnectionDetails;
use broker::{
    Broker, ChannelId, ConsumerSettings, DeclareQueue, Event, LoginAttempt, Outbox, Publisher, Session,
    Subscription,
};
use listener::{Endpoint, Protocol, Security};
use model::properties::{Properties, PropertiesBuilder};
use model::table::Table;
use model::{Message, RouteBuf};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

const LINES: Protocol = Protocol {
    name: "Lines",
    plain: "lines",
    secured: "lines/ssl",
};

const SHOWN: broker::stats::Protocol = broker::stats::Protocol {
    name: "Lines 1.0",
    label: "lines10",
};

const CHANNEL: ChannelId = ChannelId(77);

struct Lines {
    broker: Arc<Broker>,
}

impl FrontEnd for Lines {
    fn protocol(&self) -> Protocol {
        LINES
    }

    fn connect(self: Arc<Self>, name: Name, _: Option<Security>, _: Millis) -> Box<dyn Connection> {
        Box::new(LinesConnection {
            front_end: self,
            outbox: Arc::default(),
            name,
            open: None,
            finished: false,
        })
    }
}

struct LinesConnection {
    front_end: Arc<Lines>,
    outbox: Arc<Outbox>,
    name: Name,
    open: Option<Open>,
    finished: bool,
}

struct Open {
    session: Arc<Session>,
    publisher: Publisher,
    published: u64,
    subscriptions: Vec<Subscription>,
}

impl LinesConnection {
    fn line(&mut self, line: &str, out: &mut Output) {
        let words: Vec<&str> = line.split(' ').collect();
        match (&words[..], &mut self.open) {
            (["login", user, password], None) => self.login(user, password, out),
            (["publish", queue, body], Some(open)) => {
                open.published += 1;
                let route = RouteBuf::new(b"", queue.as_bytes());
                let properties = PropertiesBuilder::new().encode();
                let properties = Properties::amqp091(&properties);
                let message = Message::new(route.as_route(), properties, body.as_bytes());
                let taken = open.publisher.publish(&message, Some(open.published)).unwrap();
                assert_eq!(taken.queues, 1);
            }
            (["consume", queue], Some(open)) => {
                let settings = ConsumerSettings {
                    no_ack: true,
                    exclusive: false,
                    prefetch: 0,
                    priority: 0,
                    window: 64 * 1024,
                    paused: false,
                };
                let subscription = open.session.consume(CHANNEL, queue, settings, None).unwrap();
                open.subscriptions.push(subscription);
            }
            _ => panic!("{line}"),
        }
    }

    fn login(&mut self, user: &str, password: &str, out: &mut Output) {
        let broker = &self.front_end.broker;
        let found = broker.authenticate(user, password.as_bytes(), self.name.peer.ip());
        broker.login_attempted(&LoginAttempt {
            user,
            protocol: SHOWN.label,
            mechanism: "LINE",
            connection: &self.name.to_string(),
            peer: self.name.peer,
            local: self.name.local,
            refused: found.as_ref().err().map(|refusal| refusal as _),
        });
        let Ok(user) = found else {
            out.bytes().extend_from_slice(b"refused\n");
            return;
        };
        let session = broker.connect(user, "/", self.outbox.clone()).unwrap();
        session.introduce(ConnectionDetails {
            name: self.name.to_string(),
            peer: self.name.peer,
            local: self.name.local,
            protocol: SHOWN,
            mechanism: "LINE",
            client_properties: Table::new(),
            agreed: vec![("line_max", 80)],
            security: None,
        });
        self.open = Some(Open {
            publisher: session.publisher(CHANNEL, 0),
            session,
            published: 0,
            subscriptions: Vec::new(),
        });
        out.bytes().extend_from_slice(b"welcome\n");
    }
}

impl Connection for LinesConnection {
    fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    fn wants_input(&self, _: &Output) -> bool {
        !self.finished
    }

    fn is_tired(&self) -> bool {
        false
    }

    fn is_giving_back(&self) -> bool {
        false
    }

    fn received(&mut self, _: usize) {}

    fn sent(&mut self, _: usize) {}

    fn take_done(&mut self) -> Done {
        Done::Other
    }

    fn input(&mut self, bytes: &[u8], _: Millis, out: &mut Output) -> usize {
        let mut taken = 0;
        while let Some(end) = bytes[taken..].iter().position(|byte| *byte == b'\n') {
            let line = std::str::from_utf8(&bytes[taken..taken + end]).unwrap();
            self.line(line, out);
            taken += end + 1;
        }
        taken
    }

    fn frame_length(&self, _: &[u8]) -> Option<usize> {
        None
    }

    fn turn(&mut self, waker: &Waker, _: Millis, out: &mut Output) {
        if let Some(open) = &mut self.open {
            open.publisher.flush();
        }
        let mut events = Vec::new();
        self.outbox.take(&mut events, waker);
        for event in events {
            match event {
                Event::Confirm { channel, numbers, .. } => {
                    assert_eq!(channel, CHANNEL);
                    for number in numbers.iter() {
                        writeln!(out.bytes(), "safe {number}").unwrap();
                    }
                }
                Event::Deliver { delivery, .. } => {
                    for seq in delivery.seqs.iter() {
                        let message = delivery.block.message((seq - delivery.base) as usize);
                        let body = String::from_utf8_lossy(message.body);
                        writeln!(out.bytes(), "message {body}").unwrap();
                    }
                }
                Event::Close(reason) => {
                    writeln!(out.bytes(), "goodbye: {reason}").unwrap();
                    self.finished = true;
                }
                _ => {}
            }
        }
    }

    fn fill(&mut self, _: &mut Output) {}

    fn next_tick(&self) -> Option<Millis> {
        None
    }

    fn tick(&mut self, _: Millis, _: &mut Output) {}

    fn hung_up(&mut self, _: &str, _: Millis, _: &mut Output) {
        self.finished = true;
    }

    fn is_finished(&self) -> bool {
        self.finished
    }

    fn is_over(&self) -> bool {
        self.finished
    }
}

impl Drop for LinesConnection {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            for subscription in &open.subscriptions {
                subscription.cancel();
            }
            open.session.close();
        }
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(endpoint: &Endpoint) -> Self {
        let stream = TcpStream::connect(endpoint.address.network().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&mut self, line: &str) {
        writeln!(self.0.get_mut(), "{line}").unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

#[test]
fn a_second_protocol_is_served_by_the_same_listeners_threads_and_broker() {
    let data = tempfile::tempdir().unwrap();
    let broker = Broker::open(broker::Options::new(data.path())).unwrap();
    let endpoint = Endpoint::plain(LINES, "127.0.0.1:0".parse().unwrap());
    let mut options = Options::new(vec![endpoint]);
    options.threads = Some(2);
    let lines = Arc::new(Lines {
        broker: broker.clone(),
    });
    let gateway = Gateway::start_with(&broker, options, vec![lines]).unwrap();
    let endpoint = &gateway.endpoints()[0];
    assert_eq!(endpoint.listed_protocol(), "lines");

    let user = broker
        .authenticate("guest", b"guest", "127.0.0.1".parse().unwrap())
        .unwrap();
    let session = broker.connect(user, "/", Arc::default()).unwrap();
    let declare = DeclareQueue {
        name: "q".into(),
        ..DeclareQueue::default()
    };
    session.declare_queue(ChannelId(1), declare).unwrap();

    let (mut publisher, mut consumer) = (Client::connect(endpoint), Client::connect(endpoint));
    publisher.say("login guest wrong");
    assert_eq!(publisher.hear(), "refused");
    for client in [&mut publisher, &mut consumer] {
        client.say("login guest guest");
        assert_eq!(client.hear(), "welcome");
    }
    consumer.say("consume q");
    publisher.say("publish q one\npublish q two");
    assert_eq!([publisher.hear(), publisher.hear()], ["safe 1", "safe 2"]);
    assert_eq!([consumer.hear(), consumer.hear()], ["message one", "message two"]);

    let shown = broker.stats().connections();
    assert!(shown.iter().all(|it| it.protocol == SHOWN));
    assert_eq!(*shown[0].agreed, [("line_max", 80)]);
    let attempts = broker.stats().login_attempts().by_protocol();
    assert_eq!(attempts, [("lines10", 2, 1)]);

    gateway.stop();
    let farewell = "goodbye: broker forced connection closure with reason 'shutdown'";
    assert_eq!([publisher.hear(), consumer.hear()], [farewell, farewell]);
    session.close();
    broker.close();
}

#[test]
fn a_client_of_a_protocol_that_nothing_speaks_is_disconnected() {
    let data = tempfile::tempdir().unwrap();
    let broker = Broker::open(broker::Options::new(data.path())).unwrap();
    let endpoint = Endpoint::plain(LINES, "127.0.0.1:0".parse().unwrap());
    let gateway = Gateway::start(broker.clone(), Options::new(vec![endpoint])).unwrap();
    let mut client = Client::connect(&gateway.endpoints()[0]);
    assert_eq!(client.hear(), "");
    gateway.stop();
    broker.close();
}
