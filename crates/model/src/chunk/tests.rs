use super::compression::tests::compress;
use super::*;
use proptest::prelude::*;

/// An entry as a test wants it, with owned bytes.
#[derive(Clone, Debug)]
enum Put {
    Message(Option<String>, Vec<u8>),
    Batch(Option<String>, u8, Vec<Vec<u8>>),
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

fn value() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        2 => Just(None),
        3 => "[a-d]{1,2}".prop_map(Some),
    ]
}

fn put() -> impl Strategy<Value = Put> {
    prop_oneof![
        3 => (value(), message()).prop_map(|(value, message)| Put::Message(value, message)),
        1 => (value(), 0_u8..5, prop::collection::vec(message(), 1..6))
            .prop_map(|(value, compression, messages)| Put::Batch(value, compression, messages)),
    ]
}

fn joined(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    messages
        .iter()
        .for_each(|message| Entry::Message(message).write(&mut body));
    body
}

fn batch<'a>(compression: Compression, body: &'a [u8], records: usize, uncompressed: usize) -> SubBatch<'a> {
    SubBatch {
        compression,
        records: records as u16,
        uncompressed_bytes: uncompressed as u32,
        body,
    }
}

fn build(builder: &mut ChunkBuilder, puts: &[Put], first_offset: u64) -> Vec<u8> {
    for put in puts {
        match put {
            Put::Message(value, message) => {
                let value = value.as_ref().map(String::as_bytes);
                builder.message(value, message).unwrap();
            }
            Put::Batch(value, compression, messages) => {
                let body = joined(messages);
                let compression = Compression::from_bits(*compression).unwrap();
                let packed = compress(compression, &body);
                let it = batch(compression, &packed, messages.len(), body.len());
                builder
                    .sub_batch(value.as_ref().map(String::as_bytes), it)
                    .unwrap();
            }
        }
    }
    builder.finish(Timestamp(1_700_000_000_000), 3, first_offset)
}

/// All messages with their offsets, as a reader sees them.
fn messages(chunk: &Chunk<'_>) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut room = Vec::new();
    for (offset, entry) in chunk.entries() {
        match entry {
            Entry::Message(message) => all.push((offset, message.to_vec())),
            Entry::SubBatch(batch) => {
                let messages = batch.messages(&mut room, UNCOMPRESSED_MOST).unwrap();
                all.extend((offset..).zip(messages.map(<[u8]>::to_vec)));
            }
        }
    }
    all
}

/// What [`messages`] has to be.
fn expected(puts: &[Put], first_offset: u64) -> Vec<(u64, Vec<u8>)> {
    let flat = puts.iter().flat_map(|put| match put {
        Put::Message(_, message) => vec![message.clone()],
        Put::Batch(_, _, messages) => messages.clone(),
    });
    (first_offset..).zip(flat).collect()
}

#[test]
fn a_chunk_always_had_these_bytes() {
    let mut builder = ChunkBuilder::new(16);
    builder.message(None, b"hello").unwrap();
    builder
        .sub_batch(None, batch(Compression::Gzip, b"zip", 2, 20))
        .unwrap();
    builder.track(Tracked::Sequence {
        reference: b"p",
        id: 9,
    });
    let chunk = builder.finish(Timestamp(0x0102), 7, 0x0A00);
    let mut bytes = vec![0x50, 0, 0, 2, 0, 0, 0, 3];
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 2]);
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 7]);
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 10, 0]);
    let entries = b"\0\0\0\x05hello\x90\0\x02\0\0\0\x14\0\0\0\x03zip";
    bytes.extend_from_slice(&crc32fast::hash(entries).to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 23, 0, 0, 0, 11, 0, 0, 0, 0]);
    bytes.extend_from_slice(entries);
    bytes.extend_from_slice(b"\0\x01p\0\0\0\0\0\0\0\x09");
    assert_eq!(chunk, bytes);
    assert!(Chunk::read(&bytes).is_ok());
    assert!(builder.is_empty());
}

#[test]
fn what_is_tracked_without_messages_is_a_chunk_that_takes_no_offset() {
    let mut builder = ChunkBuilder::new(16);
    let tracked = Tracked::Offset {
        reference: b"reader",
        offset: 77,
    };
    builder.track(tracked);
    assert!(!builder.is_empty());
    let bytes = builder.finish(Timestamp(5), 1, 100);
    let chunk = Chunk::read(&bytes).unwrap();
    assert_eq!(chunk.header().kind, ChunkKind::TrackingDelta);
    assert_eq!(chunk.header().next_offset(), 100);
    assert_eq!(chunk.tracked().collect::<Vec<_>>(), [tracked]);
    assert_eq!(chunk.entries().count(), 0);
    assert!(builder.is_empty());
}

/// A chunk with one message, changed by `change`, with the checksum made right again.
fn lying(change: impl FnOnce(&mut Header, &mut Vec<u8>)) -> Result<(), ChunkError> {
    let mut section = Vec::new();
    Entry::Message(b"one").write(&mut section);
    let mut header = Header {
        kind: ChunkKind::User,
        entries: 1,
        records: 1,
        timestamp: Timestamp(0),
        epoch: 0,
        first_offset: 0,
        crc: 0,
        entries_bytes: section.len() as u32,
        trailer_bytes: 0,
        filter_bytes: 0,
    };
    change(&mut header, &mut section);
    header.crc = crc32fast::hash(&section);
    let mut bytes = header.to_bytes().to_vec();
    bytes.append(&mut section);
    Chunk::read(&bytes).map(|_| ())
}

fn with_batch(write: impl FnOnce(&mut Vec<u8>)) -> Result<(), ChunkError> {
    lying(|header, section| {
        section.clear();
        write(section);
        header.entries_bytes = section.len() as u32;
        header.records = 2;
    })
}

#[test]
fn counts_and_lengths_that_lie_are_refused() {
    assert_eq!(lying(|_, _| ()), Ok(()));
    assert_eq!(lying(|header, _| header.entries = 2), Err(ChunkError::Counts));
    assert_eq!(lying(|header, _| header.records = 2), Err(ChunkError::Counts));
    assert_eq!(lying(|header, _| header.entries = 0), Err(ChunkError::Counts));
    assert_eq!(lying(|header, _| header.records = 0), Err(ChunkError::Counts));
    assert_eq!(
        lying(|header, _| header.first_offset = u64::MAX),
        Err(ChunkError::Counts)
    );
    assert_eq!(
        lying(|header, _| header.filter_bytes = 15),
        Err(ChunkError::FilterSize)
    );
    assert_eq!(
        lying(|header, _| header.entries_bytes = u32::MAX),
        Err(ChunkError::TooLarge)
    );
    assert_eq!(
        lying(|header, _| header.trailer_bytes = u32::MAX),
        Err(ChunkError::TooLarge)
    );
    assert_eq!(lying(|header, _| header.trailer_bytes = 1), Err(ChunkError::Cut));
    assert_eq!(
        lying(|header, _| header.timestamp = Timestamp(1 << 63)),
        Err(ChunkError::Timestamp)
    );
    assert_eq!(lying(|_, section| section[3] = 4), Err(ChunkError::Entry));
    assert_eq!(lying(|_, section| section[3] = 2), Err(ChunkError::Entry));
    assert_eq!(lying(|_, section| section[0] = 0x7f), Err(ChunkError::TooLarge));
    let is_about_tracking = lying(|header, _| {
        header.kind = ChunkKind::TrackingDelta;
        header.records = 0;
    });
    assert_eq!(is_about_tracking, Err(ChunkError::Tracking));
}

#[test]
fn sub_batches_that_lie_are_refused() {
    let body = joined(&[b"a".to_vec(), b"b".to_vec()]);
    let write = |records: usize, body: &[u8]| {
        let body = body.to_vec();
        move |section: &mut Vec<u8>| {
            Entry::SubBatch(batch(Compression::None, &body, records, body.len())).write(section);
        }
    };
    assert_eq!(with_batch(write(2, &body)), Ok(()));
    assert_eq!(with_batch(write(3, &body)), Err(ChunkError::Counts));
    assert_eq!(with_batch(write(1, &body)), Err(ChunkError::Counts));
    assert_eq!(with_batch(write(0, b"")), Err(ChunkError::Counts));
    let mut nested = Vec::new();
    write(2, &body)(&mut nested);
    assert_eq!(with_batch(write(1, &nested)), Err(ChunkError::Nested));
    let unknown = with_batch(|section| {
        write(2, &body)(section);
        section[0] |= 0x70;
    });
    assert_eq!(unknown, Err(ChunkError::Compression));
    let longer = with_batch(|section| {
        write(2, &body)(section);
        section[10] += 1;
    });
    assert_eq!(longer, Err(ChunkError::Entry));

    let mut builder = ChunkBuilder::new(16);
    let mut batches = Batch::default();
    let mut two = joined(&[b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(
        batches.push(1, None, &two),
        Err(EntryError::Invalid(ChunkError::Entry))
    );
    two.truncate(4);
    assert_eq!(
        batches.push(1, None, &two),
        Err(EntryError::Invalid(ChunkError::Entry))
    );
    let lies = batch(Compression::None, &body, 3, body.len());
    assert_eq!(
        builder.sub_batch(None, lies),
        Err(EntryError::Invalid(ChunkError::Counts))
    );
    let mut entry = Vec::new();
    Entry::SubBatch(lies).write(&mut entry);
    assert_eq!(
        batches.push(1, None, &entry),
        Err(EntryError::Invalid(ChunkError::Counts))
    );
    assert!(builder.is_empty() && batches.is_empty());
}

#[test]
fn what_a_compressed_sub_batch_hides_is_found_when_it_is_read() {
    let mut room = Vec::new();
    let body = joined(&[b"a".to_vec(), b"b".to_vec()]);
    let packed = compress(Compression::Lz4, &body);
    let read = |records, uncompressed, most, room: &mut Vec<u8>| {
        let batch = batch(Compression::Lz4, &packed, records, uncompressed);
        batch.messages(room, most).map(Iterator::count)
    };
    assert_eq!(read(2, body.len(), 100, &mut room), Ok(2));
    assert_eq!(read(3, body.len(), 100, &mut room), Err(ChunkError::Counts));
    assert_eq!(read(1, body.len(), 100, &mut room), Err(ChunkError::Counts));
    assert_eq!(read(2, body.len() - 1, 100, &mut room), Err(ChunkError::Counts));
    assert_eq!(read(2, body.len(), 9, &mut room), Err(ChunkError::TooLarge));
    let mut nested = Vec::new();
    Entry::SubBatch(batch(Compression::None, &body, 2, body.len())).write(&mut nested);
    let packed = compress(Compression::Gzip, &nested);
    let inner = batch(Compression::Gzip, &packed, 1, nested.len());
    assert_eq!(inner.messages(&mut room, 100).err(), Some(ChunkError::Nested));
}

#[test]
fn a_chunk_takes_so_many_entries_and_no_more() {
    let mut builder = ChunkBuilder::new(16);
    for _ in 0..u16::MAX {
        builder.message(None, b"").unwrap();
    }
    assert_eq!(builder.message(None, b""), Err(EntryError::Full));
    let bytes = builder.finish(Timestamp(1), 1, 0);
    assert_eq!(Chunk::read(&bytes).unwrap().entries().count(), 65_535);
    let huge = vec![0; ENTRIES_BYTES_MOST - entries::MESSAGE_HEADER];
    assert_eq!(builder.message(None, &huge), Ok(()));
    assert_eq!(builder.message(None, b""), Err(EntryError::Full));
    let huger = vec![0; ENTRIES_BYTES_MOST];
    assert_eq!(builder.message(None, &huger), Err(EntryError::TooLarge));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn what_is_put_in_comes_out(
        chunks in prop::collection::vec(prop::collection::vec(put(), 1..20), 1..4),
        first_offset in 0..1_u64 << 60,
        filter_size in FILTER_SIZES,
    ) {
        let mut builder = ChunkBuilder::new(filter_size);
        let mut offset = first_offset;
        for puts in chunks {
            let mut bytes = build(&mut builder, &puts, offset);
            let length = bytes.len();
            bytes.extend_from_slice(b"what follows");
            let chunk = Chunk::read(&bytes).unwrap();
            prop_assert_eq!(chunk.bytes().len(), length);
            prop_assert_eq!(chunk.header().entries as usize, puts.len());
            prop_assert_eq!(messages(&chunk), expected(&puts, offset));
            offset = chunk.header().next_offset();
            // Whoever asks for a value that is there is not told that it is not.
            for put in &puts {
                let (Put::Message(value, _) | Put::Batch(value, ..)) = put;
                let matcher = match value {
                    Some(value) => Matcher::new([value.as_str()], false),
                    None => Matcher::new(["none of these"], true),
                };
                prop_assert!(matcher.unwrap().passes(chunk.filter()));
            }
            // Cut anywhere, or changed anywhere in its entries, it is no chunk.
            for cut in (0..length).step_by(3) {
                prop_assert_eq!(Chunk::read(&bytes[..cut]), Err(ChunkError::Cut));
            }
            let at = chunk.header().entries_at();
            for changed in (at..length).step_by(11) {
                let mut bytes = bytes.clone();
                bytes[changed] ^= 0x10;
                prop_assert_eq!(Chunk::read(&bytes), Err(ChunkError::Checksum));
            }
        }
    }

    #[test]
    fn a_batch_goes_into_chunks_as_its_entries_do_one_by_one(
        puts in prop::collection::vec(put(), 1..30),
        most in 1_usize..300,
    ) {
        let mut batch = Batch::default();
        let mut one_by_one = ChunkBuilder::new(16);
        let mut chunks = Vec::new();
        for (id, put) in puts.iter().enumerate() {
            let (value, mut entry) = match put {
                Put::Message(value, message) => (value, joined(std::slice::from_ref(message))),
                Put::Batch(value, _, messages) => {
                    let (body, mut entry) = (joined(messages), Vec::new());
                    let it = super::tests::batch(Compression::None, &body, messages.len(), body.len());
                    Entry::SubBatch(it).write(&mut entry);
                    (value, entry)
                }
            };
            let value = value.as_ref().map(String::as_bytes);
            batch.push(id as u64, value, &entry).unwrap();
            // The naive way: a chunk ends before what would make it too large.
            if one_by_one.entries() > 0 && one_by_one.entries_bytes() + entry.len() > most {
                chunks.push(one_by_one.finish(Timestamp(1), 1, 0));
            }
            match Entry::read(&entry).unwrap().0 {
                Entry::Message(message) => one_by_one.message(value, message).unwrap(),
                Entry::SubBatch(batch) => one_by_one.sub_batch(value, batch).unwrap(),
            }
            entry.push(0);
            prop_assert!(batch.push(0, None, &entry).is_err());
        }
        chunks.push(one_by_one.finish(Timestamp(1), 1, 0));
        prop_assert_eq!(batch.len(), puts.len());
        let (mut at, mut builder) = (0, ChunkBuilder::new(16));
        for chunk in chunks {
            let next = builder.batch(&batch, at, most);
            prop_assert!(next > at);
            at = next;
            prop_assert_eq!(builder.batch(&batch, at, most), at, "it is full, or there is no more");
            prop_assert_eq!(builder.finish(Timestamp(1), 1, 0), chunk);
        }
        prop_assert_eq!(at, batch.len());
    }

    #[test]
    fn tracking_is_the_same_after_a_snapshot(
        changes in prop::collection::vec((any::<bool>(), "[a-e]{0,3}", any::<u64>(), 0_u64..1 << 40), 0..40),
        first in any::<u64>(),
    ) {
        let mut tracking = Tracking::default();
        let mut builder = ChunkBuilder::new(16);
        let mut deltas = Tracking::default();
        let mut naive = std::collections::BTreeMap::new();
        for (is_offset, reference, number, at) in &changes {
            let reference = reference.as_bytes();
            let tracked = if *is_offset {
                Tracked::Offset { reference, offset: *number }
            } else {
                Tracked::Sequence { reference, id: *number }
            };
            tracking.track(tracked, Timestamp(*at));
            builder.track(tracked);
            let bytes = builder.finish(Timestamp(*at), 1, 0);
            let chunk = Chunk::read(&bytes).unwrap();
            chunk.tracked().for_each(|tracked| deltas.track(tracked, chunk.header().timestamp));
            naive.insert((*is_offset, reference.to_vec()), *number);
        }
        prop_assert_eq!(&deltas, &tracking);
        for ((is_offset, reference), number) in &naive {
            let known = if *is_offset { tracking.offset(reference) } else { tracking.sequence(reference) };
            prop_assert_eq!(known, Some(*number));
        }
        prop_assert_eq!(tracking.offsets_len() + tracking.sequences_len(), naive.len());
        let bytes = tracking.to_chunk(Timestamp(9), 2, 50);
        let chunk = Chunk::read(&bytes).unwrap();
        prop_assert_eq!(chunk.header().next_offset(), 50);
        prop_assert_eq!(chunk.snapshot(), Some(tracking.clone()));
        tracking.forget_offsets_below(first);
        let kept = naive.iter().filter(|((is_offset, _), number)| *is_offset && **number >= first);
        prop_assert_eq!(tracking.offsets_len(), kept.count());
    }

    #[test]
    fn any_bytes_are_a_chunk_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first = MAGIC_AND_VERSION;
        }
        if let Ok(chunk) = Chunk::read(&bytes) {
            chunk.entries().count();
            chunk.tracked().count();
        }
    }
}

#[test]
fn what_a_reader_is_sent_is_checked_as_the_whole_chunk_is() {
    let mut builder = ChunkBuilder::new(16);
    let puts = [
        Put::Message(Some("a".into()), b"one".to_vec()),
        Put::Batch(None, 1, vec![b"two".to_vec(), b"three".to_vec()]),
    ];
    let bytes = build(&mut builder, &puts, 7);
    let chunk = Chunk::read(&bytes).unwrap();
    assert!(!chunk.filter().is_empty());
    let mut sent = chunk.bytes()[..HEADER_BYTES].to_vec();
    sent.extend_from_slice(chunk.entries_section());
    let (header, entries) = Chunk::delivered(&sent).unwrap();
    assert_eq!(&header, chunk.header());
    assert!(entries.eq(chunk.entries()));
    assert_eq!(Chunk::delivered(&sent[..sent.len() - 1]), Err(ChunkError::Cut));
    sent.push(0);
    assert_eq!(Chunk::delivered(&sent), Err(ChunkError::Cut));
    sent.pop();
    *sent.last_mut().unwrap() ^= 1;
    assert_eq!(Chunk::delivered(&sent), Err(ChunkError::Checksum));
    assert_eq!(Chunk::delivered(&[]), Err(ChunkError::Cut));
}

#[test]
fn the_checksum_of_a_whole_chunk_is_right_whether_it_is_computed_or_combined() {
    for length in [10, 100_000] {
        let mut builder = ChunkBuilder::new(16);
        builder.track(Tracked::Offset {
            reference: b"reader",
            offset: 3,
        });
        let bytes = build(
            &mut builder,
            &[Put::Message(Some("a".into()), vec![5; length])],
            7,
        );
        let chunk = Chunk::read(&bytes).unwrap();
        assert!(!chunk.trailer().is_empty() && !chunk.filter().is_empty());
        assert_eq!(chunk.whole_checksum(), checksum(&bytes));
    }
}
