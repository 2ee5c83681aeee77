//! Looking at all lanes: the highest first, as a queue with priorities hands them out.

use super::sorting::rank;
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
        let in_order = lanes.in_order().into_iter().map(|(_, lane)| lane);
        let mut held = in_order.filter(|lane| lane.store.live() > 0);
        match lanes.settings.sorting {
            Sorting::Priority(_) | Sorting::Levels => held.next()?.head_timestamp(),
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
        let place = |id| rank(&self.settings.sorting, id);
        let highest = from.map_or(u16::MAX, |from| place(lane_of(from)));
        for (id, lane) in self
            .in_order()
            .into_iter()
            .filter(|(id, _)| place(*id) <= highest)
        {
            let start = from.filter(|from| lane_of(*from) == id);
            if !lane.look(start.unwrap_or(first_of(id)), limits, glance) {
                return;
            }
        }
    }

    fn back(&self, before: Option<Seq>, mut count: u64) -> Option<Seq> {
        let place = |id| rank(&self.settings.sorting, id);
        let lowest = before.map_or(0, |before| place(lane_of(before)));
        let mut at = before;
        for (id, lane) in self
            .in_order()
            .into_iter()
            .rev()
            .filter(|(id, _)| place(*id) >= lowest)
        {
            if count == 0 {
                break;
            }
            let end = before.filter(|before| lane_of(*before) == id);
            at = Some(lane.back(end.unwrap_or(Seq::MAX), &mut count));
        }
        at
    }
}
