//! Messages that leave the queue other than by a consumer's acknowledgement: dropped, or handed to the dead-letter exchange.
//!
//! A message for the dead-letter exchange is neither ready nor held, but it stays in the contents until the host says that
//! the queues it was routed to have it safely. So a crash brings it back rather than losing it, and paging, checkpoints and
//! snapshots treat it like any other.

use super::paging::Pieces;
use super::{DeadLetterTo, DropReason, Effect, Ends, Fifo, FifoOutcome, Loss, Part, Piece};
use model::{Block, Ranges, Seq};
use smallvec::smallvec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often messages are handed to the host again because their bytes were moved while it looked for them.
const ATTEMPTS: u32 = 5;

/// What is on its way to the dead-letter exchange.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    next_ticket: u64,
    tickets: BTreeMap<u64, Ticket>,
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
        self.tickets.is_empty()
    }

    fn add(&mut self, ticket: Ticket) -> u64 {
        self.next_ticket += 1;
        self.refused_bytes += ticket.refused_bytes;
        self.tickets.insert(self.next_ticket, ticket);
        self.next_ticket
    }
}

impl<E: Ends> Fifo<E> {
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
    pub(super) fn discard(&mut self, spans: &[(Seq, Seq)], reason: DropReason, outcome: &mut FifoOutcome<E>) {
        for (first, last) in spans {
            self.take_out(*first, *last);
        }
        self.let_leave(spans.to_vec(), reason, outcome);
    }

    /// These live messages, neither ready nor held by anybody any more, leave.
    pub(super) fn let_leave(
        &mut self,
        spans: Vec<(Seq, Seq)>,
        reason: DropReason,
        outcome: &mut FifoOutcome<E>,
    ) {
        match self.dead_letters_to(reason) {
            Some(to) if !spans.is_empty() => {
                for (first, last) in &spans {
                    let bytes = self.contents.bytes_of(*first, *last);
                    self.dispatch.leave(*first, *last, bytes);
                    self.lost(Loss::DeadLettered(reason), last + 1 - first);
                    if reason == DropReason::Expired {
                        // A snapshot must know: after a crash they expire once more.
                        self.contents.expiries.set_late(*first, *last);
                    }
                }
                self.hand_over(spans, reason, to, 1, outcome);
            }
            _ => {
                let mut journaled = Ranges::new();
                let mut count = 0;
                for (first, last) in spans {
                    count += self.contents.remove(first, last, &mut journaled);
                }
                self.lost(Loss::Dropped(reason), count);
                self.record_dropped(journaled, reason, outcome);
            }
        }
    }

    /// The host has done what it could for these dead letters; it could not read `unread`.
    pub(super) fn dead_lettered(&mut self, ticket: u64, unread: &Ranges, outcome: &mut FifoOutcome<E>) {
        let Some(left) = self.leaving.tickets.remove(&ticket) else {
            return;
        };
        self.leaving.refused_bytes -= left.refused_bytes;
        let (mut gone, mut lost, mut again) = (Ranges::new(), Ranges::new(), Vec::new());
        for (first, last) in left.spans {
            if unread.is_empty() {
                gone.push_span(first, last);
                continue;
            }
            for seq in first..=last {
                match unread.contains(seq) {
                    // Its bytes were moved meanwhile; if they were not, they are damaged.
                    true if left.attempts < ATTEMPTS => again.push((seq, seq)),
                    true => lost.push(seq),
                    false => gone.push(seq),
                }
            }
        }
        for (seqs, reason) in [(gone, left.reason), (lost, DropReason::Unreadable)] {
            let mut journaled = Ranges::new();
            for (first, last) in seqs.spans() {
                self.left(first, last);
                self.contents.remove(first, last, &mut journaled);
            }
            self.record_dropped(journaled, reason, outcome);
        }
        if again.is_empty() {
            return;
        }
        match self.dead_letters_to(left.reason) {
            Some(to) => self.hand_over(again, left.reason, to, left.attempts + 1, outcome),
            None => {
                again.iter().for_each(|(first, last)| self.left(*first, *last));
                self.let_leave(again, left.reason, outcome);
            }
        }
    }

    /// These are on their way no more.
    pub(super) fn left(&mut self, first: Seq, last: Seq) {
        self.dispatch
            .left(first, last, self.contents.bytes_of(first, last));
        self.contents.expiries.forget_late(first, last);
    }

    /// Messages of the block that the queue refused go to the dead-letter exchange (`reject-publish-dlx`).
    pub(super) fn dead_letter_refused(
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
                bytes: super::Bytes::Memory(block.clone()),
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
        });
        outcome.effects.push(Effect::DeadLetter {
            ticket,
            to,
            reason: DropReason::MaxLength,
            pieces: refused.spans().map(piece).collect(),
        });
    }

    fn hand_over(
        &mut self,
        spans: Vec<(Seq, Seq)>,
        reason: DropReason,
        to: Arc<DeadLetterTo>,
        attempts: u32,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut pieces = Pieces::default();
        for (first, last) in &spans {
            self.contents
                .live_spans(*first, *last, |run, from, to| pieces.add(run, from, to + 1));
        }
        let ticket = self.leaving.add(Ticket {
            spans,
            reason,
            refused_bytes: 0,
            attempts,
        });
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
        self.contents.live_spans(first, last, |run, from, to| {
            parts.push((from, to, run.body_bytes(from, to)));
        });
        for (from, to, bytes) in parts {
            let head = self.first_that_stays().is_some_and(|(_, head, _)| head == from);
            if from < self.dispatch.cursor || head {
                self.passed(self.contents.find(from), to);
                self.dispatch.take(from, to, bytes);
            } else {
                self.dispatch.take_from_middle(from, to, bytes);
            }
        }
    }
}
