//! Two whole brokers: the one has a queue that the other one's clients use. Each has a catalog of its own here; the second
//! one's says that the queue is at home on the first one.

#![allow(clippy::disallowed_methods, reason = "how long is waited decides nothing")]

mod once;
mod streams;

use super::*;
use crate::clients::outbox::{ChannelId, Event, Outbox};
use crate::{Broker, ConsumerSettings, DeclareQueue, Options, Refusal, Session, Subscription};
use catalog::{NodeConnection, Request as Change};
use model::properties::{Properties, PropertiesBuilder};
use model::table::Table;
use model::{Message, Ranges, RouteBuf};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use storage::faulty::FaultyFs;
use storage::{LogOptions, System};

const CHANNEL: ChannelId = ChannelId(1);
const HOME: NodeId = NodeId(2);
const AWAY: NodeId = NodeId(1);

/// A test that waits for so long has failed.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Wire(Mutex<VecDeque<(NodeId, Bytes)>>);

impl WorkLinks for Wire {
    fn work(&self, to: NodeId, parts: Vec<Bytes>) {
        self.0.lock().unwrap().push_back((to, parts.concat().into()));
    }
}

struct Node {
    broker: Arc<Broker>,
    work: Arc<Work>,
    session: Arc<Session>,
    outbox: Arc<Outbox>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.session.close();
        self.broker.close();
    }
}

fn durable() -> DeclareQueue {
    DeclareQueue {
        name: "q".into(),
        durable: true,
        ..DeclareQueue::default()
    }
}

impl Node {
    fn open(node: NodeId, files: &FaultyFs, wire: &Arc<Wire>) -> Self {
        let log = LogOptions {
            make_ahead: false,
            ..LogOptions::default()
        };
        let options = Options {
            world: System::over(Arc::new(files.clone())),
            log,
            ..Options::new("/data")
        };
        let broker = Broker::open(options).unwrap();
        let exists: Weak<dyn Existing> = Arc::downgrade(&broker) as Weak<dyn Existing>;
        let start = broker.topology().incarnation().number;
        let work = Work::new(node, start, wire.clone(), exists, Arc::default());
        let outbox = Arc::new(Outbox::new());
        let user = broker.authenticate("guest", b"guest", "127.0.0.1".parse().unwrap());
        let session = broker.connect(user.unwrap(), "/", outbox.clone()).unwrap();
        Self {
            broker,
            work,
            session,
            outbox,
        }
    }

    /// Declares the queue as one of the other node.
    fn declare_there(&self, declare: DeclareQueue) {
        let (topology, node) = (self.broker.topology(), catalog::NodeId(u64::from(HOME.0)));
        let name = "rabbit@home".into();
        topology
            .decide(
                None,
                Change::StartNode {
                    node,
                    name,
                    takes_queues: true,
                },
            )
            .wait()
            .unwrap();
        let declare = Change::DeclareQueue {
            vhost: "/".into(),
            declare,
            by: NodeConnection::of_node(catalog::Incarnation { node, number: 1 }),
            unique: [0; 16],
        };
        topology.decide(None, declare).wait().unwrap();
        self.broker.join(self.work.clone());
    }

    fn publish(&self, number: u64) {
        self.publish_to("q", number);
    }

    fn publish_to(&self, queue: &str, number: u64) {
        let mut publisher = self.session.publisher(CHANNEL, 1);
        let properties = PropertiesBuilder::new().delivery_mode(2).encode();
        let route = RouteBuf::new(b"", queue.as_bytes());
        let message = Message::new(route.as_route(), Properties::amqp091(&properties), b"body");
        publisher.publish(&message, Some(number)).unwrap();
        publisher.flush();
    }

    fn consume(&self) -> Result<Subscription, Refusal> {
        let settings = ConsumerSettings {
            no_ack: false,
            exclusive: false,
            prefetch: 0,
            priority: 0,
            window: 1 << 20,
            paused: false,
        };
        self.session.consume(CHANNEL, "q", settings, None)
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        self.outbox.take_now(&mut events);
        events
    }
}

/// Both nodes, and what is under way between them.
struct Pair {
    home: Node,
    away: Node,
    wire: Arc<Wire>,
    files: FaultyFs,
}

impl Pair {
    fn new() -> Self {
        Self::with(durable())
    }

    /// The same, with a queue that is declared like this.
    fn with(declare: DeclareQueue) -> Self {
        let (wire, files) = (Arc::<Wire>::default(), FaultyFs::new());
        let home = Node::open(HOME, &files, &wire);
        let away = Node::open(AWAY, &FaultyFs::new(), &wire);
        home.session.declare_queue(CHANNEL, declare.clone()).unwrap();
        away.declare_there(declare);
        let id = |node: &Node| node.broker.view().queue("/", "q").unwrap().id;
        assert_eq!(id(&home), id(&away));
        Self {
            home,
            away,
            wire,
            files,
        }
    }

    fn link(&self) {
        self.away
            .work
            .up(HOME, self.home.broker.topology().incarnation().number);
        self.home
            .work
            .up(AWAY, self.away.broker.topology().incarnation().number);
    }

    fn cut(&self) {
        self.wire.0.lock().unwrap().clear();
        self.away.work.down(HOME);
        self.home.work.down(AWAY);
    }

    /// What is under way arrives.
    fn arrive(&self) {
        loop {
            let next = self.wire.0.lock().unwrap().pop_front();
            match next {
                Some((HOME, bytes)) => self.home.work.receive(AWAY, bytes.into()),
                Some((_, bytes)) => self.away.work.receive(HOME, bytes.into()),
                None => return,
            }
        }
    }

    /// Waits for something that the client of the other node is told.
    fn told(&self, what: &str, is: impl Fn(&Event) -> bool) -> Event {
        let until = Instant::now() + LIMIT;
        loop {
            self.arrive();
            if let Some(event) = self.away.events().into_iter().find(&is) {
                return event;
            }
            assert!(Instant::now() < until, "{what}: that did not happen");
            std::thread::yield_now();
        }
    }

    /// Waits until the queue has so many messages that are ready, and that are in hands.
    fn comes_to(&self, ready: u64, unacked: u64) {
        let queue = self.home.broker.queues().all().pop().unwrap();
        let until = Instant::now() + LIMIT;
        loop {
            self.arrive();
            let status = queue.status();
            if (status.ready, status.unacked) == (ready, unacked) {
                return;
            }
            assert!(Instant::now() < until, "it has {status:?}");
            std::thread::yield_now();
        }
    }

    fn ticks(&self, count: usize) {
        for _ in 0..count {
            self.away.work.tick();
            self.home.work.tick();
        }
    }
}

fn confirms(number: u64) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Confirm { numbers, .. } if *numbers == Ranges::one(number))
}

#[test]
fn a_client_publishes_to_a_queue_of_another_node_and_consumes_and_settles_what_is_there() {
    let pair = Pair::new();
    pair.link();
    pair.away.publish(1);
    pair.told("a confirm", confirms(1));
    let queue = pair.home.broker.queues().all().pop().unwrap();
    assert_eq!((queue.status().ready, queue.counts().publish.get()), (1, 1));
    let consumer = pair.away.consume().unwrap();
    let event = pair.told("a delivery", |event| matches!(event, Event::Deliver { .. }));
    let Event::Deliver { delivery, .. } = event else {
        return;
    };
    assert!(!delivery.redelivered && delivery.block.message(0).body == b"body");
    let accepted = queue::Disposal::Accepted;
    consumer
        .queue()
        .settle(Some(consumer.consumer()), delivery.seqs, accepted);
    pair.comes_to(0, 0);
    let question = consumer.cancel();
    pair.told(
        "the end of the consumer",
        |event| matches!(event, Event::Answer { question: it, .. } if *it == question),
    );
    for _ in 0..15 {
        pair.ticks(10);
        pair.arrive();
    }
    assert_eq!(
        (pair.away.work.counts(), pair.home.work.counts()),
        ((0, 0), (0, 0))
    );
}

#[test]
fn a_node_that_cannot_be_reached_is_waited_for_and_then_its_queue_is_down_until_there_is_a_link_again() {
    let pair = Pair::new();
    pair.link();
    let consumer = pair.away.consume().unwrap();
    pair.told("a consumer", |event| matches!(event, Event::Answer { .. }));
    pair.cut();
    pair.away.publish(1);
    pair.ticks(45);
    assert!(pair.away.events().is_empty(), "it may come back");
    pair.ticks(10);
    let told = pair.away.events();
    let refused =
        |event: &Event| matches!(event, Event::Reject { numbers, .. } if *numbers == Ranges::one(1));
    assert!(told.iter().any(refused), "{told:?}");
    let id = consumer.consumer();
    let ended = |event: &Event| matches!(event, Event::ConsumerCancelled { consumer, .. } if *consumer == id);
    assert!(told.iter().any(ended), "{told:?}");
    let text = "home node 'rabbit@home' of durable queue 'q' in vhost '/' is down or inaccessible";
    assert_eq!(pair.away.consume().err().unwrap().to_string(), text);
    pair.link();
    pair.away.publish(2);
    pair.told("a confirm", confirms(2));
}

#[test]
fn a_link_that_blinks_loses_and_doubles_nothing_and_consumers_keep_what_they_hold() {
    let pair = Pair::new();
    pair.link();
    pair.away.publish(1);
    pair.told("a confirm", confirms(1));
    let consumer = pair.away.consume().unwrap();
    let event = pair.told("a delivery", |event| matches!(event, Event::Deliver { .. }));
    let Event::Deliver { delivery, .. } = event else {
        return;
    };
    pair.away.publish(2);
    // It is under way, or taken and not answered.
    pair.cut();
    consumer.queue().settle(
        Some(consumer.consumer()),
        delivery.seqs,
        queue::Disposal::Accepted,
    );
    pair.ticks(10);
    pair.link();
    pair.told("a confirm", confirms(2));
    // The second one is delivered.
    pair.comes_to(0, 1);
}

#[test]
fn a_dead_letter_for_a_transient_queue_of_a_node_that_is_not_reached_stays_where_it_died() {
    let transient = DeclareQueue {
        durable: false,
        ..durable()
    };
    let pair = Pair::with(transient);
    let of = |name: &str, to: &str| DeclareQueue {
        name: name.into(),
        arguments: Table::new()
            .with("x-message-ttl", 0)
            .with("x-dead-letter-exchange", "")
            .with("x-dead-letter-routing-key", to),
        ..durable()
    };
    for (name, to) in [("dies", "q"), ("goes", "near")] {
        let declare = of(name, to);
        pair.away.session.declare_queue(CHANNEL, declare).unwrap();
    }
    let near = DeclareQueue {
        name: "near".into(),
        ..durable()
    };
    pair.away.session.declare_queue(CHANNEL, near).unwrap();
    pair.away.publish_to("dies", 1);
    pair.away.publish_to("goes", 2);
    // Dead letters are published one after the other.
    let queues = pair.away.broker.queues().all();
    let near = queues.iter().find(|queue| &*queue.name == "near").unwrap();
    let until = Instant::now() + LIMIT;
    while near.status().ready == 0 {
        assert!(Instant::now() < until, "{:?}", near.status());
        std::thread::yield_now();
    }
    pair.link();
    pair.comes_to(1, 0);
}

#[test]
fn what_clients_of_another_node_hold_goes_back_marked_when_the_queues_node_closes() {
    let pair = Pair::new();
    pair.link();
    pair.away.publish(1);
    pair.told("a confirm", confirms(1));
    let _consumer = pair.away.consume().unwrap();
    pair.told("a delivery", |event| matches!(event, Event::Deliver { .. }));
    pair.comes_to(0, 1);
    pair.cut();
    pair.home.work.close();
    let (_, question) = pair.home.session.get(CHANNEL, "q", true).unwrap();
    let until = Instant::now() + LIMIT;
    let got = loop {
        let answer = pair.home.events().into_iter().find_map(|event| match event {
            Event::Answer {
                question: it,
                answer: Some(answer),
                ..
            } if it == question => Some(answer),
            _ => None,
        });
        if let Some(answer) = answer {
            break answer;
        }
        assert!(Instant::now() < until, "a get has no answer");
        std::thread::yield_now();
    };
    let marked = matches!(&got, queue::Answer::Got { delivery, .. } if delivery.redelivered);
    assert!(marked, "{got:?}");
}

#[test]
fn what_a_node_hears_of_what_it_sent_is_synced() {
    let pair = Pair::new();
    pair.link();
    pair.away.publish(1);
    pair.told("a confirm", confirms(1));
    // Nothing is synced any more.
    drop(pair.files.crash(1));
    pair.away.publish(2);
    pair.arrive();
    pair.cut();
    pair.link();
    // It was taken.
    pair.comes_to(2, 0);
    pair.ticks(55);
    pair.arrive();
    let told = pair.away.events();
    let confirmed = |event: &Event| matches!(event, Event::Confirm { .. });
    assert!(!told.iter().any(confirmed), "{told:?}");
}

#[test]
fn a_client_of_another_node_is_answered_as_long_as_that_start_of_its_node_can_be_spoken_to() {
    let pair = Pair::new();
    pair.home.broker.join(pair.home.work.clone());
    let address = pair.home.session.reply_address(CHANNEL).unwrap();
    let answer = || {
        let mut publisher = pair.away.session.publisher(CHANNEL, 1);
        let route = RouteBuf::new(b"", address.name().as_bytes());
        let message = Message::new(route.as_route(), Properties::amqp091(b"\0\0"), b"answer");
        publisher.publish(&message, None).unwrap().replies
    };
    assert_eq!(answer(), 0, "there is no link");
    pair.link();
    assert_eq!(answer(), 1);
    pair.arrive();
    // The declaration of the queue is durable, too, sooner or later.
    let is_delivery = |event: &Event| matches!(event, Event::Deliver { .. });
    let deliveries = || pair.home.events().into_iter().filter(is_delivery);
    let events: Vec<Event> = deliveries().collect();
    let [
        Event::Deliver {
            consumer, delivery, ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    let message = delivery.block.message(0);
    assert_eq!((*consumer, message.body), (address.consumer(), &b"answer"[..]));
    assert_eq!(message.routing_key(), address.name().as_bytes());
    // Another start of the node has nobody of this one's clients.
    let start = pair.home.broker.topology().incarnation().number;
    pair.away.work.up(HOME, start + 1);
    assert_eq!(answer(), 0);
    pair.away.work.up(HOME, start);
    assert_eq!(answer(), 1);
    let gone = address.name().to_owned();
    drop(address);
    pair.arrive();
    assert_eq!(deliveries().count(), 0, "{gone} is nobody's any more");
}

#[test]
fn where_clients_of_streams_reach_a_node_is_said_with_each_link_and_asked_for_where_that_was_too_early() {
    let at = |host: &str| StreamAddresses {
        plain: (host.into(), 5552),
        tls: (host.into(), 5551),
    };
    let pair = Pair::new();
    pair.home.broker.join(pair.home.work.clone());
    let node = |node: NodeId| catalog::NodeId(node.0.into());
    let by_home = || pair.home.work.stream_addresses(node(AWAY));
    let by_away = || pair.away.session.stream_addresses(node(HOME));
    let start = |node: &Node| node.broker.topology().incarnation().number;
    pair.home.broker.serve_streams(at("home"));
    pair.home.work.up(AWAY, start(&pair.away));
    pair.arrive();
    assert_eq!(by_away(), None, "it did not listen yet");
    pair.away.work.up(HOME, start(&pair.home));
    pair.arrive();
    assert_eq!((by_home(), by_away()), (None, None), "it has nothing to say");
    pair.away.broker.serve_streams(at("away"));
    pair.arrive();
    assert_eq!(by_home(), Some(at("away")));
    assert_eq!(by_away(), Some(at("home")), "it has asked");
    // Clients go on being told where it is while it can't be reached from here.
    pair.cut();
    assert_eq!(by_away(), Some(at("home")));
}

#[test]
fn what_a_peer_sends_about_queues_and_cannot_be_read_has_one_line_of_log_for_many() {
    let pair = Pair::new();
    pair.link();
    let rejected = &pair.home.work.rejected;
    for _ in 0..3 {
        pair.home.work.receive(AWAY, b"\xffrubbish".to_vec());
    }
    assert_eq!(rejected.untold(AWAY), Some(2));
}

#[test]
fn consumers_of_other_nodes_are_others_than_those_of_the_queues_own_and_known_by_what_their_node_calls_them()
{
    let pair = Pair::new();
    pair.link();
    let queue = pair.home.broker.queues().all().pop().unwrap();
    let near: Vec<_> = (0..50).map(|_| pair.home.consume().unwrap()).collect();
    let far: Vec<_> = (0..200).map(|_| pair.away.consume().unwrap()).collect();
    let until = Instant::now() + LIMIT;
    while queue.status().consumers != 250 {
        pair.arrive();
        assert!(Instant::now() < until, "it has {:?}", queue.status());
        std::thread::yield_now();
    }
    let known = (1..5_000).filter_map(|id| pair.home.work.consumer(queue.id, ConsumerId(id)));
    let mut known: Vec<NodeConsumer> = known.collect();
    known.sort_by_key(|it| it.consumer);
    let named = far.iter().map(|it| NodeConsumer {
        node: incarnation(AWAY, 1),
        consumer: it.consumer(),
    });
    assert_eq!(known, named.collect::<Vec<_>>());
    let own = near
        .iter()
        .map(|it| pair.home.work.consumer(queue.id, it.consumer()));
    assert!(own.flatten().next().is_none());
}
