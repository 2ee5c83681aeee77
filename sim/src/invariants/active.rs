//! A queue with a single active consumer gives messages to one consumer until that has left.

use crate::ledger::{Ledger, QueueKey};

/// A message was delivered to this consumer.
pub fn check(ledger: &mut Ledger, key: QueueKey, consumer: u64) {
    let Some(queue) = ledger.queues.get_mut(&key) else {
        return;
    };
    // What was on its way to one that leaves is still its own.
    if !queue.terms.has_single_active || queue.left.contains(&consumer) {
        return;
    }
    let before = queue.active.replace(consumer);
    let Some(before) = before.filter(|before| *before != consumer && !queue.left.contains(before)) else {
        return;
    };
    let name = queue.name.clone();
    ledger.violated(
        "one consumer is active",
        format!("queue {name} delivers to consumer {consumer} while {before} is there"),
    );
}
