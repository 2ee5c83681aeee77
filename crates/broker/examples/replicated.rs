//! A replicated queue on three nodes in one process, over links in memory and real logs: what a message costs all three
//! of them, and what one alone costs each.
//!
//! `cargo run --release -p leveret-broker --example replicated [MESSAGES]` prints the figures.
#![allow(
    clippy::disallowed_methods,
    reason = "a measurement of real threads by a real clock"
)]

use broker::groups::alone::{self, Alone};
use broker::groups::{Ends, Hosted, Identity, Links, Receipt};
use broker::{ChannelId, Outbox};
use bytes::Bytes;
use cluster::{GroupId, MemberId, Membership, NodeId, Settings};
use model::properties::Properties;
use model::{Block, BlockBuilder, Message, QueueSettings, Ranges, RouteBuf, Timestamp};
use queue::fifo::Classic;
use queue::{Effect, Request};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use storage::{LogOptions, System};

const GROUP: GroupId = GroupId(1);
const NODES: [u32; 3] = [1, 2, 3];
const BODY: usize = 1_000;
/// So many publishes may wait for their confirms.
const WINDOW: u64 = 1_000;

/// The ways from a node to the others.
struct Wires {
    from: NodeId,
    to: BTreeMap<NodeId, Sender<(NodeId, Bytes)>>,
    frames: AtomicU64,
}

impl Links for Wires {
    fn send(&self, to: NodeId, frame: Bytes) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        if let Some(wire) = self.to.get(&to) {
            let _ = wire.send((self.from, frame));
        }
    }

    /// Nobody lags here.
    fn bulk(&self, _: NodeId, _: Bytes) {}
}

struct Node {
    alone: Alone,
    queue: Arc<Hosted<Classic<Ends>>>,
    wires: Arc<Wires>,
    _dir: tempfile::TempDir,
}

struct Cluster {
    nodes: Vec<Node>,
    /// The last publish that is confirmed.
    confirms: Receiver<u64>,
}

impl Cluster {
    fn start() -> Result<Self, Box<dyn Error>> {
        let (mut to, mut from) = (BTreeMap::new(), Vec::new());
        for node in NODES {
            let (sender, receiver) = channel();
            to.insert(NodeId(node), sender);
            from.push(receiver);
        }
        let (confirmed, confirms) = channel();
        let mut nodes = Vec::new();
        for (id, frames) in NODES.into_iter().zip(from) {
            let wires = Arc::new(Wires {
                from: NodeId(id),
                to: to.clone(),
                frames: AtomicU64::new(0),
            });
            let node = Node::start(NodeId(id), wires, confirmed.clone())?;
            let groups = node.alone.groups.clone();
            thread::spawn(move || {
                for (from, frame) in frames {
                    groups.receive(from, frame);
                }
            });
            nodes.push(node);
        }
        let clocks: Vec<_> = nodes.iter().map(|node| node.alone.groups.clone()).collect();
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(100));
                clocks.iter().for_each(|groups| groups.tick());
            }
        });
        Ok(Self { nodes, confirms })
    }

    fn leader(&self) -> &Node {
        loop {
            match self.nodes.iter().find(|node| node.queue.leads()) {
                Some(leader) => return leader,
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Publishes messages in blocks of so many, as far as the window lets it. How long that took, by the wall and of
    /// the processor.
    fn publish(&self, messages: u64, block: u64) -> (Duration, Duration) {
        let (leader, outbox) = (self.leader(), Arc::new(Outbox::new()));
        let (began, before) = (Instant::now(), processor_time());
        let (mut published, mut confirmed) = (0, 0);
        while confirmed < messages {
            while published < messages && published - confirmed < WINDOW {
                let numbers = Ranges::span(published + 1, published + block);
                published += block;
                let request = Request::Enqueue {
                    block: Arc::new(messages_of(block)),
                    receipt: Some(Receipt {
                        outbox: outbox.clone(),
                        channel: ChannelId(1),
                        numbers,
                        queue: None,
                        timed: None,
                    }),
                };
                if leader.queue.submit(Timestamp(1), request).is_err() {
                    println!("the leader has changed: start it again");
                    std::process::exit(1);
                }
                while let Ok(last) = self.confirms.try_recv() {
                    confirmed = last;
                }
            }
            if confirmed < messages
                && let Ok(last) = self.confirms.recv()
            {
                confirmed = last;
            }
        }
        (began.elapsed(), processor_time() - before)
    }

    fn syncs(&self) -> Vec<u64> {
        self.nodes
            .iter()
            .map(|node| node.alone.node.log.syncs())
            .collect()
    }

    fn frames(&self) -> u64 {
        self.nodes
            .iter()
            .map(|node| node.wires.frames.load(Ordering::Relaxed))
            .sum()
    }
}

impl Node {
    fn start(id: NodeId, wires: Arc<Wires>, confirmed: Sender<u64>) -> Result<Self, Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        let (world, settings) = (System::real(), Settings::default());
        let mut alone = alone::open(
            world,
            dir.path(),
            LogOptions::default(),
            id,
            1,
            settings,
            wires.clone(),
        )
        .map_err(|error| format!("{error:?}"))?;
        let settings = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        let confirmed = Mutex::new(confirmed);
        let act = Box::new(move |effect: Effect<Ends>| {
            if let Effect::Confirm(receipt) = effect
                && let (Ok(confirmed), Some(last)) = (confirmed.lock(), receipt.numbers.last())
            {
                let _ = confirmed.send(last);
            }
        });
        NODES.iter().for_each(|peer| alone.groups.add_peer(NodeId(*peer)));
        let identity = Identity {
            group: GROUP,
            me: MemberId::first(id),
            members: Membership::of(&NODES.map(|node| MemberId::first(NodeId(node)))),
        };
        let queue = alone.member(identity, settings, act);
        let queue = queue.map_err(|why| format!("{why:?}"))?;
        Ok(Self {
            alone,
            queue,
            wires,
            _dir: dir,
        })
    }
}

fn messages_of(count: u64) -> Block {
    let (mut block, route) = (BlockBuilder::default(), RouteBuf::new(b"", b"q"));
    for _ in 0..count {
        let properties = Properties::amqp091(b"");
        block.push_message(&Message::new(route.as_route(), properties, &[b'x'; BODY]));
    }
    block.finish(true, Timestamp(1))
}

/// What this process has used of the processors, of all its threads, also of those that have ended: to a hundredth of a second.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let used = after_name
        .split(' ')
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse().unwrap_or(0));
    Duration::from_millis(used.sum::<u64>() * 10)
}

/// Everything that is there is taken out and gone, so that the next measurement begins as the first one did.
fn purge(cluster: &Cluster) {
    let leader = cluster.leader();
    let last = leader
        .queue
        .inspect(|queue| model::Machine::status(queue).next_seq);
    let seqs = Ranges::span(1, last.unwrap_or(2) - 1);
    let _ = leader.queue.submit(Timestamp(1), Request::GiveUp { seqs });
}

fn main() -> Result<(), Box<dyn Error>> {
    let messages: u64 = std::env::args().nth(1).map_or(Ok(100_000), |text| text.parse())?;
    let cluster = Cluster::start()?;
    cluster.publish(messages / 10, 10);
    println!("{messages} messages of {BODY} bytes, {WINDOW} unconfirmed, three nodes in one process");
    println!(
        "{:>10} {:>14} {:>20} {:>22} {:>18}",
        "a block", "messages/s", "µs of a processor", "messages a sync", "frames a message"
    );
    for block in [1, 10, 100] {
        purge(&cluster);
        let (syncs, frames) = (cluster.syncs(), cluster.frames());
        let (wall, used) = cluster.publish(messages, block);
        let synced: u64 = cluster
            .syncs()
            .iter()
            .zip(&syncs)
            .map(|(now, then)| now - then)
            .sum();
        println!(
            "{block:>10} {:>14.0} {:>20.2} {:>22.1} {:>18.3}",
            messages as f64 / wall.as_secs_f64(),
            used.as_secs_f64() * 1e6 / messages as f64,
            messages as f64 * 3.0 / synced as f64,
            (cluster.frames() - frames) as f64 / messages as f64,
        );
    }
    one_at_a_time(&cluster);
    Ok(())
}

/// Each message waits for the confirm of the one before it.
fn one_at_a_time(cluster: &Cluster) {
    const ALONE: u64 = 500;
    let (syncs, frames) = (cluster.syncs(), cluster.frames());
    let (began, before) = (Instant::now(), processor_time());
    for _ in 0..ALONE {
        cluster.publish(1, 1);
    }
    let (wall, used) = (began.elapsed(), processor_time() - before);
    let synced: Vec<String> = cluster
        .syncs()
        .iter()
        .zip(&syncs)
        .map(|(now, then)| format!("{:.2}", (now - then) as f64 / ALONE as f64))
        .collect();
    println!(
        "one alone: {:.2} ms until confirmed, {:.0} µs of a processor, {} syncs on each node, {:.1} frames",
        wall.as_secs_f64() * 1e3 / ALONE as f64,
        used.as_secs_f64() * 1e6 / ALONE as f64,
        synced.join(", "),
        (cluster.frames() - frames) as f64 / ALONE as f64,
    );
}
