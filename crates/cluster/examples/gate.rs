//! Ten thousand groups on three nodes, in one process: what they cost while they sleep, how soon they are led again
//! when a node is lost, and what happens when all of them wake.
//!
//! `cargo run --release -p leveret-cluster --example gate [GROUPS]` prints the figures beside their gates, and fails if
//! one isn't met. Ticks are simulated ones of 100 ms; a message between nodes takes none, nor does a sync.

#![expect(
    clippy::disallowed_methods,
    reason = "it measures: clocks and the process's memory"
)]

use bytes::Bytes;
use cluster::{Event, GroupId, Groups, MemberId, Membership, NodeId, Recovered, Settings, Turn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);
const NODES: u32 = 3;

/// Three nodes and what is under way between them.
struct Cluster {
    nodes: Vec<Option<Groups>>,
    network: VecDeque<(NodeId, NodeId, Bytes)>,
    leaders: BTreeMap<GroupId, NodeId>,
    frames: u64,
    bytes: u64,
    records: u64,
    committed: u64,
}

impl Cluster {
    fn new(groups: u64) -> Result<Self, Box<dyn Error>> {
        let members: Vec<_> = (1..=NODES).map(|node| MemberId::first(NodeId(node))).collect();
        let mut nodes = Vec::new();
        for node in (1..=NODES).map(NodeId) {
            let mut node = Groups::new(node, 1, Settings::default());
            (1..=NODES).for_each(|peer| node.add_peer(NodeId(peer)));
            for group in (1..=groups).map(GroupId) {
                let me = MemberId::first(node.node());
                let new = Recovered::new_group(me, Membership::of(&members));
                node.open(group, new).map_err(|e| format!("{group:?}: {e:?}"))?;
            }
            nodes.push(Some(node));
        }
        Ok(Self {
            nodes,
            network: VecDeque::new(),
            leaders: BTreeMap::new(),
            frames: 0,
            bytes: 0,
            records: 0,
            committed: 0,
        })
    }

    /// A tick of all nodes, and everything that follows from it. How long it took.
    fn tick(&mut self) -> Duration {
        let began = Instant::now();
        self.nodes.iter_mut().flatten().for_each(Groups::tick);
        self.settle();
        began.elapsed()
    }

    fn settle(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.collect(node));
        while let Some((from, to, frame)) = self.network.pop_front() {
            let to = to.0 as usize - 1;
            if let Some(node) = &mut self.nodes[to] {
                if let Err(rejected) = node.receive(from, &frame) {
                    println!("refused: {rejected:?}");
                }
                self.collect(to);
            }
        }
    }

    fn collect(&mut self, at: usize) {
        let Some(node) = &mut self.nodes[at] else { return };
        loop {
            let Turn {
                number,
                append,
                send,
                committed,
                events,
            } = node.turn();
            self.records += append.len() as u64;
            self.committed += committed.iter().filter(|c| !c.record.is_empty()).count() as u64;
            for event in events {
                if let Event::Leader {
                    group,
                    leader: Some(leader),
                    ..
                } = event
                {
                    self.leaders.insert(group, leader.node);
                }
            }
            for (to, frame) in send {
                self.frames += 1;
                self.bytes += frame.len() as u64;
                self.network.push_back((node.node(), to, frame));
            }
            if append.is_empty() {
                return;
            }
            node.synced(number);
        }
    }

    fn awake(&self) -> usize {
        self.nodes.iter().flatten().map(Groups::awake).sum()
    }

    /// Ticks until nobody is awake; how many, and how long the longest took.
    fn fall_asleep(&mut self) -> (u32, Duration) {
        let mut longest = Duration::ZERO;
        for ticks in 1..200 {
            longest = longest.max(self.tick());
            if self.awake() == 0 {
                return (ticks, longest);
            }
        }
        (200, longest)
    }
}

/// Resident memory of this process.
fn resident() -> Result<u64, Box<dyn Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').nth(1).unwrap_or_default().parse()?;
    Ok(pages * 4096)
}

struct Report {
    failed: BTreeSet<&'static str>,
}

impl Report {
    fn line(&mut self, what: &'static str, value: String, gate: &str, met: bool) {
        let verdict = if met { "met" } else { "NOT MET" };
        println!("{what:<58} {value:>14}   {gate:<18} {verdict}");
        if !met {
            self.failed.insert(what);
        }
    }

    /// How much of a tick of one node the longest tick of all took.
    fn storm(&mut self, longest: Duration) {
        let tick = longest.as_secs_f64() / TICK.as_secs_f64() * 100.0 / f64::from(NODES);
        self.line(
            "% of a tick of a node, the longest on the way",
            format!("{tick:.0}"),
            "<= 100, no storm",
            tick <= 100.0,
        );
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let groups: u64 = std::env::args().nth(1).map_or(Ok(10_000), |n| n.parse())?;
    let mut report = Report {
        failed: BTreeSet::new(),
    };
    let before = resident()?;
    let mut cluster = Cluster::new(groups)?;
    let (ticks, longest) = cluster.fall_asleep();
    let led = cluster.leaders.len() as u64 == groups;
    report.line(
        "ticks until all are led and asleep",
        ticks.to_string(),
        "<= 20",
        led && ticks <= 20,
    );
    println!(
        "  longest tick {longest:.1?}, {} frames, {} records",
        cluster.frames, cluster.records
    );

    let each = (resident()? - before) / (groups * u64::from(NODES));
    report.line(
        "bytes a sleeping member",
        each.to_string(),
        "<= 6,144",
        each <= 6_144,
    );

    asleep(&mut cluster, &mut report);
    wake_all(&mut cluster, groups, &mut report);
    lose_a_node(&mut cluster, groups, &mut report);
    let peak = (resident()? - before) / (groups * u64::from(NODES));
    println!("  {peak} bytes a member in the end");
    match report.failed.is_empty() {
        true => Ok(()),
        false => Err(format!("not met: {:?}", report.failed).into()),
    }
}

/// Nobody has anything to do for a minute.
fn asleep(cluster: &mut Cluster, report: &mut Report) {
    let frames = cluster.frames;
    let spent: Duration = (0..600).map(|_| cluster.tick()).sum();
    let share = spent.as_secs_f64() / (600.0 * TICK.as_secs_f64()) * 100.0;
    let said = cluster.frames - frames;
    report.line(
        "% of a core asleep, all three nodes",
        format!("{share:.4}"),
        "<= 1",
        share <= 1.0,
    );
    let pulses = 600 * u64::from(NODES) * u64::from(NODES - 1);
    report.line(
        "frames in a minute asleep",
        said.to_string(),
        "a frame a tick",
        said <= pulses,
    );
}

/// A record for each group at once.
fn wake_all(cluster: &mut Cluster, groups: u64, report: &mut Report) {
    let (frames, bytes, committed) = (cluster.frames, cluster.bytes, cluster.committed);
    let began = Instant::now();
    for (group, leader) in cluster.leaders.clone() {
        if let Some(node) = &mut cluster.nodes[leader.0 as usize - 1] {
            let _ = node.propose(group, Bytes::from_static(&[7; 100]));
        }
    }
    cluster.settle();
    let spent = began.elapsed();
    let all = cluster.committed - committed == groups * u64::from(NODES);
    let us = spent.as_secs_f64() * 1e6 / groups as f64;
    report.line(
        "µs a group, all woken by a record, until committed",
        format!("{us:.1}"),
        "everywhere",
        all,
    );
    let (ticks, longest) = cluster.fall_asleep();
    report.line(
        "ticks until they sleep again",
        ticks.to_string(),
        "<= 10",
        ticks <= 10,
    );
    report.storm(longest);
    println!(
        "  {} frames, {} bytes",
        cluster.frames - frames,
        cluster.bytes - bytes
    );
}

/// A node dies: whoever it led is led elsewhere, and then nobody stays awake for its sake.
fn lose_a_node(cluster: &mut Cluster, groups: u64, report: &mut Report) {
    let lost = NodeId(1);
    let orphans: BTreeSet<_> = cluster
        .leaders
        .iter()
        .filter(|(_, l)| **l == lost)
        .map(|(g, _)| *g)
        .collect();
    cluster.nodes[0] = None;
    let mut longest = Duration::ZERO;
    let mut ticks = 0;
    while ticks < 100 {
        ticks += 1;
        longest = longest.max(cluster.tick());
        if cluster.leaders.values().all(|leader| *leader != lost) {
            break;
        }
    }
    println!("  {} of {groups} groups were led there", orphans.len());
    report.line(
        "ticks until all are led elsewhere",
        ticks.to_string(),
        "<= 10",
        ticks <= 10,
    );
    report.storm(longest);
    let (ticks, _) = cluster.fall_asleep();
    report.line(
        "ticks until all sleep beside the dead member",
        ticks.to_string(),
        "<= 20",
        ticks <= 20,
    );
    let spent: Duration = (0..600).map(|_| cluster.tick()).sum();
    let share = spent.as_secs_f64() / (600.0 * TICK.as_secs_f64()) * 100.0;
    report.line(
        "% of a core asleep beside it",
        format!("{share:.4}"),
        "<= 1",
        share <= 1.0,
    );
}
