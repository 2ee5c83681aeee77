//! What exists, what is refused, and what is deleted.

use super::*;

#[test]
fn refusals_come_in_rabbitmqs_order() {
    let world = World::new();
    let mut client = world.with_stream();
    let long = "r".repeat(256);
    for (request, code) in [
        (declare(1, "", "t"), "2 (stream does not exist)"),
        (declare(1, "", "secret"), "16 (access refused)"),
        (declare(1, &long, "secret"), "16 (access refused)"),
        (declare(1, &long, "s"), "17 (precondition failed)"),
        (declare(1, "me", "s"), "1 (ok)"),
        (declare(1, "", "s"), "17 (precondition failed)"),
        (declare(1, "", "t"), "17 (precondition failed)"),
        (declare(2, "me", "s"), "17 (precondition failed)"),
        (declare(2, "", "s"), "1 (ok)"),
        (declare(3, "", "s"), "1 (ok)"),
    ] {
        client.ask(request);
        client.hears(&format!("7 declare_publisher: {code}"));
    }
    let single = ListBuf::of([property("single-active-consumer", "true")]);
    let named = ListBuf::of([property("name", &long)]);
    let with = |stream, list| Subscribe {
        properties: Trailing(list),
        ..subscribe(1, stream, OffsetSpec::Next, 1)
    };
    for (request, code) in [
        (with("s", named.as_list()), "17 (precondition failed)"),
        (with("secret", named.as_list()), "16 (access refused)"),
        (with("t", Default::default()), "2 (stream does not exist)"),
        (with("s", single.as_list()), "17 (precondition failed)"),
        (with("s", Default::default()), "1 (ok)"),
        (with("s", single.as_list()), "3 (subscription id already exists)"),
    ] {
        client.ask(request);
        client.hears(&format!("7 subscribe: {code}"));
    }
    client.ask(create("s"));
    client.hears("7 create_stream: 5 (stream already exists)");
    let age = ListBuf::of([property("max-age", "1Q")]);
    client.ask(Create {
        stream: "u".into(),
        arguments: age.as_list(),
    });
    client.hears("7 create_stream: 17 (precondition failed)");
    client.ask(create("broken"));
    client.hears("7 create_stream: 15 (internal error)");
    client.ask(Unsubscribe { subscription_id: 2 });
    client.hears("7 unsubscribe: 4 (subscription id does not exist)");
    client.ask(StreamStats { stream: "t".into() });
    client.hears("7 stream_stats: 2 (stream does not exist) []");
    client.ask(ResolveOffsetSpec {
        stream: "s".into(),
        from: OffsetSpec::First,
        properties: Trailing::default(),
    });
    client.hears("7 resolve_offset_spec: 19 (no offset) offset 0");
}

#[test]
fn a_stream_that_is_deleted_ends_its_publishers_and_readers_everywhere() {
    let world = World::new();
    let (mut client, mut other) = (world.with_stream(), world.open());
    client.ask(declare(1, "", "s"));
    client.hears("7 declare_publisher: 1 (ok)");
    other.ask(subscribe(1, "s", OffsetSpec::Next, 1));
    other.hears("7 subscribe: 1 (ok)");
    client.ask(Delete { stream: "s".into() });
    client.hears("7 delete_stream: 1 (ok)");
    client.hears("metadata_update s 6 (stream not available)");
    other.hears("metadata_update s 6 (stream not available)");
    client.publish(1, &[(1, "late")]);
    client.hears("error 1 [1: 18]");
    other.credit(1, 1);
    other.hears("credit 1: 4 (subscription id does not exist)");
    client.ask(Delete { stream: "s".into() });
    client.hears("7 delete_stream: 2 (stream does not exist)");
}

#[test]
fn a_stream_that_another_node_leads_is_read_here_and_what_is_its_leaders_alone_is_refused() {
    let world = World::new();
    let mut client = world.with_stream_of("copy");
    let asked = texts(&["copy"]);
    client.ask(Metadata {
        streams: asked.as_list(),
    });
    client.hears("7 metadata: [there:5552, here:5552, away:5552] [copy 1 0 +1 +2]");
    client.ask(declare(1, "", "copy"));
    client.hears("7 declare_publisher: 6 (stream not available)");
    client.ask(QueryPublisherSequence {
        reference: "me".into(),
        stream: "copy".into(),
    });
    client.hears("7 query_publisher_sequence: 6 (stream not available) 0");
    client.ask(subscribe(1, "copy", OffsetSpec::First, 1));
    client.hears("7 subscribe: 1 (ok)");
    client.ask(QueryOffset {
        reference: "me".into(),
        stream: "copy".into(),
    });
    client.hears("7 query_offset: 19 (no offset) 0");
}

#[test]
fn super_streams_have_partitions_and_routes() {
    let world = World::new();
    let mut client = world.open();
    let (names, keys) = (["b-0", "b-1"], ["x", "y"]);
    let (partitions, binding_keys, one_key) = (texts(&names), texts(&keys), texts(&["x"]));
    let age = ListBuf::of([property("max-age", "1Q")]);
    let new = CreateSuperStream {
        super_stream: "b".into(),
        partitions: partitions.as_list(),
        binding_keys: binding_keys.as_list(),
        arguments: Default::default(),
    };
    let fewer_keys = CreateSuperStream {
        binding_keys: one_key.as_list(),
        ..new
    };
    let wrong_age = CreateSuperStream {
        arguments: age.as_list(),
        ..new
    };
    for wrong in [fewer_keys, wrong_age] {
        client.ask(wrong);
        client.hears("7 create_super_stream: 17 (precondition failed)");
    }
    client.ask(new);
    client.hears("7 create_super_stream: 1 (ok)");
    let super_stream = "b".into();
    client.ask(Partitions { super_stream });
    client.hears("7 partitions: [b-0, b-1]");
    let route = |routing_key: &'static str, super_stream: &'static str| Route {
        routing_key: routing_key.into(),
        super_stream: super_stream.into(),
    };
    client.ask(route("y", "b"));
    client.hears("7 route: [b-1]");
    client.ask(route("z", "b"));
    client.hears("7 route: []");
    client.ask(route("y", "c"));
    client.hears("7 route: 2 (stream does not exist) []");
    let asked = texts(&["b-1", "nobody", "b-1"]);
    client.ask(Metadata {
        streams: asked.as_list(),
    });
    client.hears("7 metadata: [here:5552] [b-1 1 0, nobody 2 65535]");
    client.ask(DeleteSuperStream { super_stream });
    client.hears("7 delete_super_stream: 1 (ok)");
    client.ask(Partitions { super_stream });
    client.hears("7 partitions: 2 (stream does not exist) []");
}

fn texts(names: &[&str]) -> ListBuf {
    ListBuf::of(names.iter().map(|name| protocol::stream::Text::from(*name)))
}
