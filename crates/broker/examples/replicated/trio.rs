//! Three nodes in this process, over links in memory.

use crate::node::{NODES, Node, Queue};
use broker::groups::Links;
use bytes::Bytes;
use cluster::NodeId;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use storage::LogOptions;

/// The ways from a node to the others.
struct Wires {
    from: NodeId,
    to: BTreeMap<NodeId, Sender<(NodeId, Bytes)>>,
    frames: Arc<AtomicU64>,
}

impl Links for Wires {
    fn send(&self, to: NodeId, frame: Bytes) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        if let Some(wire) = self.to.get(&to) {
            let _ = wire.send((self.from, frame));
        }
    }

    /// Nobody here lacks contents.
    fn bulk(&self, _: NodeId, _: Bytes) {}
}

pub struct Trio {
    pub nodes: Vec<Arc<Node>>,
    frames: Arc<AtomicU64>,
    /// Node 3 hears nothing and says nothing.
    pub cut: Arc<AtomicBool>,
    _dirs: Vec<tempfile::TempDir>,
}

impl Trio {
    pub fn start(log: &LogOptions) -> Result<Self, Box<dyn Error>> {
        let (mut to, mut from) = (BTreeMap::new(), Vec::new());
        for node in NODES {
            let (sender, receiver) = channel();
            to.insert(NodeId(node), sender);
            from.push(receiver);
        }
        let mut trio = Self {
            nodes: Vec::new(),
            frames: Arc::default(),
            cut: Arc::default(),
            _dirs: Vec::new(),
        };
        for (id, received) in NODES.into_iter().zip(from) {
            let wires = Arc::new(Wires {
                from: NodeId(id),
                to: to.clone(),
                frames: trio.frames.clone(),
            });
            let dir = tempfile::tempdir()?;
            let node = Arc::new(Node::start(NodeId(id), dir.path(), wires, 0, log.clone())?);
            let (groups, cut) = (node.alone.groups.clone(), trio.cut.clone());
            thread::spawn(move || {
                for (from, frame) in received {
                    if !(cut.load(Ordering::Relaxed) && (id == 3 || from == NodeId(3))) {
                        groups.receive(from, frame);
                    }
                }
            });
            trio.nodes.push(node);
            trio._dirs.push(dir);
        }
        let clocks: Vec<_> = trio.nodes.iter().map(|n| n.alone.groups.clone()).collect();
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(100));
                clocks.iter().for_each(|groups| groups.tick());
            }
        });
        Ok(trio)
    }

    pub fn leader(&self) -> &Queue {
        loop {
            match self.nodes.iter().find(|node| node.busy().hosted.leads()) {
                Some(leader) => return leader.busy(),
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// How often each node has synced.
    pub fn syncs(&self) -> Vec<u64> {
        self.nodes
            .iter()
            .map(|node| node.alone.node.log.syncs())
            .collect()
    }

    /// How many turns the groups of each node had.
    pub fn turns(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.alone.groups.turns()).collect()
    }

    /// How many frames were sent.
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }
}
