//! Messages whose bytes are on another node: what it is told of them, and what becomes of them once they are brought.

use crate::world::{Event, World, block, shrink};
use model::{DeadLetterTo, Journaled, Machine, Outcome, Ranges, Seq, Timestamp};
use proptest::prelude::*;
use queue::QueueMachine;
use queue::fifo::{Classic, Disposal, Effect, LocalRecord, QueueSettings, Request};
use queue::store::{self, Read, Stored, Whereabouts};
use std::sync::Arc;

type Fifo = Classic<crate::world::Plain>;

fn settings() -> QueueSettings {
    QueueSettings {
        durable: true,
        replicated: true,
        ..QueueSettings::default()
    }
}

fn enqueue(world: &mut World, first: Seq, sizes: &[usize]) {
    let block = block(first, sizes, true);
    world.handle(Request::Enqueue { block, receipt: None });
}

fn remove(world: &mut World, seqs: Ranges) {
    world.handle(Request::Settle {
        consumer: None,
        seqs,
        disposal: Disposal::Accepted,
    });
}

/// Another node that was sent the contents of this one, and none of the messages.
fn elsewhere(world: &World, settings: QueueSettings) -> World {
    let contents = LocalRecord::Checkpoint(world.fifo.checkpoint(world.next_index));
    let mut bytes = Vec::new();
    <Fifo as QueueMachine<_>>::without_places(contents)
        .unwrap()
        .encode(&mut bytes);
    let mut other = World::new(settings);
    other.fifo.replay();
    other.fifo.apply_local(LocalRecord::decode(&bytes).unwrap());
    other.fifo.recovered(false);
    other.handle(Request::AwaitNodes { nodes: Vec::new() });
    other
}

/// Has the other one take what this one can read of these messages, in steps of so many bytes. What it can't.
fn bring(world: &World, other: &mut World, mut wanted: Ranges, most: u64) -> (Ranges, Ranges) {
    let (mut gone, mut lost) = (Ranges::new(), Ranges::new());
    while !wanted.is_empty() {
        let found: Whereabouts = world.fifo.find(&wanted, most);
        let mut answered = Ranges::new();
        for (seqs, all) in [(&found.gone, &mut gone), (&found.lost, &mut lost)] {
            for (first, last) in seqs.spans() {
                all.push_span(first, last);
                answered.push_span(first, last);
            }
        }
        let mut pieces = Vec::new();
        for piece in &found.pieces {
            let block = world.read_piece(piece).unwrap();
            let place = other.write_block(piece.first, block);
            let (first, count) = (piece.first, piece.count);
            answered.push_span(first, first + u64::from(count) - 1);
            pieces.push(Stored { first, count, place });
        }
        assert!(!answered.is_empty(), "{wanted:?}");
        other.handle(Request::Store(store::Request::Found { pieces }));
        let left = |seq: &Seq| !answered.contains(*seq);
        wanted = wanted.iter().filter(left).collect();
    }
    (gone, lost)
}

proptest! {
    #[test]
    fn contents_without_places_and_the_bodies_brought_later_are_the_same_queue(
        blocks in prop::collection::vec(prop::collection::vec(0_usize..300, 1..8), 1..12),
        settled in prop::collection::vec((1_u64..60, 0_u64..4), 0..12),
        later in prop::collection::vec((1_u64..60, 0_u64..4), 0..4),
        memory in 200_usize..5_000,
        most in 1_u64..2_000,
    ) {
        let mut world = World::new(settings());
        world.handle(shrink(memory));
        let mut next = 1;
        for sizes in &blocks {
            enqueue(&mut world, next, sizes);
            next += sizes.len() as u64;
        }
        world.settle_disk();
        settled.into_iter().for_each(|(first, more)| remove(&mut world, Ranges::span(first, first + more)));
        let mut other = elsewhere(&world, settings());
        let wanted = other.fifo.unreadable();
        prop_assert_eq!(wanted.count(), world.fifo.status().persistent);
        prop_assert_eq!(other.fifo.status().persistent_bytes, world.fifo.status().persistent_bytes);
        // What is settled meanwhile is not found any more.
        later.into_iter().for_each(|(first, more)| remove(&mut world, Ranges::span(first, first + more)));
        let (gone, lost) = bring(&world, &mut other, wanted, most);
        prop_assert!(lost.is_empty());
        prop_assert_eq!(other.fifo.unreadable(), gone.clone());
        remove(&mut other, gone);
        world.handle(Request::AwaitNodes { nodes: Vec::new() });
        prop_assert_eq!(other.drain(), world.drain());
        prop_assert!(other.disk.segments.is_empty(), "{:?}", other.disk.segments.keys());
    }
}

#[test]
fn what_was_found_elsewhere_is_delivered_and_what_nobody_looks_for_any_more_is_given_back() {
    let mut world = World::new(settings());
    world.handle(shrink(100));
    (1..=4).for_each(|first| enqueue(&mut world, first, &[400]));
    world.settle_disk();
    let get = || Request::Get {
        no_ack: true,
        reply: 0,
    };
    while world.loads.is_empty() {
        world.handle(get());
    }
    let (first, _) = world.loads.pop_front().unwrap();
    // Not by way of the world, where nobody has what cannot be read here.
    let read = Read::Damaged;
    let answer = Request::Store(store::Request::FinishLoad { first, read });
    let mut outcome = Outcome::default();
    world.fifo.handle(world.now, answer, &mut outcome);
    let asked = |effect: &Effect<_>| match effect {
        Effect::Store(store::Effect::FindElsewhere { seqs }) => *seqs == Ranges::one(first),
        _ => false,
    };
    assert!(outcome.effects.iter().any(asked), "{:?}", outcome.effects);
    assert_eq!(world.fifo.unreadable(), Ranges::one(first));
    let mut brought = || {
        let found = Arc::into_inner(block(first, &[400], true)).unwrap();
        let place = world.write_block(first, found);
        let (first, count) = (first, 1);
        let pieces = vec![Stored { first, count, place }];
        let events = world.handle(Request::Store(store::Request::Found { pieces }));
        let back = |event: &Event| matches!(event, Event::Released { places, .. } if places[..] == [place]);
        events.iter().any(back)
    };
    assert!(!brought(), "it is looked for");
    assert!(brought(), "it was found before");
    assert!(world.fifo.unreadable().is_empty());
    assert_eq!(world.drain().first(), Some(&first));
}

/// Messages that another node has the contents of have expired there, and it has none of their bodies.
fn expired_elsewhere() -> (World, World) {
    let settings = QueueSettings {
        message_ttl_ms: Some(100),
        dead_letter: Some(Arc::new(DeadLetterTo {
            exchange: String::new(),
            routing_key: Some(b"graves".to_vec()),
            at_least_once: false,
        })),
        ..settings()
    };
    let mut world = World::new(settings.clone());
    world.handle(shrink(100));
    (1..=4).for_each(|first| enqueue(&mut world, first, &[400]));
    world.settle_disk();
    let mut other = elsewhere(&world, settings);
    other.now = Timestamp(world.now.0 + 200);
    // Not by way of the world, where nobody has what cannot be read here.
    let mut outcome = Outcome::default();
    other.fifo.handle(other.now, Request::Wake, &mut outcome);
    assert!(outcome.records.is_empty(), "{:?}", outcome.records);
    assert_eq!(other.fifo.status().persistent, 4);
    (world, other)
}

#[test]
fn dead_letters_that_were_found_elsewhere_are_handed_over() {
    let (world, mut other) = expired_elsewhere();
    for wanted in [Ranges::span(2, 3), Ranges::one(1), Ranges::one(4)] {
        bring(&world, &mut other, wanted.clone(), u64::MAX);
        let mut arrived: Vec<Seq> = Vec::new();
        while let Some((_, _, seqs)) = other.dead_letters.front() {
            arrived.extend(seqs);
            other.dead_letter_one();
        }
        assert_eq!(arrived, wanted.iter().collect::<Vec<_>>());
    }
    assert_eq!(other.fifo.status().persistent, 0);
    assert!(other.disk.segments.is_empty(), "{:?}", other.disk.segments.keys());
}

#[test]
fn dead_letters_that_nobody_has_are_given_up() {
    let (world, mut other) = expired_elsewhere();
    other.handle(Request::GiveUp {
        seqs: Ranges::span(1, 3),
    });
    assert_eq!(other.fifo.status().persistent, 1);
    bring(&world, &mut other, Ranges::span(1, 4), u64::MAX);
    let handed: Vec<Seq> = other
        .dead_letters
        .iter()
        .flat_map(|(.., seqs)| seqs.clone())
        .collect();
    assert_eq!(handed, [4]);
}
