//! What the simulator turns by hand, over real sockets, threads and disks: a replicated queue on three nodes that have links.

#![allow(clippy::unwrap_used, reason = "test code")]

use broker::groups::alone::{self, Alone};
use broker::groups::{Ends, Hosted, Identity, NodeGroups, Receipt};
use broker::{ChannelId, Outbox};
use bytes::Bytes;
use cluster::{GroupId, MemberId, Membership, NodeId, Settings};
use gateway::Endpoint;
use gateway::link::{Lane, LinkOptions, Links, PROTOCOL, PeerAddress, Receiver, Secret, ToGroups};
use model::properties::Properties;
use model::{BlockBuilder, Machine, Message, QueueSettings, Ranges, RouteBuf, Timestamp};
use queue::fifo::Classic;
use queue::{Effect, Request};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use storage::{LogOptions, System};

const GROUP: GroupId = GroupId(1);
const NODES: [u32; 3] = [1, 2, 3];

/// A test that waits for so long has failed. No test depends on how long anything takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Nobody works here.
struct Nobody;

impl Receiver for Nobody {
    fn up(&self, _: NodeId, _: Lane, _: u64) {}

    fn frame(&self, _: NodeId, _: Lane, _: Bytes) {}

    fn down(&self, _: NodeId, _: Lane, _: bool) {}

    fn room(&self, _: NodeId, _: Lane) {}
}

/// A node with links and a copy of the queue.
struct Node {
    id: u32,
    links: Arc<Links>,
    groups: Arc<NodeGroups>,
    queue: Arc<Hosted<Classic<Ends>>>,
    /// The last publish that was confirmed.
    confirmed: Arc<AtomicU64>,
    ticks: Arc<AtomicBool>,
    ticking: Option<JoinHandle<()>>,
    _alone: Alone,
    _receiver: Arc<ToGroups>,
}

impl Node {
    fn start(id: u32, incarnation: u64, dir: &Path) -> Self {
        let secret = Secret::new(b"a shared secret").unwrap();
        let mut options = LinkOptions::new(&format!("queue@{id}"), incarnation, secret);
        options.endpoints = vec![Endpoint::plain(PROTOCOL, "127.0.0.1:0".parse().unwrap())];
        let links = Arc::new(Links::new(&options));
        let (world, log) = (System::real(), LogOptions::default());
        let opened = alone::open(
            world,
            dir,
            log,
            NodeId(id),
            incarnation,
            Settings::default(),
            links.clone(),
        );
        let mut alone = opened.map_err(|error| format!("{error:?}")).unwrap();
        NODES.iter().for_each(|peer| alone.groups.add_peer(NodeId(*peer)));
        let confirmed = Arc::new(AtomicU64::new(0));
        let confirms = confirmed.clone();
        let act = Box::new(move |effect: Effect<Ends>| {
            if let Effect::Confirm(receipt) = effect {
                confirms.fetch_max(receipt.numbers.last().unwrap_or(0), Ordering::SeqCst);
            }
        });
        let identity = Identity {
            group: GROUP,
            me: MemberId::first(NodeId(id)),
            members: Membership::of(&NODES.map(|node| MemberId::first(NodeId(node)))),
        };
        let settings = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        let queue = alone.member(identity, settings, act);
        let queue: Arc<Hosted<Classic<Ends>>> = queue.map_err(|why| format!("{why:?}")).unwrap();
        alone.sweep().unwrap();
        let groups = alone.groups.clone();
        let receiver = ToGroups::new(groups.clone(), Arc::new(Nobody));
        let told: Arc<dyn Receiver> = receiver.clone();
        links.start(&options, Arc::downgrade(&told)).unwrap();
        let ticks = Arc::new(AtomicBool::new(true));
        let (ticked, goes_on) = (groups.clone(), ticks.clone());
        let ticking = std::thread::spawn(move || {
            while goes_on.load(Ordering::SeqCst) {
                ticked.tick();
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Self {
            id,
            links,
            groups,
            queue,
            confirmed,
            ticks,
            ticking: Some(ticking),
            _alone: alone,
            _receiver: receiver,
        }
    }

    fn peer(&self) -> PeerAddress {
        let address = self.links.endpoints()[0].address.network().unwrap();
        PeerAddress {
            id: NodeId(self.id),
            name: format!("queue@{}", self.id),
            host: address.ip().to_string(),
            port: address.port(),
        }
    }

    fn publish(&self, numbers: std::ops::RangeInclusive<u64>) {
        let route = RouteBuf::new(b"", b"q");
        let mut block = BlockBuilder::default();
        for number in numbers.clone() {
            let properties = Properties::amqp091(b"");
            block.push_message(&Message::new(route.as_route(), properties, &number.to_be_bytes()));
        }
        let receipt = Receipt {
            outbox: Arc::new(Outbox::new()),
            channel: ChannelId(1),
            numbers: Ranges::span(*numbers.start(), *numbers.end()),
            queue: None,
            timed: None,
        };
        let request = Request::Enqueue {
            block: Arc::new(block.finish(true, Timestamp(1))),
            receipt: Some(receipt),
        };
        assert!(self.queue.submit(Timestamp(1), request).is_ok(), "it leads");
    }

    /// How many messages its copy has taken, as far as they are committed.
    fn taken(&self) -> Option<u64> {
        self.queue.inspect(|machine| machine.status().next_seq - 1)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.links.stop();
        self.ticks.store(false, Ordering::SeqCst);
        self.ticking.take().map(JoinHandle::join);
    }
}

fn wait<T>(what: &str, mut is_so: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = is_so() {
            return found;
        }
        assert!(Instant::now() < end, "{what}: that did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn introduce(nodes: &[Node]) {
    for node in nodes {
        node.links.set_peers(nodes.iter().map(Node::peer).collect());
    }
}

/// The place of the node that leads.
fn leader(nodes: &[Node]) -> usize {
    wait("somebody leads", || {
        nodes.iter().position(|node| node.queue.leads())
    })
}

#[test]
fn a_replicated_queue_works_over_links_outlives_its_leader_and_takes_a_node_back() {
    let dirs = NODES.map(|_| tempfile::tempdir().unwrap());
    let mut nodes: Vec<_> = NODES
        .iter()
        .zip(&dirs)
        .map(|(id, dir)| Node::start(*id, 1, dir.path()))
        .collect();
    introduce(&nodes);
    let first = leader(&nodes);
    for number in 1..=300 {
        nodes[first].publish(number..=number);
    }
    wait("all are confirmed", || {
        (nodes[first].confirmed.load(Ordering::SeqCst) == 300).then_some(())
    });
    for node in &nodes {
        wait("all copies have them", || {
            (node.taken() == Some(300)).then_some(())
        });
    }

    let gone = nodes.remove(first);
    let (id, died) = (gone.id, Instant::now());
    drop(gone);
    let second = leader(&nodes);
    println!("another node leads after {:?}", died.elapsed());
    nodes[second].publish(301..=400);
    wait("a majority confirms", || {
        (nodes[second].confirmed.load(Ordering::SeqCst) == 400).then_some(())
    });

    nodes.push(Node::start(id, 2, dirs[id as usize - 1].path()));
    introduce(&nodes);
    for node in &nodes {
        wait("all copies have all", || {
            (node.taken() == Some(400)).then_some(())
        });
        assert_eq!(
            node.groups.status(GROUP).unwrap().snapshots,
            0,
            "by entries, not by contents"
        );
    }
    let lane = |of: &Node| of.links.status()[0].lanes[0].clone();
    assert!(nodes.iter().all(|node| lane(node).counts.frames_in > 0));
}

#[test]
fn a_cut_between_a_leader_and_all_others_is_healed_by_links_that_are_made_again() {
    let dirs = NODES.map(|_| tempfile::tempdir().unwrap());
    let nodes: Vec<_> = NODES
        .iter()
        .zip(&dirs)
        .map(|(id, dir)| Node::start(*id, 1, dir.path()))
        .collect();
    introduce(&nodes);
    let first = leader(&nodes);
    nodes[first].publish(1..=10);
    wait("they are confirmed", || {
        (nodes[first].confirmed.load(Ordering::SeqCst) == 10).then_some(())
    });
    // Nobody is its peer any more: it is refused everywhere, and refuses all.
    let rest: Vec<_> = nodes.iter().filter(|node| node.id != nodes[first].id).collect();
    nodes[first].links.set_peers(Vec::new());
    for node in &rest {
        node.links.set_peers(rest.iter().map(|it| it.peer()).collect());
    }
    let second = wait("another one leads", || {
        rest.iter().find(|node| node.queue.leads())
    });
    second.publish(11..=20);
    wait("a majority confirms", || {
        (second.confirmed.load(Ordering::SeqCst) == 20).then_some(())
    });
    assert!(nodes[first].taken().is_none_or(|taken| taken == 10));
    introduce(&nodes);
    for node in &nodes {
        wait("all copies have all", || (node.taken() == Some(20)).then_some(()));
    }
}
