//! No confirmed message is lost: whatever a queue has taken responsibility for is there until somebody is done with it.
//!
//! What its arguments and policies permit excuses a queue: limits, times to live, returns that are counted, duplicates.
//! Whether what left so arrived as a dead letter, `dead` looks at.
//!
//! A queue whose deletion was asked for and not answered before the node ended is there with all its messages or is not
//! there.

use crate::ledger::{Ledger, QueueKey};
use std::collections::BTreeSet;

/// Everything in the queue was drained, and these messages were found.
pub fn check(ledger: &mut Ledger, key: QueueKey, found: &BTreeSet<u64>) {
    let Some(queue) = ledger.queues.get(&key) else {
        return;
    };
    let lost: Vec<u64> = (queue.copies.iter())
        .filter(|(id, copy)| {
            copy.confirmed && copy.gone_at.is_none() && !ledger.is_excused(copy) && !found.contains(id)
        })
        .map(|(id, _)| *id)
        .collect();
    let name = queue.name.clone();
    if !lost.is_empty() {
        ledger.violated(
            "no confirmed message is lost",
            format!("queue {name}: {} are missing: {lost:?}", lost.len()),
        );
    }
}
