//! Messages that came back and wait before they are tried again: when each of them is ready.

use crate::fifo::record::Expiry;
use model::Seq;
use std::collections::{BTreeMap, BTreeSet};

/// The waiting messages of a queue; mostly none.
#[derive(Debug)]
pub(crate) struct Retries {
    /// The earliest time; `u64::MAX` if nothing waits.
    next_ms: u64,
    by_time: BTreeSet<(u64, Seq)>,
    by_seq: BTreeMap<Seq, u64>,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            next_ms: u64::MAX,
            by_time: BTreeSet::new(),
            by_seq: BTreeMap::new(),
        }
    }
}

impl Retries {
    /// When the next one is ready, in milliseconds since the Unix epoch; `u64::MAX` if nothing waits.
    #[inline]
    pub(crate) fn next_ms(&self) -> u64 {
        self.next_ms
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        self.by_seq.len()
    }

    /// The message waits until then; a former time is forgotten.
    pub(crate) fn set(&mut self, seq: Seq, at_ms: u64) {
        if let Some(before) = self.by_seq.insert(seq, at_ms) {
            self.by_time.remove(&(before, seq));
        }
        self.by_time.insert((at_ms, seq));
        self.look();
    }

    /// Takes the next message whose time has come.
    pub(crate) fn pop_due(&mut self, now_ms: u64) -> Option<Seq> {
        if self.next_ms > now_ms {
            return None;
        }
        let (_, seq) = self.by_time.pop_first()?;
        self.by_seq.remove(&seq);
        self.look();
        Some(seq)
    }

    /// None of `first..=last` waits any more. Returns those that did.
    pub(crate) fn remove(&mut self, first: Seq, last: Seq) -> Vec<Seq> {
        if self.by_seq.is_empty() {
            return Vec::new();
        }
        let waited: Vec<(Seq, u64)> = self
            .by_seq
            .range(first..=last)
            .map(|(seq, at_ms)| (*seq, *at_ms))
            .collect();
        for (seq, at_ms) in &waited {
            self.by_seq.remove(seq);
            self.by_time.remove(&(*at_ms, *seq));
        }
        self.look();
        waited.into_iter().map(|(seq, _)| seq).collect()
    }

    /// True if the message waits.
    pub(crate) fn waits(&self, seq: Seq) -> bool {
        self.by_seq.contains_key(&seq)
    }

    /// Everything that waits, by rising numbers.
    pub(crate) fn list(&self) -> impl Iterator<Item = (Seq, u64)> + '_ {
        self.by_seq.iter().map(|(seq, at_ms)| (*seq, *at_ms))
    }

    fn look(&mut self) {
        self.next_ms = self.by_time.first().map_or(u64::MAX, |(at_ms, _)| *at_ms);
    }
}

/// Adds a message to a list of spans; those that follow each other and have one time are one.
pub(crate) fn push_time(list: &mut Vec<Expiry>, seq: Seq, at_ms: u64) {
    push_span(list, seq, seq, at_ms);
}

/// Adds messages to such a list.
pub(crate) fn push_span(list: &mut Vec<Expiry>, first: Seq, last: Seq, at_ms: u64) {
    match list.last_mut() {
        Some(before) if before.at_ms == at_ms && before.last + 1 == first => before.last = last,
        _ => list.push(Expiry { first, last, at_ms }),
    }
}
