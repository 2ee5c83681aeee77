//! Reading back what was paged out: what is wanted now, and what will be wanted next.

use super::{Effect, Read, Source, Store};
use model::{Ranges, Seq, Timestamp};
use std::collections::BTreeMap;

/// How far ahead of the cursor a queue that is being drained is read, in bytes; never more than half of the budget.
const READ_AHEAD: u64 = 2 * 1024 * 1024;
/// What cannot be read is tried again after so long, in milliseconds; after each failure it takes twice as long.
const FIRST_DELAY_MS: u64 = 100;
/// At the longest.
const LONGEST_DELAY_MS: u64 = 30_000;

/// Loads under way, and what was read ahead.
#[derive(Debug)]
pub(super) struct Loads {
    /// By the message that the host was told.
    asked: BTreeMap<Seq, Load>,
    /// Those that have failed and wait to be tried again, by the same message.
    failed: BTreeMap<Seq, Failure>,
    /// When the first of them is tried again; `u64::MAX` if none waits.
    retry_ms: u64,
    /// The weight of loads under way, in bytes.
    bytes: u64,
    /// Ready runs that begin before this message are in memory or asked for.
    ahead: Seq,
    /// The weight of those between the cursor and `ahead`, in bytes.
    ahead_bytes: u64,
}

/// A load under way.
#[derive(Clone, Copy, Debug)]
struct Load {
    source: Source,
    base: Seq,
    weight: u64,
}

/// A load that failed.
#[derive(Clone, Copy, Debug)]
struct Failure {
    /// How often.
    times: u32,
    /// When it is tried again; `u64::MAX` while it is.
    at_ms: u64,
}

/// How long to wait after so many failures, in milliseconds.
pub(crate) fn retry_delay_ms(failures: u32) -> u64 {
    (FIRST_DELAY_MS << failures.min(10)).min(LONGEST_DELAY_MS)
}

impl Default for Loads {
    fn default() -> Self {
        Self {
            asked: BTreeMap::new(),
            failed: BTreeMap::new(),
            retry_ms: u64::MAX,
            bytes: 0,
            ahead: 0,
            ahead_bytes: 0,
        }
    }
}

impl Loads {
    /// True if nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// What was asked for ahead may have been paged out again.
    pub(super) fn look_again(&mut self) {
        (self.ahead, self.ahead_bytes) = (0, 0);
    }

    /// The load of the run that begins with `first` failed.
    fn fail(&mut self, first: Seq, now: Timestamp) {
        let failure = self.failed.entry(first).or_insert(Failure { times: 0, at_ms: 0 });
        failure.at_ms = now.0.saturating_add(retry_delay_ms(failure.times));
        failure.times += 1;
        self.look_when();
    }

    fn look_when(&mut self) {
        self.retry_ms = self.failed.values().map(|it| it.at_ms).min().unwrap_or(u64::MAX);
    }
}

impl Store {
    /// When something is to be read again that could not be read, in milliseconds since the Unix epoch; `u64::MAX` for never.
    #[inline]
    pub(crate) fn retry_ms(&self) -> u64 {
        self.paging.loads.retry_ms
    }

    /// Reads again what could not be read and is due.
    #[cold]
    pub(crate) fn retry_loads(&mut self, now: Timestamp) {
        let failed = self.paging.loads.failed.iter();
        let due: Vec<Seq> = failed
            .filter(|(_, it)| it.at_ms <= now.0)
            .map(|(first, _)| *first)
            .collect();
        for first in due {
            let slot = self.find(first);
            let wanted = self
                .runs
                .get(slot)
                .is_some_and(|run| run.first == first && run.live > 0 && run.memory.is_none() && !run.lost);
            match self.paging.loads.failed.get_mut(&first).filter(|_| wanted) {
                Some(failure) => failure.at_ms = u64::MAX,
                None => drop(self.paging.loads.failed.remove(&first)),
            }
            if wanted {
                self.order_load(slot);
            }
        }
        self.paging.loads.look_when();
    }

    /// Has the run in a slot read back, unless that is under way or waits because it could not be read.
    pub(crate) fn load(&mut self, slot: usize) {
        let Some(run) = self.runs.get(slot) else {
            return;
        };
        if run.lost {
            let mut seqs = Ranges::new();
            self.live_spans(run.first, run.end - 1, |_, from, to| seqs.push_span(from, to));
            self.report(seqs);
        } else if !self.paging.loads.failed.contains_key(&run.first) {
            self.order_load(slot);
        }
    }

    fn order_load(&mut self, slot: usize) {
        let Some(run) = self.runs.get(slot) else {
            return;
        };
        let Some((source, base)) = run.source() else {
            return;
        };
        let (first, weight) = (run.first, run.weight);
        let loads = &mut self.paging.loads;
        // A load under way for the same message may be from an older home of the run. Its answer is awaited all the same,
        // because answers are told apart by that message.
        if loads.asked.contains_key(&first) {
            return;
        }
        loads.asked.insert(first, Load { source, base, weight });
        loads.bytes += weight;
        let failures = loads.failed.get(&first).map_or(0, |failure| failure.times);
        self.orders.effects.push(Effect::Load {
            first,
            source,
            failures,
        });
    }

    /// The messages of which the answer to a load will say how large they are, if that is only estimated.
    pub(crate) fn estimated(&self, first: Seq) -> Option<(Seq, Seq)> {
        let run = self.runs.get(self.find(first))?;
        (run.first <= first && !run.sizes.are_exact()).then_some((run.first, run.end - 1))
    }

    /// The answer to a load.
    pub(crate) fn loaded(&mut self, first: Seq, read: Read, now: Timestamp) {
        let Some(load) = self.paging.loads.asked.remove(&first) else {
            return;
        };
        self.paging.loads.bytes -= load.weight;
        if matches!(read, Read::Failed) {
            return self.paging.loads.fail(first, now);
        }
        if self.paging.loads.failed.remove(&first).is_some() {
            self.paging.loads.look_when();
        }
        let slot = self.find(first);
        let Some(run) = self.runs.get(slot) else { return };
        if run.first > first || run.live == 0 || run.memory.is_some() || run.lost {
            return;
        }
        let (from, last) = (run.first, run.end - 1);
        let at_home = run.home.source() == Some((load.source, load.base));
        let lost = match read {
            Read::Found { block, damaged } if self.attach(slot, block.clone(), load.base) => damaged
                .spans()
                .map(|(a, b)| (load.base.saturating_add(a), load.base.saturating_add(b)))
                .filter_map(|(a, b)| Some((a.max(from), b.min(last))).filter(|(a, b)| a <= b))
                .collect(),
            // If the run was moved while it was read, what was read may be gone for that reason alone: it is read again from
            // where it is now.
            _ if !at_home => Vec::new(),
            _ => vec![(from, last)],
        };
        let mut unreadable = Ranges::new();
        lost.into_iter().for_each(|(a, b)| unreadable.push_span(a, b));
        self.lose(&unreadable, true);
    }

    /// Keeps what comes after the cursor on its way to memory while somebody takes messages.
    pub(crate) fn read_ahead(&mut self, cursor: Seq) {
        if self.paging.loads.ahead < cursor {
            self.paging.loads.ahead = cursor;
            self.paging.loads.ahead_bytes = 0;
        }
        let mut slot = self.find(self.paging.loads.ahead);
        let window = READ_AHEAD.min(self.paging.budget as u64 / 2);
        while self.paging.loads.ahead_bytes < window {
            let Some(run) = self.runs.get(slot) else { break };
            let (end, weight, live) = (run.end, run.weight, run.live > 0);
            if live && run.memory.is_none() && !run.lost {
                let memory = self.memory as u64 + self.paging.loads.bytes;
                if memory > self.paging.budget as u64 && !self.paging.loads.is_empty() {
                    break;
                }
                self.load(slot);
            }
            if live {
                self.paging.loads.ahead_bytes += weight;
            }
            self.paging.loads.ahead = end;
            slot += 1;
        }
    }

    /// Messages up to `last` of the run in a slot are ready no more; the cursor was at `cursor`.
    #[inline]
    pub(crate) fn passed(&mut self, slot: usize, last: Seq, cursor: Seq) {
        let loads = &mut self.paging.loads;
        if loads.ahead_bytes > 0
            && last >= cursor
            && let Some(run) = self.runs.get(slot)
            && last + 1 == run.end
            && run.end <= loads.ahead
        {
            loads.ahead_bytes = loads.ahead_bytes.saturating_sub(run.weight);
        }
    }

    /// After `last`, which came back once, was handed out again: its run was looked at long ago, so nobody else will let go
    /// of its bytes.
    #[inline]
    pub(crate) fn passed_again(&mut self, slot: usize, last: Seq, demand: super::Demand<'_>) {
        if last >= self.paging.shed || self.memory <= self.paging.budget / 2 {
            return;
        }
        if let Some(run) = self.runs.get(slot)
            && run.end <= self.paging.shed
            && demand.returned.overlap(run.first, run.end - 1).is_none()
        {
            self.unload(slot);
        }
    }
}
