//! The event exchange: what happened on this node, for programs that watch it (RabbitMQ's plugin of that name).
//!
//! Key and headers of an event are RabbitMQ's; the body is empty. Nothing is put together while nobody has bound anything.

use crate::administer::THE_NODE;
use crate::broker::Broker;
use crate::notices::Notice;
use crate::options::OpenError;
use crate::stats::host;
use catalog::DeclareExchange;
use model::Timestamp;
use model::properties::{PropertiesBuf, PropertiesBuilder};
use model::table::{Table, Value};
use std::fmt::Display;
use std::net::SocketAddr;

/// The exchange that events are published to.
pub const EVENT_EXCHANGE: &str = "amq.rabbitmq.event";

/// Something that happened.
pub struct Happening {
    /// The routing key, such as `queue.created`.
    pub key: &'static str,
    /// What about it, but not when.
    pub headers: Table,
}

impl Happening {
    /// An event with no details yet.
    pub fn new(key: &'static str) -> Self {
        Self {
            key,
            headers: Table::new(),
        }
    }

    /// With one more detail.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.headers.push(name, value);
        self
    }
}

/// A client tried to log in.
pub struct LoginAttempt<'a> {
    /// As whom.
    pub user: &'a str,
    /// By which protocol, in RabbitMQ's labels: `amqp091`.
    pub protocol: &'static str,
    /// Such as `PLAIN`.
    pub mechanism: &'a str,
    /// What the connection is called.
    pub connection: &'a str,
    /// The client's end.
    pub peer: SocketAddr,
    /// The node's end.
    pub local: SocketAddr,
    /// Why it was refused, if it was.
    pub refused: Option<&'a dyn Display>,
}

impl Broker {
    /// Tells those who watch of a login.
    pub fn login_attempted(&self, attempt: &LoginAttempt<'_>) {
        let counts = self.stats().login_attempts();
        let (from, user) = (attempt.peer.ip(), attempt.user);
        counts.record(attempt.protocol, from, user, attempt.refused.is_none());
        self.happened(|| {
            let key = match attempt.refused {
                None => "user.authentication.success",
                Some(_) => "user.authentication.failure",
            };
            let happening = Happening::new(key)
                .with("name", attempt.user)
                .with("auth_mechanism", attempt.mechanism)
                .with("connection_name", attempt.connection)
                .with("connection_type", "network")
                .with("peer_host", host(attempt.peer, attempt.local))
                .with("peer_port", i64::from(attempt.peer.port()));
            match attempt.refused {
                None => happening,
                Some(refusal) => happening.with("error", refusal.to_string()),
            }
        });
    }

    /// Makes the exchange that events go to, if the node is to have one and has its virtual host.
    ///
    /// # Errors
    /// There is another exchange of that name.
    pub fn declare_event_exchange(&self) -> Result<(), OpenError> {
        let Some(vhost) = self.options().event_vhost.as_deref() else {
            return Ok(());
        };
        self.declare_own_exchange(vhost, EVENT_EXCHANGE)
    }

    /// Makes an exchange that only the node publishes to, if the virtual host is there.
    ///
    /// # Errors
    /// There is another exchange of that name.
    pub(crate) fn declare_own_exchange(&self, vhost: &str, name: &str) -> Result<(), OpenError> {
        if self.view().vhost(vhost).is_none() {
            tracing::warn!(
                area = "notices",
                "there is no virtual host '{vhost}' for the exchange '{name}'; create it and restart the node"
            );
            return Ok(());
        }
        let declare = DeclareExchange {
            name: name.into(),
            kind: "topic".into(),
            durable: true,
            internal: true,
            ..DeclareExchange::default()
        };
        self.administrator(THE_NODE)
            .install_exchange(vhost, declare)
            .map_err(OpenError::Defaults)
    }

    /// True if the node has an exchange for events.
    pub fn has_event_exchange(&self) -> bool {
        self.options().event_vhost.is_some()
    }

    /// True if the node is to tell what happens, though perhaps nobody listens.
    pub(crate) fn is_watched(&self) -> bool {
        self.has_event_exchange() || self.node().watchers.any()
    }

    /// Tells those who watch, if there are any; `happening` is called only then.
    pub(crate) fn happened(&self, happening: impl FnOnce() -> Happening) {
        let (listening, watched) = (self.event_listeners(), self.node().watchers.any());
        if listening.is_none() && !watched {
            return;
        }
        let happening = happening();
        if watched {
            self.tell_watchers(&happening);
        }
        if let Some(vhost) = listening {
            self.tell(vhost, happening);
        }
    }

    /// The virtual host of the event exchange, if anything is bound to that.
    fn event_listeners(&self) -> Option<&str> {
        let vhost = self.options().event_vhost.as_deref()?;
        let view = self.view();
        let exchange = view.exchange(vhost, EVENT_EXCHANGE)?;
        (exchange.binding_count() > 0).then_some(vhost)
    }

    fn tell(&self, vhost: &str, happening: Happening) {
        let Timestamp(now) = self.node().wall();
        let ms = i64::try_from(now).unwrap_or(i64::MAX);
        let headers = happening.headers.with("timestamp_in_ms", ms);
        let properties = PropertiesBuilder::new()
            .headers(&headers)
            .delivery_mode(2)
            .timestamp(now / 1000);
        self.node().notices.send(Notice {
            vhost: vhost.into(),
            exchange: EVENT_EXCHANGE,
            routing_key: happening.key.into(),
            properties: PropertiesBuf::amqp091(properties.encode()),
            body: Vec::new(),
        });
    }
}
