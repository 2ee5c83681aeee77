//! A connection as the hall sees it: who, in which virtual host, with which outbox.

use crate::broker::Broker;
use crate::firehose::Traced;
use crate::outbox::{ChannelId, Outbox, Ticket};
use crate::publish::Publisher;
use crate::queues::Queue;
use crate::sight::{Card, Connection};
use catalog::{Exchange, ObjectKind, Refusal, Verb, View};
use model::{ConnectionId, QueueId};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

/// A user who logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// Its tags, such as `administrator`.
    pub tags: Vec<String>,
}

/// Why a virtual host is not opened. Both are RabbitMQ's 530 with this text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenRefusal {
    /// There is none of this name.
    NoVhost { vhost: String },
    /// The user has no permissions in it.
    NoAccess { vhost: String, user: String },
}

impl std::fmt::Display for OpenRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoVhost { vhost } => write!(f, "vhost {vhost} not found"),
            Self::NoAccess { vhost, user } => {
                write!(f, "access to vhost '{vhost}' refused for user '{user}'")
            }
        }
    }
}

/// A client's connection, opened on a virtual host.
pub struct Session {
    id: ConnectionId,
    user: User,
    /// The user's name, to be passed on.
    user_name: Arc<str>,
    vhost: Arc<str>,
    outbox: Arc<Outbox>,
    broker: Arc<Broker>,
    traced: Traced,
    /// What operators see of it.
    shown: OnceLock<Arc<Connection>>,
    /// Whoever operates this machine: no permission is asked for.
    operator: bool,
    closed: AtomicBool,
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
        if view.vhost(vhost).is_some() && !view.vhost_access(&user.name, vhost) {
            return Err(OpenRefusal::NoAccess {
                vhost: vhost.into(),
                user: user.name,
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
        if self.view().vhost(vhost).is_none() {
            return Err(OpenRefusal::NoVhost { vhost: vhost.into() });
        }
        let id = ConnectionId(self.node().number());
        let closed = AtomicBool::new(false);
        let session = Session {
            id,
            user_name: user.name.as_str().into(),
            user,
            vhost: vhost.into(),
            outbox,
            broker: self.clone(),
            traced: self.firehose().of(vhost),
            shown: OnceLock::new(),
            operator,
            closed,
        };
        let session = Arc::new(session);
        self.session_opened(&session);
        Ok(session)
    }
}

impl Session {
    /// A new name for a reply that waits.
    pub fn ticket(&self) -> Ticket {
        Ticket(self.broker().node().number())
    }

    /// Unique for the run of the process.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Who logged in.
    pub fn user(&self) -> &User {
        &self.user
    }

    pub(crate) fn user_name(&self) -> &Arc<str> {
        &self.user_name
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
    pub fn introduce(&self, card: Card) -> Arc<Connection> {
        let now = self.broker.node().now();
        let connection = Arc::new(Connection::new(self, now.0, card));
        self.broker.sight().enter(connection.clone());
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

    pub(crate) fn shared_vhost(&self) -> &Arc<str> {
        &self.vhost
    }

    /// A channel's way into the hall for messages.
    pub fn publisher(self: &Arc<Self>, channel: ChannelId) -> Publisher {
        Publisher::new(self.clone(), channel)
    }

    /// The connection is gone: so are its exclusive queues. Channels give back what they hold first. May be called twice.
    pub fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.broker.session_closed(self);
        self.delete_exclusive_queues();
    }

    pub(crate) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    pub(crate) fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// The one access decision: may this session's user do this to an object of this name?
    pub(crate) fn check(&self, verb: Verb, kind: ObjectKind, name: &str) -> Result<(), Refusal> {
        if self.operator || self.broker.view().may(&self.user.name, &self.vhost, verb, name) {
            return Ok(());
        }
        Err(Refusal::NoPermission {
            verb,
            kind,
            name: name.into(),
            vhost: self.vhost.as_ref().into(),
            user: self.user.name.clone(),
        })
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

    /// The queue, if this session may read from it.
    pub(crate) fn queue_to_read(&self, name: &str) -> Result<Arc<Queue>, Refusal> {
        let view = self.broker.view();
        self.check(Verb::Read, ObjectKind::Queue, name)?;
        let id = self.queue_of(&view, name)?;
        self.broker.registry().get(id).ok_or_else(|| self.no_queue(name))
    }

    /// The queue's id, unless another connection owns it alone.
    pub(crate) fn queue_of(&self, view: &View, name: &str) -> Result<QueueId, Refusal> {
        let queue = view.queue(&self.vhost, name).ok_or_else(|| self.no_queue(name))?;
        queue.check_owner(self.id)?;
        Ok(queue.id)
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
