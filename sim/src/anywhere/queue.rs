//! A classic queue through other nodes: clients of two nodes publish to it, consume and get from it while links break and lose
//! frames, while its home node's power is cut at any write, and while nodes start again. What was confirmed is there, nothing is
//! there twice, everybody is answered, and an acknowledgement counts for nothing but its message. On half of the seeds the two
//! have a link with each other now and then, through which each reaches the queue if it has no link of its own.

use super::kept::Exchanges;
use super::ledger::{Id, Ledger, Sent};
use super::wire::{End, Wire, heard_start};
use crate::world::{Simulated, until_power_cut};
use broker::groups::alone::{self, Alone};
use broker::groups::{Links, NodeId, Outlet, Receipt, Reply};
use broker::queues::{Existing, Peers, Queue, Remote, Work, alone as queues};
use broker::{Answer, ChannelId, ConsumerSettings, Delivery, Disposal, Event, Outbox, QueueQuestion};
use bytes::Bytes;
use cluster::Settings;
use model::properties::Properties;
use model::{BlockBuilder, ConsumerId, Message, QueueId, Ranges, RouteBuf, Seq};
use queue::{Request, store};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;
use storage::LogOptions;
use storage::faulty::{Fault, FaultyFs, Random};

const QUEUE: QueueId = QueueId(17);
const CHANNEL: ChannelId = ChannelId(1);
const HOME: NodeId = NodeId(1);
const CLIENTS: [NodeId; 2] = [NodeId(2), NodeId(3)];
const TICK: Duration = Duration::from_millis(100);

/// Once everything has healed, all publishes are answered and all messages can be had within so many ticks.
const SERVES_WITHIN: usize = 100;

/// Nobody needs handles and sessions that have been idle for so many ticks.
const IDLE: usize = 150;

struct Nowhere;

impl Links for Nowhere {
    fn send(&self, _: NodeId, _: Bytes) {}

    fn bulk(&self, _: NodeId, _: Bytes) {}
}

/// What a node has: the queue, or nothing.
struct Exists(Option<Arc<Queue>>);

impl Existing for Exists {
    fn here(&self, queue: QueueId) -> Option<Arc<Queue>> {
        self.0.clone().filter(|it| it.id == queue)
    }

    fn version(&self) -> u64 {
        1
    }

    fn moved(&self) {}
}

/// The home node as a process.
struct Home {
    world: Arc<Simulated>,
    work: Arc<Work>,
    queue: Arc<Queue>,
    _exists: Arc<Exists>,
    alone: Alone,
}

impl Drop for Home {
    fn drop(&mut self) {
        self.world.abandon();
    }
}

/// What a client has and has not acknowledged: a delivery each.
#[derive(Clone, Debug)]
struct Held {
    consumer: Option<ConsumerId>,
    seq: Seq,
    id: Id,
}

/// A node with clients.
struct Clients {
    node: NodeId,
    start: u64,
    linked: bool,
    work: Arc<Work>,
    _exists: Arc<Exists>,
    outbox: Arc<Outbox>,
    published: u64,
    /// Publishes without an answer.
    open: BTreeSet<u64>,
    consumers: BTreeSet<ConsumerId>,
    held: Vec<Held>,
    /// Questions without an answer.
    asked: BTreeSet<u64>,
}

/// A seed's run.
pub struct Anywhere {
    files: FaultyFs,
    clock: Duration,
    random: Random,
    told: bool,
    wire: Arc<Wire>,
    home: Option<Home>,
    starts: u64,
    /// The power fails soon.
    fails: bool,
    clients: Vec<Clients>,
    /// The two nodes of clients have a link with each other now and then.
    bridges: bool,
    /// They have one.
    bridged: bool,
    numbers: u64,
    ledger: Ledger,
    /// How often links broke, the home node started again, publishes were refused, late acknowledgements came, and something was
    /// published through the other node.
    pub counts: [u64; 5],
}

fn clients(node: NodeId, start: u64, wire: &Arc<Wire>) -> Clients {
    let exists = Arc::new(Exists(None));
    let weak: Weak<dyn Existing> = Arc::downgrade(&exists) as Weak<dyn Existing>;
    Clients {
        node,
        start,
        linked: false,
        work: Work::new(
            node,
            start,
            Arc::new(End(node, wire.clone())),
            weak,
            Arc::default(),
        ),
        _exists: exists,
        outbox: Arc::default(),
        published: 0,
        open: BTreeSet::new(),
        consumers: BTreeSet::new(),
        held: Vec::new(),
        asked: BTreeSet::new(),
    }
}

impl Clients {
    /// The queue, as long as its node can be reached.
    fn queue(&self) -> Option<Arc<dyn Remote>> {
        self.work.reach(catalog::NodeId(u64::from(HOME.0)))
    }

    fn reply(&mut self, number: u64) -> Reply {
        self.asked.insert(number);
        Reply {
            outbox: self.outbox.clone(),
            channel: CHANNEL,
            question: QueueQuestion(number),
            no_ack: false,
        }
    }
}

/// Runs a seed, and says what happens in it if it is to be `told`.
///
/// # Errors
/// What was wrong.
pub fn run(seed: u64, told: bool) -> Result<Anywhere, String> {
    let wire = Arc::<Wire>::default();
    let mut run = Anywhere {
        files: FaultyFs::new(),
        clock: Duration::from_secs(1),
        random: Random(seed),
        told,
        home: None,
        starts: 0,
        fails: false,
        clients: CLIENTS.map(|node| clients(node, 1, &wire)).into(),
        bridges: seed % 2 == 1,
        bridged: false,
        wire,
        numbers: 0,
        ledger: Ledger::new(Exchanges::new([HOME; 3], None, true)),
        counts: [0; 5],
    };
    run.start()?;
    for _ in 0..150 + run.random.below(250) {
        run.act()?;
    }
    run.finish()?;
    Ok(run)
}

impl Anywhere {
    fn tell(&self, what: impl FnOnce() -> String) {
        if self.told {
            println!("{:?} {}", self.clock, what());
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn start(&mut self) -> Result<(), String> {
        self.starts += 1;
        self.tell(|| "home starts".to_owned());
        let world = Simulated::new(self.files.clone(), self.clock, self.random.bits());
        let options = LogOptions {
            file_bytes: 16 << 10,
            size_limit: 64 << 10,
            make_ahead: false,
            retry_ms: 20,
            ..LogOptions::default()
        };
        let (dir, settings) = (Path::new("/data"), Settings::default());
        let links = Arc::new(Nowhere);
        let alone = alone::open(world.clone(), dir, options, HOME, self.starts, settings, links);
        let alone = alone.map_err(|error| format!("{error:?}"))?;
        let replaying = queues::replay(&alone, QUEUE).ok_or("the queue's journal can't be read")?;
        let queue = queues::start(&alone.node, QUEUE, replaying).ok_or("there are no such queues")?;
        alone.sweep().map_err(|error| format!("{error:?}"))?;
        let memory = self.random.below(4_000) as usize;
        until_power_cut(|| queue.submit(Request::Store(store::Request::Shrink { memory })));
        let exists = Arc::new(Exists(Some(queue.clone())));
        let weak: Weak<dyn Existing> = Arc::downgrade(&exists) as Weak<dyn Existing>;
        let work = Work::new(
            HOME,
            self.starts,
            Arc::new(End(HOME, self.wire.clone())),
            weak,
            Arc::default(),
        );
        self.home = Some(Home {
            world,
            work,
            queue,
            _exists: exists,
            alone,
        });
        Ok(())
    }

    /// The home node's process is gone, with its power or without.
    fn end(&mut self) -> Result<(), String> {
        // What has arrived is of this start.
        self.hear()?;
        self.tell(|| "home ends".to_owned());
        self.counts[1] += 1;
        self.ledger.begins(self.starts + 1);
        (0..CLIENTS.len()).for_each(|at| self.cut(at));
        let power = self.random.chance() || self.files.is_off();
        let seed = self.random.bits();
        self.files = match power {
            true => self.files.crash(seed),
            false => self.files.kill(),
        };
        self.home = None;
        self.fails = false;
        Ok(())
    }

    fn link(&mut self, at: usize) {
        self.tell(|| format!("{:?} is linked", self.clients[at].node));
        let (Some(home), clients) = (&self.home, &mut self.clients[at]) else {
            return;
        };
        if !clients.linked {
            clients.linked = true;
            clients.work.up(HOME, self.starts);
            until_power_cut(|| home.work.up(clients.node, clients.start));
        }
    }

    fn cut(&mut self, at: usize) {
        self.tell(|| format!("{:?} is cut off", self.clients[at].node));
        let clients = &mut self.clients[at];
        if !std::mem::take(&mut clients.linked) {
            return;
        }
        self.counts[0] += 1;
        let node = clients.node;
        self.wire.cut(node, HOME);
        clients.work.down(HOME);
        if let Some(home) = &self.home {
            until_power_cut(|| home.work.down(node));
        }
    }

    /// The two nodes of clients have a link.
    fn bridge(&mut self) {
        if !self.bridges || std::mem::replace(&mut self.bridged, true) {
            return;
        }
        self.tell(|| "clients are linked".to_owned());
        let (one, other) = (&self.clients[0], &self.clients[1]);
        one.work.up(other.node, other.start);
        other.work.up(one.node, one.start);
    }

    /// They have none any more.
    fn divide(&mut self) {
        if !std::mem::take(&mut self.bridged) {
            return;
        }
        self.tell(|| "clients are cut off from each other".to_owned());
        let (one, other) = (&self.clients[0], &self.clients[1]);
        self.wire.cut(one.node, other.node);
        one.work.down(other.node);
        other.work.down(one.node);
    }

    /// The node of some clients starts again.
    fn restart(&mut self, at: usize) {
        self.cut(at);
        self.divide();
        let (node, start, published) = {
            let gone = &self.clients[at];
            (gone.node, gone.start + 1, gone.published)
        };
        self.tell(|| format!("{node:?} starts again"));
        let fresh = clients(node, start, &self.wire);
        self.clients[at] = Clients { published, ..fresh };
    }

    fn act(&mut self) -> Result<(), String> {
        let at = self.random.below(CLIENTS.len() as u64) as usize;
        match self.random.below(64) {
            0..=17 => self.publish(at),
            18..=21 => self.consume(at),
            22 | 23 => self.cancel(at),
            24..=28 => self.get(at),
            29..=40 => self.settle(at),
            41..=44 => self.cut(at),
            45..=54 => self.link(at),
            55 => self.restart(at),
            60 | 61 => self.bridge(),
            62 if self.random.chance() => self.divide(),
            56 if self.home.is_some() => {
                let call = 1 + self.random.below(40);
                self.files.fail_at(call, Fault::PowerCut);
                self.fails = true;
            }
            57 => self.end()?,
            58 => {
                let before = store::LogPlace(0);
                if let Some(home) = &self.home {
                    let checkpoint = Request::Store(store::Request::Checkpoint { before });
                    until_power_cut(|| home.queue.submit(checkpoint));
                }
            }
            // For long enough that somebody gives up.
            59 => (0..60).try_for_each(|_| self.turn(0))?,
            _ => {}
        }
        let frames = self.random.below(12) as usize;
        self.turn(frames)
    }

    fn publish(&mut self, at: usize) {
        let (count, persistent) = (1 + self.random.below(4), self.random.below(3) > 0);
        let size = self.random.below(600) as usize;
        let now = self.home.as_ref().map(|home| home.alone.node.now());
        let clients = &mut self.clients[at];
        let Some(queue) = clients.queue() else { return };
        let mut ways = clients.work.detours().into_iter();
        self.counts[4] += u64::from(ways.any(|(node, _)| node == HOME));
        let mut block = BlockBuilder::default();
        let first = clients.published + 1;
        clients.published += count;
        for number in first..=clients.published {
            let body = format!("{} {number} {}", clients.node.0, "x".repeat(size));
            let (route, properties) = (RouteBuf::new(b"", b"q"), Properties::amqp091(b""));
            block.push_message(&Message::new(route.as_route(), properties, body.as_bytes()));
            clients.open.insert(number);
            let through = None;
            let sent = Sent { persistent, through };
            self.ledger.sent.insert((clients.node.0, number), sent);
        }
        let receipt = Receipt {
            outbox: clients.outbox.clone(),
            channel: CHANNEL,
            numbers: Ranges::span(first, clients.published),
            queue: None,
            timed: None,
        };
        let block = Arc::new(block.finish(persistent, now.unwrap_or_default()));
        let receipt = Some(receipt);
        queue.submit(QUEUE, Request::Enqueue { block, receipt });
    }

    fn consume(&mut self, at: usize) {
        let (consumer, question) = (ConsumerId(self.number()), self.number());
        let prefetch = self.random.below(6) as u32;
        let clients = &mut self.clients[at];
        let Some(queue) = clients.queue().filter(|_| clients.consumers.len() < 3) else {
            return;
        };
        clients.consumers.insert(consumer);
        let outlet = Outlet {
            outbox: clients.outbox.clone(),
            channel: CHANNEL,
            no_ack: false,
        };
        let settings = ConsumerSettings {
            no_ack: false,
            exclusive: false,
            prefetch,
            priority: 0,
            window: 1 << 16,
            paused: false,
        };
        let reply = clients.reply(question);
        let consume = Request::Consume {
            consumer,
            outlet,
            settings,
            reply,
        };
        queue.submit(QUEUE, consume);
    }

    fn cancel(&mut self, at: usize) {
        let question = self.number();
        let clients = &mut self.clients[at];
        // A node that cannot be reached is about to cancel all of them.
        if let Some(queue) = clients.queue()
            && let Some(consumer) = clients.consumers.pop_first()
        {
            let reply = Some(clients.reply(question));
            queue.submit(QUEUE, Request::Cancel { consumer, reply });
        }
    }

    fn get(&mut self, at: usize) {
        let question = self.number();
        let clients = &mut self.clients[at];
        if let Some(queue) = clients.queue() {
            let (no_ack, reply) = (false, clients.reply(question));
            queue.submit(QUEUE, Request::Get { no_ack, reply });
        }
    }

    /// A client is done with one of its deliveries, or gives it back. It may be late: then it counts for nothing.
    fn settle(&mut self, at: usize) {
        let (place, returns) = (self.random.bits() as usize, self.random.below(4) == 0);
        let clients = &mut self.clients[at];
        let (Some(queue), false) = (clients.queue(), clients.held.is_empty()) else {
            return;
        };
        let Held { consumer, seq, id } = clients.held.remove(place % clients.held.len());
        let node = clients.node;
        let (seqs, failed, disposal) = (Ranges::one(seq), true, Disposal::Accepted);
        let request = match returns {
            true => Request::Return {
                consumer,
                seqs,
                failed,
            },
            false => {
                if !self.ledger.accepted.insert(id) {
                    self.counts[3] += 1;
                }
                Request::Settle {
                    consumer,
                    seqs,
                    disposal,
                }
            }
        };
        self.tell(|| format!("{node:?}, of {id:?}: {request:?}"));
        queue.submit(QUEUE, request);
    }

    /// Time passes, and so many frames arrive. A home node that has lost its power starts again.
    fn turn(&mut self, frames: usize) -> Result<(), String> {
        self.clock += TICK;
        for clients in &self.clients {
            clients.work.tick();
        }
        let steps = self.random.below(30);
        if let Some(home) = &self.home {
            home.world.advance(TICK);
            until_power_cut(|| home.work.tick());
            for _ in 0..steps {
                if until_power_cut(|| home.world.step()) != Some(true) {
                    break;
                }
            }
        }
        for _ in 0..frames {
            self.arrive()?;
        }
        if self.home.is_some() && self.files.is_off() {
            self.end()?;
        }
        if self.home.is_none() && self.random.below(3) == 0 {
            // What has arrived is of an earlier start.
            self.hear()?;
            self.start()?;
        }
        self.hear()
    }

    /// One frame arrives, or is lost.
    fn arrive(&mut self) -> Result<(), String> {
        let Some((from, to, bytes)) = self.wire.lock().pop_front() else {
            return Ok(());
        };
        match self.random.below(200) == 0 {
            true => Ok(()),
            false => self.deliver(from, to, bytes.into()),
        }
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, bytes: Vec<u8>) -> Result<(), String> {
        let client = |node| self.clients.iter().position(|it| it.node == node);
        let (sender, receiver) = (client(from), client(to));
        let is_there = match (sender, receiver) {
            (Some(at), None) | (None, Some(at)) => self.clients[at].linked,
            _ => self.bridged,
        };
        match (receiver, &self.home) {
            (Some(at), _) if is_there => {
                let start = heard_start(&self.clients[at].work, HOME, self.starts);
                self.clients[at].work.receive(from, bytes);
                if start != self.starts {
                    self.hear_at(at, start)?;
                }
            }
            (None, Some(home)) if is_there => drop(until_power_cut(|| home.work.receive(from, bytes))),
            _ => {}
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<(), String> {
        (0..self.clients.len()).try_for_each(|at| self.hear_at(at, self.starts))
    }

    /// Clients of a node hear what this start of the home node has said.
    fn hear_at(&mut self, at: usize, start: u64) -> Result<(), String> {
        let mut events = Vec::new();
        self.clients[at].outbox.take_now(&mut events);
        events
            .into_iter()
            .try_for_each(|event| self.hears(at, event, start))
    }

    fn hears(&mut self, at: usize, event: Event, start: u64) -> Result<(), String> {
        self.tell(|| format!("{:?} hears {event:?}", self.clients[at].node));
        let clients = &mut self.clients[at];
        let node = clients.node.0;
        match event {
            Event::Confirm { numbers, .. } | Event::Reject { numbers, .. }
                if numbers.iter().any(|it| !clients.open.contains(&it)) =>
            {
                return Err(format!(
                    "{numbers:?} of {node} are answered twice, or were never asked"
                ));
            }
            Event::Confirm { numbers, .. } => {
                clients.open.retain(|it| !numbers.contains(*it));
                self.ledger.confirm(node, &numbers);
            }
            Event::Reject { numbers, .. } => {
                clients.open.retain(|it| !numbers.contains(*it));
                self.ledger.refuse(node, &numbers);
                self.counts[2] += numbers.count();
            }
            Event::ConsumerCancelled { consumer, .. } if !clients.consumers.remove(&consumer) => {
                return Err(format!(
                    "{consumer:?} of {node} is cancelled twice, or was cancelled by its client"
                ));
            }
            Event::Deliver {
                consumer, delivery, ..
            } => {
                let bytes = delivery.bytes() as u32;
                if let Some(queue) = clients.queue() {
                    queue.submit(QUEUE, Request::Flow { consumer, bytes });
                }
                self.given(at, Some(consumer), &delivery, start)?;
            }
            Event::Answer { question, answer, .. } => {
                if !clients.asked.remove(&question.0) {
                    return Err(format!("{question:?} of {node} is answered twice"));
                }
                if let Some(Answer::Got { delivery, .. }) = answer {
                    self.given(at, None, &delivery, start)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn given(
        &mut self,
        at: usize,
        consumer: Option<ConsumerId>,
        delivery: &Delivery,
        start: u64,
    ) -> Result<(), String> {
        for seq in delivery.seqs.iter() {
            let body = delivery.block.message((seq - delivery.base) as usize).body;
            let text = String::from_utf8_lossy(body);
            let mut words = text.split(' ').map(|word| word.parse::<u64>().unwrap_or(0));
            let id = (words.next().unwrap_or(0) as u32, words.next().unwrap_or(0));
            self.clients[at].held.push(Held { consumer, seq, id });
            self.ledger.given(id, delivery.redelivered, start, self.clock)?;
        }
        Ok(())
    }

    /// Everything heals. All are answered, the queue is emptied, and nothing is left of those who have nothing more to ask.
    fn finish(&mut self) -> Result<(), String> {
        // The power that is to fail has failed by then.
        if self.home.is_some() && self.fails {
            self.end()?;
        }
        if self.home.is_none() {
            self.start()?;
        }
        for at in 0..CLIENTS.len() {
            self.cut(at);
            self.link(at);
        }
        if self.bridges && self.random.chance() {
            // This one reaches the queue through the other one, and no other way.
            self.divide();
            self.bridge();
            self.cut(1);
        }
        let mut waits = 0;
        while self
            .clients
            .iter()
            .any(|it| !it.open.is_empty() || !it.asked.is_empty())
        {
            self.settle_down()?;
            waits += 1;
            if waits > SERVES_WITHIN {
                let open: Vec<_> = self.clients.iter().map(|it| (&it.open, &it.asked)).collect();
                return Err(format!("no answer after everything has healed: {open:?}"));
            }
        }
        for at in 0..CLIENTS.len() {
            while !self.clients[at].consumers.is_empty() {
                self.cancel(at);
            }
            self.settle_down()?;
            // What is held goes back, late acknowledgements or not.
            let held = std::mem::take(&mut self.clients[at].held);
            for Held { consumer, seq, .. } in held {
                let (seqs, failed) = (Ranges::one(seq), true);
                if let Some(queue) = self.clients[at].queue() {
                    let back = Request::Return {
                        consumer,
                        seqs,
                        failed,
                    };
                    queue.submit(QUEUE, back);
                }
            }
            self.settle_down()?;
        }
        self.wait_for_returns()?;
        let left = self.drain()?;
        self.ledger.judge(&left, self.starts)?;
        for _ in 0..IDLE {
            self.settle_down()?;
        }
        let counts: Vec<_> = self.clients.iter().map(|it| it.work.counts()).collect();
        let home = self.home.as_ref().map(|home| home.work.counts());
        if counts != [(0, 0); 2] || home != Some((0, 0)) {
            return Err(format!("handles and sessions remain: {counts:?}, {home:?}"));
        }
        Ok(())
    }

    /// What is held may go back later than the queue could be read: through a detour, which is there some time after the link is
    /// lost, or since a get was given up whose answer had come. It stands where it stood, but who reads is beyond that.
    fn wait_for_returns(&mut self) -> Result<(), String> {
        let mut waits = 0;
        while self
            .home
            .as_ref()
            .is_some_and(|home| home.queue.status().unacked > 0)
        {
            self.settle_down()?;
            waits += 1;
            if waits > SERVES_WITHIN {
                return Err("what was given back is still held".to_owned());
            }
        }
        Ok(())
    }

    /// A turn in which everything arrives and everything is synced.
    fn settle_down(&mut self) -> Result<(), String> {
        self.turn(0)?;
        loop {
            while !self.wire.lock().is_empty() {
                self.arrive_surely()?;
            }
            let home = self.home.as_ref().ok_or("the home node is gone")?;
            let stepped = until_power_cut(|| home.world.step()) == Some(true);
            if !stepped && self.wire.lock().is_empty() {
                return self.hear();
            }
        }
    }

    fn arrive_surely(&mut self) -> Result<(), String> {
        let next = self.wire.lock().pop_front();
        next.map_or(Ok(()), |(from, to, bytes)| self.deliver(from, to, bytes.into()))
    }

    /// All that is in the queue, in order.
    fn drain(&mut self) -> Result<Vec<Id>, String> {
        let mut left = Vec::new();
        for _ in 0..10_000 {
            let before = self.clients[0].held.len();
            self.get(0);
            while !self.clients[0].asked.is_empty() {
                self.settle_down()?;
            }
            match self.clients[0].held.get(before) {
                Some(held) => left.push(held.id),
                None => {
                    while !self.clients[0].held.is_empty() {
                        self.settle(0);
                    }
                    return self.settle_down().map(|()| left);
                }
            }
        }
        Err("the queue has no end".to_owned())
    }
}
