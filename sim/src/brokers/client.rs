//! A broker that runs, and its client.

use super::ledger::Id;
use crate::world::until_power_cut;
use broker::groups::NodeId;
use broker::queues::Work;
use broker::{
    Broker, ChannelId, DeclareQueue, Outbox, Publisher, QueueRef, RefusalKind, Session, Subscription, User,
};
use model::properties::{Properties, PropertiesBuilder};
use model::{ConsumerId, Message, Ranges, RouteBuf, Seq};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub const CHANNEL: ChannelId = ChannelId(1);

/// The queue's name.
pub const QUEUE: &str = "q";

/// What the client has not acknowledged: a delivery each.
pub struct Held {
    pub consumer: Option<ConsumerId>,
    pub queue: QueueRef,
    pub seq: Seq,
    pub id: Id,
    /// So much had ended and changed by when it was delivered.
    pub before: (u64, u64),
    /// When that was.
    pub since: Duration,
}

/// What the client has asked.
pub enum Asked {
    Consuming(ConsumerId),
    Cancelling(Subscription),
    Getting(QueueRef),
}

/// See the module.
pub struct Client {
    pub broker: Arc<Broker>,
    /// How it reaches queues of others, for as long as it runs.
    _work: Arc<Work>,
    pub session: Arc<Session>,
    pub outbox: Arc<Outbox>,
    publisher: Publisher,
    /// Publishes without an answer.
    pub open: BTreeSet<u64>,
    pub consumers: BTreeMap<ConsumerId, Subscription>,
    pub held: Vec<Held>,
    /// Questions without an answer.
    pub asked: BTreeMap<u64, Asked>,
}

impl Client {
    /// # Errors
    /// The broker lets nobody in.
    pub fn connect(broker: Arc<Broker>, work: Arc<Work>) -> Result<Self, String> {
        let outbox = Arc::new(Outbox::new());
        let session = broker.connect(User::named("guest"), "/", outbox.clone());
        let session = session.map_err(|refusal| format!("{refusal:?}"))?;
        Ok(Self {
            publisher: session.publisher(CHANNEL, 1),
            broker,
            _work: work,
            session,
            outbox,
            open: BTreeSet::new(),
            consumers: BTreeMap::new(),
            held: Vec::new(),
            asked: BTreeMap::new(),
        })
    }

    /// Declares a queue. `None` if that is not decided in time, or the power is cut: it is to be done again.
    ///
    /// # Errors
    /// It is refused.
    pub fn declare(&self, declare: &DeclareQueue) -> Option<Result<(), String>> {
        let declared = until_power_cut(|| self.session.declare_queue(CHANNEL, declare.clone()));
        match declared? {
            Ok(_) => Some(Ok(())),
            // Nobody has decided, or too late to be heard.
            Err(refusal) if refusal.kind() == RefusalKind::Internal => None,
            Err(refusal) => Some(Err(refusal.to_string())),
        }
    }

    /// Publishes a message. False if it goes nowhere, since the node does not know the queue just now.
    pub fn publish(&mut self, own: NodeId, number: u64, size: usize) -> bool {
        let properties = PropertiesBuilder::new().delivery_mode(2).encode();
        let route = RouteBuf::new(b"", QUEUE.as_bytes());
        let body = format!("{} {number} {}", own.0, "x".repeat(size));
        let properties = Properties::amqp091(&properties);
        let message = Message::new(route.as_route(), properties, body.as_bytes());
        let taken = until_power_cut(|| self.publisher.publish(&message, Some(number)));
        let is_taken = matches!(taken, Some(Ok(taken)) if taken.queues > 0);
        if is_taken {
            self.open.insert(number);
        }
        is_taken
    }

    /// What was published is on its way.
    pub fn flush(&mut self) {
        until_power_cut(|| drop(self.publisher.flush()));
    }

    pub fn consume(&mut self, prefetch: u32) {
        let settings = broker::ConsumerSettings {
            no_ack: false,
            exclusive: false,
            prefetch,
            priority: 0,
            window: 1 << 16,
            paused: false,
        };
        let consume = || self.session.consume(CHANNEL, QUEUE, settings, None);
        // A queue that cannot be reached is none.
        if let Some(Ok(subscription)) = until_power_cut(consume) {
            let consumer = subscription.consumer();
            let question = subscription.question().0;
            self.asked.insert(question, Asked::Consuming(consumer));
            self.consumers.insert(consumer, subscription);
        }
    }

    pub fn cancel(&mut self) {
        if let Some((_, subscription)) = self.consumers.pop_first()
            && let Some(question) = until_power_cut(|| subscription.cancel())
        {
            self.asked.insert(question.0, Asked::Cancelling(subscription));
        }
    }

    /// One of its consumers, also one that is about to end: what comes until then is held.
    pub fn consumer(&self, consumer: ConsumerId) -> Option<&Subscription> {
        let ending = self.asked.values().filter_map(|asked| match asked {
            Asked::Cancelling(subscription) => Some(subscription),
            _ => None,
        });
        let mut all = self.consumers.values().chain(ending);
        all.find(|it| it.consumer() == consumer)
    }

    pub fn get(&mut self) {
        let get = || self.session.get(CHANNEL, QUEUE, false);
        if let Some(Ok((queue, question))) = until_power_cut(get) {
            self.asked.insert(question.0, Asked::Getting(queue));
        }
    }

    /// It is done with a delivery, or gives it back.
    pub fn settle(&self, held: &Held, gives_back: bool) {
        let (consumer, seqs) = (held.consumer, Ranges::one(held.seq));
        until_power_cut(|| match gives_back {
            true => held.queue.requeue(consumer, seqs),
            false => held.queue.settle(consumer, seqs, broker::Disposal::Accepted),
        });
    }

    /// All of its questions have an answer.
    pub fn is_answered(&self) -> bool {
        self.open.is_empty() && self.asked.is_empty()
    }
}
