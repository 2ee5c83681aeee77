//! Messages of a queue of another node as clients of this one know them by number.
//!
//! A queue of one node gives a number to one message for as long as it is turned. When its node starts again, what was not on
//! record is gone, and what comes then may get the same numbers: a late acknowledgement of the one must not count for the
//! other. So numbers of each start are shown above all those that were shown before.

use model::{Ranges, Seq};
use queue::Delivery;
use queue::fifo::LANE_SHIFT;

/// What stands below the number of a lane.
const WITHIN_LANE: Seq = (1 << LANE_SHIFT) - 1;

/// See the module.
#[derive(Debug)]
pub(super) struct Numbers {
    /// The term whose numbers are shown; 0 before the first one.
    term: u64,
    /// They are shown so much higher.
    shift: u64,
    /// All that were shown are lower, in each lane.
    next: u64,
}

impl Numbers {
    /// Numbers that are shown above these: up to them clients may have some of an earlier handle that count no more.
    pub fn above(highest: u64) -> Self {
        Self {
            term: 0,
            shift: highest,
            next: highest,
        }
    }

    /// All that were shown are lower.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The term whose numbers are shown.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// What is shown from now on is of this term. The queue is on one node alone in terms behind `alone`, each of them a start of
    /// that node; where several nodes have it, the messages keep their numbers from term to term. True if those that were shown
    /// mean nothing any more.
    pub fn are_of(&mut self, term: u64, alone: Option<u64>) -> bool {
        let are_void = self.term != term && alone.is_some_and(|behind| self.term > behind);
        if are_void {
            self.shift = self.next;
        }
        self.term = term;
        are_void
    }

    /// This is about to be shown.
    pub fn show(&mut self, delivery: &mut Delivery) {
        for (_, last) in delivery.seqs.spans() {
            self.next = self.next.max((last & WITHIN_LANE) + self.shift + 1);
        }
        if self.shift > 0 {
            delivery.base += self.shift;
            let spans = delivery.seqs.spans();
            delivery.seqs = spans.fold(Ranges::new(), |mut seqs, (first, last)| {
                seqs.push_span(first + self.shift, last + self.shift);
                seqs
            });
        }
    }

    /// What a client says of these is said of those that come back: of messages that the queue has now.
    pub fn said_of(&self, seqs: Ranges) -> Ranges {
        if self.shift == 0 {
            return seqs;
        }
        let mut known = Ranges::new();
        for (first, last) in seqs.spans() {
            let from = first.max((first & !WITHIN_LANE) + self.shift);
            if from <= last {
                known.push_span(from - self.shift, last - self.shift);
            }
        }
        known
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use model::{BlockBuilder, Message, RouteBuf, Timestamp, properties::Properties};
    use std::sync::Arc;

    fn delivery(first: Seq, last: Seq) -> Delivery {
        let mut block = BlockBuilder::default();
        let route = RouteBuf::new(b"", b"q");
        for _ in first..=last {
            block.push_message(&Message::new(route.as_route(), Properties::amqp091(b""), b"body"));
        }
        Delivery {
            block: Arc::new(block.finish(false, Timestamp(1))),
            base: first,
            seqs: Ranges::span(first, last),
            redelivered: false,
            returns: 0,
            failures: None,
        }
    }

    pub fn shown(numbers: &mut Numbers, first: Seq, last: Seq) -> Ranges {
        let mut delivery = delivery(first, last);
        numbers.show(&mut delivery);
        assert_eq!(Some(delivery.base), delivery.seqs.first());
        delivery.seqs
    }

    #[test]
    fn one_start_has_its_own_numbers_and_those_of_the_next_one_are_nobodys_before() {
        let mut numbers = Numbers::above(0);
        numbers.are_of(4, Some(0));
        assert_eq!(shown(&mut numbers, 1, 9), Ranges::span(1, 9));
        numbers.are_of(4, Some(0));
        assert_eq!(
            shown(&mut numbers, 3, 3),
            Ranges::one(3),
            "the same message once more"
        );
        numbers.are_of(5, Some(0));
        let again = shown(&mut numbers, 3, 12);
        assert_eq!(again, Ranges::span(13, 22));
        assert_eq!(
            numbers.said_of(Ranges::span(1, 9)),
            Ranges::new(),
            "these are gone"
        );
        assert_eq!(
            numbers.said_of([8, 9, 13, 14].into_iter().collect()),
            Ranges::span(3, 4)
        );
        assert_eq!(numbers.said_of(again), Ranges::span(3, 12));
    }

    #[test]
    fn lanes_are_not_mixed_up() {
        let lane = 7 << LANE_SHIFT;
        let mut numbers = Numbers::above(0);
        numbers.are_of(1, Some(0));
        shown(&mut numbers, lane + 5, lane + 6);
        shown(&mut numbers, 2, 2);
        numbers.are_of(2, Some(0));
        assert_eq!(shown(&mut numbers, 1, 1), Ranges::one(8));
        assert_eq!(
            shown(&mut numbers, lane, lane + 1),
            Ranges::span(lane + 7, lane + 8)
        );
        assert_eq!(
            numbers.said_of(Ranges::span(lane + 5, lane + 8)),
            Ranges::span(lane, lane + 1)
        );
        assert_eq!(numbers.said_of(Ranges::one(lane + 6)), Ranges::new());
    }

    #[test]
    fn while_several_nodes_have_a_queue_its_messages_keep_their_numbers() {
        let mut numbers = Numbers::above(0);
        numbers.are_of(3, Some(0));
        shown(&mut numbers, 1, 9);
        for term in [4, 5] {
            numbers.are_of(term, None);
            assert_eq!(shown(&mut numbers, 4, 10), Ranges::span(4, 10));
        }
        // It is handed back to one node, which has everything.
        numbers.are_of(6, Some(5));
        assert_eq!(shown(&mut numbers, 5, 11), Ranges::span(5, 11));
        numbers.are_of(7, Some(5));
        assert_eq!(shown(&mut numbers, 5, 5), Ranges::one(17));
        numbers.are_of(8, None);
        assert_eq!(shown(&mut numbers, 6, 6), Ranges::one(18));
    }
}
