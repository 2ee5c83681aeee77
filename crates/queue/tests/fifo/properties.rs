//! Whatever is asked in whatever order, and however late the disk answers: nothing is lost, invented, reordered, given
//! twice, or forgotten at a restart.

use crate::careful::Careful;
use crate::world::{Event, Plain, block, compact, shrink};
use model::{ConsumerId, Incarnation, Journaled, Machine, Outcome, Ranges, Seq, Timestamp};
use proptest::prelude::*;
use queue::fifo::{Classic, ConsumerSettings, Effect, Held, Origin, QueueSettings, Record, Request};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug)]
enum Step {
    Enqueue {
        sizes: Vec<usize>,
        persistent: bool,
    },
    Consume {
        id: u64,
        settings: ConsumerSettings,
    },
    Cancel {
        id: u64,
    },
    Get {
        no_ack: bool,
    },
    Settle {
        id: Option<u64>,
        from: Seq,
        span: Seq,
        accepted: bool,
    },
    GiveBack {
        id: Option<u64>,
        from: Seq,
        span: Seq,
        failed: bool,
    },
    TakeOut {
        from: Seq,
        span: Seq,
    },
    EndTaking {
        from: Seq,
        span: Seq,
        removes: bool,
    },
    Nonsense {
        from: Seq,
        span: Seq,
    },
    Flow {
        id: u64,
        bytes: u32,
    },
    Pause {
        id: u64,
        paused: bool,
    },
    Purge,
    Configure {
        max_length: Option<u64>,
    },
    Shrink {
        memory: usize,
    },
    Load,
    Store {
        failing: usize,
    },
    SettleDisk,
    Checkpoint {
        back: u64,
    },
    Compact {
        segment: u32,
    },
    Restart,
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        prop::collection::vec(4usize..60, 1..40),
        (4usize..300, 1usize..80).prop_map(|(size, count)| vec![size; count]),
        Just(vec![9]),
    ]
}

fn consumer_settings() -> impl Strategy<Value = ConsumerSettings> {
    let window = prop_oneof![Just(1u32), 50u32..5_000, Just(1_000_000)];
    (any::<bool>(), prop_oneof![Just(0u32), 1u32..40], window).prop_map(|(no_ack, prefetch, window)| {
        ConsumerSettings {
            paused: false,
            no_ack,
            exclusive: false,
            prefetch,
            priority: 0,
            window,
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let id = 1u64..4;
    let holder = prop_oneof![4 => (1u64..4).prop_map(Some), 1 => Just(None)];
    let span = prop_oneof![0u64..5, 0u64..300];
    prop_oneof![
        8 => (sizes(), any::<bool>()).prop_map(|(sizes, persistent)| Step::Enqueue { sizes, persistent }),
        3 => (id.clone(), consumer_settings()).prop_map(|(id, settings)| Step::Consume { id, settings }),
        1 => id.clone().prop_map(|id| Step::Cancel { id }),
        3 => any::<bool>().prop_map(|no_ack| Step::Get { no_ack }),
        8 => (holder.clone(), 0u64..200, span.clone(), prop::bool::weighted(0.8))
            .prop_map(|(id, from, span, accepted)| Step::Settle { id, from, span, accepted }),
        3 => (holder, 0u64..200, span.clone(), any::<bool>())
            .prop_map(|(id, from, span, failed)| Step::GiveBack { id, from, span, failed }),
        2 => (0u64..200, span.clone()).prop_map(|(from, span)| Step::TakeOut { from, span }),
        2 => (0u64..200, span.clone(), any::<bool>())
            .prop_map(|(from, span, removes)| Step::EndTaking { from, span, removes }),
        1 => (0u64..200, span).prop_map(|(from, span)| Step::Nonsense { from, span }),
        3 => (id.clone(), 1u32..6_000).prop_map(|(id, bytes)| Step::Flow { id, bytes }),
        1 => (id, any::<bool>()).prop_map(|(id, paused)| Step::Pause { id, paused }),
        1 => Just(Step::Purge),
        1 => prop::option::of(0u64..200).prop_map(|max_length| Step::Configure { max_length }),
        2 => prop_oneof![Just(0usize), 500usize..20_000, Just(1 << 24)].prop_map(|memory| Step::Shrink { memory }),
        6 => Just(Step::Load),
        4 => (0usize..8).prop_map(|failing| Step::Store { failing }),
        1 => Just(Step::SettleDisk),
        2 => (0u64..20).prop_map(|back| Step::Checkpoint { back }),
        1 => (1u32..8).prop_map(|segment| Step::Compact { segment }),
        1 => Just(Step::Restart),
    ]
}

/// Numbers in steps count back from the newest message, so that they mostly hit something.
fn near(careful: &Careful, back: Seq) -> Seq {
    careful.next().saturating_sub(back).max(1)
}

fn take(careful: &mut Careful, step: Step, bytes_limited: bool) {
    match step {
        Step::Enqueue { sizes, persistent } => careful.enqueue(&sizes, persistent),
        Step::Consume { id, settings } => careful.consume(id, settings),
        Step::Cancel { id } => careful.cancel(id),
        Step::Get { no_ack } => careful.get(no_ack),
        Step::Settle {
            id,
            from,
            span,
            accepted,
        } => {
            let first = near(careful, from);
            careful.settle(id, first, first + span, accepted);
        }
        Step::GiveBack {
            id,
            from,
            span,
            failed,
        } => {
            let first = near(careful, from);
            careful.give_back(id, first, first + span, failed);
        }
        Step::TakeOut { from, span } => {
            let first = near(careful, from);
            careful.take_out(first, first + span);
        }
        Step::EndTaking { from, span, removes } => {
            let first = near(careful, from);
            careful.end_taking(first, first + span, removes);
        }
        Step::Nonsense { from, span } => {
            let first = near(careful, from);
            careful.settle_nonsense(first, first + span);
        }
        Step::Flow { id, bytes } => careful.flow(id, bytes),
        Step::Pause { id, paused } => careful.pause(id, paused),
        Step::Purge => careful.purge(),
        Step::Configure { max_length } if !bytes_limited => {
            careful.configure(QueueSettings {
                max_length,
                ..QueueSettings::default()
            });
        }
        Step::Restart if !bytes_limited => careful.restart(),
        Step::Configure { .. } | Step::Restart => {}
        Step::Shrink { memory } => careful.simply(shrink(memory)),
        Step::Load => careful.load_one(),
        Step::Store { failing } => careful.store_one(|at| at == failing),
        Step::SettleDisk => careful.settle_disk(),
        Step::Checkpoint { back } => {
            let request = careful.world.checkpoint(back);
            careful.simply(request);
        }
        Step::Compact { segment } => careful.simply(compact(segment)),
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_or_invented_whatever_happens(
        durable in prop::bool::weighted(0.75),
        memory in prop_oneof![Just(0usize), 500usize..20_000, Just(1 << 24)],
        max_length in prop::option::weighted(0.3, 0u64..300),
        max_length_bytes in prop::option::weighted(0.2, 0u64..5_000),
        seen in 1u64..40,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let settings = QueueSettings { durable, max_length, max_length_bytes, ..QueueSettings::default() };
        let mut careful = Careful::new(settings);
        careful.simply(shrink(memory));
        for step in steps {
            let before = careful.survivors();
            let turns = careful.turns;
            take(&mut careful, step, max_length_bytes.is_some());
            careful.check_look(seen);
            careful.check_restart();
            if careful.turns == turns + 1 {
                careful.check_crash(&before);
            }
        }
        careful.settle_disk();
        let ready = careful.world.fifo.status().ready;
        prop_assert_eq!(careful.world.drain().len() as u64, ready);
    }

    #[test]
    fn consumers_take_turns_like_lines_of_people(
        single_active in prop::bool::weighted(0.3),
        consumers in prop::collection::vec((any::<bool>(), 0u32..6, -1i64..2), 1..6),
        blocks in prop::collection::vec(1usize..30, 1..12),
        then in prop::collection::vec((1u64..6, 1usize..4, prop::bool::weighted(0.2)), 0..12),
    ) {
        let mut fifo: Classic<Plain> = Classic::new(QueueSettings { single_active, ..QueueSettings::default() });
        let mut line = Line { single: single_active, next: 1, ..Line::default() };
        for (id, (no_ack, prefetch, priority)) in (1..).zip(consumers) {
            let settings = ConsumerSettings { paused: false, no_ack, exclusive: false, prefetch, priority, window: 1 << 30 };
            let consumer = ConsumerId(id);
            run(&mut fifo, Request::Consume { consumer, outlet: (), settings, reply: 0 });
            let limit = if no_ack || prefetch == 0 { usize::MAX } else { prefetch as usize };
            line.join(id, Person { limit, no_ack, priority, held: Vec::new() });
        }
        let mut then = then.into_iter();
        for count in blocks {
            let first = line.next;
            let mut got = run(&mut fifo, Request::Enqueue { block: block(first, &vec![8; count], false), receipt: None });
            let mut want = line.publish(count as u64);
            if let Some((id, count, leaves)) = then.next() {
                let consumer = ConsumerId(id);
                if leaves {
                    line.leave(id);
                    got.extend(run(&mut fifo, Request::Cancel { consumer, reply: None }));
                } else {
                    let seqs = line.ack(id, count).into_iter().collect();
                    let disposal = queue::fifo::Disposal::Accepted;
                    got.extend(run(&mut fifo, Request::Settle { consumer: Some(consumer), seqs, disposal }));
                }
                want.extend(line.deal());
            }
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..18, replicated: bool) {
        let mut framed = vec![kind];
        framed.extend_from_slice(&bytes);
        if let Some(record) = Record::decode(&framed) {
            let mut again = Vec::new();
            record.encode(&mut again);
            prop_assert_eq!(Record::decode(&again), Some(record.clone()));
            let mut fifo: Classic<Plain> = Classic::new(QueueSettings { durable: true, replicated, ..QueueSettings::default() });
            let mut outcome = Outcome::default();
            let enqueued = Record::Enqueued { first: 1, block: block(1, &[5; 90], true), from: 0, expiries: Vec::new(), keyed: false, sent: None };
            fifo.apply(1, enqueued, &mut outcome);
            fifo.apply(2, record, &mut outcome);
            fifo.recovered(false);
            let node = Incarnation(bytes.first().copied().unwrap_or(0).into());
            let everything = Held { consumer: None, seqs: Ranges::span(0, u64::MAX), returns: 0 };
            fifo.handle(Timestamp(0), Request::AwaitNodes { nodes: vec![node] }, &mut outcome);
            fifo.handle(Timestamp(0), Request::Holds { node, held: vec![everything.clone(), everything], more: true, reply: 0 }, &mut outcome);
            fifo.handle(Timestamp(0), Request::CountAsDown { node }, &mut outcome);
            for first in [0, 1, u64::MAX] {
                let origin = Box::new(Origin { sender: node, first });
                fifo.handle(Timestamp(0), Request::EnqueueFrom { origin, block: block(91, &[5; 3], true), receipt: None }, &mut outcome);
            }
            fifo.handle(Timestamp(0), Request::Get { no_ack: true, reply: 0 }, &mut outcome);
            fifo.handle(Timestamp(0), Request::Purge { reply: 0 }, &mut outcome);
        }
    }
}

/// What went to whom, by message.
fn run(fifo: &mut Classic<Plain>, request: Request<Plain>) -> BTreeMap<Seq, u64> {
    let mut outcome = Outcome::default();
    fifo.handle(Timestamp(0), request, &mut outcome);
    let mut went = BTreeMap::new();
    for effect in outcome.effects {
        if let Effect::Deliver {
            consumer, delivery, ..
        } = effect
        {
            went.extend(delivery.seqs.iter().map(|seq| (seq, consumer.0)));
        }
    }
    went
}

/// RabbitMQ's way of taking turns, one message at a time: the highest priority's line first; who got one goes to the end of
/// the line; who is full leaves it when its turn comes, and comes back to its end. With `single` only one stands in line.
#[derive(Default)]
struct Line {
    single: bool,
    active: Option<u64>,
    waiting: Vec<u64>,
    people: BTreeMap<u64, Person>,
    ready: VecDeque<Seq>,
    next: Seq,
}

struct Person {
    limit: usize,
    no_ack: bool,
    priority: i64,
    held: Vec<Seq>,
}

impl Line {
    fn join(&mut self, id: u64, person: Person) {
        self.people.insert(id, person);
        if self.active.is_none() {
            self.active = Some(id);
        }
        self.line_up(id);
    }

    fn leave(&mut self, id: u64) {
        self.people.remove(&id);
        self.waiting.retain(|other| *other != id);
        if self.active == Some(id) {
            let highest = self.people.values().map(|person| person.priority).max();
            let next = self
                .people
                .iter()
                .find(|(_, person)| Some(person.priority) == highest);
            self.active = next.map(|(id, _)| *id);
            self.active.into_iter().for_each(|id| self.line_up(id));
        }
    }

    fn line_up(&mut self, id: u64) {
        let person = &self.people[&id];
        let mine = !self.single || self.active == Some(id);
        if mine && person.held.len() < person.limit && !self.waiting.contains(&id) {
            self.waiting.push(id);
        }
    }

    fn publish(&mut self, count: u64) -> BTreeMap<Seq, u64> {
        self.ready.extend(self.next..self.next + count);
        self.next += count;
        self.deal()
    }

    fn deal(&mut self) -> BTreeMap<Seq, u64> {
        let mut went = BTreeMap::new();
        while !self.ready.is_empty()
            && let Some(highest) = self.waiting.iter().map(|id| self.people[id].priority).max()
        {
            let turn = |id: &u64| self.people[id].priority == highest;
            let at = self.waiting.iter().position(turn).unwrap();
            let id = self.waiting.remove(at);
            let person = self.people.get_mut(&id).unwrap();
            if person.held.len() >= person.limit {
                continue;
            }
            let seq = self.ready.pop_front().unwrap();
            went.insert(seq, id);
            if !person.no_ack {
                person.held.push(seq);
            }
            self.waiting.push(id);
        }
        went
    }

    fn ack(&mut self, id: u64, count: usize) -> Vec<Seq> {
        let Some(person) = self.people.get_mut(&id) else {
            return Vec::new();
        };
        let done: Vec<Seq> = person.held.drain(..count.min(person.held.len())).collect();
        self.line_up(id);
        done
    }
}

#[test]
fn small_publishes_do_not_keep_a_piece_each() {
    let mut world = crate::world::World::new(QueueSettings::default());
    world.handle(shrink(64 * 1024));
    for seq in 1..=20_000 {
        world.handle(Request::Enqueue {
            block: block(seq, &[20], false),
            receipt: None,
        });
        while let Some(events) = world.store_one(|_| false) {
            assert!(!events.iter().any(|event| matches!(event, Event::Load(..))));
        }
    }
    let status = world.fifo.status();
    assert_eq!(status.ready, 20_000);
    assert!(status.memory < 128 * 1024, "{status:?}");
    assert!(
        world.fifo.places().count() < 2_000,
        "small messages are put together"
    );
    assert_eq!(world.drain(), (1..=20_000).collect::<Vec<_>>());
    assert!(world.disk.segments.is_empty());
}

#[test]
fn small_journaled_publishes_are_put_together_once_there_are_many() {
    let settings = QueueSettings {
        durable: true,
        ..QueueSettings::default()
    };
    let mut world = crate::world::World::new(settings.clone());
    world.handle(shrink(16 * 1024));
    for seq in 1..=3_000 {
        world.handle(Request::Enqueue {
            block: block(seq, &[20], true),
            receipt: None,
        });
        while world.store_one(|_| false).is_some() {}
    }
    let places = world.fifo.places().count();
    assert!((1..300).contains(&places), "{places} places");
    // What is not put together yet is seen to by a checkpoint.
    let request = world.checkpoint(0);
    world.handle(request);
    while world.store_one(|_| false).is_some() {}
    let mut again = crate::world::World::restarted(settings, world.disk.clone());
    assert!(world.disk.log.len() < 100, "{}", world.disk.log.len());
    assert_eq!(again.drain(), (1..=3_000).collect::<Vec<_>>());
    assert_eq!(world.drain(), (1..=3_000).collect::<Vec<_>>());
}
