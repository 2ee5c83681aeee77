//! Handing out what is ready: to waiting gets first, then to consumers in turn.

use super::consumers::Consumers;
use super::dispatch::Span;
use super::lanes::Lanes;
use super::overflow::enough;
use super::{Answer, Classic, Effect, Ends, FifoOutcome, Lane};
use model::{Mutant, Ranges, Seq};

/// An allowance that never ends.
const NO_END: u64 = u64::MAX;

/// What a message costs of its lane's allowance beyond its body, in bytes: empty ones are not free.
pub(super) const OVERHEAD: u64 = 64;

/// Ready messages that lie together and are told apart by nothing: of one run, all redelivered or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    /// The run's slot.
    pub slot: usize,
    pub first: Seq,
    pub last: Seq,
    pub redelivered: bool,
    /// How often they came back, if the queue tells.
    pub returns: u32,
    /// And how many of these count for its limit, if it counts them apart.
    pub failures: Option<u32>,
}

impl<E: Ends> Classic<E> {
    /// Hands out all that can be handed out now; has read back what is wanted and not in memory. Nothing as long as it
    /// is not known what consumers hold of what another machine has delivered.
    pub(super) fn deliver(&mut self, outcome: &mut FifoOutcome<E>) {
        if self.reattaching.is_some() {
            return;
        }
        match &mut self.lanes {
            Lanes::One(lane) => lane.deliver(&mut self.consumers, NO_END, 0, outcome),
            Lanes::Sorted(lanes) => lanes.deliver(&mut self.consumers, outcome),
        }
        self.end_waiting(outcome);
    }

    /// Nothing is ready: whoever waits for a load of what is gone now has its answer.
    #[inline]
    pub(super) fn end_waiting(&mut self, outcome: &mut FifoOutcome<E>) {
        if self.consumers.gets.is_empty() || self.lanes.ready() > 0 || self.reattaching.is_some() {
            return;
        }
        for get in self.consumers.gets.drain(..) {
            outcome.effects.push(Effect::Reply(get.reply, Answer::Empty));
        }
    }
}

impl Lane {
    /// Hands out at most so many bytes (see [`OVERHEAD`]) of what is ready. So many messages are ready in other lanes.
    pub(super) fn deliver<E: Ends>(
        &mut self,
        consumers: &mut Consumers<E>,
        mut allowance: u64,
        elsewhere: u64,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut settled = Ranges::new();
        let mut journaled = Ranges::new();
        let mut moved = false;
        while self.dispatch.ready > 0 && allowance > 0 && consumers.want() {
            let Some(mut ready) = self.next_ready() else { break };
            let Some(run) = self.store.run(ready.slot) else {
                break;
            };
            let Some(memory) = run.memory.clone() else {
                self.store.load(ready.slot);
                moved = true;
                break;
            };
            if allowance < NO_END {
                let size = |seq| run.body_bytes(seq, seq) + OVERHEAD;
                ready.last = enough(ready.first, ready.last, allowance, size).0;
            }
            let span = Span {
                first: ready.first,
                last: ready.last,
                block: &memory.block,
                base: memory.base,
                redelivered: ready.redelivered,
                returns: ready.returns,
                failures: ready.failures,
            };
            let get = consumers.gets.pop_front();
            let count = match &get {
                Some(_) => 1,
                None => consumers.ring.deal(span, &mut settled, &mut outcome.effects),
            };
            if count == 0 {
                break;
            }
            let used = self.hand_out(ready, count);
            let last = ready.first + count - 1;
            if last >= self.reserved_below {
                self.reserve(last, outcome);
            }
            if allowance < NO_END {
                allowance = allowance.saturating_sub(used);
            }
            if let Some(get) = get {
                if get.no_ack {
                    settled.push(span.first);
                }
                outcome
                    .effects
                    .push(get.answer(span, self.dispatch.ready + elsewhere));
            }
            moved = true;
            for (first, last) in settled.spans() {
                self.contents.remove(&mut self.store, first, last, &mut journaled);
            }
            settled.clear();
        }
        self.record_settled(journaled, outcome);
        if moved && self.store.paged() > 0 {
            self.store.relieve(self.dispatch.demand());
            self.store.read_ahead(self.dispatch.cursor);
        }
    }

    /// The next ready messages in order. Returned ones come first: they stand before the cursor.
    pub(super) fn next_ready(&self) -> Option<Ready> {
        let (slot, first, last) = match self.dispatch.returned.first() {
            Some((first, last)) => self.store.first_live(first, last)?,
            None if self.dispatch.leaving.is_empty() => {
                self.store.first_live(self.dispatch.cursor, Seq::MAX)?
            }
            None => self.first_that_stays()?,
        };
        if self.counts_returns() {
            return Some(self.counted(slot, first, last));
        }
        if last < self.dispatch.suspect_below {
            return Some(Ready {
                slot,
                first,
                last,
                redelivered: true,
                returns: 0,
                failures: None,
            });
        }
        if first < self.dispatch.suspect_below {
            return Some(Ready {
                slot,
                first,
                last: self.dispatch.suspect_below - 1,
                redelivered: true,
                returns: 0,
                failures: None,
            });
        }
        let (last, redelivered) = self.contents.alike(first, last);
        Some(Ready {
            slot,
            first,
            last,
            redelivered,
            returns: 0,
            failures: None,
        })
    }

    /// The first of these ready messages that came back equally often.
    fn counted(&self, slot: usize, first: Seq, last: Seq) -> Ready {
        let (mut last, returns) = self.contents.returned_alike(first, last);
        let failures = self.settings.counts_failures.then(|| {
            let (to, given_back) = self.contents.given_back_alike(first, last);
            last = to;
            returns.saturating_sub(given_back)
        });
        let suspect = first < self.dispatch.suspect_below;
        if suspect {
            last = last.min(self.dispatch.suspect_below - 1);
        }
        Ready {
            slot,
            first,
            last,
            redelivered: suspect || returns > 0 || Mutant::MarksNew.is_on(),
            returns,
            failures,
        }
    }

    /// The first ready messages at or after the cursor, when some there are on their way to a dead-letter exchange.
    pub(super) fn first_that_stays(&self) -> Option<(usize, Seq, Seq)> {
        let mut at = self.dispatch.cursor;
        loop {
            let (slot, first, last) = self.store.first_live(at, Seq::MAX)?;
            match self.dispatch.leaving.overlap(first, last) {
                Some((from, to)) if from == first => at = to + 1,
                Some((from, _)) => return Some((slot, first, from - 1)),
                None => return Some((slot, first, last)),
            }
        }
    }

    /// The first `count` of these are with their consumers now. Returns what they cost of the allowance.
    fn hand_out(&mut self, ready: Ready, count: u64) -> u64 {
        let last = ready.first + count - 1;
        let bytes = self
            .store
            .run(ready.slot)
            .map_or(0, |run| run.body_bytes(ready.first, last));
        self.store.passed(ready.slot, last, self.dispatch.cursor);
        self.dispatch.handed += count;
        self.dispatch.take(ready.first, last, bytes);
        self.store.passed_again(ready.slot, last, self.dispatch.demand());
        bytes + count * OVERHEAD
    }
}
