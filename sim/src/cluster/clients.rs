//! Clients on the nodes: they publish to queues, consume and get from them, and say what became of what they were given.

use super::access::LETTERS;
use super::exercised::Deed;
use super::history::Id;
use super::invariants::deliveries::{Receiver, arrives};
use super::invariants::{acks, active, answers, unused};
use super::ledger::{Held, Known, Leadership};
use super::nodes::Cluster;
use super::returns::Way;
use super::terms::DEAD;
use crate::terms::Said;
use broker::groups::{Outlet, Receipt, Reply};
use broker::{ChannelId, Event, Outbox, QueueQuestion};
use cluster::GroupId;
use model::properties::Properties;
use model::{Block, BlockBuilder, ConsumerId, Message, Ranges, RouteBuf, Seq, Timestamp};
use queue::{Answer, ConsumerSettings, Delivery, Disposal, Request};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The channel of clients.
const CLIENTS: ChannelId = ChannelId(1);

/// Publishers on each node.
const PUBLISHERS_A_NODE: u64 = 2;
/// Consumers of each queue on a node at the most.
const MOST_CONSUMERS: usize = 3;
/// So many messages are published by a seed at the most.
const MOST_MESSAGES: Id = 600;

/// A message that somebody was given: its number in the queue, and which one it is.
pub type Given = (Seq, Id);

/// A consumer.
#[derive(Debug, Clone, Copy)]
struct Consumer {
    node: u32,
    group: GroupId,
    no_ack: bool,
    /// When it was told that it consumes.
    since: Option<Duration>,
    /// It wants that no more.
    goes: bool,
}

/// All of them.
#[derive(Default)]
pub struct Clients {
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

    /// The clients of a node are gone with it.
    pub fn forget(&mut self, node: u32) {
        self.consumers.retain(|_, consumer| consumer.node != node);
    }

    /// Whether this one is there, and wants to stay.
    pub fn stays(&self, consumer: u64) -> bool {
        self.consumers.get(&consumer).is_some_and(|it| !it.goes)
    }

    fn of(&self, node: u32, group: GroupId) -> Vec<u64> {
        let those = self
            .consumers
            .iter()
            .filter(|(_, it)| it.node == node && it.group == group);
        those.map(|(number, _)| *number).collect()
    }
}

/// How to tell about something that was published.
pub fn receipt(outbox: Arc<Outbox>, channel: ChannelId, numbers: Ranges) -> Receipt {
    Receipt {
        outbox,
        channel,
        numbers,
        queue: None,
        timed: None,
    }
}

fn reply(outbox: Arc<Outbox>, question: u64, no_ack: bool) -> Reply {
    Reply {
        outbox,
        channel: CLIENTS,
        question: QueueQuestion(question),
        no_ack,
    }
}

/// The body of a message: its name, and so many bytes.
pub fn body_of(id: Id, length: usize) -> Vec<u8> {
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
    /// Some client on some node does something with some queue.
    pub fn client_acts(&mut self) {
        let ways: Vec<(u32, GroupId)> = self.accesses.keys().copied().collect();
        if ways.is_empty() {
            return;
        }
        let (node, group) = ways[self.random.below(ways.len() as u64) as usize];
        if !self.node(node).goes_on() {
            return;
        }
        match self.random.below(100) {
            0..40 if group != DEAD => self.publish(node, group),
            40..44 => self.consume(node, group),
            44..46 => self.cancel_some(node, group),
            46..52 => self.get(node, group),
            52..86 => self.settle(node, group),
            86..96 => self.give_back(node, group),
            96 if self.random.below(4) == 0 => self.purge(node, group),
            97 => self.change_policy(),
            98 | 99 => self.time_out(node, group),
            _ => {}
        }
    }

    /// Where clients of a node hear of a queue.
    pub fn outbox(&self, node: u32, group: GroupId) -> Arc<Outbox> {
        let access = self.accesses.get(&(node, group));
        access.map(|access| access.outbox.clone()).unwrap_or_default()
    }

    fn publish(&mut self, node: u32, group: GroupId) {
        let count = 1 + self.random.below(6);
        let first = self.clients.last_id + 1;
        let is_full = self
            .accesses
            .get(&(node, group))
            .is_none_or(|access| access.is_full());
        if first + count > MOST_MESSAGES || is_full {
            return;
        }
        let publisher = u64::from(node) * PUBLISHERS_A_NODE + self.random.below(PUBLISHERS_A_NODE);
        let persistent = self.random.below(5) > 0;
        let mut block = BlockBuilder::default();
        for id in first..first + count {
            let mut said = self.terms[&group].some_said(&mut self.random);
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
            self.ledger.published(group, id, known);
        }
        let last = first + count - 1;
        self.clients.last_id = last;
        self.ledger
            .tell(|| format!("{group:?} is sent {first} to {last} on {node}"));
        let numbers = Ranges::span(first, last);
        let request = Request::Enqueue {
            block: finish(block, persistent, self.node(node).now()),
            receipt: Some(receipt(self.outbox(node, group), CLIENTS, numbers)),
        };
        self.ask(node, group, request);
    }

    fn has_no_ack(&self, group: GroupId) -> bool {
        self.ledger
            .books
            .get(&group)
            .is_some_and(|book| book.terms.has_no_ack)
    }

    fn consume(&mut self, node: u32, group: GroupId) {
        if self.clients.of(node, group).len() >= MOST_CONSUMERS {
            return;
        }
        let settings = ConsumerSettings {
            no_ack: self.has_no_ack(group) && self.random.chance(),
            exclusive: false,
            prefetch: self.random.below(20) as u32,
            priority: self.random.below(3) as i64,
            window: 1 << 20,
            paused: false,
        };
        self.consume_with(node, group, settings);
    }

    /// Somebody begins to consume. Returns who.
    pub fn consume_with(&mut self, node: u32, group: GroupId, settings: ConsumerSettings) -> u64 {
        let (number, no_ack) = (self.clients.next_number(), settings.no_ack);
        let (outbox, channel) = (self.outbox(node, group), CLIENTS);
        let consumer = Consumer {
            node,
            group,
            no_ack,
            since: None,
            goes: false,
        };
        self.clients.consumers.insert(number, consumer);
        active::came(&mut self.ledger, group, node, number, settings.priority);
        self.ledger
            .tell(|| format!("{number} consumes from {group:?} on {node}: {settings:?}"));
        let request = Request::Consume {
            consumer: ConsumerId(number),
            outlet: Outlet {
                outbox: outbox.clone(),
                channel,
                no_ack,
            },
            settings,
            reply: reply(outbox, number, no_ack),
        };
        self.ask(node, group, request);
        number
    }

    fn cancel_some(&mut self, node: u32, group: GroupId) {
        let there = self.clients.of(node, group);
        if !there.is_empty() {
            let number = there[self.random.below(there.len() as u64) as usize];
            self.cancel(node, group, number);
        }
    }

    /// Of a queue with a single active consumer that one goes, and somebody comes.
    pub fn another_consumes(&mut self) {
        let books = self.ledger.books.iter();
        let single = books.filter(|(_, book)| book.terms.settings().single_active);
        let groups: Vec<GroupId> = single.map(|(group, _)| *group).collect();
        for group in groups {
            if self.random.below(10) > 0 {
                continue;
            }
            let active = self.ledger.books[&group].actives.active();
            if let Some((number, node)) = active.filter(|(_, node)| self.node(*node).goes_on()) {
                self.cancel(node, group, number);
            }
            let node = 1 + self.random.below(self.nodes.len() as u64) as u32;
            if self.node(node).goes_on() {
                self.consume(node, group);
            }
        }
    }

    /// A consumer is done with all of this, and goes.
    pub fn done_with(&mut self, node: u32, group: GroupId, number: u64, taken: &[Given]) {
        for (seq, id) in taken {
            acks::acked(&mut self.ledger, group, node, *seq, *id);
        }
        let seqs = self.let_go(group, taken);
        let (consumer, disposal) = (Some(ConsumerId(number)), Disposal::Accepted);
        let request = Request::Settle {
            consumer,
            seqs,
            disposal,
        };
        self.ask(node, group, request);
        self.cancel(node, group, number);
    }

    pub fn cancel(&mut self, node: u32, group: GroupId, number: u64) {
        self.ledger
            .tell(|| format!("{number} consumes no more from {group:?} on {node}"));
        active::went(&mut self.ledger, group, number);
        let mut since = None;
        if let Some(consumer) = self.clients.consumers.get_mut(&number) {
            (since, consumer.goes) = (consumer.since.take(), true);
        }
        if let Some(since) = since.filter(|since| self.ledger.is_well_since(node, *since))
            && since + unused::LATE <= self.ledger.now
        {
            self.is_used(group);
        }
        let consumer = ConsumerId(number);
        let question = self.clients.next_number();
        let reply = Some(reply(self.outbox(node, group), question, false));
        self.ask(node, group, Request::Cancel { consumer, reply });
    }

    pub fn get(&mut self, node: u32, group: GroupId) {
        let settings = self.terms[&group].settings();
        // Clients are refused that (405).
        if settings.single_active && settings.active_by_priority {
            return self.consume(node, group);
        }
        let no_ack = self.has_no_ack(group) && self.random.chance();
        let question = self.clients.next_number();
        self.clients.gets.insert(question, no_ack);
        let reply = reply(self.outbox(node, group), question, no_ack);
        self.ask(node, group, Request::Get { no_ack, reply });
    }

    /// Some of what one client of a node holds.
    pub fn some_held(&mut self, node: u32, group: GroupId) -> Option<(Option<u64>, Vec<Given>)> {
        let all = self.held(node, group);
        if all.is_empty() {
            return None;
        }
        let (_, Held { consumer, .. }) = all[self.random.below(all.len() as u64) as usize];
        let most = 1 + self.random.below(8) as usize;
        let some = all.into_iter().filter(|(_, held)| held.consumer == consumer);
        let some: Vec<_> = some.map(|(seq, held)| (seq, held.id)).take(most).collect();
        Some((consumer, some))
    }

    pub fn held(&self, node: u32, group: GroupId) -> Vec<(Seq, Held)> {
        let hands = self.ledger.books.get(&group).map(|book| &book.hands);
        let held = hands.into_iter().flatten().filter(|(_, held)| held.node == node);
        held.map(|(seq, held)| (*seq, *held)).collect()
    }

    /// They are in nobody's hands any more.
    pub fn let_go(&mut self, group: GroupId, some: &[Given]) -> Ranges {
        if let Some(book) = self.ledger.books.get_mut(&group) {
            book.hands
                .retain(|seq, _| !some.iter().any(|(gone, _)| gone == seq));
        }
        some.iter().map(|(seq, _)| *seq).collect()
    }

    fn settle(&mut self, node: u32, group: GroupId) {
        let Some((consumer, some)) = self.some_held(node, group) else {
            return;
        };
        let disposal = match self.random.below(5) {
            0 => Disposal::Rejected,
            _ => Disposal::Accepted,
        };
        for (seq, id) in &some {
            match disposal {
                Disposal::Accepted => acks::acked(&mut self.ledger, group, node, *seq, *id),
                Disposal::Rejected => self.know(group, *id, |known| known.rejected = true),
            }
        }
        let seqs = self.let_go(group, &some);
        let consumer = consumer.map(ConsumerId);
        let request = Request::Settle {
            consumer,
            seqs,
            disposal,
        };
        self.ask(node, group, request);
    }

    fn purge(&mut self, node: u32, group: GroupId) {
        if let Some(book) = self.ledger.books.get_mut(&group) {
            book.purges += 1;
        }
        self.ledger.tell(|| format!("{group:?} is purged on {node}"));
        let question = self.clients.next_number();
        let reply = reply(self.outbox(node, group), question, false);
        self.ask(node, group, Request::Purge { reply });
    }

    fn is_purged(&mut self, group: GroupId) {
        if let Some(book) = self.ledger.books.get_mut(&group) {
            book.purges -= 1;
        }
    }

    fn know(&mut self, group: GroupId, id: Id, change: impl FnOnce(&mut Known)) {
        let book = self.ledger.books.get_mut(&group);
        if let Some(known) = book.and_then(|book| book.known.get_mut(&id)) {
            change(known);
        }
    }

    /// Somebody uses the queue now.
    fn is_used(&mut self, group: GroupId) {
        let now = self.ledger.now;
        if let Some(book) = self.ledger.books.get_mut(&group) {
            book.used = now;
        }
    }

    /// A leader says that nobody uses its queue. Somebody declares it again, as long as there are clients.
    pub fn ends_unused(&mut self, by: Leadership) {
        self.ledger.tell(|| format!("{by:?} ends unused"));
        self.ledger.exercised(Deed::Expires);
        let of_group = self.clients.consumers.values().filter(|it| it.group == by.group);
        let well = of_group.filter_map(|it| {
            it.since
                .filter(|since| self.ledger.is_well_since(it.node, *since))
        });
        let consumed = well.min();
        unused::ended(&mut self.ledger, by, consumed);
        if !self.is_calm && self.node(by.node).leads(by.group) == Some(by.term) {
            self.is_used(by.group);
            self.submit(by, Request::Use { reply: None });
        }
    }

    /// All clients give back what they hold, and consume no more.
    pub fn clients_leave(&mut self) {
        self.clients_are_gone = true;
        let ways: Vec<(u32, GroupId)> = self.accesses.keys().copied().collect();
        for (node, group) in ways {
            for number in self.clients.of(node, group) {
                self.cancel(node, group, number);
            }
            for (seq, held) in self.held(node, group) {
                self.return_these(node, group, held.consumer, &[(seq, held.id)], Way::Unseen);
            }
        }
    }

    /// Clients of a node look at what has come for them.
    pub fn clients_are_told(&mut self, node: u32) {
        for (group, since, event) in self.take_events(node) {
            match event {
                Event::Confirm { channel, numbers, .. } if channel == LETTERS => {
                    self.letters_arrived(&numbers)
                }
                // A queue that is full has refused them, or nobody was reached.
                Event::Reject {
                    channel,
                    numbers,
                    unreached,
                    ..
                } if channel == LETTERS => match unreached {
                    true => self.letters_return(&numbers),
                    false => self.letters_refused(&numbers),
                },
                Event::Confirm { numbers, .. } => {
                    self.ledger.tell(|| format!("{group:?} confirms {numbers:?}"));
                    answers::confirmed(&mut self.ledger, group, &numbers);
                }
                Event::Reject { numbers, .. } => {
                    self.ledger.tell(|| format!("{group:?} refuses {numbers:?}"));
                    answers::refused(&mut self.ledger, group, &numbers);
                }
                Event::Deliver {
                    consumer, delivery, ..
                } => {
                    let known = self.clients.consumers.get(&consumer.0);
                    let no_ack = known.is_some_and(|it| it.no_ack);
                    let to = Receiver {
                        consumer: Some(consumer.0),
                        no_ack,
                        since,
                    };
                    self.receive(node, group, to, &delivery);
                }
                Event::Answer { question, answer, .. } => {
                    let no_ack = self.clients.gets.remove(&question.0).unwrap_or_default();
                    let to = Receiver {
                        consumer: None,
                        no_ack,
                        since,
                    };
                    let now = self.ledger.now;
                    match (&answer, self.clients.consumers.get_mut(&question.0)) {
                        (Some(Answer::Consuming), Some(it)) => {
                            it.since = (!it.goes).then_some(now);
                            active::stands(&mut self.ledger, group, question.0);
                        }
                        (Some(Answer::Consuming), None) => {}
                        _ => active::went(&mut self.ledger, group, question.0),
                    }
                    match answer {
                        Some(Answer::Got { delivery, .. }) => {
                            self.receive(node, group, to, &delivery);
                        }
                        Some(Answer::Purged(_)) => self.is_purged(group),
                        _ => {}
                    }
                }
                Event::ConsumerCancelled { consumer, .. } => {
                    self.ledger.tell(|| format!("{consumer:?} is cancelled"));
                    self.clients.consumers.remove(&consumer.0);
                    active::went(&mut self.ledger, group, consumer.0);
                }
                _ => {}
            }
        }
    }

    fn receive(&mut self, node: u32, group: GroupId, to: Receiver, delivery: &Delivery) {
        let given = arrives(&mut self.ledger, group, node, to, delivery);
        if let Some(consumer) = to.consumer {
            let (consumer, bytes) = (ConsumerId(consumer), delivery.bytes() as u32);
            self.ask(node, group, Request::Flow { consumer, bytes });
        }
        match &mut self.drained {
            Some(drained) if drained.consumer == to.consumer => drained.taken.extend(given),
            // It was under way to a client that has left.
            _ if self.clients_are_gone && !to.no_ack => {
                self.return_these(node, group, to.consumer, &given, Way::Unseen);
            }
            _ if !to.no_ack => self.reject_poison(node, group, to.consumer, &given),
            _ => {}
        }
    }
}
