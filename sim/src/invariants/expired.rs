//! An expired message is not delivered, and a message does not come back more often than its queue permits.

use crate::ledger::{Id, Ledger, QueueKey};
use std::time::Duration;

/// What may pass between a deadline and the moment in which a queue looks at the time.
const LATE: Duration = Duration::from_secs(1);

/// A message was delivered after `since`, when the client had taken all before.
pub fn check(ledger: &mut Ledger, key: QueueKey, id: Id, since: Duration) {
    let Some(queue) = ledger.queues.get(&key) else {
        return;
    };
    let Some(copy) = queue.copies.get(&id) else {
        return;
    };
    let name = queue.name.clone();
    if let Some(deadline) = copy.deadline.filter(|deadline| *deadline + LATE < since) {
        ledger.violated(
            "expired messages are not delivered",
            format!("queue {name}: message {id} was to be gone at {deadline:?}, and comes after {since:?}"),
        );
    }
}
