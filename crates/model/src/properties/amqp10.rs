//! Messages of AMQP 1.0, as streams hold them: RabbitMQ's clients of the stream protocol write them, and what is published over
//! AMQP 0-9-1 is stored so, that both read what the other one wrote.
//!
//! A message is a row of sections (AMQP 1.0, part 3, section 3.2), each a described type: header, annotations, properties,
//! application properties, body and footer. What is what on the other side is RabbitMQ's mapping (4.x, `mc_amqpl` and
//! `mc_amqp`), in [`write`](from_amqp091) and [`read`](to_amqp091):
//!
//! | AMQP 0-9-1 | AMQP 1.0 |
//! |---|---|
//! | delivery mode, priority, expiration | header: `durable`, `priority`, `ttl` |
//! | ids, reply-to, user id, timestamp, content type and encoding | properties of these names |
//! | app id | property `group-id` |
//! | type | annotation `x-basic-type` |
//! | headers that begin with `x-` | annotations |
//! | `CC` | annotation `x-cc` |
//! | other headers of simple types | application properties |
//! | exchange and routing key | annotations `x-exchange` and `x-routing-key` |
//! | body | one data section |
//!
//! What has no place on the other side is left out, as there: of AMQP 0-9-1 the cluster id and headers with arrays or
//! tables whose names do not begin with `x-`; of AMQP 1.0 `to`, `subject` and the like, delivery annotations, and
//! annotations whose names do not begin with `x-`.
//! A body that is no data comes out as it is encoded, with the type `amqp-1.0`, and goes in again so.
//!
//! Reading order: [`raw`] (the types), [`sections`], [`from_amqp091`], [`to_amqp091`].

pub mod from_amqp091;
pub mod raw;
pub mod sections;
#[cfg(test)]
mod tests;
pub mod to_amqp091;

pub use from_amqp091::write;
pub use raw::{Amqp10Error, Raw};
pub use sections::{Body, Sections};
pub use to_amqp091::{FromStream, read};

/// The type of a message of AMQP 0-9-1 whose body is encoded in AMQP 1.0.
const AMQP10_TYPE: &[u8] = b"amqp-1.0";

/// Annotations that the broker writes.
const X_EXCHANGE: &[u8] = b"x-exchange";
const X_ROUTING_KEY: &[u8] = b"x-routing-key";
const X_CC: &[u8] = b"x-cc";
/// Begins the names of annotations that are properties of AMQP 0-9-1.
const X_BASIC: &[u8] = b"x-basic-";

/// What precedes a UUID that is an id in AMQP 1.0 and a text in AMQP 0-9-1.
const URN_UUID: &[u8] = b"urn:uuid:";

/// The descriptors of the sections (AMQP 1.0, 3.2).
mod descriptor {
    pub const HEADER: u64 = 0x70;
    pub const DELIVERY_ANNOTATIONS: u64 = 0x71;
    pub const MESSAGE_ANNOTATIONS: u64 = 0x72;
    pub const PROPERTIES: u64 = 0x73;
    pub const APPLICATION_PROPERTIES: u64 = 0x74;
    pub const DATA: u64 = 0x75;
    pub const SEQUENCE: u64 = 0x76;
    pub const VALUE: u64 = 0x77;
    pub const FOOTER: u64 = 0x78;
}

/// A text that AMQP 0-9-1 has for UUIDs, in RabbitMQ's only form of it, so that it comes back as it was.
fn uuid_of(text: &[u8]) -> Option<[u8; 16]> {
    let text = text.strip_prefix(URN_UUID)?;
    let (mut uuid, mut at) = ([0; 16], 0);
    for (position, octet) in uuid.iter_mut().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            (*text.get(at)? == b'-').then_some(())?;
            at += 1;
        }
        *octet = digit(*text.get(at)?)? << 4 | digit(*text.get(at + 1)?)?;
        at += 2;
    }
    (at == text.len()).then_some(uuid)
}

fn digit(octet: u8) -> Option<u8> {
    match octet {
        b'0'..=b'9' => Some(octet - b'0'),
        b'a'..=b'f' => Some(octet - b'a' + 10),
        _ => None,
    }
}

fn text_of(uuid: [u8; 16]) -> Vec<u8> {
    let mut text = URN_UUID.to_vec();
    for (position, octet) in uuid.iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            text.push(b'-');
        }
        for half in [octet >> 4, octet & 0xf] {
            text.push(b"0123456789abcdef"[usize::from(half)]);
        }
    }
    text
}

/// UTF-8 that fits into a short string of AMQP 0-9-1, without a zero: what RabbitMQ holds for text.
fn is_short_text(bytes: &[u8]) -> bool {
    bytes.len() <= 255 && std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}
