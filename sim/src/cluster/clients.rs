//! Clients on the nodes: they publish to queues, consume and get from them, and say what became of what they were given.

use super::history::Id;
use super::invariants::deliveries::{Receiver, delivered};
use super::invariants::{acks, answers};
use super::ledger::{Held, Known, Leadership};
use super::nodes::Cluster;
use super::terms::DEAD;
use crate::terms::Said;
use broker::groups::{Ends, Outlet, Receipt, Reply};
use broker::{ChannelId, Outbox, QueueQuestion};
use cluster::GroupId;
use model::properties::Properties;
use model::{Block, BlockBuilder, ConsumerId, Message, Ranges, RouteBuf, Seq, Timestamp};
use queue::{Answer, ConsumerSettings, Delivery, Disposal, Effect, Request};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The channel of whoever publishes; dead letters have one of their own.
pub const PUBLISHERS: ChannelId = ChannelId(1);
pub const LETTERS: ChannelId = ChannelId(2);

/// Publishers on each node.
const PUBLISHERS_A_NODE: u64 = 2;
/// Consumers of each queue at the most.
const MOST_CONSUMERS: usize = 4;
/// So many messages are published by a seed at the most.
const MOST_MESSAGES: Id = 600;

/// A message that somebody was given: its number in the queue, and which one it is.
type Given = (Seq, Id);

/// A consumer.
#[derive(Debug, Clone, Copy)]
struct Consumer {
    by: Leadership,
    no_ack: bool,
}

/// All of them.
#[derive(Default)]
pub struct Clients {
    outbox: Arc<Outbox>,
    consumers: BTreeMap<u64, Consumer>,
    /// Questions without an answer, and whether what they bring counts as settled.
    gets: BTreeMap<u64, bool>,
    last_id: Id,
    last_number: u64,
}

impl Clients {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// How to tell about something that was published.
    pub fn receipt(&self, channel: ChannelId, numbers: Ranges) -> Receipt {
        Receipt {
            outbox: self.outbox.clone(),
            channel,
            numbers,
            queue: None,
            timed: None,
        }
    }

    fn reply(&self, question: u64, no_ack: bool) -> Reply {
        Reply {
            outbox: self.outbox.clone(),
            channel: PUBLISHERS,
            question: QueueQuestion(question),
            no_ack,
        }
    }

    /// Nobody consumes there any more.
    pub fn forget(&mut self, by: Leadership) {
        self.consumers.retain(|_, consumer| consumer.by != by);
    }

    fn receiver(&self, consumer: u64) -> Receiver {
        let no_ack = self.consumers.get(&consumer).is_some_and(|it| it.no_ack);
        let consumer = Some(consumer);
        Receiver { consumer, no_ack }
    }
}

/// The body of a message: its name, and so many bytes.
fn body_of(id: Id, length: usize) -> Vec<u8> {
    let mut body = vec![id as u8; length.max(8)];
    body[..8].copy_from_slice(&id.to_le_bytes());
    body
}

/// Adds a message to a block.
pub fn put(block: &mut BlockBuilder, said: &Said, id: Id, length: usize) {
    let (properties, route) = (said.encode(), RouteBuf::new(b"", b"q"));
    let body = body_of(id, length);
    let message = Message::new(route.as_route(), Properties::amqp091(&properties), &body);
    block.push_message(&message);
}

/// Closes a block.
pub fn finish(mut block: BlockBuilder, persistent: bool, now: Timestamp) -> Arc<Block> {
    Arc::new(block.finish(persistent, now))
}

impl Cluster {
    /// Some client does something, where a queue is led.
    pub fn client_acts(&mut self) {
        let Some(by) = self.some_leadership() else {
            return;
        };
        match self.random.below(100) {
            0..40 if by.group != DEAD => self.publish(by),
            40..46 => self.consume(by),
            46..48 => self.cancel_some(by),
            48..56 => self.get(by),
            56..86 => self.settle(by),
            86..96 => self.give_back(by),
            96 if self.random.below(4) == 0 => self.purge(by),
            _ => {}
        }
    }

    /// Some leader of some queue, or one that believes that it is.
    fn some_leadership(&mut self) -> Option<Leadership> {
        let all = self.leaderships();
        (!all.is_empty()).then(|| all[self.random.below(all.len() as u64) as usize])
    }

    fn publish(&mut self, by: Leadership) {
        let count = 1 + self.random.below(6);
        let first = self.clients.last_id + 1;
        if first + count > MOST_MESSAGES {
            return;
        }
        let publisher = u64::from(by.node) * PUBLISHERS_A_NODE + self.random.below(PUBLISHERS_A_NODE);
        let persistent = self.random.below(5) > 0;
        let mut block = BlockBuilder::default();
        for id in first..first + count {
            let mut said = Said::choose(&mut self.random);
            said.persistent = persistent;
            let length = match self.random.below(20) {
                0 => 4_000 + self.random.below(12_000),
                1..=4 => 500 + self.random.below(2_000),
                _ => 8 + self.random.below(100),
            } as usize;
            put(&mut block, &said, id, length);
            let known = Known {
                publisher: publisher as u32,
                said,
                length,
                ..Known::default()
            };
            self.ledger.published(by, id, known);
        }
        let last = first + count - 1;
        self.clients.last_id = last;
        self.ledger.tell(|| format!("{by:?} is sent {first} to {last}"));
        let request = Request::Enqueue {
            block: finish(block, persistent, self.time_of(by)),
            receipt: Some(self.clients.receipt(PUBLISHERS, Ranges::span(first, last))),
        };
        self.submit(by, request);
    }

    fn consume(&mut self, by: Leadership) {
        let there = self.clients.consumers.values().filter(|it| it.by == by);
        if there.count() >= MOST_CONSUMERS {
            return;
        }
        let has_no_ack = self
            .ledger
            .books
            .get(&by.group)
            .is_some_and(|book| book.terms.has_no_ack);
        let settings = ConsumerSettings {
            no_ack: has_no_ack && self.random.chance(),
            exclusive: false,
            prefetch: self.random.below(20) as u32,
            priority: self.random.below(3) as i64,
            window: 1 << 20,
            paused: false,
        };
        self.consume_with(by, settings);
    }

    /// Somebody begins to consume. Returns who.
    pub fn consume_with(&mut self, by: Leadership, settings: ConsumerSettings) -> u64 {
        let (number, no_ack) = (self.clients.next_number(), settings.no_ack);
        let outlet = Outlet {
            outbox: self.clients.outbox.clone(),
            channel: PUBLISHERS,
            no_ack,
        };
        self.clients.consumers.insert(number, Consumer { by, no_ack });
        self.ledger
            .tell(|| format!("{number} consumes from {by:?}: {settings:?}"));
        let request = Request::Consume {
            consumer: ConsumerId(number),
            outlet,
            settings,
            reply: self.clients.reply(number, no_ack),
        };
        self.submit(by, request);
        number
    }

    fn cancel_some(&mut self, by: Leadership) {
        let there = self.clients.consumers.iter().filter(|(_, it)| it.by == by);
        let there: Vec<u64> = there.map(|(number, _)| *number).collect();
        if !there.is_empty() {
            let number = there[self.random.below(there.len() as u64) as usize];
            self.cancel(by, number);
        }
    }

    fn cancel(&mut self, by: Leadership, number: u64) {
        self.ledger
            .tell(|| format!("{number} consumes no more from {by:?}"));
        let consumer = ConsumerId(number);
        self.submit(
            by,
            Request::Cancel {
                consumer,
                reply: None,
            },
        );
    }

    fn get(&mut self, by: Leadership) {
        let has_no_ack = self
            .ledger
            .books
            .get(&by.group)
            .is_some_and(|book| book.terms.has_no_ack);
        let no_ack = has_no_ack && self.random.chance();
        let question = self.clients.next_number();
        self.clients.gets.insert(question, no_ack);
        let reply = self.clients.reply(question, no_ack);
        self.submit(by, Request::Get { no_ack, reply });
    }

    /// Some of what one client holds.
    fn some_held(&mut self, by: Leadership) -> Option<(Option<u64>, Vec<Given>)> {
        let hands = self.ledger.books.get(&by.group)?.hands.get(&by)?;
        let all: Vec<(Seq, Held)> = hands.iter().map(|(seq, held)| (*seq, *held)).collect();
        if all.is_empty() {
            return None;
        }
        let (_, Held { consumer, .. }) = all[self.random.below(all.len() as u64) as usize];
        let most = 1 + self.random.below(8) as usize;
        let some = all.into_iter().filter(|(_, held)| held.consumer == consumer);
        let some: Vec<_> = some.map(|(seq, held)| (seq, held.id)).take(most).collect();
        Some((consumer, some))
    }

    /// They are in nobody's hands any more.
    fn let_go(&mut self, by: Leadership, some: &[Given]) -> Ranges {
        let hands = self
            .ledger
            .books
            .get_mut(&by.group)
            .and_then(|book| book.hands.get_mut(&by));
        if let Some(hands) = hands {
            hands.retain(|seq, _| !some.iter().any(|(gone, _)| gone == seq));
        }
        some.iter().map(|(seq, _)| *seq).collect()
    }

    fn settle(&mut self, by: Leadership) {
        let Some((consumer, some)) = self.some_held(by) else {
            return;
        };
        let seqs = self.let_go(by, &some);
        let disposal = match self.random.below(5) {
            0 => Disposal::Rejected,
            _ => Disposal::Accepted,
        };
        for (seq, id) in some {
            match disposal {
                Disposal::Accepted => acks::acked(&mut self.ledger, by, seq, id),
                Disposal::Rejected => self.know(by.group, id, |known| known.rejected = true),
            }
        }
        let consumer = consumer.map(ConsumerId);
        let request = Request::Settle {
            consumer,
            seqs,
            disposal,
        };
        self.submit(by, request);
    }

    fn give_back(&mut self, by: Leadership) {
        let Some((consumer, some)) = self.some_held(by) else {
            return;
        };
        self.return_these(by, consumer, &some, true);
    }

    fn return_these(&mut self, by: Leadership, consumer: Option<u64>, some: &[Given], failed: bool) {
        let seqs = self.let_go(by, some);
        for (_, id) in some {
            self.know(by.group, *id, |known| known.returned += 1);
        }
        self.ledger.tell(|| format!("{by:?} is given back {some:?}"));
        let consumer = consumer.map(ConsumerId);
        let request = Request::Return {
            consumer,
            seqs,
            failed,
        };
        self.submit(by, request);
    }

    fn purge(&mut self, by: Leadership) {
        if let Some(book) = self.ledger.books.get_mut(&by.group) {
            book.known.values_mut().for_each(|known| known.purged = true);
        }
        self.ledger.tell(|| format!("{by:?} is purged"));
        let question = self.clients.next_number();
        let reply = self.clients.reply(question, false);
        self.submit(by, Request::Purge { reply });
    }

    fn know(&mut self, group: GroupId, id: Id, change: impl FnOnce(&mut Known)) {
        let book = self.ledger.books.get_mut(&group);
        if let Some(known) = book.and_then(|book| book.known.get_mut(&id)) {
            change(known);
        }
    }

    /// Clients of this leader give back what they hold, and consume no more.
    pub fn clients_leave(&mut self, by: Leadership) {
        let consumers = self.clients.consumers.iter().filter(|(_, it)| it.by == by);
        let consumers: Vec<u64> = consumers.map(|(number, _)| *number).collect();
        consumers.into_iter().for_each(|number| self.cancel(by, number));
        let hands = self
            .ledger
            .books
            .get(&by.group)
            .and_then(|book| book.hands.get(&by));
        let hands: Vec<(Seq, Held)> = hands
            .map(|hands| hands.iter().map(|(seq, held)| (*seq, *held)).collect())
            .unwrap_or_default();
        for (seq, held) in hands {
            self.return_these(by, held.consumer, &[(seq, held.id)], false);
        }
    }

    /// Something has left a queue for a client. Up to `told` its leader knows what is committed.
    pub fn client_is_told(&mut self, by: Leadership, told: u64, effect: Effect<Ends>) {
        match effect {
            Effect::Confirm(receipt) if receipt.channel == LETTERS => self.letters_arrived(&receipt.numbers),
            Effect::Reject(receipt) if receipt.channel == LETTERS => self.letters_arrived(&receipt.numbers),
            Effect::Confirm(receipt) => {
                self.ledger
                    .tell(|| format!("{by:?} confirms {:?}", receipt.numbers));
                answers::confirmed(&mut self.ledger, by.group, &receipt.numbers);
            }
            Effect::Reject(receipt) => {
                self.ledger
                    .tell(|| format!("{by:?} refuses {:?}", receipt.numbers));
                answers::refused(&mut self.ledger, by.group, &receipt.numbers);
            }
            Effect::Deliver {
                consumer, delivery, ..
            } => {
                let receiver = self.clients.receiver(consumer.0);
                self.receive(by, told, &receiver, &delivery);
                let bytes = u32::try_from(delivery.bytes()).unwrap_or(u32::MAX);
                self.submit(by, Request::Flow { consumer, bytes });
            }
            Effect::Reply(reply, Answer::Got { delivery, .. }) => {
                let no_ack = self.clients.gets.remove(&reply.question.0).unwrap_or_default();
                let consumer = None;
                self.receive(by, told, &Receiver { consumer, no_ack }, &delivery);
            }
            Effect::Reply(reply, _) => drop(self.clients.gets.remove(&reply.question.0)),
            Effect::DeadLetter { ticket, pieces, .. } => self.die(by, ticket, pieces),
            _ => {}
        }
    }

    fn receive(&mut self, by: Leadership, told: u64, to: &Receiver, delivery: &Delivery) {
        let given = delivered(&mut self.ledger, by, told, to, delivery);
        match &mut self.drained {
            Some(drained) if drained.by == by && drained.consumer == to.consumer => {
                drained.taken.extend(given);
            }
            _ if self.clients_are_gone && !to.no_ack => {
                self.return_these(by, to.consumer, &given, false);
            }
            _ => {}
        }
    }
}
