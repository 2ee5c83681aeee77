//! This node's copy of a queue that several nodes have: the member of its group turns the queue, in the place of a host of this
//! node's own. Whoever leads decides; the others follow, and hand back what they are asked.

use super::local::Actions;
use super::streams::{Stands, StreamMember};
use super::{Handle, Queue};
use crate::groups::handle::Requests;
use crate::groups::handover::Successor;
use crate::groups::{
    Act, CopyProgress, Hosted, LastCopy, Nearby, NodeId, NotOpened, Replicated, ReplicatedHost, Showing,
    Starting, Turns, block_at,
};
use crate::node::ends::{Ends, Reply};
use crate::node::journal::NodeLog;
use crate::queues::host::Turned;
use cluster::GroupId;
use model::{Block, Index, Journaled, Machine, Mutant, QueueId, QueueSettings, Timestamp};
use queue::fifo::Classic;
use queue::store::LogPlace;
use queue::{Inspect, Request};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use storage::{JournalId, StorageError};

/// A queue may be so many groups, one after the other.
const GROUPS_A_QUEUE: u64 = 1 << 16;

/// The group that a queue is, or the one that it is next. No other one has the number, nor the catalog's group.
pub fn group_of(known: &catalog::Queue) -> GroupId {
    let number = match Mutant::GroupsShareNumbers.is_on() {
        true => 0,
        false => known.epoch.number,
    };
    GroupId(known.id.0 * GROUPS_A_QUEUE + u64::from(number))
}

/// The numbers of the groups that a queue may be.
pub fn groups_of(queue: QueueId) -> Range<u64> {
    let first = queue.0 * GROUPS_A_QUEUE;
    first..first + GROUPS_A_QUEUE
}

/// The queue that has this group or had it; `None` if it is no queue's.
pub fn queue_of(group: GroupId) -> Option<QueueId> {
    let queue = QueueId(group.0 / GROUPS_A_QUEUE);
    (queue.0 > 0).then_some(queue)
}

/// A machine of queues that several nodes have.
pub trait OfQueue: Replicated<Settings = QueueSettings, Request = Request<Ends>> + Inspect {
    /// Carries out what a member's machine orders.
    fn act(follower: Arc<Follower>) -> Act<Self::Effect>;

    /// How it is after a turn, if its numbers are the queue's.
    fn turned(&self, leads: bool) -> Option<Turned>;

    /// What a stream's member knows of what the files are to have.
    fn stands(&self) -> Option<Stands> {
        None
    }
}

impl OfQueue for Classic<Ends> {
    fn act(follower: Arc<Follower>) -> Act {
        Box::new(move |effect| follower.arrange(effect))
    }

    fn turned(&self, leads: bool) -> Option<Turned> {
        Some(Turned {
            status: self.status(),
            lost: self.lost(),
            // Nothing is due where nothing is decided.
            wakes_at_ms: if leads { self.wakes_at_ms() } else { u64::MAX },
        })
    }
}

/// A member of a queue's group, whatever machine it has. See [`Hosted`].
trait Machinery: Send + Sync {
    fn begin(&self, follower: Arc<Follower>);
    fn is_damaged(&self) -> bool;
    fn group(&self) -> GroupId;
    fn segments(&self) -> JournalId;
    fn hand_back(&self, journal: JournalId, successor: Arc<dyn Successor>);
    fn progress(&self) -> Option<CopyProgress>;
    fn last_copy(&self, term: u64) -> Option<LastCopy>;
    fn give_up(&self);
    fn retire(&self);
    fn set(&self, settings: QueueSettings);
    #[allow(
        clippy::result_large_err,
        reason = "the caller has made it, and sends it elsewhere"
    )]
    fn submit(&self, now: Timestamp, request: Request<Ends>) -> Result<(), Request<Ends>>;
    fn submit_in(&self, term: u64, now: Timestamp, requests: Requests) -> bool;
    fn look(&self, look: &mut dyn FnMut(&dyn Inspect));
    fn stands(&self) -> Option<Stands>;
    fn logged(&self, log: &NodeLog, at: LogPlace, nearby: &mut Nearby) -> Result<Arc<Block>, StorageError>;
}

impl<M: OfQueue> Machinery for Hosted<M> {
    fn begin(&self, follower: Arc<Follower>) {
        self.followed_by(follower);
    }

    fn is_damaged(&self) -> bool {
        self.is_damaged()
    }

    fn group(&self) -> GroupId {
        self.group()
    }

    fn segments(&self) -> JournalId {
        self.segments()
    }

    fn hand_back(&self, journal: JournalId, successor: Arc<dyn Successor>) {
        self.hand_back(journal, successor);
    }

    fn progress(&self) -> Option<CopyProgress> {
        self.progress()
    }

    fn last_copy(&self, term: u64) -> Option<LastCopy> {
        self.last_copy(term)
    }

    fn give_up(&self) {
        self.give_up();
    }

    fn retire(&self) {
        self.retire();
    }

    fn set(&self, settings: QueueSettings) {
        self.set(settings);
    }

    fn submit(&self, now: Timestamp, request: Request<Ends>) -> Result<(), Request<Ends>> {
        self.submit(now, request)
    }

    fn submit_in(&self, term: u64, now: Timestamp, requests: Requests) -> bool {
        self.submit_in(term, now, requests)
    }

    fn look(&self, look: &mut dyn FnMut(&dyn Inspect)) {
        self.inspect(|machine| look(machine));
    }

    fn stands(&self) -> Option<Stands> {
        self.inspect(OfQueue::stands).flatten()
    }

    fn logged(&self, log: &NodeLog, at: LogPlace, nearby: &mut Nearby) -> Result<Arc<Block>, StorageError> {
        let block = |record: &[u8]| {
            let record = M::Record::decode(record)?;
            M::brings(&record).map(|(_, block)| block.clone())
        };
        block_at(log, self.group(), at, nearby, block)
    }
}

/// A member that is being started.
pub enum StartingMember {
    Queue(Box<Starting<Classic<Ends>>>),
    Stream(Box<Starting<StreamMember>>),
}

impl StartingMember {
    /// See [`Starting::finish`].
    ///
    /// # Errors
    /// It is damaged.
    pub fn open(self, follower: &Arc<Follower>, life: u32) -> Result<Replica, NotOpened> {
        let act = follower.clone();
        let hosted: Arc<dyn Machinery> = match self {
            Self::Queue(starting) => starting.finish(Classic::act(act))?,
            Self::Stream(starting) => starting.finish(StreamMember::act(act))?,
        };
        Ok(Replica {
            hosted,
            follower: follower.clone(),
            life,
        })
    }
}

impl Showing for StartingMember {
    fn group(&self) -> GroupId {
        match self {
            Self::Queue(starting) => starting.group(),
            Self::Stream(starting) => starting.group(),
        }
    }

    fn next(&self) -> Index {
        match self {
            Self::Queue(starting) => starting.next(),
            Self::Stream(starting) => starting.next(),
        }
    }

    fn show(&mut self, payload: &[u8]) -> Result<(), NotOpened> {
        match self {
            Self::Queue(starting) => starting.show(payload),
            Self::Stream(starting) => starting.show(payload),
        }
    }
}

/// See the module.
pub struct Replica {
    hosted: Arc<dyn Machinery>,
    follower: Arc<Follower>,
    life: u32,
}

/// What carries out what the machine orders, and follows its turns.
pub struct Follower {
    queue: Weak<Queue>,
    /// What the turns since the host's lock was free leave to be done.
    actions: Mutex<Actions>,
    /// In which term this node decides; 0 if it does not.
    term: AtomicU64,
    /// One more than the number of the node that leads; 0 if none is known.
    leader: AtomicU64,
    /// How long a record took lately until a majority had it, in microseconds.
    commit_latency_us: AtomicU64,
    /// Term or leader has changed, and nobody was told.
    moved: AtomicBool,
}

impl Follower {
    /// Of a queue whose member is about to be opened.
    pub fn of(queue: &Arc<Queue>) -> Arc<Self> {
        Arc::new(Self {
            queue: Arc::downgrade(queue),
            actions: Mutex::default(),
            term: AtomicU64::new(0),
            leader: AtomicU64::new(0),
            commit_latency_us: AtomicU64::new(0),
            moved: AtomicBool::new(false),
        })
    }

    /// What the queue is ordered, carries itself out when the host's lock is free.
    pub(super) fn arrange(&self, effect: queue::Effect<Ends>) {
        if let Some(queue) = self.queue() {
            queue.arrange(effect, &mut self.actions(), &mut |_, answer| Some(answer));
        }
    }

    /// Whoever asked this has no answer, as of a queue that nobody can reach.
    pub(super) fn decline(&self, reply: Reply) {
        self.actions().decline(reply);
    }

    /// Whose it is.
    pub(super) fn queue(&self) -> Option<Arc<Queue>> {
        self.queue.upgrade()
    }

    fn actions(&self) -> MutexGuard<'_, Actions> {
        self.actions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, number: &AtomicU64, now: u64) {
        if number.swap(now, Ordering::SeqCst) != now {
            self.moved.store(true, Ordering::SeqCst);
        }
    }
}

impl<M: OfQueue> Turns<M> for Follower {
    fn turned(&self, host: &ReplicatedHost<M>) {
        let Some(queue) = self.queue() else { return };
        self.note(&self.term, host.term().unwrap_or(0));
        let leader = host.leader().map_or(0, |leader| u64::from(leader.node.0) + 1);
        self.note(&self.leader, leader);
        self.commit_latency_us
            .store(host.commit_latency_us(), Ordering::Relaxed);
        if let Some(machine) = host.machine()
            && let Some(turned) = machine.turned(host.leads())
        {
            queue.note_turn(machine, &turned, &mut self.actions());
        }
    }

    fn released(&self) {
        let Some(queue) = self.queue.upgrade() else { return };
        // Whoever leads from now on has its settings before anything is due.
        if self.moved.swap(false, Ordering::SeqCst) {
            queue.events().led(&queue);
            queue.is_led_elsewhere();
        }
        let actions = std::mem::take(&mut *self.actions());
        queue.carry_out(actions);
    }
}

impl Replica {
    /// The member is open. This node has had so many before.
    pub fn new<M: OfQueue>(hosted: Arc<Hosted<M>>, follower: Arc<Follower>, life: u32) -> Self {
        Self {
            hosted,
            follower,
            life,
        }
    }

    /// How many members of the group this node has had before.
    pub fn life(&self) -> u32 {
        self.life
    }

    /// Whether its next machine can't be made of what this node has.
    pub fn is_damaged(&self) -> bool {
        self.hosted.is_damaged()
    }

    /// Begins to follow its turns. The queue has it by now.
    pub fn begin(&self) {
        self.hosted.begin(self.follower.clone());
    }

    /// In which term this node decides, if it does.
    pub fn term(&self) -> Option<u64> {
        Some(self.follower.term.load(Ordering::SeqCst)).filter(|term| *term > 0)
    }

    /// The node that leads, as far as this one knows.
    pub fn leader(&self) -> Option<NodeId> {
        let leader = self.follower.leader.load(Ordering::SeqCst).checked_sub(1)?;
        u32::try_from(leader).ok().map(NodeId)
    }

    /// How long a record took lately from its proposal until a majority had it, in microseconds; 0 if this node does not lead.
    pub fn commit_latency_us(&self) -> u64 {
        self.follower.commit_latency_us.load(Ordering::Relaxed)
    }

    /// Whose group it is.
    pub fn group(&self) -> GroupId {
        self.hosted.group()
    }

    /// Whose name the segments bear that its bodies lie in.
    pub fn segments(&self) -> JournalId {
        self.hosted.segments()
    }

    /// Hands the queue back to this node's own journal of this name: see [`Hosted::hand_back`]. From now on the member decides
    /// nothing.
    pub fn hand_back(&self, journal: JournalId, successor: Arc<dyn Successor>) {
        self.hosted.hand_back(journal, successor);
    }

    /// How far what it fetches of other members has come, if it does.
    pub fn progress(&self) -> Option<CopyProgress> {
        self.hosted.progress()
    }

    /// What this node has of the group, which is closed here by now and has seen this term; `None` if it is not whole.
    pub fn last_copy(&self, term: u64) -> Option<LastCopy> {
        self.hosted.last_copy(term)
    }

    /// The queue is deleted, or this node has no copy of it any more: see [`Hosted::retire`].
    pub fn retire(&self) {
        self.hosted.retire();
    }

    /// The member is given up.
    pub fn give_up(&self) {
        self.hosted.give_up();
    }

    /// New settings are in force.
    pub fn configure(&self, queue: &Arc<Queue>, settings: QueueSettings) {
        let settings = settings.of_several();
        self.hosted.set(settings.clone());
        let settings = Box::new(settings);
        if queue.is_copy_of_stream() {
            let settings = settings.clone();
            queue.submit_here(Request::Configure { settings });
        }
        // Whoever does not lead is told once it does.
        let _ = self
            .hosted
            .submit(queue.node().now(), Request::Configure { settings });
    }

    /// Has the machine decide this. Who does not lead answers in the place of a queue that nobody can reach.
    pub fn submit(&self, queue: &Queue, mut request: Request<Ends>) {
        queue.count(&mut request, || self.is_sorted());
        if let Err(request) = self.hosted.submit(queue.node().now(), request) {
            Handle::decline(request);
        }
    }

    /// The same for several in one turn, if this node decides in this term; otherwise nothing comes of them, and it returns
    /// false.
    pub fn submit_in(&self, queue: &Queue, term: u64, mut requests: Requests) -> bool {
        for request in &mut requests {
            queue.count(request, || self.is_sorted());
        }
        self.hosted.submit_in(term, queue.node().now(), requests)
    }

    fn is_sorted(&self) -> bool {
        self.look(|machine| machine.is_sorted()).unwrap_or(false)
    }

    /// Looks at the machine between two turns, if there is one.
    pub fn look<T>(&self, look: impl FnOnce(&dyn Inspect) -> T) -> Option<T> {
        let (mut look, mut found) = (Some(look), None);
        self.hosted.look(&mut |machine| {
            found = look.take().map(|look| look(machine));
        });
        found
    }

    /// See [`OfQueue::stands`].
    pub fn stands(&self) -> Option<Stands> {
        self.hosted.stands()
    }

    /// The block that the entry brought which the log has of the group at this index.
    ///
    /// # Errors
    /// The log can't be read there.
    pub fn logged(
        &self,
        log: &NodeLog,
        at: LogPlace,
        nearby: &mut Nearby,
    ) -> Result<Option<Arc<Block>>, StorageError> {
        self.hosted.logged(log, at, nearby).map(Some)
    }
}
