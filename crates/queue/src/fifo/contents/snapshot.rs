//! Contents as one record, and back.

use super::{Contents, Home, Run, Sizes, push_time};
use crate::fifo::record::{Kept, Rest, Snapshot};
use model::{Index, Seq};
use std::collections::BTreeMap;

/// The least that a message takes in a block, in bytes: its lengths and two empty names.
const SMALLEST: u64 = 14;

impl Contents {
    /// Everything that the journal knows of. `upto` is the snapshot's own number.
    pub(crate) fn snapshot(&self, upto: Index) -> Snapshot {
        let mut snapshot = Snapshot {
            since: upto,
            next: self.next,
            settled_high: self.settled_high,
            kept: Vec::with_capacity(self.runs.len() - self.dead),
            returned: Vec::new(),
            expiries: self.expiries.list(),
            retries: Vec::new(),
            keys: Vec::new(),
        };
        for run in self.runs.iter().filter(|run| run.journaled && run.live > 0) {
            let (rest, base) = match run.home {
                Home::Segment { place, base } => (Rest::Segment(place), base),
                Home::Journal { index, base } => {
                    snapshot.since = snapshot.since.min(index);
                    (Rest::Journal(index), base)
                }
                Home::None => continue,
            };
            snapshot.kept.push(Kept {
                first: run.low,
                count: (run.end - run.low) as u32,
                rest,
                base,
                gone: run.holes(),
                body_bytes: run.body_bytes(run.low, run.end - 1),
                weight: run.weight,
            });
        }
        let journaled = |seq: &Seq| self.run(self.find(*seq)).is_some_and(|run| run.journaled);
        for (seq, at_ms) in self.retries.list().filter(|(seq, _)| journaled(seq)) {
            push_time(&mut snapshot.retries, seq, at_ms);
        }
        let known = self.keys.list().filter(|(seq, _)| self.lives(*seq));
        snapshot.keys.extend(known.filter(|(seq, _)| journaled(seq)));
        snapshot.keys.sort_unstable();
        snapshot.returned.extend(
            self.marks
                .iter()
                .filter(|(seq, _)| journaled(seq))
                .map(|(seq, times)| (*seq, *times)),
        );
        snapshot
    }

    /// Becomes what the snapshot says; what was here before is forgotten. Entries that contradict each other are left out.
    pub(crate) fn restore(&mut self, snapshot: Snapshot) {
        let mut known: BTreeMap<Index, Run> = BTreeMap::new();
        for run in std::mem::take(&mut self.runs) {
            if let (Home::Journal { index, .. }, true) = (run.home, run.memory.is_some()) {
                known.insert(index, run);
            }
        }
        *self = Self {
            next: snapshot.next.max(1),
            settled_high: snapshot.settled_high,
            ..Self::default()
        };
        let mut end = 1;
        for kept in snapshot.kept {
            let Some(mut run) = restored(&kept).filter(|run| run.first >= end && run.end <= self.next) else {
                continue;
            };
            // What retained records brought before the snapshot need not be read again.
            if let Rest::Journal(index) = kept.rest
                && let Some(earlier) = known.get(&index)
                && earlier.first <= run.first
                && earlier.end == run.end
            {
                run.memory.clone_from(&earlier.memory);
                run.sizes = Sizes::InBlock;
            }
            end = run.end;
            self.sums.add(&run);
            self.memory += run.memory_bytes();
            if let Rest::Segment(place) = kept.rest {
                *self.shared.entry((place.segment, place.offset)).or_insert(0) += 1;
            }
            self.runs.push_back(run);
        }
        self.shared.retain(|_, runs| *runs > 1);
        self.expire_at(&snapshot.expiries);
        for (seq, times) in snapshot.returned {
            if self.first_live(seq, seq).is_some() {
                self.marks.insert(seq, times);
            }
        }
        self.retry_at(&snapshot.retries);
        for (seq, key) in snapshot.keys {
            self.keys.insert(key, seq);
        }
    }
}

fn restored(kept: &Kept) -> Option<Run> {
    let count = u64::from(kept.count);
    kept.first.checked_add(count)?;
    // More messages than bytes there are to read can only be nonsense, and would cost memory.
    let most = match kept.rest {
        Rest::Segment(place) => u64::from(place.length),
        Rest::Journal(_) => kept.weight.min(u64::from(u32::MAX)),
    };
    if count == 0 || kept.first < kept.base || kept.first == 0 || count > most / SMALLEST {
        return None;
    }
    let mut run = Run::new(kept.first, count, true);
    run.home = match kept.rest {
        Rest::Segment(place) => Home::Segment {
            place,
            base: kept.base,
        },
        Rest::Journal(index) => Home::Journal {
            index,
            base: kept.base,
        },
    };
    // No entry is larger than a block can be; anything else would make sums overflow.
    run.weight = kept.weight.min(u64::from(u32::MAX));
    run.sizes = Sizes::Spread(kept.body_bytes.min(run.weight));
    for (from, to) in kept.gone.spans() {
        run.remove(from.max(run.first), to, |_, _| {});
    }
    (run.live > 0).then_some(run)
}
