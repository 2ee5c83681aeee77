//! Times to live, dead letters and limits of queues with lanes: the rules of a plain queue hold in each lane.

use crate::world::{Event, Plain, World, body, consume, number, shrink};
use model::properties::PropertiesBuilder;
use model::{Block, BlockBuilder, Machine, Ranges, Timestamp};
use queue::fifo::{Answer, DeadLetterTo, Disposal, DropReason, Overflow, QueueSettings, Request, Sorting};
use std::sync::Arc;

fn sorted() -> QueueSettings {
    QueueSettings {
        durable: true,
        sorting: Sorting::Priority(9),
        dead_letter: Some(Arc::new(DeadLetterTo {
            exchange: "dead".into(),
            routing_key: None,
            at_least_once: false,
        })),
        ..QueueSettings::default()
    }
}

/// Messages numbered from `first` on, with these priorities.
fn block(first: u64, priorities: &[u8]) -> Arc<Block> {
    let mut builder = BlockBuilder::new();
    for (number, priority) in (first..).zip(priorities) {
        let properties = PropertiesBuilder::new().priority(*priority).encode();
        builder.push(b"", b"q", &properties, &body(number, 10));
    }
    Arc::new(builder.finish(true, Timestamp(1)))
}

fn publish(world: &mut World, first: u64, priorities: &[u8]) -> Vec<Event> {
    let block = block(first, priorities);
    world.handle(Request::Enqueue {
        block,
        receipt: Some(1),
    })
}

fn dead(events: &[Event]) -> Vec<(DropReason, Vec<u64>)> {
    let letters = events.iter().filter_map(|event| match event {
        Event::DeadLettered(reason, numbers) => Some((*reason, numbers.clone())),
        _ => None,
    });
    letters.collect()
}

fn get(world: &mut World) -> Option<(u64, u64)> {
    let request: Request<Plain> = Request::Get {
        no_ack: false,
        reply: 0,
    };
    world.handle(request).into_iter().find_map(|event| match event {
        Event::Answered(_, Answer::Got { delivery, .. }) => {
            let seq = delivery.seqs.first()?;
            Some((
                seq,
                number(delivery.block.message((seq - delivery.base) as usize)),
            ))
        }
        _ => None,
    })
}

#[test]
fn messages_expire_in_every_lane_when_their_time_has_come() {
    let mut world = World::new(QueueSettings {
        message_ttl_ms: Some(100),
        ..sorted()
    });
    publish(&mut world, 1, &[0, 5, 9]);
    assert_eq!(world.fifo.wakes_at_ms(), 101);
    world.now = Timestamp(60);
    publish(&mut world, 4, &[9, 0]);
    world.now = Timestamp(101);
    let events = world.handle(Request::Wake);
    let letters = dead(&events);
    assert!(letters.iter().all(|(reason, _)| *reason == DropReason::Expired));
    let mut numbers: Vec<u64> = letters.into_iter().flat_map(|(_, numbers)| numbers).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(world.fifo.wakes_at_ms(), 160);
    while world.dead_letter_one().is_some() {}
    let mut again = World::restarted(
        QueueSettings {
            message_ttl_ms: Some(100),
            ..sorted()
        },
        world.disk.clone(),
    );
    again.now = world.now;
    again.handle(Request::Wake);
    assert_eq!(again.fifo.wakes_at_ms(), 160, "deadlines outlive a restart");
    for world in [&mut world, &mut again] {
        assert_eq!(get(world).map(|(_, number)| number), Some(4));
        assert_eq!(get(world).map(|(_, number)| number), Some(5));
    }
}

#[test]
fn what_expired_while_the_queue_was_down_goes_where_its_settings_say() {
    for sorting in [Sorting::Arrival, Sorting::Priority(9)] {
        let settings = QueueSettings {
            message_ttl_ms: Some(100),
            sorting,
            ..sorted()
        };
        let mut world = World::new(settings.clone());
        publish(&mut world, 1, &[0, 5]);
        let mut again = World::restarted(
            QueueSettings {
                durable: true,
                ..QueueSettings::default()
            },
            world.disk.clone(),
        );
        again.now = Timestamp(500);
        let mut events = again.handle(Request::Configure {
            settings: Box::new(settings),
        });
        events.extend(again.handle(Request::Wake));
        let mut numbers: Vec<u64> = dead(&events)
            .into_iter()
            .flat_map(|(_, numbers)| numbers)
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2]);
    }
}

#[test]
fn a_full_queue_loses_the_head_whatever_its_priority_and_hands_it_to_the_dead_letter_exchange() {
    let mut world = World::new(QueueSettings {
        max_length: Some(2),
        ..sorted()
    });
    publish(&mut world, 1, &[0, 9]);
    let events = publish(&mut world, 3, &[5]);
    assert_eq!(dead(&events), [(DropReason::MaxLength, vec![2])]);
    while world.dead_letter_one().is_some() {}
    assert_eq!(world.drain_numbers(), [3, 1]);
}

#[test]
fn a_queue_that_refuses_what_is_too_much_never_drops_what_it_took() {
    let settings = QueueSettings {
        max_length: Some(2),
        overflow: Overflow::Reject,
        ..sorted()
    };
    let mut world = World::new(settings.clone());
    publish(&mut world, 1, &[1, 1]);
    let (seq, _) = get(&mut world).unwrap();
    publish(&mut world, 3, &[5]);
    world.handle(Request::Return {
        consumer: None,
        seqs: Ranges::one(seq),
        failed: true,
    });
    assert_eq!(world.fifo.status().ready, 3, "one came back to a full queue");
    let settings = QueueSettings {
        max_length: Some(1),
        ..settings
    };
    world.handle(Request::Configure {
        settings: Box::new(settings),
    });
    assert_eq!(world.drain_numbers(), [3, 1, 2]);
}

#[test]
fn rejected_messages_of_several_lanes_are_dead_letters_and_gone_once_they_arrived() {
    let mut world = World::new(sorted());
    publish(&mut world, 1, &[3, 0, 9]);
    let held: Vec<u64> = std::iter::from_fn(|| get(&mut world))
        .map(|(seq, _)| seq)
        .collect();
    assert_eq!(held.len(), 3);
    let seqs: Ranges = held.iter().copied().collect();
    let events = world.handle(Request::Settle {
        consumer: None,
        seqs,
        disposal: Disposal::Rejected,
    });
    let mut numbers: Vec<u64> = dead(&events)
        .into_iter()
        .flat_map(|(_, numbers)| numbers)
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
    let mut crashed = World::restarted(sorted(), world.disk.clone());
    assert_eq!(crashed.drain_numbers(), [3, 1, 2], "they have not arrived yet");
    while world.dead_letter_one().is_some() {}
    let mut again = World::restarted(sorted(), world.disk.clone());
    assert_eq!(again.drain_numbers(), []);
}

#[test]
fn a_time_to_live_of_zero_passes_messages_of_all_priorities_to_a_waiting_consumer_and_drops_the_others() {
    let settings = QueueSettings {
        message_ttl_ms: Some(0),
        dead_letter: None,
        ..sorted()
    };
    let mut world = World::new(settings);
    world.handle(consume(1, false, 2, 0));
    publish(&mut world, 1, &[0, 9, 5]);
    let status = world.fifo.status();
    assert_eq!((status.ready, status.unacked), (0, 2));
}

#[test]
fn a_lower_priority_goes_out_when_the_higher_message_that_waited_for_the_disk_has_to_go() {
    let settings = QueueSettings {
        max_length: Some(2),
        dead_letter: None,
        ..sorted()
    };
    let mut world = World::new(settings);
    world.handle(shrink(0));
    publish(&mut world, 1, &[9]);
    publish(&mut world, 2, &[9]);
    world.handle(consume(1, false, 10, 0));
    assert_eq!(world.loads.len(), 1, "the second one is being read back");
    let events = publish(&mut world, 3, &[0, 0]);
    let delivered = events.iter().filter_map(|event| match event {
        Event::Delivered(_, delivery) => Some(delivery.seqs.count()),
        _ => None,
    });
    assert_eq!(delivered.sum::<u64>(), 2);
    assert_eq!(world.fifo.status().ready, 0);
}

#[test]
fn what_a_waiting_consumer_takes_makes_room_in_a_queue_that_refuses_however_it_sorts() {
    for sorting in [Sorting::Arrival, Sorting::Priority(9)] {
        let mut world = World::new(QueueSettings {
            max_length: Some(1),
            overflow: Overflow::Reject,
            sorting,
            ..sorted()
        });
        world.handle(consume(1, false, 2, 0));
        let events = publish(&mut world, 1, &[0, 0, 0, 0]);
        let refused = events.iter().any(|event| matches!(event, Event::Rejected { .. }));
        let status = world.fifo.status();
        assert_eq!((status.unacked, status.ready, refused), (2, 1, true));
    }
}

#[test]
fn a_checkpoint_does_not_wait_for_a_lane_that_is_empty() {
    let mut world = World::new(sorted());
    publish(&mut world, 1, &[0, 9]);
    let (seq, number) = get(&mut world).unwrap();
    assert_eq!(number, 2);
    world.handle(Request::Settle {
        consumer: None,
        seqs: Ranges::one(seq),
        disposal: Disposal::Accepted,
    });
    let request = world.checkpoint(0);
    let mut events = world.handle(request);
    while let Some(more) = world.store_one(|_| false) {
        events.extend(more);
    }
    let is_checkpoint = |event: &Event| matches!(event, Event::Checkpoint(..));
    assert!(events.iter().any(is_checkpoint), "{events:?}");
    let mut again = World::restarted(sorted(), world.disk);
    assert_eq!(again.drain_numbers(), [1]);
}
