//! The broker: what holds everything together, opens it and closes it.

use crate::access::Authority;
use crate::administer::THE_NODE;
use crate::alarms::{AlarmReason, Alarms, Monitor, resident_memory};
use crate::events::Happening;
use crate::firehose::Firehose;
use crate::journal::JournalOf;
use crate::node::Node;
use crate::node_limits::Occupancy;
use crate::options::{OpenError, Options};
use crate::outbox::Event;
use crate::passwords::Passwords;
use crate::queues::{Handle, Paging, Registry};
use crate::recovery;
use crate::replies::Replies;
use crate::service::Service;
use crate::session::Session;
use crate::tally::Tallies;
use crate::topology::Topology;
use catalog::View;
use model::{Limits, QueueId};
use queue::fifo::Request;
use queue::store;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use storage::{JournalId, Position};

/// How much memory a queue may hold for bodies when there is plenty, and when there is none, in bytes.
const QUEUE_MEMORY: (usize, usize) = (16 * 1024 * 1024, 256 * 1024);

/// One node.
pub struct Broker {
    /// In front: the catalog's trees are deep types, and the compiler, which looks through all of this wherever a thread is given
    /// a part of it, reaches them soonest from here.
    topology: Topology,
    options: Options,
    node: Arc<Node>,
    log_events: crate::node::LogEvents,
    queues: Arc<Registry>,
    alarms: Alarms,
    service: Service,
    replies: Replies,
    sessions: RwLock<HashMap<u64, Weak<Session>>>,
    stats: crate::stats::Registry,
    firehose: Firehose,
    occupancy: Occupancy,
    user_tallies: Tallies,
    vhost_tallies: Tallies,
    queue_memory: Mutex<usize>,
    monitor: Mutex<Option<Monitor>>,
    /// Who decides about logins, if not the catalog alone.
    authority: OnceLock<Arc<dyn Authority>>,
    passwords: Passwords,
    _lock: storage::DirectoryLock,
}

impl Broker {
    /// Opens the data directory, replays the log, and is ready for sessions.
    ///
    /// # Errors
    /// The data directory is locked, not writable or damaged; the text says what to do.
    pub fn open(options: Options) -> Result<Arc<Self>, OpenError> {
        let recovered = recovery::recover(&options)?;
        let broker = Arc::new(Self {
            node: recovered.node,
            log_events: recovered.log_events,
            queues: recovered.queues,
            topology: recovered.topology,
            alarms: Alarms::default(),
            service: Service::new(&options),
            replies: Replies::default(),
            sessions: RwLock::default(),
            stats: crate::stats::Registry::default(),
            firehose: Firehose::default(),
            occupancy: Occupancy::default(),
            user_tallies: Tallies::default(),
            vhost_tallies: Tallies::default(),
            queue_memory: Mutex::new(QUEUE_MEMORY.0),
            monitor: Mutex::default(),
            authority: OnceLock::new(),
            passwords: Passwords::new(options.world.clone()),
            options,
            _lock: recovered.lock,
        });
        let limit = broker.options.disk_free_limit;
        if limit < crate::options::DISK_FREE_LIMIT {
            tracing::warn!(
                area = "alarm",
                "disk_free_limit is {limit} bytes: that is less than the {} that the log may take before publishers are blocked, so it may have to wait \
                 for space",
                crate::options::DISK_FREE_LIMIT
            );
        }
        broker.node.belongs_to(&broker);
        broker.topology.finish_deletions();
        for vhost in broker.view().vhosts() {
            broker.topology.warn_of_slow_policies(&vhost.name);
        }
        if broker.options.create_defaults {
            broker.create_defaults()?;
        }
        broker.node.start_clock().map_err(OpenError::Thread)?;
        let files = broker.node.files();
        let dead_letters = &broker.node.dead_letters;
        dead_letters.start(&broker, files).map_err(OpenError::Thread)?;
        broker.node.notices.start(&broker).map_err(OpenError::Thread)?;
        let monitor = Monitor::start(&broker).map_err(OpenError::Thread)?;
        *broker.monitor.lock().unwrap_or_else(PoisonError::into_inner) = Some(monitor);
        Ok(broker)
    }

    /// A node without users gets its default virtual host and user.
    ///
    /// # Errors
    /// A default permission is no regular expression, or the system has no randomness.
    pub fn create_defaults(&self) -> Result<(), OpenError> {
        if self.view().users().next().is_some() {
            return Ok(());
        }
        let password = self.hash_password(self.options.default_password.as_bytes());
        password
            .and_then(|password| self.topology.seed(&self.options, password))
            .and_then(|()| {
                let by = self.administrator(THE_NODE);
                self.options
                    .vhost_defaults
                    .apply(&by, &self.options.default_vhost)
            })
            .map_err(OpenError::Defaults)
    }

    /// Ends cleanly: everything appended is synced. Close all doors first.
    pub fn close(&self) {
        drop(self.monitor.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.node.clock.stop();
        self.node.notices.stop();
        self.node.dead_letters.stop();
        self.node.caches.write(&self.node, true);
        self.node.pager.stop();
        if let Err(error) = self.node.log.close() {
            tracing::error!(area = "log", "the log could not be closed cleanly: {error}");
        }
        let (syncs, confirmed) = (self.node.log.syncs(), self.node.confirmed());
        tracing::info!(
            area = "log",
            "the write-ahead log was synced {syncs} times since the start, {confirmed} publishes were confirmed after a sync"
        );
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
    pub(crate) fn tallies(&self, of_users: bool) -> &Tallies {
        match of_users {
            true => &self.user_tallies,
            false => &self.vhost_tallies,
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

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn replies(&self) -> &Replies {
        &self.replies
    }

    pub(crate) fn alarms_on(&self) -> (bool, bool, bool) {
        self.alarms.on()
    }

    pub(crate) fn is_log_stalled(&self) -> bool {
        self.log_events.is_stalled()
    }

    /// Ends the connections of which `which` is true: 320 with this text.
    pub(crate) fn close_sessions(&self, reason: &str, which: impl Fn(&Session) -> bool) {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let open = sessions.values().filter_map(Weak::upgrade);
        for session in open.filter(|session| which(session)) {
            session.outbox().send(Event::Close(reason.into()));
        }
    }

    /// How many keys a deduplication exchange knows; see `Exchange::seen`.
    pub fn cache_entries(&self, id: QueueId) -> Option<u64> {
        self.node.caches.count(id)
    }

    /// Writes what a deduplication exchange remembers down again. What is no cache any more is forgotten.
    pub(crate) fn restate_cache(&self, id: QueueId) {
        if !self.node.caches.restate(&self.node, id) {
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
    pub fn stats(&self) -> &crate::stats::Registry {
        &self.stats
    }

    pub(crate) fn firehose(&self) -> &Firehose {
        &self.firehose
    }

    pub(crate) fn session_count(&self) -> usize {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.queues
    }

    /// What exists now: an immutable snapshot, cheap to take.
    pub fn view(&self) -> Arc<View> {
        self.topology.view()
    }

    /// Rises whenever what exists changes.
    pub(crate) fn generation(&self) -> u64 {
        self.topology.generation()
    }

    pub(crate) fn session_opened(&self, session: &Arc<Session>) {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(session.id().0, Arc::downgrade(session));
        // Under the lock, so that no change of the alarm falls between the two.
        if let Some(reason) = self.alarm() {
            session.outbox().push(Event::Alarm(Some(reason)));
        }
    }

    pub(crate) fn session_closed(&self, session: &Session) {
        self.sessions
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&session.id().0);
        if let Some(connection) = self.stats.leave(session.id().0) {
            self.happened(|| connection.closed());
        }
    }

    /// Asks the journals to write snapshots: the log wants to use its oldest file again. Called on the log's thread, so the
    /// work is handed to the pager.
    pub(crate) fn checkpoint(self: &Arc<Self>, journals: Vec<JournalId>, before: Position) {
        let pager = &self.node.pager;
        for journal in journals {
            match JournalOf::known(journal) {
                Some(JournalOf::Catalog) => self.checkpoint_by(|broker| broker.topology.checkpoint()),
                Some(JournalOf::Cache(cache)) => {
                    self.checkpoint_by(move |broker| broker.restate_cache(cache))
                }
                Some(JournalOf::Queue(id)) => match self.queues.get(id) {
                    Some(Handle::Here(queue)) => Paging::Checkpoint { queue, before }.send(pager),
                    // What is left of it here stays until it is deleted.
                    Some(Handle::Elsewhere(..) | Handle::WithoutOwner(_)) => {}
                    // It was deleted: whatever was unknown at the start was set aside.
                    None => self.node.log.forget(journal),
                },
                None => {}
            }
        }
    }

    fn checkpoint_by(self: &Arc<Self>, checkpoint: impl FnOnce(&Self) + Send + 'static) {
        let broker = Arc::downgrade(self);
        self.node.pager.write(move |_| {
            if let Some(broker) = broker.upgrade() {
                checkpoint(&broker);
            }
        });
    }

    pub(crate) fn log_failed(&self) {
        if self.alarms.log_failed() {
            self.announce_alarm();
        }
    }

    /// Keeps the memory or the disk alarm on, whatever there is of both, or keeps it no more; `None` leaves one as it is. Takes hold at once.
    pub fn want_alarms(&self, memory: Option<bool>, disk: Option<bool>) {
        self.alarms.want(memory, disk);
        // Nobody looks at free space then, so nothing else would end the alarm.
        let ends = disk == Some(false) && !self.service.is_disk_watched();
        if ends && self.alarms.set(self.alarms.on().0, false) {
            self.announce_alarm();
        }
        self.look_at_resources();
    }

    pub(crate) fn log_stalled(&self, stalled: bool) {
        if self.alarms.log_stalled(stalled) {
            self.announce_alarm();
        }
    }

    /// Looks at memory, disk and what queues hold; called by the monitor.
    pub(crate) fn look_at_resources(&self) {
        self.node.look_at_wall_clock();
        let is_short = resident_memory() > self.service.memory_high_watermark();
        let (memory_wanted, disk_wanted) = self.alarms.wanted();
        let memory = is_short || memory_wanted;
        if self.log_events.failure().is_some() {
            self.log_failed();
        }
        self.log_stalled(self.log_events.is_stalled());
        let (memory_before, disk_before, _) = self.alarms.on();
        let disk = match self.service.is_disk_watched() {
            true => {
                let free = recovery::free_space(self.node.world.as_ref(), &self.options.data_dir)
                    .unwrap_or(u64::MAX);
                free < self.service.disk_free_limit()
            }
            false => disk_before,
        } || disk_wanted;
        if self.alarms.set(memory, disk) {
            self.announce_alarm();
        }
        for (source, before, now) in [("memory", memory_before, memory), ("disk", disk_before, disk)] {
            let key = if now { "alarm.set" } else { "alarm.cleared" };
            if before != now {
                self.happened(|| {
                    Happening::new(key)
                        .with("source", source)
                        .with("node", &*self.options.node_name)
                });
            }
        }
        self.node.relieve_publishers();
        self.node.caches.write(&self.node, false);
        self.share_memory(is_short);
    }

    /// Gives each queue its share of the memory for bodies, smaller when all of them together hold too much.
    fn share_memory(&self, alarm: bool) {
        let held = self.node.memory() as u64;
        let limit = self.options.message_memory;
        let mut budget = self.queue_memory.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = if alarm || held > limit {
            (*budget / 2).max(QUEUE_MEMORY.1)
        } else if held < limit / 2 {
            (*budget * 2).min(QUEUE_MEMORY.0)
        } else {
            *budget
        };
        if wanted != *budget {
            *budget = wanted;
            self.topology.set_queue_memory(wanted);
            for queue in self.queues.all() {
                queue.submit(Request::Store(store::Request::Shrink { memory: wanted }));
            }
        }
    }

    fn announce_alarm(&self) {
        let reason = self.alarms.reason();
        match reason {
            Some(reason) => tracing::warn!(area = "alarm", "publishers are blocked: {reason}"),
            None => tracing::warn!(area = "alarm", "all alarms are cleared, publishers continue"),
        }
        for session in self
            .sessions
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            if let Some(session) = session.upgrade() {
                session.outbox().send(Event::Alarm(reason));
            }
        }
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "broker on {}", self.options.data_dir.display())
    }
}
