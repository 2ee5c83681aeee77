//! What a producer has published and the broker has not confirmed yet.

use std::collections::VecDeque;

/// A delivery tag that was settled before an earlier one.
const SETTLED: u64 = u64::MAX;

/// The messages of a channel that await their confirm, by delivery tag.
#[derive(Debug, Default)]
pub struct Confirms {
    /// From the message whose tag is `first` on: the moment that its latency counts from.
    stamps: VecDeque<u64>,
    /// The lowest tag that is not settled.
    first: u64,
    /// How many of `stamps` are not settled.
    open: usize,
}

impl Confirms {
    /// A channel on which nothing was published.
    pub fn new() -> Self {
        Self {
            stamps: VecDeque::new(),
            first: 1,
            open: 0,
        }
    }

    /// Messages that are not confirmed.
    pub fn open(&self) -> usize {
        self.open
    }

    /// One more message was published; returns its delivery tag.
    #[inline]
    pub fn published(&mut self, stamp: u64) -> u64 {
        self.stamps.push_back(stamp);
        self.open += 1;
        self.first + self.stamps.len() as u64 - 1
    }

    /// The broker settles a tag, or all up to it (`multiple`; tag 0: all there are). `each` is told the tag and the stamp of
    /// each message that this settles. Tags that are not open are passed over.
    pub fn settle(&mut self, tag: u64, multiple: bool, mut each: impl FnMut(u64, u64)) {
        if multiple {
            let last = self.first + self.stamps.len() as u64 - 1;
            let up_to = if tag == 0 { last } else { tag.min(last) };
            while self.first <= up_to {
                let Some(stamp) = self.stamps.pop_front() else {
                    break;
                };
                if stamp != SETTLED {
                    self.open -= 1;
                    each(self.first, stamp);
                }
                self.first += 1;
            }
        } else if let Some(at) = tag.checked_sub(self.first)
            && let Some(slot) = usize::try_from(at).ok().and_then(|at| self.stamps.get_mut(at))
            && *slot != SETTLED
        {
            let stamp = std::mem::replace(slot, SETTLED);
            self.open -= 1;
            each(tag, stamp);
        }
        while self.stamps.front() == Some(&SETTLED) {
            self.stamps.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(confirms: &mut Confirms, tag: u64, multiple: bool) -> Vec<(u64, u64)> {
        let mut seen = Vec::new();
        confirms.settle(tag, multiple, |tag, stamp| seen.push((tag, stamp)));
        seen
    }

    #[test]
    fn one_ack_settles_all_before_it() {
        let mut confirms = Confirms::new();
        for stamp in 10..15 {
            confirms.published(stamp);
        }
        assert_eq!(settled(&mut confirms, 3, true), [(1, 10), (2, 11), (3, 12)]);
        assert_eq!(confirms.open(), 2);
        assert_eq!(settled(&mut confirms, 0, true), [(4, 13), (5, 14)]);
        assert_eq!(confirms.published(20), 6);
    }

    #[test]
    fn acks_come_in_any_order_and_count_once() {
        let mut confirms = Confirms::new();
        for stamp in 10..14 {
            confirms.published(stamp);
        }
        assert_eq!(settled(&mut confirms, 3, false), [(3, 12)]);
        assert_eq!(settled(&mut confirms, 3, false), []);
        assert_eq!(settled(&mut confirms, 1, false), [(1, 10)]);
        assert_eq!(settled(&mut confirms, 9, false), []);
        assert_eq!(settled(&mut confirms, 9, true), [(2, 11), (4, 13)]);
        assert_eq!(confirms.open(), 0);
        assert_eq!(confirms.published(1), 5);
    }
}
