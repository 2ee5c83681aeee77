//! What a client was done with stays so, unless its node was out of reach.

use crate::cluster::history::Id;
use crate::cluster::ledger::{Held, Ledger};
use cluster::GroupId;
use model::Seq;

/// A client is done with a message that it has. If its node was out of reach since it got that, somebody else may have it.
pub fn acked(ledger: &mut Ledger, group: GroupId, node: u32, seq: Seq, id: Id) {
    ledger.counts.acks += 1;
    ledger.tell(|| format!("{group:?}: a client of node {node} is done with {seq} ({id})"));
    let now = ledger.now;
    if let Some(book) = ledger.books.get_mut(&group) {
        let consumer = None;
        let held = book.hands.get(&seq).copied();
        let held = held.unwrap_or(Held {
            id,
            consumer,
            node,
            since: now,
            returns: 0,
            failures: 0,
        });
        let held = Held {
            id,
            consumer,
            node,
            ..held
        };
        book.acked.insert(seq, held);
        book.known.entry(id).or_default().acked = true;
    }
}

/// In the end, all that clients were done with is settled.
pub fn ended(ledger: &mut Ledger) {
    let mut undone = Vec::new();
    for (group, book) in &ledger.books {
        for (seq, held) in &book.acked {
            let is_there = book.history.rows.get(seq).is_some_and(|row| row.gone.is_none());
            if is_there && ledger.is_well_since(held.node, held.since) {
                undone.push(format!("{group:?}: {seq}, {held:?}"));
            }
        }
    }
    for what in undone {
        ledger.violated("no ack is undone", what);
    }
}
