//! Publishes that queues have still to confirm.
//!
//! A confirm names its messages, and its queue where several have to confirm a message; so one that is told twice counts once.

use model::{QueueId, Ranges};
use std::collections::{BTreeMap, VecDeque};

/// After so many numbers, what queues have said of lower ones is forgotten.
const SWEEP: u64 = 4096;

/// The publishes of one channel, numbered from 1 in their order.
#[derive(Debug)]
pub struct Unconfirmed {
    /// The lowest number that is not confirmed.
    base: u64,
    /// How many queues have still to confirm each number from `base` on.
    waiting: VecDeque<u32>,
    /// What each queue has confirmed of the numbers that went to several queues.
    confirmed: BTreeMap<QueueId, Ranges>,
    /// `base` when `confirmed` was looked through last.
    swept: u64,
}

impl Default for Unconfirmed {
    fn default() -> Self {
        Self {
            base: 1,
            waiting: VecDeque::new(),
            confirmed: BTreeMap::new(),
            swept: 1,
        }
    }
}

impl Unconfirmed {
    /// The number of the next publish.
    #[inline]
    pub fn next(&self) -> u64 {
        self.base + self.waiting.len() as u64
    }

    /// The lowest number that waits, or the next one.
    #[inline]
    pub fn lowest(&self) -> u64 {
        self.base
    }

    /// True if none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next publish was made: so many queues will each confirm it.
    #[inline]
    pub fn published(&mut self, queues: u32) {
        self.waiting.push_back(queues);
        if queues == 0 {
            self.advance();
        }
    }

    /// A queue has taken these: `safe` is told which of them all their queues have now. `queue` is known where several
    /// queues have to confirm.
    pub fn confirmed(&mut self, queue: Option<QueueId>, numbers: &Ranges, mut safe: impl FnMut(u64)) {
        let news;
        let numbers = match queue {
            None => numbers,
            Some(queue) => {
                news = self.news_of(queue, numbers);
                &news
            }
        };
        for (first, last) in numbers.spans() {
            for number in first..=last {
                if self.take_one(number) {
                    safe(number);
                }
            }
        }
        self.advance();
    }

    /// A queue has refused these: `refused` is told which of them still waited. Nothing more is awaited for those.
    pub fn rejected(&mut self, numbers: &Ranges, mut refused: impl FnMut(u64)) {
        for number in numbers.iter() {
            let at = number.checked_sub(self.base);
            let waiting = at.and_then(|at| self.waiting.get_mut(at as usize));
            if let Some(queues) = waiting.filter(|queues| **queues > 0) {
                *queues = 0;
                refused(number);
            }
        }
        self.advance();
    }

    /// What the queue has not confirmed before.
    fn news_of(&mut self, queue: QueueId, numbers: &Ranges) -> Ranges {
        let before = self.confirmed.entry(queue).or_default();
        let news: Ranges = numbers
            .iter()
            .filter(|number| *number >= self.base && !before.contains(*number))
            .collect();
        for (first, last) in news.spans() {
            before.push_span(first, last);
        }
        news
    }

    /// One queue less has to confirm the number. True if it was the last one.
    fn take_one(&mut self, number: u64) -> bool {
        let Some(at) = number.checked_sub(self.base) else {
            return false;
        };
        let Some(queues) = self.waiting.get_mut(at as usize) else {
            return false;
        };
        if *queues == 0 {
            return false;
        }
        *queues -= 1;
        *queues == 0
    }

    fn advance(&mut self) {
        while self.waiting.front() == Some(&0) {
            self.waiting.pop_front();
            self.base += 1;
        }
        if !self.confirmed.is_empty() {
            self.sweep();
        }
    }

    /// Forgets what was confirmed of numbers that nobody waits for any more, now and then.
    fn sweep(&mut self) {
        if self.waiting.is_empty() {
            self.confirmed.clear();
        } else if self.base - self.swept >= SWEEP.max(self.confirmed.len() as u64) {
            self.swept = self.base;
            self.confirmed.retain(|_, numbers| {
                numbers.remove_below(self.base);
                !numbers.is_empty()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safe(unconfirmed: &mut Unconfirmed, queue: Option<u64>, numbers: Ranges) -> Vec<u64> {
        let mut safe = Vec::new();
        unconfirmed.confirmed(queue.map(QueueId), &numbers, |number| safe.push(number));
        safe
    }

    #[test]
    fn a_queue_that_confirms_twice_does_not_confirm_for_another_one() {
        let mut unconfirmed = Unconfirmed::default();
        unconfirmed.published(2);
        assert!(safe(&mut unconfirmed, Some(7), Ranges::one(1)).is_empty());
        assert!(safe(&mut unconfirmed, Some(7), Ranges::one(1)).is_empty());
        assert_eq!(safe(&mut unconfirmed, Some(8), Ranges::one(1)), [1]);
        assert!(safe(&mut unconfirmed, Some(8), Ranges::one(1)).is_empty());
        assert!(unconfirmed.is_empty());
    }

    #[test]
    fn a_message_of_one_queue_is_confirmed_once() {
        let mut unconfirmed = Unconfirmed::default();
        (0..3).for_each(|_| unconfirmed.published(1));
        assert_eq!(safe(&mut unconfirmed, None, Ranges::one(2)), [2]);
        assert!(safe(&mut unconfirmed, None, Ranges::one(2)).is_empty());
        assert_eq!(safe(&mut unconfirmed, None, Ranges::span(1, 2)), [1]);
        assert_eq!((unconfirmed.lowest(), unconfirmed.next()), (3, 4));
    }

    #[test]
    fn what_queues_have_confirmed_is_forgotten_though_one_number_waits_always() {
        let mut unconfirmed = Unconfirmed::default();
        unconfirmed.published(2);
        for number in 2..20_000 {
            unconfirmed.published(2);
            // Every other number, so that ranges do not flow together.
            let queue = 10 + number % 2;
            assert!(safe(&mut unconfirmed, Some(queue), Ranges::one(number - 1)).is_empty());
            assert_eq!(
                safe(&mut unconfirmed, Some(12), Ranges::one(number - 1)),
                [number - 1]
            );
        }
        let spans = unconfirmed
            .confirmed
            .values()
            .map(|numbers| numbers.spans().count());
        assert!(spans.sum::<usize>() <= 2 * SWEEP as usize);
    }
}
