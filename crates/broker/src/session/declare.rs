//! Declaring, binding and deleting on behalf of a session: what each operation checks (RabbitMQ's `rabbit_channel`), then
//! one question to the catalog.

use crate::broker::Broker;
use crate::clients::outbox::{ChannelId, Question, Ticket};
use crate::clients::pressure::{Pressure, Reason, Release};
use crate::node::ends::Reply;
use crate::queues::{Handle, Status};
use crate::session::Session;
use crate::stats::Churn;
use crate::topology::{Answered, Asker, Decision, Deletion, Done, Doomed, no_answer};
use catalog::{
    Answer, DeclareExchange, DeclareQueue, Destination, ObjectKind, Refusal, Request, Verb, View,
    WantedBinding,
};
use model::QueueId;
use model::table::{Table, Value};
use queue::{Answer as QueueAnswer, Request as QueueRequest};
use std::sync::Arc;
use std::task::Waker;

/// From so many bindings on, a queue is deleted in parts, apart from the connection's thread.
const MANY_BINDINGS: usize = 256;

/// So many times as long as a part of a deletion took, those who publish and bind have the processor and the catalog to themselves.
const REST: u32 = 3;

/// What `queue.declare-ok` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDeclared {
    pub name: String,
    /// Ready messages.
    pub ready: u64,
    pub consumers: u64,
    /// The queue is on another node, and was asked for these numbers: see [`Session::declared`].
    pub question: Option<Question>,
}

/// What became of `queue.delete`.
#[derive(Clone, Debug, Default)]
pub struct QueueDeleted {
    /// Ready messages that went with it.
    pub ready: u64,
    /// What the reply waits for.
    pub durable: Option<Ticket>,
    /// The queue has many bindings and is still there: nothing more is taken from this client until it is released, so that
    /// its next request does not find the queue.
    pub pause: Option<Pressure>,
}

/// How far the deletion of a queue has come.
#[derive(Debug)]
pub enum Deleting {
    /// It is done, or there is no such queue.
    Done(QueueDeleted),
    /// The queue was asked.
    Asked(Retiring),
}

/// A queue that was asked whether it may be deleted.
pub struct Retiring {
    known: Arc<catalog::Queue>,
    question: Question,
    broker: Arc<Broker>,
    asker: Asker,
}

impl std::fmt::Debug for Retiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "deletion of {} ({:?})", self.known.name, self.question)
    }
}

impl Retiring {
    /// What it was asked.
    pub fn question(&self) -> Question {
        self.question
    }

    /// Who asked is gone. A queue that has given up its messages goes all the same: it would confirm what is published to it and
    /// keep nothing.
    pub fn abandon(self, answer: Option<QueueAnswer>) {
        if let Some(QueueAnswer::Retired(_)) = answer {
            self.delete_in_parts();
        }
    }

    /// Has the pager delete the queue, some of it at a time, since that takes longer than a connection's thread should be busy with
    /// it. Whoever must not go on before it is gone waits for the pressure's end.
    fn delete_in_parts(self) -> (Ticket, Pressure) {
        let (ticket, gone) = (Ticket(self.broker.node().number()), Arc::<Release>::default());
        let doomed = Doomed::Queue {
            id: self.known.id,
            asker: self.asker,
            ticket,
            is_bare: false,
        };
        self.broker
            .delete_part_by_part(Deletion::new(doomed, gone.clone()));
        (ticket, Pressure::until_release(Reason::Catalog, gone))
    }
}

/// What bind and unbind say.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding<'a> {
    /// The exchange that messages come from.
    pub source: &'a str,
    /// The queue or exchange that they go to.
    pub destination: &'a str,
    pub routing_key: &'a [u8],
    pub arguments: Table,
}

impl Session {
    /// Declares an exchange, or with `passive` asks whether it is there.
    ///
    /// # Errors
    /// Refused by permission, or by the catalog: see RabbitMQ's `exchange.declare`.
    pub fn declare_exchange(
        &self,
        channel: ChannelId,
        declare: DeclareExchange,
    ) -> Result<Done<()>, Refusal> {
        let (named, passive) = (declare.name.clone(), declare.passive);
        let alternate = declare
            .arguments
            .get("alternate-exchange")
            .and_then(Value::as_str);
        let alternate = alternate.filter(|_| !passive).map(str::to_owned);
        let permit = || {
            self.check_declare(ObjectKind::Exchange, &named, passive)?;
            if !passive {
                let (limits, view) = (&self.broker().options().node_limits, self.broker().view());
                limits.permit_exchange(&view, self.vhost(), &named)?;
            }
            // RabbitMQ asks for these two only when it makes the exchange.
            let known = self.broker().view().exchange(self.vhost(), &named).is_some();
            let Some(alternate) = alternate.as_ref().filter(|_| !known) else {
                return Ok(());
            };
            self.check(Verb::Read, ObjectKind::Exchange, &named)?;
            self.check(Verb::Write, ObjectKind::Exchange, alternate)
        };
        let (vhost, by) = (self.vhost().into(), self.connection().incarnation);
        self.decide_if(channel, permit, Request::DeclareExchange { vhost, declare, by })
            .map(|done| done.map(|_| ()))
    }

    /// Deletes an exchange; done if there is none.
    ///
    /// # Errors
    /// No permission, a predeclared exchange, or one in use.
    pub fn delete_exchange(
        &self,
        channel: ChannelId,
        name: &str,
        if_unused: bool,
    ) -> Result<Done<()>, Refusal> {
        let permit = || self.check(Verb::Configure, ObjectKind::Exchange, name);
        let (vhost, name) = (self.vhost().into(), name.to_string());
        let request = Request::DeleteExchange {
            vhost,
            name,
            if_unused,
        };
        self.decide_if(channel, permit, request)
            .map(|done| done.map(|_| ()))
    }

    /// Binds a queue to an exchange; done if it is bound so.
    ///
    /// # Errors
    /// No permission (write on the queue, read on the exchange), or one of both is missing.
    pub fn bind_queue(&self, channel: ChannelId, binding: Binding<'_>) -> Result<Done<()>, Refusal> {
        self.bind(channel, binding, ObjectKind::Queue, true)
    }

    /// Undoes [`Session::bind_queue`]; done if it is not bound so.
    ///
    /// # Errors
    /// As binding.
    pub fn unbind_queue(&self, channel: ChannelId, binding: Binding<'_>) -> Result<Done<()>, Refusal> {
        self.bind(channel, binding, ObjectKind::Queue, false)
    }

    /// Binds an exchange to another.
    ///
    /// # Errors
    /// As [`Session::bind_queue`].
    pub fn bind_exchange(&self, channel: ChannelId, binding: Binding<'_>) -> Result<Done<()>, Refusal> {
        self.bind(channel, binding, ObjectKind::Exchange, true)
    }

    /// Undoes [`Session::bind_exchange`].
    ///
    /// # Errors
    /// As [`Session::bind_queue`].
    pub fn unbind_exchange(&self, channel: ChannelId, binding: Binding<'_>) -> Result<Done<()>, Refusal> {
        self.bind(channel, binding, ObjectKind::Exchange, false)
    }

    /// Declares a queue, or with `passive` asks how it is.
    ///
    /// # Errors
    /// Refused by permission, or by the catalog: see RabbitMQ's `queue.declare`.
    pub fn declare_queue(
        &self,
        channel: ChannelId,
        declare: DeclareQueue,
    ) -> Result<Done<QueueDeclared>, Refusal> {
        // RabbitMQ makes the server's name first and checks the permission on that; a pattern that lets nobody configure
        // `amq.gen-…` refuses server-named queues.
        let unique = self.make_up()?;
        let made_up = declare.name.is_empty().then(|| catalog::server_name(&unique));
        let named = made_up.unwrap_or_else(|| declare.name.clone());
        let dead_letter = declare
            .arguments
            .get("x-dead-letter-exchange")
            .and_then(Value::as_str);
        let dead_letter = dead_letter.map(ToString::to_string);
        let passive = declare.passive;
        let permit = || {
            self.check_declare(ObjectKind::Queue, &named, passive)?;
            if !passive {
                let (limits, view) = (&self.broker().options().node_limits, self.broker().view());
                limits.permit_queue(&view, self.vhost(), &named)?;
            }
            self.check_dead_letters(&named, dead_letter.as_deref().filter(|_| !passive))
        };
        let (vhost, by) = (self.vhost().into(), self.connection());
        let request = Request::DeclareQueue {
            vhost,
            declare,
            by,
            unique,
        };
        let done = self.decide_if(channel, permit, request);
        let done = done.inspect_err(|_| self.keep_name(unique))?;
        Churn::more(&self.broker().stats().churn().queues_declared);
        let Answer::Queue(queue) = &done.value else {
            return Err(no_answer());
        };
        let handle = self.broker().registry().get(queue.id);
        if let Some(handle) = &handle {
            self.check_owner(&self.broker().view(), handle)?;
        }
        let expires = || self.broker().view().settings(queue).expires_ms.is_some();
        let (status, question) = match &handle {
            Some(Handle::Here(here)) => {
                if expires() {
                    here.submit(QueueRequest::Use { reply: None });
                }
                (here.status(), None)
            }
            Some(Handle::Elsewhere(..)) => {
                (Status::default(), handle.map(|it| self.ask_numbers(channel, &it)))
            }
            Some(Handle::WithoutOwner(_)) | None => (Status::default(), None),
        };
        let value = QueueDeclared {
            name: queue.name.to_string(),
            ready: status.ready,
            consumers: status.consumers,
            question,
        };
        Ok(Done {
            value,
            durable: done.durable,
        })
    }

    fn ask_numbers(&self, channel: ChannelId, handle: &Handle) -> Question {
        let reply = self.reply(channel, false);
        let question = reply.question;
        handle.ask(question, QueueRequest::Use { reply: Some(reply) });
        question
    }

    /// A queue of another node that was declared has answered.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub fn declared(
        &self,
        declared: QueueDeclared,
        answer: Option<QueueAnswer>,
    ) -> Result<QueueDeclared, Refusal> {
        match answer {
            Some(QueueAnswer::Stands { ready, consumers }) => Ok(QueueDeclared {
                ready,
                consumers,
                ..declared
            }),
            Some(_) => Ok(declared),
            None => Err(self.unreachable(&declared.name)),
        }
    }

    /// A question of this session's.
    pub(crate) fn reply(&self, channel: ChannelId, no_ack: bool) -> Reply {
        Reply {
            outbox: self.outbox().clone(),
            channel,
            question: Question(self.broker().node().number()),
            no_ack,
        }
    }

    /// Begins to delete a queue: [`Session::retired`] goes on when the queue has answered.
    ///
    /// # Errors
    /// No permission, or another connection's exclusive queue.
    pub fn delete_queue(
        &self,
        channel: ChannelId,
        name: &str,
        if_unused: bool,
        if_empty: bool,
    ) -> Result<Deleting, Refusal> {
        if let Some((ready, answered)) = self.undecided().resume(channel) {
            let deleted = |done: Done<Answer>| QueueDeleted {
                ready,
                durable: done.durable,
                pause: None,
            };
            return answered.map(|done| Deleting::Done(deleted(done)));
        }
        self.check(Verb::Configure, ObjectKind::Queue, name)?;
        let view = self.broker().view();
        let Some(known) = view.queue(self.vhost(), name) else {
            return Ok(Deleting::Done(QueueDeleted::default()));
        };
        known.check_exclusive(self.connection())?;
        let Some(handle) = self.broker().registry().get(known.id) else {
            return Ok(Deleting::Done(QueueDeleted::default()));
        };
        self.check_owner(&view, &handle)?;
        let reply = self.reply(channel, false);
        let question = reply.question;
        let request = QueueRequest::Retire {
            if_unused,
            if_empty,
            reply,
        };
        handle.ask(question, request);
        let known = known.clone();
        Ok(Deleting::Asked(Retiring {
            known,
            question,
            broker: self.broker().clone(),
            asker: self.asker(channel),
        }))
    }

    /// Goes on with the deletion of a queue that has answered.
    ///
    /// # Errors
    /// The queue is in use or not empty, if that was asked, or cannot be reached.
    pub fn retired(
        &self,
        channel: ChannelId,
        retiring: Retiring,
        answer: Option<QueueAnswer>,
    ) -> Result<QueueDeleted, Refusal> {
        let known = &retiring.known;
        let (queue, vhost) = (known.name.to_string(), self.vhost().to_string());
        let ready = match answer {
            Some(QueueAnswer::Retired(count)) => count,
            Some(QueueAnswer::InUse) => return Err(Refusal::QueueInUse { queue, vhost }),
            Some(QueueAnswer::NotEmpty) => return Err(Refusal::QueueNotEmpty { queue, vhost }),
            Some(_) => 0,
            None => return Err(self.unreachable(&queue)),
        };
        if has_many_bindings(&self.broker().view(), known) {
            let (ticket, pause) = retiring.delete_in_parts();
            return Ok(QueueDeleted {
                ready,
                durable: Some(ticket),
                pause: Some(pause),
            });
        }
        let request = Request::DeleteQueue { id: known.id };
        let topology = self.broker().topology();
        let decision = topology.decide(Some(retiring.asker), request);
        self.answer_to(channel, ready, decision).map(|done| QueueDeleted {
            ready,
            durable: done.durable,
            pause: None,
        })
    }

    fn asker(&self, channel: ChannelId) -> Asker {
        Asker {
            outbox: self.outbox().clone(),
            channel,
            user: self.user().name.clone(),
        }
    }

    /// The connection is gone: so are its exclusive queues. If there are very many, the pager deletes them, and it is done when
    /// the pressure ends; until then they are locked for everybody else.
    pub(crate) fn delete_exclusive_queues(&self) -> Option<Pressure> {
        let gone = Arc::<Release>::default();
        let deletion = Deletion::new(Doomed::ExclusiveTo(self.connection()), gone.clone());
        if let Some(left) = self.broker().delete_a_part(deletion) {
            self.broker().delete_part_by_part(left);
        }
        let pressure = Pressure::until_release(Reason::Catalog, gone);
        (!pressure.poll(Waker::noop())).then_some(pressure)
    }

    fn bind(
        &self,
        channel: ChannelId,
        binding: Binding<'_>,
        kind: ObjectKind,
        bind: bool,
    ) -> Result<Done<()>, Refusal> {
        let Binding {
            source,
            destination,
            routing_key,
            ..
        } = binding;
        let permit = || {
            self.check(Verb::Write, kind, destination)?;
            self.check(Verb::Read, ObjectKind::Exchange, source)?;
            let view = self.broker().view();
            let known = view.exchange(self.vhost(), source);
            known.map_or(Ok(()), |source| self.check_key(Verb::Read, source, routing_key))
        };
        let vhost = self.vhost().into();
        let binding = WantedBinding {
            source: binding.source.to_string(),
            destination: match kind {
                ObjectKind::Queue => Destination::Queue(binding.destination.into()),
                ObjectKind::Exchange => Destination::Exchange(binding.destination.into()),
            },
            routing_key: binding.routing_key.to_vec(),
            arguments: binding.arguments,
            by: self.connection(),
        };
        let request = match bind {
            true => Request::Bind { vhost, binding },
            false => Request::Unbind { vhost, binding },
        };
        self.decide_if(channel, permit, request)
            .map(|done| done.map(|_| ()))
    }

    fn decide_if(
        &self,
        channel: ChannelId,
        permit: impl FnOnce() -> Result<(), Refusal>,
        request: Request,
    ) -> Answered {
        if let Some((_, answered)) = self.undecided().resume(channel) {
            return answered;
        }
        let asker = Some(self.asker(channel));
        let decision = self.broker().topology().decide_if(asker, permit, request);
        self.answer_to(channel, 0, decision)
    }

    fn answer_to(&self, channel: ChannelId, ready: u64, decision: Decision) -> Answered {
        self.undecided().answer(self.outbox(), channel, ready, decision)
    }

    /// A new queue with a dead-letter exchange takes messages from itself to there: RabbitMQ asks for `read` on the queue and
    /// `write` on the exchange.
    fn check_dead_letters(&self, queue: &str, exchange: Option<&str>) -> Result<(), Refusal> {
        let view = self.broker().view();
        match exchange.filter(|_| view.queue(self.vhost(), queue).is_none()) {
            None => Ok(()),
            Some(exchange) => self
                .check(Verb::Read, ObjectKind::Queue, queue)
                .and_then(|()| self.check(Verb::Write, ObjectKind::Exchange, exchange)),
        }
    }

    /// A declaration needs `configure`; a passive one any permission at all on the object (RabbitMQ 4.3.1).
    fn check_declare(&self, kind: ObjectKind, name: &str, passive: bool) -> Result<(), Refusal> {
        let configure = self.check(Verb::Configure, kind, name);
        if passive && configure.is_err() {
            let other = self
                .check(Verb::Write, kind, name)
                .or_else(|_| self.check(Verb::Read, kind, name));
            return other.and(Ok(())).or(configure);
        }
        configure
    }
}

impl Broker {
    /// Has a queue that has many bindings deleted, or very many queues, some of these at a time. What is left when the node closes is
    /// left to the next start.
    fn delete_part_by_part(self: &Arc<Self>, deletion: Deletion) {
        let broker = Arc::downgrade(self);
        self.node().pager.write(move |files| {
            let Some(broker) = broker.upgrade() else { return };
            let began = files.world.elapsed();
            if let Some(deletion) = broker.delete_a_part(deletion) {
                // What else is to be written comes between two parts.
                broker.delete_part_by_part(deletion);
                drop(broker);
                files.world.pause((files.world.elapsed() - began) * REST);
            }
        });
    }

    /// Deletes a part of it. Gives back what is left to do, unless another node has yet to answer: then the pager goes on.
    fn delete_a_part(self: &Arc<Self>, deletion: Deletion) -> Option<Deletion> {
        let broker = Arc::downgrade(self);
        let go_on = move |deletion| {
            if let Some(broker) = broker.upgrade() {
                broker.delete_part_by_part(deletion);
            }
        };
        self.topology().delete_a_part(deletion, go_on)
    }

    /// An auto-delete queue lost its last consumer.
    pub(crate) fn delete_unused_queue(&self, id: QueueId) {
        self.topology().delete_queue(id, || ());
    }
}

fn has_many_bindings(view: &View, queue: &catalog::Queue) -> bool {
    let destination = Destination::Queue(queue.name.clone());
    view.vhost(&queue.vhost)
        .is_some_and(|vhost| vhost.bindings_to(&destination).nth(MANY_BINDINGS - 1).is_some())
}
