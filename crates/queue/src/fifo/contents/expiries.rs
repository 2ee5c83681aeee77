//! When messages expire: compactly, because there may be millions of them, and apart from their bytes, which may be on disk.
//!
//! Deadlines mostly rise with the messages' numbers: all of a queue with one time to live, or of publishers with the same
//! expiration. Those stand in a line of spans, one for all messages that came in the same millisecond; only a message whose
//! deadline is before an earlier message's takes a place of its own, in a heap.

use crate::fifo::record::Expiry;
use crate::seq_set::SeqSet;
use model::Seq;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// So many entries of the heap may belong to messages that are gone before it is looked through.
const STALE: usize = 1024;

/// The deadlines of live messages, and of some that are gone.
#[derive(Debug)]
pub(crate) struct Expiries {
    /// The earliest deadline; `u64::MAX` if there is none. Kept apart so that a queue without expiring messages pays one
    /// comparison.
    next_ms: u64,
    /// Rising in deadlines and in numbers.
    line: VecDeque<Expiry>,
    /// Everything else.
    heap: BinaryHeap<Reverse<(u64, Seq)>>,
    /// The heap is looked through when it reaches this length.
    full: usize,
    /// Their deadline has passed, but somebody holds them, or their dead letters have not arrived: they expire if they come back.
    late: SeqSet,
}

impl Default for Expiries {
    fn default() -> Self {
        Self {
            next_ms: u64::MAX,
            line: VecDeque::new(),
            heap: BinaryHeap::new(),
            full: STALE,
            late: SeqSet::default(),
        }
    }
}

impl Expiries {
    /// The earliest deadline in milliseconds since the Unix epoch; `u64::MAX` if there is none. It may belong to a message that
    /// is gone.
    #[inline]
    pub(crate) fn next_ms(&self) -> u64 {
        self.next_ms
    }

    /// Messages that are newer than all known ones expire at `expiry.at_ms`.
    pub(crate) fn add(&mut self, expiry: Expiry) {
        match self.line.back_mut() {
            Some(last) if last.at_ms == expiry.at_ms && last.last + 1 == expiry.first => {
                last.last = expiry.last
            }
            Some(last) if last.at_ms > expiry.at_ms => {
                let each = (expiry.first..=expiry.last).map(|seq| Reverse((expiry.at_ms, seq)));
                self.heap.extend(each);
            }
            _ => self.line.push_back(expiry),
        }
        self.next_ms = self.next_ms.min(expiry.at_ms);
    }

    /// Messages below `low` are gone, and of others those for which `lives` does not hold.
    pub(crate) fn forget(&mut self, low: Seq, lives: impl Fn(Seq) -> bool) {
        while self.line.front().is_some_and(|expiry| expiry.last < low) {
            self.line.pop_front();
        }
        if self.heap.len() >= self.full {
            self.heap.retain(|Reverse((_, seq))| lives(*seq));
            self.full = self.heap.len() * 2 + STALE;
        }
        self.look();
    }

    /// Takes the next messages whose deadline has come.
    pub(crate) fn pop_due(&mut self, now_ms: u64) -> Option<(Seq, Seq)> {
        if self.next_ms > now_ms {
            return None;
        }
        let alone = self.heap.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let due = match self.line.front() {
            Some(front) if front.at_ms <= alone => {
                let due = (front.first, front.last);
                self.line.pop_front();
                due
            }
            _ => {
                let Reverse((_, seq)) = self.heap.pop()?;
                (seq, seq)
            }
        };
        self.look();
        Some(due)
    }

    /// The deadline of these has passed, and they are still here.
    pub(crate) fn set_late(&mut self, first: Seq, last: Seq) {
        self.late.add(first, last);
    }

    /// Takes those of `first..=last` that are late; nobody holds them any more.
    pub(crate) fn take_late(&mut self, first: Seq, last: Seq) -> Option<(Seq, Seq)> {
        let late = self.late.overlap(first, last)?;
        self.late.remove(late.0, late.1);
        Some(late)
    }

    /// These are gone.
    pub(crate) fn forget_late(&mut self, first: Seq, last: Seq) {
        self.late.remove(first, last);
    }

    /// True if messages are late.
    pub(crate) fn any_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// All deadlines by rising numbers, those of messages that are gone included. What is late has a deadline in the past.
    pub(crate) fn list(&self) -> Vec<Expiry> {
        let alone = self.heap.iter().map(|Reverse((at_ms, seq))| Expiry {
            first: *seq,
            last: *seq,
            at_ms: *at_ms,
        });
        let late = self.late.spans().map(|(first, last)| Expiry {
            first,
            last,
            at_ms: 1,
        });
        let mut all: Vec<Expiry> = self.line.iter().copied().chain(alone).chain(late).collect();
        all.sort_unstable_by_key(|expiry| expiry.first);
        all
    }

    fn look(&mut self) {
        let alone = self.heap.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        self.next_ms = self.line.front().map_or(alone, |front| front.at_ms.min(alone));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expiry(first: Seq, last: Seq, at_ms: u64) -> Expiry {
        Expiry { first, last, at_ms }
    }

    #[test]
    fn messages_of_one_millisecond_take_one_place() {
        let mut expiries = Expiries::default();
        (1..=1000).for_each(|seq| expiries.add(expiry(seq, seq, 7)));
        assert_eq!(expiries.line.len(), 1);
        assert_eq!(expiries.pop_due(6), None);
        assert_eq!(expiries.pop_due(7), Some((1, 1000)));
        assert_eq!(expiries.next_ms(), u64::MAX);
    }

    #[test]
    fn what_is_consumed_long_before_its_deadline_takes_no_memory() {
        let mut expiries = Expiries::default();
        for seq in 1..=100_000 {
            expiries.add(expiry(
                seq,
                seq,
                if seq % 2 == 0 { 5 } else { 9 } * 1_000_000 + seq,
            ));
            expiries.forget(seq, |known| known >= seq);
        }
        let kept = (expiries.line.len(), expiries.heap.len());
        assert!(kept.0 + kept.1 < 3 * STALE, "{kept:?}");
    }

    proptest! {
        #[test]
        fn everything_comes_due_once_and_in_order(blocks in prop::collection::vec((1u64..5, 1u64..50), 0..60)) {
            let mut expiries = Expiries::default();
            let mut all = Vec::new();
            let mut next = 1;
            for (count, at) in blocks {
                expiries.add(expiry(next, next + count - 1, at));
                all.extend((next..next + count).map(|seq| (at, seq)));
                next += count;
            }
            prop_assert_eq!(expiries.list().iter().map(|it| it.last + 1 - it.first).sum::<u64>(), all.len() as u64);
            let mut came = Vec::new();
            for now in 0..=50 {
                while let Some((first, last)) = expiries.pop_due(now) {
                    came.extend((first..=last).map(|seq| (now, seq)));
                }
            }
            came.sort_unstable();
            all.sort_unstable();
            prop_assert_eq!(came, all);
        }
    }
}
