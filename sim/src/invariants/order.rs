//! Messages of one publisher keep their order in a queue, and one that was never delivered before is not marked as if,
//! nor the other way round.

use crate::ledger::{Id, Ledger, QueueKey};

/// A message was delivered to a consumer by the queue as it runs.
pub fn delivered(ledger: &mut Ledger, key: QueueKey, consumer: u64, id: Id, redelivered: bool) {
    if redelivered {
        return;
    }
    let Some(queue) = ledger.queues.get_mut(&key) else {
        return;
    };
    let Some(copy) = queue.copies.get(&id) else {
        return;
    };
    let wrong = match queue.last_new.insert((consumer, copy.publisher, copy.lane), id) {
        // What comes back because the node was closed before its dead letter had arrived has no record of its delivery.
        _ if copy.delivered && !copy.was_rejected => "was delivered before, and is not marked",
        Some(last) if last > id => "comes behind a later one of its publisher",
        _ => return,
    };
    let name = queue.name.clone();
    ledger.violated(
        "order per publisher and queue",
        format!("queue {name}: message {id} {wrong}"),
    );
}

/// Everything in the queue was drained by one consumer, in this order.
pub fn drained(ledger: &mut Ledger, key: QueueKey, found: &[Id]) {
    let Some(queue) = ledger.queues.get(&key) else {
        return;
    };
    // Retries come when their time has come, dead letters when they died.
    if queue.terms.retry_ms.is_some() || queue.has_dead_letters {
        return;
    }
    let mut last = std::collections::BTreeMap::new();
    let mut wrong = None;
    let mut priority = u8::MAX;
    for id in found {
        let (publisher, lane) = (queue.copies.get(id)).map_or((0, 0), |copy| (copy.publisher, copy.lane));
        if queue.terms.max_priority > 0 && std::mem::replace(&mut priority, lane) < lane {
            wrong = Some(*id);
        }
        if last
            .insert((publisher, lane), *id)
            .is_some_and(|last| last >= *id)
        {
            wrong = Some(*id);
        }
    }
    if let Some(id) = wrong {
        let name = queue.name.clone();
        ledger.violated(
            "order per publisher and queue",
            format!("queue {name}: when it was drained, message {id} came out of order: {found:?}"),
        );
    }
}
