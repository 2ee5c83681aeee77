//! What a queue says that it holds is what it holds, no more than it may, and nothing twice if it drops duplicates.

use crate::ledger::{Copy, Id, Ledger, QueueKey};

/// A queue without consumers has said that so many messages are ready, and then it was drained of so many.
pub fn check(ledger: &mut Ledger, key: QueueKey, said: u64, found: &[Id]) {
    let drained = found.len() as u64;
    let Some(queue) = ledger.queues.get(&key) else {
        return;
    };
    let terms = &queue.terms;
    // Some of these are waiting, and some go while it is drained.
    let is_still = terms.retry_ms.is_none() && queue.copies.values().all(|copy| copy.may_expire.is_none());
    let is_over = terms.max_length.is_some_and(|limit| said > limit) && !terms.refuses;
    let name = queue.name.clone();
    let mut keys = std::collections::BTreeSet::new();
    // One that was on its way as a dead letter was not there when another like it came; the end of a life brings it back.
    let was_there = |copy: &&Copy| !(terms.dead_letters && ledger.is_excused(copy));
    let found = found.iter().filter_map(|id| queue.copies.get(id));
    let mut found = found.filter(was_there).filter_map(|copy| copy.key);
    let is_doubled = terms.deduplicates && !found.all(|key| keys.insert(key));
    let is_wrong = is_still && !queue.has_dead_letters && said != drained;
    if is_wrong {
        ledger.violated(
            "counts are true",
            format!("queue {name} says that {said} messages are ready, and gives {drained}"),
        );
    }
    if is_doubled {
        ledger.violated("duplicates are dropped", format!("queue {name} holds some"));
    }
    if is_over {
        ledger.violated("limits hold", format!("queue {name} holds {said} messages"));
    }
}
