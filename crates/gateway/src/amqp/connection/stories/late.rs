//! Another node decides what exists, and takes its time.

use super::{World, encode_line};
use crate::connection::Connection;
use broker::LateCatalog;
use std::sync::Arc;

/// A client with a channel, and the node that decides, which is not asked to before the test says so.
fn world() -> (World, Arc<LateCatalog>) {
    let mut world = World::new(false).late();
    world.open('A', true);
    say(&mut world, &["1 channel.open"]);
    assert_eq!(world.next('A'), "1 channel.open-ok");
    let late = world.late.take().unwrap();
    (world, late)
}

/// Sends these in one piece.
fn say(world: &mut World, lines: &[&str]) {
    let bytes: Vec<u8> = lines
        .iter()
        .flat_map(|line| encode_line(line, true).unwrap())
        .collect();
    world.send('A', &bytes);
}

/// Everything that the client has been told since the last time.
fn told(world: &mut World) -> Vec<String> {
    for _ in 0..3 {
        world.turn();
    }
    world.clients.get_mut(&'A').unwrap().seen.drain(..).collect()
}

/// The other node decides once: what the client is told then.
fn decided(world: &mut World, late: &LateCatalog) -> Vec<String> {
    assert_eq!(late.waiting(), 1, "one step at a time");
    assert!(late.decide_next(&world.front_end.broker));
    told(world)
}

#[test]
fn what_a_client_sends_at_once_is_answered_in_order_and_nothing_overtakes_a_declaration() {
    let (mut world, late) = world();
    say(
        &mut world,
        &[
            "1 queue.declare queue=q durable",
            "1 queue.bind exchange=amq.topic queue=q key=k",
            "1 basic.publish exchange=amq.topic key=k body=hello",
            "1 queue.declare queue=q passive",
            "1 queue.delete queue=q",
            "1 basic.qos count=1",
        ],
    );
    assert_eq!(told(&mut world), [""; 0]);
    assert!(world.front_end.broker.view().queue("/", "q").is_none());
    let empty = "1 queue.declare-ok queue=q messages=0 consumers=0";
    assert_eq!(decided(&mut world, &late), [empty]);
    assert_eq!(decided(&mut world, &late), ["1 queue.bind-ok"]);
    let one = "1 queue.declare-ok queue=q messages=1 consumers=0";
    assert_eq!(decided(&mut world, &late), [one]);
    assert_eq!(
        decided(&mut world, &late),
        ["1 queue.delete-ok messages=1", "1 basic.qos-ok"]
    );
    assert!(world.front_end.broker.view().queue("/", "q").is_none());
}

#[test]
fn a_client_that_hangs_up_while_it_waits_leaves_no_exclusive_queue_behind() {
    let (mut world, late) = world();
    say(&mut world, &["1 queue.declare queue=q exclusive"]);
    let client = world.clients.get_mut(&'A').unwrap();
    client.core.hung_up("as the test says", 0, &mut client.out);
    let broker = world.front_end.broker.clone();
    assert!(late.decide_next(&broker) && broker.view().queue("/", "q").is_some());
    assert!(late.decide_next(&broker) && broker.view().queue("/", "q").is_none());
}
