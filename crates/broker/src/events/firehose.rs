//! The firehose: copies of all messages that come into and leave a traced virtual host (RabbitMQ's `rabbitmqctl trace_on`).
//!
//! They go to `amq.rabbitmq.trace` of the same virtual host, as `publish.<exchange>` and `deliver.<queue>`. Tracing ends with
//! the process, as RabbitMQ's does.

use crate::events::notices::{Notice, Notices};
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

    /// Begins or ends tracing a virtual host. Returns whether it was traced before.
    pub(crate) fn trace(&self, vhost: &str, on: bool) -> bool {
        self.of(vhost).0.swap(on, Ordering::Relaxed)
    }

    /// The virtual host is gone.
    pub(crate) fn forget(&self, vhost: &str) {
        self.lock().remove(vhost);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Traced>> {
        self.vhosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose message is copied.
pub(crate) struct Party<'a> {
    pub node: &'a str,
    pub vhost: &'a Arc<str>,
    pub user: &'a str,
    /// The connection's name.
    pub connection: &'a str,
    /// AMQP's number.
    pub channel: u16,
}

/// Copies a message that came in, and goes to these queues.
#[cold]
pub(crate) fn published<'q>(
    notices: &Notices,
    from: &Party<'_>,
    message: &Message<'_>,
    queues: impl Iterator<Item = &'q str>,
) {
    if message.exchange() == TRACE_EXCHANGE.as_bytes() {
        return;
    }
    let headers = headers(message, from.node)
        .with("vhost", &**from.vhost)
        .with("connection", from.connection)
        .with("channel", i32::from(from.channel))
        .with("user", from.user)
        .with("routed_queues", queues.map(Value::from).collect::<Vec<_>>());
    let key = [b"publish", message.exchange()];
    notices.send(notice(from.vhost, key, &headers, message.body));
}

/// Copies a message that leaves for a client.
#[cold]
pub(crate) fn delivered(
    notices: &Notices,
    to: &Party<'_>,
    queue: &str,
    redelivered: bool,
    message: &Message<'_>,
) {
    if message.exchange() == TRACE_EXCHANGE.as_bytes() {
        return;
    }
    let headers = headers(message, to.node)
        .with("redelivered", i32::from(redelivered))
        .with("vhost", &**to.vhost)
        .with("connection", to.connection)
        .with("channel", i32::from(to.channel))
        .with("user", to.user);
    let key = [b"deliver", queue.as_bytes()];
    notices.send(notice(to.vhost, key, &headers, message.body));
}

fn notice(vhost: &Arc<str>, key: [&[u8]; 2], headers: &Table, body: &[u8]) -> Notice {
    Notice {
        vhost: vhost.clone(),
        exchange: TRACE_EXCHANGE,
        routing_key: key.join(&b'.'),
        properties: PropertiesBuf::amqp091(PropertiesBuilder::new().headers(headers).encode()),
        body: body.into(),
    }
}

/// What is told of a message either way.
fn headers(message: &Message<'_>, node: &str) -> Table {
    let text = |bytes: &[u8]| Value::LongStr(bytes.into());
    Table::new()
        .with("exchange_name", text(message.exchange()))
        .with("routing_keys", vec![text(message.routing_key())])
        .with("properties", properties(message.properties))
        .with("node", node)
}

fn properties(properties: Properties<'_>) -> Table {
    let properties = properties.to_amqp091();
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
        let headers = properties.headers_table(&Limits::STORED).unwrap_or_default();
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
