//! What operators see of publishers and consumers.

use super::*;
use broker::stats::{Connection, StreamConsumer, StreamPublisher};

fn connection(world: &World, at: usize) -> Arc<Connection> {
    world.broker.stats().connections()[at].clone()
}

fn publisher(world: &World) -> Arc<StreamPublisher> {
    connection(world, 0).stream_publishers()[0].clone()
}

fn consumer(world: &World, at: usize) -> Arc<StreamConsumer> {
    connection(world, at).stream_consumers()[0].clone()
}

#[test]
fn a_publisher_is_shown_with_what_it_published_until_it_is_deleted() {
    let world = World::new();
    let mut client = world.with_stream();
    client.ask(declare(3, "me", "s"));
    client.hears("7 declare_publisher: 1 (ok)");
    client.publish(3, &[(1, "one"), (2, "two")]);
    client.hears("confirm 3 [1, 2]");
    let shown = publisher(&world);
    assert_eq!(
        (shown.id, &*shown.stream, &*shown.reference),
        (3, "s", &b"me"[..])
    );
    let counts = || (shown.published.get(), shown.confirmed.get(), shown.errored.get());
    assert_eq!(counts(), (2, 2, 0));
    // Of what nobody could read each message is an error.
    let mut entries = EntriesBuf::new(false);
    let unreadable = Body::Batch {
        compression: 7,
        records: 1,
        uncompressed_bytes: 1,
        batch: b"x",
    };
    entries.push(3, None, &unreadable);
    client.say(&Command::Publish(Publish {
        publisher_id: 3,
        entries: entries.as_entries(),
    }));
    client.hears("error 3 [3: 17]");
    assert_eq!(counts(), (3, 2, 1));
    client.ask(DeletePublisher { publisher_id: 3 });
    client.hears("7 delete_publisher: 1 (ok)");
    assert!(connection(&world, 0).stream_publishers().is_empty());
}

#[test]
fn a_consumer_is_shown_with_how_far_it_has_come() {
    let world = World::new();
    let mut client = world.with_stream();
    client.ask(declare(1, "", "s"));
    client.hears("7 declare_publisher: 1 (ok)");
    client.publish(1, &[(1, "one"), (2, "two")]);
    client.hears("confirm 1 [1, 2]");
    client.publish(1, &[(3, "three")]);
    client.hears("confirm 1 [3]");
    let said = ListBuf::of([property("k", "v")]);
    client.ask(Subscribe {
        properties: Trailing(said.as_list()),
        ..subscribe(5, "s", OffsetSpec::First, 1)
    });
    client.hears("7 subscribe: 1 (ok)");
    client.hears("deliver 5 from 0: one\0\0\0\u{3}two");
    let shown = consumer(&world, 0);
    let counts = || (shown.credits.get(), shown.consumed.get(), shown.next());
    assert_eq!((shown.id, counts()), (5, (0, 2, Some(2))));
    assert_eq!(*shown.properties, [("k".to_owned(), "v".to_owned())]);
    assert!(shown.is_active() && shown.group.is_none());
    client.credit(5, 4);
    client.hears("deliver 5 from 2: three");
    assert_eq!(counts(), (3, 3, Some(3)));
    client.ask(Unsubscribe { subscription_id: 5 });
    client.hears("7 unsubscribe: 1 (ok)");
    assert!(connection(&world, 0).stream_consumers().is_empty());
}

#[test]
fn of_a_group_one_consumer_is_shown_as_active_and_the_others_read_nothing() {
    let world = World::new();
    let (mut first, mut second) = (world.with_stream(), world.open());
    first.subscribes_in_group();
    first.hears("0 consumer_update 1 true");
    second.subscribes_in_group();
    let (one, two) = (consumer(&world, 0), consumer(&world, 1));
    assert!(one.is_active() && !two.is_active());
    let group = two.group.as_ref().unwrap();
    assert_eq!((&group.name[..], group.partition), ("n", None));
    assert_eq!((two.next(), two.credits.get()), (None, 10));
    first.ask(Unsubscribe { subscription_id: 1 });
    first.hears("7 unsubscribe: 1 (ok)");
    second.hears("0 consumer_update 1 true");
    assert!(two.is_active());
}

#[test]
fn what_a_client_says_of_a_consumer_is_shown_as_far_as_it_is_short() {
    let world = World::new();
    let mut client = world.with_stream();
    let long = "x".repeat(5_000);
    let said = ListBuf::of([property("a", "b"), property("c", &long), property("d", "e")]);
    client.ask(Subscribe {
        properties: Trailing(said.as_list()),
        ..subscribe(5, "s", OffsetSpec::First, 1)
    });
    client.hears("7 subscribe: 1 (ok)");
    assert_eq!(
        *consumer(&world, 0).properties,
        [("a".to_owned(), "b".to_owned())]
    );
}
