//! A queue has no more ready than its limits allow, whoever decides: the oldest leave, or new ones are refused.

use crate::cluster::ledger::Ledger;
use cluster::GroupId;
use model::{Overflow, QueueSettings};
use queue::Status;

/// What a leader has, with the settings that its node knows.
pub fn kept(ledger: &mut Ledger, group: GroupId, node: u32, settings: &QueueSettings, status: &Status) {
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let terms = ledger.leaders.range((group, 0)..=(group, u64::MAX)).count();
    // Beyond that may be what came back; whoever led before may have had more go out than anybody knows.
    let may_be_back = match settings.overflow {
        Overflow::DropHead => 0,
        _ if terms > 1 || book.terms.policies() > 1 => return,
        _ => book
            .history
            .live()
            .filter(|(seq, _)| book.delivered_by.contains_key(seq))
            .count() as u64,
    };
    let is_too_many = settings
        .max_length
        .is_some_and(|most| status.ready > most + may_be_back);
    // Sizes of what was paged out, or comes from a checkpoint, are estimates until it is read.
    let is_exact = terms <= 1 && status.paged == 0 && may_be_back == 0;
    let is_too_much = settings
        .max_length_bytes
        .is_some_and(|most| is_exact && status.ready_bytes > most);
    if is_too_many || is_too_much {
        let what = format!("{group:?} on {node}: {status:?} with {settings:?}");
        ledger.violated("limits are kept", what);
    }
}
