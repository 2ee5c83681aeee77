//! Several lanes, and whose turn it is.

use super::sorting::{lanes_of, rank, sort};
use super::turns::Turns;
use super::{LaneId, first_of, handed_out_of_the_gone, lane_of};
use crate::fifo::consumers::Consumers;
use crate::fifo::deliver::OVERHEAD;
use crate::fifo::discard::Leaving;
use crate::fifo::expire::Due;
use crate::fifo::{
    Effect, Ends, FifoOutcome, Lane, Loss, Losses, Origin, QueueSettings, Record, Sent, Snapshot, Sorting,
    Status,
};
use crate::store::{self, Table};
use model::{Block, DeduplicationKey, Ranges, Seq, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A lane may always hold so many bytes of bodies in memory, however many lanes there are.
const SMALLEST_SHARE: usize = 16 * 1024;

/// The lanes of a queue that sorts its messages.
pub(in crate::fifo) struct Sorted {
    pub(super) settings: Arc<QueueSettings>,
    /// In boxes, for a node of the map has space for eleven of them, and most queues have one or two.
    pub(super) lanes: BTreeMap<LaneId, Box<Lane>>,
    /// The lane in which something was done last. It always exists; others do if they hold something.
    pub(super) last: LaneId,
    /// Lanes with ready messages.
    backlog: BTreeSet<LaneId>,
    /// Whose turn it is among them.
    turns: Turns,
    /// How many messages came since the start.
    came: u64,
    /// How many messages of lanes that are gone went to consumers, less those that came back.
    handed: u64,
    /// What those of them lost, and what did not come in.
    losses: Losses,
    /// Ready messages of all lanes.
    ready: u64,
    /// The sum of the lengths of their bodies.
    ready_bytes: u64,
    /// In which lane a message with this deduplication key was seen last; it may be gone.
    pub(super) keys: BTreeMap<DeduplicationKey, LaneId>,
    /// Lanes that are gone have used the numbers below: none is used twice.
    pub(super) floor: Seq,
    /// Bodies of all lanes may take so many bytes of memory.
    budget: usize,
    /// The lanes of the stores under way, in order.
    stores: VecDeque<LaneId>,
    /// Lanes whose part of a checkpoint is not ready yet.
    pub(super) unwritten: BTreeSet<LaneId>,
    /// The log is being replayed.
    replaying: bool,
    /// When something is due in lanes, in milliseconds since the Unix epoch, and the same by lane.
    alarms: BTreeSet<(u64, LaneId)>,
    alarm_of: BTreeMap<LaneId, u64>,
}

impl Sorted {
    /// What there is becomes the first lane.
    pub(super) fn of(lane: Lane) -> Self {
        let mut lanes = Self {
            settings: lane.settings.clone(),
            last: 0,
            backlog: BTreeSet::new(),
            turns: Turns::default(),
            came: lane.store.next() - 1,
            handed: 0,
            losses: Losses::default(),
            ready: 0,
            ready_bytes: 0,
            floor: 0,
            keys: BTreeMap::new(),
            budget: lane.store.budget(),
            replaying: lane.store.is_replaying(),
            stores: std::iter::repeat_n(0, lane.store.stores()).collect(),
            unwritten: lane.store.is_checkpointing().then_some(0).into_iter().collect(),
            alarms: BTreeSet::new(),
            alarm_of: BTreeMap::new(),
            lanes: BTreeMap::from([(0, Box::new(lane))]),
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

    pub(super) fn status(&self) -> Status {
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
            sum.handed += one.handed;
            sum.oldest_ms = match (sum.oldest_ms, one.oldest_ms) {
                (0, known) | (known, 0) => known,
                (a, b) => a.min(b),
            };
        }
        (sum.ready, sum.ready_bytes) = (self.ready, self.ready_bytes);
        sum.handed += self.handed;
        sum.next_seq = self.came + 1;
        sum
    }

    pub(super) fn losses(&self) -> Losses {
        let mut sum = self.losses;
        self.lanes.values().for_each(|lane| sum.add_all(&lane.losses()));
        sum
    }

    pub(super) fn lost(&mut self, loss: Loss, count: u64) {
        self.losses.add(loss, count);
    }

    pub(super) fn replay(&mut self) {
        self.replaying = true;
        // What a lane orders while it is replayed nobody carries out, and its answer would be waited for for ever.
        self.lanes.values_mut().for_each(|lane| lane.store.replay());
    }

    pub(super) fn follow(&mut self) {
        self.replaying = false;
        self.lanes.values_mut().for_each(|lane| lane.store.replayed());
    }

    pub(super) fn end_replay(&mut self, mut end: impl FnMut(&mut Lane)) {
        self.replaying = false;
        for lane in self.lanes.values_mut() {
            end(lane);
            // What is not on record here, but taken for it since a lane has gone, others may not know.
            if self.floor > 0 && self.settings.replicated {
                lane.reserved_below = 0;
            }
        }
        let all: Vec<LaneId> = self.lanes.keys().copied().collect();
        all.into_iter().for_each(|id| self.drop_if_idle(id));
        self.count();
        self.collect_keys();
    }

    pub(super) fn apply<E: Ends>(&mut self, id: LaneId, record: Record, outcome: &mut FifoOutcome<E>) {
        if matches!(record, Record::Enqueued { .. }) {
            self.adopt(id);
        }
        if let Some(lane) = self.lanes.get_mut(&id) {
            let effects = outcome.effects.len();
            lane.apply(record, outcome);
            self.note_stores(id, &outcome.effects[effects..]);
            let left = std::mem::replace(&mut self.last, id);
            self.drop_if_idle(left);
        }
    }

    pub(super) fn restore(&mut self, id: LaneId, snapshot: Snapshot, table: &Table) {
        self.make(id, 0);
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.restore(snapshot, table);
        }
    }

    /// Stores that a lane has ordered are answered to it.
    fn note_stores<E: Ends>(&mut self, id: LaneId, effects: &[Effect<E>]) {
        for effect in effects {
            if let Effect::Store(store::Effect::Store { .. }) = effect {
                self.stores.push_back(id);
            }
        }
    }

    /// Remembers when something is due in the lane.
    fn note_alarm(&mut self, id: LaneId) {
        let alarm = self.get(id).map(Lane::wakes_at_ms);
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

    /// Makes the lane if there is none. Its numbers begin above `floor`.
    fn make(&mut self, id: LaneId, floor: Seq) {
        if self.lanes.contains_key(&id) {
            return;
        }
        let mut lane = Lane::new(self.settings.clone());
        lane.store.start_at(first_of(id) + floor + 1);
        if self.replaying {
            lane.store.replay();
        }
        lane.dispatch.cursor = lane.store.next();
        lane.leaving = Leaving::after(first_of(id));
        lane.store.set_budget(self.share(self.lanes.len() + 1));
        self.lanes.insert(id, Box::new(lane));
    }

    /// Makes the lane of messages that another machine has numbered. It may have kept a lane that was dropped here: so the floor
    /// says nothing of the numbers, and what the lane hands out next may be below a number that went with the lane here.
    fn adopt(&mut self, id: LaneId) {
        if self.lanes.contains_key(&id) {
            return;
        }
        self.make(id, 0);
        let below = handed_out_of_the_gone(id, self.floor);
        if let Some(lane) = self.lanes.get_mut(&id).filter(|_| self.settings.replicated) {
            lane.handed_below = below;
        }
    }

    /// Groups come and go: a lane without messages is not kept, unless a checkpoint waits for it.
    fn drop_if_idle(&mut self, id: LaneId) {
        if id != self.last
            && !self.unwritten.contains(&id)
            && self.get(id).is_some_and(Lane::is_idle)
            && let Some(lane) = self.lanes.remove(&id)
        {
            self.note_alarm(id);
            self.handed += lane.dispatch.handed;
            self.losses.add_all(&lane.losses());
            self.floor = self.floor.max(lane.store.next() - first_of(id));
        }
    }

    /// A lane is not there any more, whatever is in it.
    pub(super) fn forget(&mut self, id: LaneId) {
        self.lanes.remove(&id);
        self.backlog.remove(&id);
        self.note_alarm(id);
    }

    /// All of them.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.values().map(Box::as_ref)
    }

    pub(super) fn get(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get(&id).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, id: LaneId) -> Option<&mut Lane> {
        self.lanes.get_mut(&id).map(Box::as_mut)
    }

    pub(super) fn last(&self) -> LaneId {
        self.last
    }

    pub(super) fn ready(&self) -> u64 {
        self.ready
    }

    pub(super) fn ready_bytes(&self) -> u64 {
        self.ready_bytes
    }

    pub(super) fn wakes_at_ms(&self) -> u64 {
        self.alarms.first().map_or(u64::MAX, |(at_ms, _)| *at_ms)
    }

    pub(super) fn configure(&mut self, settings: Arc<QueueSettings>) {
        self.settings = settings;
    }

    /// The lane that ordered the oldest store under way.
    pub(super) fn next_stored(&mut self) -> Option<LaneId> {
        self.stores.pop_front()
    }

    /// The lane that has to give if there is too much: where the head is, which like in RabbitMQ is the highest priority's; of
    /// groups the one with most bytes.
    pub(super) fn head(&self) -> Option<LaneId> {
        let bytes = |id: &&LaneId| self.lanes.get(id).map(|lane| lane.dispatch.ready_bytes);
        match self.settings.sorting {
            Sorting::FairKey(_) => self.backlog.iter().max_by_key(bytes).copied(),
            _ => self.highest(),
        }
    }

    /// The lane of the highest priority that has ready messages.
    fn highest(&self) -> Option<LaneId> {
        match self.settings.sorting {
            Sorting::Levels => self
                .backlog
                .iter()
                .max_by_key(|id| rank(&Sorting::Levels, **id))
                .copied(),
            _ => self.backlog.last().copied(),
        }
    }

    /// All lanes, the highest first.
    pub(super) fn in_order(&self) -> Vec<(LaneId, &Lane)> {
        let mut lanes: Vec<_> = self.lanes.iter().map(|(id, lane)| (*id, &**lane)).collect();
        lanes.sort_by_key(|(id, _)| std::cmp::Reverse(rank(&self.settings.sorting, *id)));
        lanes
    }

    /// The block's messages become contents of their lanes. True if there is a record of it.
    pub(in crate::fifo) fn enqueue<E: Ends>(
        &mut self,
        block: &Arc<Block>,
        origin: Option<Origin>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) -> bool {
        self.came += block.len() as u64;
        let mut durably = false;
        let lanes = lanes_of(&self.settings.sorting, block);
        for (id, part) in sort(&self.settings.sorting, &lanes, block) {
            let sent = origin.map(|origin| Sent::of_lane(origin, id, &lanes));
            self.open(id, outcome);
            self.at(id, outcome, |lane, outcome| {
                durably |= lane.enqueue(part.clone(), 0, sent, now, outcome);
                lane.relieve();
            });
            if self.settings.deduplicates {
                self.note_keys(id, &part);
            }
        }
        durably
    }

    /// Hands out what is ready as long as somebody takes it and a lane has it in memory.
    pub(in crate::fifo) fn deliver<E: Ends>(
        &mut self,
        consumers: &mut Consumers<E>,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut stuck = 0;
        while stuck < self.backlog.len() && consumers.want() {
            let is_fair = matches!(self.settings.sorting, Sorting::FairKey(_));
            let turn = match is_fair {
                true => self.turns.next(&self.backlog),
                false => self.highest().map(|id| (id, u64::MAX)),
            };
            let Some((id, allowance)) = turn else { break };
            let (before, bytes) = (self.ready, self.ready_bytes);
            self.at(id, outcome, |lane, outcome| {
                let elsewhere = before - lane.dispatch.ready;
                lane.deliver(consumers, allowance, elsewhere, outcome);
            });
            stuck = if self.ready < before { 0 } else { stuck + 1 };
            let went = before.saturating_sub(self.ready);
            let used = bytes.saturating_sub(self.ready_bytes) + went * OVERHEAD;
            match is_fair {
                true => self.turns.used(used, stuck > 0),
                // A lower priority does not overtake one that is being read from disk.
                false if stuck > 0 => break,
                false => {}
            }
        }
    }

    /// Has the lanes carry out what is due.
    pub(super) fn due<E: Ends>(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>) -> Due {
        let mut sum = Due::default();
        let alarms = self.alarms.iter().take_while(|(at_ms, _)| *at_ms <= now.0);
        let due: Vec<LaneId> = alarms.map(|(_, id)| *id).collect();
        for id in due {
            self.at(id, outcome, |lane, outcome| {
                let one = lane.due(now, outcome);
                sum.gone |= one.gone;
                sum.again |= one.again;
            });
        }
        sum
    }

    pub(super) fn clear(&mut self) {
        self.lanes.values_mut().for_each(|lane| lane.clear());
        self.unwritten.clear();
        self.stores.clear();
        self.backlog.clear();
        (self.ready, self.ready_bytes) = (0, 0);
        let all: Vec<LaneId> = self.lanes.keys().copied().collect();
        for id in all {
            self.note_alarm(id);
            self.drop_if_idle(id);
        }
    }

    /// Makes the lane if there is none; the others have less memory then.
    fn open<E: Ends>(&mut self, id: LaneId, outcome: &mut FifoOutcome<E>) {
        let lanes = self.lanes.len();
        let memory = self.share(lanes + 1);
        // Before the lane exists: sharing visits all lanes and drops empty ones on its way.
        if memory < self.share(lanes) && !self.lanes.contains_key(&id) {
            self.share_out(memory, outcome);
        }
        self.make(id, self.floor);
    }

    pub(super) fn shrink<E: Ends>(&mut self, memory: usize, outcome: &mut FifoOutcome<E>) {
        self.budget = memory;
        self.share_out(self.share(self.lanes.len()), outcome);
    }

    fn share_out<E: Ends>(&mut self, memory: usize, outcome: &mut FifoOutcome<E>) {
        self.each(outcome, |lane, _| {
            lane.store.shrink(memory, lane.dispatch.demand());
        });
    }

    pub(super) fn each_part<E: Ends>(
        &mut self,
        seqs: &Ranges,
        outcome: &mut FifoOutcome<E>,
        mut then: impl FnMut(&mut Lane, &Ranges, &mut FifoOutcome<E>),
    ) {
        let mut parts: Vec<(LaneId, Ranges)> = Vec::new();
        for (first, last) in seqs.spans() {
            match parts.last_mut().filter(|(id, _)| *id == lane_of(first)) {
                Some((_, part)) => part.push_span(first, last),
                None => parts.push((lane_of(first), Ranges::span(first, last))),
            }
        }
        for (id, part) in parts {
            self.at(id, outcome, |lane, outcome| then(lane, &part, outcome));
        }
    }

    pub(super) fn each<E: Ends>(
        &mut self,
        outcome: &mut FifoOutcome<E>,
        mut then: impl FnMut(&mut Lane, &mut FifoOutcome<E>),
    ) {
        let ids: Vec<LaneId> = self.lanes.keys().copied().collect();
        for id in ids {
            self.at(id, outcome, &mut then);
        }
    }

    /// Does something in one lane, and notes what it means for all. Nothing happens if there is no such lane.
    pub(super) fn at<E: Ends>(
        &mut self,
        id: LaneId,
        outcome: &mut FifoOutcome<E>,
        then: impl FnOnce(&mut Lane, &mut FifoOutcome<E>),
    ) {
        let Some(lane) = self.lanes.get_mut(&id) else {
            return;
        };
        let (ready, bytes) = (lane.dispatch.ready, lane.dispatch.ready_bytes);
        let (effects, promises) = (outcome.effects.len(), outcome.promises.len());
        then(lane, outcome);
        lane.pass_on(outcome);
        self.ready = self.ready - ready + lane.dispatch.ready;
        self.ready_bytes = self.ready_bytes.saturating_sub(bytes) + lane.dispatch.ready_bytes;
        if lane.dispatch.ready == 0 {
            self.backlog.remove(&id);
        } else if self.backlog.insert(id) {
            self.turns.join(id);
        }
        self.note_stores(id, &outcome.effects[effects..]);
        self.note_alarm(id);
        self.collect_checkpoints(id, promises, outcome);
        let left = std::mem::replace(&mut self.last, id);
        self.drop_if_idle(left);
    }
}
