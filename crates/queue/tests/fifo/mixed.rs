//! Everything at once against a naive queue: priorities, fair groups, deduplication, retries with jitter, delivery
//! limits, times to live, limits of length, consumer priorities, a single active consumer, settling in any order,
//! restarts and checkpoints. The naive one is a list that is looked through.

mod checks;

use crate::world::{Event, Plain, World, body, consume, number, shrink};
use model::properties::PropertiesBuilder;
use model::table::Table;
use model::{BlockBuilder, ConsumerId, Ranges, RetryDelay, Seq, Timestamp, X_DEDUPLICATION_HEADER};
use proptest::prelude::*;
use queue::fifo::{
    Answer, Delivery, DeliveryLimit, Disposal, Expiry, QueueSettings, Record, Request, Sorting,
};
use std::sync::Arc;

const HIGHEST: u8 = 2;

/// Its priority, which is its group too, and its deduplication key.
type Sent = (u8, Option<u8>);

#[derive(Clone, Debug)]
enum Step {
    Publish { messages: Vec<Sent>, persistent: bool },
    Get,
    Consume { prefetch: u32, priority: i64 },
    Cancel { id: u64 },
    Settle { at: usize, accepted: bool },
    Return { at: usize, failed: bool },
    Pass { ms: u64 },
    Purge,
    Checkpoint,
    Shrink { memory: usize },
    Disk,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (prop::collection::vec((0u8..4, prop::option::of(0u8..6)), 1..8), prop::bool::weighted(0.8))
            .prop_map(|(messages, persistent)| Step::Publish { messages, persistent }),
        5 => Just(Step::Get),
        2 => (1u32..4, 0i64..3).prop_map(|(prefetch, priority)| Step::Consume { prefetch, priority }),
        1 => (1u64..4).prop_map(|id| Step::Cancel { id }),
        3 => (0usize..12, any::<bool>()).prop_map(|(at, accepted)| Step::Settle { at, accepted }),
        8 => (0usize..12, prop::bool::weighted(0.9)).prop_map(|(at, failed)| Step::Return { at, failed }),
        5 => prop_oneof![1u64..60, 100u64..900].prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Purge),
        1 => Just(Step::Checkpoint),
        1 => prop_oneof![Just(0usize), Just(1 << 20)].prop_map(|memory| Step::Shrink { memory }),
        3 => Just(Step::Disk),
        1 => Just(Step::Restart),
    ]
}

fn queue() -> impl Strategy<Value = QueueSettings> {
    (
        (0..3u8, any::<bool>(), any::<bool>()),
        prop::option::of(0u32..4),
        prop::option::of((20u64..200, prop_oneof![Just(0u8), Just(30)])),
        prop::option::of(100u64..800),
        prop::option::of(3u64..15),
    )
        .prop_map(
            |((sorting, single_active, deduplicates), limit, retry, message_ttl_ms, max_length)| {
                QueueSettings {
                    durable: true,
                    single_active,
                    deduplicates,
                    sorting: match sorting {
                        0 => Sorting::Priority(HIGHEST),
                        1 => Sorting::FairKey("group".into()),
                        _ => Sorting::Arrival,
                    },
                    delivery_limit: limit.map(DeliveryLimit::Returns),
                    retry_delay: retry.map(|(initial_ms, jitter)| RetryDelay {
                        initial_ms,
                        factor: 2000,
                        cap_ms: initial_ms * 3,
                        jitter,
                    }),
                    message_ttl_ms,
                    // Which group has to give is a question of hashes when some have equally much.
                    max_length: max_length.filter(|_| sorting != 1),
                    ..QueueSettings::default()
                }
            },
        )
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Ready,
    Held { seq: Seq, by: Option<u64> },
    Waiting { seq: Seq, until: u64 },
}

#[derive(Clone, Debug)]
struct Known {
    /// The lowest goes first: by priority, then by age.
    rank: (u8, u64),
    group: u8,
    key: Option<u8>,
    persistent: bool,
    expires: u64,
    times: u32,
    state: State,
}

#[derive(Clone, Copy, Debug)]
struct Consumer {
    id: u64,
    prefetch: u32,
    priority: i64,
}

struct Naive {
    world: World,
    settings: QueueSettings,
    known: Vec<Known>,
    /// In the order in which they came.
    consumers: Vec<Consumer>,
    /// The active one of a queue that has one only.
    active: Option<u64>,
    published: u64,
    /// Deliveries less returns.
    handed: u64,
    next_consumer: u64,
}

impl Naive {
    fn new(settings: QueueSettings) -> Self {
        let mut world = World::new(settings.clone());
        // Numbers of transient messages are used again after a restart.
        world.sorted = true;
        Self {
            world,
            settings,
            known: Vec::new(),
            consumers: Vec::new(),
            active: None,
            published: 0,
            handed: 0,
            next_consumer: 0,
        }
    }

    fn now(&self) -> u64 {
        self.world.now.0
    }

    fn turn(&mut self, request: Request<Plain>) {
        let events = self.world.handle(request);
        self.look(events);
    }

    /// The clock shows another time: what is due happens, to the list too.
    fn time_passes(&mut self) {
        let now = self.now();
        self.known
            .retain(|it| it.expires > now || matches!(it.state, State::Held { .. }));
        for it in &mut self.known {
            if matches!(it.state, State::Waiting { until, .. } if until <= now) {
                it.state = State::Ready;
            }
        }
    }

    /// Every delivery took the best that was ready; what nobody took and has no room is gone.
    fn look(&mut self, events: Vec<Event>) {
        let mut all: Vec<(u64, Seq, Option<u64>, u32)> = Vec::new();
        let mut add = |delivery: &Delivery, by| {
            for seq in delivery.seqs.iter() {
                let message = delivery.block.message((seq - delivery.base) as usize);
                all.push((number(message), seq, by, delivery.returns));
            }
        };
        for event in &events {
            match event {
                Event::Recorded(Record::Retried { until, .. }) => self.jitter(until),
                Event::Delivered(id, delivery) => add(delivery, Some(id.0)),
                Event::Answered(_, Answer::Got { delivery, .. }) => add(delivery, None),
                _ => {}
            }
        }
        let is_ready = |it: &&Known| it.state == State::Ready;
        let mut ready: Vec<Known> = self.known.iter().filter(is_ready).cloned().collect();
        let rank = |number| self.known.iter().find(|it| it.rank.1 == number).map(|it| it.rank);
        all.sort_by_key(|(number, ..)| rank(*number));
        let mut went: Vec<Known> = Vec::new();
        for (number, seq, by, returns) in all {
            // The best may have waited for the disk until it had to be dropped.
            if self.ready().first().is_some_and(|best| best.1 != number) {
                self.overflow();
            }
            let counts = self.settings.delivery_limit.is_some() || self.settings.retry_delay.is_some();
            let it = self.known.iter_mut().find(|it| it.rank.1 == number);
            let it = it.unwrap_or_else(|| panic!("{number} is gone, but was delivered"));
            assert_eq!(it.state, State::Ready, "{it:?}");
            assert_eq!(returns, if counts { it.times } else { 0 });
            it.state = State::Held { seq, by };
            went.push(it.clone());
        }
        self.handed += went.len() as u64;
        ready.retain(|it| self.known.iter().any(|known| known.rank == it.rank));
        self.check_order(ready, &went);
        self.check_consumers(&events);
        self.overflow();
        self.compare();
    }

    fn overflow(&mut self) {
        while let Some(limit) = self.settings.max_length
            && self.ready().len() as u64 > limit
        {
            let head = self.ready()[0];
            self.known.retain(|it| it.rank != head);
        }
    }

    /// Chance is within its bounds, and what it said counts.
    fn jitter(&mut self, until: &[Expiry]) {
        let now = self.now();
        let Some(delay) = self.settings.retry_delay else {
            panic!("nothing is tried again here");
        };
        for expiry in until {
            for seq in expiry.first..=expiry.last {
                let waits =
                    |it: &&mut Known| matches!(it.state, State::Waiting { seq: known, .. } if known == seq);
                let it = self.known.iter_mut().find(waits).unwrap();
                let plain = RetryDelay { jitter: 0, ..delay }.delay_ms(it.times, 0);
                let slack = plain * u64::from(delay.jitter) / 100 + 1;
                assert!(
                    (expiry.at_ms - now).abs_diff(plain) <= slack,
                    "{expiry:?} at {now}, {plain}"
                );
                let until = expiry.at_ms;
                it.state = State::Waiting { seq, until };
            }
        }
    }

    fn ready(&self) -> Vec<(u8, u64)> {
        let ready = self.known.iter().filter(|it| it.state == State::Ready);
        let mut ranks: Vec<_> = ready.map(|it| it.rank).collect();
        ranks.sort_unstable();
        ranks
    }

    fn held(&self, at: usize) -> Option<(usize, Seq, Option<u64>)> {
        let held = self
            .known
            .iter()
            .enumerate()
            .filter_map(|(index, it)| match it.state {
                State::Held { seq, by } => Some((index, seq, by)),
                _ => None,
            });
        let held: Vec<_> = held.collect();
        held.get(at % held.len().max(1)).copied()
    }

    fn publish(&mut self, messages: &[Sent], persistent: bool) {
        let mut builder = BlockBuilder::new();
        for (priority, key) in messages {
            self.published += 1;
            builder.push(b"", b"q", &properties(*priority, *key), &body(self.published, 20));
            let there = |it: &Known| key.is_some() && it.key == *key;
            if self.settings.deduplicates && self.known.iter().any(there) {
                continue;
            }
            let sorted = matches!(self.settings.sorting, Sorting::Priority(_));
            let class = if sorted {
                HIGHEST - (*priority).min(HIGHEST)
            } else {
                0
            };
            self.known.push(Known {
                rank: (class, self.published),
                group: *priority,
                key: *key,
                persistent,
                expires: self
                    .settings
                    .message_ttl_ms
                    .map_or(u64::MAX, |ttl| self.now() + ttl),
                times: 0,
                state: State::Ready,
            });
        }
        let block = Arc::new(builder.finish(persistent, Timestamp(1)));
        self.turn(Request::Enqueue { block, receipt: None });
    }

    /// Where duplicates count, a block is split where one is found, and consumers are served in between: one by one is the
    /// same for the list to follow. With jitter only the journal says how long a message waits.
    fn send(&mut self, messages: &[Sent], persistent: bool) {
        let jitter = self.settings.retry_delay.is_some_and(|it| it.jitter > 0);
        let size = if self.settings.deduplicates {
            1
        } else {
            messages.len()
        };
        for part in messages.chunks(size) {
            self.publish(part, persistent || jitter);
        }
    }

    fn give_back(&mut self, at: usize, failed: bool) {
        let Some((index, seq, by)) = self.held(at) else {
            return;
        };
        let now = self.now();
        self.handed -= 1;
        let it = &mut self.known[index];
        it.times += u32::from(failed);
        it.state = State::Ready;
        let spent =
            matches!(self.settings.delivery_limit, Some(DeliveryLimit::Returns(most)) if it.times > most);
        if it.expires <= now || (failed && spent) {
            self.known.remove(index);
        } else if let Some(delay) = self.settings.retry_delay.filter(|_| failed) {
            it.state = State::Waiting {
                seq,
                until: now + delay.delay_ms(it.times, 0),
            };
        }
        let (consumer, seqs) = (by.map(ConsumerId), Ranges::one(seq));
        self.turn(Request::Return {
            consumer,
            seqs,
            failed,
        });
    }

    fn consume(&mut self, prefetch: u32, priority: i64) {
        self.next_consumer += 1;
        let id = self.next_consumer;
        self.active = self.active.or(Some(id));
        self.consumers.push(Consumer {
            id,
            prefetch,
            priority,
        });
        self.turn(consume(id, false, prefetch, priority));
    }

    fn cancel(&mut self, id: u64) {
        self.consumers.retain(|it| it.id != id);
        if self.active == Some(id) {
            // Of equals the first one that came.
            let next = self.consumers.iter().rev().max_by_key(|it| it.priority);
            self.active = next.map(|it| it.id);
        }
        for it in &mut self.known {
            if let State::Held { by, .. } = &mut it.state {
                *by = by.filter(|holder| *holder != id);
            }
        }
        self.turn(Request::Cancel {
            consumer: ConsumerId(id),
            reply: None,
        });
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Publish { messages, persistent } => self.send(messages, *persistent),
            Step::Get => self.turn(Request::Get {
                no_ack: false,
                reply: 0,
            }),
            Step::Consume { prefetch, priority } => self.consume(*prefetch, *priority),
            Step::Cancel { id } => {
                let at = *id as usize % self.consumers.len().max(1);
                if let Some(it) = self.consumers.get(at).copied() {
                    self.cancel(it.id);
                }
            }
            Step::Settle { at, accepted } => {
                if let Some((index, seq, by)) = self.held(*at) {
                    self.known.remove(index);
                    self.turn(Request::Settle {
                        consumer: by.map(ConsumerId),
                        seqs: Ranges::one(seq),
                        disposal: match accepted {
                            true => Disposal::Accepted,
                            false => Disposal::Rejected,
                        },
                    });
                }
            }
            Step::Return { at, failed } => self.give_back(*at, *failed),
            Step::Pass { ms } => {
                self.world.now.0 += ms;
                self.time_passes();
                self.turn(Request::Wake);
            }
            Step::Purge => {
                self.known.retain(|it| matches!(it.state, State::Held { .. }));
                self.turn(Request::Purge { reply: 0 });
            }
            Step::Checkpoint => {
                let request = self.world.checkpoint(0);
                self.turn(request);
            }
            Step::Shrink { memory } => self.turn(shrink(*memory)),
            Step::Disk => {}
            Step::Restart => self.restart(),
        }
        while let Some(events) = self.world.load_one().or_else(|| match step {
            Step::Disk => self.world.store_one(|_| false),
            _ => None,
        }) {
            self.look(events);
        }
    }

    /// What is persistent is back with its counts and times; nobody holds anything.
    fn restart(&mut self) {
        let now = self.world.now;
        self.known.retain(|it| it.persistent);
        self.consumers.clear();
        (self.active, self.handed) = (None, 0);
        for it in &mut self.known {
            if let State::Held { .. } = it.state {
                it.state = State::Ready;
            }
        }
        self.time_passes();
        let settings = self.settings.clone();
        let plain = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        self.world = World::restarted(plain, self.world.disk.clone());
        (self.world.now, self.world.sorted) = (now, true);
        self.turn(Request::Configure {
            settings: Box::new(settings),
        });
    }
}

/// Of a message with this priority, which is its group too, and this deduplication key.
pub fn properties(priority: u8, key: Option<u8>) -> Vec<u8> {
    let mut headers = Table::new().with("group", i32::from(priority));
    if let Some(key) = key {
        headers.insert(X_DEDUPLICATION_HEADER, i32::from(key));
    }
    PropertiesBuilder::new()
        .priority(priority)
        .headers(&headers)
        .encode()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn all_features_together_do_what_a_naive_queue_does(
        settings in queue(),
        steps in prop::collection::vec(step(), 1..50),
    ) {
        let mut naive = Naive::new(settings);
        for step in &steps {
            naive.take(step);
            naive.check_replay();
        }
    }
}
