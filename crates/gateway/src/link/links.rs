//! The links of a node: what starts them, stops them, and what others send by.

use super::connection::LinkConnection;
use super::dial::Dialler;
use super::node::LinkNode;
use super::options::{LinkOptions, PeerAddress};
use super::receiver::{Receiver, Sent};
use super::status::PeerStatus;
use crate::balance::Rules;
use crate::connection::{Connection, FrontEnd, Millis, Name};
use crate::connections::Connections;
use crate::gateway::{CLOSE_TIMEOUT, open, runtimes};
use crate::threads::{Acceptor, Threads};
use broker::CloseReason;
use broker::groups::NodeId;
use bytes::Bytes;
use listener::{Endpoint, Protocol, Security, StartError};
use protocol::link::{ClusterId, Lane};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::watch;

/// What listeners call the protocol of links, as RabbitMQ does.
pub const PROTOCOL: Protocol = Protocol {
    name: "Links between nodes",
    plain: "clustering",
    secured: "clustering/ssl",
};

/// The links of a node. Between [`Links::start`] and [`Links::stop`] there is one for each lane of each peer, whenever it can be
/// had.
///
/// Whoever starts them stops them before the receiver is let go of: what a receiver holds may hold the links, and their threads
/// can't end themselves.
pub struct Links {
    node: Arc<LinkNode>,
    running: Mutex<Option<Running>>,
}

struct Running {
    endpoints: Vec<Arc<Endpoint>>,
    threads: Threads,
    dialler: Dialler,
    connections: Arc<Connections>,
    /// Listeners stay open: a node that takes no clients is still one of its cluster.
    _open: watch::Sender<bool>,
}

/// The end that is dialled.
struct LinkFrontEnd(Arc<LinkNode>);

impl FrontEnd for LinkFrontEnd {
    fn protocol(&self) -> Protocol {
        PROTOCOL
    }

    fn connect(self: Arc<Self>, name: Name, security: Option<Security>, now: Millis) -> Box<dyn Connection> {
        let at = name.peer.to_string();
        Box::new(LinkConnection::accepted(self.0.clone(), at, security, now))
    }
}

impl Links {
    /// Links of a node, which has no peers yet and does nothing.
    pub fn new(options: &LinkOptions) -> Self {
        Self {
            node: Arc::new(LinkNode::new(options)),
            running: Mutex::new(None),
        }
    }

    /// Listens, and dials peers. `receiver` is told what comes, for as long as somebody else holds it.
    ///
    /// # Errors
    /// An address cannot be listened on, or a thread cannot be started. Nothing is left behind then.
    pub fn start(&self, options: &LinkOptions, receiver: Weak<dyn Receiver>) -> Result<(), StartError> {
        self.node.told_to(receiver);
        let runtimes = runtimes(options.threads).map_err(StartError::Thread)?;
        let listeners = open(options.endpoints.clone(), &options.sockets, &runtimes)?;
        let endpoints = listeners.iter().map(|it| it.endpoint().clone()).collect();
        let connections = Arc::new(Connections::default());
        let (kept, open) = watch::channel(true);
        let front_ends: Vec<Arc<dyn FrontEnd>> = vec![Arc::new(LinkFrontEnd(self.node.clone()))];
        let (sharing, rules) = (connections.clone(), Rules::default());
        let threads = Threads::start("links", runtimes, listeners, open, front_ends, sharing, rules)
            .map_err(StartError::Thread)?;
        let dialler = Dialler {
            node: self.node.clone(),
            acceptor: threads.acceptor(),
            tls: options.tls.clone(),
        };
        let mut running = self.running();
        self.node.peers().iter().for_each(|peer| dialler.keep(peer));
        *running = Some(Running {
            endpoints,
            threads,
            dialler,
            connections,
            _open: kept,
        });
        Ok(())
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it listens, in the order of the options; nowhere before it was started.
    pub fn endpoints(&self) -> Vec<Arc<Endpoint>> {
        self.running()
            .as_ref()
            .map(|running| running.endpoints.clone())
            .unwrap_or_default()
    }

    /// These are the node's peers from now on. Links with others are over soon; this node itself is passed over.
    pub fn set_peers(&self, peers: Vec<PeerAddress>) {
        let running = self.running();
        let fresh = self.node.set_peers(peers);
        if let Some(running) = &*running {
            fresh.iter().for_each(|peer| running.dialler.keep(peer));
        }
    }

    /// The node belongs to this cluster from now on. For links that are made from now on.
    pub fn set_cluster(&self, cluster: ClusterId) {
        self.node.set_cluster(cluster);
    }

    /// Sends a frame that is made of these parts, behind those of its lane before it. Waits for nothing; it may be lost with
    /// its link, of which [`Receiver::down`] tells.
    pub fn send(&self, to: NodeId, lane: Lane, parts: Vec<Bytes>) -> Sent {
        self.node.send_on(to, lane, |lane| lane.send(parts))
    }

    /// The same for what may be lost at any time: it is dropped long before the lane has no room for others.
    pub fn send_spare(&self, to: NodeId, lane: Lane, parts: Vec<Bytes>) -> Sent {
        self.node.send_on(to, lane, |lane| lane.send_spare(parts))
    }

    /// Asks the node of this name, at this host and port, something of at most [`QUESTION_LIMIT`](super::QUESTION_LIMIT) bytes,
    /// on a connection of its own. `then` is told the answer, or why there is none; it is dropped if the links stop.
    pub fn ask(
        &self,
        name: &str,
        (host, port): (&str, u16),
        question: Bytes,
        then: impl FnOnce(Result<Bytes, String>) + Send + 'static,
    ) {
        let running = self.running();
        let Some(dialler) = running.as_ref().map(|running| running.dialler.clone()) else {
            return;
        };
        let (name, host) = (name.to_owned(), host.to_owned());
        let acceptor = dialler.acceptor.clone();
        acceptor.run(async move { then(dialler.ask(&name, (&host, port), question).await) });
    }

    /// Links for clients' work are to be served by these threads from now on, those of clients.
    pub fn work_with(&self, clients: Acceptor) {
        self.node.places.change(clients);
        self.node
            .peers()
            .iter()
            .for_each(|peer| peer.lane(Lane::Work).wake());
    }

    /// Links for clients' work are to be served by threads of links again: those of clients are about to stop.
    pub fn work_apart(&self) {
        let own = self.running().as_ref().map(|running| running.threads.acceptor());
        if let Some(own) = own {
            self.work_with(own);
        }
    }

    /// All peers and their links.
    pub fn status(&self) -> Vec<PeerStatus> {
        self.node.status()
    }

    /// Says goodbye, and ends all threads. May be called twice.
    pub fn stop(&self) {
        let Some(running) = self.running().take() else {
            return;
        };
        if !running.connections.close(&CloseReason::Shutdown, CLOSE_TIMEOUT) {
            tracing::warn!(
                area = "links",
                "some peers did not take the end of their links in time"
            );
        }
        running.threads.stop();
        self.node.places.clear();
    }
}

impl broker::groups::Links for Links {
    fn send(&self, to: NodeId, frame: Bytes) {
        // What is lost the groups say again.
        let _ = Links::send(self, to, Lane::Consensus, vec![frame]);
    }

    fn bulk(&self, to: NodeId, frame: Bytes) {
        // Who waits for it asks again.
        let _ = Links::send(self, to, Lane::Bulk, vec![frame]);
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "links of {}", self.node.name)
    }
}
