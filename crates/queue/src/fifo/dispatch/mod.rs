//! Dispatch: what is ready in a lane, and the consumers who get it. The owner's alone, never journaled.
//!
//! Every live message at or after the cursor is ready; of those before it only the returned ones are. Whatever else is
//! alive is with a consumer, or on its way to a dead-letter exchange wherever it stands.

mod consumer;
mod lines;
mod ring;

pub(crate) use consumer::Consumer;
pub(crate) use lines::Lines;
pub(crate) use ring::{Ring, Span};

use crate::seq_set::SeqSet;
use crate::store::Demand;
use model::Seq;

/// What is ready.
pub(crate) struct Dispatch {
    /// No message from here on was ever handed out.
    pub cursor: Seq,
    /// Ready messages before the cursor.
    pub returned: SeqSet,
    /// Live messages on their way to a dead-letter exchange, on either side of the cursor.
    pub leaving: SeqSet,
    /// The sum of their bodies' lengths.
    pub leaving_bytes: u64,
    /// Those among them that an operator has.
    pub taken: SeqSet,
    /// The sum of their bodies' lengths.
    pub taken_bytes: u64,
    /// How many messages are ready.
    pub ready: u64,
    /// The sum of their bodies' lengths.
    pub ready_bytes: u64,
    /// How many messages went to consumers, less those that came back.
    pub handed: u64,
    /// Messages below may have been delivered in an earlier life of the process.
    pub suspect_below: Seq,
    /// Nodes are asked what their consumers hold of these messages.
    pub asking: bool,
}

impl Default for Dispatch {
    /// Of an empty queue.
    fn default() -> Self {
        Self {
            cursor: 1,
            returned: SeqSet::default(),
            leaving: SeqSet::default(),
            leaving_bytes: 0,
            taken: SeqSet::default(),
            taken_bytes: 0,
            ready: 0,
            ready_bytes: 0,
            handed: 0,
            suspect_below: 0,
            asking: false,
        }
    }
}

impl Dispatch {
    /// What will be wanted next.
    #[inline]
    pub(crate) fn demand(&self) -> Demand<'_> {
        Demand {
            cursor: self.cursor,
            returned: &self.returned,
        }
    }

    /// `first..=last`, all of it ready and on one side of the cursor, is ready no more.
    pub(crate) fn take(&mut self, first: Seq, last: Seq, bytes: u64) {
        match first < self.cursor {
            true => self.returned.remove(first, last),
            false => self.cursor = last + 1,
        }
        self.fewer(last + 1 - first, bytes);
    }

    /// `first..=last`, ready and after others at or behind the cursor, is ready no more. If it stays alive it must leave.
    pub(crate) fn take_from_middle(&mut self, first: Seq, last: Seq, bytes: u64) {
        self.fewer(last + 1 - first, bytes);
    }

    fn fewer(&mut self, count: u64, bytes: u64) {
        self.ready -= count;
        // Sizes may be estimates until they are read back; an empty queue knows its size.
        self.ready_bytes = if self.ready == 0 {
            0
        } else {
            self.ready_bytes.saturating_sub(bytes)
        };
    }

    /// Live messages that are neither ready nor held go to a dead-letter exchange, with so much in their bodies.
    pub(crate) fn leave(&mut self, first: Seq, last: Seq, bytes: u64) {
        self.leaving.insert(first, last);
        self.leaving_bytes += bytes;
    }

    /// They have arrived, or never will.
    pub(crate) fn left(&mut self, first: Seq, last: Seq, bytes: u64) {
        self.leaving.remove(first, last);
        // As with what is ready: estimates may differ from what was added.
        self.leaving_bytes = match self.leaving.count() {
            0 => 0,
            _ => self.leaving_bytes.saturating_sub(bytes),
        };
    }

    /// Calls `visit` for those of the live messages `first..=last` that are ready, ascending.
    pub(crate) fn ready_within(&self, first: Seq, last: Seq, mut visit: impl FnMut(Seq, Seq)) {
        let mut at = first;
        while let Some((from, to)) = self.returned.overlap(at, last) {
            visit(from, to);
            at = to + 1;
        }
        let first = first.max(self.cursor);
        if first <= last {
            self.leaving.others(first, last, visit);
        }
    }

    /// Calls `visit` for those of the live messages `first..=last` that somebody holds, ascending.
    pub(crate) fn held_within(&self, first: Seq, last: Seq, mut visit: impl FnMut(Seq, Seq)) {
        let last = last.min(self.cursor.saturating_sub(1));
        if first > last {
            return;
        }
        if self.leaving.is_empty() {
            return self.returned.others(first, last, visit);
        }
        self.returned
            .others(first, last, |from, to| self.leaving.others(from, to, &mut visit));
    }

    /// Those of `first..=last` that are on their way to the dead-letter exchange.
    pub(crate) fn leaving_within(&self, mut first: Seq, last: Seq, mut visit: impl FnMut(Seq, Seq)) {
        while let Some((from, to)) = self.leaving.overlap(first, last) {
            visit(from, to);
            first = to + 1;
        }
    }

    /// Nothing is ready any more, for a queue that ends.
    pub(crate) fn clear(&mut self) {
        self.returned.clear();
        self.leaving.clear();
        self.taken.clear();
        (self.leaving_bytes, self.taken_bytes) = (0, 0);
        self.ready = 0;
        self.ready_bytes = 0;
    }
}
