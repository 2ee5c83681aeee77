//! Logins, signs of life, and the end.

use super::*;

/// Whoever guesses passwords waits for a second each time.
fn is_refused_after_a_while(client: &mut Client) {
    for _ in 0..100 {
        if client.core.next_tick() == Some(1_000) {
            break;
        }
        client.hears_nothing();
        std::thread::yield_now();
    }
    client.wait(1_000);
    client.hears("7 sasl_authenticate: 8 (authentication failure)");
    assert!(client.is_gone());
}

#[test]
fn a_wrong_login_is_refused_after_a_while() {
    let world = World::new();
    let mut client = world.client();
    client.log_in("nobody", "secret");
    is_refused_after_a_while(&mut client);
    let attempts = world.broker.stats().login_attempts().by_protocol();
    assert_eq!(attempts, [("stream", 0, 1)]);
}

#[test]
fn no_virtual_host_no_connection() {
    let world = World::new();
    let mut client = world.client();
    client.log_in("guest", "guest");
    client.hears("7 sasl_authenticate: 1 (ok)");
    client.hears("tune 1048576 60");
    client.ask(Open {
        virtual_host: "nowhere".into(),
    });
    client.hears("7 open: 12 (virtual host access failure)");
    assert!(client.is_gone());
}

#[test]
fn new_credentials_are_looked_at() {
    let world = World::new();
    let mut client = world.open();
    client.authenticate("guest", "guest");
    client.hears("7 sasl_authenticate: 1 (ok)");
    client.authenticate("guest", "wrong");
    is_refused_after_a_while(&mut client);
}

#[test]
fn operators_see_the_connection_and_may_close_it() {
    let world = World::new();
    let mut client = world.open();
    let shown = world.broker.stats().connections();
    assert_eq!((shown[0].protocol.label, shown[0].mechanism), ("stream", "PLAIN"));
    assert_eq!(*shown[0].agreed, [("frame_max", 1_048_576), ("timeout", 60)]);
    shown[0].close(broker::CloseReason::Operator("closed by hand".into()));
    client.hears("1 close 1 closed by hand");
    assert!(!client.is_gone());
    client.say(&Command::Answer {
        correlation_id: 1,
        answer: protocol::stream::Answer::code(Key::Close, protocol::stream::ResponseCode::Ok),
    });
    assert!(world.broker.stats().connections().is_empty());
    client.wait(10_000);
    assert!(client.is_gone());
}

#[test]
fn silence_is_the_end_and_signs_of_life_are_sent() {
    let world = World::new();
    let mut client = world.open();
    for _ in 0..2 {
        client.wait(30_000);
        client.hears("heartbeat");
    }
    client.say(&Command::Heartbeat);
    client.wait(60_000);
    assert!(!client.is_gone(), "it has said something");
    client.wait(60_000);
    assert!(!client.is_gone(), "one silent interval may be bad luck");
    client.wait(60_000);
    assert!(client.is_gone());
}

#[test]
fn what_is_no_command_closes_the_connection_and_what_is_too_large_does() {
    let world = World::new();
    for (bytes, told) in [
        (&b"\0\0\0\x04\0\x99\0\x01"[..], "1 close 13 unknown frame"),
        (b"\0\x10\0\x01", "1 close 14 frame too large"),
    ] {
        let mut client = world.with_stream_of(told);
        client.unsaid.extend_from_slice(bytes);
        client.turn();
        client.hears(told);
        assert!(world.broker.stats().connections().is_empty());
        client.wait(10_000);
        assert!(client.is_gone());
    }
}

#[test]
fn during_an_alarm_who_publishes_is_not_heard_and_who_reads_is_served() {
    let world = World::new();
    let (mut publisher, mut reader) = (world.with_stream(), world.open());
    publisher.ask(declare(1, "", "s"));
    publisher.hears("7 declare_publisher: 1 (ok)");
    world.broker.set_disk_free_limit(u64::MAX);
    publisher.awaits(|client| !client.core.wants_input(&client.out));
    publisher.publish(1, &[(1, "one")]);
    publisher.hears_nothing();
    reader.awaits(|client| client.alarmed());
    reader.ask(declare(1, "", "s"));
    reader.hears("7 declare_publisher: 17 (precondition failed)");
    reader.ask(subscribe(1, "s", OffsetSpec::First, 10));
    reader.hears("7 subscribe: 1 (ok)");
    world.broker.set_disk_free_limit(0);
    publisher.hears("confirm 1 [1]");
    reader.hears("deliver 1 from 0: one");
}
