//! What exists: the catalog machine's host, and the view that everybody else reads.
//!
//! A change is in force at once and its reply is held until it is durable: the caller gets a ticket. Where another node
//! decides, the answer itself comes later (`decision`), after the records that led to it. The front ends' calls are in
//! `declare`.

pub mod caches;
pub(crate) mod decision;
mod deletion;
mod follow;
mod growth;
mod happenings;
mod journal;
mod load;
mod mirrors;
mod places;
pub(crate) mod policies;
mod reconciliation;
mod refounding;
mod replicas;
mod retreat;
mod shared;

pub(crate) use decision::{Answered, Decision, no_answer};
pub use decision::{CatalogLeader, Question};
pub(crate) use deletion::Deletion;
pub(crate) use replicas::{StartingReplica, member_id};
pub use shared::Sharing;

use crate::clients::alarms::AlarmReason;
use crate::clients::outbox::{ChannelId, Outbox, Ticket};
use crate::events::Events;
use crate::groups::catalog::SharedCatalog;
use crate::groups::membership::ENDED_PART;
use crate::node::Node;
use crate::node::host::Host;
use crate::node::journal::LocalJournal;
use crate::options::{Options, Reconciliation};
use crate::queues::{Peers, QueueEvents, Registry, StreamAddresses};
use crate::stats::{self, Change};
use crate::topology::caches::Caches;
use catalog::{
    Answer, Catalog, Effect, Incarnation, Locator, Name, NodeId, PasswordHash, Policies, Record, Refusal,
    Request, View,
};
use follow::Orders;
use growth::Growing;
use happenings::Watch;
use journal::CatalogJournal;
use load::Load;
use mirrors::Mirroring;
use model::{Index, QueueId};
use reconciliation::Reconciling;
use refounding::Refounding;
use retreat::Retreat;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// How many facts a snapshot of the catalog writes at a time: some hundred kilobytes, during which others wait.
const SNAPSHOT_PART: usize = 1000;

/// How many changes that belong together go to the log as one batch.
const BATCH: usize = 1000;

/// What many changes take as one request besides themselves, at the most, in bytes.
const AROUND: usize = 64;

/// A change that was made; if there is a ticket, the reply waits for its `Event::Durable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done<T> {
    /// What the reply says.
    pub value: T,
    /// What the reply waits for.
    pub durable: Option<Ticket>,
}

impl<T> Done<T> {
    /// The same change with another answer.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Done<U> {
        Done {
            value: f(self.value),
            durable: self.durable,
        }
    }
}

/// Who is told when a change is durable.
pub struct Asker {
    pub outbox: Arc<Outbox>,
    pub channel: ChannelId,
    /// As whom they logged in.
    pub user: Arc<str>,
}

/// What a node is told about where queues are to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing {
    /// Where new ones are led first, if nobody else says so.
    pub locator: Locator,
    /// How many members they are to have in the long run.
    pub reconciliation: Reconciliation,
}

/// Who is told of changes.
pub struct Told {
    pub events: Arc<Events>,
    pub stats: Arc<stats::Registry>,
}

/// What exists as everybody else sees it.
type Published = RwLock<Arc<View>>;

/// The catalog's host and the published view.
pub struct Topology {
    host: Mutex<Host<Catalog<u64>, CatalogJournal>>,
    view: Arc<Published>,
    generation: AtomicU64,
    queue_memory: AtomicUsize,
    registry: Arc<Registry>,
    node: Arc<Node>,
    caches: Arc<Caches>,
    /// Who is told what queues cannot do themselves.
    queue_events: Arc<dyn QueueEvents>,
    /// Who is told of changes, from the end of recovery on.
    told: OnceLock<Told>,
    /// Which run of which node this is.
    incarnation: OnceLock<Incarnation>,
    /// The node that decides, if it is another one.
    leader: OnceLock<Arc<dyn CatalogLeader>>,
    /// The catalog of several nodes, if this one is of them.
    shared: OnceLock<Arc<SharedCatalog>>,
    /// The policies by which queues are set, of virtual hosts that have some.
    applied: Mutex<HashMap<Name, Arc<Policies>>>,
    /// The other nodes; nobody, before this node joins them.
    peers: OnceLock<Arc<dyn Peers>>,
    /// Where clients of the stream protocol reach this node, once it listens to them.
    stream_addresses: OnceLock<StreamAddresses>,
    /// Queues whose groups may have other members than they are to have.
    unsettled: Mutex<BTreeSet<QueueId>>,
    /// Queues of this node that are to have members on others.
    growing: Mutex<BTreeMap<QueueId, Growing>>,
    /// Queues that go on with this node's copy alone, while that is written down.
    refounding: Mutex<BTreeMap<QueueId, Refounding>>,
    /// What the node is told about where queues are to be.
    placing: OnceLock<Placing>,
    reconciling: Mutex<Reconciling>,
    mirroring: Mirroring,
    /// Queues of several nodes that are to be this node's own again.
    retreating: Mutex<BTreeMap<QueueId, Arc<Retreat>>>,
    /// Held by whoever finds out that a node can be reached, or not, until the handles say so.
    reaching: Mutex<()>,
}

impl Topology {
    /// A host for a machine that was made new or replayed.
    pub fn new(
        machine: Catalog<u64>,
        journal: LocalJournal,
        queues: (Arc<Registry>, Arc<dyn QueueEvents>),
        node: Arc<Node>,
        caches: Arc<Caches>,
    ) -> Self {
        let (registry, queue_events) = queues;
        let view = Arc::new(machine.view());
        Self {
            generation: AtomicU64::new(view.generation()),
            view: Arc::new(RwLock::new(view.clone())),
            host: Mutex::new(Host::new(machine, CatalogJournal::new(journal, node.clone()))),
            queue_memory: AtomicUsize::new(0),
            applied: Mutex::new(policies::of(&view)),
            incarnation: OnceLock::new(),
            leader: OnceLock::new(),
            shared: OnceLock::new(),
            peers: OnceLock::new(),
            stream_addresses: OnceLock::new(),
            unsettled: Mutex::default(),
            growing: Mutex::default(),
            refounding: Mutex::default(),
            placing: OnceLock::new(),
            reconciling: Mutex::default(),
            mirroring: Mirroring::default(),
            retreating: Mutex::default(),
            reaching: Mutex::default(),
            registry,
            node,
            caches,
            queue_events,
            told: OnceLock::new(),
        }
    }

    /// From now on these are told of changes. Once.
    pub fn tell(&self, told: Told) {
        told.events.look_for_listeners(&self.view());
        let _ = self.told.set(told);
    }

    /// Who is told what happens, if anybody watches.
    fn watched(&self) -> Option<&Events> {
        let told = self.told.get()?;
        Some(&*told.events).filter(|events| events.is_watched())
    }

    /// What exists now; cheap.
    pub fn view(&self) -> Arc<View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Rises whenever the view changes. One load.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// New queues may hold so many bytes in memory (0: the machine's default).
    pub fn set_queue_memory(&self, bytes: usize) {
        self.queue_memory.store(bytes, Ordering::Relaxed);
    }

    /// This is what the node is told about where queues are to be. Once.
    pub(crate) fn place_by(&self, placing: Placing) {
        let _ = self.placing.set(placing);
    }

    fn placing(&self) -> Option<&Placing> {
        self.placing.get()
    }

    /// Has the catalog decide one request. Whoever asks for a channel is told by ticket when a durable change is durable.
    pub fn decide(&self, asker: Option<Asker>, request: Request) -> Decision {
        self.decide_if(asker, || Ok(()), request)
    }

    /// The same for somebody who waits for no ticket.
    pub fn decide_by(&self, actor: &Arc<str>, request: Request) -> Decision {
        self.ask(None, Some(actor.clone()), || Ok(()), request)
    }

    /// The same for a request that `permit` may forbid. What RabbitMQ refuses whoever asks is refused before that.
    pub fn decide_if(
        &self,
        asker: Option<Asker>,
        permit: impl FnOnce() -> Result<(), Refusal>,
        request: Request,
    ) -> Decision {
        let actor = asker.as_ref().map(|asker| asker.user.clone());
        self.ask(asker, actor, permit, request)
    }

    /// Asks whoever decides: this node's catalog, or another node.
    fn ask(
        &self,
        asker: Option<Asker>,
        actor: Option<Arc<str>>,
        permit: impl FnOnce() -> Result<(), Refusal>,
        mut request: Request,
    ) -> Decision {
        let placed = request.check().and_then(|()| permit());
        if let Err(refusal) = placed.and_then(|()| self.place(&mut request, &mut Load::default())) {
            return Decision::Made(Err(refusal));
        }
        let user = actor.clone();
        match self.turn(asker, actor, request) {
            Ok(answered) => Decision::Made(answered),
            Err(request) => self.ask_others(user, request),
        }
    }

    /// Asks those who decide, which is not this node's catalog alone; what changes nothing this node answers by itself, where it
    /// may believe its copy.
    fn ask_others(&self, user: Option<Arc<str>>, request: Request) -> Decision {
        let Some(shared) = self.shared.get().filter(|_| request.is_question()) else {
            return self.ask_leader(user, &request);
        };
        let (question, published) = (Arc::<Question>::default(), self.view.clone());
        let look = move || {
            let view = published.read().unwrap_or_else(PoisonError::into_inner).clone();
            request.look(&view).unwrap_or_else(|| Err(no_answer()))
        };
        let asked = question.clone();
        shared.read(Box::new(look), Box::new(move |said| asked.answer(said)));
        Decision::Awaited(question)
    }

    /// Asks those who decide.
    fn ask_leader(&self, user: Option<Arc<str>>, request: &Request) -> Decision {
        let (Some(leader), Some(request)) = (self.leader.get(), request.encode()) else {
            let reason = "the request is too long for another node".into();
            return Decision::Made(Err(Refusal::Internal { reason }));
        };
        let question = Arc::<Question>::default();
        leader.ask(user, request, question.clone());
        Decision::Awaited(question)
    }

    /// Another node decides from now on. Said once, by whoever assembles the node.
    pub fn follow(&self, leader: Arc<dyn CatalogLeader>) {
        self.leader.get_or_init(|| leader);
    }

    /// Takes over what another node has decided: the records of its journal, in order. What follows from them is
    /// carried out as if this node had decided.
    pub fn apply(&self, records: impl IntoIterator<Item = (Index, Record)>) {
        let mut orders = Orders::default();
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, record) in records {
            host.apply(index, record);
        }
        host.commit(|effect, journal| orders.note(effect, journal));
        self.conclude(host, None, orders);
    }

    /// Turns the catalog for one request: decides, carries out, publishes the view. What others may wait for, queues
    /// that end and what is told of the change, comes once the catalog is free again.
    ///
    /// # Errors
    /// Others decide, too, perhaps since a moment: here the request is back.
    #[allow(
        clippy::result_large_err,
        reason = "the caller has made it, and sends it elsewhere"
    )]
    fn turn(
        &self,
        asker: Option<Asker>,
        actor: Option<Arc<str>>,
        request: Request,
    ) -> Result<Answered, Request> {
        if self.leader.get().is_some() {
            return Err(request);
        }
        let began = self.node.micros();
        let question = self.node.number();
        let change = kind_of(&request);
        let declared_in = match &request {
            Request::DeclareQueue { vhost, .. } | Request::DeclareExchange { vhost, .. } => {
                Some(vhost.clone())
            }
            _ => None,
        };
        let (mut answer, mut orders) = (None, Orders::default());
        let events = self.watched();
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let watch = events.map(|_| Watch::new(self.view(), actor));
        if self.leader.get().is_some() {
            return Err(request);
        }
        host.journal.begin(asker, watch);
        host.handle(self.node.now(), request.asked_by(question));
        host.commit(|effect, journal| match effect {
            Effect::Reply(asked, given) if asked == question => answer = Some(given),
            effect => orders.note(effect, journal),
        });
        let durable = self.conclude(host, events, orders);
        if let Some(vhost) = declared_in {
            self.warn_of_slow_policies(&vhost);
        }
        let took = self.node.micros().saturating_sub(began);
        self.node.work.changes(change).record(took);
        if durable.is_some() && self.node.log.failed() {
            // What was promised with this ticket never comes.
            return Ok(Err(Refusal::Internal {
                reason: AlarmReason::LogFailed.to_string(),
            }));
        }
        let value = answer.unwrap_or_else(|| Err(no_answer()));
        Ok(value.map(|value| Done { value, durable }))
    }

    /// Has the catalog decide many requests that were tried on a copy of it, as one change: nobody sees some of them
    /// without the others, and nobody asks in between. False if it was a copy of what exists no more: then nothing has
    /// changed. Where several nodes decide, what is too long for one request is asked in parts, in order: others may come in
    /// between.
    ///
    /// # Errors
    /// One is refused although the copy took it: those before it are in force, or, where several nodes decide, the parts before
    /// its own; or nobody decides.
    pub fn enact(&self, actor: &Arc<str>, generation: u64, requests: Vec<Request>) -> Result<bool, Refusal> {
        let events = self.watched();
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        if self.leader.get().is_some() {
            drop(host);
            return self.enact_with_others(actor, generation, requests);
        }
        if host.machine.view().generation() != generation {
            return Ok(false);
        }
        let watch = events.map(|_| Watch::new(self.view(), Some(actor.clone())));
        host.journal.begin(None, watch);
        let (mut refused, mut orders) = (Ok(true), Orders::default());
        let mut left = requests.into_iter().peekable();
        while left.peek().is_some() && refused.is_ok() {
            for request in left.by_ref().take(BATCH) {
                host.handle(self.node.now(), request.asked_by(0));
            }
            host.commit(|effect, journal| match effect {
                Effect::Reply(_, Err(refusal)) => refused = Err(refusal),
                effect => orders.note(effect, journal),
            });
        }
        self.conclude(host, events, orders);
        refused
    }

    /// The same where several nodes decide. One part is a request, so all of it is done, or nothing.
    fn enact_with_others(
        &self,
        actor: &Arc<str>,
        generation: u64,
        requests: Vec<Request>,
    ) -> Result<bool, Refusal> {
        let mut of = Some(generation);
        for requests in self.parts(requests)? {
            let of = of.take();
            let done = self.decide_by(actor, Request::All { of, requests }).wait()?;
            if done.value == Answer::Outdated {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As much in each as one request may have. New queues have their homes.
    fn parts(&self, requests: Vec<Request>) -> Result<Vec<Vec<Request>>, Refusal> {
        let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), AROUND);
        let mut load = Load::of_many();
        for mut request in requests {
            self.place(&mut request, &mut load)?;
            let length = request.encode().map_or(usize::MAX, |encoded| encoded.len() + 4);
            if length > Request::MOST_BYTES - AROUND {
                let reason = "one of the changes is too long for another node".to_owned();
                return Err(Refusal::Internal { reason });
            }
            if bytes + length > Request::MOST_BYTES {
                parts.push(std::mem::take(&mut part));
                bytes = AROUND;
            }
            bytes += length;
            part.push(request);
        }
        parts.extend((!part.is_empty()).then_some(part));
        Ok(parts)
    }

    /// Ends a turn: publishes the view and frees the catalog, then tells what happened and ends the queues that are
    /// gone. Returns what the reply waits for.
    fn conclude(
        &self,
        mut host: MutexGuard<'_, Host<Catalog<u64>, CatalogJournal>>,
        events: Option<&Events>,
        mut orders: Orders,
    ) -> Option<Ticket> {
        let (durable, watch) = host.journal.end();
        let view = host.machine.view();
        let gone = self.carry_out(&mut orders, &view);
        let old = self.publish(view);
        drop(host);
        drop(old);
        if let (Some(events), Some(watch)) = (events, watch) {
            let happenings = watch.into_happenings();
            happenings.into_iter().for_each(|it| events.happened(|| it));
        }
        self.finish(orders, gone);
        durable
    }
}

impl Topology {
    /// Has the catalog write everything down again, so that the log may use its oldest file again. Takes as long as the disk
    /// does; others may ask the catalog meanwhile.
    pub fn checkpoint(&self) {
        if self.leader.get().is_some() {
            return;
        }
        if let Err(reason) = self.write_snapshot() {
            tracing::error!(
                area = "catalog",
                "the catalog could not be checkpointed: {reason}"
            );
        }
    }

    fn write_snapshot(&self) -> Result<(), String> {
        let text = |refusal: Refusal| refusal.to_string();
        // What several nodes agree on has its journal and its checkpoints there.
        let over = |_: Request| "its journal is another one by now".to_owned();
        let started = self.turn(None, None, Request::StartSnapshot).map_err(over)?;
        let Answer::Snapshot(view) = started.map_err(text)?.value else {
            return Err("the catalog has nothing to write down".into());
        };
        let mut all = view.facts();
        loop {
            let facts: Vec<Record> = all.by_ref().take(SNAPSHOT_PART).collect();
            if facts.is_empty() {
                break;
            }
            let written = self.turn(None, None, Request::ContinueSnapshot { facts });
            written.map_err(over)?.map_err(text)?;
            // No faster than the disk: what others append must not wait behind all of it.
            self.node.log.sync().map_err(|error| error.to_string())?;
        }
        let finished = self.turn(None, None, Request::FinishSnapshot);
        finished.map_err(over)?.map(|_| ()).map_err(text)
    }

    /// Begins a run of this node: whatever ended with the last one is deleted, some objects at a time. Nobody must have
    /// been served before.
    ///
    /// # Errors
    /// A defect: the catalog refuses no start.
    pub fn start_node(&self, name: &str, takes_queues: bool) -> Result<(), Refusal> {
        let (node, name) = (NodeId::FIRST, Name::from(name));
        let start = Request::StartNode {
            node,
            name,
            takes_queues,
        };
        let started = self.decide(None, start);
        if let Answer::Started(incarnation) = started.wait()?.value {
            self.incarnation.get_or_init(|| incarnation);
        }
        self.end_transient()
    }

    /// Deletes what ended with a run of a node, or with a node that was forgotten, some objects at a time.
    ///
    /// # Errors
    /// Nobody decides.
    pub fn end_transient(&self) -> Result<(), Refusal> {
        let at_most = ENDED_PART;
        let ended = || self.decide(None, Request::EndTransient { at_most }).wait();
        while ended()?.value == Answer::Cleared(at_most) {}
        Ok(())
    }

    /// Which run of which node this is.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation.get().copied().unwrap_or_default()
    }

    /// Makes the default virtual host and user.
    ///
    /// # Errors
    /// A default permission is no regular expression.
    pub fn seed(&self, options: &Options, password: PasswordHash) -> Result<(), Refusal> {
        let name: Name = options.default_user.as_str().into();
        let vhost: Name = options.default_vhost.as_str().into();
        let (user, of) = (name.clone(), vhost.clone());
        self.decide(None, Request::CreateVhost { name: vhost }).wait()?;
        let password = Some(password);
        let tags = options.default_tags.clone();
        self.decide(None, Request::PutUser { name, password, tags })
            .wait()?;
        let [configure, write, read] = options.default_permissions.clone();
        self.decide(
            None,
            Request::SetPermissions {
                user,
                vhost: of,
                configure,
                write,
                read,
            },
        )
        .wait()?;
        Ok(())
    }

    /// What exists from now on; gives what existed before, if that is something else. That may be the last reference to many
    /// parts of trees, whose end is nothing to wait for with a lock in hand.
    fn publish(&self, view: View) -> Option<Arc<View>> {
        let generation = view.generation();
        if generation == self.generation() {
            return None;
        }
        let view = Arc::new(view);
        if let Some(told) = self.told.get() {
            told.events.look_for_listeners(&view);
        }
        let mut published = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *published, view);
        drop(published);
        self.generation.store(generation, Ordering::Release);
        Some(old)
    }
}

/// What operators are told how long it takes.
fn kind_of(request: &Request) -> Change {
    match request {
        Request::DeclareExchange { .. } | Request::DeclareQueue { .. } => Change::Declare,
        Request::DeleteExchange { .. } | Request::DeleteQueue { .. } => Change::Delete,
        Request::Bind { .. } => Change::Bind,
        Request::Unbind { .. } => Change::Unbind,
        _ => Change::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::{Answered, Asker, Deletion};
    use crate::Broker;
    use crate::clients::outbox::Event;
    use crate::{Binding, ChannelId, DeclareExchange, DeclareQueue, Options, Outbox, Session};
    use catalog::Refusal;
    use model::table::Table;
    use std::sync::{Arc, Mutex};
    use std::task::{Wake, Waker};
    use std::thread::{self, Thread};

    const CHANNEL: ChannelId = ChannelId(1);

    fn session(broker: &Arc<Broker>) -> Arc<Session> {
        let local = "127.0.0.1".parse().unwrap();
        let user = broker.authenticate("guest", b"guest", local).unwrap();
        broker.connect(user, "/", Arc::new(Outbox::new())).unwrap()
    }

    fn binding(key: &str) -> Binding<'_> {
        Binding {
            source: "amq.direct",
            destination: "q",
            routing_key: key.as_bytes(),
            arguments: Table::new(),
        }
    }

    /// A durable queue with so many bindings.
    fn declare_bound(session: &Session, bindings: usize) {
        let queue = DeclareQueue {
            name: "q".into(),
            durable: true,
            ..DeclareQueue::default()
        };
        session.declare_queue(CHANNEL, queue).unwrap();
        for at in 0..bindings {
            session.bind_queue(CHANNEL, binding(&format!("k{at}"))).unwrap();
        }
    }

    fn keys(broker: &Broker) -> usize {
        broker.view().bindings("/").count()
    }

    #[test]
    fn a_snapshot_in_parts_holds_what_exists_and_what_is_changed_after_it_counts() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Broker::open(Options::new(dir.path())).unwrap();
        {
            let broker = open();
            let session = session(&broker);
            declare_bound(&session, 2_500);
            broker.topology().checkpoint();
            session.unbind_queue(CHANNEL, binding("k7")).unwrap();
            session.close();
            broker.close();
        }
        let broker = open();
        assert_eq!(keys(&broker), 2_499);
        broker.topology().checkpoint();
        broker.close();
        drop(broker);
        let broker = open();
        assert_eq!(keys(&broker), 2_499);
        broker.close();
    }

    #[test]
    fn a_queue_with_many_bindings_goes_in_parts_and_its_client_is_told_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let session = session(&broker);
        declare_bound(&session, 150);
        let outbox = Arc::new(Outbox::new());
        let (deletion, deleted) = deletion_of_queue(&broker, &outbox);
        let deletion = broker.topology().delete_a_part(deletion, drop).unwrap();
        assert_eq!(keys(&broker), 86);
        let deletion = broker.topology().delete_a_part(deletion, drop).unwrap();
        assert_eq!((keys(&broker), deleted.lock().unwrap().is_some()), (22, false));
        assert!(broker.topology().delete_a_part(deletion, drop).is_none());
        assert_eq!((keys(&broker), broker.view().queues("/").count()), (0, 0));
        let (answered, told_before) = deleted.lock().unwrap().take().unwrap();
        assert!(
            told_before.is_empty(),
            "the ticket is told of after the answer that names it"
        );
        broker.close();
        let mut events = Vec::new();
        outbox.take_now(&mut events);
        let awaited = answered.unwrap().durable.unwrap();
        assert!(matches!(events[..], [Event::Durable { ticket, .. }] if ticket == awaited));
    }

    /// The answer to a deletion, and what its client had been told by then.
    type Deleted = Arc<Mutex<Option<(Answered, Vec<Event>)>>>;

    /// The deletion of the only queue in parts, and what it comes to.
    fn deletion_of_queue(broker: &Broker, outbox: &Arc<Outbox>) -> (Deletion, Deleted) {
        let asker = Asker {
            outbox: outbox.clone(),
            channel: CHANNEL,
            user: "guest".into(),
        };
        let queue = broker.view().queues("/").next().unwrap().id;
        let deleted = Deleted::default();
        let (told, watched, node) = (deleted.clone(), outbox.clone(), broker.node().clone());
        let then = move |answered| {
            // By now all that was written is durable.
            node.log.sync().unwrap();
            let mut events = Vec::new();
            watched.take_now(&mut events);
            *told.lock().unwrap() = Some((answered, events));
        };
        (Deletion::of_queue(queue, asker, then), deleted)
    }

    #[test]
    fn what_ends_with_a_connection_or_a_run_of_the_node_is_gone_after_a_crash() {
        let (dir, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let session = session(&broker);
        let declare = |name: String, durable: bool, exclusive: bool| {
            let queue = DeclareQueue {
                name,
                durable,
                exclusive,
                ..DeclareQueue::default()
            };
            session.declare_queue(CHANNEL, queue).unwrap().durable
        };
        for at in 0..1_200 {
            declare(format!("mine{at}"), false, true);
        }
        declare("passing".into(), false, false);
        assert!(declare("q".into(), true, false).is_some());
        session.bind_queue(CHANNEL, binding("k")).unwrap();
        let exchange = DeclareExchange {
            name: "passing".into(),
            kind: "fanout".into(),
            ..DeclareExchange::default()
        };
        session.declare_exchange(CHANNEL, exchange).unwrap();
        broker.make_durable().unwrap();
        // What the disk holds now is what a crash leaves.
        let log = |dir: &std::path::Path| dir.join("log");
        storage::copy_files(&storage::Disk, &log(dir.path()), &log(crashed.path())).unwrap();
        let again = Broker::open(Options::new(crashed.path())).unwrap();
        let view = again.view();
        let names: Vec<String> = view.queues("/").map(|queue| queue.name.to_string()).collect();
        assert_eq!((names, keys(&again)), (vec!["q".to_string()], 1));
        assert!(view.exchange("/", "passing").is_none());
        assert_eq!(
            again.topology().incarnation().number,
            broker.topology().incarnation().number + 1
        );
        session.close();
        broker.close();
        again.close();
    }

    #[test]
    fn a_deletion_that_the_end_of_the_node_came_into_is_finished_by_the_next_start() {
        for checkpoint in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let broker = Broker::open(Options::new(dir.path())).unwrap();
            let session = session(&broker);
            declare_bound(&session, 150);
            let (deletion, _) = deletion_of_queue(&broker, &Arc::default());
            assert!(broker.topology().delete_a_part(deletion, drop).is_some());
            if checkpoint {
                broker.topology().checkpoint();
            }
            session.close();
            broker.close();
            drop((session, broker));
            let broker = Broker::open(Options::new(dir.path())).unwrap();
            assert_eq!((keys(&broker), broker.view().queues("/").count()), (0, 0));
            assert_eq!(broker.view().doomed_queues().count(), 0);
            broker.close();
        }
    }

    fn exclusive_to(session: &Session) -> Deletion {
        Deletion::of_exclusive_queues(session.connection(), drop)
    }

    fn declare_exclusive(session: &Session, count: usize) {
        for at in 0..count {
            let queue = DeclareQueue {
                name: format!("q{at}"),
                durable: true,
                exclusive: true,
                ..DeclareQueue::default()
            };
            session.declare_queue(CHANNEL, queue).unwrap();
        }
    }

    #[test]
    fn very_many_exclusive_queues_go_in_parts_and_are_locked_until_then() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let (owner, other) = (session(&broker), session(&broker));
        declare_exclusive(&owner, 300);
        let left = || broker.view().queues("/").count();
        let mut after_each = Vec::new();
        let mut deletion = exclusive_to(&owner);
        while let Some(left_over) = broker.topology().delete_a_part(deletion, drop) {
            deletion = left_over;
            after_each.push(left());
            let last = DeclareQueue {
                name: "q299".into(),
                ..DeclareQueue::default()
            };
            let refused = other.declare_queue(CHANNEL, last).unwrap_err();
            assert!(matches!(refused, Refusal::ResourceLocked { .. }));
        }
        assert_eq!((after_each, left()), (vec![236, 172, 108, 44], 0));
        broker.close();
    }

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    #[test]
    fn who_closes_with_very_many_exclusive_queues_is_told_once_they_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let few = session(&broker);
        declare_exclusive(&few, 10);
        assert!(few.close().is_none());
        assert_eq!(broker.view().queues("/").count(), 0);
        let many = session(&broker);
        declare_exclusive(&many, 1_000);
        let gone = many.close().unwrap();
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        while !gone.poll(&waker) {
            thread::park();
        }
        assert_eq!(broker.view().queues("/").count(), 0);
        broker.close();
    }

    #[test]
    fn a_restart_while_exclusive_queues_are_deleted_leaves_none_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Broker::open(Options::new(dir.path())).unwrap();
        let broker = open();
        let owner = session(&broker);
        declare_exclusive(&owner, 100);
        assert!(
            broker
                .topology()
                .delete_a_part(exclusive_to(&owner), drop)
                .is_some()
        );
        assert_eq!(broker.view().queues("/").count(), 36);
        broker.close();
        drop((owner, broker));
        let broker = open();
        assert_eq!(broker.view().queues("/").count(), 0);
        broker.close();
    }
}
