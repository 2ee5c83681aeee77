//! Messages of AMQP 0-9-1 into a stream, where they are messages of AMQP 1.0, and out of its chunks.

use model::chunk::{Batch, Chunk, Entry, UNCOMPRESSED_MOST};
use model::limits::Limits;
use model::properties::{BasicProperties, amqp10};
use model::table::raw::{Entries, RawValue};
use model::{Block, BlockBuilder, Timestamp};
use std::sync::Arc;

/// The header that says under which value a message is found.
const X_STREAM_FILTER_VALUE: &str = "x-stream-filter-value";

/// Enough messages for one block, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// The longest filter value, in bytes; RabbitMQ's AMQP clients cannot send a longer one.
const FILTER_VALUE_MOST: usize = 255;

/// Messages as they go into a chunk. They are numbered from `first` on.
pub fn batch(block: &Block, first: u64) -> Batch {
    let mut batch = Batch::default();
    let mut entry = Vec::new();
    for at in 0..block.len() {
        let message = block.message(at);
        let properties = message.properties.to_amqp091();
        entry.clear();
        entry.extend_from_slice(&[0; 4]);
        amqp10::write(
            message.route,
            BasicProperties::new(&properties),
            message.body,
            &mut entry,
        );
        let length = u32::try_from(entry.len() - 4).unwrap_or(u32::MAX);
        entry[..4].copy_from_slice(&length.to_be_bytes());
        let headers = message.properties.headers();
        let value = headers.as_deref().and_then(filter_value);
        if let Err(error) = batch.push(first + at as u64, value, &entry) {
            // Messages are smaller than what an entry may be.
            tracing::error!(area = "queue", "a message does not fit into a stream: {error:?}");
        }
    }
    batch
}

/// The value that the headers name, if it is text of a length that can be.
fn filter_value(headers: &[u8]) -> Option<&[u8]> {
    match Entries::new(headers).find(X_STREAM_FILTER_VALUE.as_bytes())? {
        RawValue::LongStr(value) | RawValue::Binary(value) => {
            (value.len() <= FILTER_VALUE_MOST).then_some(value)
        }
        _ => None,
    }
}

/// Messages of a chunk from this offset on, and the offset of those that are left: no more than fits into some memory, but one
/// entry at least, for what is compressed may be much. A sub-batch that cannot be read is passed over, and ends what is taken
/// at once.
pub fn some(bytes: &[u8], from: u64, stream: &str) -> (Arc<Block>, Option<u64>) {
    let mut block = BlockBuilder::new();
    let Some(chunk) = Chunk::trusted(bytes) else {
        return (Arc::new(block.finish(true, Timestamp(0))), None);
    };
    let limits = Limits::default();
    let mut room = Vec::new();
    let (mut rest, mut was_unreadable) = (None, false);
    for (offset, entry) in chunk.entries() {
        if offset + u64::from(entry.records()) <= from {
            continue;
        }
        // To find out that nothing can be read of a sub-batch may take as long as to read it.
        if block.bytes() >= BLOCK_BYTES || was_unreadable {
            rest = Some(offset);
            break;
        }
        let mut put = |offset: u64, message: &[u8]| {
            if offset < from {
                return;
            }
            let read = amqp10::read(message, offset, &limits);
            block.push(
                read.exchange.unwrap_or_default(),
                read.routing_key.unwrap_or(stream.as_bytes()),
                &read.properties.encode(),
                &read.body,
            );
        };
        match entry {
            Entry::Message(message) => put(offset, message),
            Entry::SubBatch(batch) => match batch.messages(&mut room, UNCOMPRESSED_MOST) {
                Ok(messages) => (offset..).zip(messages).for_each(|(offset, it)| put(offset, it)),
                Err(error) => {
                    was_unreadable = true;
                    tracing::warn!(
                        area = "queue",
                        "stream '{stream}': {} messages from offset {offset} on cannot be read over AMQP: {error}",
                        entry.records()
                    );
                }
            },
        }
    }
    (Arc::new(block.finish(true, chunk.header().timestamp)), rest)
}
