//! A node that is one of several, from its start to its stop.

use super::admission::{Answer, Question, Welcome};
use super::questions::{Answerer, Questions};
use super::{ConfiguredNode, host_of};
use crate::link::{
    ClusterId, Lane, LinkOptions, Links, PeerAddress, PeerStatus, Receiver, Reply, Sent, Topic,
};
use broker::groups::catalog::{CatalogLinks, SharedCatalog};
use broker::groups::membership::{
    Applicant, CATALOG_GROUP, ClusterFile, ClusterStore, Clustered, Companion, NotAdmitted, Peer, Stage,
    admit,
};
use broker::groups::{NodeGroups, NodeId};
use broker::queues::Work;
use broker::{Broker, OpenError, RefusalKind};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// So often a node that waits for its cluster asks whether it is still of it, in seconds.
const ASKS_EVERY: u64 = 5;

/// How long a node that stops waits until others lead what it has led.
const HAND_OVER: Duration = Duration::from_secs(1);

/// The node's side of its cluster: its links, and who is told what comes by them.
pub struct Cluster {
    myself: Weak<Self>,
    options: LinkOptions,
    port: u16,
    links: Arc<Links>,
    questions: Arc<Questions>,
    store: ClusterStore,
    configured: Vec<ConfiguredNode>,
    goes_on: Box<dyn Fn() -> bool + Send + Sync>,
    file: Mutex<ClusterFile>,
    state: Mutex<State>,
    ticked: Condvar,
    /// Why the node is no member any more, if another one has said so.
    refused: Arc<Mutex<Option<String>>>,
    /// After so many seconds of waiting others were asked last.
    asked: AtomicU64,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// The members of the cluster; nobody before this node is on record as one.
    members: Vec<Peer>,
    /// Those in maintenance.
    drained: BTreeSet<NodeId>,
    /// The queues of other nodes, and this node's for them.
    work: Option<Arc<Work>>,
    /// The peers whose lane for work is up, with their starts.
    up: BTreeMap<NodeId, u64>,
}

#[derive(Clone)]
struct Running {
    groups: Arc<NodeGroups>,
    catalog: Arc<SharedCatalog>,
}

/// The way to the other nodes' catalogs.
struct ToCatalogs(Arc<Links>);

impl CatalogLinks for ToCatalogs {
    fn send(&self, to: NodeId, frame: Bytes) {
        // What is lost is said again.
        let _: Sent = self.0.send(to, Lane::Work, Topic::Catalog.mark(vec![frame]));
    }
}

impl Cluster {
    /// The side of a node that knows this of itself; `options` say where and how it has links, and `port` where it is dialled.
    /// `goes_on` is asked while the node waits for others: false gives it up. Nothing runs yet.
    pub fn new(
        mut options: LinkOptions,
        port: u16,
        (store, file): (ClusterStore, ClusterFile),
        configured: Vec<ConfiguredNode>,
        goes_on: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Arc<Self> {
        options.incarnation = file.starts;
        options.cluster = Some(ClusterId(file.cluster));
        let links = Arc::new(Links::new(&options));
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            questions: Questions::new(links.clone(), file.starts),
            links,
            options,
            port,
            store,
            configured,
            goes_on: Box::new(goes_on),
            file: Mutex::new(file),
            state: Mutex::default(),
            ticked: Condvar::new(),
            refused: Arc::default(),
            asked: AtomicU64::new(0),
        })
    }

    /// What the node's broker is opened with.
    pub fn clustered(self: &Arc<Self>) -> Clustered {
        Clustered {
            file: self.file().clone(),
            port: self.port,
            links: self.links.clone(),
            catalog_links: Arc::new(ToCatalogs(self.links.clone())),
            companion: self.clone(),
        }
    }

    /// The links, once the broker is open.
    pub fn links(&self) -> &Arc<Links> {
        &self.links
    }

    /// All other members and the links with them.
    pub fn status(&self) -> Vec<PeerStatus> {
        let mut status = self.links.status();
        let detours = self.work().map(|work| work.detours()).unwrap_or_default();
        for (node, via) in detours {
            let name = status
                .iter()
                .find(|peer| peer.id == via)
                .map(|peer| peer.name.clone());
            if let Some(peer) = status.iter_mut().find(|peer| peer.id == node) {
                peer.through = name;
            }
        }
        status
    }

    /// The members of the cluster, this node among them.
    pub fn members(&self) -> Vec<Peer> {
        self.state().members.clone()
    }

    /// Waits until the cluster has so many members. False if the node stops before.
    pub fn reaches(&self, size: usize) -> bool {
        let mut state = self.state();
        while state.members.len() < size {
            if state.running.is_none() || !(self.goes_on)() {
                return false;
            }
            // Who the members are is looked at with each tick, and whether the node stops.
            let waited = self.ticked.wait_timeout(state, HAND_OVER);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// How many groups this node leads, of which the catalog is one, and whether another member runs that may lead in its place.
    pub fn leads(&self) -> (usize, bool) {
        let state = self.state();
        let (running, drained) = (state.running.clone(), state.drained.clone());
        drop(state);
        let own = self.file().node;
        let is_linked = |peer: &PeerStatus| peer.lanes.iter().any(|lane| lane.link.is_some());
        let mut others = self.links.status().into_iter();
        let heir = others.any(|peer| peer.id != own && is_linked(&peer) && !drained.contains(&peer.id));
        (running.map_or(0, |running| running.groups.leading()), heir)
    }

    /// Asks each of these members a question, and waits for their answers, for a second at the most. `None` for who says
    /// nothing, has no link, or is no member.
    pub fn ask(&self, questions: Vec<(String, Bytes)>) -> Vec<Option<Bytes>> {
        let members = self.members();
        // Nobody has this number.
        let nobody = NodeId(0);
        let number = |name: &str| {
            members
                .iter()
                .find(|peer| peer.name == name)
                .map(|peer| peer.node)
        };
        let questions = questions
            .into_iter()
            .map(|(name, question)| (number(&name).unwrap_or(nobody), question));
        self.questions.ask(questions.collect())
    }

    /// From now on questions of other nodes are answered by `answerer`, on threads of their own. It must not ask anybody.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn answer_with(&self, answerer: Answerer) -> io::Result<()> {
        self.questions.answer_with(answerer)
    }

    /// From now on clients of this node reach queues of others, and theirs this node's. Once, before clients are let in.
    pub fn serve_queues(&self, broker: &Arc<Broker>) {
        let file = self.file();
        let (node, start) = (file.node, file.starts);
        drop(file);
        let existing: Weak<Broker> = Arc::downgrade(broker);
        let rejected = self.groups().map(|groups| groups.rejected().clone());
        let rejected = rejected.unwrap_or_default();
        let work = Work::new(node, start, self.links.clone(), existing, rejected);
        broker.join(work.clone());
        let mut state = self.state();
        state.work = Some(work.clone());
        let up = state.up.clone();
        drop(state);
        for (peer, start) in up {
            work.up(peer, start);
            // Links tell of themselves meanwhile, without waiting for this.
            let mut told = Some(start);
            while let now = self.state().up.get(&peer).copied()
                && now != told
            {
                match now {
                    Some(start) => work.up(peer, start),
                    None => work.down(peer),
                }
                told = now;
            }
        }
    }

    /// Has the other members forget this node, and waits until they do without it. Nobody is served by it meanwhile, but it
    /// takes part: of two nodes one alone decides nothing. To be stopped and closed afterwards, in any case.
    ///
    /// # Errors
    /// It was not forgotten, or is and the others may still need it: the text says which.
    pub fn leave(&self, broker: &Broker) -> Result<(), String> {
        let (me, name) = {
            let file = self.file();
            (file.node, file.name.clone())
        };
        if self.members().iter().all(|member| member.node == me) {
            return Ok(());
        }
        let running = self.state().running.clone();
        let running = running.ok_or("it takes no part in its cluster")?;
        self.hand_over(&running);
        loop {
            match broker.administrator(broker::THE_NODE).forget_node(&name) {
                Ok(()) => break,
                Err(refusal) if refusal.kind() != RefusalKind::Internal => return Err(refusal.to_string()),
                Err(refusal) if !(self.goes_on)() => return Err(refusal.to_string()),
                Err(_) => {}
            }
        }
        tracing::info!(
            area = "cluster",
            "this node is forgotten; waiting until the others do without it"
        );
        let status = || running.groups.status(CATALOG_GROUP);
        let votes = || status().is_some_and(|status| !status.is_removed);
        while votes() {
            if !(self.goes_on)() {
                return Err(
                    "the others have forgotten this node, but may not be able to do without it yet"
                        .to_owned(),
                );
            }
            // It is told with a tick.
            drop(self.ticked.wait_timeout(self.state(), HAND_OVER));
        }
        Ok(())
    }

    /// The node is about to close: others lead what it leads, if there are some, and then it has no links any more. To be called
    /// before the broker is closed.
    pub fn stop(&self) {
        let running = self.state().running.clone();
        if let Some(running) = running {
            self.hand_over(&running);
        }
        self.questions.stop();
        self.links.stop();
        let mut state = self.state();
        state.running = None;
        let work = state.work.take();
        drop(state);
        if let Some(work) = work {
            work.close();
        }
        self.ticked.notify_all();
    }

    /// Others lead from now on what this node leads. Waits for that, if there are some.
    fn hand_over(&self, running: &Running) {
        let Running { groups, catalog } = running;
        let leads = || catalog.member().is_some_and(|member| member.leads());
        let has_links = || {
            self.links
                .status()
                .iter()
                .any(|peer| peer.lanes.iter().any(|lane| lane.link.is_some()))
        };
        groups.hand_over();
        let until = Instant::now() + HAND_OVER;
        while leads()
            && has_links()
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            // Who leads is looked at with each tick.
            drop(self.ticked.wait_timeout(self.state(), left));
        }
    }

    fn file(&self) -> MutexGuard<'_, ClusterFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where others are dialled: what the configuration says of a node counts more than what the node says of itself.
    fn addresses(&self, peers: &[Peer]) -> Vec<PeerAddress> {
        let port = |peer: &Peer| {
            let named = self.configured.iter().find(|node| node.name == peer.name);
            named.and_then(|node| node.port).unwrap_or(peer.port)
        };
        let address = |peer: &Peer| PeerAddress {
            id: peer.node,
            name: peer.name.clone(),
            host: host_of(&peer.name).to_owned(),
            port: port(peer),
        };
        peers.iter().map(address).collect()
    }

    /// Keeps what the node knows of itself.
    fn keep(&self, file: &ClusterFile) {
        if let Err(error) = self.store.write(file) {
            tracing::error!(
                area = "cluster",
                "what this node knows of its cluster can't be written down, it may have to look for it at its next start: {error}"
            );
        }
    }

    /// The work of clients, what is said about the catalog, and what operators ask.
    fn worked(&self, from: NodeId, frame: Bytes) {
        match Topic::of(frame) {
            Some((Topic::Catalog, frame)) => {
                let catalog = self
                    .state()
                    .running
                    .as_ref()
                    .map(|running| running.catalog.clone());
                if let Some(catalog) = catalog {
                    catalog.hear(from, &frame.into());
                }
            }
            Some((Topic::Questions, frame)) => self.questions.receive(from, &frame.into()),
            Some((Topic::Queues, frame)) => {
                if let Some(work) = self.work() {
                    work.receive(from, frame);
                }
            }
            None => {}
        }
    }

    fn work(&self) -> Option<Arc<Work>> {
        self.state().work.clone()
    }

    fn groups(&self) -> Option<Arc<NodeGroups>> {
        self.state()
            .running
            .as_ref()
            .map(|running| running.groups.clone())
    }

    /// Asks all others as a node does that is no member: one that is not forgotten is answered with its number.
    fn ask_whether_member(&self) {
        let file = self.file().clone();
        let question = Question {
            port: self.port,
            token: file.token,
            has_data: false,
        };
        for peer in self.addresses(&file.peers) {
            if peer.id == file.node {
                continue;
            }
            let (refused, name) = (self.refused.clone(), peer.name.clone());
            let told = move |answered: Result<Bytes, String>| {
                let answer = answered.ok().and_then(|bytes| Answer::decode(&bytes));
                if let Some(Answer::Refused(why)) = answer {
                    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
                    *refused = Some(format!("{name} says: {why}"));
                }
            };
            self.links
                .ask(&peer.name, (&peer.host, peer.port), question.encode(), told);
        }
    }

    /// What a node is answered that was let in.
    fn welcome(&self, applicant: Peer) -> Answer {
        let mut members = self.state().members.clone();
        members.retain(|member| member.node != applicant.node);
        let (cluster, node) = (self.file().cluster, applicant.node);
        members.push(applicant);
        Answer::Welcome(Welcome {
            cluster,
            node,
            members,
        })
    }
}

/// The members, and those who are none any more and still vote about the catalog: without them that they leave may never
/// be decided. But not one whose name a member has: that is the same machine, which has lost what it was or was reset.
fn with_leaving(known: &[Peer], members: &[Peer], voting: &[NodeId]) -> Vec<Peer> {
    let votes = |peer: &&Peer| voting.contains(&peer.node);
    let is_gone = |peer: &&Peer| {
        let mut all = members.iter();
        all.all(|member| member.node != peer.node && member.name != peer.name)
    };
    let leaving = known.iter().filter(is_gone).filter(votes);
    members.iter().chain(leaving).cloned().collect()
}

impl Companion for Cluster {
    fn begin(&self, groups: &Arc<NodeGroups>, catalog: &Arc<SharedCatalog>) -> Result<(), String> {
        let mut file = self.file();
        if file.stage == Stage::Joins {
            // From here on it may promise something.
            file.stage = Stage::Member;
            self.store.write(&file).map_err(|error| error.to_string())?;
        }
        let mut state = self.state();
        state.running = Some(Running {
            groups: groups.clone(),
            catalog: catalog.clone(),
        });
        let drained = state.drained.clone();
        drop(state);
        let peers = file.peers.clone();
        // Whoever turns groups may give answers, which look at the file.
        drop(file);
        groups.drain(drained);
        self.links.set_peers(self.addresses(&peers));
        let receiver: Weak<dyn Receiver> = self.myself.clone();
        let started = self.links.start(&self.options, receiver);
        started.map_err(|error| format!("the links between nodes: {error}"))
    }

    fn members(&self, members: &[Peer]) {
        let own = self.file().node;
        let is_member = members.iter().any(|member| member.node == own);
        // Before it is on record nobody knows it; what it knows of others is older than that.
        if !is_member {
            return;
        }
        let mut state = self.state();
        state.members = members.to_vec();
        let running = state.running.clone();
        drop(state);
        let status = running.as_ref();
        let status = status.and_then(|running| running.groups.status(CATALOG_GROUP));
        let voting = status.iter().flat_map(|status| status.members.members());
        let voting: Vec<NodeId> = voting.map(|member| member.node).collect();
        let mut file = self.file();
        let peers = with_leaving(&file.peers, members, &voting);
        if file.peers != peers || file.stage != Stage::Member {
            file.peers = peers.clone();
            file.stage = Stage::Member;
            self.keep(&file);
        }
        // Whoever turns groups may give answers, which look at the file.
        drop(file);
        if let Some(Running { groups, catalog }) = running {
            for member in members {
                groups.add_peer(member.node);
                catalog.add_peer(member.node);
            }
        }
        self.links.set_peers(self.addresses(&peers));
    }

    fn drained(&self, nodes: &BTreeSet<NodeId>) {
        let mut state = self.state();
        state.drained.clone_from(nodes);
        let groups = state.running.as_ref().map(|running| running.groups.clone());
        drop(state);
        if let Some(groups) = groups {
            groups.drain(nodes.clone());
        }
    }

    fn tick(&self) {
        self.ticked.notify_all();
        if let Some(work) = self.work() {
            work.tick();
        }
    }

    fn waits(&self, seconds: u64) -> Result<(), OpenError> {
        if !(self.goes_on)() {
            let why = "the node was told to stop while it waited for its cluster";
            return Err(OpenError::Clustered(why.to_owned()));
        }
        let refused = self
            .refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(why) = refused {
            return Err(OpenError::NotAMember(why));
        }
        // Who was removed from the cluster has no links, and would wait for ever.
        if seconds > 0
            && seconds.is_multiple_of(ASKS_EVERY)
            && self.asked.swap(seconds, Ordering::SeqCst) != seconds
        {
            self.ask_whether_member();
        }
        Ok(())
    }
}

impl Receiver for Cluster {
    fn up(&self, peer: NodeId, lane: Lane, incarnation: u64) {
        // The groups hear of a peer by its first frame.
        if lane == Lane::Work {
            let mut state = self.state();
            state.up.insert(peer, incarnation);
            let work = state.work.clone();
            drop(state);
            if let Some(work) = work {
                work.up(peer, incarnation);
            }
        }
    }

    fn frame(&self, from: NodeId, lane: Lane, frame: Bytes) {
        match lane {
            Lane::Work => self.worked(from, frame),
            lane => {
                if let Some(groups) = self.groups() {
                    match lane {
                        Lane::Bulk => groups.bulk(from, frame),
                        _ => groups.hear(from, frame),
                    }
                }
            }
        }
    }

    fn settled(&self, _: NodeId, lane: Lane) {
        let Some(Running { groups, catalog }) = self.state().running.clone() else {
            return;
        };
        match lane {
            Lane::Work => catalog.look(),
            Lane::Consensus => groups.turn(),
            Lane::Bulk => {}
        }
    }

    fn down(&self, peer: NodeId, lane: Lane, replaced: bool) {
        match lane {
            // A peer that has just made another link lives.
            Lane::Consensus if !replaced => {
                if let Some(groups) = self.groups() {
                    groups.suspect(peer);
                }
            }
            Lane::Consensus | Lane::Bulk => {}
            Lane::Work => {
                let mut state = self.state();
                state.up.remove(&peer);
                let work = state.work.clone();
                drop(state);
                // What was under way is lost, be there another link or not.
                self.questions.down(peer);
                if let Some(work) = work {
                    work.down(peer);
                }
            }
        }
    }

    fn room(&self, _: NodeId, _: Lane) {
        // Groups, transfers and the catalog say again what found no room, and sessions of queues miss it.
    }

    fn asked(&self, name: &str, question: Bytes, reply: Reply) {
        let Some(Question {
            port,
            token,
            has_data,
        }) = Question::decode(&question)
        else {
            return;
        };
        let running = {
            let state = self.state();
            // Before it is on record itself, another one could get its name.
            state.running.clone().filter(|_| !state.members.is_empty())
        };
        let (Some(running), Some(cluster)) = (running, self.myself.upgrade()) else {
            return reply.give(Answer::NotNow.encode());
        };
        if has_data {
            let why = "it is of a cluster, which does not know the queues and definitions in the other node's data directory: reset that one to \
                       let it join, or take cluster_formation.* out of its configuration to run it alone";
            return reply.give(Answer::Refused(why.to_owned()).encode());
        }
        if !name.contains('@') {
            let why = format!(
                "{name} is no name of a node: it has to say at which host the node is, such as rabbit@n1"
            );
            return reply.give(Answer::Refused(why).encode());
        }
        let applicant = Applicant {
            name: name.to_owned(),
            port,
            token,
        };
        let name = name.to_owned();
        admit(&running.catalog, applicant, move |admitted| {
            let answer = match admitted {
                Ok(node) => {
                    tracing::info!(
                        area = "cluster",
                        "{name} is let into the cluster as node {}",
                        node.0
                    );
                    cluster.welcome(Peer { node, name, port })
                }
                Err(NotAdmitted::Refused(why)) => {
                    tracing::warn!(area = "cluster", "{name} is not let into the cluster: {why}");
                    Answer::Refused(why)
                }
                Err(NotAdmitted::NotNow) => Answer::NotNow,
            };
            reply.give(answer.encode());
        });
    }
}
