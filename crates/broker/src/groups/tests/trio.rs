//! Three nodes with a queue of which each has a copy, turned in one thread.

use super::world::ByHand;
use crate::clients::outbox::{ChannelId, Outbox, Question};
use crate::groups::alone::{self, Alone};
use crate::groups::handle::deliver;
use crate::groups::{Hosted, Identity, Links, NodeGroups, block_at};
use crate::node::ends::{Ends, Receipt, Reply};
use bytes::Bytes;
use cluster::{GroupId, MemberId, Membership, NodeId, Settings};
use model::properties::Properties;
use model::{BlockBuilder, Journaled, Message, QueueSettings, Ranges, RouteBuf, Seq, Timestamp};
use queue::fifo::{Classic, Record};
use queue::store::LogPlace;
use queue::{Answer, Delivery, Disposal, Effect, Request};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use storage::LogOptions;
use storage::faulty::{Fault, FaultyFs};

pub const GROUP: GroupId = GroupId(7);
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

struct Life {
    world: Arc<ByHand>,
    alone: Alone,
    queue: Arc<Hosted<Classic<Ends>>>,
    left: Arc<Mutex<Vec<Left>>>,
}

pub struct Trio {
    disks: Vec<FaultyFs>,
    lives: Vec<Option<Life>>,
    incarnation: u64,
    pub network: Network,
    /// Nothing goes from the first to the second.
    pub cut: BTreeSet<(u32, u32)>,
    /// Their disks don't do anything just now.
    pub hung: BTreeSet<u32>,
}

impl Trio {
    pub fn new() -> Self {
        let mut trio = Self {
            disks: NODES.map(|_| FaultyFs::new()).to_vec(),
            lives: NODES.map(|_| None).into(),
            incarnation: 0,
            network: Network::default(),
            cut: BTreeSet::new(),
            hung: BTreeSet::new(),
        };
        NODES.iter().for_each(|node| trio.start(*node));
        trio
    }

    pub fn start(&mut self, id: u32) {
        self.incarnation += 1;
        let disk = self.disks[id as usize - 1].clone();
        let world = ByHand::new(disk);
        let links = Arc::new(Link {
            from: id,
            network: self.network.clone(),
        });
        let options = LogOptions {
            file_bytes: 64 << 10,
            make_ahead: false,
            ..LogOptions::default()
        };
        let dir = Path::new("/data");
        let (node, at) = (NodeId(id), self.incarnation);
        let mut alone =
            alone::open(world.clone(), dir, options, node, at, Settings::default(), links).unwrap();
        let left = Arc::new(Mutex::new(Vec::new()));
        let leaves = left.clone();
        let act = Box::new(move |effect| {
            leaves.lock().unwrap().push(word(&effect));
            let _ = deliver(effect);
        });
        let settings = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        NODES.iter().for_each(|peer| alone.groups.add_peer(NodeId(*peer)));
        let identity = Identity {
            group: GROUP,
            me: MemberId::first(node),
            members: Membership::of(&NODES.map(|node| MemberId::first(NodeId(node)))),
        };
        let queue = alone.member(identity, settings, act).unwrap();
        alone.sweep().unwrap();
        self.lives[id as usize - 1] = Some(Life {
            world,
            alone,
            queue,
            left,
        });
    }

    fn life(&self, id: u32) -> &Life {
        self.lives[id as usize - 1].as_ref().unwrap()
    }

    pub fn is_up(&self, id: u32) -> bool {
        self.lives[id as usize - 1].is_some()
    }

    pub fn queue(&self, id: u32) -> &Hosted<Classic<Ends>> {
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

    /// The next thing that this node's disk is to do fails.
    pub fn break_disk(&self, id: u32) {
        self.disks[id as usize - 1].fail_at(1, Fault::Io);
    }

    /// A tick of all clocks, and everything that follows.
    pub fn tick(&self) {
        for life in self.lives.iter().flatten() {
            life.alone.groups.tick();
        }
        self.settle();
    }

    /// So many ticks.
    pub fn ticks(&self, count: usize) {
        (0..count).for_each(|_| self.tick());
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
                    Lane::Bulk => groups.bulk(NodeId(from), frame),
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
        let mut block = BlockBuilder::default();
        let route = RouteBuf::new(b"", b"q");
        for number in numbers.clone() {
            let (properties, body) = (Properties::amqp091(b""), number.to_string());
            block.push_message(&Message::new(route.as_route(), properties, body.as_bytes()));
        }
        let receipt = Receipt {
            outbox: Arc::new(Outbox::new()),
            channel: CHANNEL,
            numbers: Ranges::span(*numbers.start(), *numbers.end()),
            queue: None,
            timed: None,
        };
        let request = Request::Enqueue {
            block: Arc::new(block.finish(true, Timestamp(1))),
            receipt: Some(receipt),
        };
        self.queue(id).submit(Timestamp(1), request).is_ok()
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
        let block = block_at(log, GROUP, LogPlace(index), block).ok()?;
        std::str::from_utf8(block.message(0).body).ok()?.parse().ok()
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
    let number = std::str::from_utf8(message.body).unwrap().parse().unwrap();
    Left::Got(number, seq)
}
