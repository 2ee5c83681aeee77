//! Direct replies: the consumer of `amq.rabbitmq.reply-to`, and what may be done with its address.

use super::consume::generated_tag;
use super::consumer::Pending;
use super::methods::Answer;
use super::{Channel, Context};
use broker::ReplyAddress;
use broker::replies::REPLY_TO;
use protocol::amqp::method::{
    BasicConsume, BasicConsumeOk, BasicGet, BasicPublish, QueueDeclareOk, QueuePurgeOk,
};
use protocol::amqp::{Arguments, DeliverTemplate, Exception, MethodId, ReplyCode};

/// A channel's consumer of direct replies.
#[derive(Debug)]
pub struct ReplyConsumer {
    /// Its tag.
    pub tag: String,
    address: ReplyAddress,
    template: DeliverTemplate,
}

impl Channel {
    /// `basic.consume` of the pseudo-queue.
    pub(super) fn consume_replies(&mut self, it: &BasicConsume<'_>, cx: &mut Context<'_>) -> Answer {
        let refuse = |text: &'static str| {
            let code = ReplyCode::PreconditionFailed;
            Err(Exception::new(code, text, BasicConsume::ID))
        };
        if self.replies.is_some() {
            return refuse("reply consumer already set");
        }
        if !it.no_ack {
            return refuse("reply consumer cannot acknowledge");
        }
        let address = cx
            .shared
            .session
            .reply_address(self.id)
            .map_err(|refusal| Self::refused::<BasicConsume<'_>>(&refusal))?;
        let tag = match it.consumer_tag {
            "" => generated_tag(),
            tag => tag.to_owned(),
        };
        let template = DeliverTemplate::new(self.number, &tag, cx.shared.tuning.frame_max);
        let answer = self.answer(cx, it.no_wait, None, &BasicConsumeOk { consumer_tag: &tag });
        self.replies = Some(Box::new(ReplyConsumer {
            tag,
            address,
            template,
        }));
        answer
    }

    /// The address that a request carries instead of the pseudo-queue's name.
    ///
    /// # Errors
    /// 406 if nobody consumes the replies.
    pub(super) fn reply_address(&self) -> Result<&str, Exception> {
        match &self.replies {
            Some(replies) => Ok(replies.address.name()),
            None => Err(Exception::new(
                ReplyCode::PreconditionFailed,
                "fast reply consumer does not exist",
                BasicPublish::ID,
            )),
        }
    }

    /// True if deliveries to this consumer are direct replies.
    pub(super) fn takes_replies(&self, consumer: model::ConsumerId) -> bool {
        self.replies
            .as_ref()
            .is_some_and(|replies| replies.address.consumer() == consumer)
    }

    /// Writes an answer. There is one message in each delivery.
    pub(super) fn write_reply(&mut self, pending: &Pending, out: &mut Vec<u8>) {
        let (Some(replies), Some(seq)) = (&mut self.replies, pending.delivery.seqs.first()) else {
            return;
        };
        if replies.address.consumer() != pending.consumer {
            return;
        }
        let delivery = &pending.delivery;
        let message = delivery.block.message((seq - delivery.base) as usize);
        replies.template.deliver(out, self.next_tag, false, &message);
        replies.address.written(delivery.bytes_of(seq, seq));
        self.next_tag += 1;
    }

    /// `queue.declare` of the pseudo-queue or of an address: it is there, and has one consumer, as RabbitMQ says of any.
    pub(super) fn declare_replies(
        &mut self,
        name: &str,
        no_wait: bool,
        cx: &mut Context<'_>,
    ) -> Option<Answer> {
        if name != REPLY_TO && !is_address(name, cx) {
            return None;
        }
        let reply = QueueDeclareOk {
            queue: name,
            message_count: 0,
            consumer_count: 1,
        };
        Some(self.answer(cx, no_wait, None, &reply))
    }

    /// What may not be done with somebody's address.
    ///
    /// # Errors
    /// The refusal, if `name` is one.
    pub(super) fn refuse_address(name: &str, method: MethodId, cx: &Context<'_>) -> Result<(), Exception> {
        if !is_address(name, cx) {
            return Ok(());
        }
        let vhost = cx.shared.session.vhost();
        Err(if method == BasicConsume::ID {
            let text = format!("only creator channel may consume from queue '{name}' in vhost '{vhost}'");
            Exception::new(ReplyCode::PreconditionFailed, text, method)
        } else if method == BasicGet::ID {
            let text = format!("basic.get not supported by volatile queue '{name}' in vhost '{vhost}'");
            Exception::new(ReplyCode::NotImplemented, text, method)
        } else {
            let text = "cannot bind or unbind to a volatile (direct reply-to) queue";
            Exception::new(ReplyCode::AccessRefused, text, method)
        })
    }

    /// `queue.purge` of an address: nothing ever lies there.
    pub(super) fn purge_replies(
        &mut self,
        name: &str,
        no_wait: bool,
        cx: &mut Context<'_>,
    ) -> Option<Answer> {
        is_address(name, cx).then(|| self.answer(cx, no_wait, None, &QueuePurgeOk { message_count: 0 }))
    }

    /// Ends the consumer of replies if it has this tag.
    pub(super) fn cancel_replies(&mut self, tag: &str) {
        self.replies.take_if(|replies| replies.tag == tag);
    }
}

/// Most names are told apart by their first letters.
fn is_address(name: &str, cx: &Context<'_>) -> bool {
    name.starts_with(REPLY_TO) && cx.shared.session.is_reply_address(name)
}
