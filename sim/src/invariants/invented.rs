//! No message is invented: what a queue delivers was published to it, once.

use crate::ledger::{Id, Ledger, QueueKey};

/// A message was delivered.
pub fn check(ledger: &mut Ledger, key: QueueKey, id: Id) {
    let Some(queue) = ledger.queues.get(&key) else {
        return;
    };
    let name = queue.name.clone();
    let wrong = match queue.copies.get(&id) {
        None => "was never published to it",
        Some(copy) if copy.is_refused => "was refused",
        Some(copy) if copy.held => "is delivered while somebody holds it",
        Some(_) => return,
    };
    ledger.violated(
        "no message is invented",
        format!("queue {name}: message {id} {wrong}"),
    );
}
