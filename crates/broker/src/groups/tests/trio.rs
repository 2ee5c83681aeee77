//! Three nodes with a queue of which each has a copy, turned in one thread.

use super::world::ByHand;
use crate::clients::outbox::{ChannelId, Outbox, Question};
use crate::groups::alone::{self, Alone};
use crate::groups::handle::deliver;
use crate::groups::{Found, Hosted, Identity, Links, NodeGroups, block_at, member_journal};
use crate::node::Node;
use crate::node::ends::{Ends, Receipt, Reply};
use crate::node::paging::Nearby;
use bytes::Bytes;
use cluster::{GroupId, MemberId, Membership, NodeId, Settings};
use model::properties::{Properties, PropertiesBuilder};
use model::{Block, BlockBuilder, Journaled, Message, QueueSettings, Ranges, RouteBuf, Seq, Timestamp};
use queue::fifo::{Classic, Record};
use queue::store::{self, LogPlace};
use queue::{Answer, Delivery, Disposal, Effect, Request};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use storage::LogOptions;
use storage::faulty::{Fault, FaultyFs};

pub const GROUP: GroupId = GroupId(7);
/// As which the group goes on with one node's copy alone.
pub const NEXT: GroupId = GroupId(8);
pub const NODES: [u32; 3] = [1, 2, 3];
const CHANNEL: ChannelId = ChannelId(1);

/// What has left a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Confirm(u64),
    /// A message, with its number in the queue.
    Got(u64, Seq),
    Empty,
    Other,
}

/// The lane that a frame is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Entries,
    Bulk,
}

/// Frames under way: from, to, in which lane, bytes.
type Network = Arc<Mutex<VecDeque<(u32, u32, Lane, Bytes)>>>;

struct Link {
    from: u32,
    network: Network,
}

impl Links for Link {
    fn send(&self, to: NodeId, frame: Bytes) {
        let under_way = (self.from, to.0, Lane::Entries, frame);
        self.network.lock().unwrap().push_back(under_way);
    }

    fn bulk(&self, to: NodeId, frame: Bytes) {
        let under_way = (self.from, to.0, Lane::Bulk, frame);
        self.network.lock().unwrap().push_back(under_way);
    }
}

type Queue = Hosted<Classic<Ends>>;

/// What has left, where several look.
type Shared = Arc<Mutex<Vec<Left>>>;

struct Life {
    world: Arc<ByHand>,
    alone: Alone,
    queue: Arc<Queue>,
    left: Shared,
}

pub struct Trio {
    disks: Vec<FaultyFs>,
    lives: Vec<Option<Life>>,
    incarnation: u64,
    /// The node with whose copy alone the group goes on.
    alone: Option<u32>,
    /// Which members the nodes are.
    members: [MemberId; 3],
    /// Bytes that came by the bulk lane.
    bulk: AtomicU64,
    pub network: Network,
    /// Nothing goes from the first to the second.
    pub cut: BTreeSet<(u32, u32)>,
    /// Their disks don't do anything just now.
    pub hung: BTreeSet<u32>,
    /// What each queue's bodies may take of memory, and what its settings are.
    memory: usize,
    settings: QueueSettings,
    /// Above so many bytes logs ask for space.
    size_limit: u64,
    /// How long bodies are, at least.
    pub body: usize,
}

impl Trio {
    pub fn new() -> Self {
        let settings = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        Self::with(settings, 1 << 20, LogOptions::default().size_limit)
    }

    /// Queues of these settings, whose bodies may take so much of memory, over logs that ask for space from `size_limit` on.
    pub fn with(settings: QueueSettings, memory: usize, size_limit: u64) -> Self {
        let mut trio = Self {
            disks: NODES.map(|_| FaultyFs::new()).to_vec(),
            lives: NODES.map(|_| None).into(),
            incarnation: 0,
            alone: None,
            members: NODES.map(|node| MemberId::first(NodeId(node))),
            bulk: AtomicU64::new(0),
            network: Network::default(),
            cut: BTreeSet::new(),
            hung: BTreeSet::new(),
            memory,
            settings,
            size_limit,
            body: 1,
        };
        NODES.iter().for_each(|node| trio.start(*node));
        trio
    }

    /// Messages are larger than memory has room for.
    pub fn deep() -> Self {
        let settings = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        Self {
            body: 100,
            ..Self::with(settings, 8 << 10, u64::MAX)
        }
    }

    pub fn start(&mut self, id: u32) {
        self.incarnation += 1;
        let disk = self.disks[id as usize - 1].clone();
        let life = self.open(id, disk).unwrap();
        self.lives[id as usize - 1] = Some(life);
    }

    /// Starts a node whose member must not be opened, and is given up: it comes back as another one. Which it was, and is.
    pub fn start_renouncing(&mut self, id: u32) -> (MemberId, MemberId) {
        self.incarnation += 1;
        let (world, mut alone) = self.open_node(id, self.disks[id as usize - 1].clone()).unwrap();
        let refused = self.open_member(id, &mut alone);
        assert!(refused.is_err(), "the damage was not noticed");
        alone.renounce(GROUP, None);
        let next = self.next_life(id);
        let (queue, left) = self.open_member(id, &mut alone).unwrap();
        let life = self.begin(world, alone, queue, left);
        self.lives[id as usize - 1] = Some(life);
        next
    }

    /// A node that goes on gives its damaged member up, and has another one in its place. Which it was, and is.
    pub fn renounce(&mut self, id: u32) -> (MemberId, MemberId) {
        let next = self.next_life(id);
        let mut life = self.lives[id as usize - 1].take().unwrap();
        life.alone.renounce(GROUP, Some(member_journal(GROUP)));
        let (queue, left) = self.open_member(id, &mut life.alone).unwrap();
        let life = self.begin(life.world, life.alone, queue, left);
        self.lives[id as usize - 1] = Some(life);
        next
    }

    /// Whether the log of a node that is down has contents of the group.
    pub fn finds_contents(&self, id: u32) -> bool {
        let (world, alone) = self.open_node(id, self.disks[id as usize - 1].copy()).unwrap();
        let found = alone.found(GROUP).is_some_and(Found::has_begun);
        world.abandon();
        found
    }

    fn next_life(&mut self, id: u32) -> (MemberId, MemberId) {
        let member = &mut self.members[id as usize - 1];
        let before = *member;
        member.life += 1;
        (before, *member)
    }

    /// Whether a node opens on this disk, and the member with it.
    fn open(&self, id: u32, disk: FaultyFs) -> Result<Life, String> {
        let (world, mut alone) = self.open_node(id, disk)?;
        let (queue, left) = self.open_member(id, &mut alone)?;
        Ok(self.begin(world, alone, queue, left))
    }

    fn open_node(&self, id: u32, disk: FaultyFs) -> Result<(Arc<ByHand>, Alone), String> {
        let world = ByHand::new(disk);
        let links = Arc::new(Link {
            from: id,
            network: self.network.clone(),
        });
        let options = LogOptions {
            file_bytes: 64 << 10,
            make_ahead: false,
            size_limit: self.size_limit,
            ..LogOptions::default()
        };
        let (dir, settings) = (Path::new("/data"), Settings::default());
        let (node, at) = (NodeId(id), self.incarnation);
        let alone = alone::open(world.clone(), dir, options, node, at, settings, links);
        let alone = alone.map_err(|error| format!("{error:?}"))?;
        NODES.iter().for_each(|peer| alone.groups.add_peer(NodeId(*peer)));
        Ok((world, alone))
    }

    fn open_member(&self, id: u32, alone: &mut Alone) -> Result<(Arc<Queue>, Shared), String> {
        let left = Arc::new(Mutex::new(Vec::new()));
        let leaves = left.clone();
        let act = Box::new(move |effect| {
            leaves.lock().unwrap().push(word(&effect));
            let _ = deliver(effect);
        });
        let queue = alone.member(self.identity(id), self.settings.clone(), act);
        Ok((queue.map_err(|why| format!("{why:?}"))?, left))
    }

    fn identity(&self, id: u32) -> Identity {
        let first = |node: u32| MemberId::first(NodeId(node));
        match self.alone == Some(id) {
            true => Identity {
                group: NEXT,
                me: first(id),
                members: Membership::of(&[first(id)]),
            },
            false => Identity {
                group: GROUP,
                me: self.member(id),
                members: Membership::of(&NODES.map(first)),
            },
        }
    }

    /// A node that is down starts, and has the group go on with its copy alone. False if its disk has failed before all of that
    /// was on it.
    pub fn start_alone(&mut self, id: u32) -> bool {
        (self.alone, self.incarnation) = (Some(id), self.incarnation + 1);
        let Ok((world, mut alone)) = self.open_node(id, self.disks[id as usize - 1].clone()) else {
            return false;
        };
        let begun = alone.refound(GROUP, &self.identity(id));
        world.work();
        let disk = &self.disks[id as usize - 1];
        if disk.is_off() {
            world.abandon();
            return false;
        }
        begun.unwrap();
        let (queue, left) = self.open_member(id, &mut alone).unwrap();
        let life = self.begin(world, alone, queue, left);
        self.lives[id as usize - 1] = Some(life);
        true
    }

    /// The same for a node that runs.
    pub fn goes_on_alone(&mut self, id: u32) {
        self.alone = Some(id);
        let mut life = self.lives[id as usize - 1].take().unwrap();
        let (groups, log) = (&life.alone.groups, &life.alone.node.log);
        let term = groups.status(GROUP).unwrap().term;
        groups.close(GROUP);
        let copy = life.queue.last_copy(term).unwrap();
        let found = copy.refound(log, &self.identity(id)).unwrap();
        log.forget_group(GROUP.0);
        life.alone.found_now(NEXT, found);
        let (queue, left) = self.open_member(id, &mut life.alone).unwrap();
        let life = self.begin(life.world, life.alone, queue, left);
        self.lives[id as usize - 1] = Some(life);
    }

    /// After so many calls from now on, the node's disk does nothing any more.
    pub fn cut_power(&self, id: u32, calls: u64) {
        self.disks[id as usize - 1].fail_at(calls, Fault::PowerCut);
    }

    /// The node's disk, as it was.
    pub fn disk(&self, id: u32) -> FaultyFs {
        self.disks[id as usize - 1].copy()
    }

    /// The node, which is down, has this disk.
    pub fn put_disk(&mut self, id: u32, disk: &FaultyFs) {
        self.disks[id as usize - 1] = disk.copy();
    }

    /// The power of a node that did not start is gone; see [`Trio::crash`].
    pub fn reboot(&mut self, id: u32, seed: u64) {
        let disk = &mut self.disks[id as usize - 1];
        *disk = disk.crash(seed);
    }

    fn begin(&self, world: Arc<ByHand>, alone: Alone, queue: Arc<Queue>, left: Shared) -> Life {
        alone.sweep().unwrap();
        let memory = self.memory;
        let shrink = Request::Store(store::Request::Shrink { memory });
        assert!(queue.submit(Timestamp(1), shrink).is_ok());
        Life {
            world,
            alone,
            queue,
            left,
        }
    }

    /// One byte is another one, in the middle of what the node's log writes while this happens.
    pub fn rot_what_is_written(&self, id: u32, act: impl FnOnce(&Self)) {
        let disk = &self.disks[id as usize - 1];
        let logs = || {
            let files = disk.files().into_iter();
            let logs = files.filter(|path| path.starts_with("/data/log"));
            let read = logs.filter_map(|path| Some((path.clone(), disk.bytes(&path)?)));
            read.collect::<Vec<_>>()
        };
        let before = logs();
        act(self);
        let mut changed = before
            .into_iter()
            .zip(logs())
            .filter_map(|((_, before), (path, after))| {
                let differs = |at: &usize| before.get(*at) != after.get(*at);
                let first = (0..after.len()).find(differs)?;
                let last = (0..after.len()).rfind(differs)?;
                Some((last - first, first, path))
            });
        let (length, first, path) = changed.by_ref().max_by_key(|(length, ..)| *length).unwrap();
        assert!(disk.corrupt(&path, |bytes| bytes[first + length / 2] ^= 0x40));
    }

    /// What a node that is down says when it is started on its disk with one byte of the log changed, if it isn't opened.
    pub fn refuses_after_rot(&self, id: u32, offset: usize) -> Option<String> {
        let disk = self.disks[id as usize - 1].copy();
        let files = disk.files().into_iter();
        let mut log: Vec<_> = files
            .filter(|path| path.starts_with("/data/log") && path.to_string_lossy().contains("0001"))
            .collect();
        log.sort();
        assert!(disk.corrupt(&log[0], |bytes| bytes[offset] ^= 0x40));
        let opened = self.open(id, disk);
        if let Ok(life) = &opened {
            life.world.abandon();
        }
        opened.err()
    }

    fn life(&self, id: u32) -> &Life {
        self.lives[id as usize - 1].as_ref().unwrap()
    }

    pub fn is_up(&self, id: u32) -> bool {
        self.lives[id as usize - 1].is_some()
    }

    pub fn queue(&self, id: u32) -> &Queue {
        &self.life(id).queue
    }

    pub fn groups(&self, id: u32) -> &NodeGroups {
        &self.life(id).alone.groups
    }

    pub fn syncs(&self, id: u32) -> u64 {
        self.life(id).alone.node.log.syncs()
    }

    /// The power goes; what was not synced may be there or not, as the seed says. Returns what had left and was not looked at.
    pub fn crash(&mut self, id: u32, seed: u64) -> Vec<Left> {
        let Some(life) = self.lives[id as usize - 1].take() else {
            return Vec::new();
        };
        let disk = &mut self.disks[id as usize - 1];
        *disk = disk.crash(seed);
        life.world.abandon();
        self.hung.remove(&id);
        self.network.lock().unwrap().retain(|(from, ..)| *from != id);
        std::mem::take(&mut *life.left.lock().unwrap())
    }

    /// The node's disk is gone, and with it the member: it comes back as another one.
    pub fn wipe(&mut self, id: u32) -> (MemberId, MemberId) {
        self.crash(id, 0);
        self.disks[id as usize - 1] = FaultyFs::new();
        self.next_life(id)
    }

    pub fn member(&self, id: u32) -> MemberId {
        self.members[id as usize - 1]
    }

    /// How many bytes came by the bulk lane since somebody asked.
    pub fn bulk(&self) -> u64 {
        self.bulk.swap(0, Ordering::Relaxed)
    }

    /// Each so many bytes of this node's segments, one is not what it was.
    pub fn rot(&self, id: u32, each: usize) {
        let disk = &self.disks[id as usize - 1];
        let files = disk.files().into_iter();
        for path in files.filter(|path| path.starts_with("/data/segments")) {
            disk.corrupt(&path, |bytes| {
                let rotten = bytes.iter_mut().skip(300).step_by(each);
                rotten.for_each(|byte| *byte ^= 0x40);
            });
        }
    }

    /// There is no space on a node's disk, until so often none was found.
    pub fn fill_disk(&self, id: u32, refusals: u64) {
        self.disks[id as usize - 1].set_full(refusals);
    }

    /// The next thing that this node's disk is to do fails.
    pub fn break_disk(&self, id: u32) {
        self.disks[id as usize - 1].fail_at(1, Fault::Io);
    }

    /// A tick of all clocks, and everything that follows.
    pub fn tick(&self) {
        self.tick_only();
        self.settle();
    }

    /// A tick of all clocks, and nothing else yet.
    pub fn tick_only(&self) {
        for life in self.lives.iter().flatten() {
            life.alone.groups.tick();
        }
    }

    /// So many ticks.
    pub fn ticks(&self, count: usize) {
        (0..count).for_each(|_| self.tick());
    }

    /// Until followers know what is committed: no later than a heartbeat.
    pub fn tell_commits(&self) {
        self.ticks(2);
    }

    /// Lets the disks and the network do what there is to do.
    pub fn settle(&self) {
        loop {
            self.work();
            if !self.deliver_one() {
                return;
            }
        }
    }

    /// Lets the disks, and whatever else has a thread, do what there is to do.
    pub fn work(&self) {
        for id in NODES
            .iter()
            .filter(|id| self.is_up(**id) && !self.hung.contains(id))
        {
            self.life(*id).world.work();
        }
    }

    /// Each node's threads make one step, if they have something to do.
    pub fn step(&self) {
        for life in self.lives.iter().flatten() {
            life.world.step_once();
        }
    }

    /// The node's thread of this name makes no step from now on, or any of them does again.
    pub fn hold(&self, id: u32, thread: Option<&'static str>) {
        self.life(id).world.hold(thread);
    }

    /// The node's thread that is held makes a step. Whether it had something to do.
    pub fn step_held(&self, id: u32) -> bool {
        self.life(id).world.step_held()
    }

    /// Brings the next frame that arrives. False if none is under way.
    pub fn deliver_one(&self) -> bool {
        loop {
            let Some((from, to, lane, frame)) = self.network.lock().unwrap().pop_front() else {
                return false;
            };
            if !self.cut.contains(&(from, to)) && self.is_up(to) {
                let groups = &self.life(to).alone.groups;
                match lane {
                    Lane::Entries => groups.receive(NodeId(from), frame),
                    Lane::Bulk => {
                        self.bulk.fetch_add(frame.len() as u64, Ordering::Relaxed);
                        groups.bulk(NodeId(from), frame);
                    }
                }
                return true;
            }
        }
    }

    /// Nothing goes to this node, nor from it.
    pub fn isolate(&mut self, id: u32) {
        for other in NODES.into_iter().filter(|other| *other != id) {
            self.cut.insert((id, other));
            self.cut.insert((other, id));
        }
    }

    pub fn heal(&mut self) {
        self.cut.clear();
    }

    /// Ticks until one of these leads the queue and decides; which.
    pub fn leader_of(&self, among: &[u32]) -> u32 {
        for _ in 0..200 {
            let leads = |id: &&u32| self.is_up(**id) && self.queue(**id).leads();
            if let Some(leader) = among.iter().find(leads) {
                return *leader;
            }
            self.tick();
        }
        panic!("nobody leads");
    }

    pub fn leader(&self) -> u32 {
        self.leader_of(&NODES)
    }

    /// Publishes messages of these numbers, each with the number as its body. False if this node does not lead.
    pub fn publish(&self, id: u32, numbers: std::ops::RangeInclusive<u64>) -> bool {
        let receipt = Receipt {
            outbox: Arc::new(Outbox::new()),
            channel: CHANNEL,
            numbers: Ranges::span(*numbers.start(), *numbers.end()),
            queue: None,
            timed: None,
        };
        let request = Request::Enqueue {
            block: Arc::new(block(numbers, self.body)),
            receipt: Some(receipt),
        };
        self.queue(id).submit(Timestamp(1), request).is_ok()
    }

    /// Each message by itself, and everything that comes of it happens before the next.
    pub fn publish_each(&self, id: u32, numbers: std::ops::RangeInclusive<u64>) {
        for number in numbers {
            assert!(self.publish(id, number..=number));
            self.settle();
        }
    }

    pub fn get(&self, id: u32) -> bool {
        // Nobody holds anything that another leader has handed out: clients of this test give that up.
        let nodes = Vec::new();
        let _ = self.queue(id).submit(Timestamp(1), Request::AwaitNodes { nodes });
        let reply = Reply {
            outbox: Arc::new(Outbox::new()),
            channel: CHANNEL,
            question: Question(1),
            no_ack: false,
        };
        let request = Request::Get { no_ack: false, reply };
        self.queue(id).submit(Timestamp(1), request).is_ok()
    }

    pub fn ack(&self, id: u32, seq: Seq) -> bool {
        let request = Request::Settle {
            consumer: None,
            seqs: Ranges::one(seq),
            disposal: Disposal::Accepted,
        };
        self.queue(id).submit(Timestamp(1), request).is_ok()
    }

    /// The number of the message that this node's log has in the record at this index of the group.
    pub fn number_at(&self, id: u32, index: u64) -> Option<u64> {
        let block = |record: &[u8]| match Record::decode(record)? {
            Record::Enqueued { block, .. } => Some(block),
            _ => None,
        };
        let log = &self.life(id).alone.node.log;
        let block = block_at(log, GROUP, LogPlace(index), &mut Nearby::default(), block).ok()?;
        std::str::from_utf8(block.message(0).body)
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// Has this node's copy move all bodies that lie in the log, and write its contents down.
    pub fn checkpoint(&self, id: u32) {
        let before = LogPlace(u64::MAX);
        let request = Request::Store(store::Request::Checkpoint { before });
        let _ = self.queue(id).submit(Timestamp(1), request);
    }

    /// The indices of the entries that this node's log has of the group.
    pub fn span(&self, id: u32) -> Option<(u64, u64)> {
        self.node(id).log.group_span(GROUP.0)
    }

    /// Where the group's log begins for this node's member: at a checkpoint, or at what somebody lacks.
    pub fn base(&self, id: u32) -> u64 {
        let groups = &self.life(id).alone.groups;
        groups.status(GROUP).unwrap().base.index
    }

    /// Has the queue hand out what is next: its number in the queue.
    pub fn take_next(&self, id: u32) -> Option<Seq> {
        self.left(id);
        assert!(self.get(id));
        self.settle();
        self.left(id).into_iter().find_map(|left| match left {
            Left::Got(_, seq) => Some(seq),
            _ => None,
        })
    }

    pub fn node(&self, id: u32) -> &Arc<Node> {
        &self.life(id).alone.node
    }

    /// Bytes that segments hold for this node's copy and that are needed, and bytes of all their files.
    pub fn segment_bytes(&self, id: u32) -> (u64, u64) {
        self.node(id).segments.owner_bytes(member_journal(GROUP))
    }

    /// How many files of segments there are.
    pub fn segment_files(&self, id: u32) -> usize {
        let files = self.disks[id as usize - 1].files().into_iter();
        files.filter(|path| path.starts_with("/data/segments")).count()
    }

    /// How many messages of this node's copy are not in memory.
    pub fn paged(&self, id: u32) -> u64 {
        use model::Machine as _;
        self.queue(id)
            .inspect(|machine| machine.status().paged)
            .unwrap_or(0)
    }

    /// What has left this node's copy since somebody asked.
    pub fn left(&self, id: u32) -> Vec<Left> {
        std::mem::take(&mut *self.life(id).left.lock().unwrap())
    }

    /// How many messages this node's copy has; `None` while it is made anew.
    pub fn messages(&self, id: u32) -> Option<u64> {
        use model::Machine as _;
        self.queue(id).inspect(|machine| machine.status().persistent)
    }

    /// Takes all messages that there are from this leader: their numbers.
    pub fn drain(&self, id: u32) -> Vec<u64> {
        self.left(id);
        let mut found = Vec::new();
        loop {
            assert!(self.get(id));
            self.settle();
            match self.left(id)[..] {
                [Left::Got(number, _)] => found.push(number),
                [Left::Empty] => return found,
                ref other => panic!("{other:?}"),
            }
        }
    }
}

/// Messages of these numbers, each with the number as its body, of four priorities in turn.
pub fn block(numbers: std::ops::RangeInclusive<u64>, width: usize) -> Block {
    let mut block = BlockBuilder::default();
    let route = RouteBuf::new(b"", b"q");
    for number in numbers {
        let properties = PropertiesBuilder::new().priority((number % 4) as u8).encode();
        let number = number.to_string();
        let body = " ".repeat(width.saturating_sub(number.len())) + &number;
        let properties = Properties::amqp091(&properties);
        block.push_message(&Message::new(route.as_route(), properties, body.as_bytes()));
    }
    block.finish(true, Timestamp(1))
}

fn word(effect: &Effect<Ends>) -> Left {
    match effect {
        Effect::Confirm(receipt) => Left::Confirm(receipt.numbers.last().unwrap_or(0)),
        Effect::Reply(_, Answer::Got { delivery, .. }) => got(delivery),
        Effect::Reply(_, Answer::Empty) => Left::Empty,
        _ => Left::Other,
    }
}

fn got(delivery: &Delivery) -> Left {
    let seq = delivery.seqs.first().unwrap();
    let message = delivery.block.message((seq - delivery.base) as usize);
    let number = std::str::from_utf8(message.body).unwrap().trim().parse().unwrap();
    Left::Got(number, seq)
}
