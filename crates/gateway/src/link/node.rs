//! What all links of a node share: who it is, who its peers are, and whom it tells.

use super::lane::{PeerLane, Receiving};
use super::options::{LinkLimits, LinkOptions, PeerAddress, host_of};
use super::places::Places;
use super::receiver::{Receiver, Sent};
use super::status::PeerStatus;
use super::told::Told;
use crate::connection::Millis;
use aws_lc_rs::rand;
use broker::groups::NodeId;
use listener::Security;
use protocol::link::{ClusterId, Dialled, Greeting, Lane, Secret, Versions};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// So many connections may be open that have proven nothing.
const GUESTS: usize = 64;

/// A node, as its links have it.
pub(super) struct LinkNode {
    pub name: Box<str>,
    pub incarnation: u64,
    cluster: Mutex<Option<ClusterId>>,
    pub secret: Secret,
    /// See [`LinkOptions::is_certified`].
    pub is_certified: bool,
    pub limits: LinkLimits,
    /// After so long without a byte a link is lost.
    pub silence: Millis,
    peers: RwLock<Peers>,
    receiver: OnceLock<Weak<dyn Receiver>>,
    /// The last number of a link that was dialled, and the last epoch.
    numbers: AtomicU64,
    epochs: AtomicU64,
    guests: AtomicUsize,
    told: Told,
    pub places: Places,
}

#[derive(Default)]
struct Peers {
    by_name: BTreeMap<Box<str>, Arc<Peer>>,
    by_id: BTreeMap<NodeId, Arc<Peer>>,
}

/// Another node of the cluster.
pub(super) struct Peer {
    pub id: NodeId,
    pub name: Box<str>,
    address: Mutex<PeerAddress>,
    /// Its latest start that a link has led to.
    incarnation: AtomicU64,
    lanes: [PeerLane; 3],
    /// It is no peer any more.
    is_gone: AtomicBool,
}

impl Peer {
    fn new(address: PeerAddress, limits: &LinkLimits) -> Self {
        Self {
            id: address.id,
            name: address.name.as_str().into(),
            incarnation: AtomicU64::new(0),
            lanes: Lane::ALL.map(|lane| PeerLane::new(address.id, lane, limits.of(lane))),
            address: Mutex::new(address),
            is_gone: AtomicBool::new(false),
        }
    }

    pub fn lane(&self, lane: Lane) -> &PeerLane {
        &self.lanes[usize::from(lane.number())]
    }

    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    /// Where it is dialled.
    pub fn address(&self) -> PeerAddress {
        self.address
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes note of a start of it. False if a later one is known.
    pub fn started(&self, incarnation: u64) -> bool {
        self.incarnation.fetch_max(incarnation, Ordering::SeqCst) <= incarnation
    }

    fn forget(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
        for lane in &self.lanes {
            lane.wake();
            lane.nudge();
        }
    }

    fn status(&self) -> PeerStatus {
        PeerStatus {
            id: self.id,
            name: self.name.to_string(),
            address: self.address().to_string(),
            lanes: self.lanes.iter().map(PeerLane::status).collect(),
            through: None,
        }
    }
}

impl LinkNode {
    pub fn new(options: &LinkOptions) -> Self {
        Self {
            name: options.name.as_str().into(),
            incarnation: options.incarnation,
            cluster: Mutex::new(options.cluster),
            secret: options.secret.clone(),
            is_certified: options.is_certified,
            limits: options.limits,
            silence: options.silence.as_millis() as Millis,
            peers: RwLock::default(),
            receiver: OnceLock::new(),
            numbers: AtomicU64::new(0),
            epochs: AtomicU64::new(0),
            guests: AtomicUsize::new(0),
            told: Told::default(),
            places: Places::default(),
        }
    }

    /// Has this one told from now on; the first one stays.
    pub fn told_to(&self, receiver: Weak<dyn Receiver>) {
        let _ = self.receiver.set(receiver);
    }

    pub fn receiver(&self) -> Receiving {
        self.receiver.get().and_then(Weak::upgrade)
    }

    pub fn set_cluster(&self, cluster: ClusterId) {
        *self.cluster.lock().unwrap_or_else(PoisonError::into_inner) = Some(cluster);
    }

    /// These are the peers from now on. Returns those that are new.
    pub fn set_peers(&self, addresses: Vec<PeerAddress>) -> Vec<Arc<Peer>> {
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::take(&mut *peers);
        let mut fresh = Vec::new();
        for address in addresses
            .into_iter()
            .filter(|address| *address.name != *self.name)
        {
            let known = former.by_id.get(&address.id);
            let peer = match known.filter(|peer| *peer.name == *address.name) {
                Some(peer) => {
                    *peer.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
                    peer.clone()
                }
                None => {
                    let peer = Arc::new(Peer::new(address, &self.limits));
                    fresh.push(peer.clone());
                    peer
                }
            };
            peers.by_name.insert(peer.name.clone(), peer.clone());
            peers.by_id.insert(peer.id, peer);
        }
        let stays = |peer: &Arc<Peer>| peers.by_id.get(&peer.id).is_some_and(|it| Arc::ptr_eq(it, peer));
        let gone: Vec<_> = former.by_id.into_values().filter(|peer| !stays(peer)).collect();
        drop(peers);
        gone.iter().for_each(|peer| peer.forget());
        fresh
    }

    /// All peers.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.by_id.values().cloned().collect()
    }

    /// The peer of this name.
    pub fn peer(&self, name: &str) -> Option<Arc<Peer>> {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.by_name.get(name).cloned()
    }

    /// Has this done with the lane of a peer that sends something.
    pub fn send_on(&self, to: NodeId, lane: Lane, send: impl FnOnce(&PeerLane) -> Sent) -> Sent {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        match peers.by_id.get(&to) {
            Some(peer) => send(peer.lane(lane)),
            None => Sent::NoLink,
        }
    }

    pub fn status(&self) -> Vec<PeerStatus> {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.by_id.values().map(|peer| peer.status()).collect()
    }

    /// What this node says of itself on a connection.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn greeting(&self, dialled: Option<Dialled>) -> Result<Greeting, String> {
        let mut challenge = [0; 32];
        rand::fill(&mut challenge).map_err(|_| "the system gives no random numbers")?;
        Ok(Greeting {
            versions: Versions::SPOKEN,
            cluster: *self.cluster.lock().unwrap_or_else(PoisonError::into_inner),
            name: self.name.clone(),
            incarnation: self.incarnation,
            clock_ms: clock_ms(),
            challenge,
            dialled,
        })
    }

    /// Whether a node of this name may be what TLS says of the other end, where that counts.
    pub fn may_be(&self, name: &str, security: Option<&Security>) -> bool {
        let certificate = security.and_then(|security| security.certificate.as_ref());
        !self.is_certified || certificate.is_some_and(|certificate| certificate.is_of_host(host_of(name)))
    }

    /// The number of the next link that is dialled.
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The epoch of the next link that is used.
    pub fn next_epoch(&self) -> u64 {
        self.epochs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A place for a connection that has proven nothing, if there is one.
    pub fn guest(self: &Arc<Self>) -> Option<Guest> {
        let guest = Guest(self.clone());
        (self.guests.fetch_add(1, Ordering::SeqCst) < GUESTS).then_some(guest)
    }

    /// Logs that there is no link, unless that was told lately.
    pub fn tell(&self, line: &str) {
        self.tell_of(line, line);
    }

    /// The same where a line has something that a stranger can choose: it counts as told if `what` was.
    pub fn tell_of(&self, what: &str, line: &str) {
        if self.told.is_due(what, Instant::now()) {
            tracing::warn!(area = "links", "{line}");
        }
    }
}

/// A connection that has proven nothing yet.
pub(super) struct Guest(Arc<LinkNode>);

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.guests.fetch_sub(1, Ordering::SeqCst);
    }
}

fn clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
