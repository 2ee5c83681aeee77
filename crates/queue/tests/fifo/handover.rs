//! A queue's journal becomes one that several nodes have, and one node's again, while messages come and go: the bodies stay
//! where they lie, and what consumers hold stays in their hands.

use crate::world::{Event, World, block, number, shrink};
use model::{Incarnation, Journaled, Machine, Ranges, Seq};
use proptest::prelude::*;
use queue::fifo::{Answer, Disposal, Held, LocalRecord, QueueSettings, Request};
use queue::store::{self, Read};
use queue::{HandOver, QueueMachine};
use std::collections::BTreeSet;

const NODE: Incarnation = Incarnation(1);

fn settings(replicated: bool) -> QueueSettings {
    QueueSettings {
        durable: true,
        replicated,
        ..QueueSettings::default()
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// So many messages of these sizes, persistent or not.
    Publish(Vec<usize>, bool),
    /// A message is taken, and stays in somebody's hands.
    Hold,
    /// What is held at this place is done with.
    Accept(usize),
    /// What is held at this place comes back.
    Return(usize),
    Store,
    Checkpoint,
    HandOver,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop::collection::vec(0_usize..300, 1..6), any::<bool>())
            .prop_map(|(sizes, persistent)| Step::Publish(sizes, persistent)),
        3 => Just(Step::Hold),
        2 => (0_usize..8).prop_map(Step::Accept),
        1 => (0_usize..8).prop_map(Step::Return),
        3 => Just(Step::Store),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::HandOver),
    ]
}

fn get(world: &mut World) -> Option<Seq> {
    let mut events = world.handle(Request::Get {
        no_ack: false,
        reply: 0,
    });
    // What is not in memory comes from the disk first.
    while !events.iter().any(|event| matches!(event, Event::Answered(..))) {
        events.extend(world.load_one().unwrap());
    }
    events.into_iter().find_map(|event| match event {
        Event::Answered(_, Answer::Got { delivery, .. }) => {
            let seq = delivery.seqs.first()?;
            let message = delivery.block.message((seq - delivery.base) as usize);
            assert_eq!(number(message), seq);
            Some(seq)
        }
        _ => None,
    })
}

/// The contents, once all lie in segments.
fn contents(world: &mut World) -> Vec<u8> {
    // What the last turn's place in the log has made it order, it orders now.
    world.handle(Request::Store(store::Request::MoveOut));
    for _ in 0..1_000 {
        match QueueMachine::hand_over(&world.fifo, 1) {
            HandOver::Contents(contents) => {
                let mut bytes = Vec::new();
                contents.encode(&mut bytes);
                let LocalRecord::Checkpoint(contents) = contents else {
                    panic!("{contents:?}");
                };
                assert_eq!(contents.first_in_log(), None, "the log is not needed");
                return bytes;
            }
            HandOver::Waits => {
                let answered = world.load_one().or_else(|| world.store_one(|_| false));
                drop(answered.unwrap());
            }
            HandOver::Elsewhere => {
                drop(world.handle(Request::Store(store::Request::MoveOut)));
            }
        }
    }
    panic!("{:?}", world.fifo.look(None, 0, 100));
}

/// The next machine, of the same segments: its journal has nothing but the contents.
fn successor(mut world: World, replicated: bool, held: &BTreeSet<Seq>) -> World {
    let contents = contents(&mut world);
    let mut next = World::new(settings(replicated));
    next.disk = world.disk;
    next.disk.log.clear();
    next.fifo.replay();
    let record = LocalRecord::decode(&contents).unwrap();
    QueueMachine::apply_local(&mut next.fifo, record).unwrap();
    match replicated {
        true => next.fifo.recovered(false),
        false => QueueMachine::taken_over(&mut next.fifo),
    }
    next.handle(shrink(2_000));
    next.handle(Request::AwaitNodes { nodes: vec![NODE] });
    let held = Held {
        consumer: None,
        seqs: held.iter().copied().collect(),
        returns: 0,
    };
    let told = next.handle(Request::Holds {
        node: NODE,
        held: vec![held],
        more: false,
        reply: 7,
    });
    let discard = told.iter().find_map(|event| match event {
        Event::Answered(7, Answer::Discard(discard)) => Some(discard.clone()),
        _ => None,
    });
    assert_eq!(discard, Some(Ranges::new()), "what is held stays so");
    next
}

fn settle(world: &mut World, seq: Seq) {
    world.handle(Request::Settle {
        consumer: None,
        seqs: Ranges::one(seq),
        disposal: Disposal::Accepted,
    });
}

proptest! {
    #[test]
    fn a_queue_goes_from_one_journal_to_another_with_all_that_is_in_it_and_in_hands(
        steps in prop::collection::vec(step(), 1..60),
        memory in 0_usize..3_000,
    ) {
        let mut replicated = false;
        let mut world = World::new(settings(replicated));
        world.handle(shrink(memory));
        let (mut next, mut live, mut held) = (1, BTreeSet::new(), BTreeSet::new());
        for step in steps {
            match step {
                Step::Publish(sizes, persistent) => {
                    let block = block(next, &sizes, persistent);
                    world.handle(Request::Enqueue { block, receipt: None });
                    live.extend(next..next + sizes.len() as u64);
                    next += sizes.len() as u64;
                }
                Step::Hold => {
                    let first = live.difference(&held).min().copied();
                    let got = get(&mut world);
                    prop_assert_eq!(got, first);
                    held.extend(got);
                }
                Step::Accept(at) => {
                    if let Some(seq) = held.iter().nth(at).copied() {
                        settle(&mut world, seq);
                        held.remove(&seq);
                        live.remove(&seq);
                    }
                }
                Step::Return(at) => {
                    if let Some(seq) = held.iter().nth(at).copied() {
                        let (consumer, seqs, failed) = (None, Ranges::one(seq), false);
                        world.handle(Request::Return { consumer, seqs, failed });
                        held.remove(&seq);
                    }
                }
                Step::Store => drop(world.store_one(|at| at == 2)),
                Step::Checkpoint => drop(world.handle(world.checkpoint(0))),
                Step::HandOver => {
                    replicated = !replicated;
                    world = successor(world, replicated, &held);
                }
            }
        }
        let ready: Vec<Seq> = live.difference(&held).copied().collect();
        prop_assert_eq!(world.drain(), ready);
        held.iter().for_each(|seq| settle(&mut world, *seq));
        world.settle_disk();
        let status = world.fifo.status();
        prop_assert_eq!((status.ready, status.unacked, status.persistent), (0, 0, 0));
        prop_assert!(world.disk.segments.is_empty(), "{:?}", world.disk.segments.keys());
    }
}

#[test]
fn nothing_is_handed_over_while_messages_are_on_their_way_and_what_cannot_be_stored_is_asked_for_again() {
    let mut world = World::new(settings(false));
    world.handle(Request::Enqueue {
        block: block(1, &[10, 20], false),
        receipt: None,
    });
    let at = |world: &World| QueueMachine::hand_over(&world.fifo, 1).map(drop);
    assert_eq!(at(&world), HandOver::Elsewhere, "they are in memory only");
    for fails in [true, false] {
        world.handle(Request::Store(store::Request::MoveOut));
        assert_eq!(at(&world), HandOver::Waits);
        world.store_one(|_| fails);
    }
    assert_eq!(at(&world), HandOver::Contents(()));
    // What cannot be read is handed over as that.
    world.disk.segments.clear();
    world.handle(shrink(0));
    world.handle(Request::Get {
        no_ack: false,
        reply: 0,
    });
    if let Some((first, _)) = world.loads.pop_front() {
        world.answer_load(first, Read::Damaged);
    }
    assert_ne!(at(&world), HandOver::Elsewhere);
}

#[test]
fn a_queue_of_one_node_that_took_over_marks_what_nobody_holds_and_has_no_record_of_what_it_hands_out() {
    let mut world = World::new(settings(true));
    world.handle(Request::Enqueue {
        block: block(1, &[10; 4], true),
        receipt: None,
    });
    assert_eq!(get(&mut world), Some(1));
    let held = BTreeSet::new();
    let mut world = successor(world, false, &held);
    let mut got = Vec::new();
    for _ in 0..4 {
        let events = world.handle(Request::Get {
            no_ack: false,
            reply: 0,
        });
        let mut events: Vec<Event> = events.into_iter().chain(world.settle_disk()).collect();
        assert!(!events.iter().any(|event| matches!(event, Event::Recorded(_))));
        let delivery = events.drain(..).find_map(|event| match event {
            Event::Answered(_, Answer::Got { delivery, .. }) => Some(delivery),
            _ => None,
        });
        let delivery = delivery.unwrap();
        got.push((delivery.seqs.first().unwrap(), delivery.redelivered));
    }
    assert_eq!(got, [(1, true), (2, false), (3, false), (4, false)]);
}
