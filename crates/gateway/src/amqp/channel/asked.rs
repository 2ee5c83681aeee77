//! What a channel has asked of a queue, and what it does with the answer.

use super::consumer::Consumer;
use super::methods::{Answer, Next};
use super::topology::count;
use super::{Channel, Context, Departed};
use broker::stats::ConsumerDetails;
use broker::{Done, QueueDeclared, QueueDeletion, QueueRef, Subscription};
use model::table::Table;
use protocol::amqp::DeliverTemplate;
use protocol::amqp::method::{
    BasicConsume, BasicConsumeOk, BasicGet, QueueDeclare, QueuePurge, QueuePurgeOk,
};

/// What was asked of a queue.
#[derive(Debug)]
pub enum Asked {
    /// `basic.get`.
    Get {
        queue: QueueRef,
        /// The message will count as settled.
        no_ack: bool,
    },
    /// `basic.consume`.
    Consume(Box<Starting>),
    /// `queue.declare` of a queue of another node.
    Declare {
        done: Done<QueueDeclared>,
        no_wait: bool,
    },
    /// `queue.purge`.
    Purge { queue: String, no_wait: bool },
    /// `queue.delete`.
    Delete { deletion: QueueDeletion, no_wait: bool },
}

/// A consumer that its queue does not know yet.
#[derive(Debug)]
pub struct Starting {
    pub(super) subscription: Subscription,
    pub(super) tag: String,
    pub(super) arguments: Table,
    pub(super) no_ack: bool,
    pub(super) no_wait: bool,
    /// The consumer timeout that it asked for.
    pub(super) timeout_ms: Option<u64>,
    /// The prefetch that its queue knows.
    pub(super) asked_prefetch: u32,
}

impl Asked {
    /// The channel is gone: what the answer brings goes back, and what has begun comes to its end. A consumer that has begun is
    /// returned: deliveries may have come with the answer, and more may follow.
    #[must_use]
    pub fn abandon(self, answer: Option<broker::Answer>) -> Option<Departed> {
        match (self, answer) {
            (Self::Get { queue, no_ack: false }, Some(broker::Answer::Got { delivery, .. })) => {
                queue.give_back(None, delivery.seqs, false);
                None
            }
            (Self::Consume(starting), Some(broker::Answer::Consuming)) => {
                Some(Departed::of(&starting.subscription))
            }
            _ => None,
        }
    }
}

impl Channel {
    /// The queue has answered.
    ///
    /// # Errors
    /// What the client is told by closing the channel.
    pub fn answered(&mut self, asked: Asked, answer: Option<broker::Answer>, cx: &mut Context<'_>) -> Answer {
        let session = &cx.shared.session;
        match asked {
            Asked::Get { queue, no_ack } => {
                let got = session.got(&queue, answer);
                match got.map_err(|refusal| Self::refused::<BasicGet<'_>>(&refusal))? {
                    Some((delivery, remaining)) => self.got(&delivery, remaining, &queue, no_ack, cx),
                    None => self.got_nothing(cx.out),
                }
                Ok(Next::Go)
            }
            Asked::Consume(starting) => {
                let consuming = session.consuming(starting.subscription.queue().name(), answer);
                consuming.map_err(|refusal| Self::refused::<BasicConsume<'_>>(&refusal))?;
                self.start_consumer(*starting, cx)
            }
            Asked::Declare { done, no_wait } => {
                let declared = session.declared(done.value, answer);
                let value = declared.map_err(|refusal| Self::refused::<QueueDeclare<'_>>(&refusal))?;
                let durable = done.durable;
                self.queue_declared(Done { value, durable }, no_wait, cx)
            }
            Asked::Purge { queue, no_wait } => {
                let purged = session.purged(&queue, answer);
                let purged = purged.map_err(|refusal| Self::refused::<QueuePurge<'_>>(&refusal))?;
                let message_count = count(purged);
                self.answer(cx, no_wait, None, &QueuePurgeOk { message_count })
            }
            Asked::Delete { deletion, no_wait } => {
                let deleting = session.go_on_deleting(self.id, deletion, answer);
                self.deleting(deleting, no_wait, cx)
            }
        }
    }

    fn start_consumer(&mut self, starting: Starting, cx: &mut Context<'_>) -> Answer {
        let Starting {
            mut subscription,
            tag,
            arguments,
            no_ack,
            no_wait,
            timeout_ms,
            asked_prefetch,
        } = starting;
        let holder = self
            .holders
            .consumer(subscription.queue().clone(), subscription.consumer());
        let timeout_ms = timeout_ms.unwrap_or(subscription.queue().ack_timeout_ms());
        let timed = timeout_ms > 0 && !no_ack;
        subscription.show(ConsumerDetails {
            tag: &tag,
            arguments,
            prefetch: self.prefetch.each,
            timeout_ms,
            channel: &self.shown,
        });
        let id = subscription.consumer();
        self.time(holder, Some(id), if timed { timeout_ms } else { 0 });
        let template = DeliverTemplate::new(self.number, &tag, cx.shared.tuning.frame_max);
        let answer = self.answer(cx, no_wait, None, &BasicConsumeOk { consumer_tag: &tag });
        self.tags.insert(tag.clone(), id);
        let consumer = Consumer {
            tag,
            subscription,
            no_ack,
            own_prefetch: self.prefetch.each,
            asked_prefetch,
            holder,
            timed,
            template,
            owed: 0,
            ended: false,
        };
        self.consumers.push(id, consumer);
        answer
    }
}
