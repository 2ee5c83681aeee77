//! Bindings and queues that come and go while messages are published.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::disallowed_methods, reason = "a client outside of the broker")]

#[path = "support/client.rs"]
mod client;

use broker::{Binding, Broker, DeclareQueue, Deleting, Event, Publisher};
use client::{CHANNEL, Client, await_release, options};
use model::properties::Properties;
use model::table::Table;
use model::{Message, RouteBuf};

const TRANSIENT: &[u8] = &[0, 0];

fn binding<'a>(queue: &'a str, key: &'a str) -> Binding<'a> {
    Binding {
        source: "amq.direct",
        destination: queue,
        routing_key: key.as_bytes(),
        arguments: Table::new(),
    }
}

/// How many queues take a message.
fn taken(publisher: &mut Publisher, key: &str) -> u32 {
    let route = RouteBuf::new(b"amq.direct", key.as_bytes());
    let message = Message::new(route.as_route(), Properties::amqp091(TRANSIENT), b"x");
    publisher.publish(&message, None).unwrap().queues
}

fn ready(client: &Client, queue: &str) -> u64 {
    let declare = DeclareQueue {
        name: queue.into(),
        passive: true,
        ..DeclareQueue::default()
    };
    client
        .session
        .declare_queue(CHANNEL, declare)
        .unwrap()
        .value
        .ready
}

#[test]
fn a_publisher_follows_bindings_and_queues_that_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let (client, other) = (Client::open(&broker), Client::open(&broker));
    client.declare("a", false);
    client.declare("b", false);
    let mut publisher = client.session.publisher(CHANNEL, 1);
    assert_eq!(taken(&mut publisher, "k"), 0);
    other.session.bind_queue(CHANNEL, binding("a", "k")).unwrap();
    assert_eq!(taken(&mut publisher, "k"), 1);
    // Somebody else's binding changes nothing, and what is on its way is not lost.
    other.session.bind_queue(CHANNEL, binding("b", "else")).unwrap();
    assert_eq!(taken(&mut publisher, "k"), 1);
    other.session.bind_queue(CHANNEL, binding("b", "k")).unwrap();
    assert_eq!(taken(&mut publisher, "k"), 2);
    other.session.unbind_queue(CHANNEL, binding("a", "k")).unwrap();
    assert_eq!(taken(&mut publisher, "k"), 1);
    publisher.flush();
    assert_eq!((ready(&client, "a"), ready(&client, "b")), (3, 2));
    other.delete("b", false, false);
    assert_eq!(taken(&mut publisher, "k"), 0);
    client.declare("b", false);
    other.session.bind_queue(CHANNEL, binding("b", "k")).unwrap();
    assert_eq!(taken(&mut publisher, "k"), 1);
    assert_eq!(client.publish(&mut publisher, "b", TRANSIENT, b"x", None), 1);
    publisher.flush();
    assert_eq!(ready(&client, "b"), 2);
    broker.close();
}

#[test]
fn a_queue_with_many_bindings_is_gone_when_its_client_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    for durable in [true, false] {
        client.declare("q", durable);
        for at in 0..1_000 {
            let key = format!("k{at}");
            client.session.bind_queue(CHANNEL, binding("q", &key)).unwrap();
        }
        let mut publisher = client.session.publisher(CHANNEL, 1);
        assert_eq!(taken(&mut publisher, "k1"), 1);
        publisher.flush();
        let deleted = client.delete("q", false, false);
        assert_eq!(deleted.ready, 1);
        await_release(&deleted.pause.unwrap());
        let expected = deleted.durable.unwrap();
        client
            .wait(|event| matches!(event, Event::Durable { ticket, .. } if ticket == expected).then_some(()));
        // The name is free, and the bindings are gone.
        client.declare("q", durable);
        let (first, last) = (taken(&mut publisher, "k1"), taken(&mut publisher, "k999"));
        assert_eq!((first, last, ready(&client, "q")), (0, 0, 0));
        client.delete("q", false, false);
    }
    broker.close();
}

#[test]
fn a_deletion_whose_asker_is_gone_comes_to_its_end_if_the_queue_agreed() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    client.declare("used", false);
    client.declare("q", true);
    let mut publisher = client.session.publisher(CHANNEL, 1);
    assert_eq!(client.publish(&mut publisher, "used", TRANSIENT, b"x", None), 1);
    publisher.flush();
    for (queue, stays) in [("used", true), ("q", false)] {
        let asked = client.session.delete_queue(CHANNEL, queue, false, true).unwrap();
        let Deleting::Asked(retiring) = asked else {
            panic!("{asked:?}")
        };
        let answer = client.answer(retiring.question());
        retiring.abandon(answer);
        if !stays {
            client.wait(|event| matches!(event, Event::Durable { .. }).then_some(()));
        }
        assert_eq!(broker.view().queue("/", queue).is_some(), stays);
    }
    broker.close();
}
