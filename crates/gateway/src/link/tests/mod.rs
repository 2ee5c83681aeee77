//! Links over real sockets, all in one process.

mod hostile;
mod log;
mod meeting;
mod places;
mod questions;
mod secured;
mod wire;

use super::*;
use broker::groups::NodeId;
use bytes::Bytes;
use listener::Endpoint;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A test that waits for so long has failed. No test depends on how long anything takes.
const LIMIT: Duration = Duration::from_secs(30);

/// What a receiver was told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Up(u32, Lane, u64),
    Frame(u32, Lane, Bytes),
    Down(u32, Lane, bool),
    Room(u32, Lane),
}

/// Remembers what it was told.
#[derive(Default)]
struct Book {
    told: Mutex<Vec<Told>>,
    more: Condvar,
    /// The thread that brought the last frame.
    thread: Mutex<String>,
}

impl Book {
    fn note(&self, told: Told) {
        self.told.lock().unwrap().push(told);
        self.more.notify_all();
    }

    /// Waits until this is so of what was told so far.
    fn until(&self, what: &str, mut is_so: impl FnMut(&[Told]) -> bool) {
        let end = Instant::now() + LIMIT;
        let mut told = self.told.lock().unwrap();
        while !is_so(&told) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} did not happen: {told:?}");
            told = self.more.wait_timeout(told, left).unwrap().0;
        }
    }

    fn count(&self, is_such: impl Fn(&Told) -> bool) -> usize {
        self.told
            .lock()
            .unwrap()
            .iter()
            .filter(|told| is_such(told))
            .count()
    }

    /// All frames of a lane that have come from a node.
    fn frames(&self, node: u32, of: Lane) -> Vec<Bytes> {
        let told = self.told.lock().unwrap();
        let frames = told.iter().filter_map(|told| match told {
            Told::Frame(from, lane, frame) if (*from, *lane) == (node, of) => Some(frame.clone()),
            _ => None,
        });
        frames.collect()
    }
}

impl Receiver for Book {
    fn up(&self, peer: NodeId, lane: Lane, incarnation: u64) {
        self.note(Told::Up(peer.0, lane, incarnation));
    }

    fn frame(&self, from: NodeId, lane: Lane, frame: Bytes) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        *self.thread.lock().unwrap() = thread;
        self.note(Told::Frame(from.0, lane, frame));
    }

    fn down(&self, peer: NodeId, lane: Lane, replaced: bool) {
        self.note(Told::Down(peer.0, lane, replaced));
    }

    fn room(&self, peer: NodeId, lane: Lane) {
        self.note(Told::Room(peer.0, lane));
    }
}

/// A node that has links and nothing else.
struct Node {
    id: u32,
    name: String,
    links: Links,
    book: Arc<Book>,
}

/// What a node is started with, if it is nothing special. Its name is `name`, and its number stands in front of it.
fn options(name: &str) -> LinkOptions {
    LinkOptions {
        cluster: Some(ClusterId([7; 16])),
        endpoints: vec![Endpoint::plain(PROTOCOL, "127.0.0.1:0".parse().unwrap())],
        threads: Some(2),
        // No machine is so busy that a link is lost for it.
        silence: Duration::from_secs(60),
        ..LinkOptions::new(name, 1, Secret::new(b"a shared secret").unwrap())
    }
}

impl Node {
    fn start(id: u32, options: LinkOptions) -> Self {
        let book = Arc::new(Book::default());
        let receiver: Arc<dyn Receiver> = book.clone();
        let links = Links::new(&options);
        links.start(&options, Arc::downgrade(&receiver)).unwrap();
        let name = options.name;
        Self {
            id,
            name,
            links,
            book,
        }
    }

    fn address(&self) -> SocketAddr {
        self.links.endpoints()[0].address.network().unwrap()
    }

    /// As its peers have it.
    fn peer(&self) -> PeerAddress {
        self.peer_at(self.address())
    }

    /// The same, where it is reached at another address.
    fn peer_at(&self, at: SocketAddr) -> PeerAddress {
        PeerAddress {
            id: NodeId(self.id),
            name: self.name.clone(),
            host: at.ip().to_string(),
            port: at.port(),
        }
    }

    fn send(&self, to: &Node, lane: Lane, frame: &[u8]) -> Sent {
        self.links
            .send(NodeId(to.id), lane, vec![Bytes::copy_from_slice(frame)])
    }

    fn lane(&self, of: &Node, lane: Lane) -> LaneStatus {
        let status = self.links.status();
        let peer = status.into_iter().find(|peer| peer.id.0 == of.id).unwrap();
        peer.lanes.into_iter().find(|it| it.lane == lane).unwrap()
    }

    /// Waits until all lanes with this node have a link.
    fn linked(&self, with: &Node) {
        wait(&format!("{} is linked with {}", self.name, with.name), || {
            Lane::ALL.iter().all(|lane| self.lane(with, *lane).link.is_some())
        });
    }

    /// Waits until there was no link for this reason, and says how it was worded.
    fn refused(&self, of: &Node, why: &str) -> String {
        let mut worded = String::new();
        wait(&format!("{} is told: {why}", self.name), || {
            let lane = self.lane(of, Lane::Consensus);
            worded = lane.last_lost.map(|(_, why)| why).unwrap_or_default();
            lane.link.is_none() && worded.contains(why)
        });
        worded
    }
}

/// Waits until this is so.
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: that did not happen");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Makes each the peer of all others.
fn introduce(nodes: &[&Node]) {
    for node in nodes {
        node.links.set_peers(nodes.iter().map(|it| it.peer()).collect());
    }
}
