//! A replicated machine with its inbox: what the groups of a node tell, and what is asked of it.

use super::handover::Successor;
use super::host::ReplicatedHost;
use super::member::{Member, News};
use super::member_journal::{Kept, member_journal};
use super::node_groups::NodeGroups;
use super::replay::block_at;
use super::replicated::Replicated;
use super::transfer::{CopyProgress, Order, Written, read_entries, without_places};
use crate::node::closed::Closed;
use crate::node::ends::Ends;
use crate::node::journal::NodeLog;
use crate::node::pager::StoreFiles;
use crate::node::paging::{Nearby, Paged};
use cluster::{GroupId, Mark, MemberId};
use model::{Block, Index, Journaled, Ranges, Timestamp};
use queue::Effect;
use queue::store::{self, LogPlace, Stored};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use storage::{JournalId, StorageError};

/// What carries out what the machine orders, apart from what its message store has read and written. Called under the host's
/// lock, so that its orders keep their order: it asks nothing of the same machine.
pub type Act<E = Effect<Ends>> = Box<dyn Fn(E) + Send + Sync>;

/// Follows the turns of a machine, beside the one who carries out what it orders.
pub trait Turns<M: Replicated>: Send + Sync {
    /// A turn has ended. Called under the host's lock, in their order: it asks nothing of the same machine.
    fn turned(&self, host: &ReplicatedHost<M>);

    /// The lock is free again.
    fn released(&self);
}

/// If what a machine is made of can't be read for so long, it counts as damaged, whatever the disk says. In milliseconds.
const UNREADABLE_MS: u64 = 60_000;

/// How it failed to make the next machine.
#[derive(Default)]
struct Failing {
    /// What it is made of was not there.
    missing: bool,
    /// Since when, in milliseconds of the node's clock, if it did.
    since_ms: Option<u64>,
}

impl Failing {
    /// It did once more. Whether what it is made of counts as damaged.
    fn again(&mut self, error: &StorageError, now_ms: u64) -> bool {
        let since = *self.since_ms.get_or_insert(now_ms);
        let is_missing = error.is_damage() && std::mem::replace(&mut self.missing, true);
        is_missing || matches!(error, StorageError::Corrupt { .. }) || now_ms >= since + UNREADABLE_MS
    }
}

/// A machine of which this node has a copy, turned by whoever brings it something. A queue that leads delivers nothing
/// before its owner has told it which nodes to hear ([`queue::Request::AwaitNodes`]).
pub struct Hosted<M: Replicated> {
    myself: Weak<Self>,
    group: GroupId,
    groups: Arc<NodeGroups>,
    /// Whose name the segments bear that its bodies lie in.
    segments: JournalId,
    host: Mutex<ReplicatedHost<M>>,
    inbox: Mutex<Vec<News>>,
    mail: AtomicBool,
    /// Its next machine is being made.
    replaying: AtomicBool,
    /// How it failed.
    failing: Mutex<Failing>,
    /// What that is made of is damaged: there is none any more.
    damaged: AtomicBool,
    /// The group is open here no more.
    closed: Closed,
    act: Act<M::Effect>,
    turns: OnceLock<Arc<dyn Turns<M>>>,
}

impl<M: Replicated> Hosted<M> {
    /// A machine with its host, which is turned from now on.
    pub fn new(host: ReplicatedHost<M>, groups: Arc<NodeGroups>, act: Act<M::Effect>) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            group: host.group(),
            segments: host.segments(),
            closed: host.closed().clone(),
            host: Mutex::new(host),
            groups,
            inbox: Mutex::default(),
            mail: AtomicBool::new(false),
            replaying: AtomicBool::new(false),
            failing: Mutex::default(),
            damaged: AtomicBool::new(false),
            act,
            turns: OnceLock::new(),
        })
    }

    /// From now on this one follows its turns; the first one stays. It is told of one at once.
    pub fn followed_by(&self, turns: Arc<dyn Turns<M>>) {
        let _ = self.turns.set(turns);
        self.let_go(self.lock());
    }

    /// Has the machine decide this.
    ///
    /// # Errors
    /// It does not decide here; whoever asks asks its leader. Or it is retired.
    #[allow(
        clippy::result_large_err,
        reason = "the caller has made it, and sends it elsewhere"
    )]
    pub fn submit(&self, now: Timestamp, request: M::Request) -> Result<(), M::Request> {
        let mut host = self.lock();
        // What would be promised now nobody would ever keep.
        let taken = match host.is_retired() {
            true => Err(request),
            false => host.handle(now, request),
        };
        self.commit(&mut host);
        self.let_go(host);
        taken
    }

    /// Has the machine decide these in one turn, if it decides in this term. Otherwise nothing comes of them, and it
    /// returns false.
    pub fn submit_in(&self, term: u64, now: Timestamp, requests: Vec<M::Request>) -> bool {
        let mut host = self.lock();
        let leads = host.term() == Some(term);
        if leads {
            for request in requests {
                // It leads, so it takes them all; one that is handed back takes them if it goes on after all.
                if let Err(request) = host.handle(now, request) {
                    host.waits(now, request);
                }
            }
            self.commit(&mut host);
        }
        self.let_go(host);
        leads
    }

    /// See [`ReplicatedHost::retire`].
    pub fn retire(&self) {
        let mut host = self.lock();
        let generation = host.generation();
        host.retire(&mut |effect| self.carry_out(generation, effect));
        self.let_go(host);
    }

    /// Hands the queue back to this node's own journal of this name, once this node's is the only member and everything that was
    /// decided is committed. What is asked of it from now on is handed back to whoever asks.
    pub fn hand_back(&self, queue: JournalId, successor: Arc<dyn Successor>) {
        let mut host = self.lock();
        host.begin_back(queue, successor);
        self.commit(&mut host);
        self.let_go(host);
    }

    /// See [`ReplicatedHost::kept`].
    pub(super) fn kept(&self) -> Option<(Kept, Mark)> {
        self.with(|host| host.kept())
    }

    /// The member is given up: nothing of it is in the way of another one of the group.
    pub fn give_up(&self) {
        self.lock().transfers.close();
    }

    /// What its next machines are made with. The one that there is, is set by a request.
    pub fn set(&self, settings: M::Settings) {
        self.lock().settings = settings;
    }

    /// Whose name the segments bear that its bodies lie in.
    pub fn segments(&self) -> JournalId {
        self.segments
    }

    /// Whose machine it is.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// In which term it decides here, if it does.
    pub fn term(&self) -> Option<u64> {
        self.with(|host| host.term())
    }

    /// The turn has ended, or there was none. Who found the host locked meanwhile has left something in the inbox.
    fn let_go(&self, host: MutexGuard<'_, ReplicatedHost<M>>) {
        self.free(host);
        self.look();
        self.groups.turn();
    }

    fn free(&self, host: MutexGuard<'_, ReplicatedHost<M>>) {
        let turns = self.turns.get();
        if let Some(turns) = turns {
            turns.turned(&host);
        }
        drop(host);
        if let Some(turns) = turns {
            turns.released();
        }
    }

    fn commit(&self, host: &mut ReplicatedHost<M>) {
        let generation = host.generation();
        host.commit(&mut |effect| self.carry_out(generation, effect));
    }

    /// What the machine of this generation has ordered.
    fn carry_out(&self, generation: u64, effect: M::Effect) {
        let Some(hosted) = self.myself.upgrade() else {
            return;
        };
        let pager = &self.groups.node().pager;
        let store = MemberStore { hosted, generation };
        let ordered = match M::into_store(effect) {
            Ok(ordered) => ordered,
            Err(other) => return (self.act)(other),
        };
        match ordered {
            store::Effect::Load {
                first,
                source,
                failures,
            } => pager.read(move |files| store.load(files, first, source, failures)),
            store::Effect::Store { pieces, durable } => {
                pager.write(move |files| store.store(files, &pieces, durable));
            }
            store::Effect::FindElsewhere { seqs } => self.tell(vec![News::Lacks(seqs)]),
            // The journal has taken them.
            store::Effect::Release { .. } | store::Effect::Remember(_) | store::Effect::Checkpoint => {}
        }
    }

    /// Ends the turn of a host that had something to do beside its machine. What is to be carried out without its lock.
    fn end_turn(&self, host: &mut ReplicatedHost<M>) -> Vec<Order> {
        let orders = host.take_orders();
        self.commit(host);
        orders
    }

    fn transfer(&self, generation: u64, orders: Vec<Order>) {
        let pager = &self.groups.node().pager;
        for order in orders {
            let Some(hosted) = self.myself.upgrade() else {
                return;
            };
            let store = MemberStore { hosted, generation };
            match order {
                Order::Say(to, said) => self.groups.say(self.group, to, &said),
                Order::ReadContents(to, mut position) => pager.read(move |files| {
                    let mut read = files.log.read(position);
                    // A log that is short of space has checkpoints written again and again, and each lets go of the one
                    // before: what stood there when this was ordered may be gone by now, and the same stands elsewhere.
                    while let Err(StorageError::Gone { .. }) = read
                        && let Some(now) = store.hosted.with(|host| host.checkpoint_position())
                        && now > position
                    {
                        (position, read) = (now, files.log.read(now));
                    }
                    let read = read.inspect_err(|error| {
                        tracing::warn!(
                            area = "groups",
                            "{store:?}: a checkpoint cannot be read for another node: {error}"
                        );
                        // What it says is in memory, too: another one takes its place.
                        if error.is_damage() {
                            store.hosted.tell(vec![News::Checkpoint]);
                        }
                    });
                    let read = read.ok().and_then(|record| without_places::<M>(&record));
                    let read = read.map(|(at, bytes)| (at, bytes.into()));
                    store.hosted.with_host(|host| host.read_contents(to, read));
                }),
                Order::ReadBodies(to, found) => pager.read(move |files| {
                    let (entries, mut lost) = read_entries(&store, files, &found);
                    lost.extend(&found.lost);
                    store
                        .hosted
                        .with_host(|host| host.read_bodies(to, entries, found.gone, lost));
                }),
                Order::Copy(pieces) => pager.write(move |files| {
                    if !store.is_retired() {
                        let written = Written::copies(&store, files, &pieces);
                        store.sync_later(written);
                    }
                }),
                Order::Store(entries) => pager.write(move |files| {
                    if !store.is_retired() {
                        let written = Written::entries(&store, files, &entries);
                        store.sync_later(written);
                    }
                }),
            }
        }
    }

    /// Does something with the host, and what follows.
    fn with_host<T>(&self, act: impl FnOnce(&mut ReplicatedHost<M>) -> T) -> T {
        let mut host = self.lock();
        let done = act(&mut host);
        let (orders, generation) = (self.end_turn(&mut host), host.generation());
        self.free(host);
        self.transfer(generation, orders);
        self.look();
        self.groups.turn();
        done
    }

    /// What became of an order of the store of an earlier machine is of no use: what was written for it is freed.
    fn answer(&self, files: &StoreFiles, generation: u64, request: store::Request) {
        let mut host = self.lock();
        let closed = self.closed.is_closed();
        if host.generation() != generation || host.machine().is_none() || closed {
            drop(host);
            if let store::Request::FinishStore { pieces, .. } = request {
                let places = pieces.into_iter().map(|piece| piece.place);
                files.free(self.segments, places);
            }
            return;
        }
        let _ = host.handle(self.groups.node().now(), M::ask_store(request));
        self.commit(&mut host);
        self.let_go(host);
    }

    /// Whether it decides here.
    pub fn leads(&self) -> bool {
        self.with(|host| host.leads())
    }

    /// Who decides, as far as this node knows.
    pub fn leader(&self) -> Option<MemberId> {
        self.with(|host| host.leader())
    }

    /// Up to here it has what is committed; `None` while its next machine is being made.
    pub fn applied(&self) -> Option<Index> {
        self.with(|host| host.applied())
    }

    /// Bytes of records that wait for its next machine.
    #[cfg(test)]
    pub fn waiting_bytes(&self) -> usize {
        self.with(ReplicatedHost::waiting_bytes)
    }

    /// Where its last checkpoint stands.
    #[cfg(test)]
    pub fn checkpoint_position(&self) -> Option<storage::Position> {
        self.with(|host| host.checkpoint_position())
    }

    /// Looks at the machine between two turns; `None` while its next one is being made.
    pub fn inspect<T>(&self, look: impl FnOnce(&M) -> T) -> Option<T> {
        self.with(|host| host.machine().map(look))
    }

    /// How far what is fetched of other members has come, if something is.
    pub fn progress(&self) -> Option<CopyProgress> {
        self.with(|host| host.transfers.progress())
    }

    /// Looks at the host. Who found it locked meanwhile has left something in the inbox.
    fn with<T>(&self, look: impl FnOnce(&ReplicatedHost<M>) -> T) -> T {
        let found = look(&self.lock());
        self.look();
        self.groups.turn();
        found
    }

    fn lock(&self) -> MutexGuard<'_, ReplicatedHost<M>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it take what is in the inbox. Whoever has the host's lock looks after letting go.
    fn look(&self) {
        while self.mail.load(Ordering::SeqCst) {
            let Ok(mut host) = self.host.try_lock() else {
                return;
            };
            self.mail.store(false, Ordering::SeqCst);
            let news = std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
            let mut tells_commits = false;
            for news in &news {
                if let News::Committed(entry) = news {
                    tells_commits = M::is_read_anywhere();
                    if let Some(effect) = M::committed_here(entry) {
                        (self.act)(effect);
                    }
                }
            }
            host.hear(news);
            let generation = host.generation();
            host.take(&mut |effect| self.carry_out(generation, effect));
            let (orders, generation) = (self.end_turn(&mut host), host.generation());
            if tells_commits && host.is_settled() {
                self.groups.tell_commits(self.group);
            }
            self.replay(&host);
            self.free(host);
            self.transfer(generation, orders);
        }
    }

    /// Whether its next machine can't be made any more of what this node has: it takes part in nothing, see
    /// [`Observer::damaged`](super::Observer::damaged).
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::SeqCst)
    }

    fn failing(&self) -> MutexGuard<'_, Failing> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its next machine could not be made. What is damaged stays so, what is missing twice, and what can't be read for
    /// [`UNREADABLE_MS`]; of everything else the next news try again.
    fn failed(&self, error: &StorageError) {
        let group = self.group;
        let now_ms = self.groups.node().world.elapsed().as_millis() as u64;
        if !self.failing().again(error, now_ms) {
            return tracing::warn!(
                area = "groups",
                "{group:?}: a queue's copy cannot be read anew: {error}"
            );
        }
        tracing::error!(
            area = "groups",
            "{group:?}: this node's member is damaged; it votes and leads no more: {error}"
        );
        self.damaged.store(true, Ordering::SeqCst);
        let mut host = self.lock();
        host.stop();
        self.free(host);
        self.groups.damaged(group);
    }

    /// Reads its next machine from the log, on a thread that may wait for the disk.
    fn replay(&self, host: &ReplicatedHost<M>) {
        let Some(replay) = host.replay().filter(|_| !self.closed.is_closed()) else {
            return;
        };
        let Some(hosted) = self.myself.upgrade() else {
            return;
        };
        if self.replaying.swap(true, Ordering::SeqCst) {
            return;
        }
        self.groups.node().pager.read(move |files| {
            let to = replay.to();
            let made = replay.run(&files.log);
            hosted.replaying.store(false, Ordering::SeqCst);
            if hosted.closed.is_closed() {
                return;
            }
            match made {
                Ok(machine) => {
                    *hosted.failing() = Failing::default();
                    let mut host = hosted.lock();
                    let generation = host.generation();
                    host.replayed(machine, to, &mut |effect| hosted.carry_out(generation, effect));
                    hosted.replay(&host);
                    hosted.free(host);
                }
                Err(error) => hosted.failed(&error),
            }
            hosted.look();
            hosted.groups.turn();
        });
    }
}

impl<M: Replicated> Member for Hosted<M> {
    fn tell(&self, news: Vec<News>) {
        self.inbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(news);
        self.mail.store(true, Ordering::SeqCst);
    }

    fn turn(self: Arc<Self>) {
        self.look();
    }

    fn closed(&self) {
        self.closed.close();
    }
}

/// The message store of a machine: its answers are for this one of several that follow each other.
struct MemberStore<M: Replicated> {
    hosted: Arc<Hosted<M>>,
    generation: u64,
}

impl<M: Replicated> MemberStore<M> {
    /// Has synced what was written for contents or bodies that are fetched, while the next may be written. What becomes of
    /// it is told on the thread that wrote it: there a member that is given up meanwhile has its segments removed, too, and
    /// another one writes what must not be freed in their place.
    fn sync_later(self, written: Written) {
        let groups = self.hosted.groups.clone();
        groups.node().pager.sync(move |files| {
            let (stored, failed) = written.sync(&self, files);
            let groups = self.hosted.groups.clone();
            groups.node().pager.write(move |files| {
                if !self.is_retired() {
                    self.is_stored(files, stored, &failed);
                }
            });
        });
    }

    /// What was put into segments for contents or bodies that are fetched, synced.
    fn is_stored(&self, files: &StoreFiles, stored: Vec<Stored>, failed: &Ranges) {
        let generation = self.generation;
        let unneeded = self
            .hosted
            .with_host(|host| match host.generation() == generation {
                true => host.stored(stored, failed),
                false => stored,
            });
        let places = unneeded.into_iter().map(|piece| piece.place);
        files.free(self.hosted.segments, places);
    }
}

impl<M: Replicated> fmt::Debug for MemberStore<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", member_journal(self.hosted.group))
    }
}

impl<M: Replicated> Paged for MemberStore<M> {
    fn owner(&self) -> JournalId {
        self.hosted.segments
    }

    fn logged(
        &self,
        log: &NodeLog,
        at: LogPlace,
        nearby: &mut Nearby,
    ) -> Result<Option<Arc<Block>>, StorageError> {
        let block = |record: &[u8]| {
            let record = M::Record::decode(record)?;
            M::brings(&record).map(|(_, block)| block.clone())
        };
        block_at(log, self.hosted.group, at, nearby, block).map(Some)
    }

    fn is_retired(&self) -> bool {
        self.hosted.closed.is_closed()
    }

    fn answer(&self, files: &StoreFiles, request: store::Request) {
        self.hosted.answer(files, self.generation, request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_twice_or_cannot_be_read_for_a_minute_counts_as_damaged() {
        let unreadable = || StorageError::Io {
            action: "read",
            path: "log".into(),
            source: Arc::new(std::io::Error::from_raw_os_error(5)),
        };
        let missing = || StorageError::Gone { what: String::new() };
        let mut failing = Failing::default();
        assert!(!failing.again(&unreadable(), 1_000));
        assert!(!failing.again(&missing(), 2_000));
        assert!(failing.again(&missing(), 3_000));
        let mut failing = Failing::default();
        for now in (1_000..=60_000).step_by(1_000) {
            assert!(!failing.again(&unreadable(), now));
        }
        assert!(failing.again(&unreadable(), 61_000));
    }
}
