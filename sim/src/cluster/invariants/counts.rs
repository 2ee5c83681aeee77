//! How often a message came back is what its deliveries say: each return of a client that had it counts once, and for the
//! delivery limit only those by which the client has failed. What came back too often is delivered no more. Marked as delivered
//! before is what came back, and nothing that nobody can have been given.

use super::deliveries::Receiver;
use crate::cluster::history::Id;
use crate::cluster::ledger::{Held, Leadership, Ledger};
use cluster::GroupId;
use model::{DeliveryLimit, QueueSettings, Seq};
use queue::Delivery;
use std::time::Duration;

const COUNTED: &str = "each return counts once";

/// A client has given something back, or lost it.
#[derive(Debug, Clone, Copy)]
pub struct Back {
    node: u32,
    since: Duration,
    returns: u32,
    failures: u32,
    failed: bool,
}

impl Back {
    /// Whether it was a client of this node.
    pub fn is_of(&self, node: u32) -> bool {
        self.node == node
    }
}

/// How often of its returns a client had failed.
pub fn failures_of(delivery: &Delivery) -> u32 {
    delivery.failures.unwrap_or(delivery.returns)
}

/// A leader lets a message go to a client.
pub fn leaves(ledger: &mut Ledger, by: Leadership, seq: Seq, delivery: &Delivery) {
    let Some(book) = ledger.books.get(&by.group) else {
        return;
    };
    let Some(row) = book.history.rows.get(&seq) else {
        return;
    };
    let (returns, failures) = (delivery.returns, failures_of(delivery));
    let told = format!("{by:?} delivers {seq}, {returns} times back, {failures} failures; {row:?}");
    let is_counted = book.terms.must(QueueSettings::counts_returns);
    let is_new = row.term == by.term && row.returns == 0 && !book.delivered_by.contains_key(&seq);
    let spent = |settings: &QueueSettings| match settings.delivery_limit {
        Some(DeliveryLimit::Returns(limit)) => failures > limit,
        Some(DeliveryLimit::Unlimited) | None => false,
    };
    if is_counted && (returns > row.returns || failures > row.failures()) {
        ledger.violated(COUNTED, told);
    } else if book.terms.must(spent) {
        ledger.violated("what came back too often is delivered no more", told);
    } else if returns > 0 && !delivery.redelivered {
        ledger.violated("what was delivered is marked", told);
    } else if is_new && delivery.redelivered {
        ledger.violated("what nobody was given is not marked", told);
    }
}

/// A client gives back what it holds, or has lost it.
pub fn gives_back(ledger: &mut Ledger, group: GroupId, seq: Seq, held: &Held, failed: bool) {
    if let Some(book) = ledger.books.get_mut(&group) {
        let back = Back {
            node: held.node,
            since: held.since,
            returns: held.returns,
            failures: held.failures,
            failed,
        };
        book.backs.insert(seq, back);
    }
}

/// A client is given what another one may have given back before.
pub fn arrives(ledger: &mut Ledger, group: GroupId, to: Receiver, seq: Seq, id: Id, delivery: &Delivery) {
    let Some(book) = ledger.books.get_mut(&group) else {
        return;
    };
    let is_counted = book.terms.must(QueueSettings::counts_returns);
    let apart = book.terms.settings().counts_failures;
    let Some(back) = book.backs.remove(&seq) else {
        return;
    };
    // What was under way longer than that is from before.
    if to.since < back.since || !ledger.is_well_since(back.node, back.since) {
        return;
    }
    let (returns, failures) = (delivery.returns, failures_of(delivery));
    let expected = (back.returns + 1, back.failures + u32::from(back.failed || !apart));
    let all_well = ledger.all_are_well_since(back.since);
    let is_right = match all_well {
        true => (returns, failures) == expected,
        // Somebody else may have been given it meanwhile, and not be there any more.
        false => returns >= expected.0 && failures >= expected.1,
    };
    let told =
        format!("{group:?}: {seq} ({id}) comes with {returns} returns, {failures} failures after {back:?}");
    if is_counted && !is_right {
        ledger.violated(COUNTED, told);
    } else if !delivery.redelivered {
        ledger.violated("what was delivered is marked", told);
    }
}
