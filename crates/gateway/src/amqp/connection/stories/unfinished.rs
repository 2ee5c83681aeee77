//! Messages that are begun on many channels and not finished.

use super::{World, encode_line};
use crate::connection::{Connection, Millis};
use crate::incomplete::Part;
use model::Limits;

/// Opened by every client here, as many as the stories' clients agree on.
const CHANNELS: u16 = 10;

/// The last byte of a message that was left unfinished.
fn last_byte(channel: u16) -> Vec<u8> {
    let [high, low] = channel.to_be_bytes();
    vec![3, high, low, 0, 0, 0, 1, b'x', 0xce]
}

/// A broker that takes bodies of 1,000 bytes, and 9,500 bytes of unfinished messages from one connection.
fn world() -> World {
    let mut world = World::with(|options| {
        options.limits = Limits {
            message_bytes: 1_000,
            unfinished_bytes: 9_500,
            ..Limits::default()
        };
    });
    world.open('A', true);
    for channel in 1..=CHANNELS {
        say(&mut world, &format!("{channel} channel.open"));
        assert_eq!(world.next('A'), format!("{channel} channel.open-ok"));
    }
    say(&mut world, "1 queue.declare queue=q exclusive");
    assert!(world.next('A').starts_with("1 queue.declare-ok"));
    world
}

fn say(world: &mut World, line: &str) {
    world.send('A', &encode_line(line, true).unwrap());
}

/// Begins a message on each of these channels, and leaves out the last byte.
fn begin(world: &mut World, channels: std::ops::RangeInclusive<u16>, words: &str) {
    for channel in channels {
        say(
            world,
            &format!("{channel} basic.publish {words} key=q unfinished"),
        );
    }
}

/// How many messages are in the queue, counted once everything before was taken.
fn arrived(world: &mut World) -> String {
    say(world, "1 queue.declare queue=q passive");
    world.next('A')
}

#[test]
fn who_leaves_too_much_unfinished_is_told_and_dropped() {
    let mut world = world();
    begin(&mut world, 1..=9, "size=999");
    assert!(world.clients[&'A'].seen.is_empty(), "nine are taken");
    begin(&mut world, 10..=10, "size=999");
    assert_eq!(
        world.next('A'),
        "0 connection.close 60.40 506 RESOURCE_ERROR - messages that are still incomplete on this connection \
         take more than 9500 bytes (max_unfinished_size)"
    );
    say(&mut world, "0 connection.close-ok");
    assert!(world.clients[&'A'].core.is_finished());
}

#[test]
fn what_stands_before_the_body_counts_too() {
    let mut world = world();
    let key = "k".repeat(255);
    let words = format!("exchange={key} key={key} size=900");
    begin(&mut world, 1..=6, &words);
    assert!(world.clients[&'A'].seen.is_empty(), "six are taken");
    begin(&mut world, 7..=7, &words);
    assert!(world.next('A').starts_with("0 connection.close 60.40 506"));
}

#[test]
fn who_finishes_what_is_begun_may_go_on_for_ever() {
    let mut world = world();
    for round in 1..=100 {
        begin(&mut world, 1..=9, "size=999");
        for channel in 1..=9 {
            world.send('A', &last_byte(channel));
        }
        let expected = format!("1 queue.declare-ok queue=q messages={} consumers=0", 9 * round);
        assert_eq!(arrived(&mut world), expected);
    }
}

#[test]
fn what_is_refused_for_its_size_or_its_exchange_leaves_nothing_behind() {
    let mut world = world();
    for round in 1..=100 {
        begin(&mut world, 2..=2, "exchange=nowhere key=q size=1001");
        assert!(world.clients[&'A'].seen.is_empty(), "it is refused at its end");
        world.send('A', &last_byte(2));
        assert!(
            world.next('A').starts_with("2 channel.close 60.40 406"),
            "{round}"
        );
        begin(&mut world, 3..=3, "exchange=nowhere size=999");
        world.send('A', &last_byte(3));
        assert!(
            world.next('A').starts_with("3 channel.close 60.40 404"),
            "{round}"
        );
        for channel in [2, 3] {
            say(&mut world, &format!("{channel} channel.close-ok"));
            say(&mut world, &format!("{channel} channel.open"));
            assert_eq!(world.next('A'), format!("{channel} channel.open-ok"));
        }
    }
    begin(&mut world, 1..=9, "size=999");
    assert!(world.clients[&'A'].seen.is_empty(), "nine are taken");
}

#[test]
fn what_comes_of_a_message_that_is_too_large_takes_no_memory() {
    let mut world = world();
    for _ in 0..5 {
        begin(&mut world, 2..=2, "key=q size=100000");
        assert!(world.clients[&'A'].seen.is_empty());
        world.send('A', &last_byte(2));
        assert_eq!(
            world.next('A'),
            "2 channel.close 60.40 406 PRECONDITION_FAILED - message size 100001 is larger than configured max size 1000"
        );
        say(&mut world, "2 channel.close-ok");
        say(&mut world, "2 channel.open");
        assert_eq!(world.next('A'), "2 channel.open-ok");
    }
}

const MIB: usize = 1024 * 1024;

/// A node that takes messages of 4 MiB, and 512 MiB of unfinished ones; other connections hold so many MiB of these.
fn large_world(others: usize) -> (World, Part) {
    let mut world = World::with(|options| {
        options.memory_high_watermark = 1 << 40;
        options.limits.message_bytes = 4 * MIB as u64;
    });
    let most = (1 << 40) / 2 / MIB;
    let mut part = Part::new(world.front_end.incomplete.clone());
    part.count((most * others / 512) * MIB);
    world.open('A', true);
    for channel in 1..=2 {
        say(&mut world, &format!("{channel} channel.open"));
        assert_eq!(world.next('A'), format!("{channel} channel.open-ok"));
    }
    (world, part)
}

fn after(world: &mut World, ms: Millis) -> Option<String> {
    world.now += ms;
    world.turn();
    world.turn();
    world.clients.get_mut(&'A').unwrap().seen.pop_front()
}

#[test]
fn who_adds_to_a_node_that_is_full_of_unfinished_messages_is_told_unless_it_is_little() {
    let (mut world, _others) = large_world(512);
    begin(&mut world, 1..=1, "key=q size=900000");
    assert!(world.clients[&'A'].seen.is_empty(), "little is taken always");
    world.send('A', &last_byte(1));
    begin(&mut world, 1..=1, "key=q size=2000000");
    assert_eq!(
        world.next('A'),
        "0 connection.close 60.40 506 RESOURCE_ERROR - messages that are still incomplete on this node take more than \
         549755813888 bytes"
    );
    drop(_others);
    assert_eq!(world.front_end.incomplete.bytes(), 0, "its own part went with it");
}

#[test]
fn who_sits_on_an_unfinished_message_while_the_node_is_nearly_full_of_them_goes() {
    let (mut world, _others) = large_world(400);
    begin(&mut world, 1..=1, "key=q size=2000000");
    for _ in 0..3 {
        assert_eq!(after(&mut world, 29_999), None, "it goes on");
        world.send('A', &[3, 0, 1, 0, 0, 0, 0, 0xce]);
        begin(&mut world, 2..=2, "key=q size=8000");
        world.send('A', &last_byte(2));
    }
    assert_eq!(after(&mut world, 29_999), None);
    let told = after(&mut world, 1).unwrap();
    assert!(
        told.ends_with(
            "506 RESOURCE_ERROR - a message stayed incomplete for too long while memory was short"
        ),
        "{told}"
    );
}

#[test]
fn who_sits_on_an_unfinished_message_goes_once_memory_is_short_because_of_such() {
    let (mut world, _others) = large_world(200);
    begin(&mut world, 1..=1, "key=q size=2000000");
    assert_eq!(after(&mut world, 3_600_000), None, "there is room");
    world.switch_alarm("0 disk alarm on").unwrap();
    assert_eq!(after(&mut world, 60_000), None, "that is another matter");
    world.front_end.broker.set_memory_high_watermark(1);
    world.turn();
    let told = after(&mut world, 3_000).unwrap();
    assert!(told.starts_with("0 connection.close 60.40 506"), "{told}");
}
