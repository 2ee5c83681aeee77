//! A queue of this node: something that takes requests.
//!
//! There is no thread behind it. Whoever submits a request turns the queue's host; if another thread is turning it, the
//! request goes to the mailbox and that thread handles it. So an idle queue costs memory only, and a busy one hops as
//! little as possible.

mod effects;

use super::holding::Holding;
use super::status::{Published, Status};
use super::streams::{StreamFigures, StreamLog, is_of_copy, remove_closed};
use super::{Heir, JournalOf, Paging, QueueEvents, QueueHost, QueueType, Replica};
use crate::clients::outbox::{ChannelId, Outbox, Question};
use crate::clients::pressure::{Pressure, Reason};
use crate::groups::NodeId;
use crate::groups::handle::Requests;
use crate::node::Node;
use crate::node::ends::{Ends, Reply};
use crate::node::pager::segment_owner;
use crate::node::timers::Due;
use crate::stats::{Consumer, Latencies, LossCounts, MessageCounts, Pending, Probe};
use catalog::QueueKind;
use model::{ConsumerId, Incarnation, QueueId, Timestamp};
use queue::store::{self, LogPlace};
use queue::{Answer, Disposal, Request};
use std::collections::BTreeMap;
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
};
use storage::{JournalId, Position};

pub(super) use effects::Actions;

/// How many turns one thread makes in a row for others before it hands the queue on.
const TURNS: usize = 16;

/// The host of a queue's machine, of whatever kind.
pub(super) type BoxedHost = Box<dyn QueueHost>;

/// In which term a node decides of a queue that others have had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnTerm {
    /// Behind all terms in which others may have decided, and in which this node has in earlier runs.
    pub term: u64,
    /// This node.
    pub node: NodeId,
    /// A group has handed the queue back in this run: nodes have something of it that is to be heard of before anything else.
    pub is_handed_back: bool,
}

/// What operators see of a queue for as long as it is here, whatever turns it.
#[derive(Default)]
struct Told {
    counts: Arc<MessageCounts>,
    consumers: Arc<Mutex<BTreeMap<ConsumerId, Arc<Consumer>>>>,
}

/// A queue of this node.
pub struct Queue {
    /// Its id, and its journal's.
    pub id: QueueId,
    /// See [`Queue::kind`]: its number.
    kind: AtomicU8,
    made: &'static dyn QueueType,
    /// It is in a journal, and comes back after a restart.
    pub durable: bool,
    /// Its name; the exchange's, if it is what an exchange keeps for itself.
    pub name: Arc<str>,
    /// Its virtual host's name.
    pub vhost: Arc<str>,
    /// Whose name the segments bear that its bodies lie in.
    segments: JournalId,
    /// Once its files are open, if it is a stream.
    stream_log: OnceLock<Arc<StreamLog>>,
    host: Mutex<BoxedHost>,
    /// It turns the queue in the place of the host, if several nodes have the queue.
    replica: OnceLock<Replica>,
    /// In which term this node decides, if others have had the queue before it was this node's own again.
    own: OnceLock<OwnTerm>,
    mailbox: Mutex<Vec<Request<Ends>>>,
    mail: AtomicBool,
    /// Who takes what those ask who still know the queue as this node's. Set under the mailbox's lock.
    heir: OnceLock<Arc<dyn Heir>>,
    status: Published,
    counts: Arc<MessageCounts>,
    /// What it lost, once it has lost something.
    losses: OnceLock<Box<LossCounts>>,
    /// The sum of that.
    lost: AtomicU64,
    probe: Probe,
    /// Those who watch queues know that this one has changed: the next turn need not tell them again.
    touched: AtomicBool,
    /// When somebody who watches looked at it last, in milliseconds since the Unix epoch; 0 if nobody did.
    looked_at: AtomicU64,
    /// For operators; by id, which is the order in which they came.
    consumers: Arc<Mutex<BTreeMap<ConsumerId, Arc<Consumer>>>>,
    /// The number of the first message that came after the start.
    first_seq: u64,
    holding: Holding,
    /// When the clock will turn the queue, in milliseconds since the Unix epoch; `u64::MAX` if it will not.
    alarm: AtomicU64,
    /// See [`Queue::compares`].
    compares: AtomicBool,
    /// It is deleted.
    retired: AtomicBool,
    node: Arc<Node>,
    events: Arc<dyn QueueEvents>,
}

impl Queue {
    /// A queue around the host of a new or replayed machine of its kind.
    pub fn new(
        known: &catalog::Queue,
        made: &'static dyn QueueType,
        host: Box<dyn QueueHost>,
        node: Arc<Node>,
        events: Arc<dyn QueueEvents>,
    ) -> Arc<Self> {
        Self::counting_in(known, made, host, (node, events), Told::default())
    }

    /// The queue goes on with this host, in the place of what turned it before: operators see no other one.
    pub fn succeeded_by(&self, known: &catalog::Queue, host: Box<dyn QueueHost>) -> Arc<Self> {
        let told = Told {
            counts: self.counts.clone(),
            consumers: self.consumers.clone(),
        };
        let around = (self.node.clone(), self.events.clone());
        let queue = Self::counting_in(known, self.made, host, around, told);
        queue.compares.store(self.compares(), Ordering::Relaxed);
        queue
    }

    fn counting_in(
        known: &catalog::Queue,
        made: &'static dyn QueueType,
        host: Box<dyn QueueHost>,
        (node, events): (Arc<Node>, Arc<dyn QueueEvents>),
        Told { counts, consumers }: Told,
    ) -> Arc<Self> {
        let queue = Arc::new(Self {
            first_seq: host.turned().status.next_seq,
            segments: host.segments().unwrap_or(segment_owner(known.id)),
            stream_log: host
                .stream_log()
                .cloned()
                .map_or_else(OnceLock::new, OnceLock::from),
            id: known.id,
            kind: AtomicU8::new(known.kind.number()),
            made,
            durable: known.is_durable(),
            name: known.name.clone(),
            vhost: known.vhost.clone(),
            host: Mutex::new(host),
            replica: OnceLock::new(),
            own: OnceLock::new(),
            mailbox: Mutex::default(),
            mail: AtomicBool::new(false),
            heir: OnceLock::new(),
            status: Published::default(),
            counts,
            losses: OnceLock::new(),
            lost: AtomicU64::new(0),
            probe: Probe::default(),
            touched: AtomicBool::new(!node.touched.is_watched()),
            looked_at: AtomicU64::new(0),
            consumers,
            holding: Holding::default(),
            alarm: AtomicU64::new(u64::MAX),
            compares: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            node,
            events,
        });
        let host = queue.lock();
        host.belongs_to(&queue);
        queue.publish_status(host.inspect(), &host.turned(), &mut Vec::new());
        drop(host);
        queue
    }

    /// What it is. Kinds that share a machine may be converted into each other.
    pub fn kind(&self) -> QueueKind {
        QueueKind::from_number(self.kind.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// It was converted to this kind.
    pub(crate) fn becomes(&self, kind: QueueKind) {
        self.kind.store(kind.number(), Ordering::Relaxed);
    }

    /// What it shares with its readers, if it is a stream whose files could be opened.
    pub(crate) fn stream_log(&self) -> Option<&Arc<StreamLog>> {
        self.stream_log.get()
    }

    /// Its files are open now, and were not when it was made.
    pub(super) fn is_opened(&self, log: Arc<StreamLog>) {
        let _ = self.stream_log.set(log);
    }

    /// A stream's numbers; `None` for other kinds, and if its files cannot be opened.
    pub fn stream_figures(&self) -> Option<StreamFigures> {
        self.stream_log().map(|log| log.figures())
    }

    /// The next offset that its readers wait for: everything below is safe. Only streams have one.
    pub fn committed(&self) -> Option<u64> {
        self.stream_log().map(|log| log.committed())
    }

    /// From now on the member of a group turns it.
    pub fn follow(self: &Arc<Self>, replica: Replica) {
        self.replica.get_or_init(|| replica).begin();
        self.lock().follows();
        self.turn_mail();
    }

    /// Another node decides what becomes of it than before, or this one does, or none.
    pub(super) fn is_led_elsewhere(self: &Arc<Self>) {
        if self.is_copy_of_stream() {
            self.submit_here(Request::Wake);
        }
    }

    /// True if it is this node's copy of a stream that several nodes have: reading it is this node's own affair.
    pub(super) fn is_copy_of_stream(&self) -> bool {
        self.replica().is_some() && self.kind() == QueueKind::Stream
    }

    /// What turns it, if several nodes have it.
    pub fn replica(&self) -> Option<&Replica> {
        self.replica.get()
    }

    /// Others have had the queue before. Once.
    pub fn decides_in(&self, own: OwnTerm) {
        let _ = self.own.set(own);
    }

    /// See [`Queue::decides_in`]. `None` if several nodes have it, or nobody else has had it.
    pub fn own_term(&self) -> Option<OwnTerm> {
        self.own.get().copied().filter(|_| self.replica().is_none())
    }

    /// In which term this node decides, if it does and there are terms.
    pub fn term(&self) -> Option<u64> {
        match self.replica() {
            Some(replica) => replica.term(),
            None => self.own.get().map(|own| own.term),
        }
    }

    /// Who decides, as far as this node knows, if there are terms.
    pub fn leader(&self) -> Option<NodeId> {
        match self.replica() {
            Some(replica) => replica.leader(),
            None => self.own.get().map(|own| own.node),
        }
    }

    /// True if this node decides what becomes of it.
    pub fn is_led_here(&self) -> bool {
        self.replica().is_none_or(|replica| replica.term().is_some())
    }

    /// Who is told what it cannot do itself.
    pub(super) fn events(&self) -> &Arc<dyn QueueEvents> {
        &self.events
    }

    /// It compares what comes with what is there (`x-message-deduplication`): a channel's publishes and
    /// acknowledgements must reach it in their order, which others don't care about.
    pub fn compare(&self) {
        self.compares.store(true, Ordering::Relaxed);
    }

    /// See [`Queue::compare`].
    pub fn compares(&self) -> bool {
        self.compares.load(Ordering::Relaxed)
    }

    /// Its numbers after its last turn.
    pub fn status(&self) -> Status {
        self.status.load(self.first_seq)
    }

    /// How long its messages take, by sample; `None` if none was sampled.
    pub fn latencies(&self) -> Option<&Arc<Latencies>> {
        self.probe.latencies()
    }

    /// How long ago a moment was, in milliseconds, which is given in milliseconds since the Unix epoch.
    pub fn age_ms(&self, moment_ms: u64) -> u64 {
        self.node.now().0.saturating_sub(moment_ms)
    }

    /// How long those of its messages take by now that are followed.
    pub fn pending(&self) -> Pending {
        self.probe.pending(self.node.micros())
    }

    /// Why its publishers are held up, if they are.
    pub fn holds(&self) -> Option<Reason> {
        self.holding.reason()
    }

    /// What happened in it since the start.
    pub fn counts(&self) -> &MessageCounts {
        &self.counts
    }

    /// What it lost since the start; `None` if nothing.
    pub fn losses(&self) -> Option<&LossCounts> {
        self.losses.get().map(|losses| &**losses)
    }

    /// From now on the next turn is told to whoever watches queues. Returns whether this was called before.
    pub(crate) fn look(self: &Arc<Self>) -> bool {
        self.touched.store(false, Ordering::SeqCst);
        self.look_at_head();
        self.looked_at.swap(self.node.now().0, Ordering::Relaxed) > 0
    }

    /// Turns don't look at what the first message says of itself, so it is done here. A queue that is being turned has
    /// its look next time.
    fn look_at_head(self: &Arc<Self>) {
        if let Some(replica) = self.replica() {
            return self
                .status
                .note_head(replica.look(|machine| machine.head_timestamp()).flatten());
        }
        let Some(host) = self.try_lock() else {
            return self.touch();
        };
        self.status.note_head(host.inspect().head_timestamp());
        self.finish(host, Actions::default());
    }

    /// Since when it has not been turned, in milliseconds since the Unix epoch, as exactly as somebody watches it.
    /// `None` if it was turned since somebody looked, or nobody did.
    pub fn idle_since_ms(&self) -> Option<u64> {
        let looked = self.looked_at.load(Ordering::Relaxed);
        (looked > 0 && !self.touched.load(Ordering::Relaxed)).then_some(looked)
    }

    #[cold]
    fn touch(&self) {
        if !self.touched.swap(true, Ordering::SeqCst) {
            self.node.touched.note(self.id);
        }
    }

    /// Its consumers, in the order in which they came; not those of connections that operators don't see.
    pub fn consumers(&self) -> Vec<Arc<Consumer>> {
        self.shown().values().cloned().collect()
    }

    pub(crate) fn consumer_came(&self, consumer: Arc<Consumer>) {
        self.shown().insert(consumer.id, consumer);
    }

    pub(crate) fn consumer_went(&self, consumer: &Arc<Consumer>) {
        self.shown().remove(&consumer.id);
    }

    fn shown(&self) -> MutexGuard<'_, BTreeMap<ConsumerId, Arc<Consumer>>> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the request handled, by this thread or by the one that is turning the queue now.
    pub fn submit(self: &Arc<Self>, request: Request<Ends>) {
        match self.replica() {
            Some(_) if self.is_copy_of_stream() && is_of_copy(&request) => self.submit_here(request),
            Some(replica) => replica.submit(self, request),
            None => self.submit_here(request),
        }
    }

    /// The same for whoever knows the queue as this node's own. If it is so no more, its heir is asked.
    pub(super) fn submit_here(self: &Arc<Self>, request: Request<Ends>) {
        match self.try_lock() {
            Some(host) => self.turn(host, Some(request)),
            None => {
                if let Some(request) = self.post(request) {
                    return self.heir.wait().take(request);
                }
                self.mail.store(true, Ordering::SeqCst);
                if let Some(host) = self.try_lock() {
                    self.turn(host, None);
                }
            }
        }
    }

    /// Leaves a request for whoever turns the queue; returned if that is its heir.
    fn post(&self, request: Request<Ends>) -> Option<Request<Ends>> {
        let mut mailbox = self.mailbox();
        if self.heir.get().is_some() {
            return Some(request);
        }
        mailbox.push(request);
        None
    }

    /// What is in the mailbox goes to the heir, and everything else that would come there.
    pub(super) fn close_mailbox(&self, heir: &Arc<dyn Heir>) {
        let mut mailbox = self.mailbox();
        for request in mailbox.drain(..) {
            heir.take(request);
        }
        let _ = self.heir.set(heir.clone());
    }

    fn mailbox(&self) -> MutexGuard<'_, Vec<Request<Ends>>> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has these handled in their order, in one turn if nobody is turning the queue now.
    pub fn submit_all(self: &Arc<Self>, requests: impl IntoIterator<Item = Request<Ends>>) {
        self.mailbox().extend(requests);
        self.mail.store(true, Ordering::SeqCst);
        self.turn_mail();
    }

    /// The same for what nodes say, whose sessions are of this term. False if this node does not decide in that any more: then
    /// nothing comes of it.
    pub(crate) fn submit_in(self: &Arc<Self>, term: u64, requests: Requests) -> bool {
        match self.replica() {
            Some(replica) => replica.submit_in(self, term, requests),
            None => {
                self.submit_all(requests);
                true
            }
        }
    }

    /// The incarnations of nodes of which it knows what they have sent. Waits for the thread that turns it, if any.
    pub fn senders(&self) -> Vec<Incarnation> {
        if let Some(replica) = self.replica() {
            return replica.look(|machine| machine.senders()).unwrap_or_default();
        }
        self.lock().inspect().senders()
    }

    /// Asks a question and waits for the thread that is turning the queue, if any: the answer is in the asker's outbox when this
    /// returns, without a call to its waker, unless the disk has to be read first.
    pub fn ask(self: &Arc<Self>, question: Question, request: Request<Ends>) {
        self.turn_here(request, &mut |reply, answer| {
            if reply.question != question {
                return Some(answer);
            }
            reply.outbox.push(reply.answered(Some(answer)));
            None
        });
    }

    /// The same for somebody who can only ask queues of this node: returns the answer.
    pub(super) fn ask_now(self: &Arc<Self>, question: Question, request: Request<Ends>) -> Option<Answer> {
        let mut found = None;
        self.turn_for(request, &mut |reply, answer| {
            if reply.question != question {
                return Some(answer);
            }
            found = Some(answer);
            None
        });
        found
    }

    /// Waits for the queue and turns it for one request. `answered` may keep an answer for itself. Where several nodes have the
    /// queue the answer comes when they agree.
    fn turn_for(
        self: &Arc<Self>,
        request: Request<Ends>,
        answered: &mut dyn FnMut(&Reply, Answer) -> Option<Answer>,
    ) {
        match self.replica() {
            Some(replica) => replica.submit(self, request),
            None => self.turn_here(request, answered),
        }
    }

    fn turn_here(
        self: &Arc<Self>,
        request: Request<Ends>,
        answered: &mut dyn FnMut(&Reply, Answer) -> Option<Answer>,
    ) {
        let mut host = self.lock();
        let mut actions = Actions::default();
        self.drain_mailbox(&mut host);
        self.handle(&mut host, self.node.now(), request);
        self.commit(&mut host, &mut actions, answered);
        self.finish(host, actions);
    }

    /// A reason to slow down for those who publish to this queue.
    pub fn pressure(&self) -> Option<Pressure> {
        self.holding.pressure()
    }

    /// Has the queue prepare for the log to forget what lies before `position`.
    pub fn checkpoint(self: &Arc<Self>, position: Position) {
        let before = LogPlace(position.0);
        self.submit(Request::Store(store::Request::Checkpoint { before }));
    }

    /// The name of its journal in the log.
    pub fn journal(&self) -> JournalId {
        JournalOf::Queue(self.made, self.id).id()
    }

    /// Whose name the segments bear that its bodies lie in.
    pub fn segments(&self) -> JournalId {
        self.replica().map_or(self.segments, Replica::segments)
    }

    /// How queues of its kind are made.
    pub(super) fn made(&self) -> &'static dyn QueueType {
        self.made
    }

    /// The node that it belongs to.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The queue is deleted: consumers are cancelled, later requests come to nothing.
    pub fn retire(self: &Arc<Self>) {
        self.retired.store(true, Ordering::SeqCst);
        // Those who use a queue of several nodes are told on their own ones.
        match self.replica() {
            None => self.submit(Request::Retire),
            Some(replica) if self.is_copy_of_stream() => {
                self.submit_here(Request::Retire);
                replica.retire();
            }
            Some(_) => {}
        }
    }

    /// This node has no copy of it any more, which is retired: what it had in files of its own goes.
    pub(crate) fn forget_files(&self) {
        if let Some(log) = self.stream_log() {
            log.remove();
        } else if self.is_copy_of_stream() {
            remove_closed(&self.node, self.id);
        }
    }

    /// See [`Queue::retire`].
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::SeqCst)
    }

    /// A question whose late answer nobody would read.
    pub(super) fn question_of_nobody(&self) -> (Question, Reply) {
        let question = Question(self.node.number());
        let channel = ChannelId(0);
        (
            question,
            Reply {
                outbox: Arc::new(Outbox::new()),
                channel,
                question,
                no_ack: false,
            },
        )
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BoxedHost> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`lock`](Self::lock), if nobody else has it.
    fn try_lock(&self) -> Option<MutexGuard<'_, BoxedHost>> {
        match self.host.try_lock() {
            Ok(host) => Some(host),
            // Whoever had it has panicked. A stream tells its clients that it has failed; what another queue holds by now is not
            // what its journal knows, and nobody gets at it.
            Err(TryLockError::Poisoned(host)) if self.stream_log.get().is_some() => Some(host.into_inner()),
            Err(_) => None,
        }
    }

    fn turn(self: &Arc<Self>, mut host: MutexGuard<'_, BoxedHost>, request: Option<Request<Ends>>) {
        let mut actions = Actions::default();
        self.drain_mailbox(&mut host);
        if let Some(request) = request {
            self.handle(&mut host, self.node.now(), request);
        }
        self.commit(&mut host, &mut actions, &mut |_, answer| Some(answer));
        self.finish(host, actions);
    }

    /// Lets go of the host and carries out what must not happen under its lock; then looks whether mail came meanwhile.
    pub(super) fn finish(self: &Arc<Self>, host: MutexGuard<'_, BoxedHost>, actions: Actions) {
        drop(host);
        self.carry_out(actions);
        for _ in 0..TURNS {
            if !self.mail.load(Ordering::SeqCst) {
                return;
            }
            // Whoever holds the lock now looks at the mail after it let go.
            let Some(mut host) = self.try_lock() else {
                return;
            };
            let mut actions = Actions::default();
            self.drain_mailbox(&mut host);
            self.commit(&mut host, &mut actions, &mut |_, answer| Some(answer));
            drop(host);
            self.carry_out(actions);
        }
        if self.mail.load(Ordering::SeqCst) {
            Paging::Turn { queue: self.clone() }.send(&self.node.pager);
        }
    }

    /// Handles what waits in the mailbox; called by a thread that has turns to spare for this queue.
    pub fn turn_mail(self: &Arc<Self>) {
        if let Some(host) = self.try_lock() {
            self.turn(host, None);
        }
    }

    pub(super) fn drain_mailbox(&self, host: &mut BoxedHost) {
        if !self.mail.swap(false, Ordering::SeqCst) {
            return;
        }
        let requests = std::mem::take(&mut *self.mailbox());
        let now = self.node.now();
        for request in requests {
            self.handle(host, now, request);
        }
    }

    /// Has the machine decide, and counts what operators want to know.
    fn handle(&self, host: &mut BoxedHost, now: Timestamp, mut request: Request<Ends>) {
        // What goes on elsewhere is counted there.
        if self.replica().is_none() || self.is_copy_of_stream() {
            self.count(&mut request, || host.inspect().is_sorted());
        }
        host.handle(now, request);
    }

    /// Counts what operators want to know of a request.
    #[inline]
    pub(super) fn count(&self, request: &mut Request<Ends>, is_sorted: impl FnOnce() -> bool) {
        match request {
            Request::Enqueue { block, receipt } | Request::EnqueueFrom { block, receipt, .. } => {
                self.counts.publish.add(block.len() as u64);
                // The lanes of a sorted queue number their messages each for itself.
                if is_sorted() {
                    self.probe.published_sorted();
                } else {
                    let next = self.status.next_seq();
                    let timed = self.probe.published(next, || self.node.micros());
                    if let Some(receipt) = receipt {
                        receipt.timed = timed;
                    }
                }
            }
            Request::Settle {
                disposal: Disposal::Accepted,
                seqs,
                ..
            } => {
                self.counts.ack.add(seqs.count());
                self.probe.acked(seqs, || self.node.micros());
            }
            _ => {}
        }
    }
}

impl Due for Queue {
    fn tick(self: Arc<Self>) {
        self.alarm.store(u64::MAX, Ordering::SeqCst);
        self.submit(Request::Wake);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.node.memory_changed(self.status.memory(), 0);
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "queue '{}' in vhost '{}'", self.name, self.vhost)
    }
}
