//! No acknowledgement is undone, nor a purge: what a consumer was done with does not come back.
//!
//! What is promised. AMQP answers no acknowledgement, so one that is not durable may be undone when the node loses its
//! memory or the machine its power. It is never undone
//! - while the node lives,
//! - after the node was closed in good order,
//! - after a later publish of the same life was confirmed that is persistent and was put into a durable queue: the log
//!   is one, and the sync that covers the publish covers what was written before it.
//!
//! A message that was rejected, and has a dead-letter exchange, stays until it has arrived there: so the end of a life
//! may bring it back.
//!
//! An acknowledgement of an earlier life of which none of these is known is in doubt; if the message comes, it is as if
//! it had not been.

use crate::ledger::{Id, Ledger, QueueKey};

/// A message was delivered.
pub fn check(ledger: &mut Ledger, key: QueueKey, id: Id) {
    let life = ledger.life;
    let Some(queue) = ledger.queues.get_mut(&key) else {
        return;
    };
    let name = queue.name.clone();
    let Some(copy) = queue.copies.get_mut(&id) else {
        return;
    };
    let Some(at) = copy.gone_at else { return };
    if (!copy.gone_for_good || copy.rejected) && copy.gone_in < life {
        // The crash took the acknowledgement with it.
        (copy.gone_at, copy.gone_for_good) = (None, false);
        return;
    }
    ledger.violated(
        "no acknowledgement is undone",
        format!("queue {name}: message {id} comes again, which was done with at {at}"),
    );
}
