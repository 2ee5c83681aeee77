//! What happened on this node, for those who watch it, directly or by the event exchange (RabbitMQ's plugin of that name).
//!
//! Key and headers of an event are RabbitMQ's; the body is empty. Nothing is put together while nobody has bound anything.

pub mod firehose;
pub mod notices;
pub mod watchers;

use crate::events::notices::{Notice, Notices};
use crate::events::watchers::{Occurrence, Watchers};
use catalog::View;
use model::properties::{PropertiesBuf, PropertiesBuilder};
use model::table::{Table, Value};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use storage::World;

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

/// Who is told what happens, and what else the node publishes.
pub struct Events {
    world: Arc<dyn World>,
    /// The event exchange's virtual host, if the node has such an exchange.
    vhost: Option<Arc<str>>,
    /// Something is bound to the event exchange.
    listening: AtomicBool,
    /// Those who watch without an exchange.
    pub watchers: Watchers,
    /// What waits to be published by the node.
    pub notices: Notices,
}

impl Events {
    /// Nobody is told yet.
    pub fn new(world: Arc<dyn World>, vhost: Option<&str>) -> Self {
        Self {
            world,
            vhost: vhost.map(Into::into),
            listening: AtomicBool::new(false),
            watchers: Watchers::default(),
            notices: Notices::default(),
        }
    }

    /// Looks whether anything is bound to the event exchange now.
    pub fn look_for_listeners(&self, view: &View) {
        let Some(vhost) = &self.vhost else { return };
        let exchange = view.exchange(vhost, EVENT_EXCHANGE);
        let listening = exchange.is_some_and(|exchange| exchange.binding_count() > 0);
        self.listening.store(listening, Ordering::Relaxed);
    }

    /// True if the node is to tell what happens, though perhaps nobody listens.
    pub fn is_watched(&self) -> bool {
        self.vhost.is_some() || self.watchers.any()
    }

    /// Tells those who watch, if there are any; `happening` is called only then.
    pub fn happened(&self, happening: impl FnOnce() -> Happening) {
        let listening = self.listening.load(Ordering::Relaxed);
        let watched = self.watchers.any();
        if !listening && !watched {
            return;
        }
        let happening = happening();
        if watched {
            self.watchers.tell(&Occurrence {
                key: happening.key,
                at_ms: self.world.wall_ms(),
                headers: Arc::new(happening.headers.clone()),
            });
        }
        if let Some(vhost) = self.vhost.as_ref().filter(|_| listening) {
            self.tell(vhost, happening);
        }
    }

    fn tell(&self, vhost: &Arc<str>, happening: Happening) {
        let now = self.world.wall_ms();
        let ms = i64::try_from(now).unwrap_or(i64::MAX);
        let headers = happening.headers.with("timestamp_in_ms", ms);
        let properties = PropertiesBuilder::new()
            .headers(&headers)
            .delivery_mode(2)
            .timestamp(now / 1000);
        self.notices.send(Notice {
            vhost: vhost.clone(),
            exchange: EVENT_EXCHANGE,
            routing_key: happening.key.into(),
            properties: PropertiesBuf::amqp091(properties.encode()),
            body: Vec::new(),
        });
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("events")
    }
}
