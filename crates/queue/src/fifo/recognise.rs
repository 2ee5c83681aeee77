//! What a node sends, perhaps again: what was heard before is answered as it was then, and what is new comes in.

use super::once::{Stretch, cut};
use super::senders::Heard;
use super::{Answer, Classic, Effect, Ends, FifoOutcome, Origin, Record, Sent};
use model::{Block, Incarnation, Mutant, Ranges, Timestamp};
use std::sync::Arc;

impl Sent {
    /// `count` messages from there.
    pub(super) fn all(origin: Origin, count: u64) -> Box<Self> {
        Box::new(Self {
            by: origin.sender,
            first: origin.first,
            numbers: Ranges::span(origin.first, origin.first + count - 1),
        })
    }

    /// Those messages from there that go to lane `id`, if `lanes` says where each goes.
    pub(super) fn of_lane(origin: Origin, id: u16, lanes: &[u16]) -> Box<Self> {
        let numbers = (origin.first..).zip(lanes).filter(|(_, lane)| **lane == id);
        Box::new(Self {
            by: origin.sender,
            first: origin.first,
            numbers: numbers.map(|(number, _)| number).collect(),
        })
    }
}

impl<E: Ends> Classic<E> {
    /// Takes those of the block's messages that are new from this sender.
    pub(super) fn publish_sent(
        &mut self,
        origin: Origin,
        block: &Arc<Block>,
        mut receipt: Option<E::Receipt>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        let Origin { sender, first } = origin;
        let end = first.checked_add(block.len() as u64);
        let (expected, end) = match (self.senders.expects(sender, first), end) {
            (Ok(()), Some(end)) => (None, end),
            (Ok(()), None) => (Some(0), first),
            (Err(number), _) => (Some(number), first),
        };
        if let Some(number) = expected {
            return outcome.effects.push(Effect::Expects {
                receipt,
                sender,
                number,
            });
        }
        let mut at = 0;
        while at < block.len() {
            let here = origin.after(at);
            let (heard, count) = self.senders.heard(sender, here.first, block.len() - at);
            let stretch = Stretch {
                from: at,
                count,
                new: heard == Heard::New,
            };
            let (piece, part) = cut::<E>(block, stretch, &mut receipt);
            match (heard, piece, part) {
                (Heard::New, Some(piece), part) => self.publish(piece, part, Some(here), now, outcome),
                (Heard::New, None, _) => {}
                (Heard::Refused, _, Some(part)) => self.reject(part, outcome),
                (_, _, part) => self.confirm_present(block, part, outcome),
            }
            at += count;
        }
        self.senders.pass(sender, end);
    }

    /// `count` messages of a sender did not come in, which is on record: sent again they are not taken either, and what
    /// comes after them is not taken for them.
    pub(super) fn decline(
        &mut self,
        origin: Option<Origin>,
        count: usize,
        persistent: bool,
        refused: bool,
        outcome: &mut FifoOutcome<E>,
    ) {
        let Some(origin) = origin.filter(|_| count > 0) else {
            return;
        };
        let (first, last) = (origin.first, origin.first + count as u64 - 1);
        if refused {
            self.senders.refuse(origin.sender, first, last);
        }
        if !self.settings.journals(persistent) || refused && Mutant::ForgetsRefused.is_on() {
            return;
        }
        if let Some(Record::Declined { sent, refused: same }) = outcome.records.last_mut()
            && sent.by == origin.sender
            && *same == refused
            && sent.numbers.last().is_some_and(|last| last + 1 == first)
        {
            return sent.numbers.push_span(first, last);
        }
        let sent = Sent::all(origin, count as u64);
        outcome.records.push(Record::Declined { sent, refused });
    }

    /// A node asks what became of what it sent.
    #[cold]
    pub(super) fn recall(
        &mut self,
        sender: Incarnation,
        from: u64,
        reply: E::Reply,
        outcome: &mut FifoOutcome<E>,
    ) {
        // Who waits for what was asked before says nothing of what it sends again.
        let gives_up = from < u64::MAX;
        if let Some(void) = gives_up.then(|| self.senders.void(sender, from)).flatten() {
            self.senders.note(&void, false);
            let (sent, refused) = (Box::new(void), false);
            outcome.records.push(Record::Declined { sent, refused });
        }
        let (below, refused) = self.senders.recall(sender, from);
        let answer = Effect::Reply(reply, Answer::Recalled { below, refused });
        // What was held of a queue of one node counts no more once that has started again, so nobody waits for its being on
        // record.
        match gives_up || self.settings.replicated {
            true => outcome.promises.push(answer),
            false => outcome.effects.push(answer),
        }
    }

    /// A node sends nothing more as the one it was.
    pub(super) fn end_incarnation(
        &mut self,
        incarnation: Incarnation,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        self.expect_no_more(incarnation, now, outcome);
        if self.forget(incarnation) && self.settings.durable {
            outcome.records.push(Record::IncarnationEnded { incarnation });
        }
    }

    /// Nothing is known of this incarnation any more. False if nothing was.
    pub(super) fn forget(&mut self, incarnation: Incarnation) -> bool {
        let (sent, held) = (self.senders.end(incarnation), self.holders.forget(incarnation));
        sent || held
    }
}
