//! Deduplicating and delayed exchanges whose home is the other node: what the one remembers and the other keeps is there for
//! clients of both.

use super::*;
use crate::groups::catalog::{CatalogLinks, SharedCatalog};
use crate::groups::{Identity, Links, NodeGroups};
use crate::session::declare::Binding;
use crate::{DeclareExchange, Sharing};
use cluster::{GroupId, Groups, MemberId, Membership, Settings};
use model::X_DEDUPLICATION_HEADER;
use std::collections::{BTreeMap, BTreeSet};
use storage::faulty::Random;

const ONCE: &str = "once";

fn once() -> DeclareExchange {
    DeclareExchange {
        name: ONCE.into(),
        kind: "x-message-deduplication".into(),
        durable: true,
        arguments: Table::new()
            .with("x-cache-size", 1_000)
            .with("x-cache-persistence", "disk"),
        ..DeclareExchange::default()
    }
}

fn later() -> DeclareExchange {
    DeclareExchange {
        name: "later".into(),
        kind: "x-delayed-message".into(),
        durable: true,
        arguments: Table::new().with("x-delayed-type", "fanout"),
        ..DeclareExchange::default()
    }
}

/// The pair of nodes, with an exchange whose home is where the queue's is; it leads to the queue.
fn with(declare: DeclareExchange) -> Pair {
    let pair = Pair::new();
    let binding = Binding {
        source: &declare.name,
        destination: "q",
        routing_key: b"",
        arguments: Table::new(),
    };
    pair.home
        .session
        .declare_exchange(CHANNEL, declare.clone())
        .unwrap();
    pair.home.session.bind_queue(CHANNEL, binding).unwrap();
    declare_there(&pair.away, declare);
    pair
}

/// The other node's catalog says that the exchange was declared on the home node.
fn declare_there(away: &Node, declare: DeclareExchange) {
    let node = catalog::NodeId(u64::from(HOME.0));
    let (vhost, name) = ("/".into(), declare.name.clone());
    let by = catalog::Incarnation { node, number: 1 };
    let declared = Change::DeclareExchange { vhost, declare, by };
    away.broker.topology().decide(None, declared).wait().unwrap();
    assert!(away.broker.view().exchange("/", &name).is_some());
}

fn publish(node: &Node, exchange: &str, headers: &Table, body: &str, number: u64) {
    let mut publisher = node.session.publisher(CHANNEL, 1);
    let properties = PropertiesBuilder::new()
        .delivery_mode(2)
        .headers(headers)
        .encode();
    let route = RouteBuf::new(exchange.as_bytes(), b"");
    let message = Message::new(
        route.as_route(),
        Properties::amqp091(&properties),
        body.as_bytes(),
    );
    publisher.publish(&message, Some(number)).unwrap();
    publisher.flush();
}

/// Publishes a message with this key, which is its body, too.
fn publish_key(node: &Node, key: u64, number: u64) {
    let headers = Table::new().with(X_DEDUPLICATION_HEADER, key as i64);
    publish(node, ONCE, &headers, &key.to_string(), number);
}

fn settled(events: &[Event]) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let (mut confirmed, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        match event {
            Event::Confirm { numbers, .. } => confirmed.extend(numbers.iter()),
            Event::Reject { numbers, .. } => refused.extend(numbers.iter()),
            _ => {}
        }
    }
    (confirmed, refused)
}

impl Pair {
    /// The next message of the queue, if there is one by now.
    fn got(&self) -> Option<String> {
        let (_, question) = self.home.session.get(CHANNEL, "q", true).unwrap();
        let until = Instant::now() + LIMIT;
        loop {
            for event in self.home.events() {
                match event {
                    Event::Answer {
                        question: it, answer, ..
                    } if it == question => {
                        let Some(queue::Answer::Got { delivery, .. }) = answer else {
                            return None;
                        };
                        let at = delivery.seqs.first().unwrap() - delivery.base;
                        let body = delivery.block.message(at as usize).body;
                        return Some(String::from_utf8_lossy(body).into_owned());
                    }
                    _ => {}
                }
            }
            assert!(Instant::now() < until, "a get has no answer");
            std::thread::yield_now();
        }
    }

    /// What the queue has up to this message, which comes last.
    fn all_until(&self, last: &str) -> Vec<String> {
        let (mut all, until) = (Vec::new(), Instant::now() + LIMIT);
        loop {
            self.arrive();
            match self.got() {
                Some(body) if body == last => return all,
                Some(body) => all.push(body),
                None => std::thread::yield_now(),
            }
            assert!(Instant::now() < until, "'{last}' did not come: {all:?}");
        }
    }
}

#[test]
fn the_same_message_passes_once_whichever_nodes_it_is_published_through() {
    let pair = with(once());
    pair.link();
    publish_key(&pair.away, 1, 1);
    pair.told("a confirm", confirms(1));
    publish_key(&pair.away, 1, 2);
    pair.told("a confirm", confirms(2));
    publish_key(&pair.away, 2, 3);
    pair.told("a confirm", confirms(3));
    // It may be confirmed before it has gone on.
    assert_eq!(pair.all_until("2"), ["1"]);
    publish_key(&pair.home, 1, 4);
    publish_key(&pair.home, 3, 5);
    publish_key(&pair.away, 3, 6);
    // Messages without a key keep their order with the others.
    publish(&pair.away, ONCE, &Table::new(), "last", 7);
    assert_eq!(pair.all_until("last"), ["3"]);
}

#[test]
fn what_a_deduplicating_exchange_remembers_where_nobody_reaches_it_refuses_publishes() {
    let pair = with(once());
    for number in 1..3 {
        publish_key(&pair.away, 1, number);
        let (confirmed, refused) = settled(&pair.away.events());
        assert!(confirmed.is_empty() && refused.contains(&number));
    }
    pair.link();
    publish_key(&pair.away, 1, 3);
    publish_key(&pair.away, 2, 4);
    assert_eq!(pair.all_until("2"), ["1"]);
}

#[test]
fn delayed_messages_of_another_node_come_once_and_are_refused_while_it_cannot_be_reached() {
    let pair = with(later());
    let delay = Table::new().with(model::X_DELAY, 1);
    publish(&pair.away, "later", &delay, "lost", 1);
    assert!(settled(&pair.away.events()).1.contains(&1));
    pair.link();
    publish(&pair.away, "later", &delay, "first", 2);
    pair.told("a confirm", confirms(2));
    // It is taken, and sent again.
    publish(&pair.away, "later", &delay, "second", 3);
    pair.cut();
    pair.link();
    assert_eq!(pair.all_until("second"), ["first"]);
    let last = Table::new().with(model::X_DELAY, 2);
    publish(&pair.away, "later", &last, "last", 4);
    assert!(pair.all_until("last").is_empty());
}

#[test]
fn what_is_published_on_an_exchanges_home_to_a_queue_elsewhere_is_safe_there_before_its_key_is_remembered() {
    let mut pair = Pair::new();
    let files = FaultyFs::new();
    let open = |files: &FaultyFs| Node::open(AWAY, files, &pair.wire);
    let away = open(&files);
    away.declare_there(durable());
    away.session.declare_exchange(CHANNEL, once()).unwrap();
    let binding = Binding {
        source: ONCE,
        destination: "q",
        routing_key: b"",
        arguments: Table::new(),
    };
    away.session.bind_queue(CHANNEL, binding).unwrap();
    pair.away = away;
    pair.link();
    pair.cut();
    // It is under way when its node closes, and nobody is told that it is safe anywhere else.
    publish_key(&pair.away, 1, 1);
    pair.told("a confirm", confirms(1));
    let closed = std::mem::replace(&mut pair.away, Node::open(AWAY, &FaultyFs::new(), &pair.wire));
    drop(closed);
    pair.away = Node::open(AWAY, &files.kill(), &pair.wire);
    pair.away.broker.join(pair.away.work.clone());
    pair.link();
    // Its client tries again.
    publish_key(&pair.away, 1, 2);
    assert!(pair.all_until("1").is_empty());
    publish(&pair.away, ONCE, &Table::new(), "last", 3);
    assert!(pair.all_until("last").is_empty(), "it comes once");
}

struct Nowhere;

impl Links for Nowhere {
    fn send(&self, _: NodeId, _: Bytes) {}

    fn bulk(&self, _: NodeId, _: Bytes) {}
}

impl CatalogLinks for Nowhere {
    fn send(&self, _: NodeId, _: Bytes) {}
}

/// The node shares its catalog, and nobody has decided anything in it so far: it may not believe what it has.
fn share(broker: &Arc<Broker>) -> (Arc<NodeGroups>, Arc<SharedCatalog>) {
    let me = MemberId::first(HOME);
    let groups = broker.replicate(Groups::new(HOME, 1, Settings::default()), Arc::new(Nowhere));
    let shared = broker.share_catalog(Sharing {
        groups: groups.clone(),
        links: Arc::new(Nowhere),
        identity: Identity {
            group: GroupId(1),
            me,
            members: Membership::of(&[me]),
        },
        peers: Vec::new(),
    });
    assert!(broker.is_stale());
    (groups, shared)
}

fn decide(broker: &Broker, (groups, shared): &(Arc<NodeGroups>, Arc<SharedCatalog>)) {
    let until = Instant::now() + LIMIT;
    while broker.is_stale() {
        assert!(Instant::now() < until, "nobody decides");
        groups.tick();
        shared.tick();
        std::thread::yield_now();
    }
}

#[test]
fn that_there_is_no_such_queue_is_said_once_its_node_may_believe_that() {
    let pair = with(once());
    let (broker, session) = (&pair.home.broker, &pair.home.session);
    let shared = share(broker);
    let undecided = Err(Refusal::Undecided);
    for (number, name) in ["unknown", "another"].into_iter().enumerate() {
        let channel = ChannelId(100 + number as u64);
        let ask = || session.purge_queue(channel, name).map(drop);
        assert_eq!(ask(), undecided);
        assert!(session.must_ask());
        assert_eq!(ask(), undecided, "it is the same step");
    }
    let known = session.get(ChannelId(200), "q", true);
    assert!(known.is_ok(), "what is known can be had");
    decide(broker, &shared);
    let ask = |name: &str| session.get(ChannelId(300), name, true).map(drop);
    assert!(matches!(ask("unknown"), Err(Refusal::NoQueue { .. })));
    assert_eq!(ask("q"), Ok(()));
}

#[test]
fn what_waits_until_its_node_may_believe_what_exists_goes_on_before_what_comes_then() {
    let pair = with(once());
    let broker = &pair.home.broker;
    let shared = share(broker);
    pair.link();
    let same = Table::new().with(X_DEDUPLICATION_HEADER, "same");
    publish(&pair.away, ONCE, &same, "first", 1);
    pair.told("a confirm", confirms(1));
    decide(broker, &shared);
    publish(&pair.away, ONCE, &same, "second", 2);
    publish(&pair.away, ONCE, &Table::new(), "last", 3);
    assert_eq!(pair.all_until("last"), ["first"]);
}

/// Clients of both nodes publish few keys again and again while their link breaks and, on some seeds, the power of the exchange's
/// home node fails: all that was confirmed to clients of the other node is in the queue, and without a crash it is there once.
fn seed(seed: u64) {
    let (mut pair, mut random) = (with(once()), Random(seed));
    let crashes = seed.is_multiple_of(3);
    let mut asked = BTreeMap::new();
    let (mut confirmed, mut open, mut crashed) = (BTreeSet::new(), BTreeSet::new(), false);
    pair.link();
    // What was declared is synced before this is.
    publish_key(&pair.away, 99, 2_000);
    pair.told("a confirm", confirms(2_000));
    confirmed.insert(99);
    let mut hear = |pair: &Pair, asked: &BTreeMap<u64, u64>, open: &mut BTreeSet<u64>| {
        let (told, refused) = settled(&pair.away.events());
        confirmed.extend(told.iter().map(|number| asked[number]));
        open.retain(|number| !told.contains(number) && !refused.contains(number));
    };
    for number in 1..120 {
        let key = random.below(20);
        match random.below(16) {
            0..=8 => {
                publish_key(&pair.away, key, number);
                asked.insert(number, key);
                open.insert(number);
            }
            // What is taken directly is not there after a crash before it was synced, and nobody was told that it is.
            9 | 10 if !crashes => publish_key(&pair.home, key, number),
            11 => pair.cut(),
            12 | 13 => pair.link(),
            14 => pair.ticks(3),
            15 if crashes && random.below(4) == 0 => {
                hear(&pair, &asked, &mut open);
                pair.cut();
                crashed = true;
                let files = pair.files.crash(random.bits());
                let wire = pair.wire.clone();
                pair.home = Node::open(HOME, &files, &wire);
                pair.files = files;
            }
            _ => pair.arrive(),
        }
        hear(&pair, &asked, &mut open);
    }
    pair.cut();
    pair.link();
    let until = Instant::now() + LIMIT;
    while !open.is_empty() {
        pair.arrive();
        hear(&pair, &asked, &mut open);
        assert!(Instant::now() < until, "seed {seed}: {open:?} have no answer");
        std::thread::yield_now();
    }
    publish(&pair.away, ONCE, &Table::new(), "last", 1_000);
    let mut all = pair.all_until("last");
    let there =
        |all: &[String]| -> BTreeSet<u64> { all.iter().filter_map(|body| body.parse().ok()).collect() };
    // After a crash some may have to be tried again.
    while !there(&all).is_superset(&confirmed) {
        assert!(
            crashed && Instant::now() < until,
            "seed {seed}: {confirmed:?} are confirmed, and {all:?} there"
        );
        pair.arrive();
        match pair.got() {
            Some(body) => all.push(body),
            None => std::thread::yield_now(),
        }
    }
    let there = there(&all);
    assert!(
        crashed || there.len() == all.len(),
        "seed {seed}: {all:?} are there"
    );
}

#[test]
fn what_passed_is_there_once_while_links_break_and_at_least_once_when_its_node_crashes() {
    (0..12).for_each(seed);
}
