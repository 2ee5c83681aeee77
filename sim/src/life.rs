//! One life of a node: its clients, what they do, and how it ends.

use crate::client::{CHANNEL, Client, To, Wish};
use crate::coverage::Act;
use crate::faults::{Plan, shake_clocks};
use crate::invariants::{counts, dead, lost, order, space};
use crate::ledger::{Ledger, QueueKey};
use crate::mutant::Mutant;
use crate::routes::{COLOURS, Exchange};
use crate::terms::Terms;
use crate::world::{Simulated, until_power_cut};
use broker::{AlarmReason, Broker, DeclareQueue, Options, Ticket};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use storage::faulty::{FaultyFs, Random};
use storage::{LogOptions, SegmentOptions, World};

/// The queues' names.
pub const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const CLIENTS: usize = 3;

/// So long somebody waits for what must come, in simulated time.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The log's files, in bytes; so small that they are used again and again.
const LOG_FILE: u64 = 64 << 10;
const LOG_LIMIT: u64 = 256 << 10;

/// How a life of the node ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Closed,
    Killed,
    PowerCut,
}

/// A running node and its clients.
pub struct Life {
    pub world: Arc<Simulated>,
    files: FaultyFs,
    pub broker: Arc<Broker>,
    pub clients: Vec<Client>,
    /// The number of the next client.
    next_client: u32,
}

impl Life {
    /// Starts the node. `None` if the power failed meanwhile, or the disk refused something.
    pub fn begin(world: &Arc<Simulated>, files: &FaultyFs, plan: &Plan, ledger: &mut Ledger) -> Option<Self> {
        let broker = match until_power_cut(|| Broker::open(options(world))) {
            Some(Ok(broker)) => broker,
            Some(Err(error)) if !files.is_off() && !plan.has_struck(files) => {
                ledger.violated("a node starts again", error.to_string());
                return None;
            }
            _ => {
                ledger.ended(false);
                return None;
            }
        };
        let mut life = Self {
            world: world.clone(),
            files: files.clone(),
            broker,
            clients: Vec::new(),
            next_client: ledger.life * 1_000,
        };
        ledger.now = world.elapsed();
        life.settle_doubts(ledger);
        for _ in 0..CLIENTS {
            let client = life.new_client(ledger);
            life.clients.extend(client);
        }
        if ledger.is(Mutant::DoubledByRestart) {
            life.double(ledger);
        }
        Some(life)
    }

    fn new_client(&mut self, ledger: &mut Ledger) -> Option<Client> {
        self.next_client += 1;
        match Client::open(&self.world, &self.broker, self.next_client) {
            Ok(client) => Some(client),
            Err(what) => {
                ledger.violated("clients may come", what);
                None
            }
        }
    }

    /// A client ends its connection, and comes again with another one.
    fn come_again(&mut self, ledger: &mut Ledger, client: usize) {
        let Some(new) = self.new_client(ledger) else {
            return;
        };
        ledger.did(Act::Reconnected);
        std::mem::replace(&mut self.clients[client], new).close(ledger);
        for queue in ledger.queues.values_mut() {
            queue.leaving |= queue.owner == Some(client);
        }
        self.look_who_left(ledger);
    }

    /// Puts a message into its queue once more.
    fn double(&mut self, ledger: &Ledger) {
        let Some(client) = self.clients.first_mut() else {
            return;
        };
        let there = ledger.queues.values().find_map(|queue| {
            let mut copies = queue.copies.iter();
            let copy = copies.find(|(_, copy)| copy.confirmed && copy.gone_at.is_none());
            copy.map(|(id, _)| (queue.name.clone(), *id))
        });
        if let Some((name, id)) = there {
            client.publish_again(&name, id);
        }
    }

    /// What was asked for and not answered when the node ended has happened or not.
    fn settle_doubts(&mut self, ledger: &mut Ledger) {
        let view = self.broker.view();
        let now = ledger.now;
        let mut lost = Vec::new();
        ledger.queues.retain(|_, queue| {
            let there = view.queue("/", &queue.name).is_some();
            if !there && queue.declared && !queue.doomed && !queue.may_leave(now) {
                lost.push(queue.name.clone());
            }
            queue.declared |= there;
            (queue.doomed, queue.leaving) = (false, false);
            there
        });
        for name in lost {
            ledger.violated("what was declared stays", name);
        }
        let known: BTreeSet<QueueKey> = ledger.queues.keys().copied().collect();
        // A queue whose deletion was lost has its name again.
        let names = ledger
            .queues
            .iter()
            .map(|(key, queue)| (queue.name.clone(), *key));
        ledger.by_name = names.collect();
        ledger.bindings.retain(|(_, _, key)| known.contains(key));
    }

    /// True while the node can do something.
    pub fn is_well(&self) -> bool {
        !self.files.is_off() && self.broker.alarm() != Some(AlarmReason::LogFailed)
    }

    /// The clients do what they do.
    pub fn go(&mut self, ledger: &mut Ledger, random: &mut Random, plan: &mut Plan) {
        self.import_dead_letter_queues(ledger);
        self.bind_again(ledger);
        for _ in 0..60 + random.below(120) {
            if !self.is_well() || !ledger.violations.is_empty() {
                return;
            }
            let client = random.below(CLIENTS as u64) as usize;
            self.look_who_left(ledger);
            self.act(ledger, random, client);
            for _ in 0..random.below(6) {
                self.world.step();
            }
            plan.note(&self.files, &mut ledger.coverage);
            shake_clocks(&self.world, random, &mut ledger.coverage);
            if random.below(4) == 0 {
                self.world.advance(Duration::from_millis(random.below(80)));
            }
            self.clients[client].take(ledger);
        }
    }

    fn act(&mut self, ledger: &mut Ledger, random: &mut Random, client: usize) {
        let name = NAMES[random.below(NAMES.len() as u64) as usize];
        let colour = COLOURS[random.below(3) as usize];
        let exchange = Exchange::choose(random);
        let named = ledger.named(name);
        if let Some(queue) = named.and_then(|key| ledger.queues.get(&key))
            && (queue.leaving || queue.owner.is_some_and(|owner| owner != client))
        {
            return;
        }
        match (random.below(48), named) {
            (0..=13, Some(queue)) => self.clients[client].publish(ledger, random, To::Queue(queue)),
            (14..=19, _) => {
                let to = To::Exchange(exchange, colour, COLOURS[random.below(3) as usize]);
                self.clients[client].publish(ledger, random, to);
            }
            (20..=31, _) => self.clients[client].settle(ledger, random),
            (32..=35, Some(queue)) if self.clients[client].consumers.len() < 3 => {
                let wish = Wish::choose(random);
                self.clients[client].consume(ledger, queue, wish);
            }
            (36, _) if !self.clients[client].consumers.is_empty() => {
                let at = random.below(self.clients[client].consumers.len() as u64) as usize;
                self.clients[client].cancel(ledger, at);
            }
            (37..=38, Some(queue)) => self.bind(ledger, client, (exchange, colour, queue), true),
            (39, Some(queue)) => self.bind(ledger, client, (exchange, colour, queue), false),
            (40, Some(queue)) if random.below(2) == 0 => self.purge(ledger, client, queue),
            (41, Some(queue)) if random.below(3) == 0 => self.delete(ledger, client, queue),
            (42, _) if random.chance() => self.come_again(ledger, client),
            (43, _) => self.rule(ledger, random),
            (0..=10, None) => self.import(ledger, random, name),
            (45, _) if self.clients[client].consumers.len() < 3 => {
                self.consume_dead_letters(ledger, client, name)
            }
            (_, None) => {
                let terms = Terms::choose(random);
                self.declare(ledger, client, name, terms);
            }
            _ => {}
        }
    }

    /// Turns the node until a change is durable. False if it never will be.
    pub fn await_durable(&mut self, ledger: &mut Ledger, client: usize, ticket: Option<Ticket>) -> bool {
        let Some(ticket) = ticket else { return true };
        let until = self.world.elapsed() + TIMEOUT;
        loop {
            self.clients[client].take(ledger);
            if self.clients[client].is_durable(ticket) {
                return true;
            }
            if !self.is_well() {
                return false;
            }
            if self.world.step() {
                continue;
            }
            let next = self.world.next_deadline().unwrap_or(Duration::from_millis(1));
            self.world.advance(next);
            if self.world.elapsed() > until {
                ledger.violated("a change is answered", format!("not within {TIMEOUT:?}"));
                return false;
            }
        }
    }

    pub fn take_all(&mut self, ledger: &mut Ledger) {
        // What a client has taken makes room for more.
        while self
            .clients
            .iter_mut()
            .fold(false, |any, client| any | client.take(ledger))
        {}
    }

    pub fn end(mut self, ledger: &mut Ledger, ending: Ending) {
        if ending != Ending::Closed || !self.is_well() {
            // What has arrived was told.
            self.take_all(ledger);
            return ledger.ended(false);
        }
        for client in self.clients.drain(..) {
            client.close(ledger);
        }
        self.broker.close();
        let well = self.is_well();
        ledger.ended(well);
    }

    /// Lets time pass, and everything happen that is due.
    fn rest(&mut self, ledger: &mut Ledger, time: Duration) {
        let until = self.world.elapsed() + time;
        let mut steps = 0_u64;
        loop {
            while self.world.step() {
                steps += 1;
                if steps > 1_000_000 {
                    return ledger.violated("a node comes to rest", "a million steps".to_owned());
                }
            }
            self.take_all(ledger);
            let left = until.saturating_sub(self.world.elapsed());
            if left.is_zero() {
                return;
            }
            let next = self.world.next_deadline().unwrap_or(left);
            self.world.advance(next.min(left).max(Duration::from_micros(1)));
        }
    }

    /// How many messages a queue says are ready.
    fn ready(&mut self, ledger: &mut Ledger, key: QueueKey) -> u64 {
        let Some(name) = ledger.queues.get(&key).map(|queue| queue.name.clone()) else {
            return 0;
        };
        let declare = DeclareQueue {
            name: name.clone(),
            passive: true,
            ..DeclareQueue::default()
        };
        match self.clients[0].session.declare_queue(CHANNEL, declare) {
            Ok(done) => done.value.ready,
            Err(refusal) => {
                ledger.violated("what is there can be asked for", format!("{name}: {refusal:?}"));
                0
            }
        }
    }

    /// Drains all queues, and looks whether everything is as it must be.
    pub fn look_at_everything(mut self, ledger: &mut Ledger) {
        let mut queues: Vec<QueueKey> = ledger.queues.keys().copied().collect();
        // What dies while the others are drained comes here.
        queues.sort_by_key(|key| ledger.queues.get(key).is_some_and(|queue| queue.has_dead_letters));
        for key in queues {
            self.look_who_left(ledger);
            if !ledger.by_name.values().any(|known| *known == key) {
                continue;
            }
            let ready = self.ready(ledger, key);
            self.clients[0].consume(ledger, key, Wish::default());
            self.rest(ledger, Duration::from_secs(2));
            let Some(mut consumer) = self.clients[0].consumers.pop() else {
                continue;
            };
            order::drained(ledger, key, &consumer.seen);
            lost::check(ledger, key, &consumer.seen.iter().copied().collect());
            counts::check(ledger, key, ready, &consumer.seen);
            let found = consumer.seen.iter().map(|id| (key, *id));
            ledger.found.extend(found);
            consumer.finish(ledger);
            self.rest(ledger, Duration::from_secs(1));
        }
        dead::check(ledger);
        for client in self.clients.drain(..) {
            client.close(ledger);
        }
        self.rest(ledger, Duration::from_secs(2));
        if ledger.violations.is_empty() {
            space::check(ledger, &self.broker, &self.files, 2 * LOG_LIMIT + 4 * LOG_FILE);
        }
        self.broker.close();
    }
}

/// What the node is opened with.
pub fn options(world: &Arc<Simulated>) -> Options {
    Options {
        world: world.clone(),
        log: LogOptions {
            file_bytes: LOG_FILE,
            size_limit: LOG_LIMIT,
            ..LogOptions::default()
        },
        segments: SegmentOptions {
            segment_bytes: 128 << 10,
            ..SegmentOptions::default()
        },
        disk_free_limit: 0,
        message_memory: 128 << 10,
        ..Options::new("/data")
    }
}
