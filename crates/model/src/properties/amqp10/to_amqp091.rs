//! A message of AMQP 1.0, or whatever stands in a stream, as one of AMQP 0-9-1.

use super::raw::{Raw, Values};
use super::sections::{Body, Sections};
use super::{AMQP10_TYPE, X_BASIC, X_CC, X_EXCHANGE, X_ROUTING_KEY, is_short_text, text_of};
use crate::limits::Limits;
use crate::properties::PropertiesBuilder;
use crate::table::{Table, Value};
use std::borrow::Cow;

/// The header that says where in its stream a message stands.
pub const X_STREAM_OFFSET: &str = "x-stream-offset";

/// A message as consumers of AMQP 0-9-1 are to get it.
#[derive(Clone, Debug, PartialEq)]
pub struct FromStream<'a> {
    /// The exchange that it was published to; `None` if it came over another protocol.
    pub exchange: Option<&'a [u8]>,
    /// The routing key that it was published with.
    pub routing_key: Option<&'a [u8]>,
    /// Its properties.
    pub properties: PropertiesBuilder,
    /// Its body.
    pub body: Cow<'a, [u8]>,
}

/// What a consumer of AMQP 0-9-1 gets of the message at this offset. Headers are sorted by their names, as RabbitMQ does it for
/// streams, and one of them is [`X_STREAM_OFFSET`]. What is no message of AMQP 1.0 at all is a body without properties. Headers
/// beyond `limits` are left out.
pub fn read<'a>(bytes: &'a [u8], offset: u64, limits: &Limits) -> FromStream<'a> {
    match Sections::read(bytes) {
        Ok(sections) => of_sections(&sections, offset, limits),
        Err(_) => FromStream {
            exchange: None,
            routing_key: None,
            properties: PropertiesBuilder::new()
                .delivery_mode(2)
                .headers(&Table::new().with(X_STREAM_OFFSET, offset as i64)),
            body: Cow::Borrowed(bytes),
        },
    }
}

fn of_sections<'a>(sections: &Sections<'a>, offset: u64, limits: &Limits) -> FromStream<'a> {
    let mut annotations = Annotations::default();
    let mut headers = Headers {
        table: Table::new(),
        left: limits.table_entries.min(Limits::default().table_entries),
        depth: limits.table_depth.min(Limits::default().table_depth),
    };
    headers.push(X_STREAM_OFFSET.as_bytes(), Raw::Long(offset as i64));
    for (name, value) in sections.annotations.entries().take(headers.left) {
        if let Some(name) = name.text().filter(|name| name.starts_with(b"x-")) {
            annotation(name, value, &mut annotations, &mut headers);
        }
    }
    let mut it = with_header(sections.header, &annotations);
    it = with_properties(it, sections.properties, &mut headers);
    for (name, value) in sections.application.entries().take(headers.left) {
        if let Some(name) = name.text() {
            headers.push(name, value);
        }
    }
    let kind = match sections.body {
        Body::Encoded(_) => Some(AMQP10_TYPE),
        Body::Data(_) | Body::Pieces(_) => annotations.kind,
    };
    if let Some(kind) = kind {
        it = it.kind(kind);
    }
    FromStream {
        exchange: annotations.exchange,
        routing_key: annotations.routing_key,
        properties: it.headers(&headers.sorted()),
        body: sections.body.bytes(),
    }
}

/// What annotations say that is no header.
#[derive(Default)]
struct Annotations<'a> {
    exchange: Option<&'a [u8]>,
    routing_key: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
    expiration: Option<&'a [u8]>,
    delivery_mode: Option<u8>,
    priority: Option<u8>,
}

fn annotation<'a>(name: &[u8], value: Raw<'a>, to: &mut Annotations<'a>, headers: &mut Headers) {
    let octet = match value {
        Raw::Ubyte(octet) => Some(octet),
        _ => None,
    };
    match name {
        X_EXCHANGE => to.exchange = value.text(),
        X_ROUTING_KEY => to.routing_key = value.text(),
        b"x-basic-type" => to.kind = value.text(),
        b"x-basic-expiration" => to.expiration = value.text(),
        // Written by versions before 4.0, which had no header.
        b"x-basic-delivery-mode" => to.delivery_mode = octet,
        b"x-basic-priority" => to.priority = octet,
        X_CC => headers.push(b"CC", value),
        b"x-opt-rabbitmq-received-time" => {
            if let Raw::Timestamp(ms) = value {
                headers.push(b"timestamp_in_ms", Raw::Long(ms));
            }
        }
        name if name.starts_with(X_BASIC) => {}
        name => headers.push(name, value),
    }
}

fn with_header(mut header: Values<'_>, annotations: &Annotations<'_>) -> PropertiesBuilder {
    let (durable, priority, ttl) = (header.next(), header.next(), header.next());
    let mode = match durable {
        Some(Raw::Boolean(false)) => 1,
        Some(Raw::Boolean(true)) => 2,
        // What says nothing about it is in a stream all the same.
        _ => annotations.delivery_mode.unwrap_or(2),
    };
    let mut it = PropertiesBuilder::new().delivery_mode(mode);
    let priority = match priority {
        Some(Raw::Ubyte(priority)) => Some(priority),
        _ => annotations.priority,
    };
    if let Some(priority) = priority {
        it = it.priority(priority);
    }
    match (ttl, annotations.expiration) {
        (Some(Raw::Uint(ms)), _) => it.expiration(ms.to_string()),
        (_, Some(text)) => it.expiration(text),
        _ => it,
    }
}

fn with_properties(
    mut it: PropertiesBuilder,
    mut properties: Values<'_>,
    headers: &mut Headers,
) -> PropertiesBuilder {
    // In the order of AMQP 1.0, 3.2.4.
    let message_id = properties.next();
    let user_id = properties.next();
    let (_to, _subject) = (properties.next(), properties.next());
    let reply_to = properties.next();
    let correlation_id = properties.next();
    let (content_type, content_encoding) = (properties.next(), properties.next());
    let _absolute_expiry_time = properties.next();
    let creation_time = properties.next();
    let group_id = properties.next();

    let short = |value: Option<Raw<'_>>| match value {
        Some(Raw::Str(text)) if text.len() <= 255 => Some(text.to_vec()),
        _ => None,
    };
    let symbol = |value: Option<Raw<'_>>| value.and_then(Raw::text).map(<[u8]>::to_vec);
    if let Some(id) = id(message_id, b"x-message-id", headers) {
        it = it.message_id(id);
    }
    if let Some(Raw::Binary(user)) = user_id
        && is_short_text(user)
    {
        it = it.user_id(user);
    }
    if let Some(text) = short(reply_to) {
        it = it.reply_to(text);
    }
    if let Some(id) = id(correlation_id, b"x-correlation-id", headers) {
        it = it.correlation_id(id);
    }
    if let Some(text) = symbol(content_type) {
        it = it.content_type(text);
    }
    if let Some(text) = symbol(content_encoding) {
        it = it.content_encoding(text);
    }
    if let Some(Raw::Timestamp(ms)) = creation_time {
        it = it.timestamp(seconds(ms));
    }
    if let Some(text) = short(group_id) {
        it = it.app_id(text);
    }
    it
}

/// An id as text. What no text can be made of becomes a header.
fn id(id: Option<Raw<'_>>, header: &[u8], headers: &mut Headers) -> Option<Vec<u8>> {
    match id? {
        Raw::Uuid(uuid) => Some(text_of(uuid)),
        Raw::Ulong(number) => Some(number.to_string().into_bytes()),
        Raw::Str(text) if text.len() <= 255 => Some(text.to_vec()),
        other @ (Raw::Str(_) | Raw::Binary(_)) => {
            headers.push(header, other);
            None
        }
        _ => None,
    }
}

/// Headers as far as they are within limits.
struct Headers {
    table: Table,
    /// So many entries more, nested ones counted.
    left: usize,
    /// How deep they may nest.
    depth: usize,
}

impl Headers {
    fn push(&mut self, name: &[u8], value: Raw<'_>) {
        if name.len() <= 255
            && let Some(value) = self.value(value, 1)
        {
            self.table.push(name, value);
        }
    }

    /// The value in RabbitMQ's type for it. `None` if there is none, or no room.
    fn value(&mut self, value: Raw<'_>, depth: usize) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        if depth > self.depth {
            return None;
        }
        Some(match value {
            Raw::Null => Value::Void,
            Raw::Boolean(it) => Value::Bool(it),
            Raw::Ubyte(it) => Value::UnsignedByte(it),
            Raw::Ushort(it) => Value::UnsignedShort(it),
            Raw::Uint(it) => Value::UnsignedInt(it),
            // The upper half becomes negative, as in RabbitMQ: there is no larger type.
            Raw::Ulong(it) => Value::Long(it as i64),
            Raw::Byte(it) => Value::Byte(it),
            Raw::Short(it) => Value::Short(it),
            Raw::Int(it) => Value::SignedInt(it),
            Raw::Long(it) => Value::Long(it),
            Raw::Float(it) => Value::Float(it),
            Raw::Double(it) => Value::Double(it),
            Raw::Timestamp(ms) => Value::Timestamp(seconds(ms)),
            Raw::Binary(bytes) => Value::Binary(bytes.to_vec()),
            Raw::Str(bytes) | Raw::Symbol(bytes) => Value::LongStr(bytes.to_vec()),
            // RabbitMQ has nothing for these two.
            Raw::Char(code) => Value::LongStr(char::from_u32(code)?.to_string().into_bytes()),
            Raw::Uuid(uuid) => Value::LongStr(text_of(uuid)),
            Raw::Decimal(_) => return None,
            Raw::List(values) | Raw::Array(values) => {
                let most = self.left;
                let items = values.take(most).filter_map(|item| self.value(item, depth + 1));
                Value::Array(items.collect())
            }
            Raw::Map(_) => {
                let mut table = Table::new();
                for (name, item) in value.entries().take(self.left) {
                    if let Some(name) = name.text().filter(|name| name.len() <= 255)
                        && let Some(item) = self.value(item, depth + 1)
                    {
                        table.push(name, item);
                    }
                }
                Value::Table(table)
            }
            Raw::Described(described) => self.value(described.value(), depth + 1)?,
        })
    }

    /// By name; of several of one name the first one.
    fn sorted(self) -> Table {
        let mut last = None;
        let sorted = self.table.sorted();
        let first = sorted.iter().filter(|(name, _)| {
            let is_first = last != Some(*name);
            last = Some(*name);
            is_first
        });
        first.map(|(name, value)| (name, value.clone())).collect()
    }
}

fn seconds(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0) / 1_000
}
