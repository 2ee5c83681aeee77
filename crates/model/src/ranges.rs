//! A set of numbers kept as ascending, disjoint, inclusive ranges: settled messages, confirmed publishes.

use smallvec::SmallVec;

/// Ascending, disjoint, non-adjacent inclusive ranges. One range needs no allocation, which is the common
/// case: acknowledgements and confirms mostly come in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    ranges: SmallVec<[(u64, u64); 1]>,
}

impl Ranges {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set with one number.
    pub fn one(number: u64) -> Self {
        Self::span(number, number)
    }

    /// The numbers `first..=last`; empty if `last < first`.
    pub fn span(first: u64, last: u64) -> Self {
        let mut ranges = Self::new();
        ranges.push_span(first, last);
        ranges
    }

    /// Adds a number. Numbers may come in any order; ascending order is the cheap one.
    pub fn push(&mut self, number: u64) {
        self.push_span(number, number);
    }

    /// Adds `first..=last`, merging with what touches it. Does nothing if `last < first`.
    pub fn push_span(&mut self, first: u64, last: u64) {
        if last < first {
            return;
        }
        match self.ranges.last_mut() {
            None => self.ranges.push((first, last)),
            Some(tail) if first > tail.1.saturating_add(1) => self.ranges.push((first, last)),
            Some(tail) if first >= tail.0 => tail.1 = tail.1.max(last),
            Some(_) => self.insert_span(first, last),
        }
    }

    fn insert_span(&mut self, mut first: u64, mut last: u64) {
        let from = self.ranges.partition_point(|r| r.1.saturating_add(1) < first);
        let to = self.ranges.partition_point(|r| r.0 <= last.saturating_add(1));
        if from < to {
            first = first.min(self.ranges[from].0);
            last = last.max(self.ranges[to - 1].1);
            self.ranges.drain(from..to);
        }
        self.ranges.insert(from, (first, last));
    }

    /// The numbers that the other set has not.
    pub fn without(&self, other: &Self) -> Self {
        let mut left = Self::new();
        let mut others = other.ranges.iter().copied().peekable();
        for (first, last) in self.spans() {
            while others.peek().is_some_and(|(_, end)| *end < first) {
                others.next();
            }
            let mut at = first;
            let mut within = others.clone().take_while(|(begin, _)| *begin <= last);
            loop {
                let Some((begin, end)) = within.next() else {
                    left.push_span(at, last);
                    break;
                };
                if begin > at {
                    left.push_span(at, begin - 1);
                }
                if end >= last {
                    break;
                }
                at = end + 1;
            }
        }
        left
    }

    /// Adds all of the other set.
    pub fn extend(&mut self, other: &Self) {
        other
            .spans()
            .for_each(|(first, last)| self.push_span(first, last));
    }

    /// How many numbers are in the set.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// True if no number is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// True if `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let at = self.ranges.partition_point(|r| r.1 < number);
        self.ranges.get(at).is_some_and(|r| r.0 <= number)
    }

    /// The ranges, ascending, both ends inclusive.
    pub fn spans(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.spans().flat_map(|(first, last)| first..=last)
    }

    /// The lowest number.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first().map(|r| r.0)
    }

    /// The highest number.
    pub fn last(&self) -> Option<u64> {
        self.ranges.last().map(|r| r.1)
    }

    /// Takes out all numbers below `limit`.
    pub fn remove_below(&mut self, limit: u64) {
        let gone = self.ranges.partition_point(|r| r.1 < limit);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(limit);
        }
    }

    /// Empties the set and keeps its memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

impl FromIterator<u64> for Ranges {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut ranges = Self::new();
        for number in numbers {
            ranges.push(number);
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn touching_numbers_become_one_range() {
        let ranges: Ranges = [5, 3, 4, 9].into_iter().collect();
        assert_eq!(ranges.spans().collect::<Vec<_>>(), vec![(3, 5), (9, 9)]);
        assert_eq!(ranges.count(), 4);
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(spans in prop::collection::vec((0u64..200, 0u64..12), 0..40)) {
            let mut ranges = Ranges::new();
            let mut naive = BTreeSet::new();
            for (first, more) in spans {
                ranges.push_span(first, first + more);
                naive.extend(first..=first + more);
            }
            prop_assert_eq!(ranges.iter().collect::<Vec<_>>(), naive.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(ranges.count() as usize, naive.len());
            for n in 0..220 {
                prop_assert_eq!(ranges.contains(n), naive.contains(&n));
            }
            let spans: Vec<_> = ranges.spans().collect();
            prop_assert!(spans.windows(2).all(|w| w[0].1 + 1 < w[1].0));
        }

        #[test]
        fn what_another_set_has_not_is_left_and_both_together_are_everything(
            [one, other] in prop::array::uniform2(prop::collection::vec((0u64..200, 0u64..12), 0..20)),
        ) {
            let set = |spans: Vec<(u64, u64)>| {
                let mut set = Ranges::new();
                spans.into_iter().for_each(|(first, more)| set.push_span(first, first + more));
                set
            };
            let (mut one, other) = (set(one), set(other));
            let left = one.without(&other);
            let naive: Vec<u64> = one.iter().filter(|number| !other.contains(*number)).collect();
            prop_assert_eq!(left.iter().collect::<Vec<_>>(), naive);
            one.extend(&other);
            prop_assert_eq!(one.without(&left).without(&other), Ranges::new());
        }
    }
}
