//! Queues whose journal several nodes keep: one decides, the others follow, and any of them may be the next to decide.

use crate::lanes::{enqueue, fair, group};
use crate::world::{self, Event, Plain, World, body, shrink};
use model::properties::PropertiesBuilder;
use model::{Block, BlockBuilder, DelayedRetry, DeliveryLimit, Incarnation, Journaled, Machine, Outcome};
use model::{Ranges, Returned, Seq, Sorting, Timestamp};
use queue::fifo::{
    Answer, Classic, DeadLetterTo, Disposal, Effect, LocalRecord, Origin, Overflow, QueueSettings, Record,
    Request,
};
use queue::store::{self, LogPlace};
use std::sync::Arc;

fn replicated(settings: QueueSettings) -> QueueSettings {
    QueueSettings {
        durable: true,
        replicated: true,
        ..settings
    }
}

/// Takes one message for good, and says its number.
fn take(world: &mut World) -> Option<Seq> {
    let events = world.handle(Request::Get {
        no_ack: true,
        reply: 0,
    });
    events.into_iter().find_map(|event| match event {
        Event::Answered(_, Answer::Got { delivery, .. }) => delivery.seqs.first(),
        _ => None,
    })
}

#[test]
fn a_group_that_was_gone_when_a_checkpoint_was_written_uses_none_of_its_numbers_twice() {
    // Messages without a group are one, too, and the first that there is.
    let one = |name: Option<&str>, number| match name {
        Some(name) => group(name, number, &[10]),
        None => world::block(number, &[10], true),
    };
    for name in [Some("g"), None] {
        let settings = replicated(fair());
        let mut world = World::new(settings.clone());
        (1..=7).for_each(|number| enqueue(&mut world, one(name, number)));
        let mut used: Vec<Seq> = std::iter::from_fn(|| take(&mut world)).collect();
        assert_eq!(used.len(), 7);
        enqueue(&mut world, group("other", 8, &[10]));
        take(&mut world).unwrap();
        world.handle(world.checkpoint(0));
        let mut again = World::restarted(settings, world.disk);
        enqueue(&mut again, one(name, 9));
        used.push(take(&mut again).unwrap());
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 8, "{name:?}: {used:?}");
    }
}

/// What a queue orders of the disk before its messages have levels is answered to where it was ordered.
#[test]
fn a_follower_that_is_busy_storing_when_the_first_level_comes_writes_checkpoints_on() {
    let settings = replicated(QueueSettings {
        sorting: Sorting::Levels,
        ..QueueSettings::default()
    });
    let mut world = World::new(settings.clone());
    let mut records = Vec::new();
    for number in 1..=40 {
        let block = match number {
            40 => urgent(number),
            _ => world::block(number, &[100], true),
        };
        let events = world.handle(Request::Enqueue { block, receipt: None });
        records.extend(events.into_iter().filter_map(|event| match event {
            Event::Recorded(record) => Some(record),
            _ => None,
        }));
    }
    let mut follower: Classic<Plain> = Classic::new(settings);
    follower.follow();
    let mut outcome = Outcome::default();
    follower.handle(Timestamp(0), shrink(200), &mut outcome);
    for (index, record) in (1..).zip(records) {
        let first = match &record {
            Record::Enqueued { first, .. } => Some(*first),
            _ => None,
        };
        follower.apply(index, record, &mut outcome);
        if let Some(first) = first {
            follower.appended(first, LogPlace(index));
        }
    }
    follower.handle(Timestamp(0), world.checkpoint(0), &mut outcome);
    for _ in 0..100 {
        let mut next = Outcome::default();
        let ordered = outcome.effects.drain(..).filter_map(|effect| match effect {
            Effect::Store(store::Effect::Store { pieces, .. }) => Some(pieces),
            _ => None,
        });
        for pieces in ordered {
            let pieces = pieces.iter().zip(0..).map(|(piece, offset)| store::Stored {
                first: piece.first,
                count: piece.count,
                place: store::Place {
                    segment: 1,
                    offset,
                    length: 1,
                },
            });
            let pieces = pieces.collect();
            let unreadable = Ranges::new();
            let finish = store::Request::FinishStore { pieces, unreadable };
            follower.handle(Timestamp(0), Request::Store(finish), &mut next);
        }
        let is_checkpoint =
            |effect: &Effect<Plain>| matches!(effect, Effect::Store(store::Effect::Checkpoint));
        if outcome.promises.iter().any(is_checkpoint) {
            return;
        }
        outcome = next;
    }
    panic!("it is never ready for a checkpoint");
}

/// A message of a level above the usual one.
fn urgent(number: u64) -> Arc<Block> {
    let properties = PropertiesBuilder::new().priority(9).encode();
    let mut builder = BlockBuilder::new();
    builder.push(b"", b"q", &properties, &body(number, 100));
    Arc::new(builder.finish(true, Timestamp(1)))
}

#[test]
fn a_follower_drops_groups_that_are_gone_and_keeps_what_comes_for_them_later() {
    let settings = replicated(fair());
    let mut world = World::new(settings.clone());
    let mut follower: Classic<Plain> = Classic::new(settings);
    let follow = |follower: &mut Classic<Plain>, events: Vec<Event>| {
        for event in events {
            if let Event::Recorded(record) = event {
                follower.apply(1, record, &mut Outcome::default());
            }
        }
    };
    follower.follow();
    for number in 1..=300 {
        // The owner holds one lane longer than the follower does, and the other way round.
        for name in ["a", &format!("g{number}"), "b"] {
            let block = group(name, number, &[10]);
            let events = world.handle(Request::Enqueue { block, receipt: None });
            let came = events
                .iter()
                .any(|it| matches!(it, Event::Recorded(Record::Enqueued { .. })));
            assert!(came, "{events:?}");
            follow(&mut follower, events);
        }
        for _ in 0..3 {
            assert_eq!(follower.status().persistent, world.fifo.status().persistent);
            let get = Request::Get {
                no_ack: true,
                reply: 0,
            };
            let events = world.handle(get);
            follow(&mut follower, events);
        }
        assert_eq!(follower.status().persistent, 0);
    }
    let lanes = follower.checkpoint(1).lanes.len();
    assert!(lanes < 4, "the follower keeps {lanes} lanes");
}

/// The records that a request makes.
fn record(world: &mut World, request: Request<Plain>) -> Vec<Record> {
    let events = world.handle(request).into_iter();
    let records = events.filter_map(|event| match event {
        Event::Recorded(record) => Some(record),
        _ => None,
    });
    records.collect()
}

fn get(no_ack: bool) -> Request<Plain> {
    Request::Get { no_ack, reply: 0 }
}

fn come(name: &str, number: Seq) -> Request<Plain> {
    let (block, receipt) = (group(name, number, &[10]), None);
    Request::Enqueue { block, receipt }
}

#[test]
fn what_was_handed_out_of_a_group_that_its_owner_kept_is_asked_for_though_a_follower_had_dropped_the_group() {
    let settings = replicated(QueueSettings {
        max_length: Some(1),
        overflow: Overflow::RejectAndDeadLetter,
        dead_letter: Some(Arc::new(DeadLetterTo {
            exchange: "dead".into(),
            routing_key: None,
            at_least_once: false,
        })),
        ..fair()
    });
    let mut world = World::new(settings.clone());
    let mut records = record(&mut world, come("g", 1));
    records.extend(record(&mut world, get(false)));
    let mut lanes = world.fifo.checkpoint(1).lanes.into_iter();
    let held = lanes.find(|(lane, _)| !lane.live.is_empty()).unwrap().0.live;
    records.extend(record(&mut world, come("other", 2)));
    // What is refused belongs to the group in which something was done last, and is kept with it as long as it is on its way
    // to the dead letters.
    let settle = |seqs| Request::Settle {
        consumer: None,
        seqs,
        disposal: Disposal::Accepted,
    };
    let nothing = Ranges::one(held.last().unwrap() + 1);
    records.extend(record(&mut world, settle(nothing)));
    records.extend(record(&mut world, come("g", 3)));
    records.extend(record(&mut world, settle(held)));
    records.extend(record(&mut world, get(true)));
    records.extend(record(&mut world, come("g", 4)));
    assert_eq!(
        record(&mut world, get(false)),
        [],
        "it is below the number on record"
    );
    for restores in [false, true] {
        let mut follower: Classic<Plain> = Classic::new(settings.clone());
        follower.follow();
        for (at, record) in records.iter().enumerate() {
            if restores && at + 1 == records.len() {
                let checkpoint = follower.checkpoint(at as u64 + 1);
                follower = Classic::new(settings.clone());
                follower.apply_local(LocalRecord::Checkpoint(checkpoint));
                follower.follow();
            }
            follower.apply(at as u64 + 1, record.clone(), &mut Outcome::default());
        }
        follower.recovered(false);
        let mut outcome = Outcome::default();
        follower.handle(Timestamp(1), get(false), &mut outcome);
        assert!(
            outcome.effects.is_empty(),
            "somebody may hold it: {:?}",
            outcome.effects
        );
        let mut lanes = follower.checkpoint(1).lanes.into_iter();
        let (held, _) = lanes.find(|(lane, _)| !lane.live.is_empty()).unwrap();
        assert!(held.handed_below >= held.next, "who starts again asks, too");
        let nodes = Vec::new();
        follower.handle(Timestamp(1), Request::AwaitNodes { nodes }, &mut outcome);
        let [Effect::Reply(_, Answer::Got { delivery, .. })] = &outcome.effects[..] else {
            panic!("{:?}", outcome.effects);
        };
        assert!(delivery.redelivered);
        let marks = |record: &Record| matches!(record, Record::HandedOut { .. });
        assert!(
            outcome.records.iter().any(marks),
            "others may not know: {:?}",
            outcome.records
        );
    }
}

#[test]
fn a_block_that_is_spread_over_lanes_is_taken_once_though_only_some_of_its_records_were_committed() {
    let settings = replicated(QueueSettings {
        sorting: Sorting::Priority(3),
        ..QueueSettings::default()
    });
    let send = |machine: &mut Classic<Plain>| {
        let origin = Origin {
            sender: Incarnation(7),
            first: 1,
        };
        let mut outcome = Outcome::default();
        let sent = Request::EnqueueFrom {
            origin: Box::new(origin),
            block: prioritised(&[1, 3, 1, 0, 3]),
            receipt: Some(1),
        };
        machine.handle(Timestamp(1), sent, &mut outcome);
        outcome
    };
    let mut first: Classic<Plain> = Classic::new(settings.clone());
    let records = send(&mut first).records;
    assert_eq!(records.len(), 3);
    for committed in 0..=records.len() {
        let mut next: Classic<Plain> = Classic::new(settings.clone());
        next.follow();
        for (index, record) in (1..).zip(&records[..committed]) {
            next.apply(index, record.clone(), &mut Outcome::default());
        }
        next.recovered(false);
        send(&mut next);
        assert_eq!(next.status().persistent, 5);
        assert_eq!(next.checkpoint(1).senders, first.checkpoint(1).senders);
        assert_eq!(send(&mut next).records.len(), 0);
    }
}

#[test]
fn numbers_of_a_block_that_was_given_up_after_some_of_its_records_were_committed_mean_no_other_messages() {
    let settings = replicated(QueueSettings {
        sorting: Sorting::Priority(3),
        ..QueueSettings::default()
    });
    let sender = Incarnation(7);
    let send = |machine: &mut Classic<Plain>, first: u64| {
        let mut outcome = Outcome::default();
        let sent = Request::EnqueueFrom {
            origin: Box::new(Origin { sender, first }),
            block: prioritised(&[1, 3, 1, 0, 3]),
            receipt: Some(1),
        };
        machine.handle(Timestamp(1), sent, &mut outcome);
        outcome.records
    };
    let mut first: Classic<Plain> = Classic::new(settings.clone());
    let records = send(&mut first, 1);
    for committed in 0..=records.len() {
        let mut next: Classic<Plain> = Classic::new(settings.clone());
        next.follow();
        for (index, record) in (1..).zip(&records[..committed]) {
            next.apply(index, record.clone(), &mut Outcome::default());
        }
        next.recovered(false);
        let taken = next.status().persistent;
        let (mut outcome, from, reply) = (Outcome::default(), 6, 0);
        let recall = Request::Recall { sender, from, reply };
        next.handle(Timestamp(1), recall, &mut outcome);
        let below = outcome.promises.iter().find_map(|promise| match promise {
            Effect::Reply(_, Answer::Recalled { below, .. }) => Some(*below),
            _ => None,
        });
        // Whoever decides then knows the same.
        let mut after: Classic<Plain> = Classic::new(settings.clone());
        for record in records[..committed].iter().chain(&outcome.records) {
            after.apply(1, record.clone(), &mut Outcome::default());
        }
        assert_eq!(after.checkpoint(1).senders, next.checkpoint(1).senders);
        send(&mut next, below.unwrap());
        assert_eq!(
            next.status().persistent,
            taken + 5,
            "{committed} records, {below:?}"
        );
    }
}

#[test]
fn a_question_about_nothing_that_was_sent_gives_up_nothing_of_a_block_that_is_sent_again() {
    let settings = replicated(QueueSettings {
        sorting: Sorting::Priority(3),
        ..QueueSettings::default()
    });
    let sender = Incarnation(7);
    let send = |machine: &mut Classic<Plain>| {
        let mut outcome = Outcome::default();
        let sent = Request::EnqueueFrom {
            origin: Box::new(Origin { sender, first: 1 }),
            block: prioritised(&[1, 3, 1, 0, 3]),
            receipt: Some(1),
        };
        machine.handle(Timestamp(1), sent, &mut outcome);
        outcome.records
    };
    let records = send(&mut Classic::new(settings.clone()));
    for committed in 0..=records.len() {
        let mut next: Classic<Plain> = Classic::new(settings.clone());
        next.follow();
        for (index, record) in (1..).zip(&records[..committed]) {
            next.apply(index, record.clone(), &mut Outcome::default());
        }
        next.recovered(false);
        // Whoever only waits until everything before is on record asks for what comes behind all numbers.
        let (mut outcome, from, reply) = (Outcome::default(), u64::MAX, 0);
        next.handle(
            Timestamp(1),
            Request::Recall { sender, from, reply },
            &mut outcome,
        );
        assert!(outcome.records.is_empty(), "{committed} records: {outcome:?}");
        send(&mut next);
        assert_eq!(next.status().persistent, 5, "{committed} records");
    }
}

#[test]
fn what_was_given_back_does_not_count_as_a_failure_however_much_of_that_was_committed() {
    for delayed_retry in [None, delayed()] {
        let settings = replicated(QueueSettings {
            counts_failures: true,
            delivery_limit: Some(DeliveryLimit::Unlimited),
            delayed_retry,
            ..QueueSettings::default()
        });
        let mut world = World::new(settings.clone());
        let (block, receipt) = (world::block(1, &[10], true), None);
        let mut records = record(&mut world, Request::Enqueue { block, receipt });
        records.extend(record(&mut world, get(false)));
        let (consumer, seqs) = (None, Ranges::one(1));
        let back = record(&mut world, Request::Requeue { consumer, seqs });
        for committed in 0..=back.len() {
            let mut next: Classic<Plain> = Classic::new(settings.clone());
            next.follow();
            for (index, record) in (1..).zip(records.iter().chain(&back[..committed])) {
                let mut bytes = Vec::new();
                record.encode(&mut bytes);
                assert_eq!(Record::decode(&bytes).as_ref(), Some(record));
                next.apply(index, record.clone(), &mut Outcome::default());
            }
            next.recovered(false);
            let (nodes, mut outcome) = (Vec::new(), Outcome::default());
            next.handle(Timestamp(1), Request::AwaitNodes { nodes }, &mut outcome);
            next.handle(Timestamp(1_000_000), get(false), &mut outcome);
            let orders = outcome.effects.iter().chain(&outcome.promises);
            let failures = orders.filter_map(|order| match order {
                Effect::Reply(_, Answer::Got { delivery, .. }) => delivery.failures.or(Some(0)),
                _ => None,
            });
            assert_eq!(failures.collect::<Vec<_>>(), [0], "{committed} of {back:?}");
        }
    }
}

fn delayed() -> Option<DelayedRetry> {
    Some(DelayedRetry {
        of: Returned::All,
        least_ms: 100,
        most_ms: 200,
    })
}

fn prioritised(priorities: &[u8]) -> Arc<Block> {
    let mut builder = BlockBuilder::new();
    for (number, priority) in (1..).zip(priorities) {
        let properties = PropertiesBuilder::new().priority(*priority).encode();
        builder.push(b"", b"q", &properties, &body(number, 10));
    }
    Arc::new(builder.finish(true, Timestamp(1)))
}

/// What is ordered then nobody carries out: every later answer would be taken for that of an earlier order.
#[test]
fn a_queue_that_knows_that_it_sorts_orders_nothing_while_it_is_replayed() {
    let settings = replicated(QueueSettings {
        sorting: Sorting::Priority(3),
        ..QueueSettings::default()
    });
    let mut fifo: Classic<Plain> = Classic::new(settings);
    let mut outcome = Outcome::default();
    fifo.handle(Timestamp(0), shrink(1_000), &mut outcome);
    fifo.replay();
    for first in 1..=60 {
        let record = Record::Enqueued {
            first,
            block: world::block(first, &[100], true),
            from: 0,
            expiries: Vec::new(),
            keyed: false,
            sent: None,
        };
        fifo.apply(first, record, &mut outcome);
        fifo.appended(first, LogPlace(first));
    }
    assert_eq!(outcome.effects.len(), 0, "{:?}", outcome.effects);
    fifo.follow();
    let checkpoint = Request::Store(store::Request::Checkpoint { before: LogPlace(0) });
    fifo.handle(Timestamp(0), checkpoint, &mut outcome);
    let ordered = |effect: &Effect<Plain>| matches!(effect, Effect::Store(store::Effect::Checkpoint));
    assert!(outcome.promises.iter().any(ordered), "{:?}", outcome.promises);
}
