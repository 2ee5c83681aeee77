//! Publishers, confirms, and what is remembered of them.

use super::*;

#[test]
fn messages_are_published_confirmed_and_delivered_as_far_as_credit_goes() {
    let world = World::new();
    let mut client = world.with_stream();
    client.ask(declare(1, "", "s"));
    client.hears("7 declare_publisher: 1 (ok)");
    client.publish(1, &[(5, "one"), (3, "two")]);
    client.hears("confirm 1 [5, 3]");
    client.publish(1, &[(6, "three")]);
    client.hears("confirm 1 [6]");
    client.ask(subscribe(9, "s", OffsetSpec::First, 1));
    client.hears("7 subscribe: 1 (ok)");
    client.hears("deliver 9 from 0: one\0\0\0\u{3}two");
    client.hears_nothing();
    client.credit(9, 2);
    client.hears("deliver 9 from 2: three");
    client.publish(1, &[(7, "four")]);
    client.hears("confirm 1 [7]");
    client.hears("deliver 9 from 3: four");
    client.publish(1, &[(8, "five")]);
    client.hears("confirm 1 [8]");
    client.hears_nothing();
    client.ask(Unsubscribe { subscription_id: 9 });
    client.hears("7 unsubscribe: 1 (ok)");
    client.credit(9, 1);
    client.hears("credit 9: 4 (subscription id does not exist)");
    client.ask(DeletePublisher { publisher_id: 1 });
    client.hears("7 delete_publisher: 1 (ok)");
    client.publish(1, &[(9, "six"), (10, "seven")]);
    client.hears("error 1 [9: 18, 10: 18]");
    client.ask(DeletePublisher { publisher_id: 1 });
    client.hears("7 delete_publisher: 18 (publisher does not exist)");
}

#[test]
fn named_publishers_are_recognised_and_offsets_are_kept() {
    let world = World::new();
    let mut client = world.with_stream();
    client.ask(declare(1, "me", "s"));
    client.hears("7 declare_publisher: 1 (ok)");
    client.publish(1, &[(4, "one"), (4, "again"), (3, "earlier")]);
    client.hears("confirm 1 [4, 4, 3]");
    client.ask(QueryPublisherSequence {
        reference: "me".into(),
        stream: "s".into(),
    });
    client.hears("7 query_publisher_sequence: 4");
    client.ask(QueryPublisherSequence {
        reference: "who".into(),
        stream: "s".into(),
    });
    client.hears("7 query_publisher_sequence: 0");
    let query = QueryOffset {
        reference: "me".into(),
        stream: "s".into(),
    };
    client.ask(query);
    client.hears("7 query_offset: 19 (no offset) 0");
    client.say(&Command::StoreOffset {
        reference: "me".into(),
        stream: "s".into(),
        offset: 17,
    });
    client.ask(query);
    client.hears("7 query_offset: 17");
    let long = "r".repeat(256);
    client.say(&Command::StoreOffset {
        reference: long.as_str().into(),
        stream: "s".into(),
        offset: 1,
    });
    client.ask(QueryOffset {
        reference: long.as_str().into(),
        stream: "s".into(),
    });
    client.hears("7 query_offset: 19 (no offset) 0");
}

#[test]
fn a_batch_that_nobody_could_read_is_refused_and_the_rest_is_taken() {
    let world = World::new();
    let mut client = world.with_stream();
    client.ask(declare(1, "", "s"));
    client.hears("7 declare_publisher: 1 (ok)");
    let batch = |compression| Body::Batch {
        compression,
        records: 3,
        uncompressed_bytes: 10,
        batch: b"...",
    };
    let mut entries = EntriesBuf::new(false);
    entries.push(1, None, &batch(7));
    entries.push(2, None, &batch(4));
    client.say(&Command::Publish(Publish {
        publisher_id: 1,
        entries: entries.as_entries(),
    }));
    client.hears("error 1 [1: 17]");
    client.hears("confirm 1 [2]");
}

#[test]
fn what_a_stream_that_is_gone_did_not_take_is_refused() {
    let world = World::new();
    let (mut client, mut other) = (world.with_stream(), world.open());
    client.ask(declare(1, "", "s"));
    client.hears("7 declare_publisher: 1 (ok)");
    // The news of the end are not read before the publish.
    let mut entries = EntriesBuf::new(false);
    entries.push(8, None, &Body::Message(b"late"));
    let mut bytes = Vec::new();
    Command::Publish(Publish {
        publisher_id: 1,
        entries: entries.as_entries(),
    })
    .encode(&mut bytes);
    other.ask(Delete { stream: "s".into() });
    other.hears("7 delete_stream: 1 (ok)");
    assert_eq!(client.core.input(&bytes, 0, &mut client.out), bytes.len());
    client.hears("error 1 [8: 6]");
    client.hears("metadata_update s 6 (stream not available)");
}

#[test]
fn too_much_that_is_unconfirmed_is_waited_for() {
    let mut world = World::new();
    world.options.initial_credits = 3;
    world.options.credits_required_for_unblocking = 1;
    let mut client = world.with_stream();
    client.ask(declare(1, "", "s"));
    client.hears("7 declare_publisher: 1 (ok)");
    let mut entries = EntriesBuf::new(false);
    for id in 1..=3 {
        entries.push(id, None, &Body::Message(b"x"));
    }
    let publish = Command::Publish(Publish {
        publisher_id: 1,
        entries: entries.as_entries(),
    });
    let mut bytes = Vec::new();
    publish.encode(&mut bytes);
    let length = bytes.len();
    publish.encode(&mut bytes);
    assert_eq!(
        client.core.input(&bytes, 0, &mut client.out),
        length,
        "the second frame waits"
    );
    assert!(!client.core.wants_input(&client.out));
    client.hears("confirm 1 [1, 2, 3]");
    assert!(client.core.wants_input(&client.out));
}

#[test]
fn what_a_stream_had_not_confirmed_when_it_went_is_not_waited_for() {
    let mut world = World::new();
    world.options.initial_credits = 2;
    let (mut client, mut other) = (world.with_stream(), world.with_stream_of("silent"));
    for (id, stream) in [(1, "s"), (2, "silent"), (3, "silent")] {
        client.ask(declare(id, "", stream));
        client.hears("7 declare_publisher: 1 (ok)");
    }
    client.publish(2, &[(1, "one")]);
    client.ask(DeletePublisher { publisher_id: 2 });
    client.hears("7 delete_publisher: 1 (ok)");
    assert!(client.core.wants_input(&client.out));
    client.publish(3, &[(1, "two")]);
    assert!(
        !client.core.wants_input(&client.out),
        "what a deleted publisher had published counts, too"
    );
    other.ask(Delete {
        stream: "silent".into(),
    });
    other.hears("7 delete_stream: 1 (ok)");
    // Which messages went with it the client has to find out: none is refused.
    client.hears("metadata_update silent 6 (stream not available)");
    assert!(client.core.wants_input(&client.out));
    client.publish(1, &[(1, "three")]);
    client.hears("confirm 1 [1]");
    client.hears_nothing();
}
