//! Streams of a broker whose disk is real: what is confirmed is there after a restart and after a kill, readers see it in order,
//! old segments go, and nothing is left of a stream that is deleted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::disallowed_methods, reason = "a client outside of the broker")]

#[path = "support/client.rs"]
mod client;

use broker::{
    Broker, ConsumerSettings, DeclareQueue, Delivery, Disposal, Event, Matcher, NextChunk, ReadChunk, Stream,
    StreamArguments, StreamOffset, StreamStart, Subscription,
};
use client::{CHANNEL, Client, options};
use model::Message;
use model::chunk::{Chunk, Entry};
use model::table::Table;
use std::path::Path;
use std::time::Duration;

fn declare(client: &Client, name: &str, arguments: Table) {
    let declare = DeclareQueue {
        name: name.into(),
        durable: true,
        arguments: arguments.with("x-queue-type", "stream"),
        ..DeclareQueue::default()
    };
    let done = client.session.declare_queue(CHANNEL, declare).unwrap();
    if let Some(expected) = done.durable {
        client
            .wait(|event| matches!(event, Event::Durable { ticket, .. } if ticket == expected).then_some(()));
    }
}

/// Publishes texts over AMQP and waits until all are confirmed.
fn publish(client: &Client, queue: &str, texts: impl IntoIterator<Item = String>) {
    let mut publisher = client.session.publisher(CHANNEL, 1);
    let mut count = 0;
    for text in texts {
        count += 1;
        client.publish(
            &mut publisher,
            queue,
            &[0x10, 0x00, 2],
            text.as_bytes(),
            Some(count),
        );
    }
    publisher.flush();
    let mut confirmed = 0;
    client.wait(|event| {
        if let Event::Confirm { numbers, .. } = event {
            confirmed += numbers.count();
        }
        (confirmed == count).then_some(())
    });
}

fn texts(of: std::ops::Range<u64>) -> impl Iterator<Item = String> {
    of.map(|number| format!("message {number}"))
}

fn consume(client: &Client, queue: &str, prefetch: u32, asked: StreamArguments) -> Subscription {
    let settings = ConsumerSettings {
        paused: false,
        no_ack: false,
        exclusive: false,
        prefetch,
        priority: 0,
        window: 1 << 20,
    };
    client
        .session
        .consume(CHANNEL, queue, settings, Some(&asked))
        .unwrap()
}

fn from(offset: StreamOffset) -> StreamArguments {
    StreamArguments {
        offset,
        ..StreamArguments::default()
    }
}

/// The offset of a message, and its body.
fn body(message: &Message<'_>) -> (i64, String) {
    let headers = message
        .properties
        .headers_table(&model::Limits::default())
        .unwrap();
    let offset = headers
        .get("x-stream-offset")
        .and_then(|it| it.as_integer())
        .unwrap();
    (offset, String::from_utf8(message.body.to_vec()).unwrap())
}

fn bodies(delivery: &Delivery) -> Vec<(i64, String)> {
    let one = |seq: u64| body(&delivery.block.message((seq - delivery.base) as usize));
    delivery.seqs.iter().map(one).collect()
}

/// So many messages, each acknowledged as it comes.
fn take(client: &Client, subscription: &Subscription, count: usize) -> Vec<(i64, String)> {
    let mut taken = Vec::new();
    client.wait(|event| {
        if let Event::Deliver { delivery, .. } = event {
            taken.extend(bodies(&delivery));
            subscription.flow(delivery.bytes() as u32);
            let consumer = Some(subscription.consumer());
            subscription
                .queue()
                .settle(consumer, delivery.seqs, Disposal::Accepted);
        }
        (taken.len() >= count).then_some(())
    });
    taken
}

fn numbered(of: std::ops::Range<u64>) -> Vec<(i64, String)> {
    of.map(|number| (number as i64, format!("message {number}")))
        .collect()
}

fn stream(client: &Client, name: &str) -> Stream {
    client.session.stream_to_write(name, CHANNEL).unwrap()
}

/// A message as an entry of a chunk.
fn entry(text: &str) -> Vec<u8> {
    let mut entry = Vec::new();
    Entry::Message(text.as_bytes()).write(&mut entry);
    entry
}

/// The messages of a chunk as it is sent.
fn messages(chunk: &ReadChunk) -> Vec<String> {
    let mut header = model::chunk::Header::read(&chunk.header).unwrap();
    (header.filter_bytes, header.trailer_bytes) = (0, 0);
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend_from_slice(&chunk.entries);
    let chunk = Chunk::read(&bytes).unwrap();
    let text = |(_, entry): (u64, Entry<'_>)| match entry {
        Entry::Message(message) => String::from_utf8(message.to_vec()).unwrap(),
        Entry::SubBatch(_) => panic!("nobody has published one"),
    };
    chunk.entries().map(text).collect()
}

#[test]
fn what_is_confirmed_is_there_after_a_restart_and_read_from_wherever_somebody_wants() {
    let dir = tempfile::tempdir().unwrap();
    {
        let broker = Broker::open(options(&dir)).unwrap();
        let client = Client::open(&broker);
        declare(&client, "s", Table::new());
        publish(&client, "s", texts(0..500));
        client.session.close();
        broker.close();
    }
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    let first = consume(&client, "s", 7, from(StreamOffset::First));
    assert_eq!(take(&client, &first, 500), numbered(0..500));
    let middle = consume(&client, "s", 100, from(StreamOffset::Offset(321)));
    assert_eq!(take(&client, &middle, 179), numbered(321..500));
    // From now on both are at the end, where chunks come from memory.
    drop((first, middle));
    let client = Client::open(&broker);
    let next = consume(&client, "s", 10, from(StreamOffset::Next));
    let client_of_publisher = Client::open(&broker);
    publish(&client_of_publisher, "s", texts(500..600));
    assert_eq!(take(&client, &next, 100), numbered(500..600));
    broker.close();
}

#[test]
fn who_looks_at_messages_sees_those_that_are_safe_and_is_no_reader() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    declare(&client, "s", Table::new());
    publish(&client, "s", texts(0..500));
    let looked_at = |from: StreamOffset, count: usize| {
        let mut seen = Vec::new();
        let stream = client.session.stream_to_read("s", CHANNEL).unwrap();
        let browsed = stream.browse(from, Duration::from_secs(60), |message| {
            seen.push(body(message));
            match seen.len() < count {
                true => std::ops::ControlFlow::Continue(()),
                false => std::ops::ControlFlow::Break(()),
            }
        });
        assert!(browsed.unwrap());
        seen
    };
    // Somebody who reads is not skipped anything that others have only looked at.
    let reader = consume(&client, "s", 10, from(StreamOffset::Next));
    publish(&client, "s", texts(500..600));
    assert_eq!(looked_at(StreamOffset::First, 1_000), numbered(0..600));
    assert_eq!(looked_at(StreamOffset::Offset(321), 7), numbered(321..328));
    assert_eq!(looked_at(StreamOffset::Offset(7_000), 1), []);
    assert_eq!(looked_at(StreamOffset::Next, 1), []);
    assert_eq!(looked_at(StreamOffset::Ago(3_600_000), 3), numbered(0..3));
    let last = looked_at(StreamOffset::Last, 1_000);
    assert_eq!(last, numbered(600 - last.len() as u64..600));
    assert_eq!(take(&client, &reader, 100), numbered(500..600));
    // Who has no time is not told that there is nothing.
    let stream = client.session.stream_to_read("s", CHANNEL).unwrap();
    let mut nothing = |_: &Message<'_>| unreachable!("there is no time for that");
    assert!(
        !stream
            .browse(StreamOffset::First, Duration::ZERO, &mut nothing)
            .unwrap()
    );
    broker.close();
}

#[test]
fn a_kill_leaves_what_was_confirmed() {
    let (dir, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    declare(&client, "s", Table::new());
    publish(&client, "s", texts(0..100));
    // What the disk holds now is what a kill leaves.
    for part in ["log", "streams/1", "streams/2", "streams/3"] {
        let from = dir.path().join(part);
        if from.exists() {
            std::fs::create_dir_all(killed.path().join("streams")).unwrap();
            storage::copy_files(&storage::Disk, &from, &killed.path().join(part)).unwrap();
        }
    }
    broker.close();
    let broker = Broker::open(options(&killed)).unwrap();
    let client = Client::open(&broker);
    publish(&client, "s", texts(100..200));
    let all = consume(&client, "s", 50, from(StreamOffset::First));
    assert_eq!(take(&client, &all, 200), numbered(0..200));
    broker.close();
}

#[test]
fn a_publisher_with_a_name_is_recognised_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let send = |client: &Client, ids: std::ops::RangeInclusive<u64>| {
        let mut publisher = stream(client, "s").publish(Some(b"me"));
        for id in ids {
            publisher.take(id, None, &entry(&format!("number {id}"))).unwrap();
        }
        let flushed = publisher.flush().unwrap();
        client.wait(|event| {
            matches!(event, Event::Confirm { numbers, .. } if numbers.contains(flushed)).then_some(())
        });
    };
    for (ids, known) in [(1..=10, 10), (6..=12, 12)] {
        let broker = Broker::open(options(&dir)).unwrap();
        let client = Client::open(&broker);
        declare(&client, "s", Table::new());
        send(&client, ids);
        let question = stream(&client, "s").sequence(b"me");
        assert_eq!(client.answer(question), Some(broker::Answer::Number(Some(known))));
        client.session.close();
        broker.close();
    }
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    let (_, mut reader) = stream(&client, "s").read(StreamStart::First, None);
    let mut all = Vec::new();
    while let NextChunk::Here(chunk) = reader.read() {
        all.extend(messages(&chunk));
    }
    let expected: Vec<String> = (1..=12).map(|id| format!("number {id}")).collect();
    assert_eq!(all, expected);
    broker.close();
}

#[test]
fn a_reader_that_has_all_is_told_of_what_comes() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    declare(&client, "s", Table::new());
    let (id, mut reader) =
        stream(&client, "s").read(StreamStart::Next, Matcher::new([b"blue".to_vec()], false));
    let mut publisher = stream(&client, "s").publish(None);
    for round in 0..20 {
        assert!(matches!(reader.read(), NextChunk::Later));
        for (at, value) in ["red", "blue"].into_iter().enumerate() {
            let text = entry(&format!("{value} {round}"));
            publisher.take(at as u64, Some(value.as_bytes()), &text).unwrap();
            publisher.flush().unwrap();
            // Both may come in one chunk, or each in its own.
        }
        let mut seen = Vec::new();
        while !seen.contains(&format!("blue {round}")) {
            match reader.read() {
                NextChunk::Here(chunk) => seen.extend(messages(&chunk)),
                NextChunk::AskAgain => {}
                NextChunk::Later => client.wait(|event| {
                    matches!(event, Event::Readable { consumer, .. } if consumer == id).then_some(())
                }),
            }
        }
    }
    broker.close();
}

/// The files of chunks below a data directory.
fn segments(dir: &Path) -> usize {
    let Ok(streams) = std::fs::read_dir(dir.join("streams")) else {
        return 0;
    };
    let files = streams.flat_map(|stream| std::fs::read_dir(stream.unwrap().path()).unwrap());
    files
        .filter(|file| {
            file.as_ref()
                .unwrap()
                .path()
                .extension()
                .is_some_and(|it| it == "chunks")
        })
        .count()
}

#[test]
fn old_segments_go_and_a_deleted_stream_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    let limits = Table::new()
        .with("x-max-length-bytes", 40_000)
        .with("x-stream-max-segment-size-bytes", 10_000);
    declare(&client, "s", limits);
    for round in 0..40 {
        let from = round * 50;
        publish(&client, "s", texts(from..from + 50));
    }
    let numbers = stream(&client, "s").numbers();
    assert_eq!(numbers.committed, Some(1_999));
    let first = numbers.first.unwrap();
    assert!(first > 500, "nothing went: it begins at {first}");
    let left = segments(dir.path());
    assert!((2..=7).contains(&left), "{left} segments");
    let all = consume(&client, "s", 50, from(StreamOffset::First));
    assert_eq!(
        take(&client, &all, (2_000 - first) as usize),
        numbered(first..2_000)
    );
    client.delete("s", false, false);
    client.wait(|event| matches!(event, Event::ConsumerCancelled { .. }).then_some(()));
    broker.close();
    assert_eq!(segments(dir.path()), 0);
}

#[test]
fn what_a_reader_stands_in_stays_until_the_reader_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    for name in ["read", "unread"] {
        let limits = Table::new()
            .with("x-max-length-bytes", 200_000)
            .with("x-stream-max-segment-size-bytes", 20_000);
        declare(&client, name, limits);
    }
    let publish_to = |name: &str| publish(&client, name, (0..50).map(|number| format!("{number:0>400}")));
    let first = |name: &str| stream(&client, name).numbers().first;
    let (_, reader) = stream(&client, "read").read(StreamStart::First, None);
    // More than a segment goes to each in a round, and it may take one until old ones are gone.
    for round in 0.. {
        assert!(round < 15, "nothing goes");
        let has_begun = first("unread") > Some(0);
        ["read", "unread"].into_iter().for_each(publish_to);
        if has_begun {
            break;
        }
    }
    assert_eq!(first("read"), Some(0));
    drop(reader);
    // No more than twice the limit, at which they would go anyhow.
    (0..3).for_each(|_| publish_to("read"));
    assert!(first("read") > Some(0), "nobody reads, and nothing goes");
    broker.close();
}

#[test]
fn a_stream_whose_files_cannot_be_opened_takes_nothing_and_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    {
        let broker = Broker::open(options(&dir)).unwrap();
        let client = Client::open(&broker);
        for name in ["s", "other"] {
            declare(&client, name, Table::new());
            publish(&client, name, texts(0..10));
        }
        client.session.close();
        broker.close();
    }
    let streams = std::fs::read_dir(dir.path().join("streams")).unwrap();
    let mut streams: Vec<_> = streams.map(|stream| stream.unwrap().path()).collect();
    streams.sort();
    // No folder any more.
    std::fs::remove_dir_all(&streams[0]).unwrap();
    std::fs::write(&streams[0], "something else").unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    publish(&client, "other", texts(10..20));
    let rest = consume(&client, "other", 5, from(StreamOffset::First));
    assert_eq!(take(&client, &rest, 20), numbered(0..20));
    let mut publisher = client.session.publisher(CHANNEL, 1);
    client.publish(&mut publisher, "s", &[0x10, 0x00, 2], b"lost", Some(1));
    publisher.flush();
    client.wait(|event| matches!(event, Event::Reject { .. }).then_some(()));
    client.delete("s", false, false);
    broker.close();
}
