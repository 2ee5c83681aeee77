//! A node in a process of its own, which takes orders from its standard input and answers each with a line.

use crate::figures::{percentile, resident_bytes};
use crate::node::{BUSY, NODES, Node, Queue};
use crate::peers::{self, Peers};
use crate::publisher::{KEPT, Publisher};
use cluster::{MemberId, NodeId};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use storage::LogOptions;

/// The bodies that are published here.
pub const BODY: usize = 1_000;
/// Messages of a block.
pub const BLOCK: u64 = 10;

/// The rate that is wanted, in messages a second: as many as there can be.
pub const FULL: u64 = u64::MAX;

/// What the process itself runs: `node ID DIRECTORY IDLE`.
pub fn run(words: &[String]) -> Result<(), Box<dyn Error>> {
    let [id, dir, idle] = words else {
        return Err("a number, a directory and a count of idle queues are wanted".into());
    };
    let id = NodeId(id.parse()?);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    answer(&[("port", listener.local_addr()?.port().into())]);
    let mut orders = io::stdin().lock().lines();
    let ports = orders.next().ok_or("ports are wanted")??;
    let ports: Result<BTreeMap<_, _>, _> = NODES
        .into_iter()
        .zip(ports.split(' '))
        .map(|(node, port)| port.parse().map(|port| (NodeId(node), port)))
        .collect();
    let links = Peers::connect(id, &ports?)?;
    let node = Arc::new(Node::start(
        id,
        Path::new(dir),
        links,
        idle.parse()?,
        LogOptions::default(),
    )?);
    peers::listen(listener, node.alone.groups.clone());
    peers::tick(node.alone.groups.clone());
    let published = publish(node.clone());
    answer(&[]);
    for order in orders {
        let order = order?;
        match order.split_once(' ').unwrap_or((&order, "")) {
            ("status", _) => answer(&status(&node, &published)),
            ("rate", rate) => {
                published.rate.store(rate.parse()?, Ordering::SeqCst);
                answer(&[]);
            }
            ("kept", messages) => {
                published.kept.store(messages.parse()?, Ordering::SeqCst);
                answer(&[]);
            }
            ("spread", _) => {
                spread(&node);
                answer(&[]);
            }
            ("latency", count) => answer(&latency(&node, count.parse()?)),
            _ => return Err(format!("no such order: {order}").into()),
        }
    }
    Ok(())
}

fn answer(figures: &[(&str, u64)]) {
    let words: Vec<_> = figures
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    println!("{}", words.join(" "));
    let _ = io::stdout().flush();
}

fn status(node: &Node, published: &Published) -> Vec<(&'static str, u64)> {
    let groups = &node.alone.groups;
    let idle = node
        .queues
        .iter()
        .skip(1)
        .filter_map(|queue| groups.status(queue.group));
    let (mut terms, mut snapshots) = (0, 0);
    for status in idle {
        terms += status.term;
        snapshots += u64::from(status.snapshots);
    }
    let busy = groups.status(BUSY);
    let of_busy = |figure: &dyn Fn(&cluster::Status) -> u64| busy.as_ref().map_or(0, figure);
    vec![
        ("leads", u64::from(node.busy().hosted.leads())),
        ("last", of_busy(&|status| status.last)),
        ("applied", node.busy().hosted.applied().unwrap_or(0)),
        ("busy_snapshots", of_busy(&|status| status.snapshots.into())),
        (
            "led",
            node.queues.iter().filter(|queue| queue.hosted.leads()).count() as u64,
        ),
        ("terms", terms),
        ("snapshots", snapshots),
        ("awake", groups.awake() as u64),
        ("published", published.messages.load(Ordering::SeqCst)),
        ("resident", resident_bytes()),
        ("log", node.alone.node.log.size()),
    ]
}

/// What is published to the busy queue, whenever it is led here.
struct Published {
    rate: AtomicU64,
    /// So many messages are in the queue at most.
    kept: AtomicU64,
    messages: AtomicU64,
}

fn publish(node: Arc<Node>) -> Arc<Published> {
    let published = Arc::new(Published {
        rate: AtomicU64::new(0),
        kept: AtomicU64::new(KEPT),
        messages: AtomicU64::new(0),
    });
    let told = published.clone();
    thread::spawn(move || {
        loop {
            let rate = published.rate.load(Ordering::SeqCst);
            if rate == 0 || !node.busy().hosted.leads() {
                thread::sleep(Duration::from_millis(10));
                continue;
            }
            let mut publisher = Publisher::new(node.busy(), BODY);
            publisher.kept = published.kept.load(Ordering::SeqCst);
            while published.rate.load(Ordering::SeqCst) == rate {
                let (some, a_second) = match rate {
                    FULL => (1_000, None),
                    rate => ((rate / 20).max(BLOCK), Some(rate as f64)),
                };
                let Ok(()) = publisher.publish(some, BLOCK, a_second) else {
                    break;
                };
                published.messages.fetch_add(some, Ordering::SeqCst);
            }
            if publisher.kept == KEPT {
                let _ = publisher.purge();
            }
        }
    });
    told
}

/// Has idle queues that are led here led by all nodes in turn.
fn spread(node: &Node) {
    for queue in node.queues.iter().skip(1).filter(|queue| queue.hosted.leads()) {
        let to = NODES[(queue.group.0 % 3) as usize];
        let _ = node
            .alone
            .groups
            .transfer(queue.group, MemberId::first(NodeId(to)));
    }
}

/// How long single messages of an idle queue that is led here take, one each ten milliseconds: in microseconds.
fn latency(node: &Node, count: u64) -> Vec<(&'static str, u64)> {
    let mut times = Vec::new();
    while let Some(queue) = led_here(node)
        && (times.len() as u64) < count
    {
        let mut publisher = Publisher::new(queue, BODY);
        while (times.len() as u64) < count {
            let began = Instant::now();
            let Ok(()) = publisher.publish(1, 1, None) else {
                break;
            };
            times.push(began.elapsed());
            thread::sleep(Duration::from_millis(10));
        }
        let _ = publisher.purge();
    }
    let mut micros = |percent| percentile(&mut times, percent).as_micros() as u64;
    vec![("p50", micros(50)), ("p99", micros(99))]
}

fn led_here(node: &Node) -> Option<&Queue> {
    node.queues.iter().skip(1).find(|queue| queue.hosted.leads())
}

/// A node's process, seen from the one that started it.
pub struct Process {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    _dir: tempfile::TempDir,
}

impl Process {
    fn start(id: u32, idle: u64) -> Result<Self, Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("node")
            .arg(id.to_string())
            .arg(dir.path())
            .arg(idle.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        Ok(Self {
            child,
            orders: orders.ok_or("no way to the process")?,
            answers: BufReader::new(answers.ok_or("no way from the process")?),
            _dir: dir,
        })
    }

    /// What it answers to an order.
    pub fn ask(&mut self, order: &str) -> Result<Figures, Box<dyn Error>> {
        self.tell(order)?;
        self.answer()
    }

    /// Gives it an order; [`Process::answer`] waits for what it answers.
    pub fn tell(&mut self, order: &str) -> Result<(), Box<dyn Error>> {
        writeln!(self.orders, "{order}")?;
        Ok(self.orders.flush()?)
    }

    pub fn answer(&mut self) -> Result<Figures, Box<dyn Error>> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("a node's process has ended".into());
        }
        let figures = line.split_whitespace().filter_map(|word| word.split_once('='));
        let figures = figures.map(|(name, value)| Ok((name.to_owned(), value.parse()?)));
        figures.collect::<Result<_, Box<dyn Error>>>().map(Figures)
    }

    /// Stops it (`STOP`) or lets it go on (`CONT`).
    pub fn signal(&self, name: &str) -> Result<(), Box<dyn Error>> {
        let mut kill = Command::new("kill");
        kill.arg(format!("-{name}")).arg(self.child.id().to_string());
        match kill.status()?.success() {
            true => Ok(()),
            false => Err("the process takes no signal".into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process answered, by name.
pub struct Figures(BTreeMap<String, u64>);

impl Figures {
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Three nodes, each in a process of its own.
pub struct Processes(pub Vec<Process>);

impl Processes {
    pub fn start(idle: u64) -> Result<Self, Box<dyn Error>> {
        let started: Result<Vec<_>, _> = NODES.iter().map(|id| Process::start(*id, idle)).collect();
        let mut processes = Self(started?);
        let mut ports = Vec::new();
        for process in &mut processes.0 {
            ports.push(process.answer()?.of("port").to_string());
        }
        let ports = ports.join(" ");
        processes
            .0
            .iter_mut()
            .try_for_each(|process| process.tell(&ports))?;
        for process in &mut processes.0 {
            process.answer()?;
        }
        Ok(processes)
    }

    pub fn status(&mut self, node: usize) -> Result<Figures, Box<dyn Error>> {
        self.0[node].ask("status")
    }

    /// Who leads the busy queue, once all queues have a leader and those that are idle sleep.
    pub fn leader(&mut self) -> Result<usize, Box<dyn Error>> {
        loop {
            let mut leader = None;
            let mut awake = 0;
            for node in 0..self.0.len() {
                let status = self.status(node)?;
                awake += status.of("awake");
                if status.of("leads") == 1 {
                    leader = Some(node);
                }
            }
            match leader.filter(|_| awake <= 3) {
                Some(leader) => return Ok(leader),
                None => thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Has all nodes lead as many idle queues; then these sleep.
    pub fn spread(&mut self) -> Result<(), Box<dyn Error>> {
        self.0
            .iter_mut()
            .try_for_each(|process| process.ask("spread").map(drop))?;
        thread::sleep(Duration::from_secs(1));
        self.leader().map(drop)
    }

    /// Has the busy queue's leader publish so much a second, in messages.
    pub fn rate(&mut self, rate: u64) -> Result<(), Box<dyn Error>> {
        for process in &mut self.0 {
            process.ask(&format!("rate {rate}"))?;
        }
        Ok(())
    }
}
