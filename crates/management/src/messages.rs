//! Publishing and getting messages, for tries and repairs: nothing that an application should live on.

use crate::access::Right;
use crate::api_session::{ApiSession, CHANNEL};
use crate::arguments::{table, text};
use crate::call::Call;
use crate::exchanges::{self, real_name};
use crate::json;
use crate::queues;
use crate::refusal::{Refusal, need};
use crate::reply::Reply;
use crate::route::Route;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::{Delivery, Disposal, QueueRef, RefusalKind, Unconfirmed};
use model::properties::{BasicProperties, Properties, PropertiesBuilder};
use model::{Limits, Message, Ranges, RouteBuf, Seq};
use serde_json::{Map, Value, json};

pub const ROUTES: &[Route] = &[Route {
    path: "/exchanges/:vhost/:exchange/publish",
    verbs: &[("POST", Right::Vhost, publish)],
}];

/// How many messages one request gets at the most.
const MESSAGES: u64 = 10_000;
/// How many bytes of bodies one request gets at the most, and one message more.
const BODIES: usize = 64 * 1024 * 1024;

/// The strings among the properties, as JSON names them.
const STRINGS: [&str; 10] = [
    "content_type",
    "content_encoding",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
];

fn publish(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    need(
        &body,
        &["properties", "routing_key", "payload", "payload_encoding"],
    )?;
    call.target_vhost()?;
    exchanges::find(call).map_err(|_| Refusal::Missing("exchange_not_found".into()))?;
    let limits = call.api.broker.limits();
    let properties = properties(&body, limits)?;
    let routing_key = text(&body, "routing_key")?.unwrap_or_default();
    if routing_key.len() > 255 {
        return Err(Refusal::bad_request("routing_key is longer than 255 bytes"));
    }
    let payload = payload(&body)?;
    if payload.len() as u64 > limits.message_bytes {
        return Err(Refusal::bad_request(format!(
            "message size {} is larger than configured max size {}",
            payload.len(),
            limits.message_bytes
        )));
    }
    let session = ApiSession::open(call)?;
    session
        .inner()
        .may_route(CHANNEL)
        .map_err(|refusal| with_code(&refusal))?;
    let mut publisher = session.inner().publisher(CHANNEL, 1);
    let route = RouteBuf::new(
        real_name(call.part("exchange")).as_bytes(),
        routing_key.as_bytes(),
    );
    let properties = Properties::amqp091(&properties);
    let message = Message::new(route.as_route(), properties, &payload);
    let taken = publisher
        .publish(&message, Some(1))
        .map_err(|refusal| match with_code(&refusal) {
            // With the reply code before it, and as a bad request: RabbitMQ's channel was closed.
            Refusal::NotAuthorised(reason) => Refusal::bad_request(format!("403 {reason}")),
            other => other,
        })?;
    publisher.flush();
    let mut awaited = Unconfirmed::default();
    awaited.published(taken.queues);
    let mut refused = false;
    session.await_confirms(&mut awaited, |_, safe| refused |= !safe)?;
    if let Some(vhost) = call.view.vhost(call.part("vhost")) {
        let stats = call.api.broker.stats();
        stats.published(&vhost.name, payload.len(), taken.is_lost(), refused);
    }
    if refused {
        return Err(Refusal::bad_request("rejected"));
    }
    Ok(Reply::json(&json!({"routed": !taken.is_lost()})))
}

fn payload(body: &Map<String, Value>) -> Result<Vec<u8>, Refusal> {
    let payload = text(body, "payload")
        .map_err(|_| Refusal::bad_request("payload_not_string"))?
        .unwrap_or_default();
    match text(body, "payload_encoding")?.unwrap_or_default() {
        "string" => Ok(payload.as_bytes().to_vec()),
        "base64" => STANDARD
            .decode(payload)
            .map_err(|_| Refusal::BadRequest(json!(["not_base64", payload]))),
        other => Err(Refusal::BadRequest(json!(["unsupported_encoding", other]))),
    }
}

/// The encoded properties; members that AMQP has no property for are passed over, as RabbitMQ does.
fn properties(body: &Map<String, Value>, limits: &Limits) -> Result<Vec<u8>, Refusal> {
    let given = match body.get("properties") {
        Some(Value::Object(map)) => map.clone(),
        Some(Value::Array(items)) if items.is_empty() => Map::new(),
        _ => return Err(Refusal::bad_request("properties is not an object")),
    };
    let mut built = PropertiesBuilder::new();
    for name in STRINGS {
        let Some(value) = given.get(name) else {
            continue;
        };
        let wrong = || Refusal::BadRequest(json!(["not_string", name]));
        let value = value
            .as_str()
            .filter(|value| value.len() <= 255)
            .ok_or_else(wrong)?;
        built = match name {
            "content_type" => built.content_type(value),
            "content_encoding" => built.content_encoding(value),
            "correlation_id" => built.correlation_id(value),
            "reply_to" => built.reply_to(value),
            "expiration" => built.expiration(value),
            "message_id" => built.message_id(value),
            "type" => built.kind(value),
            "user_id" => built.user_id(value),
            "app_id" => built.app_id(value),
            _ => built.cluster_id(value),
        };
    }
    let whole = |name: &'static str, most: u64| match given.get(name) {
        None => Ok(None),
        Some(value) => match value.as_u64().filter(|value| *value <= most) {
            Some(value) => Ok(Some(value)),
            None => Err(Refusal::BadRequest(json!(["not_int", name]))),
        },
    };
    if let Some(mode) = whole("delivery_mode", 2)? {
        built = built.delivery_mode(mode as u8);
    }
    if let Some(priority) = whole("priority", 255)? {
        built = built.priority(priority as u8);
    }
    if let Some(seconds) = whole("timestamp", u64::MAX)? {
        built = built.timestamp(seconds);
    }
    if given.contains_key("headers") {
        built = built.headers(&table(&given, "headers", limits)?);
    }
    Ok(built.encode())
}

/// What becomes of messages that were shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They stay where they are.
    Keep,
    /// They are taken out of their queue.
    Take(Disposal),
}

/// How messages are to be shown.
pub struct Shown {
    /// At most so many.
    pub count: u64,
    /// Bodies as base64, also if they are text.
    pub base64: bool,
    /// At most so many bytes of each body.
    pub truncate: usize,
}

/// What is asked for.
pub struct GetRequest {
    /// What becomes of them.
    pub mode: Mode,
    shown: Shown,
}

impl GetRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// A member is missing, or makes no sense.
    pub fn of(body: &Map<String, Value>) -> Result<Self, Refusal> {
        need(body, &["ackmode", "count", "encoding"])?;
        let mode = match text(body, "ackmode")?.unwrap_or_default() {
            "ack_requeue_true" | "reject_requeue_true" => Mode::Keep,
            "ack_requeue_false" => Mode::Take(Disposal::Accepted),
            "reject_requeue_false" => Mode::Take(Disposal::Rejected),
            other => {
                return Err(Refusal::bad_request(format!(
                    "Invalid ackmode value: {other}. Valid values are: ack_requeue_true, ack_requeue_false, \
                     reject_requeue_true, reject_requeue_false"
                )));
            }
        };
        let shown = Shown::of(body)?;
        Ok(Self { mode, shown })
    }
}

impl Shown {
    /// Reads a body that has `count` and `encoding`.
    ///
    /// # Errors
    /// A member makes no sense.
    pub fn of(body: &Map<String, Value>) -> Result<Self, Refusal> {
        let refused = |value: &Value| Refusal::BadRequest(json!(["not_integer", value]));
        let number = |name: &str| match body.get(name) {
            None => Ok(None),
            Some(value) => whole(value).map(Some).ok_or_else(|| refused(value)),
        };
        let base64 = match text(body, "encoding")?.unwrap_or_default() {
            "auto" => false,
            "base64" => true,
            _ => {
                return Err(Refusal::bad_request(
                    "Unsupported encoding. Please use auto or base64.",
                ));
            }
        };
        // RabbitMQ counts down to 0, so that a negative number is every message that there is.
        let count = number("count")?.unwrap_or(0);
        let truncate = match number("truncate")? {
            None => usize::MAX,
            // RabbitMQ fails at a negative one with a 500.
            Some(bytes) => usize::try_from(bytes).map_err(|_| refused(&json!(bytes)))?,
        };
        Ok(Self {
            count: u64::try_from(count).unwrap_or(u64::MAX).min(MESSAGES),
            base64,
            truncate,
        })
    }
}

/// A number as RabbitMQ takes it: whole, with a fraction that is cut off, or as text.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|it| it as i64)),
        _ => None,
    }
}

/// Gets messages from a queue.
///
/// # Errors
/// There is no such queue, it is one of which nothing is got, the asker may not, or the body makes no sense.
pub fn get(call: &Call<'_>) -> Result<Reply, Refusal> {
    queues::find(call).map_err(|_| Refusal::Missing("queue_not_found".into()))?;
    let asked = GetRequest::of(&call.json()?)?;
    let session = ApiSession::open(call)?;
    // As in RabbitMQ, these are gone from the queue as they come; whoever has them rejected gets them first.
    let no_ack = asked.mode == Mode::Take(Disposal::Accepted);
    let vhost = call.vhost()?.name.clone();
    let stats = call.api.broker.stats();
    let mut held = Held::shown();
    let mut shown = Vec::new();
    let mut bytes = 0;
    while (shown.len() as u64) < asked.shown.count && bytes < BODIES {
        let found = next(&session, call.part("name"), no_ack)?;
        stats.got(
            &vhost,
            no_ack,
            found.as_ref().map(|(delivery, ..)| delivery.redelivered),
        );
        let Some((delivery, remaining, queue)) = found else {
            break;
        };
        let (Some(seq), queue) = (delivery.seqs.first(), queue) else {
            break;
        };
        let message = delivery.block.message((seq - delivery.base) as usize);
        bytes += message.body.len();
        shown.push(row(
            &message,
            delivery.redelivered,
            remaining,
            &asked.shown,
            &Limits::STORED,
        ));
        match asked.mode {
            Mode::Take(Disposal::Accepted) => {}
            Mode::Take(disposal) => queue.settle(None, Ranges::one(seq), disposal),
            Mode::Keep => held.hold(&queue, seq),
        }
    }
    drop(held);
    Ok(Reply::json(&Value::Array(shown)))
}

/// Messages that go back to their queue, whatever happens.
struct Held {
    queue: Option<QueueRef>,
    seqs: Ranges,
}

impl Held {
    /// None yet. Somebody is shown them: their deliveries count.
    fn shown() -> Self {
        Self {
            queue: None,
            seqs: Ranges::new(),
        }
    }

    /// One more.
    fn hold(&mut self, queue: &QueueRef, seq: Seq) {
        self.seqs.push(seq);
        self.queue.get_or_insert_with(|| queue.clone());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.give_back(None, std::mem::take(&mut self.seqs), true);
        }
    }
}

/// Where RabbitMQ publishes and gets on a channel, it says with which code that was closed.
fn with_code(refusal: &broker::Refusal) -> Refusal {
    match refusal.kind() {
        RefusalKind::ResourceLocked => Refusal::bad_request(format!("405 RESOURCE_LOCKED - {refusal}")),
        RefusalKind::PreconditionFailed => {
            Refusal::bad_request(format!("406 PRECONDITION_FAILED - {refusal}"))
        }
        _ => told(refusal),
    }
}

/// Here RabbitMQ says which permission is missing.
pub fn told(refusal: &broker::Refusal) -> Refusal {
    match refusal.kind() {
        RefusalKind::AccessRefused => Refusal::NotAuthorised(format!("ACCESS_REFUSED - {refusal}")),
        _ => Refusal::of_broker(refusal),
    }
}

/// The next message, and how many are ready after it. With `no_ack` it is gone from the queue then.
pub fn next(
    session: &ApiSession,
    queue: &str,
    no_ack: bool,
) -> Result<Option<(Delivery, u64, QueueRef)>, Refusal> {
    let asked = session.inner().get(CHANNEL, queue, no_ack);
    let (queue, question) = asked.map_err(|refusal| with_code(&refusal))?;
    let got = session.inner().got(&queue, session.answer(question)?);
    let got = got.map_err(|refusal| with_code(&refusal))?;
    Ok(got.map(|(delivery, remaining)| (delivery, remaining, queue)))
}

fn row(message: &Message<'_>, redelivered: bool, remaining: u64, shown: &Shown, limits: &Limits) -> Value {
    let mut row = described(message, shown.base64, shown.truncate, limits);
    row.insert("redelivered".into(), redelivered.into());
    row.insert("message_count".into(), remaining.into());
    Value::Object(row)
}

/// What a message itself says; of its body the first `truncate` bytes.
pub fn described(
    message: &Message<'_>,
    base64: bool,
    truncate: usize,
    limits: &Limits,
) -> Map<String, Value> {
    let part = &message.body[..message.body.len().min(truncate)];
    let (payload, encoding) = match std::str::from_utf8(part) {
        Ok(text) if !base64 => (text.to_owned(), "string"),
        _ => (STANDARD.encode(part), "base64"),
    };
    let mut row = Map::new();
    row.insert("payload_bytes".into(), message.body.len().into());
    row.insert("exchange".into(), json::text(message.exchange()).into());
    row.insert("routing_key".into(), json::text(message.routing_key()).into());
    row.insert("properties".into(), shown_properties(message.properties, limits));
    row.insert("payload".into(), payload.into());
    row.insert("payload_encoding".into(), encoding.into());
    row
}

/// Properties as an object; none are an empty list, as from RabbitMQ.
pub fn shown_properties(properties: Properties<'_>, limits: &Limits) -> Value {
    let bytes = properties.to_amqp091();
    let given = BasicProperties::new(&bytes);
    let mut map = Map::new();
    let strings = [
        given.content_type(),
        given.content_encoding(),
        given.correlation_id(),
        given.reply_to(),
        given.expiration(),
        given.message_id(),
        given.kind(),
        given.user_id(),
        given.app_id(),
        given.cluster_id(),
    ];
    for (name, value) in STRINGS.into_iter().zip(strings) {
        if let Some(value) = value {
            map.insert(name.into(), json::text(value).into());
        }
    }
    let numbers = [
        ("delivery_mode", given.delivery_mode().map(u64::from)),
        ("priority", given.priority().map(u64::from)),
        ("timestamp", given.timestamp()),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            map.insert(name.into(), value.into());
        }
    }
    if given.headers().is_some()
        && let Ok(headers) = given.headers_table(limits)
    {
        map.insert("headers".into(), json::table(&headers));
    }
    match map.is_empty() {
        true => json!([]),
        false => Value::Object(map),
    }
}
