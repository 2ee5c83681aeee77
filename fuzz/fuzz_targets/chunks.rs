//! Chunks from hostile bytes: what is read is whole, its entries are those that it names, sub-batches decompress within their
//! bound or not at all, and a message out of it is given to AMQP 0-9-1 whatever it is. Then the bytes as a batch's entry.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::chunk::{Batch, Chunk, ChunkBuilder, Entry, HEADER_BYTES, Matcher};
use model::properties::{BasicProperties, amqp10};
use model::{Limits, RouteBuf, Timestamp};

/// Sub-batches may become so large here, in bytes.
const MOST: usize = 1 << 20;

fn message(bytes: &[u8], offset: u64) {
    let it = amqp10::read(bytes, offset, &Limits::default());
    assert!(it.body.len() <= bytes.len());
    let properties = it.properties.encode();
    let properties =
        BasicProperties::check(&properties, &Limits::STORED).expect("what is written can be read");
    let route = RouteBuf::new(
        it.exchange.unwrap_or_default(),
        it.routing_key.unwrap_or_default(),
    );
    let mut again = Vec::new();
    amqp10::write(route.as_route(), properties, &it.body, &mut again);
    assert_eq!(amqp10::read(&again, offset, &Limits::default()).body, it.body);
}

fn chunk(bytes: &[u8]) {
    let Ok(chunk) = Chunk::read(bytes) else {
        return;
    };
    let header = chunk.header();
    let mut room = Vec::new();
    let mut next = header.first_offset;
    for (offset, entry) in chunk.entries() {
        assert_eq!(offset, next);
        next += u64::from(entry.records());
        match entry {
            Entry::Message(bytes) => message(bytes, offset),
            Entry::SubBatch(batch) => {
                if let Ok(messages) = batch.messages(&mut room, MOST) {
                    assert_eq!(messages.count(), usize::from(batch.records));
                }
                assert!(room.len() <= MOST);
            }
        }
    }
    assert_eq!(next, header.next_offset());
    chunk.tracked().count();
    if let Some(snapshot) = chunk.snapshot() {
        let again = snapshot.to_chunk(header.timestamp, header.epoch, header.first_offset);
        let again = Chunk::read(&again).expect("what is written can be read");
        assert_eq!(again.snapshot(), Some(snapshot));
    }
    if let Some(matcher) = Matcher::new([b"value"], false) {
        matcher.passes(chunk.filter());
    }
}

fuzz_target!(|bytes: &[u8]| {
    chunk(bytes);
    // With the checksum made right, so that what is behind it is reached.
    let mut right = bytes.to_vec();
    if right.len() > HEADER_BYTES {
        let at = HEADER_BYTES + usize::from(right[44]);
        let length = u32::from_be_bytes([right[36], right[37], right[38], right[39]]) as usize;
        if let Some(entries) = right.get(at..at.saturating_add(length)) {
            let crc = model::chunk::checksum(entries);
            right[32..36].copy_from_slice(&crc.to_be_bytes());
        }
        chunk(&right);
    }
    message(bytes, 7);
    let mut batch = Batch::default();
    if batch.push(1, bytes.get(..3), bytes).is_ok() {
        let mut builder = ChunkBuilder::new(16);
        assert_eq!(builder.batch(&batch, 0, usize::MAX), 1);
        let made = builder.finish(Timestamp(1), 1, 5);
        let made = Chunk::read(&made).expect("what is made can be read");
        assert_eq!(made.entries_section(), bytes);
    }
});
