//! Handing out what is ready: to waiting gets first, then to consumers in turn.

use super::dispatch::{PendingGet, Span};
use super::overflow::enough;
use super::{Answer, Delivery, Effect, Ends, Fifo, FifoOutcome};
use model::{Ranges, Seq};

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
}

impl<E: Ends> Fifo<E> {
    pub(super) fn get(&mut self, no_ack: bool, reply: E::Reply, outcome: &mut FifoOutcome<E>) {
        self.dispatch.gets.push_back(PendingGet { no_ack, reply });
        self.deliver(outcome);
    }

    /// Hands out all that can be handed out now; has read back what is wanted and not in memory.
    pub(super) fn deliver(&mut self, outcome: &mut FifoOutcome<E>) {
        let mut settled = Ranges::new();
        let mut journaled = Ranges::new();
        let mut moved = false;
        while self.dispatch.ready > 0
            && self.dispatch.allowance > 0
            && (!self.dispatch.gets.is_empty() || self.dispatch.ring.is_hungry())
        {
            let Some(mut ready) = self.next_ready() else { break };
            let Some(run) = self.store.run(ready.slot) else {
                break;
            };
            let Some(memory) = run.memory.clone() else {
                self.store.load(ready.slot);
                moved = true;
                break;
            };
            if self.dispatch.allowance < u64::MAX {
                let size = |seq| run.body_bytes(seq, seq) + OVERHEAD;
                ready.last = enough(ready.first, ready.last, self.dispatch.allowance, size).0;
            }
            let span = Span {
                first: ready.first,
                last: ready.last,
                block: &memory.block,
                base: memory.base,
                redelivered: ready.redelivered,
                returns: ready.returns,
            };
            let count = match self.dispatch.gets.pop_front() {
                Some(get) => {
                    self.hand_out(ready, 1);
                    self.answer_get(get, span, &mut settled, outcome)
                }
                None => {
                    let count = self.dispatch.ring.deal(span, &mut settled, &mut outcome.effects);
                    self.hand_out(ready, count);
                    count
                }
            };
            if count == 0 {
                break;
            }
            moved = true;
            for (first, last) in settled.spans() {
                self.contents.remove(&mut self.store, first, last, &mut journaled);
            }
            settled.clear();
        }
        self.record_settled(journaled, outcome);
        self.end_waiting(outcome);
        if moved && self.store.paged() > 0 {
            self.store.relieve(self.dispatch.demand());
            self.store.read_ahead(self.dispatch.cursor);
        }
    }

    /// Nothing is ready: whoever waits for a load of what is gone now has its answer.
    pub(super) fn end_waiting(&mut self, outcome: &mut FifoOutcome<E>) {
        if self.dispatch.ready + self.dispatch.elsewhere == 0 {
            for get in self.dispatch.gets.drain(..) {
                outcome.effects.push(Effect::Reply(get.reply, Answer::Empty));
            }
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
            });
        }
        if first < self.dispatch.suspect_below {
            return Some(Ready {
                slot,
                first,
                last: self.dispatch.suspect_below - 1,
                redelivered: true,
                returns: 0,
            });
        }
        let (last, redelivered) = self.contents.alike(first, last);
        Some(Ready {
            slot,
            first,
            last,
            redelivered,
            returns: 0,
        })
    }

    /// The first of these ready messages that came back equally often.
    fn counted(&self, slot: usize, first: Seq, last: Seq) -> Ready {
        let (mut last, returns) = self.contents.returned_alike(first, last);
        let suspect = first < self.dispatch.suspect_below;
        if suspect {
            last = last.min(self.dispatch.suspect_below - 1);
        }
        Ready {
            slot,
            first,
            last,
            redelivered: suspect || returns > 0,
            returns,
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

    fn answer_get(
        &mut self,
        get: PendingGet<E>,
        span: Span<'_>,
        settled: &mut Ranges,
        outcome: &mut FifoOutcome<E>,
    ) -> u64 {
        let seq = span.first;
        if get.no_ack {
            settled.push(seq);
        }
        let delivery = Delivery {
            seqs: Ranges::one(seq),
            block: span.block.clone(),
            base: span.base,
            redelivered: span.redelivered,
            returns: span.returns,
        };
        let answer = Answer::Got {
            delivery,
            remaining: self.dispatch.ready + self.dispatch.elsewhere,
        };
        outcome.effects.push(Effect::Reply(get.reply, answer));
        1
    }

    /// The first `count` of these are with their consumers now.
    fn hand_out(&mut self, ready: Ready, count: u64) {
        let Some(last) = (ready.first + count)
            .checked_sub(1)
            .filter(|last| *last >= ready.first)
        else {
            return;
        };
        let bytes = self
            .store
            .run(ready.slot)
            .map_or(0, |run| run.body_bytes(ready.first, last));
        if self.dispatch.allowance < u64::MAX {
            self.dispatch.allowance = self.dispatch.allowance.saturating_sub(bytes + count * OVERHEAD);
        }
        self.store.passed(ready.slot, last, self.dispatch.cursor);
        self.dispatch.handed += count;
        self.dispatch.take(ready.first, last, bytes);
        self.store.passed_again(ready.slot, last, self.dispatch.demand());
    }
}
