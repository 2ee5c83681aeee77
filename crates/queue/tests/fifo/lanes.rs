//! A queue that sorts its messages against a naive one: one list, from which the best ready message is always the next.

use crate::world::{Event, Plain, World, compact, consume, number, shrink};
use model::properties::PropertiesBuilder;
use model::table::Table;
use model::{Block, BlockBuilder, ConsumerId, Machine, Ranges, Seq, Timestamp};
use proptest::prelude::*;
use queue::fifo::{Answer, Delivery, Disposal, QueueSettings, Record, Request, Sorting};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const HIGHEST: u8 = 4;

#[derive(Clone, Debug)]
enum Step {
    Publish { priorities: Vec<u8>, persistent: bool },
    Consume { id: u64, no_ack: bool, prefetch: u32 },
    Cancel { id: u64 },
    Get { no_ack: bool },
    Ack { at: usize, count: usize, accepted: bool },
    Return { at: usize, count: usize },
    Purge,
    Shrink { memory: usize },
    Load,
    Store { failing: usize },
    Checkpoint { back: u64 },
    Compact { segment: u32 },
    Limit { max_length: Option<u64> },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (prop::collection::vec(0u8..8, 1..30), any::<bool>())
            .prop_map(|(priorities, persistent)| Step::Publish { priorities, persistent }),
        2 => (1u64..4, any::<bool>(), 0u32..10)
            .prop_map(|(id, no_ack, prefetch)| Step::Consume { id, no_ack, prefetch }),
        2 => (1u64..4).prop_map(|id| Step::Cancel { id }),
        3 => any::<bool>().prop_map(|no_ack| Step::Get { no_ack }),
        6 => (0usize..50, 1usize..20, prop::bool::weighted(0.8))
            .prop_map(|(at, count, accepted)| Step::Ack { at, count, accepted }),
        4 => (0usize..50, 1usize..20).prop_map(|(at, count)| Step::Return { at, count }),
        1 => Just(Step::Purge),
        2 => prop_oneof![Just(0usize), 500usize..20_000, Just(1 << 24)].prop_map(|memory| Step::Shrink { memory }),
        6 => Just(Step::Load),
        4 => (0usize..8).prop_map(|failing| Step::Store { failing }),
        2 => (0u64..20).prop_map(|back| Step::Checkpoint { back }),
        1 => (1u32..8).prop_map(|segment| Step::Compact { segment }),
        1 => prop::option::of(0u64..60).prop_map(|max_length| Step::Limit { max_length }),
        1 => Just(Step::Restart),
    ]
}

/// A message by its rank: the highest priority first, then the oldest.
type Rank = (u8, u64);

/// The queue, and what must be in it.
struct Naive {
    world: World,
    settings: QueueSettings,
    ready: BTreeSet<Rank>,
    /// Delivered, in order: the number that settles it, its rank, and who holds it.
    held: Vec<(Seq, Rank, Option<u64>)>,
    ranks: BTreeMap<u64, Rank>,
    persistent: BTreeSet<Rank>,
    consumers: BTreeMap<u64, bool>,
    published: u64,
}

impl Naive {
    fn new() -> Self {
        let settings = QueueSettings {
            durable: true,
            sorting: Sorting::Priority(HIGHEST),
            ..QueueSettings::default()
        };
        Self {
            world: World::new(settings.clone()),
            settings,
            ready: BTreeSet::new(),
            held: Vec::new(),
            ranks: BTreeMap::new(),
            persistent: BTreeSet::new(),
            consumers: BTreeMap::new(),
            published: 0,
        }
    }

    fn publish(&mut self, priorities: &[u8], persistent: bool) {
        let mut builder = BlockBuilder::new();
        for priority in priorities {
            self.published += 1;
            let properties = PropertiesBuilder::new().priority(*priority).encode();
            let body = crate::world::body(self.published, 10 + self.published as usize % 50);
            builder.push(b"", b"q", &properties, &body);
            let rank = (HIGHEST - (*priority).min(HIGHEST), self.published);
            self.ranks.insert(self.published, rank);
            self.ready.insert(rank);
            if persistent {
                self.persistent.insert(rank);
            }
        }
        let block = Arc::new(builder.finish(persistent, Timestamp(1)));
        let receipt = Some(7);
        let events = self.turn(Request::Enqueue { block, receipt });
        let recorded = events
            .iter()
            .any(|event| matches!(event, Event::Recorded(Record::Enqueued { .. })));
        let confirms: Vec<bool> = events
            .iter()
            .filter_map(|event| match event {
                Event::Confirmed { once_durable, .. } => Some(*once_durable),
                _ => None,
            })
            .collect();
        assert_eq!((confirms, recorded), (vec![persistent], persistent));
    }

    fn take_held(&mut self, at: usize, count: usize) -> BTreeMap<Option<u64>, Ranges> {
        let from = at.min(self.held.len());
        let to = (from + count).min(self.held.len());
        let mut taken: BTreeMap<Option<u64>, Vec<Seq>> = BTreeMap::new();
        for (seq, rank, holder) in self.held.drain(from..to) {
            taken.entry(holder).or_default().push(seq);
            self.ranks.retain(|_, known| *known != rank);
        }
        let ranges = |seqs: Vec<Seq>| seqs.into_iter().collect();
        taken
            .into_iter()
            .map(|(holder, seqs)| (holder, ranges(seqs)))
            .collect()
    }

    fn give_back(&mut self, at: usize, count: usize) {
        let from = at.min(self.held.len());
        let to = (from + count).min(self.held.len());
        let mut taken: BTreeMap<Option<u64>, Vec<(Seq, Rank)>> = BTreeMap::new();
        for (seq, rank, holder) in self.held.drain(from..to) {
            taken.entry(holder).or_default().push((seq, rank));
        }
        for (holder, list) in taken {
            self.ready.extend(list.iter().map(|(_, rank)| *rank));
            let seqs = list.iter().map(|(seq, _)| *seq).collect();
            let consumer = holder.map(ConsumerId);
            let failed = true;
            self.turn(Request::Return {
                consumer,
                seqs,
                failed,
            });
        }
    }

    fn turn(&mut self, request: Request<Plain>) -> Vec<Event> {
        let events = self.world.handle(request);
        self.look_at(events)
    }

    fn went(&mut self, delivery: &Delivery, no_ack: bool, holder: Option<u64>, all: &mut BTreeSet<Rank>) {
        for seq in delivery.seqs.iter() {
            let rank = self.ranks[&number(delivery.block.message((seq - delivery.base) as usize))];
            assert!(self.ready.contains(&rank), "{rank:?} was not ready");
            assert!(all.insert(rank), "{rank:?} was given twice");
            match no_ack {
                true => drop(self.persistent.remove(&rank)),
                false => self.held.push((seq, rank, holder)),
            }
        }
    }

    /// What these events gave to somebody.
    fn gone_by(&mut self, events: &[Event]) -> BTreeSet<Rank> {
        let mut all = BTreeSet::new();
        for event in events {
            match event {
                Event::Delivered(id, delivery) => {
                    let no_ack = self.consumers[&id.0];
                    self.went(delivery, no_ack, Some(id.0), &mut all);
                }
                Event::Answered(reply, Answer::Got { delivery, remaining }) => {
                    self.went(delivery, *reply == 1, None, &mut all);
                    let left = (self.ready.len() - all.len()) as u64;
                    // It may have been answered once others had been dropped.
                    let is_full = self.settings.max_length.is_some_and(|limit| *remaining < limit);
                    assert!(*remaining == left || is_full);
                }
                _ => {}
            }
        }
        all
    }

    fn overflow(&mut self) {
        let limit = self.settings.max_length.unwrap_or(u64::MAX);
        while self.ready.len() as u64 > limit {
            let head = self.ready.pop_first().unwrap();
            self.persistent.remove(&head);
        }
    }

    fn look_at(&mut self, events: Vec<Event>) -> Vec<Event> {
        // The best went; once some had to be dropped, the best of those that were left.
        for rank in self.gone_by(&events) {
            if self.ready.first() != Some(&rank) {
                self.overflow();
                assert_eq!(self.ready.first(), Some(&rank));
            }
            self.ready.remove(&rank);
        }
        self.overflow();
        let status = self.world.fifo.status();
        assert_eq!(status.ready, self.ready.len() as u64);
        assert_eq!(status.unacked, self.held.len() as u64);
        events
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Publish {
                priorities,
                persistent,
            } => self.publish(&priorities, persistent),
            Step::Consume { id, no_ack, prefetch } => self.consume(id, no_ack, prefetch),
            Step::Cancel { id } => self.cancel(id),
            Step::Get { no_ack } => {
                let reply = u32::from(no_ack);
                self.turn(Request::Get { no_ack, reply });
            }
            Step::Ack { at, count, accepted } => self.settle(at, count, accepted),
            Step::Return { at, count } => self.give_back_one_holder(at, count),
            Step::Purge => {
                for rank in std::mem::take(&mut self.ready) {
                    self.persistent.remove(&rank);
                }
                self.turn(Request::Purge { reply: 0 });
            }
            Step::Shrink { memory } => drop(self.turn(shrink(memory))),
            Step::Load => {
                if let Some(events) = self.world.load_one() {
                    self.look_at(events);
                }
            }
            Step::Store { failing } => {
                if let Some(events) = self.world.store_one(|at| at == failing) {
                    self.look_at(events);
                }
            }
            Step::Checkpoint { back } => {
                let request = self.world.checkpoint(back);
                self.turn(request);
            }
            Step::Compact { segment } => drop(self.turn(compact(segment))),
            Step::Limit { max_length } => {
                self.settings.max_length = max_length;
                let settings = self.settings.clone();
                self.turn(Request::Configure {
                    settings: Box::new(settings),
                });
            }
            Step::Restart => self.restart(),
        }
    }

    fn consume(&mut self, id: u64, no_ack: bool, prefetch: u32) {
        if self.consumers.contains_key(&id) {
            self.cancel(id);
        }
        self.consumers.insert(id, no_ack);
        self.turn(consume(id, no_ack, prefetch, 0));
    }

    /// What the consumer holds is nobody's from now on, but still delivered.
    fn cancel(&mut self, id: u64) {
        self.consumers.remove(&id);
        self.turn(Request::Cancel {
            consumer: ConsumerId(id),
            reply: None,
        });
        self.held
            .iter_mut()
            .for_each(|held| held.2 = held.2.filter(|holder| *holder != id));
    }

    fn settle(&mut self, at: usize, count: usize, accepted: bool) {
        let kept: BTreeSet<Rank> = self.held.iter().map(|(_, rank, _)| *rank).collect();
        let taken = self.take_held(at, count);
        let left: BTreeSet<Rank> = self.held.iter().map(|(_, rank, _)| *rank).collect();
        self.persistent
            .retain(|rank| left.contains(rank) || !kept.contains(rank));
        let disposal = match accepted {
            true => Disposal::Accepted,
            false => Disposal::Rejected,
        };
        for (holder, seqs) in taken {
            let consumer = holder.map(ConsumerId);
            // Of several holders' messages the later ones are still with them.
            let events = self.world.handle(Request::Settle {
                consumer,
                seqs,
                disposal,
            });
            self.look_at_unfinished(events);
        }
        self.look_at(Vec::new());
    }

    /// As [`Naive::look_at`] while messages of other holders are on their way to be settled.
    fn look_at_unfinished(&mut self, events: Vec<Event>) {
        let all = self.gone_by(&events);
        let best: BTreeSet<Rank> = self.ready.iter().take(all.len()).copied().collect();
        assert_eq!(all, best);
        self.ready.retain(|rank| !all.contains(rank));
    }

    /// A return of one holder's messages is one request.
    fn give_back_one_holder(&mut self, at: usize, count: usize) {
        let Some((_, _, holder)) = self.held.get(at).copied() else {
            return;
        };
        let same = self.held[at..]
            .iter()
            .take(count)
            .take_while(|held| held.2 == holder)
            .count();
        self.give_back(at, same);
    }

    fn restart(&mut self) {
        self.world = World::restarted(self.settings.clone(), self.world.disk.clone());
        self.ready = self.persistent.clone();
        self.held.clear();
        self.consumers.clear();
        let settings = self.settings.clone();
        self.turn(Request::Configure {
            settings: Box::new(settings),
        });
    }

    /// A machine that replays the journal has what must survive, in its order.
    fn check_restart(&self) {
        let mut again = World::restarted(
            QueueSettings {
                max_length: None,
                ..self.settings.clone()
            },
            self.world.disk.clone(),
        );
        assert_eq!(
            again.drain_numbers(),
            self.persistent.iter().map(|rank| rank.1).collect::<Vec<_>>()
        );
        assert_eq!(again.disk.segments.len(), 0, "places were not released");
    }
}

proptest! {
    #[test]
    fn the_best_ready_message_is_always_the_next(steps in prop::collection::vec(step(), 1..70)) {
        let mut naive = Naive::new();
        for step in steps {
            naive.take(step);
            naive.check_restart();
        }
    }
}

pub fn group(name: &str, first: u64, sizes: &[usize]) -> Arc<Block> {
    let mut builder = BlockBuilder::new();
    let properties = PropertiesBuilder::new()
        .headers(&Table::new().with("tenant", name))
        .encode();
    for (at, size) in (first..).zip(sizes) {
        builder.push(b"", b"q", &properties, &crate::world::body(at, *size));
    }
    Arc::new(builder.finish(true, Timestamp(1)))
}

pub fn fair() -> QueueSettings {
    QueueSettings {
        durable: true,
        sorting: Sorting::FairKey("tenant".into()),
        ..QueueSettings::default()
    }
}

pub fn enqueue(world: &mut World, block: Arc<Block>) {
    world.handle(Request::Enqueue { block, receipt: None });
}

#[test]
fn a_group_that_floods_does_not_keep_the_others_waiting() {
    let mut world = World::new(fair());
    enqueue(&mut world, group("flood", 1, &vec![1000; 2_000]));
    enqueue(&mut world, group("small", 100_001, &[1000, 1000, 1000]));
    enqueue(&mut world, group("other", 200_001, &[1000]));
    let order = world.drain_numbers();
    assert_eq!(order.len(), 2_004);
    let place = |number| order.iter().position(|it| *it == number).unwrap();
    assert!(place(100_003) < 30 && place(200_001) < 30, "{:?}", &order[..40]);
    let flood: Vec<u64> = order.into_iter().filter(|it| *it <= 2_000).collect();
    assert_eq!(flood, (1..=2_000).collect::<Vec<_>>(), "order within a group");
}

#[test]
fn groups_share_by_bytes_and_not_by_messages() {
    let mut world = World::new(fair());
    enqueue(&mut world, group("small", 1, &vec![100; 5000]));
    enqueue(&mut world, group("large", 100_001, &vec![20_000; 200]));
    let order = world.drain_numbers();
    let large = order.iter().take(1000).filter(|it| **it > 100_000).count();
    // 900 small ones cost 148 kB with what they cost beyond their bodies.
    assert!(
        (4..=12).contains(&large),
        "{large} large messages among the first thousand"
    );
}

#[test]
fn fairness_outlives_a_restart() {
    let mut world = World::new(fair());
    enqueue(&mut world, group("flood", 1, &vec![1000; 500]));
    enqueue(&mut world, group("small", 1001, &[1000; 3]));
    let mut world = World::restarted(fair(), world.disk);
    enqueue(&mut world, group("small", 1004, &[1000; 3]));
    let order = world.drain_numbers();
    let small: Vec<u64> = order.iter().copied().filter(|it| *it > 1000).collect();
    assert_eq!(small, (1001..=1006).collect::<Vec<_>>());
    assert!(order.iter().position(|it| *it == 1006).unwrap() < 40);
}

#[test]
fn groups_that_are_gone_take_no_memory() {
    let mut world = World::new(fair());
    for number in 1..=500 {
        enqueue(&mut world, group(&format!("g{number}"), number, &[10]));
        assert_eq!(world.drain_numbers(), [number]);
    }
    let before = world.fifo.status();
    assert_eq!((before.ready, before.unacked, before.memory), (0, 0, 0));
    let journal = world.disk.log.len();
    world.handle(world.checkpoint(0));
    assert!(
        world.disk.log.len() < 10 && journal > 500,
        "{}",
        world.disk.log.len()
    );
    enqueue(&mut world, group("g1", 501, &[10]));
    let mut again = World::restarted(fair(), world.disk);
    assert_eq!(again.drain_numbers(), [501]);
}

#[test]
fn a_queue_that_a_group_fills_drops_that_groups_messages() {
    let mut world = World::new(QueueSettings {
        max_length: Some(100),
        ..fair()
    });
    enqueue(&mut world, group("small", 1001, &[10; 5]));
    enqueue(&mut world, group("flood", 1, &[10; 500]));
    let order = world.drain_numbers();
    assert_eq!(order.len(), 100);
    assert_eq!(order.iter().filter(|it| **it > 1000).count(), 5);
}
