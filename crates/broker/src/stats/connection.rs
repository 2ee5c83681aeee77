//! A connection, as operators see it.

use super::Registry;
use super::stream_clients::{Entered, StreamClients, StreamConsumer, StreamPublisher};
use super::{Channel, ChannelHandle, Count, Held, MessageSizes, Secured};
use crate::clients::close_reason::CloseReason;
use crate::clients::outbox::{Event, Outbox};
use crate::events::firehose::{self, Party, Traced};
use crate::events::{Events, Happening};
use model::table::{Table, Value};
use model::{Limits, Message};
use std::net::SocketAddr;
use std::sync::{
    Arc, Mutex, OnceLock, PoisonError, Weak,
    atomic::{AtomicU8, Ordering},
};

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol {
    /// RabbitMQ's name in lists of connections, such as `AMQP 0-9-1`.
    pub name: &'static str,
    /// RabbitMQ's label of metrics, such as `amqp091`.
    pub label: &'static str,
}

/// What a front end knows of a connection; it does not change.
#[derive(Clone, Debug)]
pub struct ConnectionDetails {
    /// What RabbitMQ calls it: both ends.
    pub name: String,
    /// The client's end.
    pub peer: SocketAddr,
    /// Ours.
    pub local: SocketAddr,
    /// What is spoken on it.
    pub protocol: Protocol,
    /// How the user logged in, such as `PLAIN`.
    pub mechanism: &'static str,
    /// What the client says about itself.
    pub client_properties: Table,
    /// What else the protocol has agreed on, with RabbitMQ's names: `channel_max`, `frame_max`, `timeout`.
    pub agreed: Vec<(&'static str, u32)>,
    /// How TLS secures it, if it does.
    pub security: Option<Secured>,
}

/// What a connection is doing, in RabbitMQ's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// What it always does.
    #[default]
    Running,
    /// It is not read from, because what it publishes to is slower than it.
    Flow,
    /// There is an alarm; it will not be read from once it publishes.
    Blocking,
    /// There is an alarm, and it published: it is not read from.
    Blocked,
}

impl State {
    /// RabbitMQ's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Flow => "flow",
            Self::Blocking => "blocking",
            Self::Blocked => "blocked",
        }
    }
}

impl State {
    /// RabbitMQ's name for its channels: they know of no alarms.
    pub fn of_channel(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            _ => "running",
        }
    }
}

/// A client's connection.
#[derive(Debug)]
pub struct Connection {
    /// Unique for the run of the process; rises.
    pub id: u64,
    /// What RabbitMQ calls it.
    pub name: String,
    /// The client's end.
    pub peer: SocketAddr,
    /// Ours.
    pub local: SocketAddr,
    /// What is spoken on it.
    pub protocol: Protocol,
    /// How the user logged in.
    pub mechanism: &'static str,
    /// Who logged in.
    pub user: Arc<str>,
    /// The virtual host.
    pub vhost: Arc<str>,
    /// What else the protocol has agreed on, with RabbitMQ's names.
    pub agreed: Box<[(&'static str, u32)]>,
    /// How TLS secures it, if it does.
    pub security: Option<Box<Secured>>,
    /// When it was opened, in milliseconds since the Unix epoch.
    pub connected_at_ms: u64,
    /// Bytes that came.
    pub received_bytes: Count,
    /// How large the messages were that it published.
    pub sizes: MessageSizes,
    /// How often something came.
    pub reads: Count,
    /// Bytes that left.
    pub sent_bytes: Count,
    /// How often something left.
    pub writes: Count,
    /// As sent: a table that is built takes several times the room.
    client_properties: Box<[u8]>,
    state: AtomicU8,
    held: Held,
    alarm_elsewhere: Mutex<Option<Arc<str>>>,
    channels: Mutex<Vec<Arc<Channel>>>,
    /// Nothing, on connections of other protocols.
    streams: OnceLock<Box<StreamClients>>,
    outbox: Arc<Outbox>,
    registry: Weak<Registry>,
    events: Arc<Events>,
    traced: Traced,
    /// The node's name.
    node: Arc<str>,
}

/// Whose connection it is, and who is told what becomes of it.
pub(crate) struct Opened {
    pub id: u64,
    pub user: Arc<str>,
    pub vhost: Arc<str>,
    pub outbox: Arc<Outbox>,
    pub traced: Traced,
    pub registry: Weak<Registry>,
    pub events: Arc<Events>,
    /// The node's name.
    pub node: Arc<str>,
}

/// What stands for an address of clients on this machine that came by a socket in the file system.
pub const UNIX: &str = "unix";

/// One end of a connection whose end here is `local`: its port is 0 for sockets in the file system, and no other's.
pub(crate) fn host(end: SocketAddr, local: SocketAddr) -> String {
    match local.port() {
        0 => UNIX.to_owned(),
        _ => end.ip().to_canonical().to_string(),
    }
}

impl Connection {
    pub(crate) fn new(opened: Opened, connected_at_ms: u64, details: ConnectionDetails) -> Self {
        let mut client_properties = Vec::new();
        details.client_properties.encode(&mut client_properties);
        Self {
            id: opened.id,
            name: details.name,
            peer: details.peer,
            local: details.local,
            protocol: details.protocol,
            mechanism: details.mechanism,
            user: opened.user,
            vhost: opened.vhost,
            agreed: details.agreed.into(),
            security: details.security.map(Box::new),
            connected_at_ms,
            received_bytes: Count::default(),
            sizes: MessageSizes::default(),
            reads: Count::default(),
            sent_bytes: Count::default(),
            writes: Count::default(),
            client_properties: client_properties.into(),
            state: AtomicU8::new(State::default() as u8),
            held: Held::default(),
            alarm_elsewhere: Mutex::default(),
            channels: Mutex::default(),
            streams: OnceLock::new(),
            outbox: opened.outbox,
            registry: opened.registry,
            events: opened.events,
            traced: opened.traced,
            node: opened.node,
        }
    }

    /// The client's address. A socket in the file system has none, only a number by which it is told from others.
    pub fn peer_host(&self) -> String {
        host(self.peer, self.local)
    }

    /// Ours.
    pub fn host(&self) -> String {
        host(self.local, self.local)
    }

    /// What the client says about itself.
    pub fn client_properties(&self) -> Table {
        // They passed the limits when they came.
        Table::decode(&self.client_properties, &Limits::default()).unwrap_or_default()
    }

    /// The name that the application gave it.
    pub fn user_provided_name(&self) -> Option<String> {
        let properties = self.client_properties();
        let name = properties.get("connection_name").and_then(Value::as_str);
        name.map(str::to_owned)
    }

    /// What it is doing.
    pub fn state(&self) -> State {
        let states = [State::Running, State::Flow, State::Blocking, State::Blocked];
        let state = self.state.load(Ordering::Relaxed);
        states
            .into_iter()
            .find(|known| *known as u8 == state)
            .unwrap_or_default()
    }

    /// It does this now.
    pub fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// The alarm of another node, with its name, for whose end it waits, if it does.
    pub fn alarm_elsewhere(&self) -> Option<Arc<str>> {
        self.alarm_elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// It waits for the end of this alarm of another node, or of none.
    pub fn set_alarm_elsewhere(&self, alarm: Option<Arc<str>>) {
        *self
            .alarm_elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = alarm;
    }

    /// Whether it is not read from, and why.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Its channels, in the order in which they were opened.
    pub fn channels(&self) -> Vec<Arc<Channel>> {
        self.lock().clone()
    }

    /// How many channels it has.
    pub fn channel_count(&self) -> usize {
        self.lock().len()
    }

    /// A channel was opened.
    pub fn open_channel(self: &Arc<Self>, number: u16) -> ChannelHandle {
        let channel = Arc::new(Channel::new(number));
        if let Some(registry) = self.registry.upgrade() {
            registry.channel_opened();
        }
        self.lock().push(channel.clone());
        self.happened(|| channel.opened(self));
        ChannelHandle::new(self.clone(), channel)
    }

    /// Its publishers of the stream protocol, in the order in which they were declared.
    pub fn stream_publishers(&self) -> Vec<Arc<StreamPublisher>> {
        let streams = self.streams.get();
        streams.map_or_else(Vec::new, |streams| streams.publishers.all())
    }

    /// Its consumers of the stream protocol, in the order in which they came.
    pub fn stream_consumers(&self) -> Vec<Arc<StreamConsumer>> {
        let streams = self.streams.get();
        streams.map_or_else(Vec::new, |streams| streams.consumers.all())
    }

    /// Shows a publisher of the stream protocol to operators.
    pub fn enter_stream_publisher(&self, publisher: StreamPublisher) -> Entered<StreamPublisher> {
        self.streams.get_or_init(Box::default).publishers.enter(publisher)
    }

    /// Shows a consumer of the stream protocol to operators.
    pub fn enter_stream_consumer(&self, consumer: StreamConsumer) -> Entered<StreamConsumer> {
        self.streams.get_or_init(Box::default).consumers.enter(consumer)
    }

    pub(super) fn left(&self, channel: &Arc<Channel>) {
        self.lock().retain(|known| !Arc::ptr_eq(known, channel));
        if let Some(registry) = self.registry.upgrade() {
            registry.channel_left(self, channel);
        }
        self.happened(|| channel.closed(self));
    }

    /// Has it closed; the client is told the reason.
    pub fn close(&self, reason: CloseReason) {
        self.outbox.send(Event::Close(reason));
    }

    /// True if what it is sent is to be shown to [`Connection::trace`].
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.traced.is_on()
    }

    /// Copies a message that a channel of this number sends to the client to those who trace the virtual host.
    #[cold]
    pub fn trace(&self, channel: u16, queue: &str, redelivered: bool, message: Message<'_>) {
        let to = Party {
            node: &self.node,
            vhost: &self.vhost,
            user: &self.user,
            connection: &self.name,
            channel,
        };
        firehose::delivered(&self.events.notices, &to, queue, redelivered, &message);
    }

    /// Tells those who watch the node.
    pub(super) fn happened(&self, happening: impl FnOnce() -> Happening) {
        self.events.happened(happening);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Channel>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
