//! A connection as the broker sees it: who, in which virtual host, with which outbox.

pub mod declare;
pub mod login;
mod routable;
mod undecided;

use crate::broker::Broker;
use crate::broker::open_sessions::OpenSession;
use crate::broker::usage::Usage;
use crate::clients::access::{Attempt, Rights, User};
use crate::clients::outbox::{Event, Outbox, Ticket};
use crate::clients::pressure::Pressure;
use crate::events::firehose::Traced;
use crate::options::node_limits::NodeLimits;
use crate::queues::{Handle, Queue};
use crate::session::undecided::Undecided;
use crate::stats::{Connection, ConnectionDetails, Opened};
use catalog::{ConsumerArguments, Exchange, NodeConnection, ObjectKind, Refusal, RefusalKind, Verb, View};
use model::properties::{Properties, PropertiesBuf};
use model::table::Table;
use model::{ConnectionId, QueueId};
use std::net::IpAddr;
use std::sync::{
    Arc, Mutex, OnceLock, PoisonError, RwLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::time::{Duration, UNIX_EPOCH};

/// Why a virtual host is not opened. Both are RabbitMQ's 530 with this text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenRefusal {
    /// There is none of this name.
    NoVhost { vhost: String },
    /// The user has no permissions in it.
    NoAccess { vhost: String, user: String },
    /// The virtual host has as many connections as it may have.
    VhostLimit { vhost: String, user: String, limit: i64 },
    /// The user has as many connections as it may have.
    UserLimit { user: String, limit: i64 },
    /// The node has as many connections as it may have.
    NodeLimit { limit: u64 },
}

impl std::fmt::Display for OpenRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoVhost { vhost } => write!(f, "vhost {vhost} not found"),
            Self::NoAccess { vhost, user } => {
                write!(f, "access to vhost '{vhost}' refused for user '{user}'")
            }
            Self::VhostLimit { vhost, user, limit } => write!(
                f,
                "access to vhost '{vhost}' refused for user '{user}': connection limit ({limit}) is reached"
            ),
            Self::NodeLimit { limit } => {
                write!(
                    f,
                    "connection refused: node connection limit ({limit}) is reached"
                )
            }
            Self::UserLimit { user, limit } => write!(
                f,
                "connection refused for user '{user}': user connection limit ({limit}) is reached"
            ),
        }
    }
}

/// A client's connection, opened on a virtual host.
pub struct Session {
    id: ConnectionId,
    user: User,
    vhost: Arc<str>,
    outbox: Arc<Outbox>,
    broker: Arc<Broker>,
    traced: Traced,
    /// What operators see of it.
    shown: OnceLock<Arc<Connection>>,
    /// Whoever operates this machine: no permission is asked for.
    operator: bool,
    /// The user's rights as they are now: a token is renewed while the connection stands.
    rights: RwLock<Option<Arc<dyn Rights>>>,
    closed: AtomicBool,
    /// An exclusive queue was asked for, at some time.
    wanted_exclusive: AtomicBool,
    /// The user's and the virtual host's.
    usages: [Arc<Usage>; 2],
    /// How many channels are open here.
    channels: AtomicU64,
    /// What it has asked the catalog, if that has not decided yet.
    undecided: Undecided,
    /// What makes the name of a queue that could not be declared yet.
    unnamed: Mutex<Option<[u8; 16]>>,
}

impl Broker {
    /// Opens a virtual host for a connection.
    ///
    /// # Errors
    /// No such virtual host, or the user has no permissions in it (RabbitMQ: 530 for both).
    pub fn connect(
        self: &Arc<Self>,
        user: User,
        vhost: &str,
        outbox: Arc<Outbox>,
    ) -> Result<Arc<Session>, OpenRefusal> {
        let view = self.view();
        // RabbitMQ looks for the virtual host first.
        if view.vhost(vhost).is_some() && !user.enters(&view, vhost) {
            return Err(OpenRefusal::NoAccess {
                vhost: vhost.into(),
                user: user.name.to_string(),
            });
        }
        self.open_session(user, vhost, outbox, false)
    }

    /// Opens a virtual host for whoever operates this machine: they may do everything in it, as RabbitMQ's command line may.
    ///
    /// # Errors
    /// No such virtual host.
    pub fn connect_operator(
        self: &Arc<Self>,
        user: User,
        vhost: &str,
        outbox: Arc<Outbox>,
    ) -> Result<Arc<Session>, OpenRefusal> {
        self.open_session(user, vhost, outbox, true)
    }

    fn open_session(
        self: &Arc<Self>,
        user: User,
        vhost: &str,
        outbox: Arc<Outbox>,
        operator: bool,
    ) -> Result<Arc<Session>, OpenRefusal> {
        let view = self.view();
        let Some(at) = view.vhost(vhost) else {
            return Err(OpenRefusal::NoVhost { vhost: vhost.into() });
        };
        let limits = match operator {
            true => NodeLimits::default(),
            false => self.options().node_limits.clone(),
        };
        let entered = self.occupancy().enter(&limits);
        entered.map_err(|limit| OpenRefusal::NodeLimit { limit })?;
        let usages = self.enter(&user.name, &at.name, !operator);
        let usages = usages.inspect_err(|_| self.occupancy().leave())?;
        let id = ConnectionId(self.node().number());
        let (closed, wanted_exclusive) = (AtomicBool::new(false), AtomicBool::new(false));
        let session = Session {
            id,
            rights: RwLock::new(user.rights.clone()),
            user,
            vhost: vhost.into(),
            outbox,
            broker: self.clone(),
            traced: self.firehose().of(vhost),
            shown: OnceLock::new(),
            operator,
            closed,
            wanted_exclusive,
            usages,
            channels: AtomicU64::new(0),
            undecided: Undecided::default(),
            unnamed: Mutex::new(None),
        };
        let session = Arc::new(session);
        let open = OpenSession {
            vhost: session.vhost.clone(),
            user: session.user.name.clone(),
            outbox: session.outbox.clone(),
        };
        self.sessions().add(id.0, open, || self.alarm());
        Ok(session)
    }
}

impl Broker {
    /// Counts a connection of a user to a virtual host, if both may have one more.
    fn enter(&self, user: &str, vhost: &str, bound: bool) -> Result<[Arc<Usage>; 2], OpenRefusal> {
        let quota = || {
            let view = self.view();
            view.vhost(vhost).map(|vhost| *vhost.quota()).unwrap_or_default()
        };
        let of_vhost = self.usages(false).enter(vhost, quota, bound);
        let of_vhost = of_vhost.map_err(|limit| OpenRefusal::VhostLimit {
            vhost: vhost.into(),
            user: user.into(),
            limit,
        })?;
        let quota = || self.view().user_quota(user);
        match self.usages(true).enter(user, quota, bound) {
            Ok(of_user) => Ok([of_user, of_vhost]),
            Err(limit) => {
                self.usages(false).leave(vhost, &of_vhost);
                Err(OpenRefusal::UserLimit {
                    user: user.into(),
                    limit,
                })
            }
        }
    }
}

impl Session {
    /// Counts a channel that a client opens.
    ///
    /// # Errors
    /// The user has as many as it may have (RabbitMQ: 530, the connection is closed).
    pub fn open_channel(&self) -> Result<(), Refusal> {
        let [of_user, _] = &self.usages;
        let open = of_user.channels.fetch_add(1, Ordering::AcqRel);
        let limit = self.broker.view().user_quota(&self.user.name).channels;
        if let Some(limit) = catalog::Quota::is_reached(limit, open) {
            of_user.channels.fetch_sub(1, Ordering::AcqRel);
            return Err(Refusal::ChannelLimit {
                user: self.user.name.to_string(),
                limit,
            });
        }
        let limits = &self.broker.options().node_limits;
        if let Err(limit) = self.broker.occupancy().open_channel(limits) {
            of_user.channels.fetch_sub(1, Ordering::AcqRel);
            let node = self.broker.options().node_name.clone();
            return Err(Refusal::NodeChannelLimit { node, limit });
        }
        self.channels.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// A channel is gone.
    pub fn close_channel(&self) {
        self.channels.fetch_sub(1, Ordering::AcqRel);
        self.usages[0].channels.fetch_sub(1, Ordering::AcqRel);
        self.broker.occupancy().close_channels(1);
    }

    /// True if there is a limit on the rate of what the user publishes, or of all in the virtual host.
    #[inline]
    pub(crate) fn is_metered(&self) -> bool {
        self.usages[0].is_metered() | self.usages[1].is_metered()
    }

    /// Counts what was published against the rates, and says how long to wait if it was too much.
    #[cold]
    pub(crate) fn charge(&self, messages: u64, bytes: u64) -> Option<Pressure> {
        let now = self.broker().node().world.elapsed();
        let usages = self.usages.iter().filter(|usage| usage.is_metered());
        let waits = usages.filter_map(|usage| usage.charge(now, messages, bytes));
        waits.max_by_key(Pressure::timeout)
    }

    /// A new name for a reply that waits.
    pub fn ticket(&self) -> Ticket {
        Ticket(self.broker().node().number())
    }

    /// Unique for the run of the process.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// The same, among the connections of all nodes.
    pub(crate) fn connection(&self) -> NodeConnection {
        NodeConnection {
            incarnation: self.broker.topology().incarnation(),
            connection: self.id,
        }
    }

    /// Who logged in.
    pub fn user(&self) -> &User {
        &self.user
    }

    /// The virtual host.
    pub fn vhost(&self) -> &str {
        &self.vhost
    }

    /// The wall clock, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.broker.node().now().0
    }

    /// The same, to be kept.
    pub(crate) fn vhost_name(&self) -> &Arc<str> {
        &self.vhost
    }

    /// Shows the connection to operators, until the session is closed.
    pub fn introduce(&self, details: ConnectionDetails) -> Arc<Connection> {
        let now = self.broker.node().now();
        let of = Opened {
            id: self.id.0,
            user: self.user.name.clone(),
            vhost: self.vhost.clone(),
            outbox: self.outbox.clone(),
            traced: self.traced.clone(),
            registry: Arc::downgrade(self.broker.stats()),
            events: self.broker.events().clone(),
            node: self.broker.node_name().clone(),
        };
        let connection = Arc::new(Connection::new(of, now.0, details));
        self.broker.stats().enter(connection.clone());
        let _ = self.shown.set(connection.clone());
        self.broker.happened(|| connection.opened());
        connection
    }

    /// What operators see of it, if it is a client's.
    pub(crate) fn shown(&self) -> Option<&Arc<Connection>> {
        self.shown.get()
    }

    /// Whether what it sends and receives is copied.
    pub(crate) fn traced(&self) -> &Traced {
        &self.traced
    }

    /// The connection is gone: so are its exclusive queues. Channels give back what they hold first. If there are very
    /// many queues, they are gone when the pressure ends, and only then its client may be told so. May be called twice.
    pub fn close(&self) -> Option<Pressure> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return None;
        }
        self.broker.sessions().remove(self.id.0);
        if let Some(connection) = self.broker.stats().leave(self.id.0) {
            self.broker.happened(|| connection.closed());
        }
        let [of_user, of_vhost] = &self.usages;
        let channels = self.channels.swap(0, Ordering::AcqRel);
        of_user.channels.fetch_sub(channels, Ordering::AcqRel);
        self.broker.occupancy().close_channels(channels);
        self.broker.occupancy().leave();
        self.broker.usages(true).leave(&self.user.name, of_user);
        self.broker.usages(false).leave(&self.vhost, of_vhost);
        // Most have none, and closing one needs nobody's agreement: it closes at once where there is no majority, too.
        let wanted = self.wanted_exclusive.load(Ordering::Acquire);
        wanted.then(|| self.delete_exclusive_queues()).flatten()
    }

    /// True if messages that come in are changed by [`Session::intercepted`].
    pub fn intercepts(&self) -> bool {
        !self.broker().options().interceptors.is_empty()
    }

    /// A message's properties with what the node adds to them.
    pub fn intercepted(&self, properties: Properties<'_>) -> PropertiesBuf {
        let options = self.broker().options();
        let now = self.broker().node().wall();
        options
            .interceptors
            .applied(properties, &options.node_name, now, &options.limits)
    }

    pub(crate) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    pub(crate) fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// Above so many bytes of this process publishers are blocked.
    pub fn memory_high_watermark(&self) -> u64 {
        self.broker.service().memory_high_watermark()
    }

    /// The user has shown new credentials, which give these rights from now on. What publishers remember of the former ones they
    /// must forget.
    pub fn renew(&self, rights: Option<Arc<dyn Rights>>) {
        *self.rights.write().unwrap_or_else(PoisonError::into_inner) = rights;
    }

    /// The client shows new credentials in the place of those that end; what comes of it comes as [`Event::Login`]. A user of the
    /// catalog needs none: then it is false, and nothing comes.
    pub fn show_again(&self, password: &[u8], peer: IpAddr) -> bool {
        if self.rights().is_none() {
            return false;
        }
        let attempt = Attempt {
            user: self.user.name.to_string(),
            password: Some(password.to_vec()),
            peer,
        };
        let outbox = self.outbox.clone();
        self.broker
            .login(attempt, Box::new(move |found| outbox.send(Event::Login(found))));
        true
    }

    /// Whoever uses the session does so on threads that may wait for the catalog: no step comes back undecided from now on.
    pub fn may_wait(&self) {
        self.undecided.wait();
    }

    pub(crate) fn undecided(&self) -> &Undecided {
        &self.undecided
    }

    /// After a refusal: true if it is none yet, because somebody else has to be asked about rights first, which is done now, or
    /// because another node decides. [`Event::Permitted`] comes when the answer is here; then the same is to be tried again.
    pub fn must_ask(&self) -> bool {
        if self.undecided.is_news() {
            return true;
        }
        let outbox = self.outbox.clone();
        let known = move || outbox.send(Event::Permitted);
        self.rights().is_some_and(|rights| rights.ask(Box::new(known)))
    }

    /// What was tried again has succeeded.
    pub fn settle(&self) {
        if let Some(rights) = self.rights() {
            rights.settle();
        }
    }

    /// Makes up the name of a queue: the same as long as it has to be asked whether there may be such a queue.
    pub(crate) fn make_up(&self) -> Result<[u8; 16], Refusal> {
        let kept = self.unnamed.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.map_or_else(|| self.broker().node().random_bytes(), Ok)
    }

    /// The queue of this name may have to be declared again.
    pub(crate) fn keep_name(&self, unique: [u8; 16]) {
        if self.rights().is_some() {
            *self.unnamed.lock().unwrap_or_else(PoisonError::into_inner) = Some(unique);
        }
    }

    /// How long the user's credentials are still good; `None` if they do not end.
    pub fn remaining(&self) -> Option<Duration> {
        let until = self.rights()?.until()?;
        let until = until.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = self.broker().node().wall();
        Some(until.saturating_sub(Duration::from_millis(now.0)))
    }

    fn rights(&self) -> Option<Arc<dyn Rights>> {
        self.rights.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn may(&self, verb: Verb, kind: ObjectKind, name: &str) -> bool {
        match self.rights() {
            None => self.broker.view().may(&self.user.name, &self.vhost, verb, name),
            Some(rights) => {
                let name = if name.is_empty() { "amq.default" } else { name };
                rights.may(&self.vhost, verb, kind, name)
            }
        }
    }

    /// May this session's user publish with this key to a topic exchange (`Write`), or bind it (`Read`)? Its authority
    /// decides, or else its topic permissions.
    pub(crate) fn check_key(&self, verb: Verb, exchange: &Exchange, key: &[u8]) -> Result<(), Refusal> {
        if self.operator || !exchange.kind.has_topic_permissions() {
            return Ok(());
        }
        let permitted = match self.rights() {
            Some(rights) => rights.may_with_key(&self.vhost, verb, &exchange.name, key),
            None => self.broker.view().may_topic(&self.user.name, exchange, verb, key),
        };
        if permitted {
            return Ok(());
        }
        Err(Refusal::NoTopicPermission {
            verb,
            key: String::from_utf8_lossy(key).into_owned(),
            exchange: exchange.name.to_string(),
            vhost: self.vhost.to_string(),
            user: self.user.name.to_string(),
        })
    }

    /// The one access decision: may this session's user do this to an object of this name?
    pub(crate) fn check(&self, verb: Verb, kind: ObjectKind, name: &str) -> Result<(), Refusal> {
        if self.operator || self.may(verb, kind, name) {
            return Ok(());
        }
        Err(self.no_permission(verb, kind, name))
    }

    fn no_permission(&self, verb: Verb, kind: ObjectKind, name: &str) -> Refusal {
        Refusal::NoPermission {
            verb,
            kind,
            name: name.into(),
            vhost: self.vhost.as_ref().into(),
            user: self.user.name.to_string(),
        }
    }

    /// The exchange, if this session may publish to it.
    pub(crate) fn exchange_to_publish<'a>(
        &self,
        view: &'a View,
        name: &[u8],
    ) -> Result<&'a Exchange, Refusal> {
        let name = String::from_utf8_lossy(name);
        self.check(Verb::Write, ObjectKind::Exchange, &name)?;
        let missing = || Refusal::NoExchange {
            exchange: name.to_string(),
            vhost: self.vhost.to_string(),
        };
        let exchange = view.exchange(&self.vhost, &name).ok_or_else(missing)?;
        if exchange.internal {
            return Err(Refusal::InternalExchange {
                exchange: name.to_string(),
                vhost: self.vhost.to_string(),
            });
        }
        Ok(exchange)
    }

    /// Nothing, if this session may publish to this exchange with this key.
    ///
    /// # Errors
    /// No permission, or there is no such exchange for clients.
    pub fn may_publish(&self, exchange: &str, key: &[u8]) -> Result<(), Refusal> {
        let view = self.broker.view();
        let exchange = self.exchange_to_publish(&view, exchange.as_bytes())?;
        self.check_key(Verb::Write, exchange, key)
    }

    /// What a consumer of this queue asks for by its arguments. What a missing queue would say to them, classic ones do.
    ///
    /// # Errors
    /// An argument makes no sense, or is for queues of another kind.
    pub fn consumer_arguments(&self, queue: &str, arguments: &Table) -> Result<ConsumerArguments, Refusal> {
        let view = self.broker.view();
        let kind = view.queue(&self.vhost, queue).map(|queue| queue.kind);
        catalog::check_consumer(kind.unwrap_or_default(), arguments, queue, &self.vhost)
    }

    /// The queue, if this session may read from it.
    pub(crate) fn queue_to_read(&self, name: &str) -> Result<Handle, Refusal> {
        let view = self.broker.view();
        self.check(Verb::Read, ObjectKind::Queue, name)?;
        let id = self.queue_of(&view, name)?;
        let handle = self
            .broker
            .registry()
            .get(id)
            .ok_or_else(|| self.no_queue(name))?;
        self.check_owner(&view, &handle)?;
        Ok(handle)
    }

    /// The same for what can be asked of a queue of this node only.
    pub(crate) fn queue_to_look_at(&self, name: &str) -> Result<Arc<Queue>, Refusal> {
        let handle = self.queue_to_read(name)?;
        handle.here().cloned().ok_or_else(|| self.not_here(&handle))
    }

    pub(crate) fn not_here(&self, handle: &Handle) -> Refusal {
        let view = self.broker.view();
        let known = view.queue(handle.vhost(), handle.name());
        let leader = known.and_then(|known| self.broker.topology().leader_of(known));
        let node = known.map_or("", |known| view.node_name(leader.unwrap_or(known.home)));
        Refusal::QueueElsewhere {
            queue: handle.name().to_string(),
            vhost: handle.vhost().to_string(),
            node: node.to_owned(),
        }
    }

    /// Somebody must have the queue's messages whom this node can reach.
    pub(crate) fn check_owner(&self, view: &View, handle: &Handle) -> Result<(), Refusal> {
        match handle {
            Handle::Here(_) | Handle::Elsewhere(..) | Handle::Shared(_) => Ok(()),
            Handle::WithoutOwner(known) => Err(self.no_owner(view, known)),
        }
    }

    pub(crate) fn no_owner(&self, view: &View, known: &catalog::Queue) -> Refusal {
        Refusal::QueueDown {
            queue: known.name.to_string(),
            vhost: known.vhost.to_string(),
            node: view.node_name(known.home).to_string(),
        }
    }

    /// The queue's id, unless another connection owns it alone.
    pub(crate) fn queue_of(&self, view: &View, name: &str) -> Result<QueueId, Refusal> {
        let queue = view.queue(&self.vhost, name).ok_or_else(|| self.no_queue(name))?;
        let may = queue.check_exclusive(self.connection());
        may.inspect_err(|refusal| self.say_why_locked(name, refusal))?;
        Ok(queue.id)
    }

    /// A queue whose owner's node is not there any more is locked for longer than its connection seems to have lasted: the log
    /// says until when. Clients are told what RabbitMQ tells them.
    pub(crate) fn say_why_locked(&self, name: &str, refusal: &Refusal) {
        if refusal.kind() != RefusalKind::ResourceLocked {
            return;
        }
        let view = self.broker.view();
        let owner = view
            .queue(&self.vhost, name)
            .and_then(|queue| queue.exclusive_to());
        let gone = owner.filter(|owner| !self.broker.topology().reaches(owner.incarnation.node));
        if let Some(owner) = gone {
            tracing::warn!(
                area = "queue",
                "queue '{name}' in vhost '{}' is exclusive to a connection of node '{}', which cannot be reached: it ends when that node \
                 starts again, or is removed with forget_cluster_node",
                self.vhost,
                view.node_name(owner.incarnation.node)
            );
        }
    }

    /// Nobody who has the queue's messages can be reached.
    pub(crate) fn unreachable(&self, name: &str) -> Refusal {
        let view = self.broker.view();
        let known = view.queue(&self.vhost, name);
        known.map_or_else(|| self.no_queue(name), |known| self.no_owner(&view, known))
    }

    pub(crate) fn no_queue(&self, name: &str) -> Refusal {
        Refusal::NoQueue {
            queue: name.into(),
            vhost: self.vhost.to_string(),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "connection {} of user '{}' in vhost '{}'",
            self.id.0, self.user.name, self.vhost
        )
    }
}
