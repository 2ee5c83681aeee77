//! `basic.publish`, the hot way in.

use super::{Channel, Context};
use broker::Publish as Message;
use model::properties::Properties;
use protocol::amqp::method::{BasicPublish, BasicReturn};
use protocol::amqp::{Arguments, Exception, Publish, ReplyCode, encode};

/// RabbitMQ's pseudo-queue for direct replies.
pub(super) const REPLY_TO: &str = "amq.rabbitmq.reply-to";

impl Channel {
    /// Takes a message. It reaches its queues at the next flush.
    ///
    /// # Errors
    /// What the client did wrong with it.
    #[inline]
    pub fn publish(&mut self, publish: &Publish<'_>, cx: &mut Context<'_>) -> Result<(), Exception> {
        if publish.immediate {
            return Err(Exception::new(
                ReplyCode::NotImplemented,
                "immediate=true",
                BasicPublish::ID,
            ));
        }
        if Properties::new(publish.properties).reply_to() == Some(REPLY_TO.as_bytes()) {
            return Err(no_direct_reply_to::<BasicPublish<'_>>());
        }
        let number = self.confirms.as_ref().map(|confirms| confirms.next());
        let message = Message {
            exchange: publish.exchange,
            routing_key: publish.routing_key,
            properties: publish.properties,
            body: publish.body,
        };
        let publisher = self
            .publisher
            .get_or_insert_with(|| Box::new(cx.session.publisher(self.id)));
        let queues = publisher
            .publish(&message, number)
            .map_err(|refusal| Self::refused::<BasicPublish<'_>>(&refusal))?;
        if queues == 0 && publish.mandatory {
            self.return_message(publish, cx);
        }
        if let Some(confirms) = &mut self.confirms {
            confirms.published(queues);
        }
        Ok(())
    }

    /// A mandatory message that no queue takes goes back; its confirm, if any, comes after.
    #[cold]
    fn return_message(&mut self, publish: &Publish<'_>, cx: &mut Context<'_>) {
        let method = BasicReturn {
            reply_code: ReplyCode::NoRoute.number(),
            reply_text: ReplyCode::NoRoute.name(),
            exchange: publish.exchange,
            routing_key: publish.routing_key,
        };
        let (number, frame_max) = (self.id.number, cx.frame_max);
        encode::content(
            self.target(cx.out),
            number,
            &method,
            publish.properties,
            publish.body,
            frame_max,
        );
    }
}

/// Direct reply-to is not there yet; a request whose answer would never come must not look well.
pub(super) fn no_direct_reply_to<'m, A: Arguments<'m>>() -> Exception {
    Exception::new(
        ReplyCode::PreconditionFailed,
        "direct reply-to is not supported yet",
        A::ID,
    )
}
