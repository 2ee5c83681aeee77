//! Looking at what is there: which messages, where their bytes are, what becomes of them. Nothing is changed by it, which the
//! type says: everything here borrows the queue and no more.
//!
//! A look is a bounded piece of work, however long the queue is: whoever wants more goes on from where it ended. Places are
//! told by messages' numbers, so a look goes on rightly although messages came and went meanwhile.

use super::{Glance, Glimpse, Lane, Standing};
use model::Seq;

/// How many runs one look passes at the most, tombstones included.
const RUNS: usize = 4096;
/// How many spans it shows at the most.
const SPANS: usize = 512;

/// What a look at the queue may still pass over and show.
pub(super) struct LookLimits {
    /// So many messages are passed over first.
    pub skip: u64,
    /// So many are shown at the most.
    pub count: u64,
    runs: usize,
}

impl LookLimits {
    pub(super) fn new(skip: u64, count: u64) -> Self {
        Self {
            skip,
            count,
            runs: RUNS,
        }
    }

    fn is_over(&self, glance: &Glance) -> bool {
        self.count == 0 || self.runs == 0 || glance.spans.len() >= SPANS
    }
}

impl Lane {
    /// Looks at the messages from `from` on. False if the look ended before the queue did; then `glance.next` says where.
    pub(super) fn look(&self, from: Seq, limits: &mut LookLimits, glance: &mut Glance) -> bool {
        let mut slot = self.store.find(from);
        let mut from = from;
        while let Some(run) = self.store.run(slot) {
            from = from.max(run.first);
            if limits.is_over(glance) {
                glance.next = Some(from);
                return false;
            }
            limits.runs -= 1;
            if from <= run.low && u64::from(run.live) <= limits.skip {
                limits.skip -= u64::from(run.live);
                glance.skipped += u64::from(run.live);
                from = run.end;
            }
            while let Some((first, last)) = run.live_span(from, run.end - 1) {
                let passed = limits.skip.min(last + 1 - first);
                limits.skip -= passed;
                glance.skipped += passed;
                from = first + passed;
                if from > last {
                    continue;
                }
                if limits.is_over(glance) {
                    glance.next = Some(from);
                    return false;
                }
                let shown = self.glimpse(slot, from, last.min(from.saturating_add(limits.count - 1)));
                let Some(shown) = shown else { break };
                from = shown.last + 1;
                limits.count -= shown.last + 1 - shown.first;
                glance.spans.push(shown);
            }
            from = run.end;
            slot += 1;
        }
        true
    }

    /// The first of the live messages `first..=last` of a run, with those that are alike.
    fn glimpse(&self, slot: usize, first: Seq, last: Seq) -> Option<Glimpse> {
        let run = self.store.run(slot)?;
        let (bytes, base) = run
            .bytes()
            .map_or((None, run.first), |(bytes, base)| (Some(bytes), base));
        let (standing, last) = self.standing(first, last);
        let (mut last, returns) = self.contents.returned_alike(first, last);
        let suspect = first < self.dispatch.suspect_below;
        if suspect {
            last = last.min(self.dispatch.suspect_below - 1);
        }
        Some(Glimpse {
            first,
            last,
            standing,
            redelivered: suspect || returns > 0,
            returns,
            bytes,
            base,
        })
    }

    /// Whose the live message `first` is, and up to which one the same is true.
    fn standing(&self, first: Seq, last: Seq) -> (Standing, Seq) {
        let dispatch = &self.dispatch;
        let mut last = last;
        match dispatch.leaving.overlap(first, last) {
            Some((from, _)) if from == first => {
                return match () {
                    () if self.contents.retries.waits(first) => (Standing::Waiting, first),
                    () if dispatch.taken.overlap(first, first).is_some() => (Standing::Held, first),
                    () => (Standing::Leaving, first),
                };
            }
            Some((from, _)) => last = from - 1,
            None => {}
        }
        if first >= dispatch.cursor {
            return (Standing::Ready, last);
        }
        last = last.min(dispatch.cursor - 1);
        match dispatch.returned.overlap(first, last) {
            Some((from, to)) if from == first => (Standing::Ready, to),
            Some((from, _)) => (Standing::Held, from - 1),
            None => (Standing::Held, last),
        }
    }

    /// What the publisher wrote as the time of the first message (`timestamp`, in seconds since the Unix epoch): of the
    /// first ready one or of the first that a consumer holds, whichever says less, as in RabbitMQ. `None` if they say
    /// nothing, or are not in memory.
    pub(super) fn head_timestamp(&self) -> Option<u64> {
        let first = self.store.first_live(0, Seq::MAX);
        let first = first.map(|(slot, seq, _)| (slot, seq));
        let ready = (self.dispatch.ready > 0).then(|| self.first_ready()).flatten();
        let heads = [first, ready].into_iter().flatten();
        heads.filter_map(|(slot, seq)| self.timestamp(slot, seq)).min()
    }

    fn timestamp(&self, slot: usize, seq: Seq) -> Option<u64> {
        let memory = self.store.run(slot)?.memory.as_ref()?;
        let message = memory.block.message((seq - memory.base) as usize);
        message.properties.timestamp()
    }

    /// The number of the first of the last `count` messages before `before`; less are counted off `count`. A bounded piece of
    /// work too: it may stop short.
    pub(super) fn back(&self, before: Seq, count: &mut u64) -> Seq {
        let mut at = before.min(self.store.next());
        let mut slot = self.store.find(at.saturating_sub(1));
        for _ in 0..RUNS {
            if *count == 0 {
                break;
            }
            if let Some(run) = self.store.run(slot) {
                at = at.min(run.end);
                if at == run.end && u64::from(run.live) <= *count {
                    *count -= u64::from(run.live);
                    at = run.low;
                } else {
                    let mut spans = Vec::new();
                    let mut from = run.low;
                    while let Some((first, last)) = run.live_span(from, at.saturating_sub(1)) {
                        spans.push((first, last));
                        from = last + 1;
                    }
                    for (first, last) in spans.into_iter().rev() {
                        let taken = (*count).min(last + 1 - first);
                        *count -= taken;
                        at = last + 1 - taken;
                        if *count == 0 {
                            break;
                        }
                    }
                }
            }
            match slot.checked_sub(1) {
                Some(before) => slot = before,
                None => break,
            }
        }
        at
    }
}
