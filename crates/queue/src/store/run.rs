//! A run: messages that came together and lie together.

use super::Sizes;
use super::{Bytes, LogPlace, Place, Source};
use model::{Block, Seq};
use std::sync::Arc;

/// Messages `first..end`, some of which may be gone.
///
/// A run is born as what is left of one block, and may later be one stored piece that was several runs.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// The first message's number.
    pub first: Seq,
    /// One past the last message's number.
    pub end: Seq,
    /// Every message below is gone; `first..=end`.
    pub low: Seq,
    /// How many messages are not gone. A run with none holds nothing and is a tombstone.
    pub live: u32,
    /// Its messages were put into the journal, so whatever befalls them goes there too.
    pub journaled: bool,
    /// Its bytes cannot be read here.
    pub lost: bool,
    /// A `Store` of it is under way.
    pub storing: bool,
    /// One bit per message from `first` on: gone. Only made once a message went out of order.
    gone: Option<Box<[u64]>>,
    /// The bytes, if they are here.
    pub memory: Option<Memory>,
    /// Where else the bytes are.
    pub home: Home,
    /// Body lengths, for when the bytes are not here.
    pub sizes: Sizes,
    /// Encoded length of all its messages, in bytes.
    pub weight: u64,
}

/// Where a run's bytes are in memory. Message `seq` is number `seq - base` of the block.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub block: Arc<Block>,
    pub base: Seq,
}

/// Where a run's bytes can be read again. Message `seq` is number `seq - base` of the block found there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Nowhere yet: in memory only.
    None,
    /// In the record that stands here in the log.
    Log { at: LogPlace, base: Seq },
    /// In segments.
    Segment { place: Place, base: Seq },
}

impl Home {
    /// What a host is told to read, and the number of the first message it will find there.
    pub(crate) fn source(self) -> Option<(Source, Seq)> {
        match self {
            Self::None => None,
            Self::Log { at, base } => Some((Source::Log(at), base)),
            Self::Segment { place, base } => Some((Source::Segment(place), base)),
        }
    }
}

impl Run {
    /// Live messages `first..first + count`, nowhere yet.
    pub(crate) fn new(first: Seq, count: u64, journaled: bool) -> Self {
        Self {
            first,
            end: first + count,
            low: first,
            live: count as u32,
            journaled,
            lost: false,
            storing: false,
            gone: None,
            memory: None,
            home: Home::None,
            sizes: Sizes::InBlock,
            weight: 0,
        }
    }

    /// True if its record was not appended to the log yet.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.journaled && self.home == Home::None && self.memory.is_some()
    }

    /// What a host is told to read, and the number of the first message it will find there.
    pub(crate) fn source(&self) -> Option<(Source, Seq)> {
        self.home.source().filter(|_| !self.lost)
    }

    /// Where its bytes are, and the number of the first message there; `None` if they cannot be read here.
    pub(crate) fn bytes(&self) -> Option<(Bytes, Seq)> {
        match &self.memory {
            Some(memory) => Some((Bytes::Memory(memory.block.clone()), memory.base)),
            None => self.source().map(|(source, base)| (Bytes::Source(source), base)),
        }
    }

    /// Where it stands in the log, if it does.
    pub(crate) fn in_log(&self) -> Option<LogPlace> {
        match self.home {
            Home::Log { at, .. } if !self.lost => Some(at),
            _ => None,
        }
    }

    /// True if its bytes lie anywhere but in synced segments, or it would not be found there again.
    pub(crate) fn is_elsewhere(&self) -> bool {
        !self.journaled || !(self.lost || matches!(self.home, Home::Segment { .. }))
    }

    /// How many numbers it spans.
    pub(crate) fn length(&self) -> usize {
        (self.end - self.first) as usize
    }

    /// The first span of live messages that starts in `from..=to`, cut at `to`.
    pub(crate) fn live_span(&self, from: Seq, to: Seq) -> Option<(Seq, Seq)> {
        let from = from.max(self.low);
        let to = to.min(self.end.checked_sub(1)?);
        if from > to {
            return None;
        }
        let Some(gone) = &self.gone else {
            return Some((from, to));
        };
        let start = self.first + next_bit(gone, (from - self.first) as usize, false) as u64;
        if start > to {
            return None;
        }
        let stop = self.first + next_bit(gone, (start - self.first) as usize, true) as u64;
        Some((start, to.min(stop - 1)))
    }

    /// Removes the live messages in `from..=to`, gives them to `removed`, and says how many there were and how long their bodies
    /// are together.
    pub(crate) fn remove(&mut self, from: Seq, to: Seq, mut removed: impl FnMut(Seq, Seq)) -> (u32, u64) {
        let to = to.min(self.end - 1);
        if self.gone.is_none() && from <= self.low {
            if to < self.low {
                return (0, 0);
            }
            let (count, bytes) = ((to + 1 - self.low) as u32, self.body_bytes(self.low, to));
            removed(self.low, to);
            self.low = to + 1;
            self.live -= count;
            return (count, bytes);
        }
        let (mut count, mut bytes) = (0, 0);
        let mut at = from;
        while let Some((start, stop)) = self.live_span(at, to) {
            removed(start, stop);
            bytes += self.body_bytes(start, stop);
            count += (stop + 1 - start) as u32;
            let (first, length) = (self.first, self.length());
            let gone = self
                .gone
                .get_or_insert_with(|| vec![0; length.div_ceil(64)].into());
            set_bits(gone, (start - first) as usize, (stop - first) as usize);
            at = stop + 1;
        }
        if let Some(gone) = &self.gone {
            let clear = next_bit(gone, (self.low - self.first) as usize, false) as u64;
            self.low = self.end.min(self.first + clear);
        }
        self.live -= count;
        (count, bytes)
    }

    /// The sum of the body lengths of messages `from..=to`, gone ones included, in bytes.
    pub(crate) fn body_bytes(&self, from: Seq, to: Seq) -> u64 {
        let count = (to + 1 - from) as usize;
        match &self.memory {
            Some(memory) if !self.sizes.are_exact() => {
                memory.block.body_bytes_of((from - memory.base) as usize, count)
            }
            _ => self.sizes.sum((from - self.first) as usize, count, self.length()),
        }
    }

    /// The sum of the body lengths of its live messages, in bytes.
    pub(crate) fn live_bytes(&self) -> u64 {
        let (mut bytes, mut at) = (0, self.first);
        while let Some((from, to)) = self.live_span(at, Seq::MAX) {
            bytes += self.body_bytes(from, to);
            at = to + 1;
        }
        bytes
    }

    /// What its block costs in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.block.memory())
    }

    /// Takes down the body lengths if nobody did, for when the block goes.
    pub(crate) fn take_down_sizes(&mut self) {
        if let (Some(memory), Sizes::InBlock) = (&self.memory, &self.sizes) {
            self.sizes = Sizes::take_down(&memory.block, (self.first - memory.base) as usize, self.length());
        }
    }

    /// The part of the run in `from..end` as a run of its own: same bytes, same home.
    pub(crate) fn cut(&self, from: Seq, end: Seq) -> Self {
        let count = end - from;
        let mut part = Self::new(from, count, self.journaled);
        part.sizes = self
            .sizes
            .cut((from - self.first) as usize, count as usize, self.length());
        part.memory = self.memory.clone();
        part.home = self.home;
        part.lost = self.lost;
        part.weight = self.weight * count / self.length().max(1) as u64;
        part.remove_like(self);
        part
    }

    /// Removes what is gone in `other`, a run over the same or more numbers.
    pub(crate) fn remove_like(&mut self, other: &Self) {
        let to = self.end.min(other.end);
        let mut at = self.first.max(other.first);
        while at < to {
            let (start, stop) = other.live_span(at, to - 1).unwrap_or((to, to));
            if start > at {
                self.remove(at, start - 1, |_, _| {});
            }
            at = stop + 1;
        }
    }
}

/// The first bit at or after `at` that is `value`; the number of bits (rounded up) if there is none.
fn next_bit(bits: &[u64], at: usize, value: bool) -> usize {
    let mut word = at / 64;
    let mut mask = u64::MAX << (at % 64);
    while let Some(bits) = bits.get(word) {
        let found = if value { *bits } else { !*bits } & mask;
        if found != 0 {
            return word * 64 + found.trailing_zeros() as usize;
        }
        word += 1;
        mask = u64::MAX;
    }
    bits.len() * 64
}

fn set_bits(bits: &mut [u64], from: usize, to: usize) {
    for (word, bits) in bits.iter_mut().enumerate().take(to / 64 + 1).skip(from / 64) {
        let low = if word == from / 64 { from % 64 } else { 0 };
        let high = if word == to / 64 { to % 64 } else { 63 };
        *bits |= (u64::MAX << low) & (u64::MAX >> (63 - high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn going_in_order_makes_no_bitset() {
        let mut run = Run::new(10, 5, false);
        assert_eq!(run.remove(10, 11, |_, _| {}).0, 2);
        assert!(run.gone.is_none());
        assert_eq!(run.live_span(0, 100), Some((12, 14)));
        assert_eq!(run.remove(13, 13, |_, _| {}).0, 1);
        assert_eq!(run.live_span(0, 100), Some((12, 12)));
        assert_eq!(run.remove(12, 12, |_, _| {}).0, 1);
        assert_eq!((run.low, run.live), (14, 1));
    }

    proptest! {
        #[test]
        fn a_run_is_a_set(count in 1u64..200, spans in prop::collection::vec((0u64..220, 0u64..40), 0..20), at in 0u64..200, n in 1u64..50) {
            let mut run = Run::new(7, count, true);
            let mut naive: BTreeSet<Seq> = (7..7 + count).collect();
            for (from, more) in spans {
                let mut got = Vec::new();
                let (removed, _) = run.remove(from, from + more, |a, b| got.extend(a..=b));
                let want: Vec<Seq> = naive.range(from..=from + more).copied().collect();
                prop_assert_eq!(removed as usize, want.len());
                prop_assert_eq!(&got, &want);
                naive.retain(|seq| !want.contains(seq));
                prop_assert_eq!(run.live as usize, naive.len());
                prop_assert_eq!(run.low, naive.first().copied().unwrap_or(run.end));
            }
            let list = |run: &Run| {
                let (mut all, mut at) = (Vec::new(), 0);
                while let Some((start, stop)) = run.live_span(at, Seq::MAX) {
                    all.extend(start..=stop);
                    at = stop + 1;
                }
                all
            };
            prop_assert_eq!(list(&run), naive.iter().copied().collect::<Vec<_>>());
            let from = 7 + at.min(count - 1);
            let end = (from + n).min(7 + count);
            prop_assert_eq!(list(&run.cut(from, end)), naive.range(from..end).copied().collect::<Vec<_>>());
        }
    }
}
