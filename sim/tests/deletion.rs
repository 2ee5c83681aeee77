//! What a queue leaves on the disk goes only once its deletion is durable.

#![allow(clippy::unwrap_used, reason = "test code")]

use broker::{Broker, ChannelId, DeclareQueue, Deleting, Outbox, User};
use model::properties::Properties;
use model::{Message, RouteBuf};
use sim::world::{Simulated, until_power_cut};
use std::sync::Arc;
use std::time::Duration;
use storage::faulty::FaultyFs;

const CHANNEL: ChannelId = ChannelId(1);

/// More than the node keeps in memory and in its log.
const MESSAGES: usize = 40;
const BODY: [u8; 16 << 10] = [7; 16 << 10];

fn open(world: &Arc<Simulated>) -> Arc<Broker> {
    Broker::open(sim::options(world)).unwrap()
}

/// Lets everything happen that is due soon.
fn rest(world: &Simulated) {
    for _ in 0..100 {
        while world.step() {}
        world.advance(Duration::from_millis(10));
    }
}

fn segments(files: &FaultyFs) -> usize {
    let is_segment = |path: &&std::path::PathBuf| path.extension().is_some_and(|it| it == "segment");
    files.files().iter().filter(is_segment).count()
}

/// Deletes a queue whose messages are in segments, cuts the power as soon as one of those is gone, and starts again. True if the
/// queue is there again.
fn comes_back_without_its_segments(seed: u64) -> bool {
    let files = FaultyFs::new();
    let world = Simulated::new(files.clone(), Duration::from_secs(1), seed);
    let broker = open(&world);
    let user = || User::named("guest");
    let session = broker.connect(user(), "/", Arc::new(Outbox::new())).unwrap();
    let declare = DeclareQueue {
        name: "q".to_owned(),
        durable: true,
        ..DeclareQueue::default()
    };
    session.declare_queue(CHANNEL, declare).unwrap();
    let mut publisher = session.publisher(CHANNEL, 1);
    // Persistent.
    let properties = [0x10, 0, 2];
    for _ in 0..MESSAGES {
        let route = RouteBuf::new(b"", b"q");
        let message = Message::new(route.as_route(), Properties::amqp091(&properties), &BODY);
        publisher.publish(&message, None).unwrap();
        let _ = publisher.flush();
        rest(&world);
    }
    let before = segments(&files);
    assert!(before > 1, "the messages are in segments");
    let asked = session.delete_queue(CHANNEL, "q", false, false).unwrap();
    if let Deleting::Asked(deletion) = asked {
        session
            .go_on_deleting(CHANNEL, deletion, Some(broker::Answer::MayRetire(0)))
            .unwrap();
    }
    while segments(&files) == before {
        if !world.step() {
            world.advance(Duration::from_millis(1));
        }
    }
    world.abandon();
    let world = Simulated::new(files.crash(seed), Duration::from_secs(100), seed);
    let broker = open(&world);
    let is_back = broker.view().queue("/", "q").is_some();
    broker.close();
    is_back
}

#[test]
fn the_segments_of_a_deleted_queue_stay_until_its_deletion_is_durable() {
    let back: Vec<u64> = (1..=20)
        .filter(|seed| until_power_cut(|| comes_back_without_its_segments(*seed)) != Some(false))
        .collect();
    assert!(back.is_empty(), "with seeds {back:?}");
}
