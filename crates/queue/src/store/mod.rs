//! The message store of one replica: the messages that its machine was given and has not let go, and where the bytes of each are:
//! in memory, in this node's log, in segments. What becomes of a message its machine decides; here it is only kept.
//!
//! Both stand in one row of runs, because a message in memory would otherwise be searched for twice. The machine says what came
//! and what is gone, and asks what is there. The host answers what the store ordered ([`grammar`]); what the store must
//! find again after a restart it has the host remember, beside the machine's records and never among them.

mod checkpoint;
mod codec;
mod entry;
pub mod grammar;
mod loading;
mod lost;
mod paging;
mod pieces;
mod relocate;
mod run;
mod sizes;
mod sums;
mod table;

pub use entry::{EntryBuilder, decode_entry};
pub use grammar::{
    Bytes, Effect, LogPlace, Part, Piece, Place, Read, Record, Request, Row, Source, Stored, Table,
    Whereabouts,
};

pub(crate) use loading::retry_delay_ms;
pub(crate) use lost::Search;
pub(crate) use paging::Demand;
pub(crate) use pieces::Pieces;
pub(crate) use run::{Home, Memory, Run};
pub(crate) use sizes::Sizes;
pub(crate) use sums::Sums;

use model::{Block, Ranges, Seq};
use paging::Paging;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Messages as runs, ascending, and what is under way between memory and disk.
#[derive(Debug)]
pub(crate) struct Store {
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
    /// Places that several runs share, by segment and offset, and how many do.
    shared: BTreeMap<(u32, u32), u32>,
    /// Places that nothing refers to any more, and whether what is remembered speaks of them.
    freed: Vec<(Place, bool)>,
    paging: Paging,
    orders: Orders,
    /// The log is being replayed: nothing can be ordered yet.
    replaying: bool,
}

/// What the host is to do.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// At once.
    pub effects: Vec<Effect>,
    /// With the machine's records of this turn, or after them.
    pub promises: Vec<Effect>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            runs: VecDeque::new(),
            dead: 0,
            sums: Sums::default(),
            next: 1,
            memory: 0,
            shared: BTreeMap::new(),
            freed: Vec::new(),
            paging: Paging::default(),
            orders: Orders::default(),
            replaying: false,
        }
    }
}

impl Store {
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

    /// The first message of an empty queue gets this number.
    pub(crate) fn start_at(&mut self, first: Seq) {
        self.next = first;
    }

    /// Hands out `count` numbers to messages that never become contents.
    pub(crate) fn skip(&mut self, count: u64) {
        self.next += count;
    }

    /// Messages `from..` of the block are here, as `first`, `first + 1`, …; `journaled` says that the machine has a
    /// record of them, of which [`Store::appended`] tells where it stands. False, and nothing happened, if that
    /// contradicts what is here (a replay of records that are not ours).
    pub(crate) fn enqueue(&mut self, first: Seq, block: Arc<Block>, from: u32, journaled: bool) -> bool {
        let from = u64::from(from);
        let count = (block.len() as u64).saturating_sub(from);
        if count == 0 || first < self.next || first < from || first.checked_add(count).is_none() {
            return false;
        }
        let mut run = Run::new(first, count, journaled);
        run.weight = block.slice(from as usize, count as usize).len() as u64;
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

    /// The record that brought messages `first..` stands there in the log. It holds the block from message `first` on,
    /// so their bytes need not be kept here.
    pub(crate) fn appended(&mut self, first: Seq, at: LogPlace, demand: Demand<'_>) {
        let slot = self.find(first);
        if let Some(run) = self.runs.get_mut(slot)
            && run.first == first
            && run.is_unwritten()
        {
            run.home = Home::Log { at, base: first };
        }
        match self.replaying {
            false => self.relieve(demand),
            true => self.relieve_replaying(),
        }
    }

    /// Every message below is gone.
    pub(crate) fn low(&self) -> Seq {
        self.runs.front().map_or(self.next, |run| run.low)
    }

    /// True if this message's bytes are in memory.
    pub(crate) fn is_in_memory(&self, seq: Seq) -> bool {
        let run = self.run(self.find(seq));
        run.is_some_and(|run| run.first <= seq && run.memory.is_some())
    }

    /// True if this message is here, and journaled.
    pub(crate) fn is_journaled(&self, seq: Seq) -> bool {
        let run = self.run(self.find(seq));
        run.is_some_and(|run| run.journaled && run.live_span(seq, seq).is_some())
    }

    /// True if this message is here.
    pub(crate) fn lives(&self, seq: Seq) -> bool {
        self.run(self.find(seq))
            .is_some_and(|run| run.live_span(seq, seq).is_some())
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
    fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// The run in a slot.
    pub(crate) fn run(&self, at: usize) -> Option<&Run> {
        self.runs.get(at)
    }

    /// Notes that a `Store` of the run is under way or has failed.
    fn set_storing(&mut self, at: usize, storing: bool) {
        if let Some(run) = self.runs.get_mut(at) {
            run.storing = storing;
        }
    }

    /// Lets go of a run's block if it can be read again. True if memory was won.
    fn unload(&mut self, at: usize) -> bool {
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
    fn attach(&mut self, at: usize, block: Arc<Block>, base: Seq) -> bool {
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

    /// A place is not needed that nothing remembered speaks of.
    fn free(&mut self, place: Place) {
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

    /// What lies in segments, each place once.
    pub(crate) fn in_segments(&self) -> impl Iterator<Item = Stored> + use<> {
        let mut stored: BTreeMap<(u32, u32), Stored> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| run.live > 0 && !run.lost) {
            if let Home::Segment { place, base } = run.home {
                let here = stored.entry((place.segment, place.offset)).or_insert(Stored {
                    first: base,
                    count: 0,
                    place,
                });
                here.count = here.count.max((run.end - base) as u32);
            }
        }
        stored.into_values()
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

    /// Removes the live messages in `first..=last`; those that are journaled are added to `journaled`. Returns how many
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
        self.tidy();
        total
    }

    /// Nothing is here any more, and nobody is told.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            next: self.next,
            paging: Paging::with_budget(self.paging.budget),
            ..Self::default()
        };
    }

    /// The log is replayed from now on, until [`Store::replayed`].
    pub(crate) fn replay(&mut self) {
        self.replaying = true;
    }

    /// See [`Store::replay`].
    pub(crate) fn is_replaying(&self) -> bool {
        self.replaying
    }

    /// What the log knew is here. What became free meanwhile nobody has taken over.
    pub(crate) fn replayed(&mut self) {
        if std::mem::take(&mut self.replaying) {
            self.freed.clear();
            self.orders = Orders::default();
            self.paging.replayed(self.next);
        }
    }

    /// True if it holds nothing and expects nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.sums.live == 0 && self.paging.is_idle()
    }

    /// Takes what the host is to do.
    #[inline]
    pub(crate) fn take_orders(&mut self) -> Option<Orders> {
        if !self.freed.is_empty() && !self.replaying {
            self.order_release();
        }
        match self.orders.effects.is_empty() && self.orders.promises.is_empty() {
            true => None,
            false => Some(std::mem::take(&mut self.orders)),
        }
    }

    /// Gives back places that became free. Those that are remembered must stand until it is remembered that they are free.
    #[cold]
    fn order_release(&mut self) {
        let (known, others): (Vec<_>, Vec<_>) = self.freed.drain(..).partition(|(_, journaled)| *journaled);
        let places = |freed: Vec<(Place, bool)>| freed.into_iter().map(|(place, _)| place).collect();
        if !known.is_empty() {
            let places = places(known);
            self.orders.promises.push(Effect::Release { places });
        }
        if !others.is_empty() {
            let places = places(others);
            self.orders.effects.push(Effect::Release { places });
        }
    }
}
