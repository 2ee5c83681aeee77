//! All members have the same records in the same places, and each follows from those before it.

use super::{active, dead, order, reasons, waits};
use crate::cluster::exercised;
use crate::cluster::history::Fact;
use crate::cluster::ledger::Ledger;
use cluster::Committed;
use model::Journaled;
use queue::fifo::Record;

/// A node tells that this is committed.
pub fn committed(ledger: &mut Ledger, node: u32, entry: &Committed) {
    let group = entry.group;
    ledger.note(entry.at.index ^ entry.at.term << 32 ^ u64::from(node) << 56);
    let Some(book) = ledger.books.get_mut(&group) else {
        return;
    };
    let facts_are_old = entry.at.index <= book.history.last();
    let facts = match book.history.learn(entry.at, &entry.record) {
        Ok(facts) => facts,
        Err((invariant, what)) => {
            return ledger.violated(invariant, format!("{group:?}, told by {node}: {what}"));
        }
    };
    if let Some(Record::Declined { sent, refused }) = Record::decode(&entry.record) {
        ledger.tell(|| format!("{group:?} {:?}: declined {sent:?}, refused: {refused}", entry.at));
        if !facts_are_old {
            exercised::declined(ledger, group, refused);
        }
    }
    for fact in facts {
        ledger.tell(|| format!("{group:?} {:?}: {fact:?}", entry.at));
        match fact {
            Fact::Came { seq, id } => order::came(ledger, group, seq, id),
            Fact::Left { seq, id, how } => {
                reasons::left(ledger, group, seq, how);
                dead::left(ledger, group, id, how);
                exercised::left(ledger, group, seq, how);
            }
            Fact::Activated { of } => active::became(ledger, group, entry.at.term, of),
            Fact::Returned { seq, id, until } => {
                if let Some(at_ms) = until {
                    waits::waits(ledger, group, seq, id, at_ms);
                }
            }
        }
    }
}
