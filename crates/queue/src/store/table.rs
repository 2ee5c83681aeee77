//! Where everything is, to be remembered with the machine's contents, and back.

use super::entry::SMALLEST;
use super::{Home, LogPlace, Row, Run, Sizes, Source, Store, Table};
use model::{Ranges, Seq};
use std::collections::BTreeMap;

/// So many messages in a row may be expected somewhere else when nothing is known of where; more can only be nonsense,
/// and would cost memory.
const MOST_MISSING: u64 = 1 << 24;

impl Store {
    /// Where everything lies that is journaled, and how large it is.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table {
            rows: Vec::with_capacity(self.runs.len() - self.dead),
        };
        for run in self.runs.iter().filter(|run| run.journaled && run.live > 0) {
            let source = match run.source() {
                None if run.is_unwritten() => Some((Source::Log(LogPlace::NONE), run.first)),
                source => source,
            };
            if source.is_none() && !run.lost {
                continue;
            }
            table.rows.push(Row {
                first: run.low,
                count: (run.end - run.low) as u32,
                source: source.map(|(source, _)| source),
                base: source.map_or(run.low, |(_, base)| base),
                body_bytes: run.body_bytes(run.low, run.end - 1),
                weight: run.weight,
            });
        }
        table
    }

    /// The journaled messages that are here.
    pub(crate) fn journaled(&self) -> Ranges {
        let mut seqs = Ranges::new();
        for run in self.runs.iter().filter(|run| run.journaled) {
            let mut at = run.low;
            while let Some((from, to)) = run.live_span(at, Seq::MAX) {
                seqs.push_span(from, to);
                at = to + 1;
            }
        }
        seqs
    }

    /// The messages `live` exist, the next one gets the number `next`, and the table says where they are; what was here before is
    /// forgotten. Rows that contradict each other are left out; messages of which no row speaks cannot be read here.
    pub(crate) fn restore(&mut self, table: &Table, live: &Ranges, next: Seq) {
        let mut known: BTreeMap<LogPlace, Run> = BTreeMap::new();
        for run in std::mem::take(&mut self.runs) {
            if let (Home::Log { at, .. }, true) = (run.home, run.memory.is_some()) {
                known.insert(at, run);
            }
        }
        let replaying = self.replaying;
        self.clear();
        (self.next, self.replaying) = (next, replaying);
        let live: Vec<(Seq, Seq)> = live.spans().collect();
        let mut end = 1;
        for row in &table.rows {
            let Some(mut run) = restored(row).filter(|run| run.first >= end && run.end <= next) else {
                continue;
            };
            self.restore_missing(&live, end, run.first);
            end = run.end;
            keep_only(&mut run, &live);
            if run.live == 0 {
                continue;
            }
            // What retained records brought before need not be read again.
            if let Some(Source::Log(at)) = row.source
                && let Some(earlier) = known.get(&at)
                && earlier.first <= run.first
                && earlier.end == run.end
            {
                run.memory = earlier.memory.clone();
                run.sizes = Sizes::InBlock;
            }
            self.sums.add(&run);
            self.memory += run.memory_bytes();
            if let Some(Source::Segment(place)) = row.source {
                *self.shared.entry((place.segment, place.offset)).or_insert(0) += 1;
            }
            self.runs.push_back(run);
        }
        self.restore_missing(&live, end, next);
        self.shared.retain(|_, runs| *runs > 1);
    }

    /// Messages `from..end` of which no row speaks.
    fn restore_missing(&mut self, live: &[(Seq, Seq)], from: Seq, end: Seq) {
        let at = live.partition_point(|(_, last)| *last < from);
        for (first, last) in live[at..].iter().take_while(|(first, _)| *first < end) {
            let first = (*first).max(from);
            let count = last.saturating_add(1).min(end).saturating_sub(first);
            if count == 0 || count > MOST_MISSING {
                continue;
            }
            let mut run = Run::new(first, count, true);
            run.lost = true;
            run.sizes = Sizes::Same(0);
            self.sums.add(&run);
            self.runs.push_back(run);
        }
    }
}

/// Removes the run's messages that are not among the live ones.
fn keep_only(run: &mut Run, live: &[(Seq, Seq)]) {
    let mut at = run.first;
    let from = live.partition_point(|(_, last)| *last < run.first);
    let end = run.end;
    for (first, last) in live[from..].iter().take_while(|(first, _)| *first < end) {
        if *first > at {
            run.remove(at, first - 1, |_, _| {});
        }
        at = last.saturating_add(1);
    }
    if at < end {
        run.remove(at, end - 1, |_, _| {});
    }
}

fn restored(row: &Row) -> Option<Run> {
    let count = u64::from(row.count);
    row.first.checked_add(count)?;
    // More messages than bytes there are to read can only be nonsense, and would cost memory.
    let most = match row.source {
        Some(Source::Segment(place)) => u64::from(place.length),
        Some(Source::Log(_)) | None => row.weight.min(u64::from(u32::MAX)),
    };
    if count == 0 || row.first < row.base || row.first == 0 || count > most / SMALLEST {
        return None;
    }
    let mut run = Run::new(row.first, count, true);
    run.home = match row.source {
        Some(Source::Segment(place)) => Home::Segment {
            place,
            base: row.base,
        },
        Some(Source::Log(at)) => Home::Log { at, base: row.base },
        None => Home::None,
    };
    run.lost = row.source.is_none();
    // No entry is larger than a block can be; anything else would make sums overflow.
    run.weight = row.weight.min(u64::from(u32::MAX));
    run.sizes = Sizes::Spread(row.body_bytes.min(run.weight));
    Some(run)
}
