//! Three whole brokers in one thread, that share a catalog, with a queue that begins on one of them alone or on all, while
//! clients of each publish to it, consume, get, settle and give back; links break, processes are killed or closed, and lose
//! their power at any write. A quorum queue gets members and loses them, by reconciliation or by operators; a classic one is
//! mirrored by a policy that comes and goes. In the end everything heals, the queue has the members that it is to have, serves,
//! and is emptied.
//!
//! What may go wrong between each two steps, and what sees it:
//!
//! - the new member on record, nothing begun: a start of the home node takes the queue for a group's, which nobody leads; or
//!   its empty journal for none at all. Seen by: "nobody leads" (`finish`).
//! - requests wait, the batch is not written: a publisher or a get stands for ever; what waited is dropped. Seen by: "nobody
//!   answers"; `judge`: lost.
//! - the batch is written, not synced: others hear of the group, and its node starts without it. Seen by: lost, or "nobody
//!   leads".
//! - one file of the batch is there, another one is not: both journals go on, or none. Seen by: there twice; lost.
//! - the group is open, clients of the node still ask the old place: a request gets lost, comes twice or overtakes. Seen by: no
//!   answer; there twice; changed places.
//! - the group is open, clients of the node still ask the old place: what another node had asked is answered by nobody, or
//!   twice. Seen by: "given back, still held"; no answer; there twice.
//! - terms go on: a node takes the group's leader for an earlier one and ignores it. Seen by: no answer.
//! - terms go on: what was sent again is taken as new. Seen by: there twice.
//! - terms go on: what consumers held is held for ever, or given to others though it was done with. Seen by: still held; "is
//!   there again".
//! - terms go on: what was delivered before counts as new. Seen by: "as for the first time once more".
//! - a member comes and goes before the group exists: the only copy is given up. Seen by: lost; "nobody leads".
//! - a member is added, its node does not run: all of whom it knows at its start may have left by then, and its leader sleeps.
//! - its node is linked, the member is not open: what it is told is lost, and nobody tells it again. Seen by, both: "not those
//!   have the queue that are to".
//! - members leave for the last time, the queue is one node's own on record: the group and the queue's own journal both go on,
//!   or none. Seen by: there twice; lost; no answer.
//! - handed back, not synced: the contents are gone with the group. Seen by: lost.
//! - handed back, the policy is there again: the copy of the group before is taken for one of the next. Seen by: lost; there
//!   twice.
//!
//! Seeds of their own have a stream in the place of the queue: `streams`.
//!
//! A seed has a theme: what the queue is, and what goes wrong. Where processes don't end, nothing is excused that follows from
//! that.

mod client;
mod finish;
mod formed;
mod hearing;
mod ledger;
mod side;
mod streams;
mod wire;

use crate::aside::Aside;
use crate::world::{Simulated, until_power_cut};
use broker::groups::NodeId;
use broker::queues::Work;
use broker::{Broker, DeclareQueue, Options, PolicyKind, PutPolicy, Reconciliation};
use catalog::Request;
use client::{Client, QUEUE};
use cluster::GroupId;
use ledger::Ledger;
use model::table::{Table, Value};
use side::Side;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use storage::faulty::{Fault, FaultyFs, Random};
use storage::{LogOptions, World};
use streams::Streaming;
pub use streams::{COUNTED_OF_STREAM, run_stream};
use wire::{Pair, Wire};

const NODES: u32 = 3;
const VHOST: &str = "/";

/// A start that comes to no end within so long waits for something that never comes.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// For so long clients ask more than usual where something of the queue has changed.
const BUSY_FOR: Duration = Duration::from_millis(300);

/// What is done in each thread in which a broker runs, before it does: mutants are turned on there.
pub type Prepare = Arc<dyn Fn() + Send + Sync>;

/// What the queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A quorum queue of three members.
    Three,
    /// One that begins on one node and is to have three: reconciliation sees to it, or operators do.
    Grows { reconciled: bool },
    /// A classic one that a policy mirrors at times.
    Mirrored,
    /// A stream that all have: see [`run_stream`].
    Stream,
}

/// What a policy says of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mirrors {
    /// There is none.
    None,
    /// This node is to have it, and no other one.
    Only(u32),
    /// All but this one.
    Without(u32),
    All,
}

impl Mirrors {
    const POLICY: &str = "mirrors";

    fn request(self) -> Request {
        let (vhost, kind, name) = (VHOST.into(), PolicyKind::User, Self::POLICY.into());
        let nodes = (1..=NODES).filter(|node| match self {
            Self::None | Self::All => true,
            Self::Only(only) => *node == only,
            Self::Without(none) => *node != none,
        });
        let names = nodes.map(|node| Value::from(formed::name(NodeId(node)).as_str()));
        let definition = match self {
            Self::None => return Request::DeletePolicy { vhost, kind, name },
            Self::All => Table::new().with("ha-mode", "all"),
            Self::Only(_) | Self::Without(_) => Table::new()
                .with("ha-mode", "nodes")
                .with("ha-params", Value::Array(names.collect())),
        };
        let policy = PutPolicy {
            pattern: format!("^{QUEUE}$"),
            apply_to: "queues".into(),
            priority: 0,
            definition,
        };
        Request::PutPolicy {
            vhost,
            kind,
            name,
            policy,
        }
    }

    /// How many members the queue has then; none, if it is one node's own.
    fn members(self) -> usize {
        match self {
            Self::None | Self::Only(_) => 0,
            Self::Without(_) => NODES as usize - 1,
            Self::All => NODES as usize,
        }
    }
}

/// What may go wrong.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    pub links_break: bool,
    pub nodes_end: bool,
    /// Members are removed and added, or the policy comes and goes.
    pub members_change: bool,
}

type Started = Result<(Arc<Broker>, Arc<Work>), String>;

/// Which broker runs, or is about to.
enum Stage {
    Starts(Aside<Started>, Duration),
    Runs(Box<Client>),
}

/// A process.
struct Process {
    world: Arc<Simulated>,
    side: Arc<Side>,
    stage: Stage,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.side.end();
        self.world.abandon();
    }
}

/// A node, whether it runs or not.
struct Place {
    id: NodeId,
    files: FaultyFs,
    process: Option<Process>,
    /// How many messages its clients have published.
    published: u64,
    /// The power fails soon.
    fails: bool,
    /// It starts again then.
    starts_at: Duration,
}

impl Place {
    fn new(id: u32, files: FaultyFs) -> Self {
        Self {
            id: NodeId(id),
            files,
            process: None,
            published: 0,
            fails: false,
            starts_at: Duration::ZERO,
        }
    }

    fn client(&self) -> Option<&Client> {
        match &self.process.as_ref()?.stage {
            Stage::Runs(client) => Some(client),
            Stage::Starts(..) => None,
        }
    }

    fn client_mut(&mut self) -> Option<&mut Client> {
        match &mut self.process.as_mut()?.stage {
            Stage::Runs(client) => Some(client),
            Stage::Starts(..) => None,
        }
    }

    /// Which start others may have a link with.
    fn linked_as(&self) -> Option<u64> {
        let side = &self.process.as_ref()?.side;
        side.groups().and(side.start())
    }

    /// The group that decides about its copy of the queue, if it has one that is not its own.
    fn is_decided_by(&self) -> Option<GroupId> {
        let broker = &self.client()?.broker;
        let view = broker.view();
        let copy = broker.queues().copy(view.queue(VHOST, QUEUE)?.id)?;
        copy.replica().map(|replica| replica.group())
    }

    /// What its member of the queue's group says, if it has one.
    fn standing(&self) -> Option<cluster::Status> {
        let broker = &self.client()?.broker;
        let view = broker.view();
        let copy = broker.queues().copy(view.queue(VHOST, QUEUE)?.id)?;
        let group = copy.replica()?.group();
        self.process.as_ref()?.side.groups()?.status(group)
    }

    /// How its queue stands, as far as that can be seen: a process may end where this changes.
    fn step(&self) -> Option<Step> {
        let broker = &self.client()?.broker;
        let view = broker.view();
        let known = view.queue(VHOST, QUEUE)?;
        let copy = broker.queues().copy(known.id);
        Some(Step {
            epoch: known.epoch.number,
            is_shared: known.is_shared(),
            members: known.members().map(|it| (it.node.0, it.life)).collect(),
            own: copy.as_ref().and_then(|copy| copy.own_term()).is_some(),
            group: copy.as_ref().and_then(|copy| Some(copy.replica()?.group())),
            leads: copy.as_ref().is_some_and(|copy| copy.is_led_here()),
        })
    }
}

/// How the queue stands on a node.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    epoch: u16,
    is_shared: bool,
    members: Vec<(u64, u32)>,
    own: bool,
    group: Option<GroupId>,
    leads: bool,
}

impl Step {
    /// The node decides what becomes of the queue, on another journal than it is to have by what is on record.
    fn is_half_done(&self) -> bool {
        self.leads && self.group.is_some() != self.is_shared
    }
}

/// What is counted.
pub const COUNTED: [&str; 8] = [
    "links broken",
    "ends of nodes",
    "ends where the queue's standing had changed",
    "changes of members or policies",
    "groups that the queue was at the end",
    "messages confirmed",
    "messages refused",
    "deliveries",
];

/// A seed's run.
pub struct Brokers {
    clock: Duration,
    random: Random,
    told: bool,
    kind: Kind,
    trouble: Trouble,
    prepare: Prepare,
    wire: Wire,
    /// Pairs that may have no link.
    cut: BTreeSet<Pair>,
    /// Pairs that have no link, and since when.
    unlinked: BTreeMap<Pair, Duration>,
    places: Vec<Place>,
    /// How the queue stood on each node when it was looked at last.
    steps: Vec<Option<Step>>,
    /// And what decided about each node's copy, if it had one.
    decided: Vec<Option<GroupId>>,
    ledger: Ledger,
    /// Of a stream.
    stream: Option<Box<Streaming>>,
    /// Until then clients ask more, since something of the queue has just changed.
    busy_until: Duration,
    /// Until then nobody says once more who is to have it.
    settles_until: Duration,
    /// Somebody has decided what becomes of the queue.
    was_led: bool,
    /// How many ends there may still be.
    ends_left: u64,
    /// A sum over everything that was heard.
    pub digest: u64,
    /// See [`COUNTED`] and [`COUNTED_OF_STREAM`].
    pub counts: [u64; 8],
}

fn pairs() -> impl Iterator<Item = Pair> {
    (1..=NODES).flat_map(|one| (one + 1..=NODES).map(move |other| (one, other)))
}

/// What a seed is about, for those who want seeds of one kind: see [`run`].
pub fn kind(seed: u64) -> Kind {
    match seed % 6 {
        0 => Kind::Three,
        1 | 2 => Kind::Grows { reconciled: true },
        3 => Kind::Grows { reconciled: false },
        _ => Kind::Mirrored,
    }
}

/// Runs a seed, and says what happens in it if it is to be `told`.
///
/// # Errors
/// What was wrong.
pub fn run(seed: u64, told: bool, prepare: Prepare) -> Result<Brokers, String> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let trouble = match random.below(5) {
        0 => (true, false),
        1 => (false, true),
        _ => (true, true),
    };
    let trouble = Trouble {
        links_break: trouble.0,
        nodes_end: trouble.1,
        members_change: random.below(4) > 0,
    };
    let mut run = Brokers::new(random, told, prepare, formed::disks());
    run.kind = kind(seed);
    run.trouble = trouble;
    run.ledger.is_alone_at_times = run.kind != Kind::Three;
    run.tell(|| format!("{:?}, {trouble:?}", run.kind));
    run.live()?;
    Ok(run)
}

impl Brokers {
    fn new(mut random: Random, told: bool, prepare: Prepare, disks: Vec<FaultyFs>) -> Self {
        let mut wire = Wire::default();
        wire.delay_ms = [1, 10, 30][random.below(3) as usize];
        let places: Vec<_> = (1..)
            .zip(disks)
            .map(|(id, files)| Place::new(id, files))
            .collect();
        Self {
            clock: Duration::from_secs(1),
            ends_left: 1 + random.below(6),
            random,
            told,
            kind: Kind::Three,
            trouble: Trouble {
                links_break: false,
                nodes_end: false,
                members_change: false,
            },
            prepare,
            wire,
            cut: BTreeSet::new(),
            unlinked: BTreeMap::new(),
            steps: places.iter().map(|_| None).collect(),
            decided: places.iter().map(|_| None).collect(),
            busy_until: Duration::ZERO,
            settles_until: Duration::ZERO,
            was_led: false,
            places,
            ledger: Ledger::default(),
            stream: None,
            digest: 0,
            counts: [0; 8],
        }
    }

    fn live(&mut self) -> Result<(), String> {
        for at in 0..self.places.len() {
            self.start(at)?;
        }
        self.within("nodes don't start", Self::all_run)?;
        self.declare()?;
        for _ in 0..150 + self.random.below(300) {
            let acts = if self.clock < self.busy_until { 3 } else { 1 };
            (0..acts).try_for_each(|_| self.act(acts > 1))?;
            self.round()?;
        }
        self.finish()
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.told {
            println!("{:?} {}", self.clock, what());
        }
    }

    fn note(&mut self, what: u64) {
        self.digest = self.digest.wrapping_mul(0x0100_0000_01b3) ^ what;
    }

    fn options(&self, world: &Arc<Simulated>, id: NodeId) -> Options {
        Options {
            node_name: formed::name(id),
            reconciliation: Reconciliation {
                is_enabled: self.kind == Kind::Grows { reconciled: true },
                target_size: 3,
                interval_ticks: 50,
                trigger_ticks: 5,
            },
            log: match self.kind {
                // So that nodes which were away find that it has let go of what they lack.
                Kind::Stream => LogOptions {
                    file_bytes: 16 << 10,
                    size_limit: 64 << 10,
                    ..LogOptions::default()
                },
                _ => crate::options(world).log,
            },
            ..crate::options(world)
        }
    }

    fn start(&mut self, at: usize) -> Result<(), String> {
        let seed = self.random.bits();
        let (id, files) = (self.places[at].id, self.places[at].files.clone());
        let world = Simulated::new(files, self.clock, seed);
        let side = Side::new(id, self.wire.end(id));
        let options = self.options(&world, id);
        let (opens, prepare) = (side.clone(), self.prepare.clone());
        let begun = Aside::begin(move || {
            prepare();
            opens.open(options)
        });
        let begun = begun.map_err(|error| error.to_string())?;
        self.places[at].process = Some(Process {
            world,
            side,
            stage: Stage::Starts(begun, self.clock + STARTS_WITHIN),
        });
        self.tell(|| format!("{id:?} starts"));
        Ok(())
    }

    /// A node that starts goes on with that.
    fn go_on(&mut self, at: usize) -> Result<(), String> {
        let now = self.clock;
        let place = &mut self.places[at];
        let (id, files) = (place.id, &place.files);
        let Some(process) = &mut place.process else {
            return Ok(());
        };
        let Stage::Starts(starting, until) = &mut process.stage else {
            return Ok(());
        };
        match starting.go_on() {
            None if now > *until && self.cut.is_empty() => Err(format!("{id:?} waits for ever to start")),
            None | Some(None) => Ok(()),
            Some(Some(Err(why))) if !files.is_off() => Err(format!("{id:?} does not start: {why}")),
            Some(Some(Err(_))) => Ok(()),
            Some(Some(Ok((broker, work)))) => {
                process.stage = Stage::Runs(Box::new(Client::connect(broker, work)?));
                self.tell(|| format!("{id:?} runs"));
                Ok(())
            }
        }
    }

    /// A process is no more: closed in good order, or killed, or without power.
    fn end(&mut self, at: usize) -> Result<(), String> {
        // What others have been told of it by now is of before.
        (0..self.places.len()).try_for_each(|at| self.hear(at))?;
        let power = self.random.chance();
        self.end_as(at, power);
        Ok(())
    }

    /// The same once others have heard what it has told, killed or without power.
    fn end_as(&mut self, at: usize, power: bool) {
        self.counts[1] += 1;
        self.ledger.ends += 1;
        let id = self.places[at].id;
        let seed = self.random.bits();
        let downtime = match self.random.below(4) {
            0 => self.random.below(6_000),
            _ => self.random.below(800),
        };
        let starts_at = self.clock + Duration::from_millis(downtime);
        self.leave(at);
        let place = &mut self.places[at];
        let power = power || place.files.is_off();
        place.files = match power {
            true => place.files.crash(seed),
            false => place.files.kill(),
        };
        place.process = None;
        place.fails = false;
        // Nobody starts a node before there is room.
        place.files.set_full(0);
        place.starts_at = starts_at;
        for ends in pairs().filter(|(one, other)| [*one, *other].contains(&id.0)) {
            self.unlink(ends);
        }
        self.tell(|| format!("{id:?} ends, without power: {power}"));
    }

    fn link(&mut self, ends: Pair) {
        let (one, other) = (
            &self.places[ends.0 as usize - 1],
            &self.places[ends.1 as usize - 1],
        );
        let starts = one.linked_as().zip(other.linked_as());
        let processes = one.process.as_ref().zip(other.process.as_ref());
        let Some(((first, second), (here, there))) = starts.zip(processes) else {
            return;
        };
        if self.wire.up.insert(ends) {
            let since = self.unlinked.remove(&ends).unwrap_or(self.clock);
            let after = self.clock.saturating_sub(since);
            for node in [ends.0, ends.1] {
                self.ledger.is_back(node, after, self.clock);
            }
            until_power_cut(|| here.side.up(other.id, second));
            until_power_cut(|| there.side.up(one.id, first));
            self.tell(|| format!("{ends:?} are linked"));
        }
    }

    fn unlink(&mut self, ends: Pair) {
        if !self.wire.up.contains(&ends) {
            return;
        }
        self.wire.cut(ends);
        self.unlinked.insert(ends, self.clock);
        for (of, peer) in [(ends.0, ends.1), (ends.1, ends.0)] {
            if let Some(process) = &self.places[of as usize - 1].process {
                until_power_cut(|| process.side.down(NodeId(peer)));
            }
        }
        self.tell(|| format!("{ends:?} have no link any more"));
    }

    /// Some milliseconds.
    fn round(&mut self) -> Result<(), String> {
        let time = Duration::from_millis(1 + self.random.below(40));
        self.clock += time;
        let clock = self.clock;
        for at in 0..self.places.len() {
            let steps = [3, 12, 60][self.random.below(3) as usize];
            let place = &self.places[at];
            if let Some(process) = &place.process {
                let behind = clock.saturating_sub(process.world.elapsed());
                process.world.advance(behind);
                for _ in 0..steps {
                    if until_power_cut(|| process.world.step()) != Some(true) {
                        break;
                    }
                }
            }
            self.go_on(at)?;
        }
        let there = self.places.len();
        for ends in pairs().filter(|(_, other)| *other as usize <= there) {
            if !self.cut.contains(&ends) {
                self.link(ends);
            }
        }
        self.wire.collect(clock, &mut self.random);
        let places = &self.places;
        while let Some(frame) = self.wire.arrived(clock, |_| true) {
            if let Some(process) = &places[frame.to.0 as usize - 1].process {
                until_power_cut(|| process.side.receive(frame));
            }
        }
        for at in 0..self.places.len() {
            self.hear(at)?;
            if self.places[at].process.is_some() && self.places[at].files.is_off() {
                self.end(at)?;
            }
            if self.places[at].process.is_none() && self.places[at].starts_at <= clock {
                self.start(at)?;
            }
        }
        self.strike_at_steps()
    }

    /// Where the queue's standing has just changed is where something is half done: a process ends there, now or at one of its
    /// next writes.
    fn strike_at_steps(&mut self) -> Result<(), String> {
        for at in 0..self.places.len() {
            let step = self.places[at].step();
            if step.is_none() || step == self.steps[at] {
                continue;
            }
            let id = self.places[at].id;
            self.tell(|| format!("{id:?}: {step:?}, {:?}", self.places[at].standing()));
            // What clients hold while a queue becomes a group's, or is one node's own again, comes back (docs/decisions/0059).
            self.ledger.changes += u64::from(self.places[at].is_decided_by() != self.decided[at]);
            self.decided[at] = self.places[at].is_decided_by();
            self.was_led |= step.as_ref().is_some_and(|step| step.leads);
            let is_half_done = step.as_ref().is_some_and(Step::is_half_done);
            self.steps[at] = step;
            self.busy_until = self.clock + BUSY_FOR;
            let one_in = if is_half_done { 2 } else { 6 };
            if self.trouble.nodes_end && self.ends_left > 0 && self.random.below(one_in) == 0 {
                self.counts[2] += 1;
                let at = match self.random.below(4) {
                    0 => self.random.below(self.places.len() as u64) as usize,
                    _ => at,
                };
                self.strike(at)?;
            }
        }
        Ok(())
    }

    fn strike(&mut self, at: usize) -> Result<(), String> {
        if self.places[at].process.is_none() {
            return Ok(());
        }
        self.ends_left -= 1;
        match self.random.below(3) {
            0 => self.end(at),
            _ => {
                let within = [4, 40][self.random.below(2) as usize];
                let call = 1 + self.random.below(within);
                self.places[at].files.fail_at(call, Fault::PowerCut);
                self.places[at].fails = true;
                Ok(())
            }
        }
    }

    fn all_run(&self) -> bool {
        self.places.iter().all(|place| place.client().is_some())
    }

    fn declare(&mut self) -> Result<(), String> {
        let arguments = match self.kind {
            Kind::Three => Table::new().with("x-queue-type", "quorum"),
            Kind::Grows { .. } => Table::new()
                .with("x-queue-type", "quorum")
                .with("x-quorum-initial-group-size", 1)
                .with("x-quorum-target-group-size", 3),
            Kind::Mirrored => Table::new(),
            Kind::Stream => match &self.stream {
                Some(stream) => stream.arguments(),
                None => Table::new(),
            },
        };
        let declare = DeclareQueue {
            name: QUEUE.into(),
            durable: true,
            arguments,
            ..DeclareQueue::default()
        };
        let at = self.random.below(self.places.len() as u64) as usize;
        for _ in 0..10_000 {
            match self.places[at]
                .client()
                .and_then(|client| client.declare(&declare))
            {
                Some(declared) => return declared,
                None => self.round()?,
            }
        }
        Err("the queue is never declared".to_owned())
    }

    fn act(&mut self, is_busy: bool) -> Result<(), String> {
        let at = self.random.below(self.places.len() as u64) as usize;
        let chosen = self.random.below(NODES.into()) as usize;
        let ends = pairs().nth(chosen).unwrap_or((1, 2));
        let kinds = if is_busy && self.random.chance() { 31 } else { 64 };
        if self.kind == Kind::Stream && self.random.below(4) > 0 {
            return self.act_on_stream(at);
        }
        let chosen_act = match self.kind {
            Kind::Stream => 45 + self.random.below(14),
            _ => self.random.below(kinds),
        };
        match chosen_act {
            0..=15 => self.publish(at),
            16..=21 => self.consume(at),
            22 => self.places[at].client_mut().into_iter().for_each(Client::cancel),
            23..=30 => self.places[at].client_mut().into_iter().for_each(Client::get),
            31..=44 => self.settle(at),
            45..=46 if self.trouble.links_break => {
                self.counts[0] += u64::from(self.cut.insert(ends));
                self.unlink(ends);
            }
            47..=54 => drop(self.cut.remove(&ends)),
            55 if self.trouble.nodes_end && self.ends_left > 0 => self.strike(at)?,
            56..=58 if self.kind == Kind::Stream => {}
            56..=58 if self.trouble.members_change || self.kind != Kind::Three => self.change_all(at),
            _ => {}
        }
        Ok(())
    }

    /// A client publishes some messages.
    fn publish(&mut self, at: usize) {
        let (count, size) = (1 + self.random.below(4), self.random.below(600) as usize);
        for _ in 0..count {
            let place = &mut self.places[at];
            let (own, number) = (place.id, place.published + 1);
            let taken = place.client_mut().is_some_and(|it| it.publish(own, number, size));
            if taken {
                place.published = number;
                if let Some(stream) = &mut self.stream {
                    stream.book.sent.insert((own.0, number));
                }
                self.ledger.sent.insert((own.0, number));
                self.tell(|| format!("{:?} is published", (own.0, number)));
            }
        }
        self.places[at].client_mut().into_iter().for_each(Client::flush);
    }

    fn consume(&mut self, at: usize) {
        let prefetch = 1 + self.random.below(6) as u32;
        let client = self.places[at].client_mut();
        client
            .filter(|it| it.consumers.len() < 2)
            .into_iter()
            .for_each(|it| it.consume(prefetch));
    }

    /// A client is done with one of its deliveries, or gives it back.
    fn settle(&mut self, at: usize) {
        let (chosen, gives_back) = (self.random.bits() as usize, self.random.below(4) == 0);
        let id = self.places[at].id;
        let start = self.places[at].linked_as().unwrap_or(0);
        let Some(client) = self.places[at].client_mut().filter(|it| !it.held.is_empty()) else {
            return;
        };
        let held = client.held.remove(chosen % client.held.len());
        // What comes back too often is dropped.
        let gives_back = gives_back && self.ledger.deliveries(held.id) < 8;
        client.settle(&held, gives_back);
        if !gives_back {
            self.ledger
                .accept(held.id, ((id.0, start), held.since), held.before);
        }
        self.tell(|| format!("{:?} is settled by {id:?}, given back: {gives_back}", held.id));
    }

    /// Operators say who is to have the queue, at times several at once; then it is left as it is for some time.
    fn change_all(&mut self, at: usize) {
        // Members that were all removed before anybody has led the queue, and whose nodes have started since, are never opened:
        // their logs have nothing of it. Nor has anybody else; it is to be deleted.
        if self.clock < self.settles_until || !self.was_led {
            return;
        }
        for _ in 0..[1, 1, 1, 3][self.random.below(4) as usize] {
            self.change_members(at);
        }
        let settles_for = [0, 300, 2_000][self.random.below(3) as usize];
        self.settles_until = self.clock + Duration::from_millis(settles_for);
    }

    /// An operator says who is to have the queue.
    fn change_members(&mut self, at: usize) {
        let chosen = broker::NodeId(1 + self.random.below(NODES.into()));
        let (is_member, wanted) = (self.random.below(3) > 0, self.some_mirrors());
        let request = match self.kind {
            Kind::Mirrored => wanted.request(),
            _ => {
                let view = self.places[at].client().map(|client| client.broker.view());
                let known = view.as_ref().and_then(|view| view.queue(VHOST, QUEUE));
                let Some(id) = known.map(|known| known.id) else {
                    return;
                };
                if !is_member && !self.trouble.members_change {
                    return;
                }
                Request::ChangeMember {
                    id,
                    node: chosen,
                    is_member,
                }
            }
        };
        self.counts[3] += 1;
        self.ask(at, request);
    }

    fn some_mirrors(&mut self) -> Mirrors {
        let node = 1 + self.random.below(NODES.into()) as u32;
        match self.random.below(8) {
            0..=2 => Mirrors::None,
            3 => Mirrors::Only(node),
            4 => Mirrors::Without(node),
            _ => Mirrors::All,
        }
    }

    fn ask(&self, at: usize, request: Request) {
        let side = self.places[at].process.as_ref().map(|it| &it.side);
        if let Some(catalog) = side.and_then(|side| side.catalog()) {
            self.tell(|| format!("the catalog is asked on {:?}: {request:?}", self.places[at].id));
            until_power_cut(|| catalog.ask(request, Box::new(drop)));
        }
    }
}
