//! Looking at all lanes: the highest first, as a queue with priorities hands them out.

use super::{Lanes, Sorted, first_of, lane_of};
use crate::fifo::look::LookLimits;
use crate::fifo::{Classic, Ends, Glance, Lane, Sorting};
use model::Seq;

impl<E: Ends> Classic<E> {
    /// Which messages are there, from `from` on or from the head: `skip` are passed over, at most `count` shown. The order is
    /// that of delivery; of groups that take turns one stands behind the other.
    pub fn look(&self, from: Option<Seq>, skip: u64, count: u64) -> Glance {
        let mut glance = Glance::default();
        let mut limits = LookLimits::new(skip, count);
        match &self.lanes {
            Lanes::One(lane) => {
                lane.look(from.unwrap_or(0), &mut limits, &mut glance);
            }
            Lanes::Sorted(lanes) => lanes.look(from, &mut limits, &mut glance),
        }
        glance
    }

    /// Where a look begins that shall end before message `before`, or at the end of the queue, and show `count` messages.
    pub fn back(&self, before: Option<Seq>, mut count: u64) -> Option<Seq> {
        match &self.lanes {
            Lanes::One(lane) => Some(lane.back(before.unwrap_or(Seq::MAX), &mut count)),
            Lanes::Sorted(lanes) => lanes.back(before, count),
        }
    }

    /// What the publisher wrote as the time of the first message, in seconds since the Unix epoch: RabbitMQ's
    /// `head_message_timestamp`, which in a queue with priorities is that of the highest priority of which there are
    /// messages. `None` if it wrote nothing, or the message is not in memory.
    pub fn head_timestamp(&self) -> Option<u64> {
        let lanes = match &self.lanes {
            Lanes::One(lane) => return lane.head_timestamp(),
            Lanes::Sorted(lanes) => lanes,
        };
        let mut held = lanes.lanes.values().rev().filter(|lane| lane.store.live() > 0);
        match lanes.settings.sorting {
            Sorting::Priority(_) => held.next()?.head_timestamp(),
            _ => held.filter_map(Lane::head_timestamp).min(),
        }
    }

    /// The numbers between which its messages lie, the second one excluded; `None` if they are in several lanes, where a later
    /// message may have a lower number.
    pub fn bounds(&self) -> Option<(Seq, Seq)> {
        match &self.lanes {
            Lanes::One(lane) => Some((lane.store.low(), lane.store.next())),
            Lanes::Sorted(_) => None,
        }
    }
}

impl Sorted {
    fn look(&self, from: Option<Seq>, limits: &mut LookLimits, glance: &mut Glance) {
        let highest = from.map_or(u16::MAX, lane_of);
        for (id, lane) in self.lanes.range(..=highest).rev() {
            let start = from.filter(|from| lane_of(*from) == *id);
            if !lane.look(start.unwrap_or(first_of(*id)), limits, glance) {
                return;
            }
        }
    }

    fn back(&self, before: Option<Seq>, mut count: u64) -> Option<Seq> {
        let mut at = before;
        for (id, lane) in self.lanes.range(before.map_or(0, lane_of)..) {
            if count == 0 {
                break;
            }
            let end = before.filter(|before| lane_of(*before) == *id);
            at = Some(lane.back(end.unwrap_or(Seq::MAX), &mut count));
        }
        at
    }
}
