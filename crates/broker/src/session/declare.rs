//! Declaring, binding and deleting on behalf of a session: what each operation checks (RabbitMQ's `rabbit_channel`), then
//! one question to the catalog.

use crate::broker::Broker;
use crate::clients::outbox::{ChannelId, Question, Ticket};
use crate::clients::pressure::{Pressure, Reason, Release};
use crate::node::ends::Reply;
use crate::queues::{Handle, Status};
use crate::session::Session;
use crate::stats::Churn;
use crate::topology::{Answered, Asker, Decision, Deletion, Done, no_answer};
use catalog::{
    Answer, DeclareExchange, DeclareQueue, Destination, ObjectKind, Refusal, Request, Verb, View,
    WantedBinding,
};
use model::QueueId;
use model::table::{Table, Value};
use queue::{Answer as QueueAnswer, Request as QueueRequest};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// From so many bindings on, a queue is deleted in parts, apart from the connection's thread.
const MANY_BINDINGS: usize = 256;

/// So many times as long as a part of a deletion took, those who publish and bind have the processor and the catalog to
/// themselves.
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
}

/// How far the deletion of a queue has come.
#[derive(Debug)]
pub enum Deleting {
    /// It is done, or there is no such queue.
    Done(QueueDeleted),
    /// Somebody was asked: [`Session::go_on_deleting`] takes the next step with the answer.
    Asked(QueueDeletion),
}

/// The deletion of a queue whose next step waits for an answer: the queue is asked first whether it may go, then the
/// catalog deletes it. The queue itself ends when that has been decided, so nothing is lost if the client goes away in
/// between.
pub struct QueueDeletion {
    known: Arc<catalog::Queue>,
    question: Question,
    /// What the catalog was asked, once the queue has agreed.
    decision: Option<Arc<DeletionDecision>>,
}

/// What the catalog says to a deletion, if that comes later than the question.
struct DeletionDecision {
    /// Ready messages that go with the queue.
    ready: u64,
    answered: Mutex<Option<Answered>>,
}

impl DeletionDecision {
    fn of(answered: Answered, ready: u64) -> Result<Deleting, Refusal> {
        let durable = answered?.durable;
        Ok(Deleting::Done(QueueDeleted { ready, durable }))
    }

    fn answered(&self) -> MutexGuard<'_, Option<Answered>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for QueueDeletion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "deletion of {} ({:?})", self.known.name, self.question)
    }
}

impl QueueDeletion {
    /// What was asked.
    pub fn question(&self) -> Question {
        self.question
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
        let mut declare = declare;
        if declare.exclusive && !passive {
            self.wanted_exclusive.store(true, Ordering::Release);
        }
        let defaults = self.broker().options().queue_defaults;
        declare.complete(self.broker().view().vhost(self.vhost()).map(|it| &**it), defaults);
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
        let done = done.inspect_err(|refusal| {
            self.say_why_locked(&named, refusal);
            self.keep_name(unique);
        })?;
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
            Some(Handle::Elsewhere(..) | Handle::Shared(_)) => {
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
            // It was declared, and has ended since.
            None if self.broker().view().queue(self.vhost(), &declared.name).is_none() => Ok(declared),
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

    /// Begins to delete a queue: [`Session::go_on_deleting`] goes on when the queue has answered.
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
        self.check(Verb::Configure, ObjectKind::Queue, name)?;
        let view = self.broker().view();
        let Some(known) = view.queue(self.vhost(), name) else {
            return Ok(Deleting::Done(QueueDeleted::default()));
        };
        let may = known.check_exclusive(self.connection());
        may.inspect_err(|refusal| self.say_why_locked(name, refusal))?;
        let Some(handle) = self.broker().registry().get(known.id) else {
            return Ok(Deleting::Done(QueueDeleted::default()));
        };
        self.check_owner(&view, &handle)?;
        let reply = self.reply(channel, false);
        let question = reply.question;
        let request = QueueRequest::MayRetire {
            if_unused,
            if_empty,
            reply,
        };
        handle.ask(question, request);
        Ok(Deleting::Asked(QueueDeletion {
            known: known.clone(),
            question,
            decision: None,
        }))
    }

    /// Takes the next step of a deletion with the answer to what was asked last.
    ///
    /// # Errors
    /// The queue is in use or not empty, if that was asked, or cannot be reached; or the catalog refuses.
    pub fn go_on_deleting(
        &self,
        channel: ChannelId,
        deletion: QueueDeletion,
        answer: Option<QueueAnswer>,
    ) -> Result<Deleting, Refusal> {
        if let Some(decision) = &deletion.decision {
            let answered = decision.answered().take();
            return DeletionDecision::of(answered.unwrap_or_else(|| Err(no_answer())), decision.ready);
        }
        let known = &deletion.known;
        let (queue, vhost) = (known.name.to_string(), self.vhost().to_string());
        let ready = match answer {
            Some(QueueAnswer::MayRetire(ready)) => ready,
            Some(QueueAnswer::InUse) => return Err(Refusal::QueueInUse { queue, vhost }),
            Some(QueueAnswer::NotEmpty) => return Err(Refusal::QueueNotEmpty { queue, vhost }),
            Some(_) => 0,
            None => return Err(self.unreachable(&queue)),
        };
        self.delete_agreed(channel, deletion, ready)
    }

    /// Has the catalog delete a queue that has agreed. One with many bindings goes by the pager, some of it at a time,
    /// since that takes longer than a connection's thread should be busy with it.
    fn delete_agreed(
        &self,
        channel: ChannelId,
        deletion: QueueDeletion,
        ready: u64,
    ) -> Result<Deleting, Refusal> {
        let (id, asker) = (deletion.known.id, self.asker(channel));
        let reply = self.reply(channel, false);
        let question = reply.question;
        let decision = Arc::new(DeletionDecision {
            ready,
            answered: Mutex::default(),
        });
        let kept = decision.clone();
        let tell = move |answered| {
            *kept.answered() = Some(answered);
            reply.outbox.send(reply.answered(None));
        };
        if has_many_bindings(&self.broker().view(), &deletion.known) {
            self.broker()
                .delete_part_by_part(Deletion::of_queue(id, asker, tell));
        } else {
            let topology = self.broker().topology();
            match topology.decide(Some(asker), Request::DeleteQueue { id }) {
                Decision::Made(answered) => return DeletionDecision::of(answered, ready),
                awaited => awaited.then(tell),
            }
        }
        Ok(Deleting::Asked(QueueDeletion {
            question,
            decision: Some(decision),
            ..deletion
        }))
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
        let released = gone.clone();
        let deletion = Deletion::of_exclusive_queues(self.connection(), move |_| released.release());
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
        if let Some(answered) = self.undecided().resume(channel) {
            return answered;
        }
        let asker = Some(self.asker(channel));
        let decision = self.broker().topology().decide_if(asker, permit, request);
        self.undecided().answer(self.outbox(), channel, decision)
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
    /// Has a queue that has many bindings deleted, or very many queues, some of these at a time. What is left when the
    /// node closes is left to the next start.
    fn delete_part_by_part(self: &Arc<Self>, deletion: Deletion) {
        let broker = Arc::downgrade(self);
        self.node().pager.write(move |files| {
            let Some(broker) = broker.upgrade() else { return };
            if deletion.unused_queue().is_some_and(|id| broker.is_in_use(id)) {
                return;
            }
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

    /// Nobody uses this queue any more. `then` is called once it is gone, or nobody can decide that for now: then it is asked for
    /// until somebody can, or somebody uses it again.
    pub(crate) fn delete_unused_queue(self: &Arc<Self>, id: QueueId, then: Box<dyn FnOnce() + Send>) {
        if let Some(left) = self.delete_a_part(Deletion::of_unused_queue(id, then)) {
            self.delete_part_by_part(left);
        }
    }

    /// A queue of this node has consumers, or another node leads it by now, which knows.
    fn is_in_use(&self, id: QueueId) -> bool {
        let queue = self.queues().copy(id);
        queue.is_some_and(|queue| !queue.is_led_here() || queue.status().consumers > 0)
    }
}

fn has_many_bindings(view: &View, queue: &catalog::Queue) -> bool {
    let destination = Destination::Queue(queue.name.clone());
    view.vhost(&queue.vhost)
        .is_some_and(|vhost| vhost.bindings_to(&destination).nth(MANY_BINDINGS - 1).is_some())
}
