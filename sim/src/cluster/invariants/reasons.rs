//! A message leaves its queue for a reason: a client was done with it, or the queue's settings have it leave.

use crate::cluster::history::Gone;
use crate::cluster::ledger::Ledger;
use cluster::GroupId;
use model::{DeliveryLimit, QueueSettings, Seq};
use queue::DropReason;
use std::time::Duration;

/// Clocks count in milliseconds, and make up for small differences: something may be due so much earlier.
const EARLY: Duration = Duration::from_millis(30);

pub fn left(ledger: &mut Ledger, group: GroupId, seq: Seq, how: Gone) {
    let latest = ledger.latest + EARLY;
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let Some(row) = book.history.rows.get(&seq) else {
        return;
    };
    let Some(known) = book.known.get(&row.id) else {
        return;
    };
    // Where failures are not counted apart each return is one.
    let failures = |settings: &QueueSettings| match settings.counts_failures {
        true => row.failures(),
        false => row.returns,
    };
    let terms = &book.terms;
    let expired = |ms| known.published + Duration::from_millis(ms) <= latest;
    let is_right = match how {
        Gone::Settled => known.acked || terms.has_no_ack,
        Gone::Dropped(DropReason::Rejected) => known.rejected,
        Gone::Dropped(DropReason::MaxLength) => terms.has_limit(),
        Gone::Dropped(DropReason::Expired) => terms.lives_ms(&known.said).is_some_and(expired),
        Gone::Dropped(DropReason::DeliveryLimit) => terms.may(|settings| match settings.delivery_limit {
            Some(DeliveryLimit::Returns(limit)) => failures(settings) > limit,
            Some(DeliveryLimit::Unlimited) | None => false,
        }),
        Gone::Dropped(DropReason::Purged) => book.purges > 0,
        Gone::Dropped(DropReason::Unreadable) => false,
    };
    if !is_right {
        let what = format!("{group:?}: {seq} left by {how:?}; {row:?}, {known:?}");
        ledger.violated("a message leaves for a reason", what);
    }
}
