//! What is much is done in parts, one in each turn of the connection: how much a part may be, not how long it may take.

use super::{World, encode_line};
use crate::connection::Connection;
use broker::{Broker, QueueTotals};

/// The most messages that go back in one turn.
const MESSAGES: u64 = 4_096;
/// The most consumers that end in one turn.
const CONSUMERS: u64 = 128;

fn say(world: &mut World, letter: char, line: &str) {
    world.send(letter, &encode_line(line, true).unwrap());
}

/// A client with a channel and a queue `q` of its own or for everybody.
fn world(queue: &str) -> World {
    let mut world = World::new(false);
    world.open('A', true);
    say(&mut world, 'A', "1 channel.open");
    assert_eq!(world.next('A'), "1 channel.open-ok");
    say(&mut world, 'A', &format!("1 queue.declare queue=q {queue}"));
    assert!(world.next('A').starts_with("1 queue.declare-ok"));
    world
}

fn broker(world: &World) -> &Broker {
    &world.front_end.broker
}

fn totals(world: &World) -> QueueTotals {
    broker(world).queue_totals()
}

/// A client that holds so many messages.
fn holding(count: u64) -> World {
    let mut world = world("");
    say(&mut world, 'A', "1 basic.consume queue=q consumer=c nowait");
    say(&mut world, 'A', &format!("1 basic.publish key=q times={count}"));
    let mut told = 0;
    while told < count {
        told += u64::from(world.next('A').starts_with("1 basic.deliver"));
    }
    assert_eq!(totals(&world).unacked, count);
    world
}

/// Takes turns until `left` is nothing; how many that took, none of which may do more than `most`.
fn parts(world: &mut World, most: u64, left: impl Fn(&World) -> u64) -> usize {
    let mut count = 0;
    loop {
        let before = left(world);
        if before == 0 {
            return count;
        }
        world.turn();
        assert!(before - left(world) <= most, "{before} then {}", left(world));
        count += 1;
    }
}

fn hang_up(world: &mut World) {
    let now = world.now;
    let client = world.clients.get_mut(&'A').unwrap();
    client.core.hung_up("the client is gone", now, &mut client.out);
}

#[test]
fn what_a_client_that_is_gone_held_goes_back_in_parts() {
    let mut world = holding(20_000);
    hang_up(&mut world);
    assert!(world.clients[&'A'].core.is_giving_back());
    assert!(totals(&world).unacked >= 20_000 - MESSAGES);
    let turns = parts(&mut world, MESSAGES, |world| totals(world).unacked);
    assert!(turns >= 4, "{turns} turns");
    world.turn();
    assert!(!world.clients[&'A'].core.is_giving_back());
    assert_eq!((totals(&world).ready, totals(&world).consumers), (20_000, 0));
}

#[test]
fn the_consumers_of_a_client_that_is_gone_end_in_parts() {
    let mut world = world("");
    for at in 0..1_000 {
        say(
            &mut world,
            'A',
            &format!("1 basic.consume queue=q consumer=c{at} nowait"),
        );
    }
    assert_eq!(totals(&world).consumers, 1_000);
    hang_up(&mut world);
    let turns = parts(&mut world, CONSUMERS, |world| totals(world).consumers);
    assert!(turns >= 8, "{turns} turns");
}

#[test]
fn who_is_dropped_gives_back_everything_at_once() {
    let mut world = holding(10_000);
    world.clients.clear();
    assert_eq!(totals(&world).unacked, 0);
}

#[test]
fn a_channel_that_holds_very_much_is_closed_in_parts_and_answered_at_the_end() {
    let mut world = holding(20_000);
    world.open('B', true);
    say(&mut world, 'A', "1 channel.close");
    assert!(totals(&world).unacked >= 20_000 - MESSAGES);
    assert!(world.clients[&'A'].seen.is_empty());
    say(&mut world, 'B', "1 channel.open");
    assert_eq!(world.next('B'), "1 channel.open-ok");
    parts(&mut world, MESSAGES, |world| totals(world).unacked);
    assert_eq!(world.next('A'), "1 channel.close-ok");
    assert_eq!((totals(&world).ready, totals(&world).consumers), (20_000, 0));
}

#[test]
fn a_channel_that_holds_very_much_and_fails_is_closed_in_parts_and_told_at_the_end() {
    let mut world = holding(20_000);
    // What came behind the mistake waits, too.
    let mistake = encode_line("1 basic.ack tag=99999", true).unwrap();
    let more = encode_line("2 channel.open", true).unwrap();
    world.send('A', &[mistake, more].concat());
    // A part when it happens, and one in the turn behind it.
    assert!(totals(&world).unacked >= 20_000 - 2 * MESSAGES);
    assert!(world.clients[&'A'].seen.is_empty());
    assert!(world.clients[&'A'].core.is_giving_back());
    parts(&mut world, MESSAGES, |world| totals(world).unacked);
    let told = world.next('A');
    assert!(told.starts_with("1 channel.close 60.80 406"), "{told}");
    assert_eq!(world.next('A'), "2 channel.open-ok");
    assert!(!world.clients[&'A'].core.is_giving_back());
    assert_eq!((totals(&world).ready, totals(&world).consumers), (20_000, 0));
}

#[test]
fn a_connection_that_holds_very_much_is_closed_in_parts_and_answered_at_the_end() {
    let mut world = holding(20_000);
    say(&mut world, 'A', "0 connection.close");
    assert!(totals(&world).unacked >= 20_000 - MESSAGES);
    assert!(world.clients[&'A'].seen.is_empty());
    parts(&mut world, MESSAGES, |world| totals(world).unacked);
    assert_eq!(world.next('A'), "0 connection.close-ok");
    assert_eq!((totals(&world).ready, totals(&world).consumers), (20_000, 0));
}

#[test]
fn who_closes_is_answered_once_all_of_its_very_many_exclusive_queues_are_gone() {
    let mut world = world("exclusive");
    for at in 0..1_000 {
        say(
            &mut world,
            'A',
            &format!("1 queue.declare queue=q{at} exclusive nowait"),
        );
    }
    assert_eq!(broker(&world).view().queues("/").count(), 1_001);
    say(&mut world, 'A', "0 connection.close");
    assert_eq!(world.next('A'), "0 connection.close-ok");
    assert_eq!(broker(&world).view().queues("/").count(), 0);
}

#[test]
fn who_publishes_what_is_hard_to_route_lets_the_others_have_their_turn() {
    let mut world = world("");
    let pattern = ["a"; 30].join(".");
    say(
        &mut world,
        'A',
        &format!("1 queue.bind queue=q exchange=amq.topic key=#.{pattern}.# nowait"),
    );
    let key = ["a"; 100].join(".");
    let hard: Vec<u8> = (0..100)
        .flat_map(|at| {
            encode_line(
                &format!("1 basic.publish exchange=amq.topic key={key}.{at}"),
                true,
            )
            .unwrap()
        })
        .collect();
    world.send('A', &hard);
    let taken = totals(&world).ready;
    let seen = &world.clients[&'A'].seen;
    assert!((1..20).contains(&taken), "{taken} in one turn, told {seen:?}");
    let turns = parts(&mut world, 20, |world| 100 - totals(world).ready);
    assert!(turns >= 5, "{turns} turns");
}
