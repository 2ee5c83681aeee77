//! Messages that expire, are rejected or have no room, in every mixture: the machine against a naive model that looks at each
//! message of its list at each turn.

use crate::world::{Event, Plain, World, expiring_block, numbers, shrink};
use model::{ConsumerId, Machine, Ranges, Seq, Timestamp};
use proptest::prelude::*;
use queue::fifo::{
    Answer, ConsumerSettings, DeadLetterTo, Disposal, DropReason, Overflow, QueueSettings, Request,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CONSUMER: ConsumerId = ConsumerId(1);

/// So often are dead letters looked for whose bytes cannot be read.
const ATTEMPTS: u32 = 5;

#[derive(Clone, Debug)]
enum Step {
    Enqueue {
        sizes: Vec<usize>,
        persistent: bool,
        expiration: Option<u64>,
    },
    Get {
        no_ack: bool,
    },
    Settle {
        consumer: bool,
        from: usize,
        count: usize,
        disposal: Disposal,
    },
    Return {
        consumer: bool,
        from: usize,
        count: usize,
    },
    Time {
        ms: u64,
    },
    Arrive {
        unread: usize,
    },
    Configure {
        ttl: Option<u64>,
        max_length: Option<u64>,
        dead_letters: bool,
    },
    Purge,
    Shrink {
        memory: usize,
    },
    Checkpoint {
        back: u64,
    },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let ttl = || prop::option::of(prop_oneof![Just(0u64), 1u64..60]);
    let sizes = prop_oneof![
        3 => prop::collection::vec(4usize..60, 1..12),
        1 => prop::collection::vec(4usize..300, 1..2)
    ];
    let some = || (any::<bool>(), 0usize..20, 1usize..12);
    let disposal = prop_oneof![Just(Disposal::Accepted), Just(Disposal::Rejected)];
    prop_oneof![
        8 => (sizes, prop::bool::weighted(0.7), ttl())
            .prop_map(|(sizes, persistent, expiration)| Step::Enqueue { sizes, persistent, expiration }),
        5 => any::<bool>().prop_map(|no_ack| Step::Get { no_ack }),
        5 => (some(), disposal)
            .prop_map(|((consumer, from, count), disposal)| Step::Settle { consumer, from, count, disposal }),
        3 => some().prop_map(|(consumer, from, count)| Step::Return { consumer, from, count }),
        6 => prop_oneof![0u64..3, 0u64..40].prop_map(|ms| Step::Time { ms }),
        5 => prop_oneof![3 => Just(0usize), 1 => 1usize..3].prop_map(|unread| Step::Arrive { unread }),
        1 => (ttl(), prop::option::of(0u64..30), any::<bool>())
            .prop_map(|(ttl, max_length, dead_letters)| Step::Configure { ttl, max_length, dead_letters }),
        1 => Just(Step::Purge),
        1 => prop_oneof![Just(0usize), 500usize..5_000, Just(1 << 24)].prop_map(|memory| Step::Shrink { memory }),
        2 => (0u64..10).prop_map(|back| Step::Checkpoint { back }),
        1 => Just(Step::Restart),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// With the consumer, or with somebody who asked for it.
    Held {
        consumer: bool,
    },
    Leaving {
        attempts: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Mortal {
    size: u64,
    journaled: bool,
    deadline: u64,
    state: State,
}

struct Model {
    world: World,
    settings: QueueSettings,
    messages: BTreeMap<Seq, Mortal>,
    consumer: Option<ConsumerSettings>,
    /// What this turn must make a dead letter, and deliver.
    dying: Vec<(Seq, DropReason)>,
    going: Vec<Seq>,
}

impl Model {
    fn new(settings: QueueSettings, memory: usize, consumer: Option<ConsumerSettings>) -> Self {
        let mut model = Self {
            world: World::new(settings.clone()),
            settings,
            messages: BTreeMap::new(),
            consumer,
            dying: Vec::new(),
            going: Vec::new(),
        };
        model.turn(shrink(memory));
        if let Some(settings) = consumer {
            model.turn(Request::Consume {
                consumer: CONSUMER,
                outlet: (),
                settings,
                reply: 0,
            });
        }
        model
    }

    fn now(&self) -> u64 {
        self.world.now.0
    }

    fn ready(&self) -> Vec<Seq> {
        let ready = self.messages.iter().filter(|(_, it)| it.state == State::Ready);
        ready.map(|(seq, _)| *seq).collect()
    }

    fn ready_bytes(&self) -> u64 {
        self.ready().iter().map(|seq| self.messages[seq].size).sum()
    }

    fn leave(&mut self, seq: Seq, reason: DropReason) {
        if self.settings.dead_letter.is_some() && reason != DropReason::Purged {
            self.dying.push((seq, reason));
            self.messages.get_mut(&seq).unwrap().state = State::Leaving { attempts: 1 };
        } else {
            self.messages.remove(&seq);
        }
    }

    fn expire(&mut self) {
        for seq in self.ready() {
            if self.messages[&seq].deadline <= self.now() {
                self.leave(seq, DropReason::Expired);
            }
        }
    }

    fn overflow(&mut self) {
        let (count, bytes) = (self.settings.max_length, self.settings.max_length_bytes);
        while self.settings.overflow == Overflow::DropHead
            && (count.is_some_and(|limit| self.ready().len() as u64 > limit)
                || bytes.is_some_and(|limit| self.ready_bytes() > limit))
        {
            self.leave(self.ready()[0], DropReason::MaxLength);
        }
    }

    fn deal(&mut self) {
        let Some(consumer) = self.consumer else { return };
        for seq in self.ready() {
            let held = State::Held { consumer: true };
            let holds = self.messages.values().filter(|it| it.state == held).count();
            if consumer.no_ack {
                self.messages.remove(&seq);
            } else if consumer.prefetch == 0 || holds < consumer.prefetch as usize {
                self.messages.get_mut(&seq).unwrap().state = held;
            } else {
                return;
            }
            self.going.push(seq);
        }
    }

    /// The oldest of what the consumer or somebody else holds.
    fn held(&self, consumer: bool, from: usize, count: usize) -> Vec<Seq> {
        let held = State::Held { consumer };
        let mine = self.messages.iter().filter(|(_, it)| it.state == held);
        mine.map(|(seq, _)| *seq).skip(from).take(count).collect()
    }

    fn survivors(&self) -> BTreeSet<Seq> {
        let survive = self.messages.iter().filter(|(_, it)| it.journaled);
        survive.map(|(seq, _)| *seq).collect()
    }

    /// One turn of the machine, the disk's answers after it, and what clients see of both.
    fn turn(&mut self, request: Request<Plain>) -> Vec<Event> {
        let mut events = self.world.handle(request);
        let crashed = self.world.crashed.clone();
        events.extend(self.world.settle_disk());
        self.world.crashed = crashed;
        events
    }

    fn enqueue(&mut self, sizes: &[usize], persistent: bool, expiration: Option<u64>) {
        let refuses = self.settings.overflow != Overflow::DropHead;
        // What is refused takes no number, and bodies tell the number.
        let sizes = if refuses { &sizes[..1] } else { sizes };
        let first = self.world.fifo.status().next_seq;
        let block = expiring_block(first, sizes, persistent, expiration);
        let ttl = [expiration, self.settings.message_ttl_ms]
            .into_iter()
            .flatten()
            .min();
        let deadline = ttl.map_or(u64::MAX, |ms| self.now() + ms);
        self.expire();
        let size = block.message(0).body.len() as u64;
        let full = self
            .settings
            .max_length
            .is_some_and(|limit| self.ready().len() as u64 >= limit)
            || self
                .settings
                .max_length_bytes
                .is_some_and(|limit| self.ready_bytes() + size > limit);
        let refused = refuses && full;
        if refused {
            let to_graves = self.settings.overflow == Overflow::RejectAndDeadLetter
                && self.settings.dead_letter.is_some();
            self.dying
                .extend(to_graves.then_some((first, DropReason::MaxLength)));
        } else {
            for (seq, at) in (first..).zip(0..block.len()) {
                let size = block.message(at).body.len() as u64;
                let journaled = persistent && self.settings.durable;
                self.messages.insert(
                    seq,
                    Mortal {
                        size,
                        journaled,
                        deadline,
                        state: State::Ready,
                    },
                );
            }
            self.deal();
            self.overflow();
            self.expire();
        }
        let events = self.turn(Request::Enqueue {
            block,
            receipt: Some(7),
        });
        let answers: Vec<bool> = events
            .iter()
            .filter_map(|event| match event {
                Event::Confirmed { .. } => Some(true),
                Event::Rejected { .. } => Some(false),
                _ => None,
            })
            .collect();
        assert_eq!(answers, [!refused]);
        self.compare(events);
    }

    fn get(&mut self, no_ack: bool) {
        self.expire();
        let oldest = self.ready().first().copied();
        if let Some(seq) = oldest {
            let state = State::Held { consumer: false };
            self.messages.get_mut(&seq).unwrap().state = state;
            if no_ack {
                self.messages.remove(&seq);
            }
        }
        let events = self.turn(Request::Get { no_ack, reply: 1 });
        let got = events.iter().find_map(|event| match event {
            Event::Answered(1, Answer::Got { delivery, .. }) => Some(numbers(delivery)),
            Event::Answered(1, Answer::Empty) => Some(Vec::new()),
            _ => None,
        });
        assert_eq!(got, Some(oldest.into_iter().collect()));
        self.compare(events);
    }

    fn settle(&mut self, consumer: bool, seqs: &[Seq], disposal: Disposal) {
        self.expire();
        for seq in seqs {
            match disposal {
                Disposal::Accepted => drop(self.messages.remove(seq)),
                Disposal::Rejected => self.leave(*seq, DropReason::Rejected),
            }
        }
        self.deal();
        let seqs = seqs.iter().copied().collect();
        let consumer = consumer.then_some(CONSUMER);
        let events = self.turn(Request::Settle {
            consumer,
            seqs,
            disposal,
        });
        self.compare(events);
    }

    fn give_back(&mut self, consumer: bool, seqs: &[Seq]) {
        self.expire();
        for seq in seqs {
            self.messages.get_mut(seq).unwrap().state = State::Ready;
        }
        self.expire();
        self.overflow();
        self.deal();
        let events = self.turn(Request::Return {
            consumer: consumer.then_some(CONSUMER),
            seqs: seqs.iter().copied().collect(),
            failed: true,
        });
        self.compare(events);
    }

    /// The oldest dead letters arrive; of every `unread` one the bytes were not found.
    fn arrive(&mut self, unread: usize) {
        let Some((ticket, reason, seqs)) = self.world.dead_letters.pop_front() else {
            return;
        };
        self.expire();
        let refused =
            reason == DropReason::MaxLength && self.settings.overflow == Overflow::RejectAndDeadLetter;
        let lost: Ranges = match unread {
            0 => Ranges::new(),
            _ => seqs.iter().copied().step_by(unread).collect(),
        };
        for seq in seqs.iter().filter(|_| !refused) {
            let state = &mut self.messages.get_mut(seq).unwrap().state;
            let State::Leaving { attempts } = *state else {
                panic!("{seq} arrives and does not leave: {state:?}")
            };
            if lost.contains(*seq) && attempts < ATTEMPTS && self.settings.dead_letter.is_some() {
                *state = State::Leaving {
                    attempts: attempts + 1,
                };
                self.dying.push((*seq, reason));
            } else {
                self.messages.remove(seq);
            }
        }
        let events = self.turn(Request::FinishDeadLetters {
            ticket,
            unread: lost,
            failed: Ranges::new(),
        });
        self.compare(events);
    }

    fn configure(&mut self, settings: QueueSettings) {
        self.settings = settings.clone();
        self.expire();
        self.overflow();
        let events = self.turn(Request::Configure {
            settings: Box::new(settings),
        });
        self.compare(events);
    }

    fn simply(&mut self, request: Request<Plain>) {
        self.expire();
        let events = self.turn(request);
        self.compare(events);
    }

    fn restart(&mut self) {
        let (now, disk) = (self.world.now, self.world.disk.clone());
        let whole = std::mem::take(&mut self.world.whole);
        self.world = World::restarted(self.settings.clone(), disk);
        self.world.whole = whole;
        self.world.now = now;
        self.consumer = None;
        self.messages.retain(|_, it| it.journaled);
        self.messages.values_mut().for_each(|it| it.state = State::Ready);
        self.configure(self.settings.clone());
    }

    /// What the machine did in this turn is what the model did.
    fn compare(&mut self, events: Vec<Event>) {
        let (mut died, mut went) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                Event::DeadLettered(reason, seqs) => died.extend(seqs.into_iter().map(|seq| (seq, reason))),
                Event::Delivered(_, delivery) => went.extend(numbers(&delivery)),
                _ => {}
            }
        }
        let mut dying = std::mem::take(&mut self.dying);
        dying.sort_by_key(|(seq, _)| *seq);
        died.sort_by_key(|(seq, _)| *seq);
        assert_eq!(died, dying, "dead letters");
        assert_eq!(went, std::mem::take(&mut self.going), "deliveries");
        let status = self.world.fifo.status();
        let held = |it: &&Mortal| matches!(it.state, State::Held { .. });
        let unacked = self.messages.values().filter(held).count() as u64;
        let unacked_bytes: u64 = self.messages.values().filter(held).map(|it| it.size).sum();
        assert_eq!(
            (status.ready, status.unacked, status.unacked_bytes),
            (self.ready().len() as u64, unacked, unacked_bytes)
        );
        let earliest = self.ready().iter().map(|seq| self.messages[seq].deadline).min();
        assert!(self.world.fifo.wakes_at_ms() <= earliest.unwrap_or(u64::MAX));
        if self.messages.is_empty() && self.world.dead_letters.is_empty() {
            assert_eq!((status.memory, self.world.disk.segments.len()), (0, 0));
        }
    }

    /// What the disk holds, and the whole log from its first record on, replay to the same, deadlines included.
    fn check_replay(&self, later: u64) {
        let mut tail = self.world.disk.clone();
        let mut whole = tail.clone();
        whole.log = self.world.whole.clone();
        let known = self.survivors();
        for disk in [&mut tail, &mut whole] {
            let mut again = World::restarted(self.settings.clone(), std::mem::take(disk));
            again.now = Timestamp(0);
            assert_eq!(again.fifo.status().ready, known.len() as u64);
            again.now = Timestamp(self.now() + later);
            let stay = |seq: &&Seq| self.messages[seq].deadline > again.now.0;
            let stay: Vec<Seq> = known.iter().filter(stay).copied().collect();
            again.handle(Request::Wake);
            assert_eq!(again.drain(), stay);
            while again.dead_letter_one().is_some() {}
            assert_eq!(again.disk.segments.len(), 0, "places were not released");
        }
    }

    /// After a crash before the turn's records were durable there is what was there before it.
    fn check_crash(&self, before: &BTreeSet<Seq>) {
        let mut again = World::restarted(self.settings.clone(), self.world.crashed.clone());
        again.now = Timestamp(0);
        assert_eq!(again.drain().into_iter().collect::<BTreeSet<_>>(), *before);
    }

    fn take(&mut self, step: Step) {
        let estimates = self.settings.max_length_bytes.is_some();
        match step {
            Step::Enqueue {
                sizes,
                persistent,
                expiration,
            } => self.enqueue(&sizes, persistent, expiration),
            Step::Get { no_ack } => self.get(no_ack),
            Step::Settle {
                consumer,
                from,
                count,
                disposal,
            } => {
                let seqs = self.held(consumer, from, count);
                self.settle(consumer, &seqs, disposal);
            }
            Step::Return {
                consumer,
                from,
                count,
            } => {
                let seqs = self.held(consumer, from, count);
                self.give_back(consumer, &seqs);
            }
            Step::Time { ms } => {
                self.world.now.0 += ms;
                self.simply(Request::Wake);
            }
            Step::Arrive { unread } => self.arrive(unread),
            Step::Configure {
                ttl,
                max_length,
                dead_letters,
            } => self.configure(QueueSettings {
                message_ttl_ms: ttl,
                max_length,
                dead_letter: graves(dead_letters),
                ..self.settings.clone()
            }),
            Step::Purge => {
                self.expire();
                for seq in self.ready() {
                    self.leave(seq, DropReason::Purged);
                }
                let events = self.turn(Request::Purge { reply: 0 });
                self.compare(events);
            }
            // Where a consumer has to wait for the disk, what is refused or dropped meanwhile depends on the disk.
            Step::Shrink { memory } if self.consumer.is_none() => self.simply(shrink(memory)),
            Step::Checkpoint { back } => {
                let request = self.world.checkpoint(back);
                self.simply(request);
            }
            // After a restart sizes are estimates.
            Step::Restart if !estimates => self.restart(),
            Step::Shrink { .. } | Step::Restart => {}
        }
    }
}

fn graves(there: bool) -> Option<Arc<DeadLetterTo>> {
    there.then(|| {
        Arc::new(DeadLetterTo {
            exchange: String::new(),
            routing_key: None,
            at_least_once: false,
        })
    })
}

fn settings() -> impl Strategy<Value = QueueSettings> {
    let overflow = prop_oneof![
        3 => Just(Overflow::DropHead),
        1 => Just(Overflow::Reject),
        1 => Just(Overflow::RejectAndDeadLetter)
    ];
    (
        prop::bool::weighted(0.8),
        prop::option::of(0u64..60),
        prop::option::weighted(0.4, 0u64..30),
        prop::option::weighted(0.2, 0u64..1_000),
        overflow,
        prop::bool::weighted(0.8),
    )
        .prop_map(
            |(durable, message_ttl_ms, max_length, max_length_bytes, overflow, dead)| QueueSettings {
                durable,
                message_ttl_ms,
                max_length,
                max_length_bytes,
                overflow,
                dead_letter: graves(dead),
                ..QueueSettings::default()
            },
        )
}

proptest! {
    #[test]
    fn messages_die_as_a_naive_model_says_and_the_journal_knows(
        settings in settings(),
        memory in prop_oneof![Just(0usize), 500usize..5_000, Just(1 << 24)],
        consumer in prop::option::weighted(0.4, (any::<bool>(), 0u32..8)),
        steps in prop::collection::vec(step(), 1..60),
        later in 0u64..60,
    ) {
        let consumer = consumer.map(|(no_ack, prefetch)| {
            ConsumerSettings { paused: false, no_ack, prefetch, exclusive: false, priority: 0, window: 1 << 30 }
        });
        let memory = if consumer.is_some() { 1 << 24 } else { memory };
        let mut model = Model::new(settings, memory, consumer);
        for step in steps {
            let (before, restarts) = (model.survivors(), matches!(step, Step::Restart));
            let end = model.world.disk.log_end();
            model.take(step);
            model.check_replay(later);
            if !restarts && model.world.disk.log_end() > end {
                model.check_crash(&before);
            }
        }
        model.world.now.0 += 1_000_000;
        model.simply(Request::Wake);
        while !model.world.dead_letters.is_empty() {
            model.arrive(0);
        }
    }
}

/// Dead letters that did not arrive come back after a pause, which is longer each time; once the reason is over they come then.
#[test]
fn what_did_not_arrive_is_handed_over_without_a_pause_once_the_reason_is_over() {
    let mut world = World::new(QueueSettings {
        message_ttl_ms: Some(0),
        dead_letter: graves(true),
        ..QueueSettings::default()
    });
    let enqueue = Request::Enqueue {
        block: expiring_block(1, &[10, 10], true, None),
        receipt: None,
    };
    world.handle(enqueue);
    let fails = |world: &mut World| {
        let (ticket, _, seqs) = world.dead_letters.pop_front().expect("handed over");
        assert_eq!(seqs, [1, 2]);
        world.handle(Request::FinishDeadLetters {
            ticket,
            unread: Ranges::new(),
            failed: (1..=2).collect(),
        });
        world.fifo.wakes_at_ms() - world.now.0
    };
    let pause = fails(&mut world);
    for _ in 0..6 {
        world.now.0 = world.fifo.wakes_at_ms();
        world.handle(Request::Wake);
        assert!(fails(&mut world) > pause);
    }
    world.handle(Request::HandOverAgain);
    assert_eq!(fails(&mut world), pause, "as if for the first time");
    world.handle(Request::HandOverAgain);
    world.dead_letter_one();
    assert!(world.dead_letters.is_empty());
    assert_eq!(world.fifo.wakes_at_ms(), u64::MAX);
    assert!(world.drain().is_empty(), "it died");
}
