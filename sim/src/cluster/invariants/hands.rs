//! A message is in one client's hands at a time, as far as nodes can know: who leads asks them, and believes that one has
//! nothing more which it cannot reach.

use super::counts::failures_of;
use super::deliveries::Receiver;
use crate::cluster::history::Id;
use crate::cluster::ledger::{Held, Ledger};
use cluster::GroupId;
use model::Seq;
use queue::Delivery;

/// A client is given a message. While it was under way its node may have been out of reach, and somebody else been given it.
pub fn given(
    ledger: &mut Ledger,
    group: GroupId,
    node: u32,
    to: Receiver,
    (seq, id): (Seq, Id),
    delivery: &Delivery,
) {
    let Receiver { consumer, since, .. } = to;
    let is_late = !ledger.is_well_since(node, since);
    let Some(book) = ledger.books.get_mut(&group) else {
        return;
    };
    let held = Held {
        id,
        consumer,
        node,
        since,
        returns: delivery.returns,
        failures: failures_of(delivery),
    };
    // What was under way for longer does not count: its node is about to be told to discard it, and the other one has it.
    if is_late && book.hands.get(&seq).is_some_and(|other| other.since > since) {
        return;
    }
    let before = book.hands.insert(seq, held);
    let acked = book.acked.remove(&seq);
    if let Some(before) = before.filter(|held| !is_late && ledger.is_well_since(held.node, held.since)) {
        let what = format!("{group:?}: {seq} ({id}) goes to {consumer:?} on {node}, and {before:?}");
        ledger.violated("a message is in one client's hands", what);
    }
    if let Some(acked) = acked.filter(|held| !is_late && ledger.is_well_since(held.node, held.since)) {
        let what =
            format!("{group:?}: {seq} ({id}) goes to {consumer:?} on {node}, and {acked:?} was done with it");
        ledger.violated("no ack is undone", what);
    }
}
