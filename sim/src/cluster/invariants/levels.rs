//! Of a queue that sorts by levels, or by priorities, what is of a higher one leaves first.

use crate::cluster::exercised;
use crate::cluster::history::{Id, lane_of};
use crate::cluster::ledger::Ledger;
use cluster::GroupId;
use model::{Seq, Sorting};
use std::collections::BTreeSet;

/// Everything was taken out of the queue, in this order. What waited meanwhile may have come later.
pub fn drained(ledger: &mut Ledger, group: GroupId, taken: &[(Seq, Id)]) {
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let level = |id: &Id| {
        let said = book.known.get(id).and_then(|known| known.said.priority);
        match book.terms.settings().sorting {
            // None is the fifth level, as in RabbitMQ 4.3.
            Sorting::Levels => Some(said.unwrap_or(4).min(31)),
            Sorting::Priority(highest) => Some(said.unwrap_or(0).min(highest)),
            Sorting::Arrival | Sorting::FairKey(_) => None,
        }
    };
    let has_waited = |seq: &Seq| {
        let row = book.history.rows.get(seq);
        row.is_none_or(|row| row.returns > 0)
    };
    let firm = taken.iter().filter(|(seq, _)| !has_waited(seq));
    let firm: Vec<(Seq, Option<u8>)> = firm.map(|(seq, id)| (*seq, level(id))).collect();
    let wrong = firm.windows(2).find(|pair| pair[0].1 < pair[1].1);
    let wrong = wrong.map(|pair| format!("{group:?}: {pair:?}"));
    let lanes: BTreeSet<u64> = taken.iter().map(|(seq, _)| lane_of(*seq)).collect();
    if let Some(what) = wrong {
        ledger.violated("higher levels leave first", what);
    }
    if lanes.len() > 1 {
        exercised::sorted(ledger, group);
    }
}
