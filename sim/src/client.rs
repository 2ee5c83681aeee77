//! A client without a socket: what a connection would do with its session.

use crate::coverage::Act;
use crate::invariants::{acks, active, dead, expired, invented, order};
use crate::ledger::{Id, Ledger, QueueKey};
use crate::mutant::Mutant;
use crate::routes::{Colour, Exchange};
use crate::terms::Said;
use crate::world::Simulated;
use broker::{
    Answer, Broker, ChannelId, ConsumerSettings, Deleting, Delivery, Disposal, Event, Outbox, Publisher,
    QueueDeleted, QueueQuestion, Refusal, Session, Subscription, Ticket, Unconfirmed, User,
};
use model::properties::Properties;
use model::{ConsumerId, Message, QueueId, Ranges, RouteBuf, Seq};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use storage::World;
use storage::faulty::Random;

/// The one channel of a client.
pub const CHANNEL: ChannelId = ChannelId(1);

/// Where a client publishes to.
#[derive(Debug, Clone, Copy)]
pub enum To {
    Queue(QueueKey),
    /// Two colours, of which most exchanges look at the first.
    Exchange(Exchange, Colour, Colour),
}

/// A client.
pub struct Client {
    world: Arc<Simulated>,
    pub session: Arc<Session>,
    outbox: Arc<Outbox>,
    publisher: Publisher,
    /// Who it is in the ledger.
    number: u32,
    unconfirmed: Unconfirmed,
    /// The messages that wait for their confirms, and where they went, by their numbers.
    published: BTreeMap<u64, (Id, Vec<QueueKey>)>,
    pub consumers: Vec<Consumer>,
    durable: BTreeSet<Ticket>,
    /// What it has asked of a queue, and the answer.
    asked: Option<QueueQuestion>,
    answer: Option<Answer>,
    /// When it had taken everything that was there for it.
    took: Duration,
}

/// How somebody consumes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish {
    /// 0: without a limit.
    pub prefetch: u32,
    /// What was sent counts as acknowledged.
    pub no_ack: bool,
    pub priority: i64,
}

impl Wish {
    /// Decides.
    pub fn choose(random: &mut Random) -> Self {
        Self {
            prefetch: random.below(30) as u32,
            no_ack: random.below(6) == 0,
            priority: random.below(3) as i64,
        }
    }
}

/// One of its consumers, with what it holds.
pub struct Consumer {
    subscription: Subscription,
    pub key: QueueKey,
    no_ack: bool,
    pub held: Vec<(Id, Seq)>,
    /// Everything that it was given, in order.
    pub seen: Vec<Id>,
}

impl Client {
    /// Logs in.
    pub fn open(world: &Arc<Simulated>, broker: &Arc<Broker>, number: u32) -> Result<Self, String> {
        let outbox = Arc::new(Outbox::new());
        let session = broker
            .connect(User::named("guest"), "/", outbox.clone())
            .map_err(|refusal| format!("{refusal:?}"))?;
        Ok(Self {
            world: world.clone(),
            publisher: session.publisher(CHANNEL, 1),
            took: world.elapsed(),
            session,
            outbox,
            number,
            unconfirmed: Unconfirmed::default(),
            published: BTreeMap::new(),
            consumers: Vec::new(),
            durable: BTreeSet::new(),
            asked: None,
            answer: None,
        })
    }

    /// Publishes some messages to a queue or to an exchange.
    pub fn publish(&mut self, ledger: &mut Ledger, random: &mut Random, to: To) {
        let count = 1 + random.below(12);
        for _ in 0..count {
            self.publish_one(ledger, random, to);
        }
        let _ = self.publisher.flush();
    }

    fn publish_one(&mut self, ledger: &mut Ledger, random: &mut Random, to: To) {
        let mut said = Said::choose(random);
        let (exchange, key, queues) = match to {
            To::Queue(queue) => match ledger.queues.get(&queue) {
                Some(known) => ("", known.name.clone(), vec![queue]),
                None => return,
            },
            To::Exchange(exchange, first, second) => {
                said.colour = (exchange == Exchange::Headers).then_some(first);
                let routed = ledger.routed(exchange, first, second);
                (exchange.name(), exchange.key(first, second), routed)
            }
        };
        let at = ledger.tick();
        let length = match random.below(20) {
            0 => 20_000 + random.below(40_000),
            1..=4 => 1_000 + random.below(4_000),
            _ => 8 + random.below(100),
        };
        let mut body = vec![at as u8; length.max(8) as usize];
        body[..8].copy_from_slice(&at.to_le_bytes());
        if ledger.is(Mutant::OtherBody) && at.is_multiple_of(50) {
            body.extend([!(at as u8)]);
        }
        // A queue whose time is over may go just now.
        let stays = |key: &&QueueKey| {
            ledger
                .queues
                .get(*key)
                .is_some_and(|it| !it.may_leave(ledger.now))
        };
        let sure = queues.iter().filter(stays).count();
        for queue in &queues {
            ledger.published(*queue, at, self.number, &said);
        }
        if let Some(mutant) = ledger.mutant {
            mutant.says(&mut said);
        }
        let properties = said.encode();
        let route = RouteBuf::new(exchange.as_bytes(), key.as_bytes());
        let number = self.unconfirmed.next();
        let message = Message::new(route.as_route(), Properties::amqp091(&properties), &body);
        if ledger.is(Mutant::Doubled) && at.is_multiple_of(50) {
            let _ = self.publisher.publish(&message, None);
        }
        if ledger.is(Mutant::EarlyConfirm) {
            ledger.confirmed(at, &queues);
        }
        let taken = self.publisher.publish(&message, Some(number));
        self.unconfirmed
            .published(taken.as_ref().map_or(0, |taken| taken.queues));
        match taken {
            Ok(taken) if (sure..=queues.len()).contains(&(taken.queues as usize)) => {}
            Ok(taken) => {
                return ledger.violated(
                    "messages go where they are routed",
                    format!("{} queues for '{key}', not {}", taken.queues, queues.len()),
                );
            }
            Err(refusal) => return ledger.violated("publishes are taken", format!("{refusal:?}")),
        }
        ledger.tell(|| format!("{} publishes {at} to {queues:?} as {said:?}", self.number));
        if !queues.is_empty() {
            self.published.insert(number, (at, queues));
        }
    }

    /// Publishes a message again that is in the queue, behind everybody's back.
    pub fn publish_again(&mut self, name: &str, id: Id) {
        let mut body = vec![id as u8; 8];
        body.copy_from_slice(&id.to_le_bytes());
        let route = RouteBuf::new(b"", name.as_bytes());
        let properties = Said {
            persistent: true,
            ..Said::default()
        };
        let properties = properties.encode();
        let message = Message::new(route.as_route(), Properties::amqp091(&properties), &body);
        let _ = self.publisher.publish(&message, None);
        let _ = self.publisher.flush();
    }

    /// Begins to consume.
    pub fn consume(&mut self, ledger: &mut Ledger, key: QueueKey, wish: Wish) {
        let Some(queue) = ledger.queues.get(&key) else {
            return;
        };
        let name = queue.name.clone();
        // Of several consumers the one with the highest priority is active, also if it comes later.
        let priority = match queue.terms.has_single_active {
            true => 0,
            false => wish.priority,
        };
        let settings = ConsumerSettings {
            no_ack: wish.no_ack,
            exclusive: false,
            prefetch: wish.prefetch,
            priority,
            window: 1 << 20,
            paused: false,
        };
        match self.session.consume(CHANNEL, &name, settings, None) {
            Ok(subscription) => {
                ledger.did(Act::Consumed);
                self.consumers.push(Consumer {
                    subscription,
                    key,
                    no_ack: wish.no_ack,
                    held: Vec::new(),
                    seen: Vec::new(),
                });
                if let Some(queue) = ledger.queues.get_mut(&key) {
                    queue.was_used = true;
                    queue.may_send_unrecorded |= wish.no_ack;
                }
            }
            Err(refusal) => ledger.violated("queues can be consumed from", format!("{name}: {refusal:?}")),
        }
    }

    /// Takes in what the node has for it. False if there was nothing.
    pub fn take(&mut self, ledger: &mut Ledger) -> bool {
        ledger.now = self.world.elapsed();
        let mut events = Vec::new();
        self.outbox.take(&mut events, Waker::noop());
        let some = !events.is_empty();
        for event in events {
            match event {
                Event::Deliver {
                    consumer, delivery, ..
                } => self.delivered(ledger, consumer, &delivery),
                Event::Confirm { queue, numbers, .. } => self.confirmed(ledger, queue, &numbers),
                Event::Reject { numbers, .. } => self.refused(ledger, &numbers),
                Event::Durable { ticket, .. } => {
                    self.durable.insert(ticket);
                }
                Event::ConsumerCancelled { consumer, .. } => {
                    self.consumers
                        .retain(|known| known.subscription.consumer() != consumer);
                }
                Event::Answer { question, answer, .. } if self.asked == Some(question) => {
                    self.answer = answer
                }
                _ => {}
            }
        }
        if !some {
            self.took = ledger.now;
        }
        some
    }

    /// Deletes a queue.
    pub fn delete_queue(&mut self, ledger: &mut Ledger, name: &str) -> Result<QueueDeleted, Refusal> {
        let asked = self.session.delete_queue(CHANNEL, name, false, false)?;
        let deletion = match asked {
            Deleting::Done(deleted) => return Ok(deleted),
            Deleting::Asked(deletion) => deletion,
        };
        self.asked = Some(deletion.question());
        self.take(ledger);
        let deleting = self
            .session
            .go_on_deleting(CHANNEL, deletion, self.answer.take())?;
        match deleting {
            Deleting::Done(deleted) => Ok(deleted),
            // A queue with very many bindings, which no client here makes.
            Deleting::Asked(_) => Ok(QueueDeleted::default()),
        }
    }

    /// True if the change of this ticket is durable. Told once.
    pub fn is_durable(&mut self, ticket: Ticket) -> bool {
        self.durable.remove(&ticket)
    }

    fn confirmed(&mut self, ledger: &mut Ledger, queue: Option<QueueId>, numbers: &Ranges) {
        let published = &mut self.published;
        self.unconfirmed.confirmed(queue, numbers, |number| {
            if let Some((id, to)) = published.remove(&number) {
                ledger.note(id);
                ledger.tell(|| format!("{id} is confirmed"));
                ledger.confirmed(id, &to);
            }
        });
    }

    fn refused(&mut self, ledger: &mut Ledger, numbers: &Ranges) {
        let published = &mut self.published;
        self.unconfirmed.rejected(numbers, |number| {
            if let Some((id, to)) = published.remove(&number) {
                ledger.note(!id);
                ledger.tell(|| format!("{id} is refused"));
                ledger.refusals += 1;
                ledger.did(Act::Refused);
                ledger.refused(id, &to);
            }
        });
    }

    fn delivered(&mut self, ledger: &mut Ledger, consumer: ConsumerId, delivery: &Delivery) {
        let marked = delivery.redelivered && !ledger.is(Mutant::Unmarked);
        let known = |known: &&mut Consumer| known.subscription.consumer() == consumer;
        let Some(consumer) = self.consumers.iter_mut().find(known) else {
            return;
        };
        let mut seqs: Vec<Seq> = delivery.seqs.iter().collect();
        if ledger.is(Mutant::Disordered) {
            seqs.reverse();
        }
        for seq in seqs {
            let body = delivery.block.message((seq - delivery.base) as usize).body;
            let id = body.first_chunk().map_or(0, |bytes| Id::from_le_bytes(*bytes));
            let key = consumer.key;
            ledger.deliveries += 1;
            ledger.did(match marked {
                true => Act::Redelivered,
                false => Act::Delivered,
            });
            ledger.note(id ^ seq << 32);
            ledger.tell(|| {
                let number = consumer.subscription.consumer();
                format!("queue {key} delivers {id} as {seq} to {number:?}, redelivered: {marked}")
            });
            if body.iter().skip(8).any(|byte| *byte != id as u8) {
                ledger.violated("no message is invented", format!("message {id} has another body"));
            }
            if ledger
                .queues
                .get(&key)
                .is_some_and(|queue| queue.has_dead_letters)
            {
                dead::arrived(ledger, key, id, delivery.redelivered);
            } else {
                invented::check(ledger, key, id);
                acks::check(ledger, key, id);
                expired::check(ledger, key, id, self.took);
                active::check(ledger, key, consumer.subscription.consumer().0);
                order::delivered(ledger, key, consumer.subscription.consumer().0, id, marked);
            }
            let queue = ledger.queues.get_mut(&key);
            if let Some(copy) = queue.and_then(|queue| queue.copies.get_mut(&id)) {
                (copy.delivered, copy.held) = (true, true);
            }
            match consumer.no_ack {
                true => consumer.was_sent(ledger, id),
                false => consumer.held.push((id, seq)),
            }
            consumer.seen.push(id);
        }
        consumer.subscription.flow(delivery.bytes() as u32);
    }

    /// Settles some of what one of its consumers holds, or gives it back.
    pub fn settle(&mut self, ledger: &mut Ledger, random: &mut Random) {
        if self.consumers.is_empty() {
            return;
        }
        let at = random.below(self.consumers.len() as u64) as usize;
        let count = random.below(self.consumers[at].held.len() as u64 + 1) as usize;
        // From the front as most clients do, or from the middle.
        let from = match random.below(3) {
            0 => random.below((self.consumers[at].held.len() - count) as u64 + 1) as usize,
            _ => 0,
        };
        let held: Vec<(Id, Seq)> = self.consumers[at].held.drain(from..from + count).collect();
        match random.below(5) {
            0 => self.consumers[at].give_back(ledger, &held),
            1 => self.consumers[at].done(ledger, &held, Disposal::Rejected),
            _ => self.consumers[at].done(ledger, &held, Disposal::Accepted),
        }
    }

    /// Ends a consumer, which gives back what it holds.
    pub fn cancel(&mut self, ledger: &mut Ledger, at: usize) {
        ledger.did(Act::Cancelled);
        let (consumer, key) = (&self.consumers[at].subscription, self.consumers[at].key);
        if let Some(queue) = ledger.queues.get_mut(&key) {
            queue.left.insert(consumer.consumer().0);
        }
        self.consumers[at].subscription.cancel();
        self.take(ledger);
        if at < self.consumers.len() {
            let mut consumer = self.consumers.swap_remove(at);
            let held = std::mem::take(&mut consumer.held);
            consumer.give_back(ledger, &held);
        }
    }

    /// Ends in good order.
    pub fn close(mut self, ledger: &mut Ledger) {
        while !self.consumers.is_empty() {
            self.cancel(ledger, 0);
        }
        self.take(ledger);
        self.session.close();
    }
}

impl Consumer {
    /// Everything that it holds is done with.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        let held = std::mem::take(&mut self.held);
        self.done(ledger, &held, Disposal::Accepted);
    }

    /// A message was sent to it that counts as settled by that.
    fn was_sent(&self, ledger: &mut Ledger, id: Id) {
        ledger.did(Act::DeliveredSettled);
        ledger.gone(self.key, id);
        ledger.acks += 1;
        dead::settled(ledger, self.key, id, Disposal::Accepted);
    }

    fn done(&self, ledger: &mut Ledger, held: &[(Id, Seq)], disposal: Disposal) {
        if held.is_empty() {
            return;
        }
        ledger.tell(|| format!("queue {}: {disposal:?}: {held:?}", self.key));
        ledger.did(match disposal {
            Disposal::Rejected => Act::Rejected,
            _ => Act::Accepted,
        });
        for (id, _) in held {
            ledger.gone(self.key, *id);
            ledger.acks += 1;
            dead::settled(ledger, self.key, *id, disposal);
        }
        if ledger.is(Mutant::LostSettle) {
            return;
        }
        let disposal = match ledger.is(Mutant::LostRejection) {
            true => Disposal::Accepted,
            false => disposal,
        };
        let consumer = Some(self.subscription.consumer());
        self.subscription.queue().settle(consumer, seqs(held), disposal);
    }

    fn give_back(&self, ledger: &mut Ledger, held: &[(Id, Seq)]) {
        if held.is_empty() {
            return;
        }
        ledger.tell(|| format!("queue {}: given back: {held:?}", self.key));
        ledger.did(Act::GivenBack);
        let is_told = !ledger.is(Mutant::GivenTwice);
        if is_told {
            held.iter().for_each(|(id, _)| ledger.returned(self.key, *id));
        }
        let consumer = Some(self.subscription.consumer());
        self.subscription.queue().give_back(consumer, seqs(held), true);
    }
}

fn seqs(held: &[(Id, Seq)]) -> Ranges {
    let sorted: BTreeSet<Seq> = held.iter().map(|(_, seq)| *seq).collect();
    sorted.into_iter().collect()
}
