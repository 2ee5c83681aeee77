//! The broker: what its sessions share. It is put together, opened and closed by `assembly`.

#[cfg(any(test, feature = "late-catalog"))]
pub mod late_catalog;
pub mod open_sessions;
pub mod passwords;
pub mod replies;
pub mod service;
pub(crate) mod shared_catalog;
pub mod usage;

use crate::broker::open_sessions::OpenSessions;
use crate::broker::passwords::Passwords;
use crate::broker::replies::Replies;
use crate::broker::service::Service;
use crate::broker::shared_catalog::CatalogFollower;
use crate::broker::usage::Usages;
use crate::clients::access::Authority;
use crate::clients::alarms::{AlarmReason, Alarms};
use crate::events::firehose::Firehose;
use crate::events::watchers::Watcher;
use crate::events::{Events, Happening};
use crate::groups::catalog::SharedCatalog;
use crate::groups::membership::Clustered;
use crate::groups::{Links, NodeGroups};
use crate::node::{LogEvents, Node};
use crate::options::Options;
use crate::options::node_limits::Occupancy;
use crate::queues::{
    Alone, Existing, Handle, JournalOf, Peers, Queue, Registry, SharedQueue, StreamAddresses,
};
use crate::topology::caches::Caches;
use crate::topology::{CatalogLeader, Placing, Sharing, Topology};
use catalog::{QueueKind, Record, View};
use model::{ConsumerId, Index, Limits, Message, QueueId};
use queue::NodeConsumer;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What recovery gives the broker.
pub struct Recovered {
    pub node: Arc<Node>,
    pub log_events: LogEvents,
    pub queues: Arc<Registry>,
    pub caches: Arc<Caches>,
    pub topology: Topology,
    /// Held as long as the broker is open.
    pub lock: storage::DirectoryLock,
}

/// One node.
pub struct Broker {
    /// The first field: the compiler looks through the types of all fields wherever a thread is given a broker, and the catalog's
    /// trees are types so deep that it comes to its limit from any later place.
    topology: Topology,
    options: Options,
    node: Arc<Node>,
    log_events: LogEvents,
    queues: Arc<Registry>,
    alarms: Alarms,
    service: Service,
    replies: Arc<Replies>,
    sessions: OpenSessions,
    stats: Arc<crate::stats::Registry>,
    events: Arc<Events>,
    caches: Arc<Caches>,
    node_name: Arc<str>,
    firehose: Firehose,
    occupancy: Occupancy,
    user_usages: Usages,
    vhost_usages: Usages,
    /// How much memory each queue may hold for bodies now, in bytes.
    queue_memory: Mutex<usize>,
    /// What ends with the broker, in this order.
    closers: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// Who decides about logins, if not the catalog alone.
    authority: OnceLock<Arc<dyn Authority>>,
    passwords: Passwords,
    /// Its members of groups, if it has some.
    groups: OnceLock<Arc<NodeGroups>>,
    /// It begins a cluster as soon as it is asked to.
    founds: Mutex<Option<Clustered>>,
    _lock: storage::DirectoryLock,
}

impl Broker {
    /// A broker of what recovery has found. Nothing runs yet.
    pub(crate) fn new(options: Options, recovered: Recovered, queue_memory: usize) -> Self {
        let events = Events::new(options.world.clone(), options.event_vhost.as_deref());
        recovered.topology.place_by(Placing {
            locator: options.queue_defaults.locator,
            reconciliation: options.reconciliation,
        });
        Self {
            node: recovered.node,
            log_events: recovered.log_events,
            queues: recovered.queues,
            caches: recovered.caches,
            topology: recovered.topology,
            alarms: Alarms::default(),
            service: Service::new(&options),
            replies: Arc::default(),
            sessions: OpenSessions::default(),
            stats: Arc::default(),
            events: Arc::new(events),
            firehose: Firehose::default(),
            occupancy: Occupancy::default(),
            user_usages: Usages::default(),
            vhost_usages: Usages::default(),
            queue_memory: Mutex::new(queue_memory),
            closers: Mutex::default(),
            authority: OnceLock::new(),
            passwords: Passwords::new(options.world.clone()),
            groups: OnceLock::new(),
            founds: Mutex::default(),
            node_name: options.node_name.as_str().into(),
            options,
            _lock: recovered.lock,
        }
    }

    /// Has this called when the broker closes, after what was given before.
    pub(crate) fn at_close(&self, closer: impl FnOnce() + Send + 'static) {
        let mut closers = self.closers.lock().unwrap_or_else(PoisonError::into_inner);
        closers.push(Box::new(closer));
    }

    /// What ends with the broker. Once.
    pub(crate) fn take_closers(&self) -> Vec<Box<dyn FnOnce() + Send>> {
        std::mem::take(&mut *self.closers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who is told what happens.
    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Tells those who watch what happens, if there are any; `happening` is called only then.
    pub(crate) fn happened(&self, happening: impl FnOnce() -> Happening) {
        self.events.happened(happening);
    }

    /// Begins to watch what happens.
    pub fn watch(&self) -> Arc<Watcher> {
        self.events.watchers.add()
    }

    /// What deduplication exchanges remember.
    pub(crate) fn caches(&self) -> &Arc<Caches> {
        &self.caches
    }

    /// What this node is called.
    pub(crate) fn node_name(&self) -> &Arc<str> {
        &self.node_name
    }

    /// The open sessions.
    pub(crate) fn sessions(&self) -> &OpenSessions {
        &self.sessions
    }

    pub(crate) fn alarms(&self) -> &Alarms {
        &self.alarms
    }

    pub(crate) fn log_events(&self) -> &LogEvents {
        &self.log_events
    }

    pub(crate) fn queue_memory(&self) -> MutexGuard<'_, usize> {
        self.queue_memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits on what comes from outside.
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// How long deliveries may stay unacknowledged where nobody says anything else, in milliseconds; 0 is no end.
    pub(crate) fn consumer_timeout_ms(&self) -> u64 {
        self.options.consumer_timeout_ms
    }

    /// The name announced to clients: a global parameter, or else the configuration's.
    pub fn cluster_name(&self) -> String {
        let view = self.view();
        let set = view.global("cluster_name").and_then(|value| value.as_str());
        set.unwrap_or(&self.options.cluster_name).to_owned()
    }

    /// What users have open, or virtual hosts.
    pub(crate) fn usages(&self, of_users: bool) -> &Usages {
        match of_users {
            true => &self.user_usages,
            false => &self.vhost_usages,
        }
    }

    /// What is open on this node.
    pub(crate) fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    /// Why publishers are blocked at the moment, if they are.
    pub fn alarm(&self) -> Option<AlarmReason> {
        self.alarms.reason()
    }

    pub(crate) fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    pub(crate) fn authority(&self) -> &OnceLock<Arc<dyn Authority>> {
        &self.authority
    }

    /// All queues, for operators.
    pub fn queues(&self) -> &Registry {
        &self.queues
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// What queues are that are declared without a type, in virtual hosts that say nothing.
    pub fn default_queue_type(&self) -> catalog::QueueKind {
        self.options.queue_defaults.kind
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn replies(&self) -> &Arc<Replies> {
        &self.replies
    }

    pub(crate) fn alarms_on(&self) -> (bool, bool, bool) {
        self.alarms.on()
    }

    pub(crate) fn is_log_stalled(&self) -> bool {
        self.log_events.is_stalled()
    }

    /// How many keys a deduplication exchange knows; see `Exchange::seen`.
    pub fn cache_entries(&self, id: QueueId) -> Option<u64> {
        self.caches.count(id)
    }

    /// Writes what a deduplication exchange remembers down again. What is no cache any more is forgotten.
    pub(crate) fn restate_cache(&self, id: QueueId) {
        if !self.caches.restate(id) {
            self.node.log.forget(JournalOf::Cache(id).id());
        }
    }

    /// The wall clock, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.node.now().0
    }

    /// How long the node's own work takes.
    pub fn work(&self) -> &crate::stats::Work {
        &self.node.work
    }

    /// What operators see of clients.
    pub fn stats(&self) -> &Arc<crate::stats::Registry> {
        &self.stats
    }

    pub(crate) fn firehose(&self) -> &Firehose {
        &self.firehose
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.queues
    }

    /// Another node decides what exists from now on; this one applies its records ([`Broker::apply_catalog`]).
    pub fn follow_catalog(&self, leader: Arc<dyn CatalogLeader>) {
        self.topology().follow(leader);
    }

    /// Takes over what the node decided that this one follows: records of the catalog's journal with their numbers, in order.
    pub fn apply_catalog(&self, records: impl IntoIterator<Item = (Index, Record)>) {
        self.topology().apply(records);
    }

    /// The members that this node has of groups. Once; whoever calls this has them told of ticks and frames.
    pub fn replicate(&self, groups: cluster::Groups, links: Arc<dyn Links>) -> Arc<NodeGroups> {
        let made = || NodeGroups::new(self.node.clone(), groups, links);
        self.groups.get_or_init(made).clone()
    }

    pub(crate) fn groups(&self) -> Option<&Arc<NodeGroups>> {
        self.groups.get()
    }

    /// These are the members that this node has of groups. Once.
    pub(crate) fn set_groups(&self, groups: Arc<NodeGroups>) {
        let _ = self.groups.set(groups);
    }

    /// What it begins a cluster with, once it is asked to; the one before, if there was one.
    pub(crate) fn founds(&self, with: Option<Clustered>) -> Option<Clustered> {
        std::mem::replace(
            &mut *self.founds.lock().unwrap_or_else(PoisonError::into_inner),
            with,
        )
    }

    /// The catalog of several nodes, if this node is one of them.
    pub fn shared_catalog(&self) -> Option<&Arc<SharedCatalog>> {
        self.topology.shared()
    }

    /// The catalog is that of several nodes from now on: it becomes what a group of this node has, which others may join.
    /// What is asked meanwhile waits. Once; whoever calls this has it told of ticks and frames.
    pub fn share_catalog(self: &Arc<Self>, sharing: Sharing) -> Arc<SharedCatalog> {
        let follower = CatalogFollower::new(None);
        follower.connect(self);
        self.topology.share(sharing, follower)
    }

    /// Whether what exists may be something else by now than what this node knows: it shares its catalog, and has no
    /// lease. False where it decides alone.
    pub fn is_stale(&self) -> bool {
        self.topology.is_stale()
    }

    /// Whether that has been so for two seconds: this node reaches no majority of the cluster's. What exists can't be
    /// changed through it, and nothing published.
    pub fn is_cut_off(&self) -> bool {
        let shared = self.topology.shared();
        shared.is_some_and(|shared| shared.is_cut_off())
    }

    /// This node belongs to others from now on. May be called once.
    pub fn join(&self, peers: Arc<dyn Peers>) {
        self.replies.join(peers.clone());
        self.topology.join(peers);
        self.topology.tell_alarm(self.alarm());
    }

    /// Clients of the stream protocol reach this node there: other nodes are told, and tell their clients. May be called once.
    pub fn serve_streams(&self, at: StreamAddresses) {
        self.topology.serve_streams(at);
    }

    /// Other nodes can be reached by now, or can be reached no longer: the queues that live there get other handles.
    pub fn follow_peers(&self) {
        self.topology.follow_peers();
    }

    /// A consumer of this node's clients, as all nodes call it.
    pub fn own_consumer(&self, consumer: ConsumerId) -> NodeConsumer {
        self.topology.own_consumer(consumer)
    }

    /// The one consumer that a queue which is decided here serves, where one at a time is.
    pub fn active_consumer(&self, queue: &Queue) -> Option<NodeConsumer> {
        let active = queue.status().active?;
        Some(self.topology.whose_consumer(queue.id, active))
    }

    /// What exists now: an immutable snapshot, cheap to take.
    pub fn view(&self) -> Arc<View> {
        self.topology.view()
    }

    /// Rises whenever what exists changes.
    pub(crate) fn generation(&self) -> u64 {
        self.topology.generation()
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "broker on {}", self.options.data_dir.display())
    }
}

fn node_id(node: catalog::NodeId) -> Option<crate::groups::NodeId> {
    u32::try_from(node.0).ok().map(crate::groups::NodeId)
}

impl Existing for Broker {
    fn here(&self, queue: QueueId) -> Option<Arc<Queue>> {
        self.queues.here(queue).filter(|queue| !queue.is_retired())
    }

    fn version(&self) -> u64 {
        self.generation()
    }

    fn shared(&self, id: QueueId) -> Option<SharedQueue> {
        let known = match self.queues.get(id)? {
            Handle::Shared(shared) => shared.known.clone(),
            _ => return None,
        };
        let settings = self.view().settings(&known);
        let is_alone = !known.is_shared();
        Some(SharedQueue {
            home: node_id(known.home)?,
            members: known.places().filter_map(node_id).collect(),
            settings: match is_alone {
                true => settings,
                false => settings.of_several(),
            },
            leader: self.replica(id).and_then(|queue| queue.leader()),
            // Whatever it is, it may be converted, and then be on one node alone.
            numbers: Some(Alone {
                behind: is_alone.then_some(known.epoch.behind),
            }),
            is_refounded: known.epoch.is_refounded,
        })
    }

    fn stream_members(&self, id: QueueId) -> Option<Vec<crate::groups::NodeId>> {
        match self.queues.get(id)? {
            Handle::Shared(shared) if shared.known.kind == QueueKind::Stream => {
                Some(shared.known.places().filter_map(node_id).collect())
            }
            _ => None,
        }
    }

    fn stream_copies(&self) -> Vec<Arc<Queue>> {
        let shared = self.queues.shared().into_iter();
        let streams = shared.filter(|shared| shared.known.kind == QueueKind::Stream);
        streams.filter_map(|shared| shared.replica.clone()).collect()
    }

    fn led_streams(&self) -> Vec<QueueId> {
        let shared = self.queues.shared().into_iter();
        let led = shared.filter(|shared| {
            let copy = shared.replica.as_ref().filter(|queue| queue.is_led_here());
            shared.known.kind == QueueKind::Stream && copy.is_some()
        });
        led.map(|shared| shared.known.id).collect()
    }

    fn keeps_for_ms(&self, id: QueueId) -> Option<u64> {
        let view = self.view();
        let settings = match self.queues.get(id)? {
            Handle::Here(queue) => view.settings(view.queue(&queue.vhost, &queue.name)?),
            Handle::Elsewhere(known, _) | Handle::WithoutOwner(known) => view.settings(&known),
            Handle::Shared(shared) => view.settings(&shared.known),
        };
        settings.consumer_disconnected_ms
    }

    fn replica(&self, id: QueueId) -> Option<Arc<Queue>> {
        let copy = self.queues.copy(id)?;
        let has_terms = copy.replica().is_some() || copy.own_term().is_some();
        (has_terms && !copy.is_retired()).then_some(copy)
    }

    fn nodes(&self) -> Vec<crate::groups::NodeId> {
        let view = self.view();
        let nodes = view.nodes().filter(|(_, known)| known.joined().is_some());
        nodes.filter_map(|(node, _)| node_id(*node)).collect()
    }

    fn tick(&self) {
        self.topology().settle();
        self.topology().grow_queues();
    }

    fn name_of(&self, node: crate::groups::NodeId) -> String {
        self.view().node_name(catalog::NodeId(node.0.into())).to_owned()
    }

    fn moved(&self) {
        self.follow_peers();
    }

    fn reached(&self) {
        self.topology.go_on();
    }

    fn reply(&self, vhost: &str, address: &str, message: &Message<'_>) {
        if let Some(asker) = self.replies.find_here(vhost, address.as_bytes()) {
            asker.answer(message);
        }
    }
}
