//! What comes back from consumers: settled messages, and messages to deliver again.

use super::{Classic, Disposal, DropReason, Ends, FifoOutcome, Lane, Loss, Record};
use model::{ConsumerId, Ranges, Seq, Timestamp};

/// How messages come back from a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    /// Nobody can have seen them.
    Unseen,
    /// The consumer gave them back.
    Given,
    /// They were rejected, or the consumer was lost.
    Failed,
}

impl<E: Ends> Classic<E> {
    /// Messages that are not with a consumer are passed over: they were settled before, or never delivered.
    pub(super) fn settle(
        &mut self,
        consumer: Option<ConsumerId>,
        seqs: &Ranges,
        disposal: Disposal,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut count = 0;
        self.lanes.each_part(seqs, outcome, |lane, seqs, outcome| {
            count += lane.settle(seqs, disposal, outcome);
        });
        self.hold_fewer(consumer, count, outcome);
        if count > 0 && self.lanes.ready() > 0 {
            self.deliver(outcome);
        }
    }

    /// The consumer holds fewer messages, and may have kept one of a higher priority waiting until then.
    fn hold_fewer(&mut self, consumer: Option<ConsumerId>, count: u64, outcome: &mut FifoOutcome<E>) {
        self.consumers.hold_fewer(consumer, count);
        if count > 0 && self.settings.active_by_priority {
            self.activate(outcome);
        }
    }

    /// Delivered messages stand again where they stood.
    pub(super) fn take_back(
        &mut self,
        consumer: Option<ConsumerId>,
        seqs: &Ranges,
        back: Back,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut count = 0;
        self.lanes.each_part(seqs, outcome, |lane, seqs, outcome| {
            count += lane.take_back(seqs, back, now, outcome);
        });
        self.hold_fewer(consumer, count, outcome);
        // As in RabbitMQ what came back is dropped again if it is too much, even if somebody waits for it.
        self.overflow(outcome);
        if count > 0 && self.lanes.ready() > 0 {
            self.deliver(outcome);
        }
    }
}

impl Lane {
    /// Returns how many there were.
    fn settle<E: Ends>(&mut self, seqs: &Ranges, disposal: Disposal, outcome: &mut FifoOutcome<E>) -> u64 {
        if disposal == Disposal::Rejected && self.settings.dead_letter.is_some() {
            return self.reject(seqs, outcome);
        }
        let mut journaled = Ranges::new();
        let mut count = 0;
        for (first, last) in seqs.spans() {
            let last = last.min(self.dispatch.cursor.saturating_sub(1));
            if self.dispatch.returned.is_empty() && self.dispatch.leaving.is_empty() {
                if first <= last {
                    count += self.contents.remove(&mut self.store, first, last, &mut journaled);
                }
                continue;
            }
            let (contents, store) = (&mut self.contents, &mut self.store);
            self.dispatch.held_within(first, last, |from, to| {
                count += contents.remove(store, from, to, &mut journaled)
            });
        }
        self.overdue_are_settled(seqs);
        match disposal {
            Disposal::Accepted => self.record_settled(journaled, outcome),
            Disposal::Rejected => {
                self.lost(Loss::Dropped(DropReason::Rejected), count);
                self.record_dropped(journaled, DropReason::Rejected, outcome);
            }
        }
        count
    }

    /// Rejected messages go to the dead-letter exchange.
    fn reject<E: Ends>(&mut self, seqs: &Ranges, outcome: &mut FifoOutcome<E>) -> u64 {
        let mut spans = Vec::new();
        for (first, last) in seqs.spans() {
            self.store.live_spans(first, last, |_, from, to| {
                self.dispatch
                    .held_within(from, to, |from, to| spans.push((from, to)));
            });
        }
        let count = spans.iter().map(|(first, last)| last + 1 - first).sum();
        self.let_leave(spans, DropReason::Rejected, outcome);
        count
    }

    fn overdue_are_settled(&mut self, seqs: &Ranges) {
        if self.contents.expiries.any_late() {
            let spans: Vec<(Seq, Seq)> = seqs.spans().collect();
            self.overdue(&spans);
        }
    }

    /// Returns how many came back.
    pub(super) fn take_back<E: Ends>(
        &mut self,
        seqs: &Ranges,
        how: Back,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) -> u64 {
        let mut back: Vec<(Seq, Seq)> = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        for (first, last) in seqs.spans() {
            self.dispatch.held_within(first, last, |from, to| {
                self.store.live_spans(from, to, |run, start, stop| {
                    back.push((start, stop));
                    count += stop + 1 - start;
                    bytes += run.body_bytes(start, stop);
                });
            });
        }
        let overdue = self.overdue(&back);
        let mut journaled = Ranges::new();
        let seen = how != Back::Unseen;
        let counted = seen && self.counts_returns();
        for (first, last) in &back {
            self.dispatch.returned.insert(*first, *last);
            if seen && !counted {
                self.contents
                    .mark_returned(&self.store, *first, *last, &mut journaled);
            }
        }
        self.dispatch.ready += count;
        self.dispatch.handed = self.dispatch.handed.saturating_sub(count);
        self.dispatch.ready_bytes += bytes;
        if counted {
            self.came_back(&back, &overdue, how == Back::Failed, now, outcome);
        }
        if !journaled.is_empty() {
            let (seqs, given_back) = (journaled, false);
            outcome.records.push(Record::Returned { seqs, given_back });
        }
        if !overdue.is_empty() {
            self.discard(&overdue, DropReason::Expired, outcome);
        }
        count
    }
}
