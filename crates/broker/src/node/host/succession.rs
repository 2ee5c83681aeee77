//! One machine after another decides on the same journal, and nothing that was promised is lost on the way.

use super::Host;
use crate::clients::outbox::{ChannelId, Outbox, Question};
use crate::node::ends::{Ends, Outlet, Receipt, Reply};
use crate::node::journal::Journal;
use model::properties::Properties;
use model::{BlockBuilder, ConsumerId, Journaled, Message, Outcome, Ranges, RouteBuf};
use model::{QueueSettings, Seq, Sorting, Timestamp};
use proptest::prelude::*;
use queue::fifo::Classic;
use queue::{Answer, ConsumerSettings, Delivery, Disposal, Effect, QueueMachine, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CHANNEL: ChannelId = ChannelId(1);

/// A journal that others write to as well: what was appended is committed later, or never.
#[derive(Default)]
struct Shared {
    records: Vec<Vec<u8>>,
    committed: usize,
}

impl<M: QueueMachine<Ends>> Journal<M> for Shared {
    fn append(&mut self, _: &mut M, records: &mut Vec<M::Record>, _: &mut Vec<Effect<Ends>>) {
        for record in records.drain(..) {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            self.records.push(bytes);
        }
    }

    fn end_turn(&mut self, _leaves: bool) -> Option<u64> {
        Some(self.records.len() as u64)
    }

    fn reached(&self) -> u64 {
        self.committed as u64
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many messages of this priority.
    Publish(u64, u8),
    Consume,
    Get,
    /// A client is done with one of the messages that it has, or gives it back.
    Accept(usize),
    Return(usize),
    /// The journal comes so far, in parts of what is not committed.
    Commit(usize),
    /// The same, and then somebody else decides.
    Succeed(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..4_u64, 0..3_u8).prop_map(|(count, priority)| Step::Publish(count, priority)),
        1 => Just(Step::Consume),
        2 => Just(Step::Get),
        3 => (0..8_usize).prop_map(Step::Accept),
        1 => (0..8_usize).prop_map(Step::Return),
        3 => (0..4_usize).prop_map(Step::Commit),
        1 => (0..4_usize).prop_map(Step::Succeed),
    ]
}

/// A queue and its clients, who know messages by the numbers in their bodies.
struct World<M: QueueMachine<Ends>> {
    host: Option<Host<M, Shared>>,
    settings: QueueSettings,
    published: u64,
    consumers: u64,
    confirmed: BTreeSet<u64>,
    /// What clients have, as the present machine numbers it, and which consumer got it.
    held: BTreeMap<Seq, (u64, Option<ConsumerId>)>,
    /// Which messages clients were done with, and the record by which that is so.
    accepted: BTreeMap<u64, usize>,
}

impl<M: QueueMachine<Ends>> World<M> {
    fn new(settings: QueueSettings) -> Self {
        Self {
            host: Some(Host::new(M::new(settings.clone()), Shared::default())),
            settings,
            published: 0,
            consumers: 0,
            confirmed: BTreeSet::new(),
            held: BTreeMap::new(),
            accepted: BTreeMap::new(),
        }
    }

    fn host(&mut self) -> &mut Host<M, Shared> {
        self.host.as_mut().unwrap()
    }

    fn turn(&mut self, request: Request<Ends>) {
        let mut left = Vec::new();
        self.host().handle(Timestamp(1), request);
        self.host().commit(|effect, _| left.push(effect));
        left.into_iter().for_each(|effect| self.leave(effect));
    }

    fn commit(&mut self, part: usize) {
        let mut left = Vec::new();
        let host = self.host();
        let open = host.journal.records.len() - host.journal.committed;
        host.journal.committed += open * part / 3;
        host.let_go(|effect, _| left.push(effect));
        left.into_iter().for_each(|effect| self.leave(effect));
    }

    fn leave(&mut self, effect: Effect<Ends>) {
        match effect {
            Effect::Confirm(receipt) => self.confirmed.extend(receipt.numbers.iter()),
            Effect::Deliver {
                delivery, consumer, ..
            } => self.receive(&delivery, Some(consumer)),
            Effect::Reply(_, Answer::Got { delivery, .. }) => self.receive(&delivery, None),
            _ => {}
        }
    }

    fn receive(&mut self, delivery: &Delivery, consumer: Option<ConsumerId>) {
        for seq in delivery.seqs.iter() {
            let message = delivery.block.message((seq - delivery.base) as usize);
            let number: u64 = std::str::from_utf8(message.body).unwrap().parse().unwrap();
            let twice = self.held.values().any(|(it, _)| *it == number);
            assert!(!twice, "{number} is handed out while a client has it");
            let committed = self.host().journal.committed;
            let gone = self.accepted.get(&number).is_some_and(|at| *at <= committed);
            assert!(!gone, "{number} comes again, though it was settled for good");
            self.held.insert(seq, (number, consumer));
        }
    }

    fn publish(&mut self, count: u64, priority: u8) {
        let mut block = BlockBuilder::default();
        let route = RouteBuf::new(b"", b"q");
        let properties = model::properties::PropertiesBuilder::new()
            .priority(priority)
            .encode();
        let numbers = Ranges::span(self.published + 1, self.published + count);
        for number in numbers.iter() {
            let body = number.to_string();
            block.push_message(&Message::new(
                route.as_route(),
                Properties::amqp091(&properties),
                body.as_bytes(),
            ));
        }
        self.published += count;
        let receipt = Receipt {
            outbox: Arc::new(Outbox::new()),
            channel: CHANNEL,
            numbers,
            queue: None,
            timed: None,
        };
        let block = Arc::new(block.finish(true, Timestamp(1)));
        let receipt = Some(receipt);
        self.turn(Request::Enqueue { block, receipt });
    }

    fn consume(&mut self) {
        self.consumers += 1;
        let settings = ConsumerSettings {
            no_ack: false,
            exclusive: false,
            prefetch: 2,
            priority: 0,
            window: 1 << 20,
            paused: false,
        };
        let outlet = Outlet {
            outbox: Arc::new(Outbox::new()),
            channel: CHANNEL,
            no_ack: false,
        };
        let consumer = ConsumerId(self.consumers);
        self.turn(Request::Consume {
            consumer,
            outlet,
            settings,
            reply: reply(),
        });
    }

    fn get(&mut self) {
        let reply = reply();
        self.turn(Request::Get { no_ack: false, reply });
    }

    /// A client is done with a message that it got, or gives it back.
    fn end(&mut self, which: usize, accept: bool) {
        let Some(seq) = self.held.keys().nth(which).copied() else {
            return;
        };
        let (number, consumer) = self.held.remove(&seq).unwrap();
        let seqs = Ranges::one(seq);
        if accept {
            self.turn(Request::Settle {
                consumer,
                seqs,
                disposal: Disposal::Accepted,
            });
            let by = self.host().journal.records.len();
            self.accepted.insert(number, by);
        } else {
            let failed = true;
            self.turn(Request::Return {
                consumer,
                seqs,
                failed,
            });
        }
    }

    /// The host steps down; what was not committed is void, and whoever follows replays the rest.
    fn succeed(&mut self) {
        let (_, mut journal, _) = self.host.take().unwrap().step_down();
        journal.records.truncate(journal.committed);
        let committed = journal.committed;
        self.accepted.retain(|_, by| *by <= committed);
        self.held.clear();
        let mut machine = M::new(self.settings.clone());
        machine.replay();
        for (index, record) in (1..).zip(&journal.records) {
            let record = M::Record::decode(record).unwrap();
            machine.apply(index, record, &mut Outcome::default());
        }
        machine.recovered(false);
        self.host = Some(Host::new(machine, journal));
        let settings = Box::new(self.settings.clone());
        self.turn(Request::Configure { settings });
    }

    /// At the end, somebody takes all there is.
    fn drain(&mut self) -> BTreeSet<u64> {
        self.commit(3);
        self.succeed();
        let mut found = BTreeSet::new();
        loop {
            self.get();
            self.commit(3);
            let before = found.len();
            found.extend(self.held.values().map(|(number, _)| *number));
            if found.len() == before {
                return found;
            }
        }
    }
}

fn reply() -> Reply {
    Reply {
        outbox: Arc::new(Outbox::new()),
        channel: CHANNEL,
        question: Question(1),
        no_ack: false,
    }
}

fn settings(sorting: Sorting) -> QueueSettings {
    QueueSettings {
        durable: true,
        sorting,
        ..QueueSettings::default()
    }
}

fn run<M: QueueMachine<Ends>>(settings: QueueSettings, steps: &[Step]) {
    let mut world = World::<M>::new(settings);
    for step in steps {
        match *step {
            Step::Publish(count, priority) => world.publish(count, priority),
            Step::Consume => world.consume(),
            Step::Get => world.get(),
            Step::Accept(which) => world.end(which, true),
            Step::Return(which) => world.end(which, false),
            Step::Commit(part) => world.commit(part),
            Step::Succeed(part) => {
                world.commit(part);
                world.succeed();
            }
        }
    }
    let found = world.drain();
    for number in &world.confirmed {
        let kept = found.contains(number) || world.accepted.contains_key(number);
        assert!(kept, "{number} was confirmed and is lost");
    }
}

proptest! {
    #[test]
    fn a_queue_that_goes_from_owner_to_owner_loses_nothing_that_was_confirmed(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        run::<Classic<Ends>>(settings(Sorting::Arrival), &steps);
        run::<Classic<Ends>>(settings(Sorting::Priority(3)), &steps);
    }
}
