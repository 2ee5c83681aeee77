//! `exchange.*` and `queue.*`.

use super::asked::Asked;
use super::methods::{Answer, Next};
use super::{Channel, Context};
use broker::{Binding, DeclareExchange, DeclareQueue, Deleting, Done, QueueDeclared, Refusal};
use model::table::Table;
use protocol::amqp::method::{
    ExchangeBind, ExchangeBindOk, ExchangeDeclare, ExchangeDeclareOk, ExchangeDelete, ExchangeDeleteOk,
    ExchangeUnbind, ExchangeUnbindOk, QueueBind, QueueBindOk, QueueDeclare, QueueDeclareOk, QueueDelete,
    QueueDeleteOk, QueuePurge, QueueUnbind, QueueUnbindOk,
};
use protocol::amqp::{Arguments, Exception, MethodId, RawTable, ReplyCode};

impl Channel {
    pub(super) fn exchange_declare(&mut self, it: &ExchangeDeclare<'_>, cx: &mut Context<'_>) -> Answer {
        let declare = DeclareExchange {
            name: without_line_ends(it.exchange),
            kind: it.kind.to_owned(),
            passive: it.passive,
            durable: it.durable,
            auto_delete: it.auto_delete,
            internal: it.internal,
            arguments: table(it.arguments, cx, ExchangeDeclare::ID)?,
            ..DeclareExchange::default()
        };
        let done = cx
            .shared
            .session
            .declare_exchange(self.id, declare)
            .map_err(|refusal| Self::refused::<ExchangeDeclare<'_>>(&refusal))?;
        self.answer(cx, it.no_wait, done.durable, &ExchangeDeclareOk {})
    }

    pub(super) fn exchange_delete(&mut self, it: &ExchangeDelete<'_>, cx: &mut Context<'_>) -> Answer {
        let done = cx
            .shared
            .session
            .delete_exchange(self.id, &without_line_ends(it.exchange), it.if_unused)
            .map_err(|refusal| Self::refused::<ExchangeDelete<'_>>(&refusal))?;
        self.answer(cx, it.no_wait, done.durable, &ExchangeDeleteOk {})
    }

    pub(super) fn exchange_bind(&mut self, it: &ExchangeBind<'_>, cx: &mut Context<'_>) -> Answer {
        let binding = Binding {
            source: it.source,
            destination: it.destination,
            routing_key: it.routing_key.as_bytes(),
            arguments: table(it.arguments, cx, ExchangeBind::ID)?,
        };
        let done = cx
            .shared
            .session
            .bind_exchange(self.id, binding)
            .map_err(|refusal| Self::refused::<ExchangeBind<'_>>(&refusal))?;
        self.answer(cx, it.no_wait, done.durable, &ExchangeBindOk {})
    }

    pub(super) fn exchange_unbind(&mut self, it: &ExchangeUnbind<'_>, cx: &mut Context<'_>) -> Answer {
        let binding = Binding {
            source: it.source,
            destination: it.destination,
            routing_key: it.routing_key.as_bytes(),
            arguments: table(it.arguments, cx, ExchangeUnbind::ID)?,
        };
        let done = cx
            .shared
            .session
            .unbind_exchange(self.id, binding)
            .map_err(|refusal| Self::refused::<ExchangeUnbind<'_>>(&refusal))?;
        self.answer(cx, it.no_wait, done.durable, &ExchangeUnbindOk {})
    }

    pub(super) fn queue_declare(&mut self, it: &QueueDeclare<'_>, cx: &mut Context<'_>) -> Answer {
        if let Some(answer) = self.declare_replies(it.queue, it.no_wait, cx) {
            return answer;
        }
        let declare = DeclareQueue {
            name: without_line_ends(it.queue),
            passive: it.passive,
            durable: it.durable,
            exclusive: it.exclusive,
            auto_delete: it.auto_delete,
            arguments: table(it.arguments, cx, QueueDeclare::ID)?,
            ..DeclareQueue::default()
        };
        let done = cx
            .shared
            .session
            .declare_queue(self.id, declare)
            .map_err(|refusal| Self::refused::<QueueDeclare<'_>>(&refusal))?;
        let no_wait = it.no_wait;
        match done.value.question {
            Some(question) => Ok(Next::Wait(question, Asked::Declare { done, no_wait })),
            None => self.queue_declared(done, no_wait, cx),
        }
    }

    pub(super) fn queue_declared(
        &mut self,
        done: Done<QueueDeclared>,
        no_wait: bool,
        cx: &mut Context<'_>,
    ) -> Answer {
        let declared = done.value;
        let reply = QueueDeclareOk {
            queue: &declared.name,
            message_count: count(declared.ready),
            consumer_count: count(declared.consumers),
        };
        let answer = self.answer(cx, no_wait, done.durable, &reply);
        self.last_queue = declared.name;
        answer
    }

    pub(super) fn queue_bind(&mut self, it: &QueueBind<'_>, cx: &mut Context<'_>) -> Answer {
        let (queue, routing_key) = self.queue_and_key(it.queue, it.routing_key, QueueBind::ID)?;
        Self::refuse_address(&queue, QueueBind::ID, cx)?;
        let binding = Binding {
            source: it.exchange,
            destination: &queue,
            routing_key: routing_key.as_bytes(),
            arguments: table(it.arguments, cx, QueueBind::ID)?,
        };
        let done = cx
            .shared
            .session
            .bind_queue(self.id, binding)
            .map_err(|refusal| Self::refused::<QueueBind<'_>>(&refusal))?;
        self.answer(cx, it.no_wait, done.durable, &QueueBindOk {})
    }

    pub(super) fn queue_unbind(&mut self, it: &QueueUnbind<'_>, cx: &mut Context<'_>) -> Answer {
        let (queue, routing_key) = self.queue_and_key(it.queue, it.routing_key, QueueUnbind::ID)?;
        Self::refuse_address(&queue, QueueUnbind::ID, cx)?;
        let binding = Binding {
            source: it.exchange,
            destination: &queue,
            routing_key: routing_key.as_bytes(),
            arguments: table(it.arguments, cx, QueueUnbind::ID)?,
        };
        let done = cx
            .shared
            .session
            .unbind_queue(self.id, binding)
            .map_err(|refusal| Self::refused::<QueueUnbind<'_>>(&refusal))?;
        self.answer(cx, false, done.durable, &QueueUnbindOk {})
    }

    pub(super) fn queue_purge(&mut self, it: &QueuePurge<'_>, cx: &mut Context<'_>) -> Answer {
        let queue = self.queue_name(&without_line_ends(it.queue), QueuePurge::ID)?;
        if let Some(answer) = self.purge_replies(&queue, it.no_wait, cx) {
            return answer;
        }
        let asked = cx.shared.session.purge_queue(self.id, &queue);
        let question = asked.map_err(|refusal| Self::refused::<QueuePurge<'_>>(&refusal))?;
        let no_wait = it.no_wait;
        Ok(Next::Wait(question, Asked::Purge { queue, no_wait }))
    }

    pub(super) fn queue_delete(&mut self, it: &QueueDelete<'_>, cx: &mut Context<'_>) -> Answer {
        let queue = self.queue_name(&without_line_ends(it.queue), QueueDelete::ID)?;
        let session = &cx.shared.session;
        let deleting = session.delete_queue(self.id, &queue, it.if_unused, it.if_empty);
        self.deleting(deleting, it.no_wait, cx)
    }

    /// A deletion has come a step further.
    pub(super) fn deleting(
        &mut self,
        deleting: Result<Deleting, Refusal>,
        no_wait: bool,
        cx: &mut Context<'_>,
    ) -> Answer {
        match deleting.map_err(|refusal| Self::refused::<QueueDelete<'_>>(&refusal))? {
            Deleting::Asked(deletion) => {
                let question = deletion.question();
                Ok(Next::Wait(question, Asked::Delete { deletion, no_wait }))
            }
            Deleting::Done(deleted) => {
                let message_count = count(deleted.ready);
                self.answer(cx, no_wait, deleted.durable, &QueueDeleteOk { message_count })
            }
        }
    }

    /// An empty name stands for the queue that was declared last on this channel.
    ///
    /// # Errors
    /// 404 if none was.
    pub(super) fn queue_name(&self, name: &str, method: MethodId) -> Result<String, Exception> {
        match (name, self.last_queue.as_str()) {
            ("", "") => Err(Exception::new(
                ReplyCode::NotFound,
                "no previously declared queue",
                method,
            )),
            ("", last) => Ok(last.to_owned()),
            (name, _) => Ok(name.to_owned()),
        }
    }

    /// If both are empty, the queue's name is the routing key too.
    fn queue_and_key(&self, name: &str, key: &str, method: MethodId) -> Result<(String, String), Exception> {
        let queue = self.queue_name(name, method)?;
        let key = if name.is_empty() && key.is_empty() {
            &queue
        } else {
            key
        };
        let key = key.to_owned();
        Ok((queue, key))
    }
}

/// RabbitMQ cuts line ends out of the names of objects (`rabbit_channel:strip_cr_lf`).
fn without_line_ends(name: &str) -> String {
    name.replace(['\r', '\n'], "")
}

/// Counts are 32 bits wide on the wire.
pub(super) fn count(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Decodes a method's arguments.
///
/// # Errors
/// 502, which closes the connection, if they are malformed or beyond the limits.
pub(super) fn table(raw: RawTable<'_>, cx: &Context<'_>, method: MethodId) -> Result<Table, Exception> {
    raw.decode(&cx.shared.limits)
        .map_err(|error| Exception::new(ReplyCode::SyntaxError, error.to_string(), method))
}
