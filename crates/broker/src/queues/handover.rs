//! A queue of this node is handed over to a group that has no other member yet. What is in memory or in the log alone is moved to
//! segments; then requests wait until the same is done with what came meanwhile; then one batch of the log ends the queue's
//! journal and begins the group's. Confirms of before leave before that, since they stand before it in the log.

use super::host::{QueueHost, Turned};
use super::{Queue, QueueJournal, QueueType};
use crate::groups::Identity;
use crate::groups::handover::{self, ATTEMPTS, Begun, Contents, Note, Successor, ends_something, move_out};
use crate::node::ends::Ends;
use crate::node::journal::{Entry, NodeLog, entry};
use crate::node::promise::{Batches, Promise};
use model::{Mutant, QueueSettings, Timestamp};
use queue::{Effect, HandOver, Inspect, OwnConsumer, Request};
use std::fmt;
use std::mem;
use std::sync::{Arc, OnceLock, Weak};
use storage::{JournalId, StorageError};

/// So many requests wait at most, and so long, in milliseconds; then the queue goes on as it is.
const WAITING: usize = 4_096;
const WAITS_MS: u64 = 2_000;

/// So many turns are made at most while what was there at first is moved, and nothing waits.
const AHEAD: u32 = 65_536;

/// Who has a queue once it is handed over.
pub trait Heir: Successor {
    /// Somebody who still knows the queue of this node wants this. Called in their order, under that queue's lock: it waits for
    /// nothing.
    fn take(&self, request: Request<Ends>);
}

impl Queue {
    /// Hands the queue over to a group that this node's member is alone in, whose terms go on behind this one. Once the heir has
    /// the contents, [`Queue::hand_on`] is due.
    pub fn hand_over(self: &Arc<Self>, identity: Identity, behind: u64, heir: Arc<dyn Heir>) {
        let change = Arc::new(Change {
            queue: Arc::downgrade(self),
            identity,
            behind,
            heir,
            contents: OnceLock::new(),
        });
        let mut host = self.lock();
        let nothing = self.made().start(QueueSettings::default(), QueueJournal::None);
        let mut waiting = Waiting {
            inner: mem::replace(&mut *host, nothing).plain(),
            stage: Stage::Ahead(AHEAD),
            requests: Vec::new(),
            since: None,
            change,
        };
        // What the last turn's place in the log has made it order, it orders now.
        waiting.inner.handle(self.node().now(), move_out());
        *host = Box::new(waiting);
        drop(host);
        self.submit_here(move_out());
    }

    /// The consumers that this node's clients have; those that other nodes have are not among them.
    pub fn own_consumers(&self) -> Vec<OwnConsumer<Ends>> {
        self.lock().own_consumers()
    }

    /// The heir has the contents, and takes from now on whatever was asked, in its order. Those who still know the queue as this
    /// node's ask the heir.
    pub fn hand_on(self: &Arc<Self>, heir: &Arc<dyn Heir>) {
        let mut host = self.lock();
        self.drain_mailbox(&mut host);
        host.handed_over();
        self.close_mailbox(heir);
    }
}

/// The host of a queue to which a group has handed back what it had, just now.
///
/// # Errors
/// The contents can't be read.
pub fn taken_back(
    made: &'static dyn QueueType,
    settings: QueueSettings,
    log: &Arc<NodeLog>,
    id: JournalId,
    contents: Contents,
) -> Result<Box<dyn QueueHost>, StorageError> {
    let mut replaying = made.replay(settings);
    let payload = log.read(contents.position)?;
    let (group, segments) = (contents.group, contents.segments);
    let taken = replaying.note(&Note::Begun(Begun { group, segments }).encode());
    let taken = taken.and_then(|()| match entry(&payload)? {
        Entry::Local(record) => replaying.local(contents.position, record),
        _ => None,
    });
    match taken {
        Some(()) => Ok(replaying.taken_over(log, id)),
        None => Err(StorageError::Gone {
            what: format!("what {id} begins with"),
        }),
    }
}

/// A queue that is handed over.
struct Change {
    queue: Weak<Queue>,
    identity: Identity,
    behind: u64,
    heir: Arc<dyn Heir>,
    contents: OnceLock<Contents>,
}

impl Batches for Change {
    fn synced(self: Arc<Self>, _: u64) {
        let Some(queue) = self.queue.upgrade() else { return };
        let node = queue.node().clone();
        // It may be synced before whoever wrote it has said where it is.
        node.pager.write(move |_| self.heir.begin(*self.contents.wait()));
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a queue is handed over to {:?}", self.identity.group)
    }
}

/// How far it has come.
enum Stage {
    /// Messages are moved, and the queue goes on meanwhile: for so many turns at the most.
    Ahead(u32),
    /// What came meanwhile is moved, and so often more is left to be moved.
    Moving(u32),
    /// It waits for too long.
    Late,
    /// The queue is deleted.
    Retired,
    /// The group has the contents, once that is durable.
    Written,
    /// The group goes on.
    Over,
    /// The queue goes on.
    GivenUp,
}

/// The host of a queue that is handed over.
struct Waiting {
    inner: Box<dyn QueueHost>,
    stage: Stage,
    requests: Vec<Request<Ends>>,
    /// Since when, by the clock of those who ask; `None` while nobody waits.
    since: Option<Timestamp>,
    change: Arc<Change>,
}

impl Waiting {
    fn waits(&mut self, now: Timestamp, request: Request<Ends>) {
        let since = *self.since.get_or_insert(now);
        if matches!(self.stage, Stage::Moving(_)) && now.0.saturating_sub(since.0) > WAITS_MS {
            self.stage = Stage::Late;
        }
        self.requests.push(request);
    }

    fn go_on(&mut self, act: &mut dyn FnMut(Effect<Ends>)) {
        if let Stage::Ahead(turns) = &mut self.stage {
            *turns -= 1;
            if *turns > 0 && matches!(self.inner.hand_over(), HandOver::Waits) {
                return;
            }
            self.stage = Stage::Moving(ATTEMPTS);
            self.inner.handle(Timestamp(0), move_out());
            self.inner.commit(act);
        }
        let attempts = match &mut self.stage {
            Stage::Moving(attempts) => attempts,
            Stage::Retired | Stage::Late => return self.give_up(act),
            _ => return,
        };
        match self.inner.hand_over() {
            HandOver::Contents(contents) => self.write(&contents),
            HandOver::Waits if self.requests.len() < WAITING => {}
            HandOver::Elsewhere if *attempts > 0 => {
                *attempts -= 1;
                self.inner.handle(Timestamp(0), move_out());
                self.inner.commit(act);
            }
            _ => self.give_up(act),
        }
    }

    fn write(&mut self, contents: &[u8]) {
        let change = &self.change;
        let Some(queue) = change.queue.upgrade() else {
            return;
        };
        let promise = Promise::Batch(change.clone(), 0);
        let (log, own, segments) = (&queue.node().log, queue.journal(), queue.segments());
        let to = (&change.identity, change.behind);
        let written = handover::hand_over(log, own, to, segments, contents, promise);
        let _ = change.contents.set(written);
        if Mutant::GrowsUnsynced.is_on() {
            change.heir.begin(written);
        }
        self.stage = Stage::Written;
    }

    fn give_up(&mut self, act: &mut dyn FnMut(Effect<Ends>)) {
        self.stage = Stage::GivenUp;
        let now = self
            .change
            .queue
            .upgrade()
            .map_or(Timestamp(0), |queue| queue.node().now());
        for request in mem::take(&mut self.requests) {
            self.inner.handle(now, request);
        }
        self.inner.commit(act);
        self.change.heir.given_up();
    }
}

impl QueueHost for Waiting {
    fn plain(self: Box<Self>) -> Box<dyn QueueHost> {
        match self.stage {
            Stage::GivenUp => self.inner,
            _ => self,
        }
    }

    fn handle(&mut self, now: Timestamp, request: Request<Ends>) {
        match self.stage {
            // What the disk answers concerns no queue of this node any more.
            Stage::Written | Stage::Over if matches!(request, Request::Store(_)) => {}
            Stage::Moving(_) | Stage::Ahead(_) if matches!(request, Request::Retire) => {
                self.stage = Stage::Retired;
                self.inner.handle(now, request);
            }
            Stage::Ahead(_) | Stage::GivenUp | Stage::Retired => self.inner.handle(now, request),
            Stage::Over => self.change.heir.take(request),
            Stage::Moving(_) if ends_something(&request) => self.inner.handle(now, request),
            // Whoever asks has no time to wait, and takes no answer for nothing.
            _ if matches!(request, Request::TakeOut { .. }) => {}
            _ => self.waits(now, request),
        }
    }

    fn commit(&mut self, act: &mut dyn FnMut(Effect<Ends>)) -> Turned {
        self.inner.commit(act);
        self.go_on(act);
        self.inner.turned()
    }

    fn turned(&self) -> Turned {
        self.inner.turned()
    }

    fn inspect(&self) -> &dyn Inspect {
        self.inner.inspect()
    }

    fn hand_over(&self) -> HandOver<Vec<u8>> {
        HandOver::Waits
    }

    fn segments(&self) -> Option<JournalId> {
        self.inner.segments()
    }

    fn own_consumers(&self) -> Vec<OwnConsumer<Ends>> {
        self.inner.own_consumers()
    }

    fn handed_over(&mut self) {
        self.stage = Stage::Over;
        // Nobody needs what it had.
        if let Some(queue) = self.change.queue.upgrade() {
            self.inner = queue.made().start(QueueSettings::default(), QueueJournal::None);
        }
        let waiting = mem::take(&mut self.requests);
        for request in waiting
            .into_iter()
            .filter(|_| !Mutant::GrowthDropsWaiting.is_on())
        {
            self.change.heir.take(request);
        }
    }
}
