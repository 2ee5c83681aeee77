//! Messages that leave the queue other than by a consumer's acknowledgement: dropped, or handed to the dead-letter exchange.
//!
//! A message for the dead-letter exchange is neither ready nor held, but it stays in the contents until the host says that
//! the queues it was routed to have it safely. So a crash brings it back rather than losing it, and paging, checkpoints and
//! snapshots treat it like any other.

use super::lanes::lane_of;
use super::{Classic, DeadLetterTo, DropReason, Effect, Ends, FifoOutcome, Lane, Loss};
use crate::store::{Bytes, Part, Piece, Pieces, retry_delay_ms};
use model::{Block, Mutant, Ranges, Seq, Timestamp};
use smallvec::smallvec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often messages are handed to the host again because their bytes were moved while it looked for them.
const ATTEMPTS: u32 = 5;

/// What is on its way to the dead-letter exchange.
#[derive(Debug)]
pub(crate) struct Leaving {
    next_ticket: u64,
    tickets: BTreeMap<u64, Ticket>,
    /// What could not be read just now, by the number it had and when it is handed over again.
    failed: BTreeMap<u64, (u64, Ticket)>,
    /// What cannot be read on this node: it is handed over once it is found elsewhere.
    lacking: Vec<Ticket>,
    /// The earliest of the times of what failed, in milliseconds since the Unix epoch; `u64::MAX` if nothing failed.
    retry_ms: u64,
    /// Bytes of blocks that were refused and are on their way all the same.
    pub(crate) refused_bytes: usize,
}

#[derive(Debug)]
struct Ticket {
    /// Live messages, or none if they were refused before they became contents.
    spans: Vec<(Seq, Seq)>,
    reason: DropReason,
    refused_bytes: usize,
    attempts: u32,
    /// How often they could not be read for a reason that may pass.
    failures: u32,
}

impl Default for Leaving {
    fn default() -> Self {
        Self {
            next_ticket: 0,
            tickets: BTreeMap::new(),
            failed: BTreeMap::new(),
            lacking: Vec::new(),
            retry_ms: u64::MAX,
            refused_bytes: 0,
        }
    }
}

impl Leaving {
    /// Nothing yet; the first ticket follows `ticket`.
    pub(crate) fn after(ticket: u64) -> Self {
        Self {
            next_ticket: ticket,
            ..Self::default()
        }
    }

    /// True if nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.tickets.is_empty() && self.failed.is_empty() && self.lacking.is_empty()
    }

    /// When something is to be handed over again.
    #[inline]
    pub(crate) fn retry_ms(&self) -> u64 {
        self.retry_ms
    }

    /// Of what is lacking, takes these out.
    fn take_lacking(&mut self, seqs: &Ranges) -> Vec<Ticket> {
        let mut taken = Vec::new();
        for ticket in std::mem::take(&mut self.lacking) {
            let mut all = Ranges::new();
            ticket
                .spans
                .iter()
                .for_each(|(first, last)| all.push_span(*first, *last));
            let rest = all.without(seqs);
            let these = all.without(&rest);
            self.lacking
                .extend((!rest.is_empty()).then(|| ticket.of(&rest, 1, 0)));
            taken.extend((!these.is_empty()).then(|| ticket.of(&these, 1, 0)));
        }
        taken
    }

    fn look_when(&mut self) {
        let times = self.failed.values().map(|(at_ms, _)| *at_ms);
        self.retry_ms = times.min().unwrap_or(u64::MAX);
    }

    fn add(&mut self, ticket: Ticket) -> u64 {
        self.next_ticket += 1;
        self.refused_bytes += ticket.refused_bytes;
        self.tickets.insert(self.next_ticket, ticket);
        self.next_ticket
    }
}

impl Ticket {
    /// The same for some of its messages.
    fn of(&self, seqs: &Ranges, attempts: u32, failures: u32) -> Self {
        Self {
            spans: seqs.spans().collect(),
            reason: self.reason,
            refused_bytes: 0,
            attempts,
            failures,
        }
    }
}

impl<E: Ends> Classic<E> {
    /// The host has done what it could for these dead letters. It could not read `unread`, and just now not `failed`.
    pub(super) fn dead_lettered(
        &mut self,
        ticket: u64,
        unread: &Ranges,
        failed: &Ranges,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        self.lanes.at(lane_of(ticket), outcome, |lane, outcome| {
            lane.dead_lettered(ticket, unread, failed, now, outcome);
        });
    }

    /// What could not be read or did not arrive is handed over at once.
    pub(super) fn hand_over_all_again(&mut self, outcome: &mut FifoOutcome<E>) {
        self.lanes.each(outcome, Lane::hand_over_all_again);
    }
}

impl Lane {
    /// Where messages go that leave for this reason, if not nowhere.
    pub(super) fn dead_letters_to(&self, reason: DropReason) -> Option<Arc<DeadLetterTo>> {
        match reason {
            DropReason::MaxLength
            | DropReason::Rejected
            | DropReason::Expired
            | DropReason::DeliveryLimit => self.settings.dead_letter.clone(),
            DropReason::Purged | DropReason::Unreadable => None,
        }
    }

    /// These live and ready messages leave.
    pub(super) fn discard<E: Ends>(
        &mut self,
        spans: &[(Seq, Seq)],
        reason: DropReason,
        outcome: &mut FifoOutcome<E>,
    ) {
        for (first, last) in spans {
            self.take_out(*first, *last);
        }
        self.let_leave(spans.to_vec(), reason, outcome);
    }

    /// These live messages, neither ready nor held by anybody any more, leave.
    pub(super) fn let_leave<E: Ends>(
        &mut self,
        spans: Vec<(Seq, Seq)>,
        reason: DropReason,
        outcome: &mut FifoOutcome<E>,
    ) {
        match self.dead_letters_to(reason) {
            Some(to) if !spans.is_empty() => {
                for (first, last) in &spans {
                    let bytes = self.store.bytes_of(*first, *last);
                    self.dispatch.leave(*first, *last, bytes);
                    self.lost(Loss::DeadLettered(reason), last + 1 - first);
                    if reason == DropReason::Expired {
                        // A snapshot must know: after a crash they expire once more.
                        self.contents.expiries.set_late(*first, *last);
                    }
                }
                let ticket = Ticket {
                    spans,
                    reason,
                    refused_bytes: 0,
                    attempts: 1,
                    failures: 0,
                };
                self.hand_over(ticket, to, outcome);
            }
            _ => {
                let mut journaled = Ranges::new();
                let mut count = 0;
                for (first, last) in spans {
                    count += self.contents.remove(&mut self.store, first, last, &mut journaled);
                }
                self.lost(Loss::Dropped(reason), count);
                self.record_dropped(journaled, reason, outcome);
            }
        }
    }

    fn dead_lettered<E: Ends>(
        &mut self,
        ticket: u64,
        unread: &Ranges,
        failed: &Ranges,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        let Some(left) = self.leaving.tickets.remove(&ticket) else {
            return;
        };
        self.leaving.refused_bytes -= left.refused_bytes;
        let (mut gone, mut lost) = (Ranges::new(), Ranges::new());
        let (mut again, mut later) = (Ranges::new(), Ranges::new());
        for (first, last) in &left.spans {
            if unread.is_empty() && failed.is_empty() {
                gone.push_span(*first, *last);
                continue;
            }
            for seq in *first..=*last {
                match unread.contains(seq) {
                    // Its bytes were moved meanwhile; if they were not, they are damaged.
                    true if left.attempts < ATTEMPTS || self.store.is_in_memory(seq) => again.push(seq),
                    true => lost.push(seq),
                    false if failed.contains(seq) && !Mutant::DropsRefusedLetters.is_on() => later.push(seq),
                    false => gone.push(seq),
                }
            }
        }
        let mut journaled = Ranges::new();
        for (first, last) in gone.spans() {
            self.left(first, last);
            self.contents.remove(&mut self.store, first, last, &mut journaled);
        }
        self.record_dropped(journaled, left.reason, outcome);
        if !lost.is_empty() {
            self.leaving.lacking.push(left.of(&lost, 1, 0));
            self.store.lose(&lost, false);
        }
        if !later.is_empty() {
            let at_ms = now.0.saturating_add(retry_delay_ms(left.failures));
            let failures = left.failures + 1;
            let ticket_later = left.of(&later, left.attempts, failures);
            self.leaving.failed.insert(ticket, (at_ms, ticket_later));
            self.leaving.retry_ms = self.leaving.retry_ms.min(at_ms);
        }
        if !again.is_empty() {
            self.hand_on(left.of(&again, left.attempts + 1, left.failures), outcome);
        }
    }

    /// Hands over again what could not be read before, if its time has come.
    #[cold]
    pub(super) fn hand_over_again<E: Ends>(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        let failed = self.leaving.failed.iter();
        let due: Vec<u64> = failed
            .filter(|(_, (at_ms, _))| *at_ms <= now.0)
            .map(|(number, _)| *number)
            .collect();
        for number in due {
            if let Some((_, ticket)) = self.leaving.failed.remove(&number) {
                self.hand_on(ticket, outcome);
            }
        }
        self.leaving.look_when();
    }

    /// Hands over again what could not be read or did not arrive, as if for the first time.
    pub(super) fn hand_over_all_again<E: Ends>(&mut self, outcome: &mut FifoOutcome<E>) {
        for (_, ticket) in self.leaving.failed.values_mut() {
            ticket.failures = 0;
        }
        self.hand_over_again(Timestamp(u64::MAX), outcome);
    }

    /// These were found elsewhere: those of them that are on their way are handed over.
    pub(super) fn hand_over_found<E: Ends>(&mut self, found: &Ranges, outcome: &mut FifoOutcome<E>) {
        for ticket in self.leaving.take_lacking(found) {
            self.hand_on(ticket, outcome);
        }
    }

    /// These are given up.
    pub(super) fn hand_over_no_more(&mut self, seqs: &Ranges) {
        self.leaving.take_lacking(seqs);
    }

    /// Hands over again what is on its way, as the settings in force say.
    fn hand_on<E: Ends>(&mut self, ticket: Ticket, outcome: &mut FifoOutcome<E>) {
        match self.dead_letters_to(ticket.reason) {
            Some(to) => self.hand_over(ticket, to, outcome),
            None => {
                let Ticket { spans, reason, .. } = ticket;
                spans.iter().for_each(|(first, last)| self.left(*first, *last));
                self.let_leave(spans, reason, outcome);
            }
        }
    }

    /// These are on their way no more.
    pub(super) fn left(&mut self, first: Seq, last: Seq) {
        self.dispatch.left(first, last, self.store.bytes_of(first, last));
        self.contents.expiries.forget_late(first, last);
    }

    /// Messages of the block that the queue refused go to the dead-letter exchange (`reject-publish-dlx`).
    pub(super) fn dead_letter_refused<E: Ends>(
        &mut self,
        block: &Arc<Block>,
        refused: &Ranges,
        outcome: &mut FifoOutcome<E>,
    ) {
        let Some(to) = self.dead_letters_to(DropReason::MaxLength) else {
            return;
        };
        self.lost(Loss::DeadLettered(DropReason::MaxLength), refused.count());
        let piece = |(first, last): (u64, u64)| {
            let count = (last + 1 - first) as u32;
            let part = Part {
                bytes: Bytes::Memory(block.clone()),
                from: first as u32,
                count,
            };
            Piece {
                first: 0,
                count,
                parts: smallvec![part],
            }
        };
        let ticket = self.leaving.add(Ticket {
            spans: Vec::new(),
            reason: DropReason::MaxLength,
            refused_bytes: block.memory(),
            attempts: 1,
            failures: 0,
        });
        outcome.effects.push(Effect::DeadLetter {
            ticket,
            to,
            reason: DropReason::MaxLength,
            pieces: refused.spans().map(piece).collect(),
        });
    }

    fn hand_over<E: Ends>(
        &mut self,
        mut ticket: Ticket,
        to: Arc<DeadLetterTo>,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut pieces = Pieces::default();
        let (mut readable, mut unreadable) = (Vec::new(), Ranges::new());
        for (first, last) in &ticket.spans {
            self.store
                .live_spans(*first, *last, |run, from, to| match run.lost {
                    true => unreadable.push_span(from, to),
                    false => {
                        readable.push((from, to));
                        pieces.add(run, from, to + 1);
                    }
                });
        }
        if !unreadable.is_empty() {
            self.leaving.lacking.push(ticket.of(&unreadable, 1, 0));
            self.store.report(unreadable);
        }
        if pieces.is_empty() {
            return;
        }
        ticket.spans = readable;
        let reason = ticket.reason;
        let ticket = self.leaving.add(ticket);
        outcome.effects.push(Effect::DeadLetter {
            ticket,
            to,
            reason,
            pieces: pieces.take(),
        });
    }

    /// Live messages `first..=last`, wherever they stand, are ready no more.
    pub(super) fn take_out(&mut self, first: Seq, last: Seq) {
        let mut parts = Vec::new();
        self.store.live_spans(first, last, |run, from, to| {
            parts.push((from, to, run.body_bytes(from, to)));
        });
        for (from, to, bytes) in parts {
            let head = self.first_that_stays().is_some_and(|(_, head, _)| head == from);
            if from < self.dispatch.cursor || head {
                let slot = self.store.find(from);
                self.store.passed(slot, to, self.dispatch.cursor);
                self.dispatch.take(from, to, bytes);
            } else {
                self.dispatch.take_from_middle(from, to, bytes);
            }
        }
    }
}
