//! Publisher confirms of one channel: which numbers every queue has taken, and what the client is told of it.
//!
//! Numbers count from 1 per channel. What a flush has to tell is at most one `multiple` acknowledgement, up to the
//! lowest number that still waits, and single ones for what was confirmed beyond it.

use broker::Unconfirmed;
use model::{QueueId, Ranges};
use protocol::amqp::encode;

/// The confirms of a channel in confirm mode.
#[derive(Debug, Default)]
pub struct Confirms {
    waiting: Unconfirmed,
    /// Confirmed, and the client has not been told.
    fresh: Ranges,
    /// Refused by a queue, and the client has not been told.
    refused: Ranges,
}

/// How many messages the client was told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Those that are safe.
    pub confirmed: u64,
    /// Those that a queue refused.
    pub refused: u64,
}

impl Confirms {
    /// The number of the next publish.
    #[inline]
    pub fn next(&self) -> u64 {
        self.waiting.next()
    }

    /// The next publish was made: so many queues will each confirm it. If there are none, it is confirmed now, as RabbitMQ
    /// does it.
    #[inline]
    pub fn published(&mut self, queues: u32) {
        if queues == 0 {
            self.fresh.push(self.waiting.next());
        }
        self.waiting.published(queues);
    }

    /// One queue has taken these; it is known where several have to.
    pub fn confirmed(&mut self, queue: Option<QueueId>, numbers: &Ranges) {
        let fresh = &mut self.fresh;
        self.waiting
            .confirmed(queue, numbers, |number| fresh.push(number));
    }

    /// One queue has refused these: the client is told at once, whatever other queues do (as RabbitMQ does it).
    pub fn rejected(&mut self, numbers: &Ranges) {
        let refused = &mut self.refused;
        self.waiting.rejected(numbers, |number| refused.push(number));
    }

    /// True if the client must be told something.
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.fresh.is_empty() || !self.refused.is_empty()
    }

    /// Appends the acknowledgements that tell what is new, and says how many messages that concerns.
    pub fn tell(&mut self, channel: u16, out: &mut Vec<u8>) -> Told {
        let told = Told {
            confirmed: self.fresh.count(),
            refused: self.refused.count(),
        };
        // What is acknowledged as a whole must not have been refused in part.
        let below_refused = self.refused.first().map_or(u64::MAX, |first| first - 1);
        for number in self.refused.iter() {
            encode::nack(out, channel, number);
        }
        self.refused.clear();
        let up_to = (self.waiting.lowest() - 1).min(below_refused);
        let mut below: u64 = 0;
        let mut lone = 0;
        for (first, last) in self.fresh.spans() {
            let end = last.min(up_to);
            if first <= end {
                below += end - first + 1;
                lone = end;
            }
        }
        match below {
            0 => {}
            1 => encode::ack(out, channel, lone, false),
            _ => encode::ack(out, channel, up_to, true),
        }
        for (first, last) in self.fresh.spans() {
            for number in first.max(up_to + 1)..=last {
                encode::ack(out, channel, number, false);
            }
        }
        self.fresh.clear();
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use protocol::amqp::{Method, Part, next_frame};
    use std::collections::BTreeSet;

    fn told(confirms: &mut Confirms) -> Vec<(u64, bool)> {
        let mut out = Vec::new();
        confirms.tell(1, &mut out);
        let mut rest = &out[..];
        let mut acks = Vec::new();
        while let Some((frame, used)) = next_frame(rest, 0).unwrap() {
            let Ok(Part::Method(id, fields)) = frame.part() else {
                panic!("{frame:?}")
            };
            let Ok(Method::BasicAck(ack)) = Method::decode(id, fields) else {
                panic!("{id}")
            };
            acks.push((ack.delivery_tag, ack.multiple));
            rest = &rest[used..];
        }
        acks
    }

    #[test]
    fn confirms_in_order_become_one_acknowledgement() {
        let mut confirms = Confirms::default();
        (0..10).for_each(|_| confirms.published(1));
        confirms.confirmed(None, &Ranges::span(1, 7));
        assert_eq!(told(&mut confirms), [(7, true)]);
        confirms.confirmed(None, &Ranges::one(8));
        assert_eq!(told(&mut confirms), [(8, false)]);
        assert!(!confirms.has_news());
    }

    #[test]
    fn what_is_beyond_the_lowest_waiting_number_is_told_singly() {
        let mut confirms = Confirms::default();
        (0..5).for_each(|_| confirms.published(1));
        confirms.confirmed(None, &[2, 4].into_iter().collect());
        assert_eq!(told(&mut confirms), [(2, false), (4, false)]);
        confirms.confirmed(None, &Ranges::one(1));
        assert_eq!(told(&mut confirms), [(1, false)]);
        confirms.confirmed(None, &[3, 5].into_iter().collect());
        assert_eq!(told(&mut confirms), [(5, true)]);
        assert_eq!(confirms.next(), 6);
    }

    #[test]
    fn a_refused_message_is_told_once_and_no_acknowledgement_covers_it() {
        let mut confirms = Confirms::default();
        (0..4).for_each(|_| confirms.published(2));
        confirms.confirmed(Some(QueueId(7)), &Ranges::span(1, 4));
        confirms.rejected(&Ranges::one(2));
        confirms.confirmed(Some(QueueId(8)), &Ranges::span(1, 4));
        assert!(confirms.has_news());
        let mut out = Vec::new();
        confirms.tell(1, &mut out);
        let mut told = Vec::new();
        let mut rest = &out[..];
        while let Some((frame, used)) = next_frame(rest, 0).unwrap() {
            let Ok(Part::Method(id, fields)) = frame.part() else {
                panic!("{frame:?}")
            };
            told.push(match Method::decode(id, fields) {
                Ok(Method::BasicAck(it)) => ("ack", it.delivery_tag, it.multiple),
                Ok(Method::BasicNack(it)) => ("nack", it.delivery_tag, it.multiple || it.requeue),
                other => panic!("{other:?}"),
            });
            rest = &rest[used..];
        }
        let wanted = [
            ("nack", 2, false),
            ("ack", 1, false),
            ("ack", 3, false),
            ("ack", 4, false),
        ];
        assert_eq!(told, wanted);
        confirms.rejected(&Ranges::span(1, 4));
        assert!(!confirms.has_news());
    }

    #[test]
    fn a_message_to_many_queues_waits_for_all_even_if_one_confirms_twice_and_one_to_none_for_nobody() {
        let mut confirms = Confirms::default();
        confirms.published(2);
        confirms.published(0);
        assert_eq!(told(&mut confirms), [(2, false)]);
        confirms.confirmed(Some(QueueId(7)), &Ranges::one(1));
        confirms.confirmed(Some(QueueId(7)), &Ranges::one(1));
        assert!(!confirms.has_news());
        confirms.confirmed(Some(QueueId(8)), &Ranges::one(1));
        assert_eq!(told(&mut confirms), [(1, false)]);
    }

    proptest! {
        #[test]
        fn every_number_is_told_once_and_only_when_all_queues_have_it_however_often_they_say_so(
            steps in prop::collection::vec((0u32..4, any::<prop::sample::Index>(), any::<bool>(), 1usize..3), 1..80),
        ) {
            let mut confirms = Confirms::default();
            let mut open: Vec<(u64, u32)> = Vec::new();
            let mut known: BTreeSet<u64> = BTreeSet::new();
            let mut counts = std::collections::BTreeMap::new();
            for (queues, index, flush, times) in steps {
                let number = confirms.next();
                counts.insert(number, queues);
                open.extend((0..queues).map(|queue| (number, queue)));
                confirms.published(queues);
                if !open.is_empty() {
                    let (number, queue) = open.swap_remove(index.index(open.len()));
                    *counts.get_mut(&number).unwrap() -= 1;
                    (0..times).for_each(|_| {
                        confirms.confirmed(Some(QueueId(queue.into())), &Ranges::one(number));
                    });
                }
                if flush {
                    for (tag, multiple) in told(&mut confirms) {
                        let covered: Vec<u64> = if multiple { (1..=tag).collect() } else { vec![tag] };
                        let fresh: Vec<u64> = covered.into_iter().filter(|tag| known.insert(*tag)).collect();
                        prop_assert!(!fresh.is_empty());
                        prop_assert!(fresh.iter().all(|tag| counts[tag] == 0));
                    }
                    let done: BTreeSet<u64> = counts.iter().filter(|(_, left)| **left == 0).map(|(n, _)| *n).collect();
                    prop_assert_eq!(&done, &known);
                }
            }
        }
    }
}
