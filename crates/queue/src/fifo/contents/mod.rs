//! Contents: which messages exist, and where their bytes are. Replaying the journal's records makes the same contents.
//!
//! Nothing here knows who gets a message or whether it was delivered: that is `dispatch`.

mod expiries;
mod keys;
mod relocate;
mod retries;
mod run;
mod sizes;
mod snapshot;
mod sums;

pub(crate) use expiries::Expiries;
pub(crate) use keys::Keys;
pub(crate) use retries::{Retries, push_time};
pub(crate) use run::{Home, Memory, Run};
pub(crate) use sizes::Sizes;
pub(crate) use sums::Sums;

use super::{Expiry, Place};
use model::properties::Properties;
use model::{Block, DeduplicationKey, Index, Ranges, Seq};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How many returned messages are looked at together.
const LOOK_AHEAD: usize = 64;

/// The messages of a queue as runs, ascending.
#[derive(Debug)]
pub(crate) struct Contents {
    /// Ascending and disjoint; the first one, if any, is alive.
    runs: VecDeque<Run>,
    /// How many of `runs` are tombstones.
    dead: usize,
    /// Live messages and their bodies.
    sums: Sums,
    /// The next message's number.
    next: Seq,
    /// What blocks of runs cost in memory, in bytes.
    memory: usize,
    /// When messages expire.
    pub(crate) expiries: Expiries,
    /// Which messages wait before they are tried again, and until when.
    pub(crate) retries: Retries,
    /// The deduplication keys of messages.
    pub(crate) keys: Keys,
    /// How often live messages were returned; mostly empty.
    marks: BTreeMap<Seq, u32>,
    /// Highest journaled message that a consumer settled; after a crash, the number of the next one.
    settled_high: Seq,
    /// Places that several runs share, by segment and offset, and how many do.
    shared: BTreeMap<(u32, u32), u32>,
    /// Places that nothing refers to any more, and whether the journal knew of them.
    freed: Vec<(Place, bool)>,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            runs: VecDeque::new(),
            dead: 0,
            sums: Sums::default(),
            next: 1,
            memory: 0,
            expiries: Expiries::default(),
            retries: Retries::default(),
            keys: Keys::default(),
            marks: BTreeMap::new(),
            settled_high: 0,
            shared: BTreeMap::new(),
            freed: Vec::new(),
        }
    }
}

impl Contents {
    /// Live messages.
    pub(crate) fn live(&self) -> u64 {
        self.sums.live
    }

    /// Numbers and bodies of live messages.
    pub(crate) fn sums(&self) -> Sums {
        self.sums
    }

    /// The sum of the body lengths of the live messages in `first..=last`, in bytes.
    pub(crate) fn bytes_of(&self, first: Seq, last: Seq) -> u64 {
        let mut bytes = 0;
        self.live_spans(first, last, |run, from, to| bytes += run.body_bytes(from, to));
        bytes
    }

    /// The next message's number.
    pub(crate) fn next(&self) -> Seq {
        self.next
    }

    /// What blocks cost in memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Live messages whose bytes are not in memory.
    pub(crate) fn paged(&self) -> u64 {
        self.sums.paged
    }

    /// Highest journaled message that a consumer settled.
    pub(crate) fn settled_high(&self) -> Seq {
        self.settled_high
    }

    /// The first message of an empty queue gets this number.
    pub(crate) fn start_at(&mut self, first: Seq) {
        self.next = first;
    }

    /// Hands out `count` numbers to messages that never become contents.
    pub(crate) fn skip(&mut self, count: u64) {
        self.next += count;
    }

    /// Messages `from..` of the block are here, as `first`, `first + 1`, …; `index` is their record's, if they have one.
    /// False, and nothing happened, if that contradicts what is here (a replay of records that are not ours).
    pub(crate) fn enqueue(&mut self, first: Seq, block: Arc<Block>, from: u32, index: Option<Index>) -> bool {
        let from = u64::from(from);
        let count = (block.len() as u64).saturating_sub(from);
        if count == 0 || first < self.next || first < from || first.checked_add(count).is_none() {
            return false;
        }
        let mut run = Run::new(first, count, index.is_some());
        run.weight = block.slice(from as usize, count as usize).len() as u64;
        // A record holds the block from message `from` on, so what is read back begins with `first`.
        run.home = index.map_or(Home::None, |index| Home::Journal { index, base: first });
        self.memory += block.memory();
        run.memory = Some(Memory {
            block,
            base: first - from,
        });
        self.sums
            .add_part(&run, count, run.body_bytes(first, first + count - 1));
        self.next = first + count;
        self.runs.push_back(run);
        true
    }

    /// Messages that just came expire then.
    pub(crate) fn expire_at(&mut self, expiries: &[Expiry]) {
        if expiries.is_empty() {
            return;
        }
        let (low, next) = (self.runs.front().map_or(self.next, |run| run.low), self.next);
        let mut known = std::mem::take(&mut self.expiries);
        for expiry in expiries.iter().filter(|expiry| expiry.last < next) {
            self.live_spans(expiry.first, expiry.last, |_, first, last| {
                known.add(Expiry {
                    first,
                    last,
                    ..*expiry
                });
            });
        }
        known.forget(low, |seq| self.lives(seq));
        self.expiries = known;
    }

    /// True if this message is here.
    pub(crate) fn lives(&self, seq: Seq) -> bool {
        self.run(self.find(seq))
            .is_some_and(|run| run.live_span(seq, seq).is_some())
    }

    /// Notes the deduplication keys of messages `from..` of the block, which are `first`, `first + 1`, ….
    pub(crate) fn note_keys(&mut self, block: &Block, from: u32, first: Seq) {
        for (seq, at) in (first..).zip(from as usize..block.len()) {
            let properties = Properties::new(block.message(at).properties);
            if let Some(key) = DeduplicationKey::of(properties) {
                self.keys.insert(key, seq);
            }
        }
    }

    /// Forgets the keys of messages that are gone.
    pub(crate) fn forget_keys(&mut self) {
        let mut keys = std::mem::take(&mut self.keys);
        keys.sweep(|seq| self.lives(seq));
        self.keys = keys;
    }

    /// Removes the live messages in `first..=last`; those that the journal knows are added to `journaled`. Returns how many
    /// there were.
    pub(crate) fn remove(&mut self, first: Seq, last: Seq, journaled: &mut Ranges) -> u64 {
        let mut at = self.find(first);
        let mut total = 0;
        while let Some(run) = self.runs.get_mut(at)
            && run.first <= last
        {
            let known = run.journaled;
            let (removed, bytes) = run.remove(first, last, |from, to| {
                if known {
                    journaled.push_span(from, to);
                }
            });
            if removed > 0 {
                total += u64::from(removed);
                self.sums.remove_part(run, u64::from(removed), bytes);
                if run.live == 0 {
                    self.bury(at);
                }
            }
            at += 1;
        }
        while let Some(marked) = self.marks.range(first..=last).next().map(|(seq, _)| *seq) {
            self.marks.remove(&marked);
        }
        if self.retries.len() > 0 {
            self.retries.remove(first, last);
        }
        self.tidy();
        total
    }

    /// Consumers settled these: replay tells from it which messages may have been delivered before.
    pub(crate) fn note_settled(&mut self, journaled: &Ranges) {
        self.settled_high = self.settled_high.max(journaled.last().unwrap_or(0));
    }

    /// All messages may have been delivered before. True if replay could not have told that.
    pub(crate) fn suspect_all(&mut self) -> bool {
        let news = self.live() > 0 && self.settled_high < self.next;
        if news {
            self.settled_high = self.next;
        }
        news
    }

    /// Counts a return of the live messages in `first..=last`.
    pub(crate) fn mark_returned(&mut self, first: Seq, last: Seq, journaled: &mut Ranges) {
        let mut spans = Vec::new();
        self.live_spans(first, last, |run, from, to| spans.push((run.journaled, from, to)));
        for (known, from, to) in spans {
            if known {
                journaled.push_span(from, to);
            }
            for seq in from..=to {
                *self.marks.entry(seq).or_insert(0) += 1;
            }
        }
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
    pub(crate) fn retry_at(&mut self, until: &[Expiry]) {
        for expiry in until {
            let mut waiting = Vec::new();
            self.live_spans(expiry.first, expiry.last, |_, from, to| waiting.push((from, to)));
            for seq in waiting.into_iter().flat_map(|(from, to)| from..=to) {
                self.retries.set(seq, expiry.at_ms);
            }
        }
    }

    /// The first of `first..=last` that were returned equally often, up to which one, and how often.
    pub(crate) fn returned_alike(&self, first: Seq, last: Seq) -> (Seq, u32) {
        let times = self.times_returned(first);
        let mut end = first;
        if times == 0 {
            let next = self.marks.range(first..=last).next();
            return (next.map_or(last, |(seq, _)| seq - 1), 0);
        }
        let alike = self.marks.range(first..=last).take(LOOK_AHEAD).skip(1);
        for (seq, _) in alike.take_while(|(_, known)| **known == times) {
            if *seq != end + 1 {
                break;
            }
            end = *seq;
        }
        (end, times)
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

    /// Calls `visit` for every span of live messages of one run in `first..=last`, ascending.
    pub(crate) fn live_spans(&self, first: Seq, last: Seq, mut visit: impl FnMut(&Run, Seq, Seq)) {
        let mut at = self.find(first);
        while let Some(run) = self.runs.get(at)
            && run.first <= last
        {
            let mut from = first;
            while let Some((start, stop)) = run.live_span(from, last) {
                visit(run, start, stop);
                from = stop + 1;
            }
            at += 1;
        }
    }

    /// The first live span of one run at or after `from`, at most up to `last`: the run's slot and the span.
    pub(crate) fn first_live(&self, from: Seq, last: Seq) -> Option<(usize, Seq, Seq)> {
        let mut at = self.find(from);
        loop {
            let run = self.runs.get(at)?;
            if run.first > last {
                return None;
            }
            if let Some((start, stop)) = run.live_span(from, last) {
                return Some((at, start, stop));
            }
            at += 1;
        }
    }

    /// The slot of the first run that ends after `seq`; the number of slots if there is none. A slot stands until the next
    /// change of contents.
    pub(crate) fn find(&self, seq: Seq) -> usize {
        let (Some(front), Some(back)) = (self.runs.front(), self.runs.back()) else {
            return 0;
        };
        if seq < front.end {
            return 0;
        }
        if seq >= back.first {
            return self.runs.len() - usize::from(seq < back.end);
        }
        // What is asked for mostly stands near one of the ends, and a search through the middle of a deep queue would
        // miss the processor's caches at every step: so the steps grow from the nearer end.
        let near_front = seq - front.first <= back.end - seq;
        let (mut low, mut high, mut step) = (0, self.runs.len(), 1);
        while high - low > step {
            let at = if near_front { low + step } else { high - step };
            match (self.runs[at].end <= seq, near_front) {
                (true, true) => low = at + 1,
                (false, false) => high = at,
                (false, true) => {
                    high = at;
                    break;
                }
                (true, false) => {
                    low = at + 1;
                    break;
                }
            }
            step *= 2;
        }
        while low < high {
            let middle = (low + high) / 2;
            match self.runs[middle].end <= seq {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// How many runs there are, tombstones included: what the queue costs in memory besides bodies.
    pub(crate) fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// The run in a slot.
    pub(crate) fn run(&self, at: usize) -> Option<&Run> {
        self.runs.get(at)
    }

    /// Notes that a `Store` of the run is under way or has failed.
    pub(crate) fn set_storing(&mut self, at: usize, storing: bool) {
        if let Some(run) = self.runs.get_mut(at) {
            run.storing = storing;
        }
    }

    /// Lets go of a run's block if it can be read again. True if memory was won.
    pub(crate) fn unload(&mut self, at: usize) -> bool {
        let Some(run) = self.runs.get_mut(at) else {
            return false;
        };
        if run.home == Home::None || run.memory.is_none() {
            return false;
        }
        run.take_down_sizes();
        self.sums.paged += u64::from(run.live);
        self.sums.paged_bytes += run.live_bytes();
        self.memory -= run.memory_bytes();
        run.memory = None;
        true
    }

    /// Gives a run its block back; message `seq` is number `seq - base` of it. False if the block does not hold the run.
    pub(crate) fn attach(&mut self, at: usize, block: Arc<Block>, base: Seq) -> bool {
        let Some(run) = self.runs.get_mut(at) else {
            return false;
        };
        if run.memory.is_some() || base > run.first || run.end - base > block.len() as u64 {
            return false;
        }
        self.memory += block.memory();
        self.sums.remove(run);
        run.memory = Some(Memory { block, base });
        if !run.sizes.are_exact() {
            run.sizes = Sizes::InBlock;
        }
        self.sums.add(run);
        true
    }

    /// Takes the places that became free since the last call: the journal's, then the others.
    pub(crate) fn take_freed(&mut self) -> Option<(Vec<Place>, Vec<Place>)> {
        if self.freed.is_empty() {
            return None;
        }
        let (known, others): (Vec<_>, Vec<_>) = self.freed.drain(..).partition(|(_, journaled)| *journaled);
        let places = |freed: Vec<(Place, bool)>| freed.into_iter().map(|(place, _)| place).collect();
        Some((places(known), places(others)))
    }

    /// A place is not needed that the journal does not know of.
    pub(crate) fn free(&mut self, place: Place) {
        self.freed.push((place, false));
    }

    /// All places in use, each once.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let mut seen = BTreeSet::new();
        self.runs
            .iter()
            .filter(|run| run.live > 0)
            .filter_map(move |run| match run.home {
                Home::Segment { place, .. } => {
                    let key = (place.segment, place.offset);
                    (!self.shared.contains_key(&key) || seen.insert(key)).then_some(place)
                }
                _ => None,
            })
    }

    /// Nothing is here any more, and nobody is told.
    pub(crate) fn clear(&mut self) {
        let next = self.next;
        *self = Self {
            next,
            ..Self::default()
        };
    }

    /// Makes a tombstone of a run without live messages.
    fn bury(&mut self, at: usize) {
        let run = &mut self.runs[at];
        self.memory -= run.memory_bytes();
        run.memory = None;
        run.sizes = Sizes::Same(0);
        self.dead += 1;
        let (home, journaled) = (std::mem::replace(&mut run.home, Home::None), run.journaled);
        if let Home::Segment { place, .. } = home {
            self.release(place, journaled);
        }
    }

    /// One run fewer refers to the place.
    fn release(&mut self, place: Place, journaled: bool) {
        let key = (place.segment, place.offset);
        match self.shared.get_mut(&key) {
            Some(others) if *others > 2 => *others -= 1,
            Some(_) => {
                self.shared.remove(&key);
            }
            None => self.freed.push((place, journaled)),
        }
    }

    /// Removes tombstones at the front, and all of them once they are more than half.
    fn tidy(&mut self) {
        while self.runs.front().is_some_and(|run| run.live == 0) {
            self.runs.pop_front();
            self.dead -= 1;
        }
        if self.dead > 32 && self.dead * 2 > self.runs.len() {
            self.runs.retain(|run| run.live > 0);
            self.dead = 0;
        }
    }
}
