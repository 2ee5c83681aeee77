//! Which method goes where.

use super::asked::Asked;
use super::settle::Verdict;
use super::{Channel, Confirms, Context};
use broker::{QueueQuestion, Ticket};
use protocol::amqp::method::{
    AccessRequestOk, BasicAck, BasicNack, BasicQos, BasicQosOk, BasicRecover, BasicRecoverAsync,
    BasicRecoverOk, BasicReject, ChannelFlow, ChannelFlowOk, ChannelOpen, ConfirmSelectOk,
};
use protocol::amqp::{Arguments, Exception, Method, MethodId, ReplyCode};

/// What the connection does after a method.
#[derive(Debug)]
pub enum Next {
    /// Takes the next frame.
    Go,
    /// Closes the channel, as its client asked.
    Close,
    /// It was done in part: others have their turn, then the same method is to be taken again.
    Again,
    /// Waits for an answer before it takes another frame; mostly it is there already.
    Wait(QueueQuestion, Asked),
}

/// What became of a method.
pub(super) type Answer = Result<Next, Exception>;

impl Channel {
    /// Takes a method without content. The connection has flushed everything before, unless
    /// [`Channel::is_settling`].
    ///
    /// # Errors
    /// What the client is told by closing the channel, or the connection.
    pub fn method(&mut self, method: &Method<'_>, cx: &mut Context<'_>) -> Answer {
        match method {
            Method::BasicAck(it) => self.settled(it.delivery_tag, it.multiple, Verdict::Accept, BasicAck::ID),
            Method::BasicNack(it) => self.settled(
                it.delivery_tag,
                it.multiple,
                unwanted(it.requeue, Verdict::Requeue),
                BasicNack::ID,
            ),
            Method::BasicReject(it) => self.settled(
                it.delivery_tag,
                false,
                unwanted(it.requeue, Verdict::Return),
                BasicReject::ID,
            ),
            Method::ExchangeDeclare(it) => self.exchange_declare(it, cx),
            Method::ExchangeDelete(it) => self.exchange_delete(it, cx),
            Method::ExchangeBind(it) => self.exchange_bind(it, cx),
            Method::ExchangeUnbind(it) => self.exchange_unbind(it, cx),
            Method::QueueDeclare(it) => self.queue_declare(it, cx),
            Method::QueueBind(it) => self.queue_bind(it, cx),
            Method::QueueUnbind(it) => self.queue_unbind(it, cx),
            Method::QueuePurge(it) => self.queue_purge(it, cx),
            Method::QueueDelete(it) => self.queue_delete(it, cx),
            Method::BasicConsume(it) => self.basic_consume(it, cx),
            Method::BasicCancel(it) => self.basic_cancel(it, cx),
            Method::BasicGet(it) => self.basic_get(it, cx),
            Method::BasicQos(it) => self.basic_qos(it, cx),
            _ => self.plain_method(method, cx),
        }
    }

    /// True for the methods that are collected and handed on once per read.
    pub fn is_settling(method: &Method<'_>) -> bool {
        matches!(
            method,
            Method::BasicAck(_) | Method::BasicNack(_) | Method::BasicReject(_)
        )
    }

    fn plain_method(&mut self, method: &Method<'_>, cx: &mut Context<'_>) -> Answer {
        match method {
            Method::BasicRecover(it) => self.basic_recover(it.requeue, BasicRecover::ID, |channel| {
                channel.write(cx.out, &BasicRecoverOk {});
            }),
            Method::BasicRecoverAsync(it) => self.basic_recover(it.requeue, BasicRecoverAsync::ID, |_| ()),
            Method::ConfirmSelect(it) => {
                self.may_confirm()?;
                self.confirms.get_or_insert_with(|| Box::new(Confirms::default()));
                self.shown.confirms.set(1);
                self.answer(cx, it.no_wait, None, &ConfirmSelectOk {})
            }
            Method::ChannelFlow(it) if it.active => {
                self.answer(cx, false, None, &ChannelFlowOk { active: true })
            }
            Method::ChannelFlow(_) => not_implemented("active=false", ChannelFlow::ID),
            // A relic of AMQP 0-8: every ticket is the first.
            Method::AccessRequest(_) => self.answer(cx, false, None, &AccessRequestOk { ticket: 1 }),
            Method::ChannelClose(_) => Ok(Next::Close),
            Method::ChannelOpen(_) => Err(Exception::new(
                ReplyCode::ChannelError,
                "second 'channel.open' seen",
                ChannelOpen::ID,
            )),
            Method::TxSelect(_) => self.tx_select(cx),
            Method::TxCommit(_) => self.tx_commit(cx),
            Method::TxRollback(_) => self.tx_rollback(cx),
            other => Err(Exception::new(
                ReplyCode::CommandInvalid,
                "unimplemented method",
                other.id(),
            )),
        }
    }

    fn settled(&mut self, tag: u64, multiple: bool, verdict: Verdict, id: MethodId) -> Answer {
        self.settle(tag, multiple, verdict, id)?;
        Ok(Next::Go)
    }

    fn basic_recover(&mut self, requeue: bool, id: MethodId, reply: impl FnOnce(&mut Self)) -> Answer {
        if !requeue {
            return not_implemented("requeue=false", id);
        }
        if !self.recover() {
            return Ok(Next::Again);
        }
        reply(self);
        Ok(Next::Go)
    }

    fn basic_qos(&mut self, it: &BasicQos, cx: &mut Context<'_>) -> Answer {
        if it.prefetch_size != 0 {
            let text = format!("prefetch_size!=0 ({})", it.prefetch_size);
            return Err(Exception::new(ReplyCode::NotImplemented, text, BasicQos::ID));
        }
        self.renew_deadlines(cx.shared.now);
        if !it.global {
            self.prefetch.each = it.prefetch_count;
            self.shown.prefetch.set(it.prefetch_count.into());
        } else {
            self.shown.global_prefetch.set(it.prefetch_count.into());
            let pause = self.prefetch.limit_channel(it.prefetch_count);
            self.limit_consumers();
            if pause {
                self.pause_consumers();
            }
            self.prefetch.resume(&self.consumers);
        }
        self.answer(cx, false, None, &BasicQosOk {})
    }

    /// Replies, unless the client does not wait for it; then nothing waits for the log either.
    pub(super) fn answer<'m, A: Arguments<'m>>(
        &mut self,
        cx: &mut Context<'_>,
        no_wait: bool,
        durable: Option<Ticket>,
        reply: &A,
    ) -> Answer {
        if !no_wait {
            self.reply(cx.out, durable, reply);
        }
        Ok(Next::Go)
    }
}

/// RabbitMQ's quorum queues tell the two methods apart: what was rejected has failed, what was given back has not.
fn unwanted(requeue: bool, requeued: Verdict) -> Verdict {
    match requeue {
        true => requeued,
        false => Verdict::Reject,
    }
}

fn not_implemented(text: &'static str, method: MethodId) -> Answer {
    Err(Exception::new(ReplyCode::NotImplemented, text, method))
}
