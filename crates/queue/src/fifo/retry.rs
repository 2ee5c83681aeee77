//! Messages that consumers gave back: counted, tried again after a while (`x-retry-delay`), and given up after so many times
//! (`x-delivery-limit`).
//!
//! What waits for its next try is live, but neither ready nor held: others overtake it. When its time has come it stands
//! where it stood, before everything that is younger. Counts and times are recorded, so a restart forgets neither.

use super::contents::push_time;
use super::{DeliveryLimit, DropReason, Ends, Expiry, FifoOutcome, Lane, Record};
use model::{Mutant, Ranges, Seq, Timestamp};

/// What becomes of messages that came back.
#[derive(Default)]
struct Verdicts {
    /// They have been tried often enough.
    spent: Vec<(Seq, Seq)>,
    /// They wait.
    waiting: Vec<Expiry>,
}

impl Lane {
    /// True if it matters here how often a message came back.
    #[inline]
    pub(super) fn counts_returns(&self) -> bool {
        self.settings.counts_returns()
    }

    /// These live messages stand where they stood, and are counted: as failures, unless the consumer gave them back and the queue
    /// counts that apart. Those that have been tried too often leave, the others wait if they are to. `overdue`, some of them,
    /// leave because they expired meanwhile.
    #[cold]
    pub(super) fn came_back<E: Ends>(
        &mut self,
        back: &[(Seq, Seq)],
        overdue: &[(Seq, Seq)],
        failed: bool,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut journaled = Ranges::new();
        for (first, last) in back {
            self.contents
                .mark_returned(&self.store, *first, *last, &mut journaled);
        }
        let apart = !failed && self.settings.counts_failures && !Mutant::CountsGivenBack.is_on();
        if apart {
            let spans = back.iter();
            spans.for_each(|(first, last)| self.contents.give_back(&self.store, *first, *last));
        }
        let verdicts = self.judge(back, overdue, failed, now);
        let given_back = apart && !Mutant::ForgetsGivenBack.is_on();
        self.record_back(journaled, &verdicts.waiting, given_back, outcome);
        if !verdicts.spent.is_empty() {
            self.discard(&verdicts.spent, DropReason::DeliveryLimit, outcome);
        }
        if Mutant::TriesAtOnce.is_on() {
            return;
        }
        for Expiry { first, last, at_ms } in verdicts.waiting {
            self.take_out(first, last);
            let bytes = self.store.bytes_of(first, last);
            self.dispatch.leave(first, last, bytes);
            (first..=last).for_each(|seq| self.contents.retries.set(seq, at_ms));
        }
    }

    fn judge(&self, back: &[(Seq, Seq)], overdue: &[(Seq, Seq)], failed: bool, now: Timestamp) -> Verdicts {
        let mut verdicts = Verdicts::default();
        let mut gone = Ranges::new();
        overdue
            .iter()
            .for_each(|(first, last)| gone.push_span(*first, *last));
        for seq in back.iter().flat_map(|(first, last)| *first..=*last) {
            if gone.contains(seq) {
                continue;
            }
            let times = self.contents.times_returned(seq);
            let failures = self.failures(seq, times);
            let seed = seq ^ now.0.rotate_left(20) ^ u64::from(times).rotate_left(52);
            if self.is_spent(failures) {
                match verdicts.spent.last_mut() {
                    Some((_, last)) if *last + 1 == seq => *last = seq,
                    _ => verdicts.spent.push((seq, seq)),
                }
            } else if let Some(delay_ms) = self.settings.retry_ms(failed, times, failures, seed)
                && !Mutant::NeverWaits.is_on()
            {
                let at_ms = now.0.saturating_add(delay_ms);
                push_time(&mut verdicts.waiting, seq, at_ms);
            }
        }
        verdicts
    }

    /// How often of these times the message came back in a way that a limit counts.
    fn failures(&self, seq: Seq, times: u32) -> u32 {
        match self.settings.counts_failures {
            true => times.saturating_sub(self.contents.times_given_back(seq)),
            false => times,
        }
    }

    /// As in RabbitMQ's quorum queues a limit of 2 lets a message be delivered three times.
    fn is_spent(&self, failures: u32) -> bool {
        match self.settings.delivery_limit {
            Some(DeliveryLimit::Returns(limit)) => failures > limit && !Mutant::SparesSpent.is_on(),
            Some(DeliveryLimit::Unlimited) | None => false,
        }
    }

    fn record_back<E: Ends>(
        &mut self,
        mut journaled: Ranges,
        waiting: &[Expiry],
        given_back: bool,
        outcome: &mut FifoOutcome<E>,
    ) {
        let (mut known, mut waits) = (Vec::new(), Ranges::new());
        for expiry in waiting {
            for seq in (expiry.first..=expiry.last).filter(|seq| journaled.contains(*seq)) {
                push_time(&mut known, seq, expiry.at_ms);
                waits.push(seq);
            }
        }
        if !known.is_empty() {
            journaled = journaled.iter().filter(|seq| !waits.contains(*seq)).collect();
            let until = known;
            outcome.records.push(Record::Retried { until, given_back });
        }
        if !journaled.is_empty() {
            let seqs = journaled;
            outcome.records.push(Record::Returned { seqs, given_back });
        }
    }

    /// When a message is to be tried again; `u64::MAX` for never. Not as long as nodes are asked what their consumers hold:
    /// that the time of one had come, and that it was handed out, is not on record.
    #[inline]
    pub(super) fn next_retry_ms(&self) -> u64 {
        match self.dispatch.asking {
            true => u64::MAX,
            false => self.contents.retries.next_ms(),
        }
    }

    /// Messages whose time has come are ready. True if there are some.
    pub(super) fn retries_due(&mut self, now: Timestamp) -> bool {
        if self.dispatch.asking {
            return false;
        }
        let mut some = false;
        while let Some(seq) = self.contents.retries.pop_due(now.0) {
            self.ready_again(seq, seq);
            some = true;
        }
        some
    }

    /// Nothing of `first..=last` waits any more: it is ready.
    pub(super) fn wait_no_more(&mut self, first: Seq, last: Seq) {
        for seq in self.contents.retries.remove(first, last) {
            self.ready_again(seq, seq);
        }
    }

    /// The live ones of `first..=last`, which were neither ready nor held, stand where they stood.
    pub(super) fn ready_again(&mut self, first: Seq, last: Seq) {
        let mut spans = Vec::new();
        self.store.live_spans(first, last, |run, from, to| {
            spans.push((from, to, run.body_bytes(from, to)));
        });
        for (from, to, bytes) in spans {
            self.dispatch.left(from, to, bytes);
            let passed = to.min(self.dispatch.cursor.saturating_sub(1));
            if from <= passed {
                self.dispatch.returned.insert(from, passed);
            }
            self.dispatch.ready += to + 1 - from;
            self.dispatch.ready_bytes += bytes;
        }
    }

    /// Somebody has those of these messages that wait for their next try and came back so often: they had waited, and were
    /// handed out again.
    pub(super) fn waited(&mut self, seqs: &Ranges, returns: u32) {
        let waiting = self.contents.retries.list().map(|(seq, _)| seq);
        let handed: Vec<Seq> = waiting.filter(|seq| seqs.contains(*seq)).collect();
        for seq in handed {
            if self.counts_returns() && self.contents.times_returned(seq) != returns {
                continue;
            }
            self.contents.retries.remove(seq, seq);
            let bytes = self.store.bytes_of(seq, seq);
            self.dispatch.left(seq, seq, bytes);
        }
    }

    /// Ends replay: what waits is not ready.
    pub(super) fn recover_retries(&mut self) {
        let waiting: Vec<Seq> = self.contents.retries.list().map(|(seq, _)| seq).collect();
        for seq in waiting {
            let bytes = self.store.bytes_of(seq, seq);
            self.dispatch.leave(seq, seq, bytes);
            if seq >= self.dispatch.cursor {
                self.dispatch.ready -= 1;
                self.dispatch.ready_bytes = self.dispatch.ready_bytes.saturating_sub(bytes);
            }
        }
    }

    /// A limit is in force: what was tried too often before (or was on its way to the dead-letter exchange when the
    /// process ended) leaves.
    pub(super) fn drop_spent<E: Ends>(&mut self, outcome: &mut FifoOutcome<E>) {
        if self.settings.delivery_limit.is_none() {
            return;
        }
        let mut spent = Vec::new();
        for (seq, times) in self.contents.marks() {
            if self.is_spent(self.failures(seq, times)) {
                self.dispatch
                    .ready_within(seq, seq, |from, to| spent.push((from, to)));
            }
        }
        if !spent.is_empty() {
            self.discard(&spent, DropReason::DeliveryLimit, outcome);
        }
    }
}
