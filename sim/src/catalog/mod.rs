//! Three or five nodes with one catalog, in one thread: clients on each declare, delete, bind, import and read, and nodes begin
//! runs and are drained, while frames are late and lost, processes are killed and stand still, disks lose what was not synced
//! or everything, and clocks run apart.
//!
//! What must hold stands in [`ledger`]: each request is decided once, every node is told the same in the same order, what
//! anybody was told is seen by all who ask afterwards, and everything has its answer in time. Within [`SERVICE`] of the last
//! healing a majority serves, and within [`ALL_SERVE`] every node.

pub mod joined;
pub mod ledger;
mod node;

use crate::cluster::network::{Network, Weather};
use broker::groups::catalog::{TIMEOUT_MS, timeout_ms};
use catalog::shared::{Said, Sender};
use catalog::{
    Answer, DeclareExchange, DeclareQueue, Destination, Incarnation, NodeConnection, Request, View,
    WantedBinding,
};
use cluster::{MemberId, Step};
use ledger::{Counts, Ledger};
use model::ConnectionId;
use model::table::Table;
use node::Node;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use storage::faulty::Random;

/// So long everything goes wrong.
const TROUBLE: Duration = Duration::from_secs(12);
/// Then a majority of the nodes serves within this: most within two seconds, but for votes that are split.
const SERVICE: Duration = Duration::from_secs(3);
/// And each node within this: some are sent contents first.
const ALL_SERVE: Duration = Duration::from_secs(5);
/// A node whose disk was lost is replaced within this: a source of contents that is gone is waited for twice.
const REPLACED: Duration = Duration::from_secs(25);
/// So long two nodes have no link.
const BRIDGED: Duration = Duration::from_secs(6);
/// A request has its answer so much after its time at the latest: a tick, and what threads take.
const SLACK_MS: u64 = 300;
const QUEUES: [&str; 4] = ["a", "b", "c", "d"];
const VHOST: &str = "/";

/// What became of a seed.
#[derive(Debug)]
pub struct Outcome {
    /// What did not hold.
    pub violation: Option<String>,
    pub counts: Counts,
}

/// A client, which asks one thing after the other.
struct Client {
    node: usize,
    busy: Option<Busy>,
}

struct Busy {
    /// When it has an answer at the latest, by its node's clock.
    until_ms: u64,
    answered: Arc<Mutex<Option<Said>>>,
}

struct World {
    random: Random,
    now: Duration,
    nodes: Vec<Node>,
    ids: Vec<u32>,
    network: Network,
    clients: Vec<Client>,
    ledger: Arc<Ledger>,
    starts: u64,
    /// How many requests each start has made.
    asked: std::collections::BTreeMap<Sender, u64>,
    /// Nodes that come back at that time.
    down: Vec<(Duration, usize)>,
    /// Nodes that stand still until then.
    paused: Vec<(Duration, usize)>,
    /// A node whose disk is lost, with the member that it was.
    lost: Option<(usize, MemberId)>,
    has_lost: bool,
    leader: Option<usize>,
}

/// Runs a seed.
pub fn run(seed: u64) -> Outcome {
    let mut world = World::new(seed);
    let outcome = world.live();
    if let Err(what) = outcome {
        world.ledger.violated(what);
    }
    let violation = world.ledger.violation();
    let counts = world.ledger.counts();
    Outcome { violation, counts }
}

/// Whoever leads and another node lose their link, and everybody else reaches both. What did not hold: no node may be cut off
/// from those who decide, for publishes through it would be refused.
pub fn bridge(seed: u64) -> Option<String> {
    let mut world = World::new(seed);
    let outcome = world.live_beside_a_bridge();
    outcome.err().or_else(|| world.ledger.violation())
}

impl World {
    fn live_beside_a_bridge(&mut self) -> Result<(), String> {
        self.network.weather = Weather {
            delay_ms: 2,
            ..Weather::default()
        };
        for at in 0..self.nodes.len() {
            self.start(at)?;
        }
        self.serve()?;
        let leader = self.nodes.iter().position(Node::leads).ok_or("nobody leads")?;
        let other = (leader + 1 + self.random.below(self.nodes.len() as u64 - 1) as usize) % self.nodes.len();
        let ends = (self.ids[leader], self.ids[other]);
        self.network.cuts.extend([ends, (ends.1, ends.0)]);
        let until = self.now + BRIDGED;
        while self.now < until && self.ledger.violation().is_none() {
            self.round()?;
            let is_cut_off = |node: &Node| node.goes_on().is_some_and(|it| it.catalog.is_cut_off());
            if let Some(at) = self.nodes.iter().position(is_cut_off) {
                return Err(format!(
                    "node {} is cut off, by a cut from node {}",
                    at + 1,
                    leader + 1
                ));
            }
        }
        Ok(())
    }

    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let count = if random.below(4) == 0 { 5 } else { 3 };
        let ids: Vec<u32> = (1..=count).collect();
        let nodes = ids.iter().map(|id| Node::new(*id, &ids, &mut random)).collect();
        let clients = (0..2 * ids.len()).map(|at| Client {
            node: at % ids.len(),
            busy: None,
        });
        let mut network = Network::default();
        network.weather = Weather {
            loses_one_in: [0, 50, 15][random.below(3) as usize],
            doubles_one_in: [0, 30][random.below(2) as usize],
            delay_ms: [1, 10, 60][random.below(3) as usize],
        };
        Self {
            clients: clients.collect(),
            random,
            now: Duration::ZERO,
            nodes,
            ids,
            network,
            ledger: Arc::default(),
            starts: 0,
            asked: Default::default(),
            down: Vec::new(),
            paused: Vec::new(),
            lost: None,
            has_lost: false,
            leader: None,
        }
    }

    fn live(&mut self) -> Result<(), String> {
        for at in 0..self.nodes.len() {
            self.start(at)?;
        }
        let mut next_fault = Duration::from_millis(1_500);
        while self.now < TROUBLE && self.ledger.violation().is_none() {
            if self.now >= next_fault {
                self.trouble();
                next_fault = self.now + Duration::from_millis(100 + self.random.below(1_500));
            }
            self.round()?;
        }
        self.heal()?;
        self.serve()
    }

    fn start(&mut self, at: usize) -> Result<(), String> {
        self.starts += 1;
        let (start, ids) = (self.starts, self.ids.clone());
        let node = &mut self.nodes[at];
        let started = node.start(start, &ids, &self.network, &self.ledger, &mut self.random);
        started.map_err(|what| format!("node {} does not start: {what}", node.id))
    }

    /// Some milliseconds.
    fn round(&mut self) -> Result<(), String> {
        let time = Duration::from_millis(1 + self.random.below(8));
        self.now += time;
        // Before its clock goes on nobody does anything.
        self.return_some()?;
        for at in 0..self.nodes.len() {
            self.nodes[at].advance(time);
            let steps = self.random.below(12);
            self.nodes[at].work(steps);
            if self.nodes[at].gives_up_early() {
                self.ledger.violated(format!("node {} gives up at once", at + 1));
            }
        }
        self.network.collect(self.now, &mut self.random);
        let nodes = &self.nodes;
        while let Some(frame) = self.network.arrived(self.now, |to| {
            let node = &nodes[to as usize - 1];
            node.goes_on().is_some() || node.running.is_none()
        }) {
            nodes[frame.to as usize - 1].receive(frame.from, frame.said);
        }
        for at in 0..self.clients.len() {
            self.client(at);
        }
        let leader = self.nodes.iter().position(Node::leads);
        if leader.is_some() && leader != self.leader {
            self.leader = leader;
            self.ledger.led();
        }
        self.replace_lost();
        Ok(())
    }

    fn return_some(&mut self) -> Result<(), String> {
        while let Some(at) = self.down.iter().position(|(until, _)| *until <= self.now) {
            let (_, node) = self.down.remove(at);
            self.start(node)?;
        }
        while let Some(at) = self.paused.iter().position(|(until, _)| *until <= self.now) {
            let (_, node) = self.paused.remove(at);
            self.nodes[node].is_paused = false;
        }
        Ok(())
    }

    fn client(&mut self, at: usize) {
        let node = self.clients[at].node;
        let clock = self.nodes[node].clock_ms();
        if self.nodes[node].running.is_none() {
            self.clients[at].busy = None;
            return;
        }
        if self.nodes[node].goes_on().is_none() {
            return;
        }
        if let Some(busy) = &self.clients[at].busy {
            let is_answered = busy
                .answered
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some();
            if !is_answered && clock > busy.until_ms {
                let what = format!("node {}: a request has had no answer for too long", node + 1);
                self.ledger.violated(what);
            }
            if !is_answered {
                return;
            }
            self.clients[at].busy = None;
        }
        match self.random.below(24) {
            0..=2 => {
                let request = self.some_request(node);
                self.change(at, request);
            }
            3..=4 => self.read(at),
            5..=6 => self.route(node),
            _ => {}
        }
    }

    fn change(&mut self, client: usize, request: Request) {
        let node = self.clients[client].node;
        let start = self.nodes[node].start;
        let sender = Sender {
            node: u64::from(self.nodes[node].id),
            start,
        };
        let number = self.asked.entry(sender).or_default();
        *number += 1;
        let (number, ledger) = (*number, self.ledger.clone());
        let busy = self.busy(node, timeout_ms(&request));
        let answered = busy.answered.clone();
        self.clients[client].busy = Some(busy);
        let Some(running) = self.nodes[node].goes_on() else {
            return;
        };
        running.catalog.ask(
            request,
            Box::new(move |said| {
                ledger.changed(sender, number, &said);
                *answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
            }),
        );
    }

    fn busy(&self, node: usize, timeout_ms: u64) -> Busy {
        Busy {
            until_ms: self.nodes[node].clock_ms() + timeout_ms + SLACK_MS,
            answered: Arc::default(),
        }
    }

    fn read(&mut self, client: usize) {
        let node = self.clients[client].node;
        let (ledger, floor) = (self.ledger.clone(), self.ledger.floor());
        let busy = self.busy(node, TIMEOUT_MS);
        let answered = busy.answered.clone();
        self.clients[client].busy = Some(busy);
        let Some(running) = self.nodes[node].goes_on() else {
            return;
        };
        let told = running.told.clone();
        running.catalog.read(
            Box::new(move || Ok(Answer::Cleared(told.copy().0 as usize))),
            Box::new(move |said| {
                let version = match said {
                    Ok(Answer::Cleared(version)) => Some(version as u64),
                    _ => None,
                };
                ledger.read(floor, version);
                *answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
            }),
        );
    }

    /// A message is routed, if its node may believe its copy.
    fn route(&mut self, node: usize) {
        if let Some(running) = self.nodes[node].goes_on() {
            let version = running.catalog.is_fresh().then(|| running.told.copy().0);
            self.ledger.routed(version);
        }
    }

    fn some_request(&mut self, node: usize) -> Request {
        match self.random.below(14) {
            0..=8 => self.about_a_queue(node),
            9 => self.import(node),
            10 => self.about_an_exchange(node),
            _ => self.about_nodes(node),
        }
    }

    /// What a client of this node asks for.
    fn about_a_queue(&mut self, node: usize) -> Request {
        let (vhost, queue) = (VHOST.into(), self.some_name());
        let by = self.connection(node);
        let binding = WantedBinding {
            source: "amq.direct".into(),
            destination: Destination::Queue(queue.into()),
            routing_key: b"key".to_vec(),
            arguments: Table::new(),
            by,
        };
        match self.random.below(7) {
            0 => Request::CreateVhost { name: vhost },
            1..=3 => Request::DeclareQueue {
                vhost,
                declare: DeclareQueue {
                    name: queue.into(),
                    durable: self.random.below(4) > 0,
                    exclusive: self.random.below(4) == 0,
                    passive: self.random.below(4) == 0,
                    ..DeclareQueue::default()
                },
                by,
                unique: [0; 16],
            },
            4 => Request::Bind { vhost, binding },
            5 => Request::Unbind { vhost, binding },
            _ => {
                let known = self.view(node).and_then(|view| view.queue(VHOST, queue).cloned());
                match known {
                    Some(known) => Request::DeleteQueue { id: known.id },
                    None => Request::CreateVhost { name: vhost },
                }
            }
        }
    }

    /// Some exchanges keep something, on a node as queues do.
    fn about_an_exchange(&mut self, node: usize) -> Request {
        let (vhost, name) = (VHOST.into(), self.some_name());
        let kinds = ["fanout", "topic", "x-message-deduplication", "x-delayed-message"];
        match self.random.below(4) {
            0 => Request::DeleteExchange {
                vhost,
                name: name.into(),
                if_unused: self.random.chance(),
            },
            _ => Request::DeclareExchange {
                vhost,
                declare: DeclareExchange {
                    name: name.into(),
                    kind: kinds[self.random.below(4) as usize].into(),
                    durable: self.random.chance(),
                    arguments: Table::new()
                        .with("x-cache-size", 10)
                        .with("x-delayed-type", "fanout"),
                    ..DeclareExchange::default()
                },
                by: self.connection(node).incarnation,
            },
        }
    }

    /// Nodes start, stop to take queues, and take away what ended.
    fn about_nodes(&mut self, node: usize) -> Request {
        let other = self.random.below(self.nodes.len() as u64) + 1;
        match self.random.below(5) {
            0 => Request::StartNode {
                node: catalog::NodeId(node as u64 + 1),
                name: format!("rabbit@n{}", node + 1).into(),
                takes_queues: self.random.below(4) > 0,
            },
            1 => Request::CloseConnection {
                connection: self.connection(node),
                at_most: 2,
            },
            2 => Request::EndTransient { at_most: 2 },
            _ => Request::DrainNode {
                node: catalog::NodeId(other),
                drained: self.random.chance(),
            },
        }
    }

    /// Several at once, or none; on half of the times only if nobody has changed anything meanwhile.
    fn import(&mut self, node: usize) -> Request {
        let view = self.view(node).filter(|_| self.random.chance());
        let requests = (0..1 + self.random.below(6)).map(|_| match self.random.below(3) {
            0 => self.about_an_exchange(node),
            _ => self.about_a_queue(node),
        });
        Request::All {
            requests: requests.collect(),
            of: view.map(|view| view.generation()),
        }
    }

    fn some_name(&mut self) -> &'static str {
        QUEUES[self.random.below(QUEUES.len() as u64) as usize]
    }

    /// What this node has applied.
    fn view(&self, node: usize) -> Option<View> {
        self.nodes[node].goes_on().map(|running| running.told.copy().1)
    }

    /// One of the connections of the node's run, as the catalog counts runs.
    fn connection(&mut self, node: usize) -> NodeConnection {
        let id = catalog::NodeId(node as u64 + 1);
        let known = self.view(node);
        let known = known.as_ref().and_then(|view| view.node(id));
        NodeConnection {
            incarnation: Incarnation {
                node: id,
                number: known.map_or(1, |known| known.started),
            },
            connection: ConnectionId(1 + self.random.below(2)),
        }
    }
}

/// What goes wrong.
impl World {
    fn trouble(&mut self) {
        let count = self.nodes.len() as u64;
        let one = self.random.below(count) as usize;
        let until = self.now + Duration::from_millis(50 + self.random.below(3_000));
        match self.random.below(15) {
            12..=14 => self.transfer(one),
            0..=2 => {
                let id = self.ids[one];
                self.network.part(&[id], &self.ids.clone());
            }
            3 => {
                let other = self.random.below(count) as usize;
                self.network.cuts.insert((self.ids[one], self.ids[other]));
            }
            4..=5 => self.network.cuts.clear(),
            6..=7 => {
                if self.nodes[one].running.is_some() {
                    let power = self.random.chance();
                    self.end(one, power);
                    self.down.push((until, one));
                }
            }
            8..=9 => {
                if self.nodes[one].goes_on().is_some() {
                    self.nodes[one].is_paused = true;
                    self.paused.push((until, one));
                }
            }
            10 => self.lose(one),
            _ => {
                self.nodes[one].checkpoint();
                let (from, bytes) = (self.ids[one], self.rubbish());
                let other = self.random.below(count) as usize;
                self.nodes[other].hear_rubbish(from, &bytes);
            }
        }
    }

    /// Whoever leads hands over to this one, mostly while somebody is cut off that has a lease.
    fn transfer(&mut self, to: usize) {
        let to = self.nodes[to].me();
        let handed = self.nodes.iter().any(|node| node.leads() && node.transfer(to));
        let third = self.random.below(self.nodes.len() as u64) as usize;
        if handed && self.random.below(4) > 0 && self.ids[third] != to.node.0 {
            self.network.part(&[self.ids[third]], &self.ids.clone());
        }
    }

    fn rubbish(&mut self) -> bytes::Bytes {
        let length = self.random.below(60);
        (0..length)
            .map(|_| self.random.below(5) as u8)
            .collect::<Vec<u8>>()
            .into()
    }

    fn end(&mut self, at: usize, power: bool) {
        self.nodes[at].end(power, &mut self.random);
        self.network.ended(self.ids[at]);
        self.paused.retain(|(_, node)| *node != at);
    }

    /// A disk is lost, with everything that the node had, while all the others are well; once, so that a majority has what was
    /// committed.
    fn lose(&mut self, at: usize) {
        let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != at);
        let well = others.map(|(_, node)| node).all(|node| node.goes_on().is_some());
        if !self.has_lost && well && self.nodes[at].running.is_some() {
            self.has_lost = true;
            let before = self.nodes[at].me();
            self.end(at, true);
            self.nodes[at].wipe();
            self.lost = Some((at, before));
        }
    }

    /// Whoever leads puts the next member in the place of the lost one; then that one's process starts, and it votes once it
    /// keeps up.
    fn replace_lost(&mut self) {
        let Some(leader) = self.nodes.iter().position(Node::leads) else {
            return;
        };
        let members = self.nodes[leader].members();
        if let Some(learner) = members.learners.first() {
            self.nodes[leader].change(&[Step::Voter(*learner)]);
        }
        let Some((at, before)) = self.lost else { return };
        let after = self.nodes[at].me();
        if members.members().any(|member| member == after) {
            self.lost = None;
            let back = self.now + Duration::from_millis(self.random.below(200));
            self.down.push((back, at));
        } else {
            self.nodes[leader].change(&[Step::Remove(before), Step::Learner(after)]);
        }
    }

    fn heal(&mut self) -> Result<(), String> {
        self.network.cuts.clear();
        self.network.weather = Weather {
            delay_ms: 2,
            ..Weather::default()
        };
        self.down
            .iter_mut()
            .for_each(|(until, _)| *until = Duration::ZERO);
        self.paused
            .iter_mut()
            .for_each(|(until, _)| *until = Duration::ZERO);
        self.return_some()
    }

    /// Within the time for it, each node that is not being replaced serves.
    fn serve(&mut self) -> Result<(), String> {
        let mut waiting: Vec<usize> = (0..self.nodes.len()).collect();
        let (soon, latest) = (self.now + SERVICE, self.now + REPLACED);
        let mut until = self.now + ALL_SERVE;
        let (begun, most) = (self.now, self.nodes.len() / 2);
        self.clients.iter_mut().for_each(|client| client.busy = None);
        let mut asked: Vec<Option<Busy>> = waiting.iter().map(|_| None).collect();
        while !waiting.is_empty() && self.ledger.violation().is_none() {
            self.round()?;
            if self.lost.is_some() || !self.down.is_empty() {
                until = (self.now + ALL_SERVE).min(latest);
            }
            waiting.retain(|at| {
                let Some(running) = self.nodes[*at].goes_on() else {
                    return true;
                };
                let said = asked[*at].as_ref().and_then(|busy| {
                    let answered = busy.answered.lock();
                    answered.unwrap_or_else(PoisonError::into_inner).clone()
                });
                if said.is_none_or(|said| said.is_err()) && asked[*at].as_ref().is_none_or(|it| it.is_over())
                {
                    let busy = Busy {
                        until_ms: 0,
                        answered: Arc::default(),
                    };
                    let answered = busy.answered.clone();
                    asked[*at] = Some(busy);
                    let request = Request::CreateVhost { name: VHOST.into() };
                    let sender = Sender {
                        node: *at as u64 + 1,
                        start: self.nodes[*at].start,
                    };
                    let number = self.asked.entry(sender).or_default();
                    *number += 1;
                    let (number, ledger) = (*number, self.ledger.clone());
                    running.catalog.ask(
                        request,
                        Box::new(move |said| {
                            ledger.changed(sender, number, &said);
                            *answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
                        }),
                    );
                    return true;
                }
                let is_ok = asked[*at].as_ref().is_some_and(Busy::is_ok);
                !(is_ok && running.catalog.is_fresh())
            });
            if waiting.len() <= most {
                self.ledger.served((self.now - begun).as_millis() as u64);
            }
            if self.now > until || self.now > soon && waiting.len() > most && !self.has_lost {
                let nodes: Vec<String> = self.nodes.iter().map(Node::describe).collect();
                return Err(format!("nodes {waiting:?} (from 0) do not serve: {nodes:#?}"));
            }
        }
        Ok(())
    }
}

impl Busy {
    fn is_over(&self) -> bool {
        self.answered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    fn is_ok(&self) -> bool {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.as_ref().is_some_and(Result::is_ok)
    }
}
