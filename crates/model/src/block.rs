//! How messages are held: many in one piece of memory, in the form in which they are logged and delivered.
//!
//! A [`Block`] is what one socket read brought for one queue (or what one read from disk brought back): the
//! messages stand one behind the other in a single buffer, which is written to the log as it is. A queue, an
//! outbox and the log share a block by one counted reference for all of its messages, never one each.
//!
//! Each message is laid out as (little-endian)
//!
//! ```text
//! body length u32 | properties length u32 | route length u16 | flags u8 | format u8 | route | properties | body
//! ```
//!
//! `route` is a [`Route`] and `properties` are what the message came with, in the format that `format` names
//! ([`Format`]). Of a message that came by AMQP 0-9-1 these are exactly the bytes that `basic.deliver` and its header frame
//! need, so a delivery is encoded by copying and nothing is ever decoded unless somebody asks. `flags` say what the broker
//! knows of the message beyond its bytes ([`Message::flags`]); a client's publishes have none.

use crate::machine::Timestamp;
use crate::properties::{Format, Properties};
use crate::route::{Route, RouteBuf};

const HEADER: usize = 12;

/// A builder asks for no more room at once than this because the block before was as large, in bytes.
const EXPECTED_BYTES: usize = 256 * 1024;

/// More than this is not left empty behind messages that take less than it, in bytes.
const SLACK_BYTES: usize = 1024;

/// Messages of one queue in one piece of memory, immutable and shared. All have the same persistence.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    bytes: Vec<u8>,
    /// Where each message starts.
    offsets: Vec<u32>,
    body_bytes: u64,
    /// What each message has around its body.
    around: Around,
    /// One of the messages may have an expiration of its own.
    expiring: bool,
    persistent: bool,
    received: Timestamp,
}

/// How long what stands around a message's body is (header, route and properties), in bytes: 0 before the first
/// message. Messages of one publisher are mostly alike in this, and then the lengths of bodies need not be read one by
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Around(u32);

impl Around {
    /// It differs from message to message.
    const MIXED: Self = Self(u32::MAX);

    /// A message came with so much around its body.
    #[inline]
    fn note(&mut self, length: usize) {
        if self.0 as usize != length {
            *self = match self.0 {
                0 => Self(length as u32),
                _ => Self::MIXED,
            };
        }
    }

    /// The length, if it is the same for each message.
    fn same(self) -> Option<u32> {
        (self != Self::MIXED).then_some(self.0)
    }
}

/// The `x-death` header is the broker's own record, not something that a client sent (which RabbitMQ 4.0 and later ignore).
pub const DEAD_LETTERED: u8 = 1;
/// The routing keys were replaced when the message was dead-lettered: its `CC` header routes it no more, though it is still
/// shown (as in RabbitMQ).
pub const COPIES_SPENT: u8 = 2;
/// How often the message went on from one exchange that keeps something to another one on another node: a number in these bits.
pub const HOPS: u8 = 0b1110_0000;
/// One of those.
pub const HOP: u8 = 0b0010_0000;

/// One message inside a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Where it was published to.
    pub route: Route<'a>,
    /// What it says of itself, as received.
    pub properties: Properties<'a>,
    /// The body.
    pub body: &'a [u8],
    /// [`DEAD_LETTERED`], [`COPIES_SPENT`], [`HOPS`].
    pub flags: u8,
}

impl<'a> Message<'a> {
    /// As a client sent it: the broker knows nothing of it beyond its bytes.
    #[inline]
    pub fn new(route: Route<'a>, properties: Properties<'a>, body: &'a [u8]) -> Self {
        Self {
            route,
            properties,
            body,
            flags: 0,
        }
    }

    /// The name of the exchange that the message was published to; empty for the default exchange.
    pub fn exchange(&self) -> &'a [u8] {
        self.route.exchange()
    }

    /// The routing key that the message was published with.
    pub fn routing_key(&self) -> &'a [u8] {
        self.route.routing_key()
    }
}

impl Block {
    /// Reads back what [`Block::bytes`] gave. Every length is checked; `None` if the bytes are not a block
    /// (their checksum is the log's business, so this means a defect, not a torn write).
    pub fn from_bytes(bytes: Vec<u8>, persistent: bool, received: Timestamp) -> Option<Self> {
        let mut offsets = Vec::new();
        let mut body_bytes = 0;
        let mut around = Around::default();
        let mut expiring = false;
        let mut at = 0;
        while at < bytes.len() {
            offsets.push(u32::try_from(at).ok()?);
            let (message, next) = whole_message_at(&bytes, at)?;
            body_bytes += message.body.len() as u64;
            around.note(next - at - message.body.len());
            expiring |= message.properties.may_expire();
            at = next;
        }
        Some(Self {
            bytes,
            offsets,
            body_bytes,
            around,
            expiring,
            persistent,
            received,
        })
    }

    /// How many messages these bytes are; `None` if [`Block::from_bytes`] makes no block of them. Nothing is copied.
    pub fn count(bytes: &[u8]) -> Option<usize> {
        let (mut count, mut at) = (0, 0);
        while at < bytes.len() {
            u32::try_from(at).ok()?;
            (_, at) = whole_message_at(bytes, at)?;
            count += 1;
        }
        Some(count)
    }

    /// How many messages are in it; at least one for blocks from a builder that was not empty.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// True if there is no message in it.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Message number `at`, from 0.
    ///
    /// # Panics
    /// If `at` is not below [`Block::len`].
    pub fn message(&self, at: usize) -> Message<'_> {
        match message_at(&self.bytes, self.offsets[at] as usize) {
            Some((message, _)) => message,
            None => unreachable!("offsets are only made from messages that were read or written whole"),
        }
    }

    /// The encoded messages `from..from + count`, as [`Block::from_bytes`] reads them.
    pub fn slice(&self, from: usize, count: usize) -> &[u8] {
        let start = self.offsets.get(from).map_or(self.bytes.len(), |at| *at as usize);
        let end = self
            .offsets
            .get(from + count)
            .map_or(self.bytes.len(), |at| *at as usize);
        &self.bytes[start..end]
    }

    /// All messages as one piece, as [`Block::from_bytes`] reads them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The sum of the lengths of all bodies, in bytes (what `x-max-length-bytes` counts).
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The sum of the lengths of the bodies of messages `from..from + count`, in bytes.
    pub fn body_bytes_of(&self, from: usize, count: usize) -> u64 {
        if count == self.len() {
            return self.body_bytes;
        }
        if let Some(length) = self.around.same() {
            return self.slice(from, count).len() as u64 - u64::from(length) * count as u64;
        }
        (from..from + count)
            .map(|at| self.message(at).body.len() as u64)
            .sum()
    }

    /// What the block costs in memory, in bytes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.offsets.capacity() * size_of::<u32>() + size_of::<Self>() + 16
    }

    /// True if some of the messages may have the property `expiration`: only then is it worth looking.
    pub fn may_expire(&self) -> bool {
        self.expiring
    }

    /// True if the messages were published with delivery mode 2.
    pub fn persistent(&self) -> bool {
        self.persistent
    }

    /// When the node received the messages.
    pub fn received(&self) -> Timestamp {
        self.received
    }
}

/// A message of which nobody has looked yet whether its route is one.
fn whole_message_at(bytes: &[u8], at: usize) -> Option<(Message<'_>, usize)> {
    let (message, next) = message_at(bytes, at)?;
    let (_, beyond) = Route::split(message.route.as_bytes())?;
    beyond.is_empty().then_some((message, next))
}

fn message_at(bytes: &[u8], at: usize) -> Option<(Message<'_>, usize)> {
    let header = bytes.get(at..at.checked_add(HEADER)?)?;
    let body = u32::from_le_bytes(header[0..4].try_into().ok()?) as usize;
    let properties = u32::from_le_bytes(header[4..8].try_into().ok()?) as usize;
    let route = u16::from_le_bytes(header[8..10].try_into().ok()?) as usize;
    let route_at = at + HEADER;
    let properties_at = route_at + route;
    let body_at = properties_at.checked_add(properties)?;
    let end = body_at.checked_add(body)?;
    let message = Message {
        route: Route::stored(bytes.get(route_at..properties_at)?),
        properties: Properties::new(Format::from_byte(header[11])?, bytes.get(properties_at..body_at)?),
        body: bytes.get(body_at..end)?,
        flags: header[10],
    };
    Some((message, end))
}

/// Collects messages into a block.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    body_bytes: u64,
    around: Around,
    expiring: bool,
    expected: Expected,
}

/// What the next block will take if it is like the last one, of which a builder asks for room at once: to grow step by step
/// copies all messages once more.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Expected {
    bytes: usize,
    messages: usize,
}

impl Expected {
    /// After a block like this. Of a single message nothing is expected: it takes what it needs, and many may stay for long.
    #[inline]
    fn after(bytes: usize, messages: usize) -> Self {
        if messages < 2 {
            return Self::default();
        }
        Self {
            bytes: (bytes + bytes / 8).min(EXPECTED_BYTES),
            messages: (messages + messages / 8).min(EXPECTED_BYTES / HEADER),
        }
    }
}

impl BlockBuilder {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one with room for `bytes` bytes and `messages` messages.
    pub fn with_capacity(bytes: usize, messages: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            offsets: Vec::with_capacity(messages),
            ..Self::default()
        }
    }

    /// Adds a message of a route that has to be put together and of properties of AMQP 0-9-1, of which the broker knows nothing.
    pub fn push(&mut self, exchange: &[u8], routing_key: &[u8], properties: &[u8], body: &[u8]) {
        let route = RouteBuf::new(exchange, routing_key);
        self.push_message(&Message::new(
            route.as_route(),
            Properties::amqp091(properties),
            body,
        ));
    }

    /// Adds a message. Properties and body must each be shorter than 4 GiB (limits are far lower).
    #[inline]
    pub fn push_message(&mut self, message: &Message<'_>) {
        let Message {
            route,
            properties,
            body,
            flags,
        } = *message;
        let route = route.as_bytes();
        let length = HEADER + route.len() + properties.len() + body.len();
        if self.offsets.is_empty() && self.expected.messages > 0 {
            self.make_room(length);
        }
        self.offsets.push(self.bytes.len() as u32);
        self.body_bytes += body.len() as u64;
        self.around.note(HEADER + route.len() + properties.len());
        self.expiring |= properties.may_expire();
        let mut header = [0; HEADER];
        header[0..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&(properties.len() as u32).to_le_bytes());
        header[8..10].copy_from_slice(&(route.len() as u16).to_le_bytes());
        header[10] = flags;
        header[11] = properties.format().to_byte();
        self.bytes.reserve(length);
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(route);
        self.bytes.extend_from_slice(properties.bytes());
        self.bytes.extend_from_slice(body);
    }

    /// Asks for room for a block as it is expected, or for a longer first message.
    #[inline(never)]
    fn make_room(&mut self, first: usize) {
        self.offsets.reserve(self.expected.messages);
        self.bytes.reserve(first.max(self.expected.bytes));
    }

    /// The block is complete: expects one like it, and gives back what it does not use.
    #[inline(never)]
    fn learn(&mut self) {
        let Self { bytes, offsets, .. } = self;
        self.expected = Expected::after(bytes.len(), offsets.len());
        if bytes.capacity() - bytes.len() > bytes.len().max(SLACK_BYTES) {
            bytes.shrink_to_fit();
            offsets.shrink_to_fit();
        }
    }

    /// How many messages were added.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// True if none was added.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The size so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The finished block; the builder is empty again.
    pub fn finish(&mut self, persistent: bool, received: Timestamp) -> Block {
        // One message after another one, alone each, has nothing to learn from and nothing to give back.
        if self.offsets.len() != 1 || self.expected.messages > 0 {
            self.learn();
        }
        Block {
            bytes: std::mem::take(&mut self.bytes),
            offsets: std::mem::take(&mut self.offsets),
            body_bytes: std::mem::take(&mut self.body_bytes),
            around: std::mem::take(&mut self.around),
            expiring: std::mem::take(&mut self.expiring),
            persistent,
            received,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reads_back_from_its_bytes() {
        let mut builder = BlockBuilder::new();
        builder.push(b"logs", b"a.b", b"\x00\x00", b"hello");
        builder.push(b"", b"q", b"\x10\x00\x02", b"");
        let block = builder.finish(true, Timestamp(7));
        assert_eq!(block.len(), 2);
        assert_eq!(block.body_bytes(), 5);
        assert_eq!(block.message(0).exchange(), b"logs");
        assert_eq!(block.message(0).routing_key(), b"a.b");
        assert_eq!(block.message(1).properties, Properties::amqp091(b"\x10\x00\x02"));
        let tail = Block::from_bytes(block.slice(1, 1).to_vec(), true, Timestamp(7)).unwrap();
        assert_eq!(tail.message(0), block.message(1));
        let again = Block::from_bytes(block.bytes().to_vec(), true, Timestamp(7)).unwrap();
        assert_eq!(again.message(0), block.message(0));
        assert_eq!(again.len(), 2);
        assert_eq!(Block::count(block.bytes()), Some(2));
    }

    #[test]
    fn bodies_are_summed_alike_whatever_stands_around_them() {
        let build = |keys: [&[u8]; 4]| {
            let mut builder = BlockBuilder::new();
            for (key, body) in keys.iter().zip([&b"one"[..], b"", b"three", b"four"]) {
                builder.push(b"logs", key, b"\x00\x00", body);
            }
            builder.finish(true, Timestamp(7))
        };
        for (keys, around) in [
            ([&b"a"[..], b"b", b"c", b"d"], Around(HEADER as u32 + 7 + 2)),
            ([&b"a"[..], b"bb", b"c", b"d"], Around::MIXED),
        ] {
            let block = build(keys);
            assert_eq!(block.around, around);
            let again = Block::from_bytes(block.bytes().to_vec(), true, Timestamp(7)).unwrap();
            assert_eq!(again, block);
            for from in 0..4 {
                for count in 0..=4 - from {
                    let sum: usize = (from..from + count).map(|at| block.message(at).body.len()).sum();
                    assert_eq!(block.body_bytes_of(from, count), sum as u64);
                }
            }
        }
    }

    #[test]
    fn a_builder_has_room_for_a_block_like_the_last_and_keeps_none_that_is_not_used() {
        let mut builder = BlockBuilder::new();
        let mut build = |messages: usize, body: usize| {
            (0..messages).for_each(|_| builder.push(b"", b"q", b"\0\0", &vec![7; body]));
            let first = builder.bytes.capacity();
            let block = builder.finish(true, Timestamp(7));
            assert!(block.bytes.capacity() <= block.bytes.len() + block.bytes.len().max(SLACK_BYTES));
            (first, block.memory())
        };
        build(100, 1_000);
        let (room, memory) = build(103, 1_000);
        assert_eq!(room, 101_700 + 12_712, "an eighth more than the last one");
        assert!(
            (room..room + 1_000).contains(&memory),
            "nothing was grown: {memory}"
        );
        let (asked, one) = build(1, 10);
        assert!(asked > 100_000 && one < 1_000, "{asked} {one}");
        let (asked, _) = build(1, 5_000);
        assert_eq!(asked, 5_017, "a single message takes what it needs");
        build(2, 10 << 20);
        assert_eq!(build(1, 10).0, EXPECTED_BYTES);
    }

    #[test]
    fn cut_bytes_are_refused() {
        let mut builder = BlockBuilder::new();
        builder.push(b"logs", b"a.b", b"\x00\x00", b"hello");
        let block = builder.finish(false, Timestamp(0));
        for cut in 1..block.bytes().len() {
            assert!(Block::from_bytes(block.bytes()[..cut].to_vec(), false, Timestamp(0)).is_none());
            assert_eq!(Block::count(&block.bytes()[..cut]), None);
        }
    }
}
