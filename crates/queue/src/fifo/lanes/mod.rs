//! A classic queue: one fifo, or several of them, its lanes, that share the consumers.
//!
//! A queue that sorts its messages (by priority, or by the group that shall be treated fairly) has a lane for each kind.
//! Every lane is a whole fifo with contents, paging and limits of its own. What ties them together is that a message's number
//! carries its lane in the upper 16 bits: acknowledgements, records and pages find their lane by it, so nothing else has to
//! be journaled, and replay needs no settings. The numbers of a plain queue are those of lane 0.

mod checkpoints;
mod look;
mod once;
mod requests;
mod sorting;
mod turns;

use super::{Fifo, FifoOutcome, Losses, QueueSettings, Record, Request, Snapshot, Status};
use crate::fifo::discard::Leaving;
use crate::fifo::{Effect, Ends};
use crate::store::{LogPlace, Place, Table};
use checkpoints::Unwritten;
use model::Sorting;
use model::{DeduplicationKey, Index, Machine, Seq, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use turns::Turns;

/// Which lane; the upper bits of its messages' numbers.
type LaneId = u16;

/// How far a lane's number stands to the left. 2^48 messages a lane are nine years at a million a second.
const LANE_SHIFT: u32 = 48;

/// A lane may always hold so many bytes of bodies in memory, however many lanes there are.
const SMALLEST_SHARE: usize = 16 * 1024;

fn lane_of(seq: Seq) -> LaneId {
    (seq >> LANE_SHIFT) as LaneId
}

fn first_of(lane: LaneId) -> Seq {
    Seq::from(lane) << LANE_SHIFT
}

/// The machine of a classic queue.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all queues are plain, and theirs is the road that must be short"
)]
pub enum Classic<E: Ends> {
    /// Messages leave in the order in which they came.
    Plain(Fifo<E>),
    /// Messages are sorted into lanes.
    Sorted(Box<Lanes<E>>),
}

impl<E: Ends> Classic<E> {
    /// An empty queue. To bring one back, `apply` its records and then call [`Classic::recovered`].
    pub fn new(settings: QueueSettings) -> Self {
        match settings.sorting {
            Sorting::Arrival => Self::Plain(Fifo::new(settings)),
            _ => Self::Sorted(Box::new(Lanes::of(Fifo::new(settings)))),
        }
    }

    /// Ends replay: see [`Fifo::recovered`].
    pub fn recovered(&mut self, closed: bool) {
        match self {
            Self::Plain(fifo) => fifo.recovered(closed),
            Self::Sorted(lanes) => lanes.recovered(closed),
        }
    }

    /// The queue's numbers.
    pub fn status(&self) -> Status {
        match self {
            Self::Plain(fifo) => fifo.status(),
            Self::Sorted(lanes) => lanes.status(),
        }
    }

    /// The log is replayed from now on, until [`Classic::recovered`] or [`Classic::follow`]: applying records orders nothing.
    pub fn replay(&mut self) {
        match self {
            Self::Plain(fifo) => fifo.store.replay(),
            Self::Sorted(lanes) => lanes.replaying = true,
        }
    }

    /// Ends replay for a queue that goes on applying what is decided elsewhere: see [`Fifo::follow`].
    pub fn follow(&mut self) {
        match self {
            Self::Plain(fifo) => fifo.follow(),
            Self::Sorted(lanes) => lanes.follow(),
        }
    }

    /// The record that brought messages `first..` was appended to the log, and stands there.
    #[inline]
    pub fn appended(&mut self, first: Seq, at: LogPlace) {
        match self {
            Self::Plain(fifo) => fifo.appended(first, at),
            Self::Sorted(lanes) => {
                if let Some(lane) = lanes.lanes.get_mut(&lane_of(first)) {
                    lane.appended(first, at);
                }
            }
        }
    }

    /// When the queue wants to be turned: see [`Fifo::wakes_at_ms`].
    pub fn wakes_at_ms(&self) -> u64 {
        match self {
            Self::Plain(fifo) => fifo.wakes_at_ms(),
            Self::Sorted(lanes) => lanes.alarms.first().map_or(u64::MAX, |(at_ms, _)| *at_ms),
        }
    }

    /// All places in the queue's segments that hold messages, each once.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let (plain, lanes) = match self {
            Self::Plain(fifo) => (Some(fifo), None),
            Self::Sorted(lanes) => (None, Some(lanes.lanes.values())),
        };
        plain
            .into_iter()
            .chain(lanes.into_iter().flatten())
            .flat_map(Fifo::places)
    }

    /// The queue has lanes from now on; what it holds stands in lane 0.
    fn sort(&mut self) -> &mut Lanes<E> {
        if let Self::Plain(fifo) = self {
            let fifo = std::mem::replace(fifo, Fifo::new(QueueSettings::default()));
            *self = Self::Sorted(Box::new(Lanes::of(fifo)));
        }
        match self {
            Self::Sorted(lanes) => lanes,
            Self::Plain(_) => unreachable!("it was just given lanes"),
        }
    }
}

impl<E: Ends> Machine for Classic<E> {
    type Request = Request<E>;
    type Record = Record;
    type Effect = Effect<E>;

    fn handle(&mut self, now: Timestamp, request: Request<E>, outcome: &mut FifoOutcome<E>) {
        if let (Self::Plain(_), Request::Configure { settings }) = (&*self, &request)
            && settings.sorting != Sorting::Arrival
        {
            self.sort();
        }
        match self {
            Self::Plain(fifo) => fifo.handle(now, request, outcome),
            Self::Sorted(lanes) => lanes.handle(now, request, outcome),
        }
    }

    fn apply(&mut self, index: Index, record: Record, outcome: &mut FifoOutcome<E>) {
        let lane = lane_of(record.first());
        match self {
            Self::Plain(fifo) if lane == 0 => fifo.apply(index, record, outcome),
            _ => self.sort().apply(lane, index, record, outcome),
        }
    }
}

impl<E: Ends> std::fmt::Debug for Classic<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Classic")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// The lanes of a queue that sorts its messages.
pub struct Lanes<E: Ends> {
    settings: QueueSettings,
    lanes: BTreeMap<LaneId, Fifo<E>>,
    /// The lane that has the consumers and those who wait for an answer. It always exists.
    hand: LaneId,
    /// Lanes with ready messages.
    backlog: BTreeSet<LaneId>,
    /// Whose turn it is among them.
    turns: Turns,
    /// How many messages came since the start.
    came: u64,
    /// How many messages of lanes that are gone went to consumers, less those that came back.
    handed: u64,
    /// What those of them lost, and what was refused before it had a lane.
    losses: Losses,
    /// Ready messages of all lanes.
    ready: u64,
    /// The sum of the lengths of their bodies.
    ready_bytes: u64,
    /// In which lane a message with this deduplication key was seen last; it may be gone.
    keys: BTreeMap<DeduplicationKey, LaneId>,
    /// Lanes that are gone have used the numbers below: none is used twice.
    floor: Seq,
    /// Bodies of all lanes may take so many bytes of memory.
    budget: usize,
    /// The lanes of the stores under way, in order.
    stores: VecDeque<LaneId>,
    unwritten: Unwritten,
    /// The log is being replayed.
    replaying: bool,
    /// When lanes want to be turned, in milliseconds since the Unix epoch, and the same by lane.
    alarms: BTreeSet<(u64, LaneId)>,
    alarm_of: BTreeMap<LaneId, u64>,
}

impl<E: Ends> Lanes<E> {
    fn of(mut fifo: Fifo<E>) -> Self {
        fifo.dispatch.allowance = 0;
        let mut lanes = Self {
            settings: fifo.settings.clone(),
            hand: 0,
            backlog: BTreeSet::new(),
            turns: Turns::default(),
            came: fifo.store.next() - 1,
            handed: 0,
            losses: Losses::default(),
            ready: 0,
            ready_bytes: 0,
            floor: 0,
            keys: BTreeMap::new(),
            budget: fifo.store.budget(),
            replaying: fifo.store.is_replaying(),
            stores: VecDeque::new(),
            unwritten: Unwritten::new(),
            alarms: BTreeSet::new(),
            alarm_of: BTreeMap::new(),
            lanes: BTreeMap::from([(0, fifo)]),
        };
        lanes.count();
        lanes.collect_keys();
        lanes
    }

    /// Counts anew what is ready.
    fn count(&mut self) {
        (self.ready, self.ready_bytes) = (0, 0);
        let ids: Vec<LaneId> = self.lanes.keys().copied().collect();
        ids.into_iter().for_each(|id| self.note_alarm(id));
        for (id, lane) in &self.lanes {
            self.ready += lane.dispatch.ready;
            self.ready_bytes += lane.dispatch.ready_bytes;
            if lane.dispatch.ready > 0 {
                self.backlog.insert(*id);
                self.turns.join(*id);
            }
        }
    }

    fn status(&self) -> Status {
        let mut sum = Status::default();
        for lane in self.lanes.values() {
            let one = lane.status();
            sum.unacked += one.unacked;
            sum.unacked_bytes += one.unacked_bytes;
            sum.persistent += one.persistent;
            sum.persistent_bytes += one.persistent_bytes;
            sum.memory += one.memory;
            sum.paged += one.paged;
            sum.paged_bytes += one.paged_bytes;
            sum.consumers += one.consumers;
            sum.handed += one.handed;
            sum.oldest_ms = match (sum.oldest_ms, one.oldest_ms) {
                (0, known) | (known, 0) => known,
                (a, b) => a.min(b),
            };
            sum.active = sum.active.or(one.active);
        }
        (sum.ready, sum.ready_bytes) = (self.ready, self.ready_bytes);
        sum.handed += self.handed;
        sum.next_seq = self.came + 1;
        sum
    }

    pub(super) fn losses(&self) -> Losses {
        let mut sum = self.losses;
        self.lanes.values().for_each(|lane| sum.add_all(&lane.losses));
        sum
    }

    pub(super) fn lost(&self) -> u64 {
        let lanes = self.lanes.values().map(|lane| lane.losses.sum());
        self.losses.sum() + lanes.sum::<u64>()
    }

    fn follow(&mut self) {
        self.replaying = false;
        self.lanes.values_mut().for_each(Fifo::follow);
    }

    fn recovered(&mut self, closed: bool) {
        self.replaying = false;
        for lane in self.lanes.values_mut() {
            lane.recovered(closed);
        }
        let idle: Vec<LaneId> = self.lanes.keys().copied().filter(|id| *id != self.hand).collect();
        idle.into_iter().for_each(|id| self.drop_if_idle(id));
        self.count();
        self.collect_keys();
    }

    fn apply(&mut self, id: LaneId, index: Index, record: Record, outcome: &mut FifoOutcome<E>) {
        if matches!(record, Record::Enqueued { .. }) {
            self.make(id);
        }
        if let Some(lane) = self.lanes.get_mut(&id) {
            let effects = outcome.effects.len();
            lane.apply(index, record, outcome);
            self.note_stores(id, &outcome.effects[effects..]);
        }
    }

    fn restore(&mut self, id: LaneId, snapshot: Snapshot, table: &Table) {
        self.make(id);
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.restore(snapshot, table);
        }
    }

    /// Stores that a lane has ordered are answered to it.
    fn note_stores(&mut self, id: LaneId, effects: &[Effect<E>]) {
        for effect in effects {
            if let Effect::Store(crate::store::Effect::Store { .. }) = effect {
                self.stores.push_back(id);
            }
        }
    }

    /// Remembers when the lane wants to be turned.
    fn note_alarm(&mut self, id: LaneId) {
        let alarm = self.lanes.get(&id).map(Fifo::wakes_at_ms);
        let alarm = alarm.filter(|at_ms| *at_ms < u64::MAX);
        if self.alarm_of.get(&id).copied() == alarm {
            return;
        }
        let before = match alarm {
            Some(at_ms) => self.alarm_of.insert(id, at_ms),
            None => self.alarm_of.remove(&id),
        };
        before.map(|at_ms| self.alarms.remove(&(at_ms, id)));
        alarm.map(|at_ms| self.alarms.insert((at_ms, id)));
    }

    /// Each lane's part of the memory if there are so many.
    fn share(&self, lanes: usize) -> usize {
        (self.budget / lanes.max(1).next_power_of_two()).max(SMALLEST_SHARE.min(self.budget))
    }

    /// Makes the lane if there is none.
    fn make(&mut self, id: LaneId) {
        if self.lanes.contains_key(&id) {
            return;
        }
        let mut lane = Fifo::new(self.settings.clone());
        lane.store.start_at(first_of(id) + self.floor + 1);
        if self.replaying {
            lane.store.replay();
        }
        lane.dispatch.cursor = lane.store.next();
        lane.dispatch.allowance = 0;
        lane.leaving = Leaving::after(first_of(id));
        lane.store.set_budget(self.share(self.lanes.len() + 1));
        self.lanes.insert(id, lane);
    }

    /// Groups come and go: a lane without messages is not kept.
    fn drop_if_idle(&mut self, id: LaneId) {
        if self.lanes.get(&id).is_some_and(Fifo::is_idle)
            && let Some(lane) = self.lanes.remove(&id)
        {
            self.note_alarm(id);
            self.handed += lane.dispatch.handed;
            self.losses.add_all(&lane.losses);
            self.floor = self.floor.max(lane.store.next() - first_of(id));
        }
    }
}
