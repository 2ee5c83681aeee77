//! `basic.consume`, `basic.cancel` and `basic.get`.

use super::asked::{Asked, Starting};
use super::consumer::WINDOW;
use super::deliver::shown_properties;
use super::methods::{Answer, Next};
use super::topology::{count, table};
use super::{Channel, Context};
use broker::replies::REPLY_TO;
use broker::{ConsumerSettings, Delivery, QueueRef};
use protocol::amqp::method::{BasicCancel, BasicCancelOk, BasicConsume, BasicGet, BasicGetEmpty, BasicGetOk};
use protocol::amqp::{Arguments, Exception, ReplyCode, encode};
use std::hash::{BuildHasher, RandomState};

impl Channel {
    pub(super) fn basic_consume(&mut self, it: &BasicConsume<'_>, cx: &mut Context<'_>) -> Answer {
        let arguments = table(it.arguments, cx, BasicConsume::ID)?;
        if self.has_consumer(it.consumer_tag) {
            let text = format!("attempt to reuse consumer tag '{}'", it.consumer_tag);
            return Err(Exception::new(ReplyCode::NotAllowed, text, BasicConsume::ID));
        }
        let permitted = cx.shared.session.permit_consumer(self.consumers.count());
        permitted.map_err(|refusal| Self::refused::<BasicConsume<'_>>(&refusal))?;
        if it.queue == REPLY_TO {
            return self.consume_replies(it, cx);
        }
        let queue = self.queue_name(it.queue, BasicConsume::ID)?;
        let asked = cx.shared.session.consumer_arguments(&queue, &arguments);
        let asked = asked.map_err(|refusal| Self::refused::<BasicConsume<'_>>(&refusal))?;
        Self::refuse_address(&queue, BasicConsume::ID, cx)?;
        let settings = ConsumerSettings {
            no_ack: it.no_ack,
            exclusive: it.exclusive,
            prefetch: self.prefetch.to_ask(self.prefetch.each),
            priority: asked.priority,
            window: WINDOW,
            paused: self.prefetch.is_paused(),
        };
        let subscription = cx
            .shared
            .session
            .consume(self.id, &queue, settings, asked.stream.as_deref())
            .map_err(|refusal| Self::refused::<BasicConsume<'_>>(&refusal))?;
        let tag = match it.consumer_tag {
            "" => generated_tag(),
            tag => tag.to_owned(),
        };
        let question = subscription.question();
        let starting = Starting {
            subscription,
            tag,
            arguments,
            no_ack: it.no_ack,
            no_wait: it.no_wait,
            timeout_ms: asked.timeout_ms,
            asked_prefetch: settings.prefetch,
        };
        Ok(Next::Wait(question, Asked::Consume(Box::new(starting))))
    }

    fn has_consumer(&self, tag: &str) -> bool {
        let replies = self.replies.as_ref().is_some_and(|replies| replies.tag == tag);
        replies || self.tags.contains_key(tag)
    }

    /// Cancelling a tag that nobody has is answered all the same, as in RabbitMQ.
    pub(super) fn basic_cancel(&mut self, it: &BasicCancel<'_>, cx: &mut Context<'_>) -> Answer {
        let known = self.tags.get(it.consumer_tag).copied();
        if let Some(consumer) = known.and_then(|id| self.remove_consumer(id, cx.out)) {
            debug_assert_eq!(consumer.tag, it.consumer_tag);
            self.prefetch.resume(&self.consumers);
        }
        self.cancel_replies(it.consumer_tag);
        self.answer(
            cx,
            it.no_wait,
            None,
            &BasicCancelOk {
                consumer_tag: it.consumer_tag,
            },
        )
    }

    /// The channel's own prefetch has changed: queues are told what they may now send to its consumers.
    pub(super) fn limit_consumers(&mut self) {
        for consumer in self.consumers.iter_mut().filter(|consumer| !consumer.no_ack) {
            let prefetch = self.prefetch.to_ask(consumer.own_prefetch);
            if consumer.asked_prefetch != prefetch {
                consumer.subscription.limit(prefetch);
                consumer.asked_prefetch = prefetch;
            }
        }
    }

    /// Ends the consumer of this tag in its queue, before [`Channel::basic_cancel`] answers: what was delivered until then
    /// can be taken from the outbox in between. `None` if that is done already.
    pub fn cancel_subscription(&mut self, tag: &str) -> Option<super::Departed> {
        let consumer = self.consumers.get_mut(*self.tags.get(tag)?)?;
        if std::mem::replace(&mut consumer.ended, true) {
            return None;
        }
        Some(super::Departed::of(&consumer.subscription))
    }

    pub(super) fn basic_get(&mut self, it: &BasicGet<'_>, cx: &mut Context<'_>) -> Answer {
        let name = self.queue_name(it.queue, BasicGet::ID)?;
        Self::refuse_address(&name, BasicGet::ID, cx)?;
        let asked = cx.shared.session.get(self.id, &name, it.no_ack);
        let (queue, question) = asked.map_err(|refusal| Self::refused::<BasicGet<'_>>(&refusal))?;
        let no_ack = it.no_ack;
        Ok(Next::Wait(question, Asked::Get { queue, no_ack }))
    }

    /// Says that a get found nothing.
    pub fn got_nothing(&mut self, out: &mut Vec<u8>) {
        self.shown.counts.messages.get_empty.add(1);
        self.write(out, &BasicGetEmpty {});
    }

    /// Writes what a get brought.
    pub fn got(
        &mut self,
        delivery: &Delivery,
        remaining: u64,
        queue: &QueueRef,
        no_ack: bool,
        cx: &mut Context<'_>,
    ) {
        let Some(seq) = delivery.seqs.first() else {
            return self.got_nothing(cx.out);
        };
        let delivery_tag = self.next_tag;
        self.next_tag += 1;
        if no_ack {
            self.shown.counts.messages.get_no_ack.add(1);
        } else {
            let holder = self.holders.getter(queue);
            self.unacked.push(delivery_tag, holder, seq, 1);
            self.holders.add(holder, 1);
            self.time_get(holder, queue, delivery_tag, cx);
            self.shown.counts.messages.get.add(1);
        }
        self.shown
            .counts
            .messages
            .redeliver
            .add(delivery.redelivered.into());
        let message = delivery.block.message((seq - delivery.base) as usize);
        if self.shown.connection().is_traced() {
            let (number, redelivered) = (self.number, delivery.redelivered);
            self.shown
                .connection()
                .trace(number, queue.name(), redelivered, message);
        }
        let frame_max = cx.shared.tuning.frame_max;
        let shown = shown_properties(delivery, &message, encode::largest_properties(frame_max));
        let method = BasicGetOk {
            delivery_tag,
            redelivered: delivery.redelivered,
            exchange: message.exchange(),
            routing_key: message.routing_key(),
            message_count: count(remaining),
        };
        let number = self.number;
        encode::content(
            self.target(cx.out),
            number,
            &method,
            &shown,
            message.body,
            frame_max,
        );
    }
}

/// A consumer tag for a client that gave none: RabbitMQ's prefix and 16 random bytes in URL-safe base 64.
pub(super) fn generated_tag() -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // Every RandomState is seeded anew; the tag has to be unique on a channel, not secret.
    let high = u128::from(RandomState::new().hash_one(0));
    let mut bits = high << 64 | u128::from(RandomState::new().hash_one(1));
    let mut tag = String::from("amq.ctag-");
    for _ in 0..22 {
        tag.push(char::from(ALPHABET[(bits & 63) as usize]));
        bits >>= 6;
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_tags_differ() {
        let (a, b) = (generated_tag(), generated_tag());
        assert_ne!(a, b);
        assert_eq!(a.len(), "amq.ctag-".len() + 22);
    }
}
