//! Contents: what the journal knows of messages besides that they exist, for which [`Store`] has the list. Replaying
//! the journal's records makes the same contents, on every node.
//!
//! Nothing here knows who gets a message or whether it was delivered: that is `dispatch`.

mod expiries;
mod keys;
mod retries;
mod snapshot;

pub(crate) use expiries::Expiries;
pub(crate) use keys::Keys;
pub(crate) use retries::{Retries, push_span, push_time};

use super::Expiry;
use crate::store::Store;
use model::{Block, DeduplicationKey, Ranges, Seq};
use std::collections::BTreeMap;

/// How many returned messages are looked at together.
const LOOK_AHEAD: usize = 64;

/// What is known of a queue's messages.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// When messages expire.
    pub(crate) expiries: Expiries,
    /// Which messages wait before they are tried again, and until when.
    pub(crate) retries: Retries,
    /// The deduplication keys of messages.
    pub(crate) keys: Keys,
    /// How often live messages were returned; mostly empty.
    marks: BTreeMap<Seq, u32>,
    /// How often of these a consumer gave them back, in a queue that counts that apart.
    given_back: BTreeMap<Seq, u32>,
    /// Highest journaled message that a consumer settled; after a crash, the number of the next one.
    settled_high: Seq,
}

impl Contents {
    /// Highest journaled message that a consumer settled.
    pub(crate) fn settled_high(&self) -> Seq {
        self.settled_high
    }

    /// Messages that just came expire then.
    pub(crate) fn expire_at(&mut self, store: &Store, expiries: &[Expiry]) {
        if expiries.is_empty() {
            return;
        }
        let (low, next) = (store.low(), store.next());
        let known = &mut self.expiries;
        for expiry in expiries.iter().filter(|expiry| expiry.last < next) {
            store.live_spans(expiry.first, expiry.last, |_, first, last| {
                known.add(Expiry {
                    first,
                    last,
                    ..*expiry
                });
            });
        }
        known.forget(low, |seq| store.lives(seq));
    }

    /// Notes the deduplication keys of messages `from..` of the block, which are `first`, `first + 1`, ….
    pub(crate) fn note_keys(&mut self, block: &Block, from: u32, first: Seq) {
        for (seq, at) in (first..).zip(from as usize..block.len()) {
            if let Some(key) = DeduplicationKey::of(block.message(at).properties) {
                self.keys.insert(key, seq);
            }
        }
    }

    /// Forgets the keys of messages that are gone.
    pub(crate) fn forget_keys(&mut self, store: &Store) {
        self.keys.sweep(|seq| store.lives(seq));
    }

    /// Removes the live messages in `first..=last`; those that the journal knows are added to `journaled`. Returns how many
    /// there were.
    pub(crate) fn remove(&mut self, store: &mut Store, first: Seq, last: Seq, journaled: &mut Ranges) -> u64 {
        let total = store.remove(first, last, journaled);
        while let Some(marked) = self.marks.range(first..=last).next().map(|(seq, _)| *seq) {
            self.marks.remove(&marked);
            self.given_back.remove(&marked);
        }
        if self.retries.len() > 0 {
            self.retries.remove(first, last);
        }
        total
    }

    /// Consumers settled these: replay tells from it which messages may have been delivered before.
    pub(crate) fn note_settled(&mut self, journaled: &Ranges) {
        self.settled_high = self.settled_high.max(journaled.last().unwrap_or(0));
    }

    /// All messages may have been delivered before. True if replay could not have told that.
    pub(crate) fn suspect_all(&mut self, store: &Store) -> bool {
        let news = store.live() > 0 && self.settled_high < store.next();
        if news {
            self.settled_high = store.next();
        }
        news
    }

    /// Counts a return of the live messages in `first..=last`.
    pub(crate) fn mark_returned(&mut self, store: &Store, first: Seq, last: Seq, journaled: &mut Ranges) {
        let mut spans = Vec::new();
        store.live_spans(first, last, |run, from, to| spans.push((run.journaled, from, to)));
        for (known, from, to) in spans {
            if known {
                journaled.push_span(from, to);
            }
            for seq in from..=to {
                *self.marks.entry(seq).or_insert(0) += 1;
            }
        }
    }

    /// Of the returns of the live messages in `first..=last` one was a consumer's giving back.
    pub(crate) fn give_back(&mut self, store: &Store, first: Seq, last: Seq) {
        let (marks, known) = (&self.marks, &mut self.given_back);
        store.live_spans(first, last, |_, from, to| {
            for (seq, _) in marks.range(from..=to) {
                *known.entry(*seq).or_insert(0) += 1;
            }
        });
    }

    /// How often a consumer gave the message back.
    pub(crate) fn times_given_back(&self, seq: Seq) -> u32 {
        self.given_back.get(&seq).copied().unwrap_or(0)
    }

    /// The first of `first..=last` that consumers gave back equally often, up to which one, and how often.
    pub(crate) fn given_back_alike(&self, first: Seq, last: Seq) -> (Seq, u32) {
        alike_in(&self.given_back, first, last)
    }

    /// How often the message was returned.
    pub(crate) fn times_returned(&self, seq: Seq) -> u32 {
        self.marks.get(&seq).copied().unwrap_or(0)
    }

    /// All messages that were returned, and how often; ascending.
    pub(crate) fn marks(&self) -> impl Iterator<Item = (Seq, u32)> + '_ {
        self.marks.iter().map(|(seq, times)| (*seq, *times))
    }

    /// These messages were returned and wait until then.
    pub(crate) fn retry_at(&mut self, store: &Store, until: &[Expiry]) {
        for expiry in until {
            let mut waiting = Vec::new();
            store.live_spans(expiry.first, expiry.last, |_, from, to| waiting.push((from, to)));
            for seq in waiting.into_iter().flat_map(|(from, to)| from..=to) {
                self.retries.set(seq, expiry.at_ms);
            }
        }
    }

    /// The first of `first..=last` that were returned equally often, up to which one, and how often.
    pub(crate) fn returned_alike(&self, first: Seq, last: Seq) -> (Seq, u32) {
        alike_in(&self.marks, first, last)
    }

    /// The first of `first..=last` that are alike, up to which one, and whether they were returned before. Of returned
    /// messages only some are looked at: a consumer that takes one at a time asks again for each.
    pub(crate) fn alike(&self, first: Seq, last: Seq) -> (Seq, bool) {
        if self.marks.is_empty() {
            return (last, false);
        }
        let mut marked = self.marks.range(first..=last).map(|(seq, _)| *seq);
        match marked.next() {
            None => (last, false),
            Some(seq) if seq > first => (seq - 1, false),
            Some(_) => {
                let run = marked
                    .zip(first + 1..)
                    .take(LOOK_AHEAD)
                    .take_while(|(seq, next)| seq == next);
                (first + run.count() as u64, true)
            }
        }
    }

    /// Nothing is here any more, and nobody is told.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The first of `first..=last` that have the same number here, up to which one, and that number. Of those that have one only some
/// are looked at.
fn alike_in(numbers: &BTreeMap<Seq, u32>, first: Seq, last: Seq) -> (Seq, u32) {
    let times = numbers.get(&first).copied().unwrap_or(0);
    let mut end = first;
    if times == 0 {
        let next = numbers.range(first..=last).next();
        return (next.map_or(last, |(seq, _)| seq - 1), 0);
    }
    let alike = numbers.range(first..=last).take(LOOK_AHEAD).skip(1);
    for (seq, _) in alike.take_while(|(_, known)| **known == times) {
        if *seq != end + 1 {
            break;
        }
        end = *seq;
    }
    (end, times)
}
