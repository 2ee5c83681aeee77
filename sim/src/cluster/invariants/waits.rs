//! What came back waits for its next try if it is to, until its time has come and no longer than it may.

use crate::cluster::history::Id;
use crate::cluster::ledger::{Leadership, Ledger};
use crate::world::BEGINNING_MS;
use cluster::GroupId;
use model::{DeliveryLimit, QueueSettings, Returned, Seq};
use queue::Delivery;

/// Clocks count in milliseconds, and make up for small differences.
const EARLY_MS: u64 = 30;

/// A leader lets a message go to a client. It may have come back once more since that was decided.
pub fn leaves(ledger: &mut Ledger, by: Leadership, seq: Seq, delivery: &Delivery) {
    let latest = BEGINNING_MS + ledger.latest.as_millis() as u64 + EARLY_MS;
    let Some(book) = ledger.books.get(&by.group) else {
        return;
    };
    let row = book.history.rows.get(&seq);
    let Some(row) = row.filter(|row| row.returns > 0 && row.returns == delivery.returns) else {
        return;
    };
    let was_given_back = row.last_was_given_back;
    let waits = |settings: &QueueSettings| match (&settings.delayed_retry, &settings.retry_delay) {
        (Some(delayed), _) => match delayed.of {
            Returned::All => true,
            Returned::Failed => !was_given_back,
            Returned::GivenBack => was_given_back,
        },
        (None, delay) => delay.is_some(),
    };
    // What was to leave does not wait: it had expired by the clock of whoever led, or had come back too often by a policy that
    // is not in force any more.
    let known = book.known.get(&row.id);
    let may_expire = known.is_some_and(|known| book.terms.lives_ms(&known.said).is_some());
    let may_leave = may_expire
        || book.terms.may(|settings| match settings.delivery_limit {
            Some(DeliveryLimit::Returns(limit)) => row.failures() > limit,
            Some(DeliveryLimit::Unlimited) | None => false,
        });
    let told = format!("{by:?} delivers {seq} at {latest}; {row:?}");
    match row.until {
        Some(at_ms) if at_ms > latest => {
            ledger.violated("what waits for its next try is not delivered", told);
        }
        None if book.terms.must(waits) && !may_leave => {
            ledger.violated("what came back waits for its next try", told);
        }
        Some(_) if !book.terms.may(waits) => {
            ledger.violated("what need not wait does not", told);
        }
        _ => {}
    }
}

/// A message has come back, and waits until then.
pub fn waits(ledger: &mut Ledger, group: GroupId, seq: Seq, id: Id, at_ms: u64) {
    let latest = BEGINNING_MS + ledger.latest.as_millis() as u64 + EARLY_MS;
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let is_too_long = |settings: &QueueSettings| {
        let most = match (&settings.delayed_retry, &settings.retry_delay) {
            (Some(delayed), _) => delayed.most_ms,
            (None, Some(delay)) => delay.cap_ms * (100 + u64::from(delay.jitter)) / 100,
            (None, None) => 0,
        };
        at_ms > latest.saturating_add(most)
    };
    if book.terms.must(is_too_long) {
        let what = format!("{group:?}: {seq} ({id}) waits until {at_ms}, it is {latest} at the most");
        ledger.violated("nothing waits longer than it may", what);
    }
}
