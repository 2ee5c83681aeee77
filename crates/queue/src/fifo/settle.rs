//! What comes back from consumers: settled messages, and messages to deliver again.

use super::{Disposal, DropReason, Ends, Fifo, FifoOutcome, Record};
use model::{ConsumerId, Ranges, Seq};

impl<E: Ends> Fifo<E> {
    /// Messages that are not with a consumer are passed over: they were settled before, or never delivered.
    pub(super) fn settle(
        &mut self,
        consumer: Option<ConsumerId>,
        seqs: &Ranges,
        disposal: Disposal,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut journaled = Ranges::new();
        let mut count = 0;
        for (first, last) in seqs.spans() {
            let last = last.min(self.dispatch.cursor.saturating_sub(1));
            if self.dispatch.returned.is_empty() {
                if first <= last {
                    count += self.contents.remove(first, last, &mut journaled);
                }
                continue;
            }
            let contents = &mut self.contents;
            self.dispatch.returned.others(first, last, |from, to| {
                count += contents.remove(from, to, &mut journaled)
            });
        }
        match disposal {
            Disposal::Accepted => self.record_settled(journaled, outcome),
            Disposal::Rejected => self.record_dropped(journaled, DropReason::Rejected, outcome),
        }
        self.let_go(consumer, count, outcome);
    }

    /// Delivered messages stand again where they stood.
    pub(super) fn take_back(
        &mut self,
        consumer: Option<ConsumerId>,
        seqs: &Ranges,
        failed: bool,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut back: Vec<(Seq, Seq)> = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        for (first, last) in seqs.spans() {
            let last = last.min(self.dispatch.cursor.saturating_sub(1));
            self.dispatch.returned.others(first, last, |from, to| {
                self.contents.live_spans(from, to, |run, start, stop| {
                    back.push((start, stop));
                    count += stop + 1 - start;
                    bytes += run.body_bytes(start, stop);
                });
            });
        }
        let mut journaled = Ranges::new();
        for (first, last) in back {
            self.dispatch.returned.insert(first, last);
            if failed {
                self.contents.mark_returned(first, last, &mut journaled);
            }
        }
        self.dispatch.ready += count;
        self.dispatch.handed = self.dispatch.handed.saturating_sub(count);
        self.dispatch.ready_bytes += bytes;
        if !journaled.is_empty() {
            self.record(Record::Returned { seqs: journaled }, outcome);
        }
        self.let_go(consumer, count, outcome);
        self.overflow(outcome);
    }

    /// The consumer holds `count` messages fewer.
    fn let_go(&mut self, consumer: Option<ConsumerId>, count: u64, outcome: &mut FifoOutcome<E>) {
        if count == 0 {
            return;
        }
        if let Some(id) = consumer {
            self.dispatch
                .ring
                .change(id, |it| it.in_flight = it.in_flight.saturating_sub(count));
        }
        if self.dispatch.ready > 0 {
            self.deliver(outcome);
        }
    }
}
