//! The firehose: copies of all messages that come into and leave a traced virtual host (RabbitMQ's `rabbitmqctl trace_on`).
//!
//! They go to `amq.rabbitmq.trace` of the same virtual host, as `publish.<exchange>` and `deliver.<queue>`. Tracing ends with
//! the process, as RabbitMQ's does.

use crate::broker::Broker;
use crate::notices::Notice;
use crate::session::Session;
use crate::stats::Connection;
use catalog::Refusal;
use model::properties::{BasicProperties, Properties, PropertiesBuf, PropertiesBuilder};
use model::table::{Table, Value};
use model::{Limits, Message};
use std::collections::HashMap;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// The exchange that traced messages go to. What passes through it is not traced itself.
const TRACE_EXCHANGE: &str = "amq.rabbitmq.trace";

/// Whether a virtual host is traced; shared by all who send and receive in it. One relaxed load a message.
#[derive(Clone, Debug, Default)]
pub struct Traced(Arc<AtomicBool>);

impl Traced {
    /// True if messages are to be copied.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Which virtual hosts are traced.
#[derive(Debug, Default)]
pub(crate) struct Firehose {
    vhosts: Mutex<HashMap<Arc<str>, Traced>>,
}

impl Firehose {
    pub(crate) fn of(&self, vhost: &str) -> Traced {
        let mut vhosts = self.lock();
        match vhosts.get(vhost) {
            Some(known) => known.clone(),
            None => vhosts.entry(vhost.into()).or_default().clone(),
        }
    }

    /// The virtual host is gone.
    pub(crate) fn forget(&self, vhost: &str) {
        self.lock().remove(vhost);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Traced>> {
        self.vhosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Broker {
    /// Begins or ends tracing a virtual host.
    ///
    /// # Errors
    /// There is no such virtual host.
    pub fn trace(&self, vhost: &str, on: bool) -> Result<(), Refusal> {
        if self.view().vhost(vhost).is_none() {
            return Err(Refusal::NoVhost { vhost: vhost.into() });
        }
        let before = self.firehose().of(vhost).0.swap(on, Ordering::Relaxed);
        if before != on {
            let what = if on { "enabled" } else { "disabled" };
            tracing::info!(area = "vhost", "tracing of vhost '{vhost}' is {what}");
        }
        Ok(())
    }

    /// True if the virtual host is traced.
    pub fn is_traced(&self, vhost: &str) -> bool {
        self.firehose().of(vhost).is_on()
    }

    fn send_traced(&self, vhost: &Arc<str>, key: [&[u8]; 2], headers: &Table, body: &[u8]) {
        self.node().notices.send(Notice {
            vhost: vhost.clone(),
            exchange: TRACE_EXCHANGE,
            routing_key: key.join(&b'.'),
            properties: PropertiesBuf::amqp091(PropertiesBuilder::new().headers(headers).encode()),
            body: body.into(),
        });
    }
}

/// Copies a message that came in. `channel` is AMQP's number, `queues` where it goes.
#[cold]
pub(crate) fn published<'q>(
    session: &Session,
    channel: u16,
    message: &Message<'_>,
    queues: impl Iterator<Item = &'q str>,
) {
    if message.exchange() == TRACE_EXCHANGE.as_bytes() {
        return;
    }
    let broker = session.broker();
    let seen = Seen {
        exchange: message.exchange(),
        routing_key: message.routing_key(),
        properties: message.properties,
        limits: &Limits::STORED,
    };
    let connection = session.shown();
    let name = connection
        .as_ref()
        .map_or("", |connection| connection.name.as_str());
    let headers = seen
        .headers(&broker.options().node_name)
        .with("vhost", session.vhost())
        .with("connection", name)
        .with("channel", i32::from(channel))
        .with("user", &*session.user().name)
        .with("routed_queues", queues.map(Value::from).collect::<Vec<_>>());
    broker.send_traced(
        session.vhost_name(),
        [b"publish", message.exchange()],
        &headers,
        message.body,
    );
}

/// Copies a message that leaves for a client.
#[cold]
pub(crate) fn delivered(
    broker: &Broker,
    connection: &Connection,
    channel: u16,
    queue: &str,
    redelivered: bool,
    message: Message<'_>,
) {
    if message.exchange() == TRACE_EXCHANGE.as_bytes() {
        return;
    }
    let seen = Seen {
        exchange: message.exchange(),
        routing_key: message.routing_key(),
        properties: message.properties,
        limits: &Limits::STORED,
    };
    let headers = seen
        .headers(&broker.options().node_name)
        .with("redelivered", i32::from(redelivered))
        .with("vhost", &*connection.vhost)
        .with("connection", connection.name.as_str())
        .with("channel", i32::from(channel))
        .with("user", &*connection.user);
    broker.send_traced(
        &connection.vhost,
        [b"deliver", queue.as_bytes()],
        &headers,
        message.body,
    );
}

/// What is told of a message either way.
struct Seen<'a> {
    exchange: &'a [u8],
    routing_key: &'a [u8],
    properties: Properties<'a>,
    limits: &'a Limits,
}

impl Seen<'_> {
    fn headers(&self, node_name: &str) -> Table {
        let text = |bytes: &[u8]| Value::LongStr(bytes.into());
        Table::new()
            .with("exchange_name", text(self.exchange))
            .with("routing_keys", vec![text(self.routing_key)])
            .with("properties", self.properties())
            .with("node", node_name)
    }

    fn properties(&self) -> Table {
        let properties = self.properties.to_amqp091();
        let properties = BasicProperties::new(&properties);
        let texts = [
            ("content_type", properties.content_type()),
            ("content_encoding", properties.content_encoding()),
            ("correlation_id", properties.correlation_id()),
            ("reply_to", properties.reply_to()),
            ("expiration", properties.expiration()),
            ("message_id", properties.message_id()),
            ("type", properties.kind()),
            ("user_id", properties.user_id()),
            ("app_id", properties.app_id()),
            ("cluster_id", properties.cluster_id()),
        ];
        let mut table = Table::new();
        if properties.headers().is_some() {
            let headers = properties.headers_table(self.limits).unwrap_or_default();
            table.push("headers", headers);
        }
        for (name, small) in [
            ("delivery_mode", properties.delivery_mode()),
            ("priority", properties.priority()),
        ] {
            if let Some(small) = small {
                table.push(name, i32::from(small));
            }
        }
        for (name, bytes) in texts {
            if let Some(bytes) = bytes {
                table.push(name, Value::LongStr(bytes.into()));
            }
        }
        if let Some(seconds) = properties.timestamp() {
            table.push("timestamp", i64::try_from(seconds).unwrap_or(i64::MAX));
        }
        table
    }
}
