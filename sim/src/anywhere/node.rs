//! A whole broker as one of several nodes, with a client. Its catalog is its own: all nodes have the same things declared in
//! the same order, so that these have the same ids everywhere.

use super::ledger::Id;
use super::wire::{End, Wire};
use crate::world::{BEGINNING_MS, Simulated, until_power_cut};
use broker::groups::NodeId;
use broker::queues::{Existing, Peers, Remote, Work};
use broker::{
    AlarmReason, Binding, Broker, ChannelId, DeclareExchange, DeclareQueue, NodeConsumer, Outbox, Publisher,
    QueueRef, Session, Subscription, User,
};
use model::table::Table;
use model::{ConsumerId, Incarnation, Message, QueueId, Ranges, Seq};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;
use storage::World;
use storage::faulty::FaultyFs;

/// The one channel of a client.
pub const CHANNEL: ChannelId = ChannelId(1);

/// The queue's name, and those of the exchanges that lead to it.
pub const QUEUE: &str = "q";
pub const ONCE: &str = "once";
pub const LATER: &str = "later";

/// What exists, and where.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// The homes of the deduplicating exchange, of the delayed one and of the queue.
    pub homes: [NodeId; 3],
    /// How long the first one remembers, in milliseconds, if not for good.
    pub ttl_ms: Option<u64>,
    /// What it remembers is on record.
    pub on_disk: bool,
}

/// The other nodes as a broker sees them that believes to be the first one, as each does whose catalog is its own.
#[derive(Debug)]
struct Named(Arc<Work>, NodeId);

/// What a node calls another one, and the other way round.
fn named(own: NodeId, node: u64) -> u64 {
    match node {
        1 => u64::from(own.0),
        it if it == u64::from(own.0) => 1,
        other => other,
    }
}

impl Peers for Named {
    fn reach(&self, node: broker::NodeId) -> Option<Arc<dyn Remote>> {
        self.0.reach(broker::NodeId(named(self.1, node.0)))
    }

    fn own(&self) -> Option<Incarnation> {
        self.0.own()
    }

    fn consumer(&self, queue: QueueId, consumer: ConsumerId) -> Option<NodeConsumer> {
        self.0.consumer(queue, consumer)
    }

    fn runs(&self, whose: Incarnation) -> bool {
        self.0.runs(whose)
    }

    fn alarm(&self, reason: Option<AlarmReason>) {
        Peers::alarm(self.0.as_ref(), reason);
    }

    fn reply(&self, whose: Incarnation, vhost: &str, address: &str, message: &Message<'_>) {
        self.0.reply(whose, vhost, address, message);
    }
}

/// What a client has not acknowledged: a delivery each.
pub struct Held {
    pub consumer: Option<ConsumerId>,
    pub queue: QueueRef,
    pub seq: Seq,
    pub id: Id,
}

/// What a client has asked.
pub enum Asked {
    Consuming(ConsumerId),
    Cancelling(Subscription),
    Getting(QueueRef),
}

/// A node as a process, and its client.
pub struct Node {
    pub world: Arc<Simulated>,
    pub work: Arc<Work>,
    pub broker: Arc<Broker>,
    session: Arc<Session>,
    pub outbox: Arc<Outbox>,
    publisher: Publisher,
    /// Publishes without an answer.
    pub open: BTreeSet<u64>,
    pub consumers: BTreeMap<ConsumerId, Subscription>,
    pub held: Vec<Held>,
    /// Questions without an answer.
    pub asked: BTreeMap<u64, Asked>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.world.abandon();
    }
}

/// What a node's wall clock shows at the beginning: each another day, as nothing may depend on another one's.
pub fn wall_ms(id: NodeId, later_ms: u64) -> u64 {
    u64::from(id.0) * 86_400_000 / 2 + later_ms
}

impl Node {
    /// Starts it. `None` if the power fails meanwhile.
    pub fn open(
        (id, start): (NodeId, u64),
        files: &FaultyFs,
        (now, wall_ms): (Duration, u64),
        seed: u64,
        wire: &Arc<Wire>,
    ) -> Result<Option<Self>, String> {
        let world = Simulated::new(files.clone(), now, seed);
        world.set_wall(wall_ms);
        let opened = until_power_cut(|| Broker::open(crate::options(&world)));
        let Some(opened) = opened else { return Ok(None) };
        let broker = opened.map_err(|error| format!("{id:?} does not start: {error:?}"))?;
        let existing: Weak<dyn Existing> = Arc::downgrade(&broker) as Weak<dyn Existing>;
        let end = Arc::new(End(id, wire.clone()));
        let work = Work::new(id, start, end, existing, Arc::default());
        broker.join(Arc::new(Named(work.clone(), id)));
        let outbox = Arc::new(Outbox::new());
        let session = broker
            .connect(User::named("guest"), "/", outbox.clone())
            .map_err(|refusal| format!("{refusal:?}"))?;
        Ok(Some(Self {
            publisher: session.publisher(CHANNEL, 1),
            world,
            work,
            broker,
            session,
            outbox,
            open: BTreeSet::new(),
            consumers: BTreeMap::new(),
            held: Vec::new(),
            asked: BTreeMap::new(),
        }))
    }

    /// Declares the queue and the exchanges, and waits until that is safe.
    pub fn declare(&self, own: NodeId, declared: Declared) -> Result<(), String> {
        let homes = declared
            .homes
            .map(|home| vec![broker::NodeId(named(own, u64::from(home.0)))]);
        let [once, later, queue] = homes;
        let mut cache = Table::new().with("x-cache-size", 10_000).with(
            "x-cache-persistence",
            if declared.on_disk { "disk" } else { "memory" },
        );
        if let Some(ttl_ms) = declared.ttl_ms {
            cache = cache.with("x-cache-ttl", ttl_ms as i64);
        }
        let delayed = Table::new().with("x-delayed-type", "fanout");
        let queue = DeclareQueue {
            name: QUEUE.into(),
            durable: true,
            homes: queue,
            ..DeclareQueue::default()
        };
        let refused = |refusal: broker::Refusal| refusal.to_string();
        // Whether a queue that is elsewhere can be reached is another question.
        match self.session.declare_queue(CHANNEL, queue) {
            Ok(_) | Err(broker::Refusal::QueueDown { .. }) => {}
            Err(refusal) => return Err(refused(refusal)),
        }
        let kinds = [
            (ONCE, "x-message-deduplication", cache, once),
            (LATER, "x-delayed-message", delayed, later),
        ];
        for (name, kind, arguments, homes) in kinds {
            let exchange = DeclareExchange {
                name: name.into(),
                kind: kind.into(),
                durable: true,
                arguments,
                homes,
                ..DeclareExchange::default()
            };
            let declared = self.session.declare_exchange(CHANNEL, exchange);
            declared.map_err(refused)?;
            let binding = Binding {
                source: name,
                destination: QUEUE,
                routing_key: b"",
                arguments: Table::new(),
            };
            self.session.bind_queue(CHANNEL, binding).map_err(refused)?;
        }
        while self.world.step() {}
        Ok(())
    }

    /// What its clock shows, in milliseconds after the same beginning for all.
    pub fn clock_ms(&self) -> u64 {
        self.world.wall_ms().saturating_sub(BEGINNING_MS - 86_400_000)
    }

    /// How many queues go this message's way.
    pub fn publish(&mut self, message: &Message<'_>, number: u64) -> Result<Option<u32>, String> {
        let taken = until_power_cut(|| self.publisher.publish(message, Some(number)));
        match taken {
            None => Ok(None),
            Some(Ok(taken)) => Ok(Some(taken.queues)),
            Some(Err(refusal)) => Err(refusal.to_string()),
        }
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
            self.asked
                .insert(subscription.question().0, Asked::Consuming(consumer));
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
            true => held.queue.give_back(consumer, seqs, true),
            false => held.queue.settle(consumer, seqs, broker::Disposal::Accepted),
        });
    }

    /// Its client leaves, then it ends in good order. It has no links any more.
    pub fn close(&mut self) {
        while !self.consumers.is_empty() {
            self.cancel();
        }
        let held = std::mem::take(&mut self.held);
        held.iter().for_each(|held| self.settle(held, true));
        until_power_cut(|| {
            self.session.close();
            self.work.close();
            self.broker.close();
        });
    }

    /// True if nobody holds anything of the queue, which is here.
    pub fn has_nothing_held(&self) -> bool {
        let mut has_none = true;
        self.broker
            .queues()
            .for_each(|queue| has_none &= !queue.kind().is_of_clients() || queue.status().unacked == 0);
        has_none
    }

    /// True if exchanges have nothing on their way from here.
    pub fn has_nothing_kept(&self) -> bool {
        let mut has_none = true;
        self.broker.queues().for_each(|queue| {
            let status = queue.status();
            has_none &= queue.kind().is_of_clients()
                || status.ready == 0 && status.persistent == 0 && status.memory == 0;
        });
        has_none
    }
}
