//! Sets of messages that are out of the ordinary: ready ones before the cursor, which were delivered and came back; those on
//! their way to a dead-letter exchange; those whose deadline passed while somebody held them.

use model::Seq;
use std::collections::BTreeMap;

/// A set of numbers as disjoint, inclusive spans; first by last.
#[derive(Debug, Default)]
pub struct SeqSet {
    spans: BTreeMap<Seq, Seq>,
    /// How many numbers are in it: asked after each turn.
    count: u64,
}

impl SeqSet {
    /// True if there is no number in it.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many numbers are in it.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All spans, ascending.
    pub fn spans(&self) -> impl Iterator<Item = (Seq, Seq)> + '_ {
        self.spans.iter().map(|(first, last)| (*first, *last))
    }

    /// The lowest span.
    pub fn first(&self) -> Option<(Seq, Seq)> {
        self.spans.first_key_value().map(|(first, last)| (*first, *last))
    }

    /// Adds numbers none of which are in the set.
    pub fn insert(&mut self, mut first: Seq, mut last: Seq) {
        self.count += last + 1 - first;
        if let Some((before, end)) = self
            .spans
            .range(..first)
            .next_back()
            .map(|(before, end)| (*before, *end))
            && end + 1 == first
        {
            self.spans.remove(&before);
            first = before;
        }
        if let Some(end) = self.spans.remove(&(last + 1)) {
            last = end;
        }
        self.spans.insert(first, last);
    }

    /// Takes out whatever of `first..=last` is in the set.
    pub fn remove(&mut self, first: Seq, last: Seq) {
        while let Some((from, to)) = self.overlap(first, last) {
            let Some((start, end)) = self
                .spans
                .range(..=from)
                .next_back()
                .map(|(start, end)| (*start, *end))
            else {
                return;
            };
            self.count -= to + 1 - from;
            self.spans.remove(&start);
            if start < from {
                self.spans.insert(start, from - 1);
            }
            if to < end {
                self.spans.insert(to + 1, end);
            }
        }
    }

    /// The lowest span of the set within `first..=last`.
    pub fn overlap(&self, first: Seq, last: Seq) -> Option<(Seq, Seq)> {
        if self.spans.is_empty() || first > last {
            return None;
        }
        if let Some((_, end)) = self.spans.range(..=first).next_back()
            && *end >= first
        {
            return Some((first, last.min(*end)));
        }
        self.spans
            .range(first..=last)
            .next()
            .map(|(start, end)| (*start, last.min(*end)))
    }

    /// Calls `visit` for the spans of `first..=last` that are not in the set, ascending.
    pub fn others(&self, first: Seq, last: Seq, mut visit: impl FnMut(Seq, Seq)) {
        let mut at = first;
        while let Some((from, to)) = self.overlap(at, last) {
            if at < from {
                visit(at, from - 1);
            }
            at = to + 1;
        }
        if at <= last {
            visit(at, last);
        }
    }

    /// Adds numbers, some of which may be in the set.
    pub fn add(&mut self, first: Seq, last: Seq) {
        self.remove(first, last);
        self.insert(first, last);
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set(steps in prop::collection::vec((any::<bool>(), 1u64..60, 0u64..10), 0..60)) {
            let mut set = SeqSet::default();
            let mut naive = BTreeSet::new();
            for (add, first, more) in steps {
                let last = first + more;
                if add {
                    let mut absent = Vec::new();
                    set.others(first, last, |a, b| absent.push((a, b)));
                    let flat: Vec<Seq> = absent.iter().flat_map(|(a, b)| *a..=*b).collect();
                    prop_assert_eq!(&flat, &(first..=last).filter(|n| !naive.contains(n)).collect::<Vec<_>>());
                    for (a, b) in absent {
                        set.insert(a, b);
                    }
                    naive.extend(first..=last);
                } else {
                    set.remove(first, last);
                    naive.retain(|n| !(first..=last).contains(n));
                }
                prop_assert_eq!(set.count(), naive.len() as u64);
                let flat: Vec<Seq> = set.spans.iter().flat_map(|(a, b)| *a..=*b).collect();
                prop_assert_eq!(&flat, &naive.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
