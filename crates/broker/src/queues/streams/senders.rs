//! Other nodes that send to a stream what their clients publish, beyond what is on record of them.
//!
//! What was taken of a node has its numbers in the chunks, under the node's reference. Numbers that are missing there are no
//! loss: what the stream refused has them, and the node has told its clients so, or they were on record and are not any more,
//! because the reference was forgotten or a file is damaged. A node that asks how it stands says from where on it has no answers,
//! so it may go on there; behind that, what comes follows what came. Anything else would be a hole of messages that the node
//! is told of as taken, once something above has come.

use model::{Incarnation, Ranges};
use queue::Origin;
use std::collections::BTreeMap;

/// Those that have asked or sent something since the stream was opened. Each has said that it is that start of its node, and of
/// those there is one at a time.
#[derive(Debug, Default)]
pub struct Senders {
    known: BTreeMap<Incarnation, Sender>,
}

#[derive(Debug, Default)]
struct Sender {
    /// It may go on with this number, or a lower one.
    next: u64,
    /// What was refused of that, and the node may not know yet.
    refused: Ranges,
}

/// What comes behind the last number that was taken.
fn behind(last: Option<u64>) -> u64 {
    last.map_or(1, |last| last.saturating_add(1))
}

impl Senders {
    /// A node that has answers to all below `from` asks how it stands; its last number that was taken is `last`. Returns below
    /// which number all is known, and what of that was refused. `from` is `u64::MAX` if it only waits until that is on record.
    pub fn recall(&mut self, sender: Incarnation, from: u64, last: Option<u64>) -> (u64, Ranges) {
        let below = behind(last);
        if from == u64::MAX {
            return (below, Ranges::new());
        }
        let known = self.known.entry(sender).or_default();
        known.next = known.next.max(from);
        known.refused.remove_below(from);
        let refused = known.refused.clone();
        (refused.last().map_or(below, |last| below.max(last + 1)), refused)
    }

    /// So many messages come from there. If something before them is missing, the number that is expected comes back.
    pub fn hear(&mut self, origin: Origin, count: u64, last: Option<u64>) -> Result<(), u64> {
        let known = self.known.entry(origin.sender).or_default();
        let expected = known.next.max(behind(last));
        if origin.first > expected {
            return Err(expected);
        }
        known.next = expected.max(origin.first.saturating_add(count));
        Ok(())
    }

    /// They are refused, and what comes behind them may be taken.
    pub fn refuse(&mut self, origin: Origin, count: u64) {
        let known = self.known.entry(origin.sender).or_default();
        let (first, end) = (origin.first, origin.first.saturating_add(count));
        known.refused.push_span(first, end.saturating_sub(1));
    }

    /// It sends nothing more.
    pub fn end(&mut self, sender: Incarnation) {
        self.known.remove(&sender);
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = Incarnation> {
        self.known.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Incarnation = Incarnation(7);

    fn from(first: u64) -> Origin {
        Origin { sender: NODE, first }
    }

    #[test]
    fn a_node_goes_on_from_where_it_has_no_answers_and_behind_what_came_since() {
        let mut senders = Senders::default();
        assert_eq!(senders.hear(from(2), 1, None), Err(1));
        assert_eq!(senders.recall(NODE, 9, Some(4)), (5, Ranges::new()));
        assert_eq!(senders.hear(from(10), 1, Some(4)), Err(9));
        // What it gave up has no numbers any more.
        assert_eq!(senders.hear(from(5), 1, Some(4)), Ok(()));
        assert_eq!(senders.hear(from(9), 3, Some(5)), Ok(()));
        // Its reference is forgotten.
        assert_eq!(senders.hear(from(12), 1, None), Ok(()));
        assert_eq!(senders.hear(from(14), 1, None), Err(13));
        // Who waits for what it asked before says nothing of what it sends.
        assert_eq!(senders.recall(NODE, u64::MAX, Some(12)), (13, Ranges::new()));
        assert_eq!(senders.hear(from(14), 1, Some(12)), Err(13));
        senders.end(NODE);
        assert_eq!(senders.all().count(), 0);
        assert_eq!(senders.hear(from(13), 1, Some(12)), Ok(()));
    }

    #[test]
    fn what_was_refused_is_not_told_as_taken_once_what_follows_it_is() {
        let mut senders = Senders::default();
        senders.recall(NODE, 1, None);
        assert_eq!(senders.hear(from(1), 5, None), Ok(()));
        senders.refuse(from(1), 5);
        assert_eq!(senders.recall(NODE, 1, None), (6, Ranges::span(1, 5)));
        assert_eq!(senders.hear(from(6), 1, None), Ok(()));
        assert_eq!(senders.recall(NODE, 3, Some(6)), (7, Ranges::span(3, 5)));
        // It knows.
        assert_eq!(senders.recall(NODE, 6, Some(6)), (7, Ranges::new()));
        assert_eq!(senders.recall(NODE, 1, Some(6)), (7, Ranges::new()));
    }
}
