//! What a client was done with before it published what is confirmed is settled: a leader keeps the order.

use crate::cluster::history::Id;
use crate::cluster::ledger::{Leadership, Ledger};
use model::Seq;

/// A client tells this leader that it is done with a message.
pub fn acked(ledger: &mut Ledger, by: Leadership, seq: Seq, id: Id) {
    ledger.acks += 1;
    ledger.tell(|| format!("{by:?} is told that {seq} ({id}) is done with"));
    let at = ledger.next_order();
    if let Some(book) = ledger.books.get_mut(&by.group) {
        book.acks.entry(by).or_default().push((at, seq));
        book.known.entry(id).or_default().acked = true;
    }
}

/// A publish is confirmed that was handed to this leader then.
pub fn confirmed(ledger: &mut Ledger, by: Leadership, at: u64) {
    let Some(book) = ledger.books.get_mut(&by.group) else {
        return;
    };
    let Some(acks) = book.acks.get_mut(&by) else {
        return;
    };
    let due: Vec<_> = acks.extract_if(.., |(before, _)| *before < at).collect();
    let is_there = |seq: &Seq| book.history.rows.get(seq).is_some_and(|row| row.gone.is_none());
    let undone: Vec<_> = due.into_iter().map(|(_, seq)| seq).filter(is_there).collect();
    for seq in undone {
        let what = format!("{seq}, settled at {by:?}, is there when a later publish is confirmed");
        ledger.violated("no ack is undone", what);
    }
}
