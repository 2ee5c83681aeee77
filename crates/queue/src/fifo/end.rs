//! The end of a queue.

use super::{Answer, Classic, Effect, Ends, FifoOutcome, Request};
use model::Ranges;

impl<E: Ends> Classic<E> {
    pub(super) fn retire(
        &mut self,
        if_unused: bool,
        if_empty: bool,
        reply: E::Reply,
        outcome: &mut FifoOutcome<E>,
    ) {
        if if_unused && self.consumers.ring.len() > 0 {
            outcome.effects.push(Effect::Reply(reply, Answer::InUse));
            return;
        }
        // Empty means that nothing is ready; RabbitMQ does not look at what consumers hold.
        let ready = self.lanes.ready();
        if if_empty && ready > 0 {
            outcome.effects.push(Effect::Reply(reply, Answer::NotEmpty));
            return;
        }
        // Before consumers hear of it: a client that deletes a queue from which it consumes sees delete-ok first, as in RabbitMQ.
        outcome.effects.push(Effect::Reply(reply, Answer::Retired(ready)));
        for get in self.consumers.gets.drain(..) {
            outcome.effects.push(Effect::Reply(get.reply, Answer::Empty));
        }
        for consumer in self.consumers.ring.clear() {
            outcome.effects.push(Effect::CancelConsumer {
                outlet: consumer.outlet,
                consumer: consumer.id,
            });
        }
        self.retired = true;
        // No records and no releases: the journal and the segments go as a whole.
        self.lanes.clear();
        self.unused_at_ms = u64::MAX;
    }

    /// A deleted queue takes no part any more, but nobody waits for it in vain.
    pub(super) fn handle_retired(&mut self, request: Request<E>, outcome: &mut FifoOutcome<E>) {
        let (reply, answer) = match request {
            Request::Enqueue {
                receipt: Some(receipt),
                ..
            } => {
                outcome.effects.push(Effect::Confirm(receipt));
                return;
            }
            Request::Get { reply, .. } => (reply, Answer::Empty),
            Request::Consume { reply, .. }
            | Request::Cancel {
                reply: Some(reply), ..
            } => (reply, Answer::Cancelled),
            Request::Pause {
                reply: Some(reply), ..
            } => (reply, Answer::Paused),
            Request::Use { reply: Some(reply) } => {
                let (ready, consumers) = (0, 0);
                (reply, Answer::Stands { ready, consumers })
            }
            Request::TakeOut { reply, .. } => (reply, Answer::Taken(Ranges::new())),
            Request::Purge { reply } => (reply, Answer::Purged(0)),
            Request::Retire { reply, .. } => (reply, Answer::Retired(0)),
            _ => return,
        };
        outcome.effects.push(Effect::Reply(reply, answer));
    }
}
