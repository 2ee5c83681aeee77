//! Nodes that send to the queue, and what of theirs was taken or refused. A node that has no answer sends again, to
//! whoever decides then: here it is seen that it was heard before. Part of the contents: replaying the records makes
//! the same marks.
//!
//! An incarnation of a node is one sender, and numbers what it sends from 1. Of what came in order one number says all:
//! everything below it was taken or declined. Only a block that a sorted queue has spread over several records can be
//! known in parts, when the owner was gone before all of them were committed.

use super::record::Sent;
use crate::NodeConsumer;
use crate::encoding::{Input, put, put_set, put_set_from};
use model::{ConsumerId, Incarnation, Mutant, Ranges};
use std::collections::BTreeMap;

/// So many nodes may send to a queue before those that ended are cleared up.
const MOST_SENDERS: usize = 1024;
/// Refused numbers are kept as spans, so many for a sender; then the older half is forgotten.
const MOST_SPANS: usize = 1024;

/// Flags of a sender in a checkpoint.
const BARRED: u8 = 1;
const ACTIVE: u8 = 2;

/// What became of a message that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing yet.
    New,
    /// It was taken, or was there already.
    Taken,
    /// It was refused.
    Refused,
}

/// What is known of one sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderMark {
    /// Which incarnation of which node.
    pub sender: Incarnation,
    /// All numbers below were taken or declined.
    pub below: u64,
    /// Numbers from `below` on of which the same is known: of one block at the most.
    pub beyond: Ranges,
    /// Of lower numbers it is not known any more whether they were refused. They count as refused: who sends again what
    /// was answered so long ago is told less than was so, never more.
    pub forgotten: u64,
    /// Those that were refused.
    pub refused: Ranges,
    /// The node counted as down: nothing that its consumers hold counts.
    pub barred: bool,
    /// This consumer of the node was the last one that became the active one, in a queue that has a single one.
    pub active: Option<ConsumerId>,
}

impl SenderMark {
    fn new(sender: Incarnation) -> Self {
        Self {
            sender,
            below: 1,
            beyond: Ranges::new(),
            forgotten: 0,
            refused: Ranges::new(),
            barred: false,
            active: None,
        }
    }

    fn heard(&self, number: u64) -> Heard {
        match number {
            _ if number >= self.below && !self.beyond.contains(number) => Heard::New,
            _ if number < self.forgotten || self.refused.contains(number) => Heard::Refused,
            _ => Heard::Taken,
        }
    }

    /// Everything below `number` was taken or declined.
    fn raise(&mut self, number: u64) {
        self.below = self.below.max(number);
        self.beyond.remove_below(self.below);
        let next = self.beyond.spans().next();
        if let Some((_, last)) = next.filter(|(first, _)| *first == self.below) {
            self.below = last + 1;
            self.beyond.remove_below(self.below);
        }
    }

    fn refuse(&mut self, first: u64, last: u64) {
        self.refused.push_span(first, last);
        if self.refused.spans().count() > MOST_SPANS {
            let kept = self.refused.spans().nth(MOST_SPANS / 2);
            self.forgotten = kept.map_or(self.forgotten, |(first, _)| first);
            self.refused.remove_below(self.forgotten);
        }
    }

    /// Appends the mark's bytes.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put(out, self.sender.0);
        put(out, self.below);
        put_set_from(out, self.below, &self.beyond);
        put(out, self.forgotten);
        put_set(out, &self.refused);
        let active = if self.active.is_some() { ACTIVE } else { 0 };
        out.push(u8::from(self.barred) | active);
        if let Some(consumer) = self.active {
            put(out, consumer.0);
        }
    }

    /// Reads a mark back.
    pub(super) fn get(input: &mut Input<'_>) -> Option<Self> {
        let sender = Incarnation(input.number()?);
        let below = input.number()?;
        let (beyond, forgotten) = (input.numbers_from(below)?, input.number()?);
        let refused = input.set()?;
        let flags = input.octet().filter(|flags| *flags <= BARRED | ACTIVE)?;
        let active = match flags & ACTIVE {
            0 => None,
            _ => Some(ConsumerId(input.number()?)),
        };
        Some(Self {
            sender,
            below,
            beyond,
            forgotten,
            refused,
            barred: flags & BARRED > 0,
            active,
        })
    }
}

#[derive(Debug)]
struct Sender {
    mark: SenderMark,
    /// False for one that was known before the process started, in a queue that does not record everything: what it had
    /// an answer to may be more than is on record, so its next block may begin anywhere.
    certain: bool,
}

/// All senders of a queue.
#[derive(Debug, Default)]
pub(super) struct Senders {
    /// In boxes, for a node of the map has space for eleven of them, and most queues have a few.
    known: BTreeMap<Incarnation, Box<Sender>>,
    /// As [`Sender::certain`], of those that are not known.
    uncertain: bool,
}

impl Senders {
    /// What a checkpoint says.
    pub(super) fn of(marks: Vec<SenderMark>) -> Self {
        let known = |mark: SenderMark| (mark.sender, Box::new(Sender { mark, certain: true }));
        Self {
            known: marks.into_iter().map(known).collect(),
            uncertain: false,
        }
    }

    /// Those of whom something is known.
    pub(super) fn all(&self) -> Vec<Incarnation> {
        self.known.keys().copied().collect()
    }

    /// All marks, by incarnation.
    pub(super) fn marks(&self) -> Vec<SenderMark> {
        self.known.values().map(|sender| sender.mark.clone()).collect()
    }

    /// What senders were answered may be more than is on record.
    pub(super) fn are_uncertain(&mut self) {
        self.uncertain = true;
        self.known.values_mut().for_each(|sender| sender.certain = false);
    }

    /// Whether the sender may go on with this number; if not, which one is expected of it (0 if none at all).
    pub(super) fn expects(&self, sender: Incarnation, number: u64) -> Result<(), u64> {
        let (below, certain) = match self.known.get(&sender) {
            Some(known) => (known.mark.below, known.certain),
            None if self.known.len() >= MOST_SENDERS => return Err(0),
            None => (1, !self.uncertain),
        };
        match number {
            0 => Err(below),
            _ if number > below && certain => Err(below),
            _ => Ok(()),
        }
    }

    /// What became of the sender's message `number`, and how many of `count` from there on are alike.
    pub(super) fn heard(&self, sender: Incarnation, number: u64, count: usize) -> (Heard, usize) {
        let known = self.known.get(&sender);
        let Some(known) = known.filter(|_| !Mutant::RecognisesNothing.is_on()) else {
            return (Heard::New, count);
        };
        let mark = &known.mark;
        let heard = mark.heard(number);
        if heard == Heard::New && mark.beyond.is_empty() {
            return (heard, count);
        }
        let alike = (number..number + count as u64).take_while(|number| mark.heard(*number) == heard);
        (heard, alike.count())
    }

    /// Below which number everything of the sender was taken or declined (0 if it can't be heard), and what of that was
    /// refused, from number `from` on.
    pub(super) fn recall(&self, sender: Incarnation, from: u64) -> (u64, Ranges) {
        let Some(known) = self.known.get(&sender) else {
            return (
                self.expects(sender, 0).map_or_else(|below| below, |()| 1),
                Ranges::new(),
            );
        };
        let mark = &known.mark;
        let mut refused = mark.refused.clone();
        refused.remove_below(from);
        if from < mark.forgotten {
            refused.push_span(from, mark.forgotten - 1);
        }
        (mark.below, refused)
    }

    /// The sender sends nothing again below number `from`. What of that nobody knows must not become the numbers of other
    /// messages, if what follows it is known: of a block in parts that the sender has given up.
    pub(super) fn void(&self, sender: Incarnation, from: u64) -> Option<Sent> {
        let mark = &self.known.get(&sender)?.mark;
        let end = from.min(mark.beyond.last()? + 1);
        let unknown = (mark.below..end).filter(|number| !mark.beyond.contains(*number));
        let numbers: Ranges = unknown.collect();
        let (by, first) = (sender, mark.below);
        (!numbers.is_empty()).then_some(Sent { by, first, numbers })
    }

    fn mark(&mut self, sender: Incarnation) -> &mut SenderMark {
        let new = || Sender {
            mark: SenderMark::new(sender),
            certain: true,
        };
        let known = self.known.entry(sender).or_insert_with(|| Box::new(new()));
        &mut known.mark
    }

    /// A record says that these were taken, or declined.
    pub(super) fn note(&mut self, sent: &Sent, refused: bool) {
        let mark = self.mark(sent.by);
        mark.raise(sent.first);
        for (first, last) in sent.numbers.spans() {
            mark.beyond.push_span(first.max(mark.below), last);
            if refused {
                mark.refuse(first, last);
            }
        }
        mark.raise(sent.first);
    }

    /// These were refused.
    pub(super) fn refuse(&mut self, sender: Incarnation, first: u64, last: u64) {
        self.mark(sender).refuse(first, last);
    }

    /// Everything below `number` was taken or declined, whether or not a record says so.
    pub(super) fn pass(&mut self, sender: Incarnation, number: u64) {
        self.mark(sender).raise(number);
        if let Some(known) = self.known.get_mut(&sender) {
            known.certain = true;
        }
    }

    /// True if nothing counts that this node's consumers hold.
    pub(super) fn is_barred(&self, node: Incarnation) -> bool {
        self.known.get(&node).is_some_and(|known| known.mark.barred)
    }

    /// Nothing counts any more that this node's consumers hold, or what they get from now on does again.
    pub(super) fn bar(&mut self, node: Incarnation, barred: bool) {
        self.mark(node).barred = barred;
    }

    /// The consumer that became the active one last, unless its node is no more.
    pub(super) fn active(&self) -> Option<NodeConsumer> {
        self.known.iter().find_map(|(node, known)| {
            let consumer = known.mark.active?;
            Some(NodeConsumer {
                node: *node,
                consumer,
            })
        })
    }

    /// This consumer is the active one.
    pub(super) fn activate(&mut self, active: NodeConsumer) {
        self.known.values_mut().for_each(|known| known.mark.active = None);
        self.mark(active.node).active = Some(active.consumer);
    }

    /// The sender sends nothing more. False if it never did.
    pub(super) fn end(&mut self, sender: Incarnation) -> bool {
        self.known.remove(&sender).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const NODE: Incarnation = Incarnation(7);

    fn sent(first: u64, numbers: Ranges) -> Sent {
        let by = NODE;
        Sent { by, first, numbers }
    }

    #[test]
    fn refusals_are_remembered_within_bounds_and_what_is_forgotten_counts_as_refused() {
        let mut senders = Senders::default();
        for number in 1..=100_000 {
            senders.note(&sent(number, Ranges::one(number)), number % 2 == 0);
        }
        let mark = &senders.marks()[0];
        assert!(mark.refused.spans().count() <= MOST_SPANS);
        assert_eq!(mark.below, 100_001);
        assert_eq!(senders.heard(NODE, 99_999, 1).0, Heard::Taken);
        assert_eq!(senders.heard(NODE, 100_000, 1).0, Heard::Refused);
        assert_eq!(senders.heard(NODE, 1, 1).0, Heard::Refused);
        let (below, refused) = senders.recall(NODE, 99_996);
        assert_eq!(
            (below, refused),
            (100_001, [99_996, 99_998, 100_000].into_iter().collect())
        );
        let (_, refused) = senders.recall(NODE, 7);
        assert!(refused.contains(7) && !refused.contains(6) && !refused.contains(99_999));
    }

    #[test]
    fn only_so_many_nodes_may_send_until_some_have_ended() {
        let mut senders = Senders::default();
        for node in 0..MOST_SENDERS as u64 {
            senders.pass(Incarnation(node), 2);
        }
        let another = Incarnation(u64::MAX);
        assert_eq!(senders.expects(another, 1), Err(0));
        assert_eq!(senders.recall(another, 1), (0, Ranges::new()));
        assert!(senders.end(NODE) && !senders.end(NODE));
        assert_eq!(senders.expects(another, 1), Ok(()));
        assert_eq!(senders.recall(another, 1), (1, Ranges::new()));
    }

    proptest! {
        #[test]
        fn a_mark_knows_exactly_what_was_heard_also_if_records_of_the_last_block_are_missing(
            blocks in prop::collection::vec((1..6_u64, any::<u8>(), any::<bool>()), 1..20),
            missing in any::<u8>(),
        ) {
            let mut senders = Senders::default();
            let mut naive = BTreeMap::new();
            let mut next = 1;
            let last = blocks.len() - 1;
            for (at, (count, split, refused)) in blocks.into_iter().enumerate() {
                let all = next..next + count;
                let (one, other): (Vec<u64>, Vec<u64>) = all.partition(|number| split >> (number % 8) & 1 == 1);
                for (part, numbers) in [one, other].into_iter().enumerate() {
                    if at == last && missing >> part & 1 == 1 {
                        continue;
                    }
                    let heard = if refused { Heard::Refused } else { Heard::Taken };
                    naive.extend(numbers.iter().map(|number| (*number, heard)));
                    senders.note(&sent(next, numbers.into_iter().collect()), refused);
                }
                next += count;
            }
            for number in 1..next + 3 {
                let heard = naive.get(&number).copied().unwrap_or(Heard::New);
                prop_assert_eq!(senders.heard(NODE, number, 1), (heard, 1));
            }
            let mut bytes = Vec::new();
            let marks = senders.marks();
            marks.iter().for_each(|mark| mark.put(&mut bytes));
            let mut input = Input { rest: &bytes };
            for mark in marks {
                prop_assert_eq!(SenderMark::get(&mut input), Some(mark));
            }
        }
    }
}
