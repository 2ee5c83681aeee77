//! A message of AMQP 0-9-1 as one of AMQP 1.0.

use super::raw::{
    put_binary, put_boolean, put_descriptor, put_fixed, put_list, put_map, put_null, put_str, put_symbol,
    put_uint,
};
use super::{
    AMQP10_TYPE, X_BASIC, X_CC, X_EXCHANGE, X_ROUTING_KEY, descriptor, is_short_text, sections, uuid_of,
};
use crate::expiration::expiration_ms;
use crate::properties::BasicProperties;
use crate::route::Route;
use crate::table::raw::{Entries, Items, RawValue};

/// Headers that nest deeper than this are cut there. What clients send is limited to less.
const DEEPEST: usize = 64;

/// Appends the message's sections. Headers are taken as far as they can be read.
pub fn write(route: Route<'_>, properties: BasicProperties<'_>, message: &[u8], out: &mut Vec<u8>) {
    header(properties, out);
    annotations(route, properties, out);
    bare_properties(properties, out);
    application_properties(properties, out);
    let is_encoded = properties.kind() == Some(AMQP10_TYPE) && sections::body(message).is_ok();
    if is_encoded {
        out.extend_from_slice(message);
    } else {
        put_descriptor(out, descriptor::DATA);
        put_binary(out, message);
    }
}

/// Always written, as RabbitMQ does: without it a message counts as durable.
fn header(properties: BasicProperties<'_>, out: &mut Vec<u8>) {
    put_descriptor(out, descriptor::HEADER);
    put_list(out, |out| {
        put_boolean(out, properties.persistent());
        match properties.priority() {
            Some(priority) => put_fixed(out, 0x50, &[priority]),
            None => put_null(out),
        }
        match ttl(properties) {
            Some(ttl) => put_uint(out, ttl),
            None => put_null(out),
        }
        // Nobody has had it before.
        put_boolean(out, true);
        4
    });
}

/// The time to live, if it fits into the field for it.
fn ttl(properties: BasicProperties<'_>) -> Option<u32> {
    u32::try_from(expiration_ms(properties.expiration()?).ok()?).ok()
}

fn annotations(route: Route<'_>, properties: BasicProperties<'_>, out: &mut Vec<u8>) {
    put_descriptor(out, descriptor::MESSAGE_ANNOTATIONS);
    put_map(out, |out| {
        let mut count = 0;
        for (name, text) in [
            (X_EXCHANGE, Some(route.exchange())),
            (X_ROUTING_KEY, Some(route.routing_key())),
            (b"x-basic-type", properties.kind()),
            (
                b"x-basic-expiration",
                properties.expiration().filter(|_| ttl(properties).is_none()),
            ),
        ] {
            if let Some(text) = text {
                put_symbol(out, name);
                put_str(out, text);
                count += 2;
            }
        }
        for (name, value) in headers(properties) {
            match (name, value) {
                // The broker's own count.
                (X_EXCHANGE | X_ROUTING_KEY, _) => continue,
                (name, _) if name.starts_with(X_BASIC) => continue,
                (name, _) if name.starts_with(b"x-") => put_symbol(out, name),
                (b"CC", RawValue::Array(_)) => put_symbol(out, X_CC),
                _ => continue,
            }
            value_of(value, out, 0);
            count += 2;
        }
        count
    });
}

/// From `message-id` to `group-id`; nothing if there is none of them.
fn bare_properties(properties: BasicProperties<'_>, out: &mut Vec<u8>) {
    let at = out.len();
    put_descriptor(out, descriptor::PROPERTIES);
    let mut used = 0;
    put_list(out, |out| {
        let mut field = |number: u32, bytes: Option<&[u8]>, put: fn(&mut Vec<u8>, &[u8])| match bytes {
            Some(bytes) => {
                put(out, bytes);
                used = number;
            }
            None => put_null(out),
        };
        field(1, properties.message_id(), put_id);
        field(2, properties.user_id(), put_binary);
        // `to` and `subject`
        field(3, None, put_str);
        field(4, None, put_str);
        field(5, properties.reply_to(), put_str);
        field(6, properties.correlation_id(), put_id);
        field(7, properties.content_type(), put_symbol);
        field(8, properties.content_encoding(), put_symbol);
        // `absolute-expiry-time`
        field(9, None, put_str);
        let time = properties.timestamp().map(milliseconds);
        field(10, time.as_ref().map(|time| &time[..]), |out, time| {
            put_fixed(out, 0x83, time);
        });
        field(11, properties.app_id(), put_str);
        // A null is one byte, and those at the end may be left out.
        out.truncate(out.len() - (11 - used) as usize);
        used
    });
    if used == 0 {
        out.truncate(at);
    }
}

fn put_id(out: &mut Vec<u8>, id: &[u8]) {
    match uuid_of(id) {
        Some(uuid) => put_fixed(out, 0x98, &uuid),
        None => put_str(out, id),
    }
}

fn milliseconds(seconds: u64) -> [u8; 8] {
    let ms = seconds.saturating_mul(1_000);
    i64::try_from(ms).unwrap_or(i64::MAX).to_be_bytes()
}

fn application_properties(properties: BasicProperties<'_>, out: &mut Vec<u8>) {
    let at = out.len();
    put_descriptor(out, descriptor::APPLICATION_PROPERTIES);
    let mut count = 0;
    put_map(out, |out| {
        for (name, value) in headers(properties) {
            if name.starts_with(b"x-") || matches!(value, RawValue::Array(_) | RawValue::Table(_)) {
                continue;
            }
            put_str(out, name);
            value_of(value, out, 0);
            count += 2;
        }
        count
    });
    if count == 0 {
        out.truncate(at);
    }
}

/// The headers up to the first one that cannot be read.
fn headers(properties: BasicProperties<'_>) -> impl Iterator<Item = (&[u8], RawValue<'_>)> {
    Entries::new(properties.headers().unwrap_or_default()).map_while(Result::ok)
}

/// A value in the type that RabbitMQ gives it. Recursion is bounded by [`DEEPEST`].
fn value_of(value: RawValue<'_>, out: &mut Vec<u8>, depth: usize) {
    match value {
        RawValue::Bool(it) => put_boolean(out, it),
        RawValue::Byte(it) => put_fixed(out, 0x51, &it.to_be_bytes()),
        RawValue::UnsignedByte(it) => put_fixed(out, 0x50, &[it]),
        RawValue::Short(it) => put_fixed(out, 0x61, &it.to_be_bytes()),
        RawValue::UnsignedShort(it) => put_fixed(out, 0x60, &it.to_be_bytes()),
        RawValue::SignedInt(it) => put_fixed(out, 0x71, &it.to_be_bytes()),
        RawValue::UnsignedInt(it) => put_uint(out, it),
        RawValue::Long(it) => put_fixed(out, 0x81, &it.to_be_bytes()),
        RawValue::Float(it) => put_fixed(out, 0x72, &it.to_be_bytes()),
        RawValue::Double(it) => put_fixed(out, 0x82, &it.to_be_bytes()),
        // RabbitMQ has no place for it. This is what it means.
        RawValue::Decimal { scale, value } => {
            let double = f64::from(value) / 10_f64.powi(i32::from(scale));
            put_fixed(out, 0x82, &double.to_be_bytes());
        }
        // Longer ones count as binary, whatever they are, as in RabbitMQ.
        RawValue::LongStr(bytes) if is_short_text(bytes) => put_str(out, bytes),
        RawValue::LongStr(bytes) | RawValue::Binary(bytes) => put_binary(out, bytes),
        RawValue::Timestamp(seconds) => put_fixed(out, 0x83, &milliseconds(seconds)),
        RawValue::Void => put_null(out),
        RawValue::Array(_) | RawValue::Table(_) if depth == DEEPEST => put_null(out),
        RawValue::Array(bytes) => put_list(out, |out| {
            let mut count = 0;
            for item in Items::new(bytes).map_while(Result::ok) {
                value_of(item, out, depth + 1);
                count += 1;
            }
            count
        }),
        RawValue::Table(bytes) => put_map(out, |out| {
            let mut count = 0;
            for (name, item) in Entries::new(bytes).map_while(Result::ok) {
                put_symbol(out, name);
                value_of(item, out, depth + 1);
                count += 2;
            }
            count
        }),
    }
}
