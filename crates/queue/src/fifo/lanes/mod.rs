//! One lane or several. A queue that sorts its messages (by priority, or by the group that shall be treated fairly) has
//! a lane for each kind, all others have one and pay for no more.
//!
//! Every lane has contents and paging of its own. What ties them together is that a message's number carries its lane
//! in the upper 16 bits: acknowledgements, records and pages find their lane by it, so nothing else has to be
//! journaled, and replay needs no settings. The numbers of a plain queue are those of lane 0.

mod checkpoints;
mod keys;
mod look;
mod sorted;
mod sorting;
mod turns;

pub(super) use sorted::Sorted;

use self::sorting::has_levels;
use super::expire::Due;
use super::reattach::RESERVED;
use super::{
    DropReason, Ends, FifoOutcome, Lane, Loss, Losses, QueueSettings, Record, Snapshot, Sorting, Status,
};
use crate::store::Table;
use model::{Block, DeduplicationKey, Ranges, Seq, Timestamp};
use std::sync::Arc;

/// Which lane; the upper bits of its messages' numbers.
pub(super) type LaneId = u16;

/// How far a lane's number stands to the left. 2^48 messages a lane are nine years at a million a second.
pub const LANE_SHIFT: u32 = 48;

pub(super) fn lane_of(seq: Seq) -> LaneId {
    (seq >> LANE_SHIFT) as LaneId
}

fn first_of(lane: LaneId) -> Seq {
    Seq::from(lane) << LANE_SHIFT
}

/// Below which number of a lane that is gone messages may have been handed out, if lanes that are gone have used no numbers
/// above `floor`.
fn handed_out_of_the_gone(lane: LaneId, floor: Seq) -> Seq {
    match floor {
        0 => 0,
        floor => first_of(lane) + floor + RESERVED,
    }
}

/// A queue's lanes.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all queues have one lane, and theirs is the path that must be short"
)]
pub(super) enum Lanes {
    /// Messages leave in the order in which they came.
    One(Lane),
    /// Messages are sorted.
    Sorted(Box<Sorted>),
}

impl Lanes {
    /// Empty ones.
    pub(super) fn new(settings: &Arc<QueueSettings>) -> Self {
        let mut lanes = Self::One(Lane::new(settings.clone()));
        if settings.sorting.sorts_always() {
            lanes.sort();
        }
        lanes
    }

    /// There are several from the first block on that brings a message of another level than the usual one, in a queue that sorts
    /// by levels.
    #[inline]
    pub(super) fn sort_if_needed<E: Ends>(&mut self, block: &Block, outcome: &mut FifoOutcome<E>) {
        let Self::One(lane) = self else { return };
        if lane.settings.sorting == Sorting::Levels && has_levels(block) {
            self.part(outcome);
        }
    }

    /// There are several from now on, while messages come and go. What the lane has ordered until then is passed on first:
    /// several lanes note what they order when they pass it on, and an order that is noted twice is waited for without end.
    fn part<E: Ends>(&mut self, outcome: &mut FifoOutcome<E>) -> &mut Sorted {
        self.pass_on(outcome);
        self.sort()
    }

    /// There are several from now on; what there is stands in lane 0.
    fn sort(&mut self) -> &mut Sorted {
        if let Self::One(lane) = self {
            let empty = Lane::new(lane.settings.clone());
            *self = Self::Sorted(Box::new(Sorted::of(std::mem::replace(lane, empty))));
        }
        match self {
            Self::Sorted(lanes) => lanes,
            Self::One(_) => unreachable!("it was just given several"),
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane> {
        let (one, several) = match self {
            Self::One(lane) => (Some(lane), None),
            Self::Sorted(lanes) => (None, Some(lanes.lanes())),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    /// A lane, for what changes nothing that [`Lanes::at`] looks after.
    #[inline]
    pub(super) fn get_mut(&mut self, id: LaneId) -> Option<&mut Lane> {
        match self {
            Self::One(lane) => (id == 0).then_some(lane),
            Self::Sorted(lanes) => lanes.get_mut(id),
        }
    }

    /// A lane, to look at.
    pub(super) fn get(&self, id: LaneId) -> Option<&Lane> {
        match self {
            Self::One(lane) => (id == 0).then_some(lane),
            Self::Sorted(lanes) => lanes.get(id),
        }
    }

    /// Does something in one lane. Nothing happens if there is no such lane: then it is about messages that are gone.
    #[inline]
    pub(super) fn at<E: Ends>(
        &mut self,
        id: LaneId,
        outcome: &mut FifoOutcome<E>,
        then: impl FnOnce(&mut Lane, &mut FifoOutcome<E>),
    ) {
        match self {
            Self::One(lane) if id == 0 => then(lane, outcome),
            Self::One(_) => {}
            Self::Sorted(lanes) => {
                lanes.at(id, outcome, then);
            }
        }
    }

    /// Does something in all lanes.
    pub(super) fn each<E: Ends>(
        &mut self,
        outcome: &mut FifoOutcome<E>,
        mut then: impl FnMut(&mut Lane, &mut FifoOutcome<E>),
    ) {
        match self {
            Self::One(lane) => then(lane, outcome),
            Self::Sorted(lanes) => lanes.each(outcome, then),
        }
    }

    /// Gives each lane its part of the numbers.
    #[inline]
    pub(super) fn each_part<E: Ends>(
        &mut self,
        seqs: &Ranges,
        outcome: &mut FifoOutcome<E>,
        mut then: impl FnMut(&mut Lane, &Ranges, &mut FifoOutcome<E>),
    ) {
        match self {
            Self::One(lane) => then(lane, seqs, outcome),
            Self::Sorted(lanes) => lanes.each_part(seqs, outcome, then),
        }
    }

    /// How many messages are ready.
    #[inline]
    pub(super) fn ready(&self) -> u64 {
        match self {
            Self::One(lane) => lane.dispatch.ready,
            Self::Sorted(lanes) => lanes.ready(),
        }
    }

    /// The sum of the lengths of their bodies.
    #[inline]
    pub(super) fn ready_bytes(&self) -> u64 {
        match self {
            Self::One(lane) => lane.dispatch.ready_bytes,
            Self::Sorted(lanes) => lanes.ready_bytes(),
        }
    }

    /// When something is due in one of them, in milliseconds since the Unix epoch; `u64::MAX` for never.
    #[inline]
    pub(super) fn wakes_at_ms(&self) -> u64 {
        match self {
            Self::One(lane) => lane.wakes_at_ms(),
            Self::Sorted(lanes) => lanes.wakes_at_ms(),
        }
    }

    /// Carries out what is due.
    pub(super) fn due<E: Ends>(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>) -> Due {
        match self {
            Self::One(lane) => lane.due(now, outcome),
            Self::Sorted(lanes) => lanes.due(now, outcome),
        }
    }

    /// True if a message with this deduplication key is there.
    pub(super) fn has(&self, key: DeduplicationKey) -> bool {
        match self {
            Self::One(lane) => lane.has(key),
            Self::Sorted(lanes) => lanes.has(key),
        }
    }

    /// Drops ready messages where the queue's head is: at most `count`, and no more than it takes to get rid of `bytes`
    /// of bodies. Returns how many; there may be more to drop.
    pub(super) fn drop_head<E: Ends>(&mut self, count: u64, bytes: u64, outcome: &mut FifoOutcome<E>) -> u64 {
        let reason = DropReason::MaxLength;
        match self {
            Self::One(lane) => lane.drop_ready(count, bytes, reason, outcome),
            Self::Sorted(lanes) => {
                let Some(id) = lanes.head() else { return 0 };
                let mut dropped = 0;
                lanes.at(id, outcome, |lane, outcome| {
                    dropped = lane.drop_ready(count, bytes, reason, outcome);
                });
                dropped
            }
        }
    }

    /// Messages that the queue refused go to the dead-letter exchange.
    pub(super) fn dead_letter_refused<E: Ends>(
        &mut self,
        block: &Arc<Block>,
        refused: &Ranges,
        outcome: &mut FifoOutcome<E>,
    ) {
        let any = match self {
            Self::One(_) => 0,
            Self::Sorted(lanes) => lanes.last(),
        };
        self.at(any, outcome, |lane, outcome| {
            lane.dead_letter_refused(block, refused, outcome);
        });
    }

    /// So many messages did not come in.
    pub(super) fn lost(&mut self, loss: Loss, count: u64) {
        match self {
            Self::One(lane) => lane.lost(loss, count),
            Self::Sorted(lanes) => lanes.lost(loss, count),
        }
    }

    /// What was lost since the start.
    pub(super) fn losses(&self) -> Losses {
        match self {
            Self::One(lane) => lane.losses(),
            Self::Sorted(lanes) => lanes.losses(),
        }
    }

    /// The sum of it.
    #[inline]
    pub(super) fn lost_sum(&self) -> u64 {
        match self {
            Self::One(lane) => lane.lost_sum(),
            Self::Sorted(lanes) => lanes.losses().sum(),
        }
    }

    /// New settings are in force.
    pub(super) fn configure<E: Ends>(&mut self, settings: &Arc<QueueSettings>, outcome: &mut FifoOutcome<E>) {
        if settings.sorting.sorts_always() {
            self.part(outcome);
        }
        if let Self::Sorted(lanes) = self {
            lanes.configure(settings.clone());
        }
        self.each(outcome, |lane, outcome| lane.configure(settings.clone(), outcome));
    }

    /// Bodies may take so many bytes of memory.
    pub(super) fn shrink<E: Ends>(&mut self, memory: usize, outcome: &mut FifoOutcome<E>) {
        match self {
            Self::One(lane) => lane.store.shrink(memory, lane.dispatch.demand()),
            Self::Sorted(lanes) => lanes.shrink(memory, outcome),
        }
    }

    /// Pages out what memory is too small for; of several lanes each has done so when it took its messages.
    #[inline]
    pub(super) fn relieve(&mut self) {
        if let Self::One(lane) = self {
            lane.relieve();
        }
    }

    /// The lane that ordered the oldest store has its answer.
    pub(super) fn stored<E: Ends>(&mut self, outcome: &mut FifoOutcome<E>, then: impl FnOnce(&mut Lane)) {
        let id = match self {
            Self::One(_) => Some(0),
            Self::Sorted(lanes) => lanes.next_stored(),
        };
        if let Some(id) = id {
            self.at(id, outcome, |lane, _| then(lane));
        }
    }

    /// Passes the stores' orders on to the host.
    #[inline]
    pub(super) fn pass_on<E: Ends>(&mut self, outcome: &mut FifoOutcome<E>) {
        // Several lanes do so one by one, because what is stored comes back without a number.
        if let Self::One(lane) = self {
            lane.pass_on(outcome);
        }
    }

    /// Makes a record's change.
    pub(super) fn apply<E: Ends>(&mut self, record: Record, outcome: &mut FifoOutcome<E>) {
        let id = lane_of(record.first());
        match self {
            Self::One(lane) if id == 0 => lane.apply(record, outcome),
            _ => self.part(outcome).apply(id, record, outcome),
        }
    }

    fn restore(&mut self, snapshot: Snapshot, table: &Table) {
        let id = lane_of(snapshot.next);
        match self {
            Self::One(lane) if id == 0 => lane.restore(snapshot, table),
            _ => self.sort().restore(id, snapshot, table),
        }
    }

    /// Lanes that are gone have used the numbers below.
    fn floor(&self) -> Seq {
        match self {
            Self::One(_) => 0,
            Self::Sorted(lanes) => lanes.floor,
        }
    }

    /// The same, of lanes that were gone when a checkpoint was written.
    fn raise_floor(&mut self, floor: Seq) {
        if floor > self.floor() {
            let lanes = self.sort();
            lanes.floor = lanes.floor.max(floor);
        }
    }

    /// Records that come now are those of the log.
    pub(super) fn replay(&mut self) {
        match self {
            Self::One(lane) => lane.store.replay(),
            Self::Sorted(lanes) => lanes.replay(),
        }
    }

    /// Ends replay: records that come now are decided elsewhere.
    pub(super) fn follow(&mut self) {
        match self {
            Self::One(lane) => lane.store.replayed(),
            Self::Sorted(lanes) => lanes.follow(),
        }
    }

    /// Ends replay: everything that exists is ready.
    pub(super) fn recovered(&mut self, closed: bool) {
        self.end_replay(|lane| lane.recovered(closed));
    }

    /// The same, of what another journal has handed over.
    pub(super) fn taken_over(&mut self) {
        self.end_replay(Lane::taken_over);
    }

    fn end_replay(&mut self, end: impl FnMut(&mut Lane)) {
        match self {
            Self::One(lane) => Some(lane).into_iter().for_each(end),
            Self::Sorted(lanes) => lanes.end_replay(end),
        }
    }

    /// Nothing is here any more, and nobody is told.
    pub(super) fn clear(&mut self) {
        match self {
            Self::One(lane) => lane.clear(),
            Self::Sorted(lanes) => lanes.clear(),
        }
    }

    /// The numbers of all together; of consumers they know nothing.
    pub(super) fn status(&self) -> Status {
        match self {
            Self::One(lane) => lane.status(),
            Self::Sorted(lanes) => lanes.status(),
        }
    }
}
