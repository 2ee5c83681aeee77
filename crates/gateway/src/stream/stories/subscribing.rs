//! Deliveries, and single active consumers.

use super::*;

#[test]
fn who_knows_the_second_version_of_deliveries_hears_what_is_committed() {
    let world = World::new();
    let mut client = world.with_stream();
    let versions = ListBuf::of([CommandVersions::of(Key::Deliver)]);
    client.ask(ExchangeCommandVersions {
        versions: versions.as_list(),
    });
    client.hears("7 exchange_command_versions: 20 versions");
    client.ask(declare(1, "", "s"));
    client.hears("7 declare_publisher: 1 (ok)");
    client.publish(1, &[(1, "one")]);
    client.hears("confirm 1 [1]");
    client.publish(1, &[(2, "two")]);
    client.hears("confirm 1 [2]");
    client.ask(subscribe(0, "s", OffsetSpec::Offset(0), 10));
    client.hears("7 subscribe: 1 (ok)");
    client.hears("deliver 0 from 0 of 1: one");
    client.hears("deliver 0 from 1 of 1: two");
}

#[test]
fn of_single_active_consumers_the_next_one_takes_over() {
    let world = World::new();
    let (mut first, mut second) = (world.with_stream(), world.open());
    first.ask(declare(1, "", "s"));
    first.hears("7 declare_publisher: 1 (ok)");
    first.publish(1, &[(1, "one")]);
    first.hears("confirm 1 [1]");
    first.publish(1, &[(2, "two")]);
    first.hears("confirm 1 [2]");
    first.subscribes_in_group();
    first.hears("0 consumer_update 1 true");
    second.subscribes_in_group();
    second.credit(1, 1);
    second.hears("credit 1: 17 (precondition failed)");
    first.say(&answer_from(Some(OffsetSpec::Offset(1))));
    first.hears("deliver 1 from 1: two");
    first.ask(Unsubscribe { subscription_id: 1 });
    first.hears("7 unsubscribe: 1 (ok)");
    second.hears("0 consumer_update 1 true");
    second.say(&answer_from(None));
    second.hears("deliver 1 from 0: one");
    second.hears("deliver 1 from 1: two");
}

#[test]
fn who_does_not_say_where_to_begin_is_left() {
    let world = World::new();
    let mut client = world.with_stream();
    client.subscribes_in_group();
    client.hears("0 consumer_update 1 true");
    client.say(&Command::Heartbeat);
    client.wait(59_999);
    assert!(!client.is_gone());
    client.wait(1);
    assert!(client.is_gone());
}

fn answer_from(from: Option<OffsetSpec>) -> Command<'static> {
    Command::Answer {
        correlation_id: 0,
        answer: protocol::stream::Answer::ok(Key::ConsumerUpdate, Content::From(from)),
    }
}
