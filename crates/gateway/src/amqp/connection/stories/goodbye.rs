//! What happens between a client's `connection.close`, or a wrong password, and the end of its socket.

use super::{World, encode_line};
use crate::connection::{Connection, Millis};
use broker::{CloseReason, Event};

fn say(world: &mut World, letter: char, line: &str) {
    world.send(letter, &encode_line(line, true).unwrap());
}

/// A connection that said goodbye and was answered.
fn answered() -> World {
    let mut world = World::new(false);
    world.open('A', true);
    say(&mut world, 'A', "1 channel.open");
    say(&mut world, 'A', "1 queue.declare queue=q exclusive");
    assert_eq!(world.next('A'), "1 channel.open-ok");
    assert!(world.next('A').starts_with("1 queue.declare-ok"));
    say(&mut world, 'A', "0 connection.close");
    assert_eq!(world.next('A'), "0 connection.close-ok");
    world
}

fn hangs_up_after(world: &mut World, ms: Millis) -> bool {
    world.now += ms;
    world.turn();
    world.clients[&'A'].core.is_finished()
}

#[test]
fn a_client_that_closed_hangs_up_first_or_after_thirty_seconds_is_hung_up_on() {
    let mut world = answered();
    assert!(!hangs_up_after(&mut world, 29_999));
    assert!(hangs_up_after(&mut world, 1));
    assert!(world.clients[&'A'].core.is_over());
}

#[test]
fn what_comes_after_the_goodbye_is_dropped_and_what_was_held_is_gone_already() {
    let mut world = answered();
    for _ in 0..3 {
        say(&mut world, 'A', "1 basic.publish key=q size=20000 unfinished");
        world.send('A', &[0xff; 1_000]);
    }
    let client = &world.clients[&'A'];
    assert!(client.unread.is_empty() && client.seen.is_empty() && client.out.is_empty());
    world.open('B', true);
    say(&mut world, 'B', "1 channel.open");
    assert_eq!(world.next('B'), "1 channel.open-ok");
    say(&mut world, 'B', "1 queue.declare queue=q passive");
    let got = world.next('B');
    assert!(got.starts_with("1 channel.close 50.10 404"), "{got}");
}

#[test]
fn a_node_that_stops_does_not_wait_for_who_said_goodbye() {
    let mut world = answered();
    let outbox = world.clients[&'A'].core.outbox().clone();
    outbox.send(Event::Close(CloseReason::Shutdown));
    world.turn();
    assert!(world.clients[&'A'].core.is_finished());
}

#[test]
fn a_goodbye_before_the_virtual_host_is_answered_and_waits_no_longer_than_the_handshake_may_take() {
    let mut world = World::new(false);
    world.connect('A', true);
    say(&mut world, 'A', "header");
    say(&mut world, 'A', "0 connection.start-ok user=guest password=guest");
    say(&mut world, 'A', "0 connection.close");
    for expected in ["0 connection.start", "0 connection.tune", "0 connection.close-ok"] {
        let got = world.next('A');
        assert!(got.starts_with(expected), "{got}");
    }
    assert!(!hangs_up_after(&mut world, 9_999));
    assert!(hangs_up_after(&mut world, 1));
}

#[test]
fn a_wrong_password_is_answered_after_a_second_and_nothing_is_read_meanwhile() {
    let mut world = World::new(false);
    world.connect('A', true);
    say(&mut world, 'A', "header");
    assert!(world.next('A').starts_with("0 connection.start"));
    say(&mut world, 'A', "0 connection.start-ok user=guest password=wrong");
    assert!(!hangs_up_after(&mut world, 999));
    say(&mut world, 'A', "0 connection.start-ok user=guest password=guest");
    let client = &world.clients[&'A'];
    assert!(client.seen.is_empty() && !client.unread.is_empty());
    assert!(!hangs_up_after(&mut world, 1));
    assert!(
        world
            .next('A')
            .starts_with("0 connection.close 0.0 403 ACCESS_REFUSED")
    );
    assert!(!hangs_up_after(&mut world, 1_999));
    assert!(hangs_up_after(&mut world, 1));
}

#[test]
fn a_wrong_password_of_a_client_that_is_told_nothing_ends_after_three_seconds() {
    let mut world = World::new(false);
    world.connect('A', false);
    say(&mut world, 'A', "header");
    assert!(world.next('A').starts_with("0 connection.start"));
    let line = "0 connection.start-ok user=guest password=wrong";
    world.send('A', &encode_line(line, false).unwrap());
    assert!(!hangs_up_after(&mut world, 1_000));
    assert!(!hangs_up_after(&mut world, 1_999));
    assert!(hangs_up_after(&mut world, 1));
    assert!(world.clients[&'A'].seen.is_empty());
}
