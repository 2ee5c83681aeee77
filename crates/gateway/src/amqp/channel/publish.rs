//! `basic.publish`, the hot way in.

use super::{Channel, Context};
use crate::amqp::connection::EFFORT;
use broker::Publisher;
use broker::replies::REPLY_TO;
use model::Message;
use model::properties::{BasicProperties, PropertiesBuf};
use protocol::amqp::method::{BasicPublish, BasicReturn};
use protocol::amqp::{Arguments, Exception, Publish, ReplyCode, encode};

/// So many steps of routing take as long as a method.
const STEPS_PER_EFFORT: usize = 128;

impl Channel {
    /// Takes a message. It reaches its queues at the next flush.
    ///
    /// # Errors
    /// What the client did wrong with it.
    #[inline]
    pub fn publish(&mut self, publish: &Publish<'_>, cx: &mut Context<'_>) -> Result<(), Exception> {
        if publish.immediate | self.special | has_reply_to(publish) {
            return self.publish_specially(publish, cx);
        }
        self.publish_now(publish, cx)
    }

    /// The longer way in: requests for direct replies, transactions, and what the node writes into messages.
    #[cold]
    fn publish_specially(&mut self, publish: &Publish<'_>, cx: &mut Context<'_>) -> Result<(), Exception> {
        if publish.immediate {
            return Err(Exception::new(
                ReplyCode::NotImplemented,
                "immediate=true",
                BasicPublish::ID,
            ));
        }
        let properties = publish.message.properties;
        let sent = BasicProperties::new(properties.bytes());
        let rewritten = match sent.reply_to() {
            Some(name) if name == REPLY_TO.as_bytes() => sent.with_reply_to(self.reply_address()?),
            _ => None,
        };
        let rewritten = rewritten.map(PropertiesBuf::amqp091);
        let rewritten = match cx.shared.session.intercepts() {
            true => {
                let properties = properties.replaced_by(rewritten.as_ref());
                Some(cx.shared.session.intercepted(properties))
            }
            false => rewritten,
        };
        let message = Message {
            properties: properties.replaced_by(rewritten.as_ref()),
            ..publish.message
        };
        let publish = Publish { message, ..*publish };
        if self.tx.is_some() {
            return self.publish_in_transaction(&publish, cx);
        }
        self.publish_now(&publish, cx)
    }

    /// Part of the hot way in, however many others use it.
    #[inline(always)]
    fn publish_now(&mut self, publish: &Publish<'_>, cx: &mut Context<'_>) -> Result<(), Exception> {
        let number = self.confirms.as_ref().map(|confirms| confirms.next());
        let taken = self
            .publisher(cx)
            .publish(&publish.message, number)
            .map_err(|refusal| Self::refused::<BasicPublish<'_>>(&refusal))?;
        if taken.is_lost() {
            self.lost(publish, cx);
        }
        if let Some(confirms) = &mut self.confirms {
            confirms.published(taken.queues);
        }
        Ok(())
    }

    /// The channel's way into the broker.
    #[inline]
    pub(super) fn publisher(&mut self, cx: &Context<'_>) -> &mut Publisher {
        self.publisher
            .get_or_insert_with(|| Box::new(cx.shared.session.publisher(self.id, self.number)))
    }

    /// True if routing its messages has taken so much that the other connections are next.
    #[inline]
    pub fn is_strained(&self) -> bool {
        self.publisher
            .as_ref()
            .is_some_and(|publisher| publisher.steps() >= STEPS_PER_EFFORT * EFFORT as usize)
    }

    /// What routing its messages took since this was asked last, in parts of a turn.
    pub fn take_effort(&mut self) -> u32 {
        let steps = self
            .publisher
            .as_mut()
            .map_or(0, |publisher| publisher.take_steps());
        u32::try_from(steps / STEPS_PER_EFFORT).unwrap_or(u32::MAX)
    }

    /// So many messages were published.
    pub fn count_published(&mut self, count: u64) {
        self.shown.counts.messages.publish.add(count);
        if let Some(confirms) = &self.confirms {
            self.shown.to_confirm.set(confirms.next() - 1);
        }
    }

    /// Nobody takes a message. A mandatory one goes back; its confirm, if any, comes after.
    #[cold]
    pub(super) fn lost(&mut self, publish: &Publish<'_>, cx: &mut Context<'_>) {
        if !publish.mandatory {
            return self.shown.counts.drop_unroutable.add(1);
        }
        self.shown.counts.return_unroutable.add(1);
        let method = BasicReturn {
            reply_code: ReplyCode::NoRoute.number(),
            reply_text: ReplyCode::NoRoute.name(),
            exchange: publish.message.route.exchange(),
            routing_key: publish.message.route.routing_key(),
        };
        let shown = self.publisher(cx).as_shown(publish.message.properties);
        let (number, frame_max) = (self.number, cx.shared.tuning.frame_max);
        encode::content(
            self.target(cx.out),
            number,
            &method,
            publish.message.properties.replaced_by(shown.as_ref()).bytes(),
            publish.message.body,
            frame_max,
        );
    }
}

/// True if a client may want direct replies. What comes by AMQP 0-9-1 has properties of AMQP 0-9-1.
#[inline]
fn has_reply_to(publish: &Publish<'_>) -> bool {
    BasicProperties::new(publish.message.properties.bytes()).has_reply_to()
}
