//! The end of a queue.

use super::{Answer, Classic, Effect, Ends, FifoOutcome, Request};
use model::Ranges;

impl<E: Ends> Classic<E> {
    pub(super) fn may_retire(&self, if_unused: bool, if_empty: bool) -> Answer {
        // Empty means that nothing is ready; RabbitMQ does not look at what consumers hold.
        let ready = self.lanes.ready();
        match () {
            () if if_unused && self.consumers.ring.len() > 0 => Answer::InUse,
            () if if_empty && (ready > 0 || self.is_in_question()) => Answer::NotEmpty,
            () => Answer::MayRetire(ready),
        }
    }

    pub(super) fn retire(&mut self, outcome: &mut FifoOutcome<E>) {
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
        self.reattaching = None;
        self.unheard = None;
    }

    /// A deleted queue takes no part any more, but nobody waits for it in vain.
    pub(super) fn handle_retired(&mut self, request: Request<E>, outcome: &mut FifoOutcome<E>) {
        let (reply, answer) = match request {
            Request::Enqueue {
                receipt: Some(receipt),
                ..
            }
            | Request::EnqueueFrom {
                receipt: Some(receipt),
                ..
            } => {
                outcome.effects.push(Effect::Confirm(receipt));
                return;
            }
            Request::Get { reply, .. } => (reply, Answer::Empty),
            Request::Consume { reply, .. }
            | Request::ConsumeFrom { reply, .. }
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
            Request::Holds { held, reply, .. } => {
                let spans = held.iter().flat_map(|held| held.seqs.spans());
                let mut all = Ranges::new();
                spans.for_each(|(first, last)| all.push_span(first, last));
                (reply, Answer::Discard(all))
            }
            Request::Recall { reply, .. } => {
                let (below, refused) = (0, Ranges::new());
                (reply, Answer::Recalled { below, refused })
            }
            Request::TakeOut { reply, .. } => (reply, Answer::Taken(Ranges::new())),
            Request::Purge { reply } => (reply, Answer::Purged(0)),
            Request::MayRetire { reply, .. } => (reply, Answer::MayRetire(0)),
            _ => return,
        };
        outcome.effects.push(Effect::Reply(reply, answer));
    }
}
