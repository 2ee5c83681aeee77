//! Bindings and queues that come and go while messages are published.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::disallowed_methods, reason = "a client outside of the broker")]

#[path = "support/client.rs"]
mod client;

use broker::{Binding, Broker, DeclareQueue, Deleting, Event, Publisher};
use client::{CHANNEL, Client, options};
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
        assert!(deleted.durable.is_some() || !durable);
        if let Some(expected) = deleted.durable {
            client.wait(|event| {
                matches!(event, Event::Durable { ticket, .. } if ticket == expected).then_some(())
            });
        }
        // The name is free, and the bindings are gone.
        client.declare("q", durable);
        let (first, last) = (taken(&mut publisher, "k1"), taken(&mut publisher, "k999"));
        assert_eq!((first, last, ready(&client, "q")), (0, 0, 0));
        client.delete("q", false, false);
    }
    broker.close();
}

#[test]
fn a_queue_whose_deleter_is_gone_before_the_catalog_was_asked_is_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    client.declare("q", true);
    let mut publisher = client.session.publisher(CHANNEL, 1);
    let mut publish = |number| {
        client.publish(&mut publisher, "q", TRANSIENT, b"x", Some(number));
        publisher.flush();
        client.wait(|event| matches!(event, Event::Confirm { .. }).then_some(()));
    };
    publish(1);
    let asked = client.session.delete_queue(CHANNEL, "q", false, false).unwrap();
    let Deleting::Asked(deletion) = asked else {
        panic!("{asked:?}")
    };
    client.answer(deletion.question());
    drop(deletion);
    publish(2);
    assert_eq!(ready(&client, "q"), 2);
    broker.close();
}
