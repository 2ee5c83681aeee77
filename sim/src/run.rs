//! What one seed does: some lives of a node, each ended in its way, and a last one in which everything is looked at.

use crate::client::{CHANNEL, Client, EXCHANGE};
use crate::faults::{Plan, shake_clocks};
use crate::invariants::{lost, order, space};
use crate::ledger::{Copy, Ledger, QueueKey, Violation};
use crate::mutant::Mutant;
use crate::world::{Simulated, until_power_cut};
use broker::{AlarmReason, Binding, Broker, DeclareQueue, Options, Ticket};
use model::table::Table;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use storage::faulty::{FaultyFs, Random};
use storage::{LogOptions, SegmentOptions};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const KEYS: [&str; 3] = ["red", "green", "blue"];
const CLIENTS: usize = 3;

/// The log's files, in bytes; so small that they are used again and again.
const LOG_FILE: u64 = 64 << 10;
const LOG_LIMIT: u64 = 256 << 10;

/// So long somebody waits for what must come, in simulated time.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What became of a seed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    pub violations: Vec<Violation>,
    /// A sum over everything that happened.
    pub digest: u64,
    pub confirms: u64,
    pub deliveries: u64,
    pub acks: u64,
}

/// How a life of the node ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Closed,
    Killed,
    PowerCut,
}

/// A running node and its clients.
struct Life {
    world: Arc<Simulated>,
    files: FaultyFs,
    broker: Arc<Broker>,
    clients: Vec<Client>,
}

/// Runs a seed.
pub fn run(seed: u64) -> Outcome {
    run_with(seed, None)
}

/// Runs a seed with a node that does something wrong.
pub fn run_mutant(seed: u64, mutant: Mutant) -> Outcome {
    run_with(seed, Some(mutant))
}

fn run_with(seed: u64, mutant: Option<Mutant>) -> Outcome {
    let mut random = Random(seed);
    let mut files = FaultyFs::new();
    let mut now = Duration::from_secs(1);
    let mut ledger = Ledger {
        mutant,
        ..Ledger::default()
    };
    if mutant == Some(Mutant::NoSync) {
        files.set_lying();
    }
    let lives = 1 + random.below(3);
    for _ in 0..lives {
        let ending = match random.below(4) {
            0 => Ending::Closed,
            1 => Ending::Killed,
            _ => Ending::PowerCut,
        };
        let plan = Plan::make(&files, &mut random, ending == Ending::PowerCut);
        let world = Simulated::new(files.clone(), now, random.bits());
        if let Some(mut life) = Life::begin(&world, &files, &plan, &mut ledger) {
            until_power_cut(|| life.go(&mut ledger, &mut random));
            life.end(&mut ledger, ending);
        }
        if !ledger.violations.is_empty() {
            return outcome(ledger);
        }
        world.abandon();
        let cut = ending == Ending::PowerCut || files.is_off();
        files = if cut {
            files.crash(random.bits())
        } else {
            files.kill()
        };
        if let Some(mutant) = mutant {
            mutant.spoil(&files);
        }
        now = storage::World::elapsed(world.as_ref()) + Duration::from_secs(1);
    }
    let world = Simulated::new(files.clone(), now, random.bits());
    if let Some(life) = Life::begin(&world, &files, &Plan::default(), &mut ledger) {
        life.look_at_everything(&mut ledger);
    }
    world.abandon();
    outcome(ledger)
}

fn outcome(ledger: Ledger) -> Outcome {
    Outcome {
        violations: ledger.violations,
        digest: ledger.digest,
        confirms: ledger.confirms,
        deliveries: ledger.deliveries,
        acks: ledger.acks,
    }
}

fn options(world: &Arc<Simulated>) -> Options {
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

impl Life {
    /// Starts the node. `None` if the power failed meanwhile, or the disk refused something.
    fn begin(world: &Arc<Simulated>, files: &FaultyFs, plan: &Plan, ledger: &mut Ledger) -> Option<Self> {
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
        };
        life.settle_doubts(ledger);
        for number in 0..CLIENTS {
            let number = ledger.life * CLIENTS as u32 + number as u32;
            match Client::open(&life.broker, number) {
                Ok(client) => life.clients.push(client),
                Err(what) => ledger.violated("clients may come", what),
            }
        }
        if ledger.is(Mutant::DoubledByRestart) {
            life.double(ledger);
        }
        Some(life)
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
        let mut lost = Vec::new();
        ledger.queues.retain(|_, queue| {
            let there = view.queue("/", &queue.name).is_some();
            if !there && queue.declared && !queue.doomed {
                lost.push(queue.name.clone());
            }
            if queue.doomed {
                queue.copies.values_mut().for_each(Copy::doubt);
            }
            queue.declared |= there;
            queue.doomed = false;
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
        ledger.bindings.retain(|(_, key)| known.contains(key));
    }

    /// True while the node can do something.
    fn is_well(&self) -> bool {
        !self.files.is_off() && self.broker.alarm() != Some(AlarmReason::LogFailed)
    }

    /// The clients do what they do.
    fn go(&mut self, ledger: &mut Ledger, random: &mut Random) {
        self.bind_again(ledger);
        for _ in 0..60 + random.below(120) {
            if !self.is_well() || !ledger.violations.is_empty() {
                return;
            }
            let client = random.below(CLIENTS as u64) as usize;
            self.act(ledger, random, client);
            for _ in 0..random.below(6) {
                self.world.step();
            }
            shake_clocks(&self.world, random);
            if random.below(4) == 0 {
                self.world.advance(Duration::from_millis(random.below(80)));
            }
            self.clients[client].take(ledger);
        }
    }

    fn act(&mut self, ledger: &mut Ledger, random: &mut Random, client: usize) {
        let name = NAMES[random.below(NAMES.len() as u64) as usize];
        let key = KEYS[random.below(KEYS.len() as u64) as usize];
        let queue = ledger.named(name);
        match (random.below(40), queue) {
            (0..=13, Some(queue)) => self.clients[client].publish(ledger, random, Ok(queue)),
            (14..=19, _) => self.clients[client].publish(ledger, random, Err(key)),
            (20..=31, _) => self.clients[client].settle(ledger, random),
            (32..=34, Some(queue)) if self.clients[client].consumers.len() < 3 => {
                let prefetch = random.below(30) as u32;
                self.clients[client].consume(ledger, queue, prefetch);
            }
            (35, _) if !self.clients[client].consumers.is_empty() => {
                let at = random.below(self.clients[client].consumers.len() as u64) as usize;
                self.clients[client].cancel(ledger, at);
            }
            (36, Some(queue)) => self.bind(ledger, client, key, queue, true),
            (37, Some(queue)) => self.bind(ledger, client, key, queue, false),
            (38, Some(queue)) if random.below(2) == 0 => self.purge(ledger, client, queue),
            (39, Some(queue)) if random.below(3) == 0 => self.delete(ledger, client, queue),
            (_, None) => self.declare(ledger, client, name, random.below(4) > 0),
            _ => {}
        }
    }

    /// Turns the node until a change is durable. False if it never will be.
    fn await_durable(&mut self, ledger: &mut Ledger, client: usize, ticket: Option<Ticket>) -> bool {
        let Some(ticket) = ticket else { return true };
        let until = storage::World::elapsed(self.world.as_ref()) + TIMEOUT;
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
            if storage::World::elapsed(self.world.as_ref()) > until {
                ledger.violated("a change is answered", format!("not within {TIMEOUT:?}"));
                return false;
            }
        }
    }

    fn declare(&mut self, ledger: &mut Ledger, client: usize, name: &str, durable: bool) {
        let declare = DeclareQueue {
            name: name.into(),
            durable,
            ..DeclareQueue::default()
        };
        if ledger.is(Mutant::LostDeclaration) && ledger.tick().is_multiple_of(3) {
            let key = ledger.declare(name, durable);
            ledger.by_name.remove(name);
            if let Some(queue) = ledger.queues.get_mut(&key) {
                queue.declared = true;
            }
            return;
        }
        let declared = self.clients[client].session.declare_queue(CHANNEL, declare);
        match declared {
            Ok(done) => {
                let key = ledger.declare(name, durable);
                if self.await_durable(ledger, client, done.durable)
                    && let Some(queue) = ledger.queues.get_mut(&key)
                {
                    queue.declared = true;
                }
            }
            Err(refusal) => ledger.violated("queues can be declared", format!("{name}: {refusal:?}")),
        }
    }

    fn bind(&mut self, ledger: &mut Ledger, client: usize, key: &str, queue: QueueKey, bound: bool) {
        let Some(name) = ledger.queues.get(&queue).map(|known| known.name.clone()) else {
            return;
        };
        let binding = Binding {
            source: EXCHANGE,
            destination: &name,
            routing_key: key.as_bytes(),
            arguments: Table::new(),
        };
        if bound && ledger.is(Mutant::LostBinding) {
            ledger.bindings.insert((key.to_owned(), queue));
            return;
        }
        let session = &self.clients[client].session;
        let done = match bound {
            true => session.bind_queue(CHANNEL, binding),
            false => session.unbind_queue(CHANNEL, binding),
        };
        match bound {
            true => ledger.bindings.insert((key.to_owned(), queue)),
            false => ledger.bindings.remove(&(key.to_owned(), queue)),
        };
        match done {
            Ok(done) => {
                self.await_durable(ledger, client, done.durable);
            }
            Err(refusal) => ledger.violated("queues can be bound", format!("{name}: {refusal:?}")),
        }
    }

    /// A crash may have come into a change of the bindings: from now on they are what the ledger says.
    fn bind_again(&mut self, ledger: &mut Ledger) {
        let queues: Vec<QueueKey> = ledger.queues.keys().copied().collect();
        for queue in queues {
            for key in KEYS {
                let bound = ledger.bindings.contains(&(key.to_owned(), queue));
                self.bind(ledger, 0, key, queue, bound);
                if !self.is_well() {
                    return;
                }
            }
        }
    }

    fn purge(&mut self, ledger: &mut Ledger, client: usize, key: QueueKey) {
        let Some(name) = ledger.queues.get(&key).map(|known| known.name.clone()) else {
            return;
        };
        // What is on its way to a client is not purged.
        self.take_all(ledger);
        if !ledger.is(Mutant::LostPurge)
            && let Err(refusal) = self.clients[client].session.purge_queue(CHANNEL, &name)
        {
            ledger.violated("queues can be purged", format!("{name}: {refusal:?}"));
        }
        let copies = ledger.queues.get(&key).map(|queue| &queue.copies);
        let ready = copies.into_iter().flatten();
        let purged: Vec<u64> = ready
            .filter(|(_, copy)| !copy.held && copy.gone_at.is_none())
            .map(|(id, _)| *id)
            .collect();
        purged.into_iter().for_each(|id| ledger.gone(key, id));
    }

    fn delete(&mut self, ledger: &mut Ledger, client: usize, key: QueueKey) {
        let Some(queue) = ledger.queues.get_mut(&key) else {
            return;
        };
        queue.doomed = true;
        let name = queue.name.clone();
        self.take_all(ledger);
        if ledger.is(Mutant::LostDeletion) {
            ledger.by_name.remove(&name);
            ledger.bindings.retain(|(_, of)| *of != key);
            ledger.queues.remove(&key);
            return;
        }
        match self.clients[client].delete_queue(ledger, &name) {
            Ok(deleted) => {
                ledger.by_name.remove(&name);
                ledger.bindings.retain(|(_, of)| *of != key);
                if self.await_durable(ledger, client, deleted.durable)
                    && let Some(queue) = ledger.queues.get_mut(&key)
                {
                    queue.deleted = true;
                }
            }
            Err(refusal) => ledger.violated("queues can be deleted", format!("{name}: {refusal:?}")),
        }
        self.take_all(ledger);
        for client in &mut self.clients {
            client.consumers.retain(|consumer| consumer.key != key);
        }
    }

    fn take_all(&mut self, ledger: &mut Ledger) {
        // What a client has taken makes room for more.
        while self
            .clients
            .iter_mut()
            .fold(false, |any, client| any | client.take(ledger))
        {}
    }

    fn end(mut self, ledger: &mut Ledger, ending: Ending) {
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
        let until = storage::World::elapsed(self.world.as_ref()) + time;
        let mut steps = 0_u64;
        loop {
            while self.world.step() {
                steps += 1;
                if steps > 1_000_000 {
                    return ledger.violated("a node comes to rest", "a million steps".to_owned());
                }
            }
            self.take_all(ledger);
            let left = until.saturating_sub(storage::World::elapsed(self.world.as_ref()));
            if left.is_zero() {
                return;
            }
            let next = self.world.next_deadline().unwrap_or(left);
            self.world.advance(next.min(left).max(Duration::from_micros(1)));
        }
    }

    /// Drains all queues, and looks whether everything is as it must be.
    fn look_at_everything(mut self, ledger: &mut Ledger) {
        let queues: Vec<QueueKey> = ledger.queues.keys().copied().collect();
        for key in queues {
            self.clients[0].consume(ledger, key, 0);
            self.rest(ledger, Duration::from_secs(2));
            let Some(mut consumer) = self.clients[0].consumers.pop() else {
                continue;
            };
            order::drained(ledger, key, &consumer.seen);
            lost::check(ledger, key, &consumer.seen.iter().copied().collect());
            consumer.finish(ledger);
            self.rest(ledger, Duration::from_secs(1));
        }
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
