//! What all queues of this node share: the log, the segments, the pager, the clock, the memory count.

pub mod clock;
pub mod closed;
pub mod ends;
pub mod host;
pub mod journal;
pub mod pager;
pub mod paging;
pub mod promise;
pub mod replayed;
pub mod streams;
pub mod timers;

use crate::clients::pressure::{Pressure, Reason, Release};
use crate::node::journal::NodeLog;
use crate::node::pager::{Pager, StoreFiles};
use crate::node::promise::{Promise, Promises};
use crate::stats::{LossCounts, Touched, Work};
use catalog::Refusal;
use clock::Clock;
use model::Timestamp;
use std::path::Path;
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};
use std::time::Duration;
use storage::{Callbacks, JournalId, Position, Segments, SetAside, StorageError, World};
use streams::StreamFolder;
use timers::Timers;

/// Bytes appended to the log and not yet written above which publishers of persistent messages wait.
const LOG_PRESSURE_BYTES: usize = 8 * 1024 * 1024;

/// Size of the log's files above which publishers of persistent messages wait for checkpoints to catch up, in bytes. It bounds
/// the disk that a flood takes beyond its own size, and the time that replay takes.
const LOG_SIZE_PRESSURE: u64 = 640 * 1024 * 1024;

/// Shared by all queues of a node.
pub struct Node {
    /// Files, clocks, chance and threads.
    pub world: Arc<dyn World>,
    /// The write-ahead log of everything durable.
    pub log: Arc<NodeLog>,
    /// The files of long backlogs.
    pub segments: Arc<Segments>,
    /// The threads that read and write segments.
    pub pager: Pager,
    /// The files of streams.
    pub streams: StreamFolder,
    /// The thread that turns queues with something due.
    pub timers: Timers,
    /// For whoever watches queues: those that were turned.
    pub touched: Touched,
    started: Duration,
    time: Arc<Clock>,
    /// The run of the process: when it began, in milliseconds since the Unix epoch.
    pub run: u64,
    memory: AtomicI64,
    numbers: AtomicU64,
    /// Confirms that waited for a sync of the log.
    confirmed: AtomicU64,
    /// Publishers who wait for the log to be cut.
    waiting_for_cut: Mutex<Vec<Arc<Release>>>,
    /// How long the node's own work takes.
    pub work: Work,
    /// What all queues lost, also those that are gone.
    pub losses: LossCounts,
    /// Journals that the log had and nobody knew.
    set_aside: OnceLock<Vec<SetAside>>,
    follower: OnceLock<Weak<dyn LogFollower>>,
}

impl Node {
    /// A node around an opened log and segments.
    pub fn new(
        world: Arc<dyn World>,
        log: Arc<NodeLog>,
        segments: Arc<Segments>,
        pager: Pager,
        streams: StreamFolder,
    ) -> Arc<Self> {
        Arc::new(Self {
            log,
            segments,
            pager,
            streams,
            started: world.elapsed(),
            time: Arc::new(Clock::start(world.clone())),
            run: world.wall_ms(),
            world,
            timers: Timers::default(),
            touched: Touched::default(),
            memory: AtomicI64::new(0),
            numbers: AtomicU64::new(1),
            confirmed: AtomicU64::new(0),
            waiting_for_cut: Mutex::default(),
            work: Work::default(),
            losses: LossCounts::default(),
            set_aside: OnceLock::new(),
            follower: OnceLock::new(),
        })
    }

    /// These journals were found at the start, and nobody knew them. Once.
    pub fn set_aside(&self, journals: Vec<SetAside>) {
        let _ = self.set_aside.set(journals);
    }

    /// Journals that were found at the start and that nobody knew: where they are now.
    pub fn set_aside_journals(&self) -> &[SetAside] {
        self.set_aside.get().map_or(&[], Vec::as_slice)
    }

    /// Introduces who follows the log. Once.
    pub fn is_followed_by(&self, follower: Weak<dyn LogFollower>) {
        let _ = self.follower.set(follower);
    }

    /// What the pager's threads work on, for others who read.
    pub fn files(&self) -> StoreFiles {
        StoreFiles {
            world: self.world.clone(),
            log: self.log.clone(),
            segments: self.segments.clone(),
        }
    }

    /// Lets deadlines come due.
    ///
    /// # Errors
    /// The clock's thread cannot be started.
    pub fn start_timers(&self) -> std::io::Result<()> {
        self.timers.start(self.world.as_ref(), self.time.clone())
    }

    /// The time that deadlines follow: the wall clock's at the start, and from then on what has passed.
    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// The wall clock, for what is shown to people and other programs.
    pub fn wall(&self) -> Timestamp {
        Timestamp(self.world.wall_ms())
    }

    /// Looks whether somebody set the wall clock; called by the monitor.
    pub fn look_at_wall_clock(&self) {
        if let Some(jump_ms) = self.time.look() {
            let (seconds, way) = (
                jump_ms.unsigned_abs() / 1000,
                if jump_ms > 0 { "forward" } else { "back" },
            );
            tracing::warn!(
                area = "alarm",
                "the system's clock was set {way} by {seconds} s: times to live, delays and timeouts go on as if it had not been, until the node is restarted"
            );
        }
    }

    /// A clock that only goes forward, in microseconds since the start.
    pub fn micros(&self) -> u64 {
        self.world.elapsed().saturating_sub(self.started).as_micros() as u64
    }

    /// A number unique for the run of the process: questions, tickets, consumers, connections.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Publishes that were confirmed after a sync of the log. With [`storage::Log::syncs`] it tells how many share a sync.
    pub fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// Bytes that the messages of all queues hold in memory.
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed).max(0) as usize
    }

    /// A queue's share of that changed.
    pub fn memory_changed(&self, before: usize, after: usize) {
        if before != after {
            self.memory
                .fetch_add(after as i64 - before as i64, Ordering::Relaxed);
        }
    }

    /// Bytes that nobody can foresee.
    ///
    /// # Errors
    /// The system gives none.
    pub fn random_bytes(&self) -> Result<[u8; 16], Refusal> {
        let mut bytes = [0; 16];
        let random = self.world.random(&mut bytes);
        random.map_err(|error| Refusal::Internal {
            reason: error.to_string(),
        })?;
        Ok(bytes)
    }

    /// Free bytes on the file system of `dir`, for those who may write as this process does.
    pub fn free_space(&self, dir: &Path) -> Option<u64> {
        self.world.files().free_space(dir).ok()
    }

    /// Why those wait who publish persistent messages, if they do; for operators.
    pub fn log_holds(&self) -> Option<Reason> {
        match () {
            () if self.log.size() > LOG_SIZE_PRESSURE => Some(Reason::LogSize),
            () if self.log.pending_bytes() >= LOG_PRESSURE_BYTES => Some(Reason::Sync),
            () => None,
        }
    }

    /// A reason to slow down for those who publish persistent messages: the disk does not keep up.
    pub fn log_pressure(&self) -> Option<Pressure> {
        if self.log.size() > LOG_SIZE_PRESSURE {
            let release = Arc::new(Release::default());
            self.publishers_waiting().push(release.clone());
            return Some(Pressure::until_release(Reason::LogSize, release));
        }
        if self.log.pending_bytes() < LOG_PRESSURE_BYTES {
            return None;
        }
        let release = Arc::new(Release::default());
        self.log.promise(Promise::Resume(release.clone()));
        Some(Pressure::until_release(Reason::Sync, release))
    }
}

impl Node {
    /// Lets publishers go on who waited for the log to be cut, if it was, and has it asked for otherwise: as long as they wait it
    /// may not grow, and ask for that by itself. Called by the monitor.
    pub fn look_after_publishers(&self) {
        self.release_publishers();
        if !self.publishers_waiting().is_empty() {
            self.log.ask_for_space();
        }
    }

    fn publishers_waiting(&self) -> MutexGuard<'_, Vec<Arc<Release>>> {
        self.waiting_for_cut
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets publishers go on who waited for the log to be cut, if it was. Called after syncs.
    pub fn release_publishers(&self) {
        if self.log.size() > LOG_SIZE_PRESSURE {
            return;
        }
        for release in std::mem::take(&mut *self.publishers_waiting()) {
            release.release();
        }
    }
}

/// Who is told how the log is; handed in when the node is put together.
pub trait LogFollower: Send + Sync {
    /// Nothing can be made durable any more.
    fn log_failed(&self);

    /// The log has no next file, or has one again.
    fn log_stalled(&self, stalled: bool);

    /// The journals are to write down what the log has of them before this position: the log wants to use its oldest file again.
    /// Called on the log's thread.
    fn checkpoint(self: Arc<Self>, journals: Vec<JournalId>, before: Position);
}

/// What the log calls back. It exists before the node does.
#[derive(Clone, Default)]
pub struct LogEvents {
    promises: Arc<Promises>,
    node: Arc<OnceLock<Weak<Node>>>,
    failed: Arc<OnceLock<String>>,
    stalled: Arc<AtomicBool>,
}

impl LogEvents {
    /// Introduces the node. Once.
    pub fn belong_to(&self, node: &Arc<Node>) {
        let _ = self.node.set(Arc::downgrade(node));
    }

    /// What waits for the log.
    pub fn promises(&self) -> Arc<Promises> {
        self.promises.clone()
    }

    /// Why the log failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Whether the log lacks a next file at the moment.
    pub fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    fn follower(&self) -> Option<Arc<dyn LogFollower>> {
        self.node()?.follower.get().and_then(Weak::upgrade)
    }

    fn node(&self) -> Option<Arc<Node>> {
        self.node.get().and_then(Weak::upgrade)
    }
}

impl Callbacks for LogEvents {
    fn durable(&self, up_to: Position) {
        match self.node() {
            Some(node) => {
                let kept = self.promises.keep(up_to.0, &|| node.micros());
                let confirmed = kept.confirmed;
                node.pager.carry_out(kept);
                node.work.batch(confirmed);
                node.confirmed.fetch_add(confirmed, Ordering::Relaxed);
                node.release_publishers();
            }
            None => self.promises.end(),
        }
    }

    fn synced(&self, took: Duration) {
        if let Some(node) = self.node() {
            node.work.sync.record(took.as_micros() as u64);
        }
    }

    fn failed(&self, error: &StorageError) {
        tracing::error!(
            area = "log",
            "the write-ahead log failed: {error}; nothing is confirmed from now on, publishers are blocked; repair \
             the disk and restart the node"
        );
        self.promises.end();
        let _ = self.failed.set(error.to_string());
        if let Some(follower) = self.follower() {
            follower.log_failed();
        }
    }

    fn stalled(&self, error: Option<&StorageError>) {
        match error {
            Some(error) => tracing::error!(
                area = "log",
                "the write-ahead log has no next file: {error}; publishers are blocked until it has one, nothing is lost"
            ),
            None => tracing::warn!(area = "log", "the write-ahead log has its next file"),
        }
        self.stalled.store(error.is_some(), Ordering::Relaxed);
        if let Some(follower) = self.follower() {
            follower.log_stalled(error.is_some());
        }
    }

    fn reclaim(&self, journals: Vec<JournalId>, before: Position) {
        if let Some(follower) = self.follower() {
            follower.checkpoint(journals, before);
        }
    }
}
