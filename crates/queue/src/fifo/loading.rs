//! Reading back what was paged out: what is wanted now, and what will be wanted next.

use super::paging::Ticket;
use super::{Effect, Ends, Fifo, FifoOutcome};
use model::{Block, Seq};
use std::sync::Arc;

/// How far ahead of the cursor a queue that is being drained is read, in bytes; never more than half of the budget.
const READ_AHEAD: u64 = 2 * 1024 * 1024;

impl<E: Ends> Fifo<E> {
    /// Has the run in a slot read back, unless that is under way.
    pub(super) fn load(&mut self, slot: usize, outcome: &mut FifoOutcome<E>) {
        let Some(run) = self.contents.run(slot) else {
            return;
        };
        let Some((source, base)) = run.home.source() else {
            return;
        };
        // A load under way for the same message may be from an older home of the run. Its answer is awaited all the same,
        // because answers are told apart by that message.
        if self.paging.loads.contains_key(&run.first) {
            return;
        }
        self.paging.loads.insert(
            run.first,
            Ticket {
                source,
                base,
                weight: run.weight,
            },
        );
        self.paging.loading_bytes += run.weight;
        outcome.effects.push(Effect::Load {
            first: run.first,
            source,
        });
    }

    pub(super) fn loaded(&mut self, first: Seq, block: Option<Arc<Block>>, outcome: &mut FifoOutcome<E>) {
        let Some(ticket) = self.paging.loads.remove(&first) else {
            return;
        };
        self.paging.loading_bytes -= ticket.weight;
        let slot = self.contents.find(first);
        let wanted = |run: &&super::contents::Run| run.first <= first && run.live > 0 && run.memory.is_none();
        if let Some(run) = self.contents.run(slot).filter(wanted) {
            let (from, last) = (run.first, run.end - 1);
            let at_home = run.home.source() == Some((ticket.source, ticket.base));
            let estimate = (!run.sizes.are_exact()).then(|| self.bytes_by_standing(from, last));
            if block.is_some_and(|block| self.contents.attach(slot, block, ticket.base)) {
                if let Some(before) = estimate {
                    let after = self.bytes_by_standing(from, last);
                    let dispatch = &mut self.dispatch;
                    let sums = [
                        &mut dispatch.ready_bytes,
                        &mut dispatch.leaving_bytes,
                        &mut dispatch.taken_bytes,
                    ];
                    for (sum, (before, after)) in sums.into_iter().zip(before.into_iter().zip(after)) {
                        *sum = (*sum + after).saturating_sub(before);
                    }
                }
            } else if at_home {
                self.drop_unreadable(from, last, outcome);
            }
            // Else the run was moved while it was read, and what was read may be gone for that reason alone: it is read
            // again from where it is now.
        }
        self.deliver(outcome);
        self.relieve(outcome);
    }

    /// Keeps what comes after the cursor on its way to memory while somebody takes messages.
    pub(super) fn read_ahead(&mut self, outcome: &mut FifoOutcome<E>) {
        if self.paging.ahead < self.dispatch.cursor {
            self.paging.ahead = self.dispatch.cursor;
            self.paging.ahead_bytes = 0;
        }
        let mut slot = self.contents.find(self.paging.ahead);
        let window = READ_AHEAD.min(self.paging.budget as u64 / 2);
        while self.paging.ahead_bytes < window {
            let Some(run) = self.contents.run(slot) else { break };
            let (end, weight, live) = (run.end, run.weight, run.live > 0);
            if live && run.memory.is_none() {
                let memory = self.contents.memory() as u64 + self.paging.loading_bytes;
                if memory > self.paging.budget as u64 && !self.paging.loads.is_empty() {
                    break;
                }
                self.load(slot, outcome);
            }
            if live {
                self.paging.ahead_bytes += weight;
            }
            self.paging.ahead = end;
            slot += 1;
        }
    }

    /// Messages up to `last` of the run in a slot are ready no more.
    pub(super) fn passed(&mut self, slot: usize, last: Seq) {
        if self.paging.ahead_bytes > 0
            && last >= self.dispatch.cursor
            && let Some(run) = self.contents.run(slot)
            && last + 1 == run.end
            && run.end <= self.paging.ahead
        {
            self.paging.ahead_bytes = self.paging.ahead_bytes.saturating_sub(run.weight);
        }
    }

    /// After `last`, which came back once, was handed out again: its run was looked at long ago, so nobody else will let go
    /// of its bytes.
    pub(super) fn passed_again(&mut self, slot: usize, last: Seq) {
        if last >= self.paging.shed || self.contents.memory() <= self.paging.budget / 2 {
            return;
        }
        if let Some(run) = self.contents.run(slot)
            && run.end <= self.paging.shed
            && self.dispatch.returned.overlap(run.first, run.end - 1).is_none()
        {
            self.contents.unload(slot);
        }
    }

    /// The bytes of bodies in `first..=last`: of what is ready, of what leaves, and of what of that an operator has.
    fn bytes_by_standing(&self, first: Seq, last: Seq) -> [u64; 3] {
        let (mut ready, mut leaving, mut taken) = (0, 0, 0);
        let bytes = |from, to| self.contents.bytes_of(from, to);
        self.dispatch
            .ready_within(first, last, |from, to| ready += bytes(from, to));
        self.dispatch
            .leaving_within(first, last, |from, to| leaving += bytes(from, to));
        let mut at = first;
        while let Some((from, to)) = self.dispatch.taken.overlap(at, last) {
            taken += bytes(from, to);
            at = to + 1;
        }
        [ready, leaving, taken]
    }
}
