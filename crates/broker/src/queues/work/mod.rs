//! Queues of one node through any other one: what a node's clients want of queues that other nodes have, and what clients of
//! other nodes want of its own.
//!
//! A client's node has a [`Handle`](crate::groups::handle::Handle) of the queue, made when a client needs it (`away`, one set
//! for each other node in `reached`); the queue's home node has [`Sessions`](crate::groups::handle::Sessions) in front of it,
//! made when a node opens one (`served`). These are the ones of replicated queues: here the home node leads for as long as it
//! runs, and each of its starts is a term. What they say to each other goes over links in an envelope (`frame`), or through a
//! third node where there is no link (`ways`, `detours`, `passed`).
//!
//! Nodes tell each other of their alarms, too (`alarm`).
//!
//! Nothing here has a thread: whoever brings something turns it (`turned`). No lock is waited for but for as long as
//! something is put in or taken out. Clients' outboxes are filled under the lock of their handle, so in order.

mod alarm;
mod away;
mod detours;
mod followed;
mod frame;
mod handles;
mod leaders;
mod leading;
mod numbers;
mod parked;
mod passed;
mod reached;
mod served;
#[cfg(test)]
mod tests;
mod turned;
mod ways;

use super::Queue;
use super::remote::{Peers, Remote, StreamAddresses};
use super::streams::StreamLog;
use crate::clients::alarms::AlarmReason;
use crate::groups::handle::{Budget, Frame, Sessions, ToNode, keeps_for};
use crate::groups::{NodeId, RejectedFrames};
use crate::node::ends::Ends;
use alarm::OwnAlarm;
use bytes::Bytes;
use cluster::MemberId;
use detours::Detours;
use followed::Followed;
pub use frame::Envelope;
use leaders::Leaders;
use leading::Leading;
use model::{BlockBuilder, ConsumerId, Incarnation, Index, Message, QueueId, QueueSettings};
use parked::Parked;
use passed::OfDetours;
use queue::stream::{GroupWord, Request as StreamAsk, StreamRequest};
use queue::{NodeConsumer, OwnConsumer};
use reached::Reached;
use served::Served;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use ways::Ways;

/// What other nodes together may send to this node's queues beyond their first credits and what has an answer, in bytes.
const BUDGET: u64 = 256 << 20;

/// An incarnation tells its node in so many bits.
const NODE_BITS: u32 = Incarnation::NODE_BITS;

/// Handles of one node and queue count behind each other, so far apart. None sends or asks so much.
const HANDLES_APART: u64 = 1 << 32;

/// The way to other nodes for what their clients and this node's want of queues.
pub trait WorkLinks: fmt::Debug + Send + Sync {
    /// Sends a frame that is made of these parts, behind those before it. Waits for nothing; it may be lost with the link, of
    /// which [`Work::down`] is told, or for want of room.
    fn work(&self, to: NodeId, parts: Vec<Bytes>);

    /// The same for what nobody waits for and nobody says again. It is lost first.
    fn spare(&self, to: NodeId, parts: Vec<Bytes>) {
        self.work(to, parts);
    }
}

/// What exists, as far as this node has applied it.
pub trait Existing: Send + Sync {
    /// The queue, if it is on this node and not deleted.
    fn here(&self, queue: QueueId) -> Option<Arc<Queue>>;

    /// Which version that is.
    fn version(&self) -> u64;

    /// A client of another node answers one of this node.
    fn reply(&self, _vhost: &str, _address: &str, _message: &Message<'_>) {}

    /// A queue that several nodes have, if it is not deleted.
    fn shared(&self, _queue: QueueId) -> Option<SharedQueue> {
        None
    }

    /// The nodes that have this stream, if it exists and is one that several nodes have.
    fn stream_members(&self, _stream: QueueId) -> Option<Vec<NodeId>> {
        None
    }

    /// This node's copies of them.
    fn stream_copies(&self) -> Vec<Arc<Queue>> {
        Vec::new()
    }

    /// Those of them that this node leads.
    fn led_streams(&self) -> Vec<QueueId> {
        Vec::new()
    }

    /// This node's copy of such a queue, whoever leads, or the queue that others have had before it was this node's own again.
    fn replica(&self, _queue: QueueId) -> Option<Arc<Queue>> {
        None
    }

    /// How long the consumers of a node that cannot be reached keep what they hold of a queue, in milliseconds, if it says so.
    fn keeps_for_ms(&self, _queue: QueueId) -> Option<u64> {
        None
    }

    /// The nodes of the cluster.
    fn nodes(&self) -> Vec<NodeId> {
        Vec::new()
    }

    /// A tick of the clock.
    fn tick(&self) {}

    /// What a node is called.
    fn name_of(&self, node: NodeId) -> String {
        format!("number {}", node.0)
    }

    /// Queues have an owner again that had none, or have none any more: see [`super::Peers::reach`].
    fn moved(&self);

    /// A node can be reached again: behind [`Self::moved`].
    fn reached(&self) {}
}

/// A queue that several nodes have.
pub struct SharedQueue {
    /// Where it was declared, and was alone if it has not always been of several nodes.
    pub home: NodeId,
    pub members: Vec<NodeId>,
    pub settings: QueueSettings,
    /// Who leads it, as this node's member knows.
    pub leader: Option<NodeId>,
    /// It may be on one node alone at times, which then gives its messages numbers that it may give again after its next start.
    pub numbers: Option<Alone>,
    /// It goes on with one node's copy, in which may be missing who was given something.
    pub is_refounded: bool,
}

/// A queue of several nodes that may be on one alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    /// It is so now, in terms behind this one.
    pub behind: Option<u64>,
}

/// What clients of this node want of queues elsewhere, and what those of other nodes want of queues here.
pub struct Work {
    here: Arc<Here>,
    budget: Arc<Budget>,
    nodes: RwLock<BTreeMap<NodeId, Arc<Reached>>>,
    followed: Arc<Followed>,
    leading: Leading,
    leaders: Leaders,
    /// In order, as handles are.
    served: RwLock<BTreeMap<QueueId, Arc<Served>>>,
    parked: Mutex<Parked>,
    alarm: OwnAlarm,
    streams: OnceLock<StreamAddresses>,
    rejected: Arc<RejectedFrames>,
}

/// This node.
struct Here {
    /// As queues know it.
    incarnation: Incarnation,
    /// Which of its starts this is: the term of its queues.
    start: u64,
    ways: Ways,
    /// What this node says to itself comes here.
    work: Weak<Work>,
    existing: Weak<dyn Existing>,
    /// How many handles have been made.
    handles: AtomicU64,
    /// See [`numbers::Numbers::above`].
    void_below: AtomicU64,
}

impl Here {
    fn node(&self) -> NodeId {
        node_of(self.incarnation)
    }

    fn version(&self) -> u64 {
        self.existing.upgrade().map_or(0, |existing| existing.version())
    }

    fn name_of(&self, node: NodeId) -> String {
        let existing = self.existing.upgrade();
        existing.map_or_else(String::new, |existing| existing.name_of(node))
    }

    /// For how many ticks the consumers of a node that is not heard of keep what they hold of a queue.
    fn keeps_for(&self, queue: QueueId) -> u32 {
        let existing = self.existing.upgrade();
        keeps_for(existing.and_then(|existing| existing.keeps_for_ms(queue)))
    }

    fn send(&self, to: NodeId, envelope: Envelope) {
        if to != self.node() {
            self.ways.work(to, envelope.encode());
        } else if let Some(work) = self.work.upgrade() {
            work.receive_own(envelope);
        }
    }

    /// The handles of queues that several nodes have, if this is one.
    fn followed(&self, queue: QueueId) -> Option<Arc<Followed>> {
        self.existing.upgrade()?.shared(queue)?;
        Some(self.work.upgrade()?.followed.clone())
    }

    /// See [`crate::groups::handle::Handle::after`].
    fn count_behind(&self) -> u64 {
        self.handles.fetch_add(1, Ordering::Relaxed) * HANDLES_APART
    }

    fn void_below(&self) -> u64 {
        self.void_below.load(Ordering::Relaxed)
    }

    fn are_void_below(&self, number: u64) {
        self.void_below.fetch_max(number, Ordering::Relaxed);
    }
}

/// Another node says this of readers in a group of a stream, of which this one has a copy.
fn say_of_node(copy: &Arc<Queue>, node: NodeId, said: GroupWord) {
    let node = node.0;
    copy.submit(queue::Request::Stream(Box::new(StreamRequest::OfNode {
        node,
        said,
    })));
}

/// What queues call a start of a node.
fn incarnation(node: NodeId, start: u64) -> Incarnation {
    Incarnation::of(node.0, start)
}

fn node_of(incarnation: Incarnation) -> NodeId {
    NodeId(incarnation.node())
}

fn start_of(incarnation: Incarnation) -> u64 {
    incarnation.start()
}

impl Work {
    /// Nothing yet, on this node, which has a number below 65,536, in the start of this number, from 1. `rejected` is told
    /// of frames that can't be read; it is the node's groups' one.
    pub fn new(
        node: NodeId,
        start: u64,
        links: Arc<dyn WorkLinks>,
        existing: Weak<dyn Existing>,
        rejected: Arc<RejectedFrames>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself: &Weak<Self>| {
            let here = Arc::new(Here {
                incarnation: incarnation(node, start),
                start,
                ways: Ways::new(node, start, links),
                work: myself.clone(),
                existing,
                handles: AtomicU64::new(0),
                void_below: AtomicU64::new(0),
            });
            Self::of(here, myself.clone(), rejected)
        })
    }

    fn of(here: Arc<Here>, myself: Weak<Self>, rejected: Arc<RejectedFrames>) -> Self {
        Self {
            followed: Arc::new(Followed::new(here.clone(), myself)),
            here,
            budget: Budget::new(BUDGET),
            nodes: RwLock::default(),
            leading: Leading::default(),
            leaders: Leaders::default(),
            served: RwLock::default(),
            parked: Mutex::default(),
            alarm: OwnAlarm::default(),
            streams: OnceLock::new(),
            rejected,
        }
    }

    /// The link with a node works from now on; `start` is the number of its start.
    pub fn up(&self, node: NodeId, start: u64) {
        self.change(|detours, orders| detours.up(node, start, orders));
    }

    /// The link with a node is lost, and with it what was under way.
    pub fn down(&self, node: NodeId) {
        self.change(|detours, orders| detours.down(node, orders));
    }

    /// There is a way to a node; `start` is the number of its start.
    fn reached(&self, node: NodeId, start: u64) {
        if u64::from(node.0) >= 1 << NODE_BITS || start == 0 || start >= 1 << (u64::BITS - NODE_BITS) {
            tracing::error!(
                area = "cluster",
                "start {start} of node {} has a number that no queue knows: its clients don't reach queues of this node",
                node.0
            );
            return;
        }
        let (before, was_reached) = self.node(node).up(start);
        if before != 0 && before != start {
            self.loses_readers(node);
        }
        let reason = self.alarm.get();
        if reason.is_some() {
            self.here.send(node, Envelope::Alarm(reason));
        }
        self.say_streams(node, true);
        self.say_what_is_led(node);
        self.followed.up(node);
        for served in self.all_served() {
            if before != 0 && before != start {
                served.put(served::Brought::Ended(incarnation(node, before)));
            }
            served.put(served::Brought::Heard(incarnation(node, start)));
            served.turn();
        }
        if !was_reached {
            self.moved();
            if let Some(existing) = self.here.existing.upgrade() {
                existing.reached();
            }
        }
    }

    /// There is none any more, and what was under way is lost.
    fn lost(&self, node: NodeId) {
        let Some(known) = self.known(node) else { return };
        known.down();
        self.followed.down(node);
        self.loses_readers(node);
        self.parked().forget(node);
        let lost = incarnation(node, known.start());
        for served in self.all_served() {
            served.put(served::Brought::Lost(lost));
            served.turn();
        }
    }

    /// Readers of a node that are in groups of streams may be gone, or may not hear that they are.
    fn loses_readers(&self, node: NodeId) {
        let existing = self.here.existing.upgrade();
        for copy in existing.map_or_else(Vec::new, |existing| existing.stream_copies()) {
            say_of_node(&copy, node, GroupWord::Lost);
        }
    }

    /// The node is about to close, and has no links any more: what clients of other nodes hold goes back, marked.
    pub fn close(&self) {
        for served in self.all_served() {
            served.put(served::Brought::Closes);
            served.turn();
        }
    }

    /// A node says this over its link. What is no frame of this version is passed over, with a line of log.
    pub fn receive(&self, from: NodeId, bytes: Vec<u8>) {
        match OfDetours::is(&bytes) {
            true => self.receive_on_detour(from, bytes),
            false => self.receive_from(from, bytes),
        }
    }

    /// The same, whichever way it came.
    fn receive_from(&self, from: NodeId, bytes: Vec<u8>) {
        let Some(known) = self.known(from).filter(|known| known.is_up()) else {
            return;
        };
        let length = bytes.len();
        match Envelope::decode(bytes) {
            Some(Envelope::Down { queue, frame }) => {
                let received = self.followed.receive(from, queue, frame);
                let received = received.or_else(|frame| known.receive(queue, frame));
                // Its handle may just have come from there.
                let received = received.or_else(|frame| self.followed.receive(from, queue, frame));
                if let Err(asked) = received {
                    self.say_nothing(from, queue, &asked);
                }
            }
            Some(up @ Envelope::Up { .. }) => self.serve(from, up, length),
            Some(Envelope::Reply {
                vhost,
                address,
                block,
            }) => {
                if let Some(existing) = self.here.existing.upgrade() {
                    existing.reply(&vhost, &address, &block.message(0));
                }
            }
            Some(Envelope::Alarm(reason)) => known.alarm(reason),
            Some(Envelope::Streams { at, asks }) => {
                known.serves_streams(at);
                if asks {
                    self.say_streams(from, false);
                    self.say_what_is_led(from);
                }
            }
            Some(Envelope::Offset {
                stream,
                reference,
                offset,
            }) => {
                let existing = self.here.existing.upgrade();
                let queue = existing.and_then(|existing| existing.here(stream));
                if let Some(queue) = queue.filter(|queue| queue.stream_log().is_some()) {
                    let store = StreamAsk::StoreOffset { reference, offset };
                    queue.submit(queue::Request::Stream(Box::new(StreamRequest::Machine(store))));
                }
            }
            Some(Envelope::Group { stream, said }) => {
                let existing = self.here.existing.upgrade();
                match (existing.and_then(|existing| existing.replica(stream)), said) {
                    (Some(copy), said) => say_of_node(&copy, from, said),
                    // Nobody reads it here.
                    (None, GroupWord::Leads { term }) => {
                        let said = GroupWord::Follows { term };
                        self.here.send(from, Envelope::Group { stream, said });
                    }
                    (None, _) => {}
                }
            }
            Some(Envelope::HasAll {
                stream,
                life,
                upto,
                asks,
            }) => self.has_all(MemberId { node: from, life }, stream, upto, asks),
            Some(Envelope::Lacks { stream, from: offset }) => self.give_chunks(from, stream, offset),
            Some(Envelope::Chunks { stream, pieces }) => {
                if let Some(log) = self.copy_of_stream(stream) {
                    log.fetched(from, pieces);
                }
            }
            Some(Envelope::Led { queue, leader }) => self.heard_leader(queue, leader),
            None => self.rejected.tell(
                from,
                "cluster",
                format_args!("what it sends about a queue can't be read"),
            ),
        }
    }

    /// This node's copy of a stream that several nodes have.
    fn copy_of_stream(&self, stream: QueueId) -> Option<Arc<StreamLog>> {
        let existing = self.here.existing.upgrade()?;
        existing.replica(stream)?.stream_log().cloned()
    }

    /// Another node asks whether this one's copy of a stream has all chunks up to this entry, or says that its has.
    fn has_all(&self, member: MemberId, stream: QueueId, upto: Index, asks: bool) {
        let existing = self.here.existing.upgrade();
        let Some(copy) = existing.and_then(|existing| existing.replica(stream)) else {
            return;
        };
        let Some(log) = copy.stream_log() else { return };
        if !asks {
            return log.member_has_all(member, upto);
        }
        let is_it = copy.replica().is_some_and(|it| it.life() == member.life);
        if is_it && log.has_all(upto) {
            self.say_has_all(member, stream, upto, false);
        }
    }

    fn say_has_all(&self, member: MemberId, stream: QueueId, upto: Index, asks: bool) {
        let said = Envelope::HasAll {
            stream,
            life: member.life,
            upto,
            asks,
        };
        self.here.send(member.node, said);
    }

    /// Another node's copy of a stream lacks chunks from this offset on.
    fn give_chunks(&self, to: NodeId, stream: QueueId, from: u64) {
        let Some(log) = self.copy_of_stream(stream) else {
            return;
        };
        let here = self.here.clone();
        log.give(from, move |pieces| {
            let chunks = Envelope::Chunks { stream, pieces };
            here.ways.spare(to, chunks.encode());
        });
    }

    /// A node that asks about a queue hears that there is no handle of it here.
    fn say_nothing(&self, to: NodeId, queue: QueueId, asked: &Frame<ToNode>) {
        let is_asked = matches!(asked.messages[..], [ToNode::Speak | ToNode::Closed]);
        if is_asked {
            let said = Envelope::Up {
                queue,
                version: self.here.version(),
                frame: Sessions::nothing(self.here.incarnation, asked),
            };
            self.here.send(to, said);
        }
    }

    /// A tick of the clock, of which there is one each 100 ms.
    pub fn tick(&self) {
        self.change(Detours::tick);
        if let Some(reason) = self.alarm.tick() {
            self.say_alarm(Some(reason));
        }
        let mut lost = false;
        for node in self.all_nodes() {
            lost |= node.tick();
        }
        self.followed.tick();
        if let Some(existing) = self.here.existing.upgrade() {
            existing.tick();
        }
        self.lead_when_due();
        for served in self.all_served() {
            served.put(served::Brought::Tick);
            served.turn();
        }
        // Whoever brings something holds this lock meanwhile.
        let mut all = self.served.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, served| !served.is_unneeded());
        let left = all.values().filter(|served| served.is_left());
        let left: Vec<Arc<Served>> = left.cloned().collect();
        drop(all);
        left.iter().for_each(|served| served.turn());
        let due = self.parked().due(self.here.version());
        for (from, envelope) in due {
            self.serve(from, envelope, 0);
        }
        if lost {
            self.moved();
        }
    }

    /// How many queues of other nodes have handles here, and how many queues of this node have sessions.
    pub fn counts(&self) -> (usize, usize) {
        let handles: usize = self.all_nodes().iter().map(|node| node.handles()).sum();
        (handles + self.followed.count(), self.all_served().len())
    }

    /// Tells everybody to whom this node can speak.
    fn say_alarm(&self, reason: Option<AlarmReason>) {
        for node in self.all_nodes().iter().filter(|node| node.is_up()) {
            self.here.send(node.node, Envelope::Alarm(reason));
        }
    }

    /// Tells a node where clients of streams reach this one, if they do, and asks for the same.
    fn say_streams(&self, node: NodeId, asks: bool) {
        if let Some(at) = self.streams.get().cloned() {
            self.here.send(node, Envelope::Streams { at, asks });
        }
    }

    fn moved(&self) {
        if let Some(existing) = self.here.existing.upgrade() {
            existing.moved();
        }
    }

    /// Hands a frame to the sessions of a queue, which begin with it. `bytes` is how long it was, 0 if it has waited.
    fn serve(&self, from: NodeId, envelope: Envelope, bytes: usize) {
        let Some(start) = self.start_of(from) else {
            return;
        };
        let Envelope::Up {
            queue,
            version,
            frame,
        } = envelope
        else {
            return;
        };
        let said = served::Brought::Said(incarnation(from, start), frame);
        let served::Brought::Said(_, frame) = (match self.bring(queue, said) {
            Ok(()) => return,
            Err(said) => said,
        }) else {
            return;
        };
        if bytes > 0 && version > self.here.version() {
            let envelope = Envelope::Up {
                queue,
                version,
                frame,
            };
            return self.parked().park(from, envelope, bytes);
        }
        if let Some(frame) = Sessions::decline(&frame) {
            self.here.send(from, Envelope::Down { queue, frame });
            self.say_who_leads(from, queue);
        }
    }

    /// Brings something to the sessions of a queue; it comes back if there is no such queue here.
    #[allow(clippy::result_large_err, reason = "the caller has made it")]
    fn bring(&self, id: QueueId, brought: served::Brought) -> Result<(), served::Brought> {
        let all = self.served.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(served) = all.get(&id).filter(|served| !served.is_over()).cloned() {
            served.put(brought);
            drop(all);
            served.turn();
            return Ok(());
        }
        drop(all);
        let existing = self.here.existing.upgrade();
        let Some(queue) = existing.and_then(|existing| existing.here(id)) else {
            return Err(brought);
        };
        if queue.replica().is_some() || queue.own_term().is_some_and(|own| own.is_handed_back) {
            return self.bring_to_leader(&queue, brought);
        }
        // It asks the queue what it knows, which may take a while: not under the lock.
        let started = |node| self.start_of(node).unwrap_or(0);
        let new = Served::new(queue, self.here.clone(), self.budget.clone(), started);
        self.begin_serving(new, Some(brought));
        Ok(())
    }

    /// These sessions are the queue's from now on, unless it has some already; then this is brought to those.
    fn begin_serving(&self, new: Arc<Served>, brought: Option<served::Brought>) {
        let mut all = self.served.write().unwrap_or_else(PoisonError::into_inner);
        let served = all.entry(new.id()).or_insert_with(|| new.clone());
        if served.is_over() || served.term() < new.term() {
            *served = new;
        }
        let served = served.clone();
        brought.into_iter().for_each(|brought| served.put(brought));
        drop(all);
        served.turn();
    }

    /// Which start of a node was heard of last, if one was.
    fn start_of(&self, node: NodeId) -> Option<u64> {
        match node == self.here.node() {
            true => Some(self.here.start),
            false => self.known(node).map(|known| known.start()),
        }
    }

    fn served_of(&self, id: QueueId) -> Option<Arc<Served>> {
        let all = self.served.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&id).cloned()
    }

    fn all_served(&self) -> Vec<Arc<Served>> {
        let all = self.served.read().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }

    fn all_nodes(&self) -> Vec<Arc<Reached>> {
        let all = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }

    fn known(&self, node: NodeId) -> Option<Arc<Reached>> {
        let all = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&node).cloned()
    }

    /// The same, if it can be spoken to.
    fn known_up(&self, node: catalog::NodeId) -> Option<Arc<Reached>> {
        let known = self.known(NodeId(u32::try_from(node.0).ok()?))?;
        known.is_up().then_some(known)
    }

    fn node(&self, node: NodeId) -> Arc<Reached> {
        let mut all = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Reached::new(node, self.here.clone()));
        all.entry(node).or_insert_with(new).clone()
    }

    fn parked(&self) -> MutexGuard<'_, Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers for Work {
    fn follow(&self) -> Option<Arc<dyn Remote>> {
        Some(self.followed.clone())
    }

    fn led(&self, queue: &Arc<Queue>) {
        Self::led(self, queue);
    }

    fn shared(&self, queue: QueueId) {
        self.followed.move_in(queue);
    }

    fn set(&self, queue: QueueId, settings: QueueSettings) {
        self.followed.set(queue, settings);
    }

    fn adopt(&self, queue: QueueId, settings: (&QueueSettings, bool), own: Vec<OwnConsumer<Ends>>) {
        self.followed.adopt(queue, settings, own);
    }

    fn reach(&self, node: catalog::NodeId) -> Option<Arc<dyn Remote>> {
        let known = self.known(NodeId(u32::try_from(node.0).ok()?))?;
        known.is_reached().then_some(known as Arc<dyn Remote>)
    }

    fn own(&self) -> Option<Incarnation> {
        Some(self.here.incarnation)
    }

    fn consumer(&self, queue: QueueId, consumer: ConsumerId) -> Option<NodeConsumer> {
        self.served_of(queue)?.consumer(consumer)
    }

    fn runs(&self, whose: Incarnation) -> bool {
        let known = self.known(node_of(whose));
        known.is_some_and(|known| known.is_up() && known.start() == start_of(whose))
    }

    fn serve_streams(&self, at: &StreamAddresses) {
        let _ = self.streams.set(at.clone());
        for node in self.all_nodes().iter().filter(|node| node.is_up()) {
            self.say_streams(node.node, true);
        }
    }

    fn stream_addresses(&self, node: catalog::NodeId) -> Option<StreamAddresses> {
        self.known(NodeId(u32::try_from(node.0).ok()?))?
            .stream_addresses()
    }

    fn say_of_group(&self, node: catalog::NodeId, stream: QueueId, said: GroupWord) -> bool {
        let Some(known) = self.known_up(node) else {
            return false;
        };
        self.here.send(known.node, Envelope::Group { stream, said });
        true
    }

    fn ask_for_chunks(&self, node: catalog::NodeId, stream: QueueId, from: u64) {
        if let Ok(node) = u32::try_from(node.0) {
            self.here.send(NodeId(node), Envelope::Lacks { stream, from });
        }
    }

    fn ask_has_all(&self, member: MemberId, stream: QueueId, upto: Index) {
        self.say_has_all(member, stream, upto, true);
    }

    fn said_leader(&self, stream: QueueId) -> Option<catalog::NodeId> {
        self.leaders.of(stream).map(|node| catalog::NodeId(node.0.into()))
    }

    fn store_offset(&self, node: catalog::NodeId, stream: QueueId, reference: &[u8], offset: u64) -> bool {
        let Some(known) = self.known_up(node) else {
            return false;
        };
        let reference = reference.into();
        let store = Envelope::Offset {
            stream,
            reference,
            offset,
        };
        self.here.ways.spare(known.node, store.encode());
        true
    }

    fn alarm(&self, reason: Option<AlarmReason>) {
        self.alarm.set(reason);
        self.say_alarm(reason);
    }

    fn reply(&self, whose: Incarnation, vhost: &str, address: &str, message: &Message<'_>) {
        if !self.runs(whose) {
            return;
        }
        let mut builder = BlockBuilder::with_capacity(message.properties.len() + message.body.len() + 600, 1);
        builder.push_message(message);
        let reply = Envelope::Reply {
            vhost: vhost.into(),
            address: address.into(),
            block: Arc::new(builder.finish(false, Default::default())),
        };
        self.here.ways.spare(node_of(whose), reply.encode());
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "work of node {}", self.here.node().0)
    }
}
