//! What a queue tells of its first message: when its publisher says that it was made.

use crate::world::{Event, World, shrink};
use model::properties::PropertiesBuilder;
use model::{Block, BlockBuilder, Machine, Ranges, Timestamp};
use queue::fifo::{Answer, Disposal, QueueSettings, Request, Sorting};
use std::sync::Arc;

/// Messages that say when they were made, or don't.
fn stamped(timestamps: &[Option<u64>], priority: u8, persistent: bool) -> Arc<Block> {
    let mut builder = BlockBuilder::new();
    for timestamp in timestamps {
        let properties = PropertiesBuilder::new().priority(priority);
        let properties = match timestamp {
            Some(timestamp) => properties.timestamp(*timestamp),
            None => properties,
        };
        builder.push(b"", b"q", &properties.encode(), b"x");
    }
    Arc::new(builder.finish(persistent, Timestamp(1)))
}

fn enqueue(world: &mut World, block: Arc<Block>) {
    world.handle(Request::Enqueue { block, receipt: None });
}

/// Takes the first ready message and keeps it.
fn take(world: &mut World) -> Ranges {
    let events = world.handle(Request::Get {
        no_ack: false,
        reply: 0,
    });
    let mut got = events.into_iter().filter_map(|event| match event {
        Event::Answered(_, Answer::Got { delivery, .. }) => Some(delivery.seqs),
        _ => None,
    });
    got.next().unwrap()
}

/// Takes the first ready message for good, wherever it lies: when it was made.
fn take_stamp(world: &mut World) -> u64 {
    let mut events = world.handle(Request::Get {
        no_ack: true,
        reply: 0,
    });
    events.extend(world.settle_disk());
    let mut got = events.into_iter().filter_map(|event| match event {
        Event::Answered(_, Answer::Got { delivery, .. }) => Some(delivery),
        _ => None,
    });
    let delivery = got.next().unwrap();
    let at = delivery.seqs.first().unwrap() - delivery.base;
    delivery
        .block
        .message(at as usize)
        .properties
        .timestamp()
        .unwrap()
}

fn settle(world: &mut World, seqs: Ranges) {
    world.handle(Request::Settle {
        consumer: None,
        seqs,
        disposal: Disposal::Accepted,
    });
}

fn give_back(world: &mut World, seqs: Ranges) {
    world.handle(Request::Return {
        consumer: None,
        seqs,
        failed: true,
    });
}

#[test]
fn the_head_says_what_its_publisher_wrote_and_nothing_if_that_was_nothing() {
    let mut world = World::new(QueueSettings::default());
    assert_eq!(world.fifo.head_timestamp(), None);
    enqueue(&mut world, stamped(&[None, Some(7), Some(u64::MAX)], 0, false));
    assert_eq!(world.fifo.head_timestamp(), None);
    let got = take(&mut world);
    settle(&mut world, got);
    assert_eq!(world.fifo.head_timestamp(), Some(7));
    let got = take(&mut world);
    settle(&mut world, got);
    assert_eq!(world.fifo.head_timestamp(), Some(u64::MAX));
}

#[test]
fn what_a_consumer_holds_is_a_head_too() {
    let mut world = World::new(QueueSettings::default());
    enqueue(
        &mut world,
        stamped(&[Some(5000), Some(1000), Some(3000)], 0, false),
    );
    let first = take(&mut world);
    assert_eq!(world.fifo.head_timestamp(), Some(1000));
    take(&mut world);
    assert_eq!(world.fifo.head_timestamp(), Some(3000));
    take(&mut world);
    assert_eq!(world.fifo.head_timestamp(), Some(5000));
    give_back(&mut world, first);
    assert_eq!(world.fifo.head_timestamp(), Some(5000));
}

#[test]
fn the_highest_priority_has_the_head() {
    let mut world = World::new(QueueSettings {
        sorting: Sorting::Priority(9),
        ..QueueSettings::default()
    });
    enqueue(&mut world, stamped(&[Some(1)], 1, false));
    enqueue(&mut world, stamped(&[Some(50)], 5, false));
    assert_eq!(world.fifo.head_timestamp(), Some(50));
    let got = take(&mut world);
    settle(&mut world, got);
    assert_eq!(world.fifo.head_timestamp(), Some(1));
}

#[test]
fn a_queue_of_levels_sorts_from_the_first_message_of_another_level_on() {
    let settings = QueueSettings {
        durable: true,
        sorting: Sorting::Levels,
        ..QueueSettings::default()
    };
    let mut world = World::new(settings.clone());
    for stamp in 1..=3 {
        enqueue(&mut world, stamped(&[Some(stamp)], 4, true));
    }
    assert!(!world.fifo.is_sorted());
    // What its one lane has ordered by then is answered to it.
    world.handle(shrink(0));
    for (stamp, priority) in [(4, 9), (5, 0), (6, 4), (7, 40)] {
        enqueue(&mut world, stamped(&[Some(stamp)], priority, true));
    }
    assert!(world.fifo.is_sorted());
    world.settle_disk();
    world.handle(shrink(1 << 20));
    let mut world = World::restarted(settings.clone(), world.disk);
    let settings = Box::new(settings);
    world.handle(Request::Configure { settings });
    let mut stamps = Vec::new();
    while world.fifo.status().ready > 0 {
        stamps.push(take_stamp(&mut world));
    }
    assert_eq!(stamps, [7, 4, 1, 2, 3, 6, 5]);
}

#[test]
fn what_lies_on_disk_is_not_read_for_it() {
    let settings = QueueSettings {
        durable: true,
        ..QueueSettings::default()
    };
    let mut world = World::new(settings.clone());
    enqueue(&mut world, stamped(&[Some(9)], 0, true));
    assert_eq!(world.fifo.head_timestamp(), Some(9));
    let again = World::restarted(settings, world.disk);
    assert_eq!(again.fifo.status().ready, 1);
    let known = again.fifo.status().paged == 0;
    assert_eq!(again.fifo.head_timestamp(), known.then_some(9));
    assert!(again.loads.is_empty());
}
