//! A queue of one node whose journal becomes a group's, and the node's own again, while a client publishes and consumes and
//! the power is cut at any write. After each start exactly one journal goes on, with everything that was confirmed.

use crate::world::{Simulated, until_power_cut};
use broker::groups::alone::{self, Alone};
use broker::groups::handover::{self, Contents, InCharge, Successor};
use broker::groups::{Act, Ends, Hosted, Identity, Links, Receipt, Reply};
use broker::queues::{Heir, Queue, alone as queues};
use broker::{Answer, ChannelId, Disposal, Event, Outbox, QueueQuestion};
use bytes::Bytes;
use cluster::{GroupId, MemberId, Membership, NodeId, Settings};
use model::properties::Properties;
use model::{BlockBuilder, Incarnation, Message, QueueId, QueueSettings, Ranges, RouteBuf, Seq};
use queue::fifo::Classic;
use queue::{Effect, Held, Request, store};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use storage::faulty::{Fault, FaultyFs, Random};
use storage::{JournalId, Kind, LogOptions};

const QUEUE: QueueId = QueueId(17);
const CHANNEL: ChannelId = ChannelId(1);
const CLIENTS: Incarnation = Incarnation(1);
const TICK: Duration = Duration::from_millis(100);
/// So many steps are waited for something that comes.
const PATIENT: usize = 40;

struct Nowhere;

impl Links for Nowhere {
    fn send(&self, _: NodeId, _: Bytes) {}

    fn bulk(&self, _: NodeId, _: Bytes) {}
}

/// What the next journal's owner is told.
#[derive(Default)]
struct Next(Mutex<Told>);

#[derive(Default)]
struct Told {
    contents: Option<Contents>,
    taken: Vec<Request<Ends>>,
    given_up: bool,
}

impl Next {
    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Successor for Next {
    fn begin(&self, contents: Contents) {
        self.lock().contents = Some(contents);
    }

    fn given_up(&self) {
        self.lock().given_up = true;
    }
}

impl Heir for Next {
    fn take(&self, request: Request<Ends>) {
        self.lock().taken.push(request);
    }
}

/// Who has the queue.
enum Owner {
    Node(Arc<Queue>),
    Group(Arc<Hosted<Classic<Ends>>>),
}

/// A process.
struct Life {
    world: Arc<Simulated>,
    alone: Alone,
    owner: Owner,
    /// The queue is handed over, or back.
    next: Option<Arc<Next>>,
    /// What could not be asked yet.
    waiting: Vec<Request<Ends>>,
    /// In this term the group was told what clients hold.
    told_in: Option<u64>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.world.abandon();
    }
}

/// A seed's run.
pub struct Handover {
    files: FaultyFs,
    clock: Duration,
    random: Random,
    life: Option<Life>,
    starts: u64,
    /// The last group that the queue was to be handed over to.
    group: GroupId,
    outbox: Arc<Outbox>,
    published: u64,
    confirmed: BTreeSet<u64>,
    /// What clients wanted settled, whether or not it was.
    accepted: BTreeSet<u64>,
    held: BTreeMap<Seq, u64>,
    /// What clients were done with since the queue had its last owner.
    settled: BTreeMap<Seq, u64>,
    /// A call of the files fails, or has failed.
    fails: bool,
    /// How often the queue has gone to a group, and back, and how often that was given up.
    pub handed: [u64; 3],
}

fn me() -> MemberId {
    MemberId::first(NodeId(1))
}

fn durable() -> QueueSettings {
    QueueSettings {
        durable: true,
        ..QueueSettings::default()
    }
}

/// The only member of a group.
fn alone_in(group: GroupId) -> Identity {
    Identity {
        group,
        me: me(),
        members: Membership::of(&[me()]),
    }
}

fn reply_to(outbox: &Arc<Outbox>) -> Reply {
    Reply {
        outbox: outbox.clone(),
        channel: CHANNEL,
        question: QueueQuestion(1),
        no_ack: false,
    }
}

/// Runs a seed.
///
/// # Errors
/// What was wrong.
pub fn run(seed: u64) -> Result<Handover, String> {
    let mut run = Handover::new(seed);
    for _ in 0..3 + run.random.below(4) {
        run.start()?;
        if run.random.below(4) > 0 {
            let call = 1 + run.random.below(120);
            let fault =
                [Fault::PowerCut, Fault::PowerCut, Fault::Io, Fault::Full][run.random.below(4) as usize];
            run.fails = fault != Fault::PowerCut;
            run.files.fail_at(call, fault);
        }
        for _ in 0..20 + run.random.below(60) {
            run.act()?;
        }
        run.end();
    }
    run.start()?;
    run.finish()?;
    Ok(run)
}

/// A queue whose contents take several sectors of a disk goes to a group, or `back`, and at the `call`-th call of files
/// since that began the power is cut. False if it was over before.
///
/// # Errors
/// What was wrong.
pub fn run_cut_at(seed: u64, back: bool, call: u64) -> Result<bool, String> {
    let mut run = Handover::new(seed);
    run.start()?;
    for _ in 0..60 {
        run.publish();
        run.accept();
        run.ask(Request::Get {
            no_ack: false,
            reply: reply_to(&run.outbox),
        });
        run.turn()?;
    }
    if back {
        run.hand_on();
        run.turn_until(|life| matches!(&life.owner, Owner::Group(hosted) if hosted.term().is_some()))?;
    }
    run.files.fail_at(call, Fault::PowerCut);
    let before = run.handed;
    run.hand_on();
    while run.handed == before && !run.files.is_off() {
        run.turn()?;
    }
    let cut = run.files.is_off();
    run.end();
    run.start()?;
    run.finish()?;
    Ok(cut)
}

impl Handover {
    fn new(seed: u64) -> Self {
        Self {
            files: FaultyFs::new(),
            clock: Duration::from_secs(1),
            random: Random(seed),
            life: None,
            starts: 0,
            group: GroupId(0),
            outbox: Arc::default(),
            published: 0,
            confirmed: BTreeSet::new(),
            accepted: BTreeSet::new(),
            held: BTreeMap::new(),
            settled: BTreeMap::new(),
            fails: false,
            handed: [0; 3],
        }
    }

    fn act_of(&self) -> Act {
        let outbox = self.outbox.clone();
        Box::new(move |effect| match effect {
            Effect::Confirm(receipt) => outbox.push(receipt.into_confirm().1),
            Effect::Reply(reply, answer) => outbox.push(reply.answered(Some(answer))),
            _ => {}
        })
    }

    fn start(&mut self) -> Result<(), String> {
        self.starts += 1;
        self.outbox = Arc::default();
        let world = Simulated::new(self.files.clone(), self.clock, self.random.bits());
        let options = LogOptions {
            file_bytes: 16 << 10,
            size_limit: 64 << 10,
            make_ahead: false,
            retry_ms: 20,
            ..LogOptions::default()
        };
        let (dir, incarnation) = (Path::new("/data"), self.starts);
        let links = Arc::new(Nowhere);
        let settings = Settings::default();
        let alone = alone::open(
            world.clone(),
            dir,
            options,
            NodeId(1),
            incarnation,
            settings,
            links,
        );
        let mut alone = alone.map_err(|error| format!("{error:?}"))?;
        let replaying = queues::replay(&alone, QUEUE).ok_or("the queue's journal can't be read")?;
        let (found, log) = (alone.found(self.group), &alone.node.log);
        let own = JournalId::new(Kind::QUEUE, QUEUE.0);
        let in_charge = replaying.whose().in_charge(own, self.group, found, log);
        let in_charge = in_charge.map_err(|why| format!("{why:?}"))?;
        let over: Vec<GroupId> = alone.unopened().map(GroupId).collect();
        let goes_on = |group: &GroupId| in_charge == InCharge::Group && *group == self.group;
        over.into_iter()
            .filter(|group| !goes_on(group))
            .for_each(|group| alone.forget(group));
        let owner = match in_charge {
            InCharge::Group => {
                let member = alone.member(alone_in(self.group), durable(), self.act_of());
                Owner::Group(member.map_err(|why| format!("{why:?}"))?)
            }
            InCharge::Own(_) | InCharge::Neither => {
                let queue = queues::start(&alone.node, QUEUE, replaying);
                Owner::Node(queue.ok_or("there are no such queues")?)
            }
        };
        alone.sweep().map_err(|error| format!("{error:?}"))?;
        alone.groups.add_peer(NodeId(1));
        let memory = self.random.below(4_000) as usize;
        self.life = Some(Life {
            world,
            alone,
            owner,
            next: None,
            waiting: vec![Request::Store(store::Request::Shrink { memory })],
            told_in: None,
        });
        Ok(())
    }

    /// The process is gone, with its power or without.
    fn end(&mut self) {
        let power = self.random.chance() || self.files.is_off();
        let seed = self.random.bits();
        self.files = match power {
            true => self.files.crash(seed),
            false => self.files.kill(),
        };
        self.life = None;
        self.fails = false;
        self.held.clear();
        self.settled.clear();
    }

    fn act(&mut self) -> Result<(), String> {
        match self.random.below(16) {
            0..=4 => self.publish(),
            5..=7 => self.ask(Request::Get {
                no_ack: false,
                reply: reply_to(&self.outbox),
            }),
            8 | 9 => self.accept(),
            10 => self.ask(Request::Store(store::Request::Checkpoint {
                before: store::LogPlace(0),
            })),
            11 => self.hand_on(),
            _ => {}
        }
        self.turn()
    }

    fn publish(&mut self) {
        let mut block = BlockBuilder::default();
        let first = self.published + 1;
        self.published += 1 + self.random.below(4);
        let size = self.random.below(900) as usize;
        for number in first..=self.published {
            let body = format!("{number} {}", "x".repeat(size));
            let (route, properties) = (RouteBuf::new(b"", b"q"), Properties::amqp091(b""));
            block.push_message(&Message::new(route.as_route(), properties, body.as_bytes()));
        }
        let receipt = Receipt {
            outbox: self.outbox.clone(),
            channel: CHANNEL,
            numbers: Ranges::span(first, self.published),
            queue: None,
            timed: None,
        };
        let Some(life) = &self.life else { return };
        let block = Arc::new(block.finish(true, life.alone.node.now()));
        let receipt = Some(receipt);
        self.ask(Request::Enqueue { block, receipt });
    }

    fn accept(&mut self) {
        let at = self.random.below(8) as usize;
        let Some((seq, number)) = self.held.iter().nth(at).map(|(seq, number)| (*seq, *number)) else {
            return;
        };
        self.held.remove(&seq);
        self.settled.insert(seq, number);
        self.accepted.insert(number);
        self.ask(Request::Settle {
            consumer: None,
            seqs: Ranges::one(seq),
            disposal: Disposal::Accepted,
        });
    }

    fn ask(&mut self, request: Request<Ends>) {
        if let Some(life) = &mut self.life {
            life.waiting.push(request);
        }
    }

    /// The queue goes to a group, or back.
    fn hand_on(&mut self) {
        let Some(life) = self.life.as_mut().filter(|life| life.next.is_none()) else {
            return;
        };
        let next = Arc::new(Next::default());
        life.next = Some(next.clone());
        match &life.owner {
            Owner::Node(queue) => {
                self.group = GroupId(self.group.0 + 1);
                let (identity, behind) = (alone_in(self.group), 1 + self.random.below(3));
                until_power_cut(|| queue.hand_over(identity, behind, next));
            }
            Owner::Group(hosted) => {
                let own = JournalId::new(Kind::QUEUE, QUEUE.0);
                until_power_cut(|| hosted.hand_back(own, next));
            }
        }
    }

    /// Time passes.
    fn turn(&mut self) -> Result<(), String> {
        self.clock += TICK;
        let steps = self.random.below(30);
        let Some(life) = &mut self.life else { return Ok(()) };
        life.world.advance(TICK);
        until_power_cut(|| life.alone.groups.tick());
        for _ in 0..steps {
            if until_power_cut(|| life.world.step()) != Some(true) {
                break;
            }
        }
        if self.files.is_off() {
            return Ok(());
        }
        self.hear()?;
        until_power_cut(|| self.follow()).unwrap_or(Ok(()))?;
        self.hear()
    }

    /// Time passes until it is so.
    fn turn_until(&mut self, is_so: impl Fn(&Life) -> bool) -> Result<(), String> {
        for _ in 0..10 * PATIENT {
            if self.life.as_ref().is_some_and(&is_so) {
                return Ok(());
            }
            self.turn()?;
        }
        Err("it does not come to that".to_owned())
    }

    /// Whoever has the queue now is told what clients hold, and asked what waits.
    fn follow(&mut self) -> Result<(), String> {
        let (held, settled) = (self.held(), self.settled.keys().copied().collect::<Ranges>());
        let (identity, act, outbox) = (alone_in(self.group), self.act_of(), self.outbox.clone());
        let tell = || {
            let nodes = vec![CLIENTS];
            let (node, held, reply) = (CLIENTS, vec![held.clone()], reply_to(&outbox));
            let (more, awaits) = (false, Request::AwaitNodes { nodes });
            // What was done with before may not have come through.
            let again = Request::Settle {
                consumer: None,
                seqs: settled.clone(),
                disposal: Disposal::Accepted,
            };
            let holds = Request::Holds {
                node,
                held,
                more,
                reply,
            };
            [awaits, holds, again]
        };
        let Some(mut life) = self.life.take() else {
            return Ok(());
        };
        if let Some(next) = life.next.clone() {
            let Told {
                contents,
                taken,
                given_up,
            } = mem::take(&mut *next.lock());
            life.waiting.splice(0..0, taken);
            if given_up && !self.fails {
                return Err("the queue could not be handed over".to_owned());
            }
            if given_up {
                life.next = None;
                self.handed[2] += 1;
            }
            if let Some(contents) = contents {
                let node = &life.alone.node;
                let (opened, way) = match &life.owner {
                    Owner::Node(_) => {
                        let opened = handover::open(&life.alone.groups, identity, durable(), contents, act);
                        (opened.map(Owner::Group).map_err(|why| format!("{why:?}")), 0)
                    }
                    Owner::Group(_) => {
                        let queue = queues::take_back(node, QUEUE, contents);
                        let queue = queue.map_err(|why| format!("{why:?}"));
                        let queue = queue.and_then(|queue| queue.ok_or("no such queue".to_owned()));
                        let told = queue.inspect(|queue| tell().into_iter().for_each(|it| queue.submit(it)));
                        (told.map(Owner::Node), 1)
                    }
                };
                match opened {
                    Ok(owner) => {
                        if let Owner::Node(queue) = &life.owner {
                            let heir: Arc<dyn Heir> = next.clone();
                            queue.hand_on(&heir);
                            life.waiting.splice(0..0, mem::take(&mut next.lock().taken));
                        }
                        (life.owner, life.next, life.told_in) = (owner, None, None);
                        self.handed[way] += 1;
                    }
                    // It is tried again.
                    Err(_) if self.fails || self.files.is_off() => next.lock().contents = Some(contents),
                    Err(why) => return Err(why),
                }
            }
        }
        match &life.owner {
            Owner::Node(queue) => mem::take(&mut life.waiting)
                .into_iter()
                .for_each(|request| queue.submit(request)),
            Owner::Group(hosted) => {
                let (term, now) = (hosted.term(), life.alone.node.now());
                if term.is_some() && term != life.told_in && life.next.is_none() {
                    life.told_in = term;
                    for request in tell() {
                        hosted.submit(now, request).map_err(|_| "it leads no more")?;
                    }
                }
                let mut waiting = mem::take(&mut life.waiting).into_iter();
                if term.is_some() {
                    for request in waiting.by_ref() {
                        if let Err(request) = hosted.submit(now, request) {
                            life.waiting.push(request);
                            break;
                        }
                    }
                }
                life.waiting.extend(waiting);
            }
        }
        self.life = Some(life);
        Ok(())
    }

    fn held(&self) -> Held {
        Held {
            consumer: None,
            seqs: self
                .held
                .keys()
                .chain(self.settled.keys())
                .copied()
                .collect::<BTreeSet<Seq>>()
                .into_iter()
                .collect(),
            returns: 0,
        }
    }

    /// What clients were told.
    fn hear(&mut self) -> Result<(), String> {
        let mut events = Vec::new();
        self.outbox.take_now(&mut events);
        for event in events {
            match event {
                Event::Confirm { numbers, .. } => self.confirmed.extend(numbers.iter()),
                Event::Answer {
                    answer: Some(Answer::Got { delivery, .. }),
                    ..
                } => {
                    for seq in delivery.seqs.iter() {
                        let message = delivery.block.message((seq - delivery.base) as usize);
                        let text = String::from_utf8_lossy(message.body).into_owned();
                        let number = text.split(' ').next().and_then(|text| text.parse().ok());
                        let number = number.ok_or_else(|| format!("{text} was never published"))?;
                        if self.held.insert(seq, number).is_some()
                            || self.held.values().filter(|it| **it == number).count() > 1
                        {
                            return Err(format!("{number} is in hands twice"));
                        }
                    }
                }
                Event::Answer {
                    answer: Some(Answer::Discard(discard)),
                    ..
                } if self.held.keys().any(|seq| discard.contains(*seq)) => {
                    return Err(format!("{discard:?} is not believed to be in hands"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Everything is taken and settled that is there.
    fn finish(&mut self) -> Result<(), String> {
        let mut got = BTreeSet::new();
        let mut idle = 0;
        while idle < PATIENT {
            self.ask(Request::Get {
                no_ack: false,
                reply: reply_to(&self.outbox),
            });
            self.turn()?;
            idle += 1;
            for (seq, number) in mem::take(&mut self.held) {
                idle = 0;
                if !got.insert(number) {
                    return Err(format!("{number} is there twice"));
                }
                self.ask(Request::Settle {
                    consumer: None,
                    seqs: Ranges::one(seq),
                    disposal: Disposal::Accepted,
                });
            }
        }
        let missing: Vec<u64> = self
            .confirmed
            .iter()
            .filter(|number| !got.contains(number) && !self.accepted.contains(number))
            .copied()
            .collect();
        if !missing.is_empty() {
            return Err(format!("{missing:?} were confirmed, and are lost"));
        }
        let Some(life) = &self.life else {
            return Err("it does not run".to_owned());
        };
        let segments = &life.alone.node.segments;
        let groups = (1..=self.group.0).map(|group| JournalId::new(Kind::MEMBER, group));
        let owners = groups.chain([JournalId::new(Kind::QUEUE, QUEUE.0)]);
        let left: u64 = owners.map(|owner| segments.owner_bytes(owner).0).sum();
        match left {
            0 => Ok(()),
            left => Err(format!("{left} bytes of segments are needed by nobody")),
        }
    }
}
